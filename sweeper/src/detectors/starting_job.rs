//! A job that does not get beyond starting: if and only if Batch says that it is `STARTING`, and has done so for the policy's time.
//!
//! Its machine runs and is billed meanwhile. An image that is pulled takes minutes; a credential or a registry that is not reached takes for ever.

use super::{
    Answer, Class, Detector, Of,
    batch::{lasting, refuted},
};
use crate::snapshot::{BatchInputs, BatchState, SnapshotPart};
use model::ResourceKind;

pub(super) const DETECTOR: Detector = Detector {
    class: Class::StartingJob,
    version: 1,
    rests_on: &[SnapshotPart::Inventory],
    answer: Of::Batch(ResourceKind::BatchJob, answer),
};

fn answer(inputs: &BatchInputs) -> Answer {
    let Some(BatchState::Job(job)) = &inputs.state else { return Answer::NotKnown };
    match job.status.as_deref() {
        Some("STARTING") => lasting(inputs, job.since, inputs.policy.starting_after_s),
        Some(status) => refuted(format!("the job is {status}")),
        None => Answer::NotKnown,
    }
}
