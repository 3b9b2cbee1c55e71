//! A blocked queue: if and only if a job of it has waited to be placed for the policy's time, and in that time either Batch has said that it cannot be placed,
//! and why, or no job of the queue has run, begun or ended.
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
    let Some(QueueJobs { placed, last_move, first, .. }) = &queue.jobs else { return Answer::NotKnown };
    let Some(first) = first else { return refuted("no job of it waits to be placed") };
    let after_s = inputs.policy.blocked_after_s;
    let moved = last_move.filter(|moved| first.since.is_none_or(|since| *moved >= since));
    if first.blocked_by.is_some() {
        // Since when Batch says so is not told by it. Where nothing of the queue has moved since the job waits, it is so since then.
        return lasting(inputs, if moved.is_some() { first.blocked_since } else { first.since }, after_s);
    }
    if *placed > 0 {
        let placed = words::count(*placed, "job of it is placed", "jobs of it are placed");
        return refuted(format!("{placed}, and others wait for their turn"));
    }
    match (lasting(inputs, moved.or(first.since), after_s), moved) {
        (Answer::NotKnown, Some(moved)) => {
            refuted(format!("a job of it began or ended at {}", words::time(moved.as_millisecond())))
        }
        (answer, _) => answer,
    }
}
