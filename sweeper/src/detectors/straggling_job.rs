//! A straggling job: if and only if it is a child of an array and runs, all other children of the array are over, it is known of three of them at least
//! how long they ran, and it has run for three times as long as the longest of these, and for the policy's time.
//!
//! It may be the one large sample among small ones: this is a finding to look at, of which no plan is made. It lasts since the last of the others ended, or
//! since it had run for as long as the longest of them, whichever is later.

use super::{
    Answer, Class, Detector, Of,
    batch::{lasting, refuted},
    seconds,
};
use crate::snapshot::{BatchInputs, BatchState, Siblings, SnapshotPart};
use model::ResourceKind;

/// The longest of so many others is something to compare with.
const TIMED: u32 = 3;
/// So many times as long.
const TIMES: u64 = 3;

pub(super) const DETECTOR: Detector = Detector {
    class: Class::StragglingJob,
    version: 1,
    rests_on: &[SnapshotPart::Inventory],
    answer: Of::Batch(ResourceKind::BatchJob, answer),
};

fn answer(inputs: &BatchInputs) -> Answer {
    let Some(BatchState::Job(job)) = &inputs.state else { return Answer::NotKnown };
    match job.status.as_deref() {
        Some("RUNNING") => {}
        Some(status) => return refuted(format!("the job is {status}")),
        None => return Answer::NotKnown,
    }
    let Some(Siblings { timed, longest_s, last_end, .. }) = job.siblings else {
        return refuted("no array has it as its last child");
    };
    let Some(started_at) = job.since else { return Answer::NotKnown };
    let least = longest_s.saturating_mul(TIMES).max(inputs.policy.straggling_after_s);
    if timed < TIMED || inputs.at.duration_since(started_at) < seconds(least) {
        return Answer::NotKnown;
    }
    let alone = started_at.checked_add(seconds(longest_s)).map_or(inputs.at, |end| end.max(last_end));
    lasting(inputs, Some(alone), 0)
}
