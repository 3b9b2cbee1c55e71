//! An idle worker: if and only if the verdict on a machine that AWS Batch started is `idle`, it is registered with the cluster of a compute environment that keeps no machine ready (`minvCpus` 0),
//! no job of Batch starts or runs on it, and it has been idle for the policy's time longer than that environment keeps a machine without a job.
//!
//! Batch should have ended it: its scaling is stuck, or somebody has detached the machine from it. Until then an idle worker is what the environment's owner asked for, and no
//! idle node.

use super::{Answer, Class, Detector, Of, idle_node, seconds};
use crate::{
    snapshot::{MachineInputs, SnapshotPart, Worker},
    verdict::Judgement,
};

pub(super) const DETECTOR: Detector = Detector {
    class: Class::IdleWorker,
    version: 1,
    rests_on: &[SnapshotPart::Inventory],
    answer: Of::Machine(answer),
};

fn answer(inputs: &MachineInputs, judgement: &Judgement) -> Answer {
    let Some(Worker { kept_for_s: Some(kept_for_s), end_within_s, .. }) = inputs.worker else {
        return Answer::NotKnown;
    };
    match idle_node::of_verdict(inputs, judgement) {
        Answer::Confirmed { since, until, .. } if until.duration_since(since) < seconds(kept_for_s + end_within_s) => {
            Answer::NotKnown
        }
        answer => answer,
    }
}
