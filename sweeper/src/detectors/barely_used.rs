//! A barely used machine: if and only if the verdict on it is `waiting`, its agent measured every full hour of the policy's time, and in none of them did the
//! machine as a whole, housekeeping included, use more CPU time, storage, network or GPU on average than the policy's thresholds.
//!
//! Something outside will wake what runs there (a client, a timer, a run elsewhere), so nobody stops it: what it says is what it costs to keep a whole machine for that.

use super::{Answer, Class, Detector, Of};
use crate::{
    snapshot::{MachineInputs, SnapshotPart},
    verdict::Judgement,
};
use model::Verdict;

pub(super) const DETECTOR: Detector = Detector {
    class: Class::BarelyUsed,
    version: 1,
    rests_on: &[SnapshotPart::Inventory],
    answer: Of::Machine(answer),
};

fn answer(inputs: &MachineInputs, judgement: &Judgement) -> Answer {
    if judgement.verdict == Verdict::Idle {
        return Answer::Refuted { because: "the machine is idle as a whole".to_owned() };
    }
    let Some(case) = &inputs.hours else { return Answer::NotKnown };
    if case.is_exceeded() {
        return Answer::Refuted { because: case.busier_in_words() };
    }
    if judgement.verdict != Verdict::Waiting || !case.is_complete() {
        return Answer::NotKnown;
    }
    Answer::Confirmed { since: case.hours.from, until: case.hours.until, work: None }
}
