//! The durable queue between measuring and sending: one file for each heartbeat that waits.
//!
//! Design constraints, as numbers:
//! - One heartbeat per 30 s and host, 0.3 to 50 KiB each; so one file created, renamed and unlinked per 30 s. A file takes at
//!   least one disk block; sizes are counted in blocks of 4096 bytes, so the default bound of 64 MiB holds 16,384 small
//!   heartbeats: 5 days and 16 hours.
//! - Opening reads names and sizes only, no contents. The index in memory takes about 60 bytes per waiting heartbeat.
//! - `kill -9` at any moment loses nothing that [`Spool::push`] returned for, and no sequence is assigned twice within a boot: the
//!   name of the newest file *is* the last assigned sequence, and once it is acknowledged the file stays, renamed.
//! - Nothing is `fsync`ed. A power cut can lose or damage what the kernel had not written back yet, by default up to 30 s
//!   (`vm.dirty_expire_centisecs`), that is one or two heartbeats. An `fsync` per heartbeat would save those two and cost
//!   every host two forced disk writes per interval for ever; and a power cut ends the boot, so no sequence can be reused.
//! - Each record has a checksum and a file of its own, so damage costs the one heartbeat that it hit. A damaged record is set
//!   aside (of the newest 16 the first 256 KiB are kept for inspection: 4 MiB), counted and skipped.
//! - Beyond the bounds (bytes, age) the oldest is dropped first and counted.
//! - The newest comes out first. A verdict needs unbroken observation that reaches back from now: what was measured last tells
//!   most, each older batch makes that window longer, and what a full spool drops first is what is needed least.
//! - A disk that is full or read-only: at most 64 heartbeats or 2 MiB stay in memory, the capability `spool` says so, and a log
//!   line, once an hour. They go to disk when it takes them again. Their sequences are remembered by empty files if even those can be
//!   made; if not, a restart in the same boot gives the sequences away again, and the sweeper keeps the first ones.
//!
//! It refuses to know how heartbeats are sent. All calls block for a few file operations; none waits for another host.

mod batch;
mod disk;
mod record;

pub use batch::Batch;
pub use record::{Damage, read as read_record};

use disk::{BootDir, Disk};
use heartbeat::{BootId, NodeId, wire};
use prost::Message as _;
use std::{
    collections::BTreeMap,
    io,
    path::Path,
    time::{Duration, Instant, SystemTime},
};

/// Most heartbeats that are kept in memory while the disk takes none.
pub const MAX_IN_MEMORY: usize = 64;
/// Most bytes of them.
pub const MAX_IN_MEMORY_BYTES: usize = 2 * 1024 * 1024;
const SAY_AGAIN: Duration = Duration::from_secs(3600);
/// No sequence comes near: one heartbeat per 100 ms reaches it in 14 billion years. It leaves room to count on.
const MAX_SEQUENCE: u64 = 1 << 62;

/// How much may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes on disk, counted in blocks of 4096.
    pub max_bytes: u64,
    /// Age of a heartbeat, by the wall clock.
    pub max_age: Duration,
}

/// What became of heartbeats since this spool was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Heartbeats that wait.
    pub waiting: u64,
    /// Their bytes on disk, in whole blocks.
    pub waiting_bytes: u64,
    /// Dropped because the spool, or the memory behind a disk that takes none, was full.
    pub dropped_full: u64,
    /// Dropped because they were too old.
    pub dropped_old: u64,
    /// Found damaged or gone.
    pub damaged: u64,
    /// Refused by the sweeper for good.
    pub rejected: u64,
    /// Not kept, because the node has not joined yet and no sequence is known.
    pub unjoined: u64,
}

struct Waiting {
    bytes: u64,
    written: SystemTime,
    /// The record itself, if the disk did not take it.
    in_memory: Option<Vec<u8>>,
}

struct Boot {
    id: BootId,
    dir: BootDir,
    waiting: BTreeMap<u64, Waiting>,
}

/// The queue. Its directory must be held by this process alone: see [`crate::state::StateDir`].
pub struct Spool {
    disk: Disk,
    limits: Limits,
    /// Older boots first; the present boot is the last.
    boots: Vec<Boot>,
    /// Highest sequence of the present boot that was given away; unknown before the first [`Spool::raise_minimum`] of a boot.
    last_sequence: Option<u64>,
    stats: Stats,
    /// Why the disk takes no heartbeats, while it does not.
    trouble: Option<String>,
    /// When the log said so last.
    said_at: Option<Instant>,
}

