//! What is thought of a machine, a workload or a job.

use serde::{Deserialize, Serialize};

/// What is thought of a machine, a workload or a job over a window of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Somebody's work runs.
    Active,
    /// It waits for something outside that will wake it.
    Waiting,
    /// Nothing that anybody asked for has run for the whole window.
    Idle,
    /// It should get on and does not.
    Stuck,
    /// Missing, stale, partial or contradictory evidence. Never acted on.
    Unknown,
}

impl Verdict {
    /// The word for it, everywhere.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Waiting => "waiting",
            Self::Idle => "idle",
            Self::Stuck => "stuck",
            Self::Unknown => "unknown",
        }
    }
}
