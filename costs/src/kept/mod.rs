//! What a day of a machine comes to, added up beforehand and packed: an answer takes it up in the place of its 24 hours.
//!
//! What is kept of a day is what any two dimensions of a view can be told from: by which version of the machine it was, what used it and on what it was spent, micro-dollars, or
//! seconds of what is not known; why money is not attributed or not known; and the bill. What is known of a machine (its team, who started it) is not kept but looked up when
//! a day is taken up, so that what is learnt of that later makes nothing wrong. Hours are added up by the function that adds up an answer, and sums of whole numbers do not depend on
//! their order: the parts are the same to the micro-dollar.
//!
//! Whether a kept day still holds is not decided here: whoever keeps it gives it a [`Fingerprint`] of all that it rests on, and compares.

mod bytes;
mod pack;
mod sum;
mod unpack;

pub use bytes::Damaged;
pub use pack::{Packed, pack};
pub use sum::DaySum;
pub use unpack::{Days, Whole, fingerprints};

use crate::{By, Dimension};
use std::{collections::BTreeMap, sync::Arc};

/// Which of two views of the same work is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum View {
    /// Runs of pipelines with their tasks and tools.
    Runs,
    /// Workloads.
    Workloads,
}

impl View {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Runs, Self::Workloads];

    /// Its word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Runs => "runs",
            Self::Workloads => "workloads",
        }
    }

    /// The dimensions of what uses a machine that it tells.
    #[must_use]
    pub const fn dimensions(self) -> &'static [Dimension] {
        match self {
            Self::Runs => &[Dimension::Pipeline, Dimension::Run, Dimension::Task, Dimension::Tool],
            Self::Workloads => &[Dimension::Workload],
        }
    }
}

impl By {
    /// The view that these dimensions are of. Where they tell nothing of subjects it is that of runs.
    #[must_use]
    pub fn view(&self) -> View {
        if self.dimensions().contains(&Dimension::Workload) { View::Workloads } else { View::Runs }
    }
}

/// A hash of all that a kept day rests on.
pub type Fingerprint = [u8; 16];

/// What is kept of a machine's day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptDay {
    /// Of what it rests on.
    pub fingerprint: Fingerprint,
    /// What it comes to; none if that cannot be kept, because an hour of it could not be read or it is too long.
    pub sum: Option<DaySum>,
}

/// Most bytes of a machine's day, unpacked. Thousands of workloads a day are no sum any more.
const MAX_DAY_BYTES: usize = 2 << 20;
/// Most bytes of all machines of a row, unpacked. What fits no more is not kept.
const MAX_BYTES: usize = 64 << 20;
/// Of what is kept on this side of a packed column; columns hold no more than their lines do.
const MAX_COLUMN_BYTES: usize = 2 * MAX_BYTES;

impl KeptDay {
    /// What is kept of this sum, which rests on what the fingerprint is of.
    #[must_use]
    pub fn new(fingerprint: Fingerprint, sum: Option<DaySum>) -> Self {
        Self { fingerprint, sum: sum.filter(|sum| sum.bytes() <= MAX_DAY_BYTES) }
    }
}

/// A part of all machines' days, by their keys.
pub type Row = BTreeMap<Arc<str>, KeptDay>;

/// A number that was a place in a list when it was packed.
pub(crate) fn index(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests;