impl Spool {
    /// Opens or makes the spool of this node under `directory`; what another node left there (a copied disk image) is removed.
    ///
    /// # Errors
    /// If the directory cannot be made or listed.
    pub fn open(directory: &Path, node: &NodeId, boot: BootId, limits: Limits) -> io::Result<Self> {
        let disk = Disk::open(directory, node)?;
        let mut boots = Vec::new();
        let mut last_sequence = None;
        let found = disk.boots()?;
        let next_order = found.last().map_or(1, |dir| dir.order.saturating_add(1));
        let (mut present, older): (Vec<_>, Vec<_>) = found.into_iter().partition(|dir| dir.boot == boot);
        let present = present.pop().unwrap_or_else(|| disk.boot_dir(next_order, boot));
        for mut dir in older.into_iter().chain([present]) {
            let listed = dir.list()?;
            if dir.boot == boot {
                last_sequence = listed.last_sequence;
            } else {
                dir.remove_marker();
            }
            let waiting = listed.records.into_iter().map(|record| {
                (record.sequence, Waiting { bytes: record.bytes, written: record.written, in_memory: None })
            });
            boots.push(Boot { id: dir.boot, dir, waiting: waiting.collect() });
        }
        let mut spool =
            Self { disk, limits, boots, last_sequence, stats: Stats::default(), trouble: None, said_at: None };
        spool.enforce_limits(SystemTime::now());
        Ok(spool)
    }

    /// Highest sequence of the present boot that was given away, if that is known.
    #[must_use]
    pub fn last_sequence(&self) -> Option<u64> {
        self.last_sequence
    }

    /// Gives away no sequence up to `sequence` any more: they are known to be taken.
    ///
    /// # Errors
    /// If the disk does not take the note; the minimum holds in memory all the same.
    pub fn raise_minimum(&mut self, sequence: u64) -> io::Result<()> {
        if self.last_sequence.is_some_and(|last| last >= sequence) || sequence > MAX_SEQUENCE {
            return Ok(());
        }
        self.last_sequence = Some(sequence);
        self.present_mut().dir.mark(sequence)
    }

    /// Gives the heartbeat its sequence and keeps it until it is acknowledged. `None` if the last sequence is not known yet:
    /// then nothing is kept, and that is counted.
    pub fn push(&mut self, mut heartbeat: wire::Heartbeat) -> Option<u64> {
        let Some(last) = self.last_sequence else {
            self.stats.unjoined += 1;
            return None;
        };
        let sequence = last.saturating_add(1);
        heartbeat.sequence = sequence;
        let record = record::encode(&heartbeat.encode_to_vec());
        let bytes = disk::in_blocks(u64::try_from(record.len()).unwrap_or(u64::MAX));
        let written = SystemTime::now();
        let kept = self.write_what_is_in_memory().and_then(|()| self.present_mut().dir.write(sequence, &record));
        let in_memory = match kept {
            Ok(()) => None,
            Err(_) => {
                // A file without contents may still have room; else the sequence is remembered by this process alone.
                let _ = self.present_mut().dir.mark(sequence);
                Some(record)
            }
        };
        self.note_disk(kept);
        self.present_mut().waiting.insert(sequence, Waiting { bytes, written, in_memory });
        self.last_sequence = Some(sequence);
        self.enforce_limits(written);
        Some(sequence)
    }

    /// Forgets what the sweeper has stored: these heartbeats, and everything of their boot up to a sequence. One beyond those
    /// given away raises the minimum.
    pub fn acknowledge(&mut self, boot: BootId, sequences: &[u64], contiguous_sequence: u64) {
        let Some(at) = self.boots.iter().position(|known| known.id == boot) else { return };
        let settled = self.boots[at].waiting.range(..=contiguous_sequence).map(|(sequence, _)| *sequence);
        for sequence in settled.chain(sequences.iter().copied()).collect::<Vec<_>>() {
            self.forget(at, sequence);
        }
        if self.is_present(at)
            && let Err(error) = self.raise_minimum(contiguous_sequence)
        {
            tracing::debug!(%error, "the sequence minimum is kept in memory only");
        }
        self.drop_empty_boots();
    }

    /// Takes a heartbeat out of the queue that the sweeper will never accept; it is kept aside for inspection.
    pub fn reject(&mut self, boot: BootId, sequence: u64) {
        let Some(at) = self.boots.iter().position(|known| known.id == boot) else { return };
        if self.boots[at].waiting.contains_key(&sequence) {
            self.stats.rejected += 1;
            self.set_aside(at, sequence, "rejected");
            self.drop_empty_boots();
        }
    }

