//! What runs inside the kernel, seen from outside: its offsets, its life, its ledger; and `/proc` where that is refused.
//!
//! Both sides answer the same question with the same data, [`Ledger`]: what did the tasks of each key do since the last
//! reading, and who lives now.

pub mod fallback;
pub mod object;
pub mod offsets;

use node_agent_ebpf::{COMM_BYTES, Key, Totals};

/// What the tasks of one key did since the last reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Sums of what is new, and the peak so far.
    pub totals: Totals,
    /// Processes alive now.
    pub live_processes: u32,
    /// Threads alive now.
    pub live_threads: u32,
}

/// One reading of the tasks' books.
#[derive(Debug, Default)]
pub struct Ledger {
    /// By key; its `buffer` is 0.
    pub shares: std::collections::HashMap<Key, Share>,
    /// What found no key, user tasks first, then kernel tasks.
    pub rest: [Totals; 2],
    /// Paths of the cgroups by id, where the reader has learnt them by itself; else they are looked up by inode.
    pub paths: Option<std::collections::HashMap<u64, String>>,
    /// What was lost since the programs were loaded, by name.
    pub drops: Vec<(&'static str, u64)>,
}

impl Ledger {
    /// The share of a key, empty at first.
    pub(crate) fn share(&mut self, key: Key) -> &mut Share {
        self.shares.entry(Key { buffer: 0, ..key }).or_default()
    }
}

/// Adds sums and keeps the higher peak.
pub fn add_totals(to: &mut Totals, what: &Totals) {
    to.cpu_ns = to.cpu_ns.saturating_add(what.cpu_ns);
    to.disk_read_bytes = to.disk_read_bytes.saturating_add(what.disk_read_bytes);
    to.disk_written_bytes = to.disk_written_bytes.saturating_add(what.disk_written_bytes);
    to.peak_resident_bytes = to.peak_resident_bytes.max(what.peak_resident_bytes);
    to.forks = to.forks.saturating_add(what.forks);
    to.execs = to.execs.saturating_add(what.execs);
    to.exits = to.exits.saturating_add(what.exits);
    to.oom_kills = to.oom_kills.saturating_add(what.oom_kills);
}

/// A zero-padded kernel name as text. Names are bytes of the program's choice: what is no UTF-8 is replaced, and
/// control characters are escaped, so that a name can do no harm in a terminal.
#[must_use]
pub fn comm_text(comm: &[u8; COMM_BYTES]) -> String {
    let end = comm.iter().position(|byte| *byte == 0).unwrap_or(COMM_BYTES);
    String::from_utf8_lossy(&comm[..end])
        .chars()
        .flat_map(|c| if c.is_control() { c.escape_default().collect::<Vec<_>>() } else { vec![c] })
        .collect()
}

/// Text as a zero-padded kernel name, cut at 15 bytes.
#[must_use]
pub fn comm_bytes(text: &[u8]) -> [u8; COMM_BYTES] {
    let mut comm = [0; COMM_BYTES];
    let len = text.len().min(COMM_BYTES - 1);
    comm[..len].copy_from_slice(&text[..len]);
    comm
}
