//! What something costs by the hour, or why that is not known.

use jiff::Timestamp;
use model::HourlyRate;
use serde::{Deserialize, Serialize};

/// What a machine costs, by the hour.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "cost", rename_all = "snake_case")]
pub enum Cost {
    /// The price is known.
    Known {
        /// On-demand list price.
        per_hour: HourlyRate,
        /// When the price list last said so, where it could not be read today.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        as_of: Option<Timestamp>,
    },
    /// It is not, which is not zero.
    Unknown {
        /// Why.
        why: String,
    },
}

impl Cost {
    /// The rate, if it is known.
    #[must_use]
    pub fn rate(&self) -> Option<HourlyRate> {
        match self {
            Self::Known { per_hour, .. } => Some(*per_hour),
            Self::Unknown { .. } => None,
        }
    }
}
