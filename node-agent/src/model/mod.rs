//! What the parts of the agent hand to each other: moments, sums of the tasks of one key, states, and what a source measures. ◇
//!
//! Plain data, below every module that reads or judges. The one call of the system in here is [`Moment::now`].

mod moment;
mod states;
mod statuses;

pub use moment::Moment;
pub use states::States;
pub use statuses::{Measured, Statuses};

use node_agent_ebpf::{COMM_BYTES, Key, Totals};
use std::collections::HashMap;

/// Most keys of one sample; what comes beyond goes to overflow. A table of 8,192 places, of which 7 in 8 may be taken, is
/// 2.7 MB, and gone after the sample.
pub const MAX_KEYS: usize = 7_168;

/// What the tasks of one key did since the last sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delta {
    /// Sums of what is new, and the peak so far.
    pub totals: Totals,
    /// Resident memory of its processes now, in bytes.
    pub resident_bytes: u64,
    /// Processes alive now.
    pub live_processes: u32,
    /// Threads alive now.
    pub live_threads: u32,
    /// Their states.
    pub states: States,
    /// When any of its tasks ran last, in nanoseconds since boot; 0 if that is not known.
    pub last_ran_boottime_ns: u64,
    /// Since when that of its tasks sleeps by a timer which has slept so for the longest time, in nanoseconds since boot; `None` if none does.
    pub timed_since_boottime_ns: Option<u64>,
}

/// The earlier of two moments, of those that there are.
pub(crate) fn earlier(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.into_iter().chain(other).min()
}

/// One sample of the tasks' counters.
#[derive(Debug, Default)]
pub struct Deltas {
    /// By key; its `buffer` is 0.
    pub by_key: HashMap<Key, Delta>,
    /// What found no key, user tasks first, then kernel tasks.
    pub overflow: [Delta; 2],
    /// How processes ended since the last sample, other than with exit code 0: whose, wait(2)'s status, how many.
    pub failures: Vec<(Key, u32, u64)>,
    /// Paths of the cgroups by id, where the reader has learnt them by itself; else they are looked up by inode.
    pub paths: Option<HashMap<u64, String>>,
    /// What was lost since the programs were loaded, by name.
    pub drops: Vec<(&'static str, u64)>,
    /// Keys that found no place among the deltas of this sample.
    pub overflowed: u64,
    /// What the programs inside the kernel cost since they were loaded: nanoseconds, and runs.
    pub programs: Option<(u64, u64)>,
}

impl Deltas {
    /// The delta of a key, empty at first; that of the overflow once there are [`MAX_KEYS`].
    pub(crate) fn delta(&mut self, key: Key) -> &mut Delta {
        let key = Key { buffer: 0, ..key };
        if self.by_key.len() >= MAX_KEYS && !self.by_key.contains_key(&key) {
            self.overflowed = self.overflowed.saturating_add(1);
            return &mut self.overflow[usize::from(key.kernel_thread & 1)];
        }
        self.by_key.entry(key).or_default()
    }
}

/// Adds sums and keeps the higher peak.
pub fn add_totals(to: &mut Totals, what: &Totals) {
    for (to, what) in to.counters.iter_mut().zip(what.counters) {
        *to = to.saturating_add(what);
    }
    to.peak_resident_bytes = to.peak_resident_bytes.max(what.peak_resident_bytes);
    to.forks = to.forks.saturating_add(what.forks);
    to.execs = to.execs.saturating_add(what.execs);
    to.exits = to.exits.saturating_add(what.exits);
    to.oom_kills = to.oom_kills.saturating_add(what.oom_kills);
    to.direct_reclaims = to.direct_reclaims.saturating_add(what.direct_reclaims);
}

/// A zero-padded kernel name as text. Names are bytes of the program's choice: what is no UTF-8 and what is hidden is
/// escaped, so that a name can do no harm in a terminal.
#[must_use]
pub fn comm_text(comm: &[u8; COMM_BYTES]) -> String {
    let end = comm.iter().position(|byte| *byte == 0).unwrap_or(COMM_BYTES);
    heartbeat::text::visible_bytes(&comm[..end])
}

/// Text as a zero-padded kernel name, cut at 15 bytes.
#[must_use]
pub fn comm_bytes(text: &[u8]) -> [u8; COMM_BYTES] {
    let mut comm = [0; COMM_BYTES];
    let len = text.len().min(COMM_BYTES - 1);
    comm[..len].copy_from_slice(&text[..len]);
    comm
}
