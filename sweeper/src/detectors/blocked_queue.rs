//! A blocked queue: if and only if a job of it waits to be placed and has done so for the policy's time, and either Batch says that the job cannot be
//! placed, and why, or no job of the queue runs and none has begun to run since that one waits.
//!
//! A job that waits behind others that run has its turn to come, and is no waste. What a queue without a reason waits for nobody says: often its machines
//! do not join their cluster. Of a thousand jobs behind a blocked one there is one finding: that of their queue.

use super::{
    Answer, Class, Detector, Of,
    batch::{lasting, refuted},
};
use crate::{
    snapshot::{BatchInputs, BatchState, QueueJobs, SnapshotPart},
    verdict::words,
};
use model::ResourceKind;

pub(super) const DETECTOR: Detector = Detector {
    class: Class::BlockedQueue,
    version: 1,
    rests_on: &[SnapshotPart::Inventory],
    answer: Of::Batch(ResourceKind::BatchJobQueue, answer),
};

fn answer(inputs: &BatchInputs) -> Answer {
    let Some(BatchState::Queue(queue)) = &inputs.state else { return Answer::NotKnown };
    let Some(QueueJobs { placed, last_start, first, .. }) = &queue.jobs else { return Answer::NotKnown };
    let Some(first) = first else { return refuted("no job of it waits to be placed") };
    if first.blocked_by.is_none() {
        if *placed > 0 {
            return refuted(format!(
                "{} of it are placed, and others wait for their turn",
                words::count(*placed, "job", "jobs")
            ));
        }
        let started = last_start.filter(|start| first.since.is_some_and(|since| *start >= since));
        if let Some(start) = started {
            return refuted(format!("a job of it began to run at {}", words::time(start.as_millisecond())));
        }
    }
    lasting(inputs, first.since, inputs.policy.blocked_after_s)
}
