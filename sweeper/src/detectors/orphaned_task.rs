//! An orphaned task: if and only if a task of a pipeline's run, or a step of a Slurm job, lives by the word of the agent on its machine, its run has ended `verdict.stuck_after` ago or earlier, and the
//! machine runs as far as anybody knows.
//!
//! Nobody waits for what it computes. That it works refutes nothing: so does a job whose head was killed. It may also be a server that the run left behind on purpose: this is a
//! finding to look at, of which no plan is made. What a plain script has left behind is never one.

use super::{Answer, Class, Detector, Of, presence, stuck_job::not_shown};
use crate::{
    snapshot::{SnapshotPart, WorkInputs},
    verdict::work::{Contract, WorkDecision, WorkJudgement},
};
use jiff::Timestamp;

pub(super) const DETECTOR: Detector =
    Detector { class: Class::OrphanedTask, version: 1, rests_on: &[SnapshotPart::Inventory], answer: Of::Work(answer) };

fn answer(inputs: &WorkInputs, judgement: &WorkJudgement) -> Answer {
    if !matches!(inputs.work.contract, Contract::OrphanedTask(_)) {
        return Answer::NotKnown;
    }
    if let Some(answer) = inputs.presence.as_ref().and_then(|one| presence::refutes(one, inputs.work.now_unix_ms)) {
        return answer;
    }
    let time = |ms: i64| Timestamp::from_millisecond(ms).ok();
    match (&judgement.decision, &inputs.work.end) {
        (WorkDecision::Orphaned { run_ended_unix_ms, .. }, Some(end)) if inputs.presence.is_some() => {
            match (time(*run_ended_unix_ms), time(end.end_unix_ms)) {
                (Some(since), Some(until)) => Answer::Confirmed { since, until, work: None },
                _ => Answer::NotKnown,
            }
        }
        (decision, _) => not_shown(inputs, decision),
    }
}
