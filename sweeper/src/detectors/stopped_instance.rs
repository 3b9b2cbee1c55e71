//! A stopped instance: if and only if the provider lists an instance that is stopped (on Google Cloud: or suspended), nothing larger keeps it so, and that has been
//! so for [`after_s`](LeftoverInputs::after_s), by the provider's own word or in every list since then.
//!
//! Its hours cost nothing; its volumes and its addresses go on to be billed. Somebody may mean to start it again: it raises a finding, and no plan is made.

use super::{Answer, Class, Detector, Of, leftover};
use crate::snapshot::{LeftoverInputs, SnapshotPart};
use model::ResourceKind;

pub(super) const DETECTOR: Detector = Detector {
    class: Class::StoppedInstance,
    version: 1,
    rests_on: &[SnapshotPart::Inventory],
    answer: Of::Leftover(ResourceKind::Instance, answer),
};

fn answer(inputs: &LeftoverInputs) -> Answer {
    leftover::answer(inputs, "the instance is")
}
