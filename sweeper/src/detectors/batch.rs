//! What classes on what is AWS Batch's have in common.

use super::{Answer, seconds};
use crate::snapshot::{BatchInputs, Coverage};
use jiff::Timestamp;

/// What refutes every class of them; none if nothing of where it is listed does.
pub(super) fn refutes(inputs: &BatchInputs) -> Option<Answer> {
    match (&inputs.state, inputs.coverage) {
        (None, Coverage::Complete) => Some(Answer::Gone { because: "AWS Batch lists it no more".to_owned() }),
        (None, Coverage::Failed | Coverage::NotAsked) => Some(Answer::NotKnown),
        (Some(_), _) => None,
    }
}

/// Confirmed once it has been so for long enough.
pub(super) fn lasting(inputs: &BatchInputs, since: Option<Timestamp>, after_s: u64) -> Answer {
    match since {
        Some(since) if inputs.at.duration_since(since) >= seconds(after_s) => {
            Answer::Confirmed { since, until: inputs.at, work: None }
        }
        _ => Answer::NotKnown,
    }
}

/// It is surely not so.
pub(super) fn refuted(because: impl Into<String>) -> Answer {
    Answer::Refuted { because: because.into() }
}

#[cfg(test)]
mod tests;
