//! What one question may take, and what it is answered if it would take more.

use crate::store::StoreError;
use costs::Costs;
use jiff::SignedDuration;

/// The longest time that is added up at once: as many days as rollups are usually kept, and a quarter of a year.
pub(super) const LONGEST: SignedDuration = SignedDuration::from_hours(92 * 24);

/// What one question may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    /// Most hours of machines whose rollups are read.
    pub(super) rollups: usize,
    /// Most lines of an answer.
    pub(super) lines: usize,
}

/// A day of some 20,000 machines that is not added up yet; and more lines than anybody reads.
pub(super) const BOUNDS: Bounds = Bounds { rollups: 500_000, lines: 100_000 };

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
pub enum NotAnswered {
    /// The database does not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Too many rollups would be read for it.
    #[error(
        "the rollups of more than {0} machine hours would have to be read for this; ask about a shorter time, or end it with a day that has been over for some hours: \
         days that are over are added up beforehand while `sweeper serve` runs, the newest first"
    )]
    TooManyRollups(usize),
    /// The answer would be too long.
    #[error(
        "the answer would have more than {0} lines; ask about a shorter time, or by dimensions with fewer values (`run`, `instance` and `workload` mostly have most)"
    )]
    TooManyLines(usize),
}

impl Bounds {
    /// Whether the answer is not too long so far.
    pub(super) fn check_lines(&self, costs: &Costs) -> Result<(), NotAnswered> {
        if costs.lines() > self.lines { Err(NotAnswered::TooManyLines(self.lines)) } else { Ok(()) }
    }
}
