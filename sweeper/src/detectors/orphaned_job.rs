//! An orphaned job: if and only if a job of AWS Batch starts or runs by Batch's word, another job submitted it (the session of that call is named after that job's ECS task), and that one, its head,
//! has failed the policy's time ago or earlier.
//!
//! Nobody waits for what it computes: a head that is started anew submits jobs of its own. A head that has succeeded let it run on purpose. Whether it works refutes nothing, so of this no plan is
//! made. Who submitted it CloudTrail tells, where it is read; of a job that nobody is known to have submitted nothing is said.

use super::{
    Answer, Class, Detector, Of,
    batch::{lasting, refuted},
};
use crate::snapshot::{BatchInputs, BatchState, SnapshotPart};
use model::ResourceKind;

pub(super) const DETECTOR: Detector = Detector {
    class: Class::OrphanedJob,
    version: 1,
    rests_on: &[SnapshotPart::Inventory],
    answer: Of::Batch(ResourceKind::BatchJob, answer),
};

fn answer(inputs: &BatchInputs) -> Answer {
    let Some(BatchState::Job(job)) = &inputs.state else { return Answer::NotKnown };
    match job.status.as_deref() {
        Some("STARTING" | "RUNNING") => {}
        Some(status) => return refuted(format!("the job is {status}")),
        None => return Answer::NotKnown,
    }
    let Some(head) = &job.head else { return Answer::NotKnown };
    match head.status.as_deref() {
        Some("FAILED") => lasting(inputs, head.ended_at, inputs.policy.orphaned_after_s),
        Some(status) => refuted(format!("its head is {status}")),
        None => Answer::NotKnown,
    }
}
