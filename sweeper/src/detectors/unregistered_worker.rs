//! An unregistered worker: if and only if a machine that AWS Batch started runs, has had the policy's time to boot and to register, and no cluster lists
//! it.
//!
//! No job is ever placed on it, and Batch may start the next one for the jobs that wait. The usual causes: no way to ECS's addresses from its subnet, a role
//! without rights, an image without an ECS agent. That it never registered is known of the time in which no job ran anywhere in its region, since the
//! machines of a cluster on which jobs run are not all listed.

use super::{Answer, Class, Detector, Of, batch::refuted, seconds};
use crate::{
    snapshot::{MachineInputs, SnapshotPart},
    verdict::Judgement,
};
use jiff::Timestamp;

pub(super) const DETECTOR: Detector = Detector {
    class: Class::UnregisteredWorker,
    version: 1,
    rests_on: &[SnapshotPart::Inventory],
    answer: Of::Machine(answer),
};

fn answer(inputs: &MachineInputs, _: &Judgement) -> Answer {
    let Some(worker) = inputs.worker else { return refuted("it carries no tag of AWS Batch") };
    match worker.is_registered {
        Some(true) => return refuted("it is registered with a cluster"),
        None => return Answer::NotKnown,
        Some(false) => {}
    }
    let now = Timestamp::from_millisecond(inputs.case.now_unix_ms).ok();
    let (Some(launched_at), Some(now)) = (worker.launched_at, now) else { return Answer::NotKnown };
    let since = launched_at.max(worker.last_end);
    if now.duration_since(since) < seconds(worker.register_after_s) {
        return Answer::NotKnown;
    }
    Answer::Confirmed { since, until: now, work: None }
}
