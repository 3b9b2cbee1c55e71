//! What classes on what is AWS Batch's have in common.

use super::Answer;
use crate::snapshot::{BatchInputs, Coverage};
use jiff::{SignedDuration, Timestamp};

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
    let after = SignedDuration::from_secs(i64::try_from(after_s).unwrap_or(i64::MAX));
    match since {
        Some(since) if inputs.at.duration_since(since) >= after => {
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
