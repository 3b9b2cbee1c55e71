//! The lines of a report, and why money is not attributed or not known.

use crate::Value;
use serde::Serialize;
use std::sync::Arc;

/// What money was spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// What workloads used.
    Used,
    /// What was reserved for them and not used.
    ReservedUnused,
    /// What would run on a machine that nobody uses: housekeeping, kernel threads, the agent.
    System,
    /// What was in use, and no workload is known to have used.
    Unowned,
    /// What nobody used.
    Idle,
    /// What no agent saw.
    Unattributed,
    /// Time whose cost is not known; it has no amount.
    NotKnown,
}

impl Kind {
    /// All of them. What is kept names them by their places here.
    pub const ALL: [Self; 7] =
        [Self::Used, Self::ReservedUnused, Self::System, Self::Unowned, Self::Idle, Self::Unattributed, Self::NotKnown];

    /// Its word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Used => "used",
            Self::ReservedUnused => "reserved_unused",
            Self::System => "system",
            Self::Unowned => "unowned",
            Self::Idle => "idle",
            Self::Unattributed => "unattributed",
            Self::NotKnown => "not_known",
        }
    }
}

/// One line of a report.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Group {
    /// The dimensions' values, in their order; none is *not known*.
    pub values: Vec<Value>,
    /// On what it was spent.
    pub kind: Kind,
}

/// What a line comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Of what.
    pub group: Group,
    /// Micro-dollars; none of time whose cost is not known.
    pub micros: Option<u64>,
    /// Seconds whose cost is not known.
    pub not_known_s: u64,
}

/// Why money is not attributed, or not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// [`Kind::Unattributed`] or [`Kind::NotKnown`].
    pub kind: Kind,
    /// In words.
    pub why: Arc<str>,
    /// How many machines it is of.
    pub machines: u64,
    /// How many seconds of them.
    pub seconds: u64,
    /// Micro-dollars; zero of what is not known.
    pub micros: u64,
}

/// Costs, added up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Every line, those that cost most first. Their amounts come to [`Self::bill_micros`].
    pub lines: Vec<Line>,
    /// The bill, summed up by itself: hour by hour, before it was split.
    pub bill_micros: u64,
    /// Seconds that are billed at a known price.
    pub billed_s: u64,
    /// Seconds whose cost is not known.
    pub not_known_s: u64,
    /// Why money is not attributed or not known, what most seconds are of first.
    pub reasons: Vec<Reason>,
}
