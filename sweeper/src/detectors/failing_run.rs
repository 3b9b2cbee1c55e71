//! A failing run: if and only if a run of a pipeline, or a Slurm job, is open by the word of the agent on its machine, the machine runs as far as anybody knows, and the verdict on the
//! run is `stuck`: tasks of it failed one after the other, and none succeeded.
//!
//! It may be tried again for ever, or fail for each of a thousand samples: either way it is paid for, and comes to nothing. One success refutes it.

use super::{Answer, Class, Detector, Of, stuck_job::judged};
use crate::{
    snapshot::{SnapshotPart, WorkInputs},
    verdict::work::{Contract, WorkJudgement},
};

pub(super) const DETECTOR: Detector =
    Detector { class: Class::FailingRun, version: 1, rests_on: &[SnapshotPart::Inventory], answer: Of::Work(answer) };

fn answer(inputs: &WorkInputs, judgement: &WorkJudgement) -> Answer {
    match inputs.work.contract {
        Contract::Run { .. } => judged(inputs, judgement),
        Contract::BatchJob { .. } | Contract::Pod { .. } | Contract::RunTask(_) | Contract::OrphanedTask(_) => {
            Answer::NotKnown
        }
    }
}
