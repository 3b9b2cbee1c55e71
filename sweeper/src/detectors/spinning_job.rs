//! A spinning job: if and only if a job of AWS Batch is `RUNNING` by Batch's word, or a task of a run is open, or a pod of a Kubernetes job lives, by the word of the agent on its machine, the machine runs as far
//! as anybody knows, and for `verdict.spinning_after` the job has used CPU time and done nothing else ([`spin`]).
//!
//! It loops, or it computes: this is a suspicion that is listed, of which no plan is made.

use super::{
    Answer, Class, Detector, Of, presence,
    stuck_job::{listed, not_shown},
};
use crate::{
    snapshot::{SnapshotPart, WorkInputs},
    verdict::work::{Contract, Spin, WorkJudgement, spin},
};
use jiff::Timestamp;

pub(super) const DETECTOR: Detector = Detector {
    class: Class::SpinningJob,
    version: 1,
    rests_on: &[SnapshotPart::Inventory, SnapshotPart::EcsTasks],
    answer: Of::Work(answer),
};

fn answer(inputs: &WorkInputs, judgement: &WorkJudgement) -> Answer {
    match inputs.work.contract {
        Contract::BatchJob { .. } | Contract::RunTask(_) | Contract::Pod { .. } => {}
        Contract::OrphanedTask(_) | Contract::Run { .. } => return Answer::NotKnown,
    }
    let of_list = inputs.listed.as_ref().and_then(listed);
    let of_machine = || inputs.presence.as_ref().and_then(|one| presence::refutes(one, inputs.work.now_unix_ms));
    if let Some(answer) = of_list.or_else(of_machine) {
        return answer;
    }
    let time = |ms: i64| Timestamp::from_millisecond(ms).ok();
    match spin(&inputs.work) {
        Spin::Computes { since_unix_ms, until_unix_ms, .. } if inputs.presence.is_some() => {
            match (time(since_unix_ms), time(until_unix_ms)) {
                (Some(since), Some(until)) => Answer::Confirmed { since, until, work: None },
                _ => Answer::NotKnown,
            }
        }
        Spin::DoesMore { what } => Answer::Refuted { because: format!("it does more than compute: {what}") },
        Spin::Computes { .. } | Spin::NotKnown => not_shown(inputs, &judgement.decision),
    }
}
