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
//! - Each record has a checksum. A damaged one is set aside (the newest 16 are kept for inspection), counted and skipped.
//! - Beyond the bounds (bytes, age) the oldest is dropped first and counted.
//! - A full or read-only disk: at most 64 heartbeats stay in memory, and a log line says so, once.
//!
//! It refuses to know how heartbeats are sent. All calls block for a few file operations; none waits for another host.

mod disk;
mod record;

use disk::{BootDir, Disk};
use heartbeat::{BootId, NodeId, wire};
use prost::Message as _;
use std::{
    collections::BTreeMap,
    io,
    path::Path,
    time::{Duration, SystemTime},
};

/// Most heartbeats that are kept in memory while the disk takes none.
pub const MAX_IN_MEMORY: usize = 64;

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
}

/// Heartbeats that can go into one envelope: of one boot, with sequences that follow each other without a gap.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// The boot of all of them.
    pub boot: BootId,
    /// See [`wire::Envelope::oldest_retained_sequence`].
    pub oldest_retained_sequence: u64,
    /// In order of sequence; at least one.
    pub heartbeats: Vec<wire::Heartbeat>,
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
    /// Highest sequence of the present boot that was given away; unknown before the first [`Spool::raise_floor`] of a boot.
    last_sequence: Option<u64>,
    stats: Stats,
    disk_takes_none: bool,
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
        let next_order = found.last().map_or(1, |dir| dir.order + 1);
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
        let mut spool = Self { disk, limits, boots, last_sequence, stats: Stats::default(), disk_takes_none: false };
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
    /// If the disk does not take the note; the floor holds in memory all the same.
    pub fn raise_floor(&mut self, sequence: u64) -> io::Result<()> {
        if self.last_sequence.is_some_and(|last| last >= sequence) {
            return Ok(());
        }
        self.last_sequence = Some(sequence);
        self.present_mut().dir.mark(sequence)
    }

    /// Gives the heartbeat its sequence and keeps it until it is acknowledged. `None` if the last sequence is not known yet:
    /// then nothing is kept.
    pub fn push(&mut self, mut heartbeat: wire::Heartbeat) -> Option<u64> {
        let sequence = self.last_sequence?.saturating_add(1);
        heartbeat.sequence = sequence;
        let record = record::encode(&heartbeat.encode_to_vec());
        let bytes = disk::in_blocks(u64::try_from(record.len()).unwrap_or(u64::MAX));
        let written = SystemTime::now();
        let kept = self.write_what_is_in_memory().and_then(|()| self.present_mut().dir.write(sequence, &record));
        let in_memory = match kept {
            Ok(()) => None,
            Err(_) => Some(record),
        };
        self.note_disk(kept);
        self.present_mut().waiting.insert(sequence, Waiting { bytes, written, in_memory });
        self.last_sequence = Some(sequence);
        self.enforce_limits(written);
        Some(sequence)
    }

    /// The oldest heartbeats that wait, at most `max_count` of them and, beyond the first, `max_bytes`.
    pub fn batch(&mut self, max_count: usize, max_bytes: usize) -> Option<Batch> {
        self.enforce_limits(SystemTime::now());
        loop {
            let at = self.boots.iter().position(|boot| !boot.waiting.is_empty())?;
            let (damaged, batch) = self.read_run(at, max_count, max_bytes);
            if let Some((sequence, why)) = damaged {
                tracing::warn!(boot = %self.boots[at].id, sequence, why, "a spooled heartbeat is damaged; it is set aside");
                self.stats.damaged += 1;
                self.set_aside(at, sequence, "damaged");
            }
            if !batch.heartbeats.is_empty() {
                return Some(batch);
            }
        }
    }

    /// Reads a run of sequences without a gap. Stops before a damaged record and names it.
    fn read_run(&self, at: usize, max_count: usize, max_bytes: usize) -> (Option<(u64, String)>, Batch) {
        let boot = &self.boots[at];
        let oldest = boot.waiting.keys().next().copied().unwrap_or_default();
        let mut batch = Batch { boot: boot.id, oldest_retained_sequence: oldest, heartbeats: Vec::new() };
        let mut total = 0;
        for ((sequence, waiting), expected) in boot.waiting.iter().zip(oldest..) {
            if *sequence != expected || batch.heartbeats.len() >= max_count {
                break;
            }
            let read = match &waiting.in_memory {
                Some(record) => Ok(record.clone()),
                None => boot.dir.read(*sequence),
            };
            let heartbeat = read.map_err(|error| error.to_string()).and_then(|record| {
                total += record.len();
                let payload = record::decode(&record).map_err(|damage| damage.to_string())?;
                wire::Heartbeat::decode(payload).map_err(|error| error.to_string())
            });
            match heartbeat {
                Ok(_) if total > max_bytes && !batch.heartbeats.is_empty() => break,
                Ok(heartbeat) if heartbeat.sequence == *sequence => batch.heartbeats.push(heartbeat),
                Ok(other) => return (Some((*sequence, format!("it holds sequence {}", other.sequence))), batch),
                Err(why) => return (Some((*sequence, why)), batch),
            }
        }
        (None, batch)
    }

    /// Forgets everything of a boot up to a sequence. A sequence beyond those given away raises the floor.
    pub fn acknowledge(&mut self, boot: BootId, contiguous_sequence: u64) {
        let Some(at) = self.boots.iter().position(|known| known.id == boot) else { return };
        let done = self.boots[at].waiting.range(..=contiguous_sequence).map(|(sequence, _)| *sequence);
        for sequence in done.collect::<Vec<_>>() {
            self.forget(at, sequence);
        }
        if self.is_present(at)
            && let Err(error) = self.raise_floor(contiguous_sequence)
        {
            tracing::debug!(%error, "the sequence floor is kept in memory only");
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

    fn in_memory(&self) -> Vec<u64> {
        let held = self.present().waiting.iter().filter(|(_, waiting)| waiting.in_memory.is_some());
        held.map(|(sequence, _)| *sequence).collect()
    }

    fn bound_memory(&mut self) {
        let held = self.in_memory();
        let at = self.boots.len() - 1;
        for sequence in held.iter().take(held.len().saturating_sub(MAX_IN_MEMORY)) {
            self.stats.dropped_full += 1;
            self.forget(at, *sequence);
        }
    }

    fn write_what_is_in_memory(&mut self) -> io::Result<()> {
        for sequence in self.in_memory() {
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

    fn note_disk(&mut self, outcome: io::Result<()>) {
        match outcome {
            Err(error) if !self.disk_takes_none => {
                self.disk_takes_none = true;
                tracing::warn!(%error, directory = %self.disk.directory().display(),
                    "the disk takes no heartbeats; up to {MAX_IN_MEMORY} are kept in memory until it does");
            }
            Ok(()) if self.disk_takes_none => {
                self.disk_takes_none = false;
                tracing::info!("the disk takes heartbeats again");
            }
            _ => {}
        }
    }
}

#[cfg(test)]
#[path = "model_tests.rs"]
mod model_tests;
#[cfg(test)]
#[path = "tests.rs"]
mod tests;
