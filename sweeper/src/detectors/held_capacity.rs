//! Held capacity: if and only if a compute environment whose machines are Batch's never has fewer than some vCPUs, and for the policy's time no job of
//! any queue that it serves has been there.
//!
//! A disabled environment keeps its least capacity all the same. How long no job was there is known as far back as jobs that are over are listed, which
//! is a day, and never longer than every list has shown that it keeps some.

use super::{
    Answer, Class, Detector, Of,
    batch::{lasting, refuted},
};
use crate::{
    snapshot::{BatchInputs, BatchState, SnapshotPart},
    verdict::words,
};
use model::ResourceKind;

pub(super) const DETECTOR: Detector = Detector {
    class: Class::HeldCapacity,
    version: 1,
    rests_on: &[SnapshotPart::Inventory],
    answer: Of::Batch(ResourceKind::BatchComputeEnvironment, answer),
};

fn answer(inputs: &BatchInputs) -> Answer {
    let Some(BatchState::Environment(environment)) = &inputs.state else { return Answer::NotKnown };
    match environment.min_vcpus {
        None => return Answer::NotKnown,
        Some(0) => return refuted("it keeps no vCPU ready"),
        Some(_) => {}
    }
    let Some(jobs) = environment.jobs else { return Answer::NotKnown };
    if jobs.live > 0 {
        return refuted(format!("{} in its queues", words::count(jobs.live, "job is", "jobs are")));
    }
    if environment.machines == Some(0) {
        return refuted("no machine is registered with it");
    }
    lasting(inputs, environment.held_since.map(|held| held.max(jobs.last_end)), inputs.policy.held_after_s)
}
