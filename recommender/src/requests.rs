//! What jobs and tasks ask for, and what they used.

use std::fmt;

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

/// What one job or task asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Request {
    /// vCPUs, in thousandths.
    pub milli_vcpus: u64,
    /// Memory, in MiB.
    pub memory_mib: u64,
}

/// `4 vCPUs and 16384 MiB`
impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, thousandths) = (self.milli_vcpus / 1_000, self.milli_vcpus % 1_000);
        let decimals = format!(".{thousandths:03}");
        write!(f, "{whole}{} vCPUs and {} MiB", decimals.trim_end_matches('0').trim_end_matches('.'), self.memory_mib)
    }
}

/// One attempt at a job or task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// How long it took.
    pub lasted: SignedDuration,
    /// Thousandths of a core that it did not exceed for 99 % of its time; none if not measured.
    pub milli_cores: Option<u64>,
    /// Most memory that it used, in bytes; none if not measured.
    pub memory_peak_bytes: Option<u64>,
    /// Whether memory was short: the out-of-memory killer ended a process of it, or its scheduler says so. None: not known.
    pub out_of_memory: Option<bool>,
}

/// What attempts come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Used {
    /// How many attempts.
    pub attempts: u32,
    /// Of these, so many were short of memory.
    pub out_of_memory: u32,
    /// Most cores, in thousandths; none if not measured in 95 % of them.
    pub milli_cores: Option<u64>,
    /// Most memory, in bytes; none if not measured in 95 % of them.
    pub memory_peak_bytes: Option<u64>,
    /// Whether it is known of 95 % of them whether memory was short.
    pub ends_known: bool,
}

impl Used {
    /// Of these.
    #[must_use]
    pub fn of(attempts: &[Attempt]) -> Self {
        let is_most = |known: usize| !attempts.is_empty() && known * 100 >= attempts.len() * 95;
        let highest = |of: fn(&Attempt) -> Option<u64>| {
            let known = attempts.iter().filter_map(of);
            known.clone().max().filter(|_| is_most(known.count()))
        };
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Self {
            attempts: count(attempts.len()),
            out_of_memory: count(attempts.iter().filter(|one| one.out_of_memory == Some(true)).count()),
            milli_cores: highest(|one| one.milli_cores),
            memory_peak_bytes: highest(|one| one.memory_peak_bytes),
            ends_known: is_most(attempts.iter().filter(|one| one.out_of_memory.is_some()).count()),
        }
    }
}