    /// Why the disk takes no heartbeats; `None` while it does.
    #[must_use]
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// What waits and what was lost.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let waiting = self.boots.iter().flat_map(|boot| boot.waiting.values());
        let (count, bytes) = waiting.fold((0, 0), |(count, bytes), waiting| (count + 1, bytes + waiting.bytes));
        Stats { waiting: count, waiting_bytes: bytes, ..self.stats }
    }

    fn present(&self) -> &Boot {
        &self.boots[self.boots.len() - 1]
    }

    fn present_mut(&mut self) -> &mut Boot {
        let last = self.boots.len() - 1;
        &mut self.boots[last]
    }

    fn is_present(&self, at: usize) -> bool {
        at + 1 == self.boots.len()
    }

    fn drop_empty_boots(&mut self) {
        let last = self.boots.len() - 1;
        let mut at = 0;
        self.boots.retain_mut(|boot| {
            let keep = at == last || !boot.waiting.is_empty();
            at += 1;
            if !keep {
                boot.dir.remove();
            }
            keep
        });
    }

    /// Whether this record's name is what remembers the last assigned sequence.
    fn is_the_mark(&self, at: usize, sequence: u64) -> bool {
        self.is_present(at) && self.last_sequence == Some(sequence)
    }

    fn forget(&mut self, at: usize, sequence: u64) {
        let mark = self.is_the_mark(at, sequence);
        let Some(waiting) = self.boots[at].waiting.remove(&sequence) else { return };
        let dir = &mut self.boots[at].dir;
        let done = match (mark, waiting.in_memory) {
            (true, None) => dir.rename_to_mark(sequence),
            (true, Some(_)) => dir.mark(sequence),
            (false, None) => dir.unlink(sequence),
            (false, Some(_)) => Ok(()),
        };
        if let Err(error) = done {
            // It comes back at the next start and is sent again; the sweeper stores it once.
            tracing::debug!(%error, sequence, "a spooled heartbeat could not be removed");
        }
    }

    fn set_aside(&mut self, at: usize, sequence: u64, why: &str) {
        let mark = self.is_the_mark(at, sequence);
        let Some(waiting) = self.boots[at].waiting.remove(&sequence) else { return };
        let dir = &mut self.boots[at].dir;
        let marked = if mark { dir.mark(sequence) } else { Ok(()) };
        let moved = match waiting.in_memory {
            None => self.disk.set_aside(dir, sequence, why),
            Some(_) => Ok(()),
        };
        if let Err(error) = marked.and(moved) {
            tracing::debug!(%error, sequence, "a spooled heartbeat could not be set aside");
        }
    }

    fn enforce_limits(&mut self, now: SystemTime) {
        let mut bytes = self.stats().waiting_bytes;
        while let Some(at) = self.boots.iter().position(|boot| !boot.waiting.is_empty())
            && let Some((sequence, oldest)) = self.boots[at].waiting.first_key_value()
        {
            // A clock that was set back makes an age negative; that is not old.
            let too_old = now.duration_since(oldest.written).is_ok_and(|age| age > self.limits.max_age);
            if !too_old && bytes <= self.limits.max_bytes {
                break;
            }
            let sequence = *sequence;
            bytes -= oldest.bytes;
            if too_old {
                self.stats.dropped_old += 1;
            } else {
                self.stats.dropped_full += 1;
            }
            self.forget(at, sequence);
        }
        self.bound_memory();
        self.drop_empty_boots();
    }

    /// Sequences and sizes, oldest first.
    fn in_memory(&self) -> Vec<(u64, usize)> {
        let held = self.present().waiting.iter();
        held.filter_map(|(sequence, waiting)| Some((*sequence, waiting.in_memory.as_ref()?.len()))).collect()
    }

    fn bound_memory(&mut self) {
        let held = self.in_memory();
        let at = self.boots.len() - 1;
        let mut bytes = held.iter().map(|(_, bytes)| bytes).sum::<usize>();
        let mut count = held.len();
        for (sequence, of_it) in held {
            if count <= MAX_IN_MEMORY && (bytes <= MAX_IN_MEMORY_BYTES || count == 1) {
                break;
            }
            (count, bytes) = (count - 1, bytes - of_it);
            self.stats.dropped_full += 1;
            self.forget(at, sequence);
        }
    }

    fn write_what_is_in_memory(&mut self) -> io::Result<()> {
        for (sequence, _) in self.in_memory() {
            let boot = self.present_mut();
            if let Some(waiting) = boot.waiting.get_mut(&sequence)
                && let Some(record) = &waiting.in_memory
            {
                boot.dir.write(sequence, record)?;
                waiting.in_memory = None;
            }
        }
        Ok(())
    }

    /// Each heartbeat that is sent gives a full disk room for another one: what changes every minute is said once an hour.
    fn note_disk(&mut self, outcome: io::Result<()>) {
        let Err(error) = outcome else {
            if self.trouble.take().is_some() {
                tracing::debug!("the disk takes heartbeats again");
            }
            return;
        };
        if self.said_at.is_none_or(|at| at.elapsed() > SAY_AGAIN) {
            self.said_at = Some(Instant::now());
            tracing::warn!(%error, directory = %self.disk.directory().display(),
                "the disk takes no heartbeats; up to {MAX_IN_MEMORY} are kept in memory until it does");
        }
        self.trouble = Some(error.to_string());
    }
}

#[cfg(test)]
#[path = "model_tests.rs"]
mod model_tests;
#[cfg(test)]
mod ordeal;
#[cfg(test)]
#[path = "tests.rs"]
mod tests;
