//! A lost job: if and only if Batch says that it starts or runs, and the ECS task that it runs in has stopped, or was never known to ECS or is no more,
//! for the policy's time.
//!
//! Batch notices a task that ended within seconds; a job whose task is gone for minutes waits for nothing, and its dependants wait for it. Jobs on EKS
//! have no task, and nothing is said of them.

use super::{
    Answer, Class, Detector, Of,
    batch::{lasting, refuted},
};
use crate::snapshot::{BatchInputs, BatchState, SnapshotPart, TaskState};
use model::ResourceKind;

pub(super) const DETECTOR: Detector = Detector {
    class: Class::LostJob,
    version: 1,
    rests_on: &[SnapshotPart::Inventory, SnapshotPart::EcsTasks],
    answer: Of::Batch(ResourceKind::BatchJob, answer),
};

fn answer(inputs: &BatchInputs) -> Answer {
    let Some(BatchState::Job(job)) = &inputs.state else { return Answer::NotKnown };
    match job.status.as_deref() {
        Some("STARTING" | "RUNNING") => {}
        Some(status) => return refuted(format!("the job is {status}")),
        None => return Answer::NotKnown,
    }
    let after_s = inputs.policy.lost_after_s;
    match &job.task {
        TaskState::Known { status: Some(status), stopped_at, .. } if status == "STOPPED" => {
            lasting(inputs, *stopped_at, after_s)
        }
        TaskState::Known { status: Some(status), .. } => refuted(format!("its task is {status}")),
        TaskState::Missing { since } => lasting(inputs, *since, after_s),
        TaskState::Known { status: None, .. } | TaskState::NotNamed => Answer::NotKnown,
    }
}
