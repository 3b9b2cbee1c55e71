//! What classes of leftovers have in common.

use super::{Answer, seconds};
use crate::{
    inventory::UsedBy,
    snapshot::{Coverage, LeftoverInputs},
};

pub(super) const NOT_LISTED: &str = "the provider lists it no more";

/// What refutes every class of leftovers; none if nothing of where it is listed does.
pub(super) fn refutes(inputs: &LeftoverInputs) -> Option<Answer> {
    match (&inputs.used_by, inputs.coverage) {
        (None, Coverage::Complete) => Some(Answer::Gone { because: NOT_LISTED.to_owned() }),
        (None, Coverage::Failed | Coverage::NotAsked) => Some(Answer::NotKnown),
        (Some(_), _) => None,
    }
}

/// Confirmed once every list of the policy's time has shown it unused. `lead` says the contrary: `it is attached to`.
pub(super) fn answer(inputs: &LeftoverInputs, lead: &str) -> Answer {
    match (&inputs.used_by, inputs.since) {
        (Some(UsedBy::Something { what }), _) => Answer::Refuted { because: format!("{lead} {what}") },
        (Some(UsedBy::Managed { by }), _) => Answer::Refuted { because: format!("{by} keeps it for itself") },
        (Some(UsedBy::Nothing), Some(since)) => {
            if inputs.at.duration_since(since) < seconds(inputs.after_s) || inputs.at < inputs.not_before {
                return Answer::NotKnown;
            }
            Answer::Confirmed { since, until: inputs.at, work: None }
        }
        (Some(UsedBy::Nothing | UsedBy::NotTold) | None, _) => Answer::NotKnown,
    }
}
