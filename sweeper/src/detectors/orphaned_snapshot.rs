//! An orphaned snapshot: if and only if EC2 lists a whole snapshot of the account's own, no image of the account's is made of it, no service keeps it by rules of its own, the volume that it is a copy of
//! has been in no list for [`after_s`](LeftoverInputs::after_s), and it is older than the policy's age.
//!
//! It may be the last copy of something: it raises a finding, and no plan is made.

use super::{Answer, Class, Detector, Of, leftover};
use crate::snapshot::{LeftoverInputs, SnapshotPart};
use model::ResourceKind;

pub(super) const DETECTOR: Detector = Detector {
    class: Class::OrphanedSnapshot,
    version: 1,
    rests_on: &[SnapshotPart::Inventory],
    answer: Of::Leftover(ResourceKind::Snapshot, answer),
};

fn answer(inputs: &LeftoverInputs) -> Answer {
    leftover::answer(inputs, "it is needed by")
}
