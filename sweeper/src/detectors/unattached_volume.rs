//! An unattached volume: if and only if the provider lists a volume (on Google Cloud: a disk) that is attached to nothing and could be, no service keeps it for
//! itself, and that has been so for [`after_s`](LeftoverInputs::after_s), by the provider's own word or in every list since then.
//!
//! What it holds may be wanted: the plan that is made of it takes a snapshot first.

use super::{Answer, Class, Detector, Of, leftover};
use crate::snapshot::{LeftoverInputs, SnapshotPart};
use model::ResourceKind;

pub(super) const DETECTOR: Detector = Detector {
    class: Class::UnattachedVolume,
    version: 1,
    rests_on: &[SnapshotPart::Inventory],
    answer: Of::Leftover(ResourceKind::Volume, answer),
};

fn answer(inputs: &LeftoverInputs) -> Answer {
    leftover::answer(inputs, "it is attached to")
}
