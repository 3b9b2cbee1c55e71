//! An abandoned worker: if and only if a machine that AWS Batch started runs, no cluster is known to list it, it has had the policy's time to boot and to register, and the compute environment that started it is listed
//! no more: the one that its tag names, or any that has machines where it names none.
//!
//! No job is ever placed on it, and nobody ends it. It lasts since no list has had the environment, or since the first sweep that sees it so.

use super::{Answer, Class, Detector, Of, batch::refuted, seconds};
use crate::{
    snapshot::{MachineInputs, SnapshotPart, StartedBy},
    verdict::Judgement,
};
use jiff::Timestamp;

pub(super) const DETECTOR: Detector = Detector {
    class: Class::AbandonedWorker,
    version: 1,
    rests_on: &[SnapshotPart::Inventory],
    answer: Of::Machine(answer),
};

fn answer(inputs: &MachineInputs, _: &Judgement) -> Answer {
    let Some(worker) = inputs.worker else { return refuted("it carries no tag of AWS Batch") };
    if worker.is_registered == Some(true) {
        return refuted("it is registered with a cluster");
    }
    let gone_since = match worker.started_by {
        StartedBy::Listed => return refuted("the environment that started it is listed"),
        StartedBy::NotTold => return Answer::NotKnown,
        StartedBy::Gone { since } => since,
    };
    let now = Timestamp::from_millisecond(inputs.case.now_unix_ms).ok();
    let (Some(launched_at), Some(now)) = (worker.launched_at, now) else { return Answer::NotKnown };
    if now.duration_since(launched_at) < seconds(worker.register_after_s) {
        return Answer::NotKnown;
    }
    Answer::Confirmed { since: launched_at.max(gone_since.unwrap_or(now)).min(now), until: now, work: None }
}
