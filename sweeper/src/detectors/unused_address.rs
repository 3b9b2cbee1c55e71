//! An unused address: if and only if the provider lists a public address that is reserved and tied to nothing, no service keeps it for itself, and every
//! list of the last [`after_s`](LeftoverInputs::after_s) has shown it so.
//!
//! Whoever releases an address may never get the same one again: a plan of it takes two people.

use super::{Answer, Class, Detector, Of, leftover};
use crate::snapshot::{LeftoverInputs, SnapshotPart};
use model::ResourceKind;

pub(super) const DETECTOR: Detector = Detector {
    class: Class::UnusedAddress,
    version: 1,
    rests_on: &[SnapshotPart::Inventory],
    answer: Of::Leftover(ResourceKind::Address, answer),
};

fn answer(inputs: &LeftoverInputs) -> Answer {
    leftover::answer(inputs, "it is tied to")
}
