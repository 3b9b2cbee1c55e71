//! What became of the processes that exited since the last sample. ◇ Plain data; the records come from [`super::taskstats`].
//!
//! A process that was seen alive adds what it used since then. One that nobody saw counts as a fork as well and
//! belongs where its parent lives: the kernel's record names the parent, not the cgroup. If that one is gone, too, nobody knows
//! where it belonged: its counters go to the overflow row, as work. Tables are bounded; what finds no place goes to overflow.

use super::{
    proc::{Place, Process, Sums, Whose},
    record::{Record, best_cpu_ns},
};
use crate::model::add_totals;
use node_agent_ebpf::{Executable, Totals};
use std::collections::HashMap;

/// Distinct keys of exited processes, at most: 8,192 × about 250 bytes are 2 MB.
const MAX_KEYS: usize = 8_192;
/// Distinct pairs of key and way to end, at most.
const MAX_FAILURES: usize = 2_048;
/// Processes that live and have lost threads, at most.
const MAX_SPLIT: usize = 8_192;
/// Parents whose place is remembered, at most.
const MAX_PLACES: usize = 4_096;
/// The parent of all kernel threads.
const KTHREADD: u32 = 2;
/// Whoever lost its parent hangs below init and says nothing about where it belonged.
const INIT: u32 = 1;

/// Whose processes ended how, other than with exit code 0, and how many.
type Failures = HashMap<(Whose, u32), u64>;

/// The counters of exited processes.
#[derive(Debug, Default)]
pub(super) struct Exited {
    /// Who lived at the last sample.
    pub living: HashMap<u32, Process>,
    /// Who was gone at the last sample while the record had not come yet.
    pub leaving: HashMap<u32, Process>,
    by_key: HashMap<Whose, Totals>,
    failures: Failures,
    /// User tasks first, then kernel tasks.
    overflow: [Totals; 2],
    /// What threads used that ended before their process.
    split: HashMap<u32, Sums>,
    places: HashMap<u32, Place>,
    /// Records that the kernel could not deliver, or that nobody understands.
    pub lost: u64,
    /// Exits whose key found no place.
    pub without_key: u64,
}

impl Exited {
    /// Counts the end of a task. `whole_ns` is the CPU time of all threads, where the kernel gives it; `lookup` finds the place of a
    /// process that still lives.
    pub(super) fn add(&mut self, record: &Record, whole_ns: Option<u64>, lookup: impl Fn(u32) -> Option<Place>) {
        if !record.is_last {
            if self.split.len() < MAX_SPLIT || self.split.contains_key(&record.process) {
                let sums = self.split.entry(record.process).or_default();
                *sums = sums.plus(record.sums);
            } else {
                self.lost += 1;
            }
            return;
        }
        let threads = self.split.remove(&record.process).unwrap_or_default();
        let all = threads.plus(record.sums);
        let scheduled_ns = whole_ns.unwrap_or(record.scheduled_ns);
        let known = self.leaving.remove(&record.process).or_else(|| self.living.remove(&record.process));
        let (whose, sums, forks) = match known {
            Some(process) => {
                // Its children may end after it.
                // It may have started another program since, which nobody has looked at.
                let executable = Executable::default();
                self.remember(record.process, Place { path: process.whose.path.clone(), executable });
                let whose = Whose { comm: record.comm, uid: record.uid, executable, ..process.whose };
                let sums = Sums { cpu_ns: scheduled_ns.max(process.sums.cpu_ns), ..all }.since(process.sums);
                (whose, sums, 0)
            }
            None => {
                let whose = self.stranger(record, lookup);
                (whose, Sums { cpu_ns: best_cpu_ns(scheduled_ns, all.cpu_ns), ..all }, 1)
            }
        };
        if record.wait_status != 0 {
            if self.failures.len() < MAX_FAILURES || self.failures.contains_key(&(whose.clone(), record.wait_status)) {
                *self.failures.entry((whose.clone(), record.wait_status)).or_default() += 1;
            } else {
                self.without_key += 1;
            }
        }
        let to = if self.by_key.contains_key(&whose) || self.by_key.len() < MAX_KEYS {
            self.by_key.entry(whose).or_default()
        } else {
            self.without_key += 1;
            &mut self.overflow[usize::from(whose.is_kernel_thread)]
        };
        let peak_resident_bytes = record.peak_resident_bytes;
        add_totals(to, &Totals { peak_resident_bytes, forks, exits: 1, ..sums.totals() });
    }

    /// Whose a process was that nobody saw alive.
    fn stranger(&mut self, record: &Record, lookup: impl Fn(u32) -> Option<Place>) -> Whose {
        let is_kernel_thread = record.parent == KTHREADD;
        let path = match record.parent {
            INIT => None,
            parent => self.place(parent, lookup).and_then(|place| place.path),
        };
        // What it executed nobody has seen.
        let executable = Executable::default();
        // Its own children may end after it.
        self.remember(record.process, Place { path: path.clone(), executable });
        Whose { path, uid: record.uid, comm: record.comm, executable, is_kernel_thread, is_own: false }
    }

    /// Where a process belonged that lived at the last sample or ended since.
    pub(super) fn place_of(&self, process: u32) -> Option<Place> {
        let living = self.living.get(&process).or_else(|| self.leaving.get(&process));
        living
            .map(|process| Place { path: process.whose.path.clone(), executable: process.whose.executable })
            .or_else(|| self.places.get(&process).cloned())
    }

    fn place(&mut self, process: u32, lookup: impl Fn(u32) -> Option<Place>) -> Option<Place> {
        if let Some(place) = self.place_of(process) {
            return Some(place);
        }
        let place = lookup(process)?;
        self.remember(process, place.clone());
        Some(place)
    }

    fn remember(&mut self, process: u32, place: Place) {
        if self.places.len() >= MAX_PLACES {
            self.places.clear();
        }
        self.places.insert(process, place);
    }

    /// Who lives now. Who is gone without a record is waited for until the next sample; then the record counts as lost.
    pub(super) fn now_living(&mut self, processes: HashMap<u32, Process>) {
        self.lost += self.leaving.len() as u64;
        let before = std::mem::replace(&mut self.living, processes);
        let living = &self.living;
        self.leaving = before
            .into_iter()
            .filter(|(pid, was)| living.get(pid).is_none_or(|is| is.start_ticks != was.start_ticks))
            .collect();
        self.split.retain(|pid, _| living.contains_key(pid) || self.leaving.contains_key(pid));
        self.places.clear();
    }

    /// What was counted since the last call, and what of it found no key.
    pub(super) fn take(&mut self) -> (HashMap<Whose, Totals>, [Totals; 2], Failures) {
        (std::mem::take(&mut self.by_key), std::mem::take(&mut self.overflow), std::mem::take(&mut self.failures))
    }
}

#[cfg(test)]
#[path = "exited_tests.rs"]
mod tests;
