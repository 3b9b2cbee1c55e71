//! An idle node: if and only if the verdict on the node is `idle`, and the provider, where one's inventory covers it, says that the instance is
//! running, AWS Batch does not end it by itself (an [idle worker](super::idle_worker) is one that it should have ended), and has no job that starts or runs there.
//!
//! Work that the node's agent saw refutes it, whatever else is known. Instances without an agent are no idle nodes: they are blind spots of the
//! sweep's report, and may be quiet instances.

use super::{Answer, Class, Detector, Of, Work};
use crate::{
    snapshot::{MachineInputs, SnapshotPart},
    verdict::{Case, Decision, Judgement, last_work, words},
};
use jiff::Timestamp;
use model::Verdict;

pub(super) const DETECTOR: Detector =
    Detector { class: Class::IdleNode, version: 2, rests_on: &[SnapshotPart::Inventory], answer: Of::Machine(answer) };

fn answer(inputs: &MachineInputs, judgement: &Judgement) -> Answer {
    let is_batchs = inputs.worker.is_some_and(|worker| worker.kept_for_s.is_some());
    match of_verdict(inputs, judgement) {
        Answer::Confirmed { .. } if is_batchs => Answer::NotKnown,
        answer => answer,
    }
}

/// What the verdict alone says.
pub(super) fn of_verdict(inputs: &MachineInputs, judgement: &Judgement) -> Answer {
    let time = |ms: i64| Timestamp::from_millisecond(ms).ok();
    let case = &inputs.case;
    match (judgement.verdict, &judgement.decision) {
        // A job that sleeps may be what the agent calls quiet: Batch waits for it.
        (Verdict::Idle, _) if !inputs.jobs.is_none() => Answer::NotKnown,
        (Verdict::Idle, Decision::AllQuiet { total, .. }) => {
            match (judgement.since_unix_ms.and_then(time), time(total.end_unix_ms)) {
                (Some(since), Some(until)) => Answer::Confirmed { since, until, work: work(case) },
                _ => Answer::NotKnown,
            }
        }
        (Verdict::Active, _) => Answer::Refuted { because: words::decision(judgement, case) },
        (Verdict::Idle | Verdict::Waiting | Verdict::Stuck | Verdict::Unknown, _) => Answer::NotKnown,
    }
}

/// The last work that the node's evidence shows.
fn work(case: &Case) -> Option<Work> {
    let judgement = last_work(case)?;
    let Decision::Above { observation, .. } = &judgement.decision else { return None };
    let until = Timestamp::from_millisecond(observation.end_unix_ms).ok()?;
    Some(Work { until, what: words::decision(&judgement, case) })
}
