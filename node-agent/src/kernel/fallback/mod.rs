//! The tasks' books where the full programs do not run: `/proc` for the living, and beside it what this kernel and these rights
//! allow: the kernel's records of the dead ([`taskstats`]), tracepoints for births (`births`).
//!
//! Each is tried by itself and named by a probe of its own. Without either of them, births, program starts and deaths are not counted
//! at all rather than too low, and a process that lives and dies between two readings leaves no trace but in the host's books.

mod births;
mod dead;
mod part;
mod proc;
mod record;
mod status;
mod tally;
pub mod taskstats;

use crate::{
    coverage::Status,
    model::Ledger,
    procfs::cgroups::{Cgroups, Mounts},
};
use births::Births;
use heartbeat::wire;
use node_agent_ebpf::{births::Counts, hierarchy};
use part::Part;
use proc::Process;
use std::{collections::HashMap, io};
use tally::{Books, Rules, add_counts, place_in};
use taskstats::Taskstats;

/// What is to be tried beside `/proc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Raw tracepoints.
    pub births: bool,
    /// The kernel's records of the dead.
    pub taskstats: bool,
}

/// The reader.
#[derive(Debug)]
pub struct Fallback {
    births: Part<Births>,
    taskstats: Part<Taskstats>,
    /// Who lived at the last reading, where no receiver keeps that.
    living: HashMap<u32, Process>,
    has_read: bool,
    /// Why storage and calls of every process could not be read at the last reading.
    hides_io: Option<(Status, &'static str)>,
    births_without_key: u64,
    /// Something was closed that only a new process can open.
    must_start_again: bool,
    cgroups: Cgroups,
}

impl Fallback {
    /// Starts what is wanted and possible.
    #[must_use]
    pub fn start(wanted: Wanted) -> Self {
        let mounts = Mounts::read();
        let only_v2 = mounts.is_only_v2();
        Self {
            births: Part::new(wanted.births, || Births::start(only_v2), |error| (error.status(), error.in_words())),
            taskstats: Part::new(wanted.taskstats, Taskstats::start, |error| (error.status(), error.to_string())),
            living: HashMap::new(),
            has_read: false,
            hides_io: Some((Status::Broken, "nothing has been read yet")),
            births_without_key: 0,
            must_start_again: false,
            cgroups: Cgroups::new(mounts),
        }
    }

    /// Why a part that was asked for by name does not work.
    #[must_use]
    pub fn refusal(&self, wanted: Wanted) -> Option<&str> {
        let births = self.births.absence().filter(|_| wanted.births);
        births.or_else(|| self.taskstats.absence().filter(|_| wanted.taskstats)).map(|(_, reason)| reason)
    }

    /// Where the books come from.
    #[must_use]
    pub fn collector(&self) -> wire::Collector {
        match (self.births.works(), self.taskstats.works()) {
            (Some(_), Some(_)) => wire::Collector::TracepointsTaskstats,
            (Some(_), None) => wire::Collector::Tracepoints,
            (None, Some(_)) => wire::Collector::Taskstats,
            (None, None) => wire::Collector::Proc,
        }
    }

    /// Whether the parts can be read with the rights that are left.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        self.births.works().is_none_or(Births::is_usable)
    }

    /// Detaches and closes everything: nothing is counted until [`Fallback::resume`].
    pub fn pause(&mut self) {
        if let Part::Works(births) = &mut self.births {
            births.detach();
        }
        if self.taskstats.works().is_some() {
            let reason = "the kernel's records were closed, and to open them again takes a right that is given up";
            self.taskstats = Part::Refused(Status::Denied, reason.to_owned());
            self.must_start_again = true;
        }
        self.living.clear();
        self.has_read = false;
    }

    /// Counts again; the next reading is the baseline.
    ///
    /// # Errors
    /// If that takes a right that was given up, or the kernel refuses.
    pub fn resume(&mut self) -> io::Result<()> {
        if self.must_start_again {
            return Err(io::Error::other("opening the kernel's records again takes a right that is given up"));
        }
        match &mut self.births {
            Part::Works(births) => births.attach().map_err(io::Error::other),
            Part::Refused(..) => Ok(()),
        }
    }

    /// What happened since the last reading, and who lives now. The first reading finds no news: it is the baseline.
    ///
    /// # Errors
    /// If `/proc` cannot be listed, or the kernel refuses to hand out what it counted.
    pub fn read(&mut self) -> io::Result<Ledger> {
        let counted = match &mut self.births {
            Part::Works(births) => births.take().map_err(io::Error::other)?,
            Part::Refused(..) => (Vec::new(), Counts::default()),
        };
        let counted = if self.has_read { counted } else { (Vec::new(), Counts::default()) };
        self.cgroups.refresh(
            &counted.0.iter().map(|(birth, _)| (hierarchy::V2, birth.cgroup_id)).filter(|(_, id)| *id > 1).collect(),
            |_, _| None,
        );
        let counts_here = self.births.works().is_none();
        let mut books = Books::default();
        let (mut lost, mut without_key) = (0, 0);
        let scan;
        if let Part::Works(taskstats) = &self.taskstats {
            let mut dead = taskstats.up_to_now();
            scan = proc::scan()?;
            let rules = Rules { has_read: self.has_read, sees_ends: true, counts_here };
            books.book_living(&scan, &dead.living, rules);
            books.book_dead(&mut dead, rules);
            let place = |pid| place_in(&scan.processes, pid).or_else(|| dead.place_of(pid));
            books.book_births(&counted.0, &self.cgroups, place);
            let living = scan.processes.iter().filter(|(_, process)| !process.is_dead);
            dead.now_living(living.map(|(pid, process)| (*pid, process.clone())).collect());
            (lost, without_key) = (dead.lost, dead.without_key);
        } else {
            scan = proc::scan()?;
            let rules = Rules { has_read: self.has_read, sees_ends: false, counts_here: false };
            books.book_living(&scan, &self.living, rules);
            let place = |pid| place_in(&scan.processes, pid).or_else(|| place_in(&self.living, pid));
            books.book_births(&counted.0, &self.cgroups, place);
        }
        let rest = counted.1;
        self.births_without_key += rest.forks + rest.execs + rest.exits;
        add_counts(&mut books.ledger.rest[0].totals, rest);
        self.hides_io = scan.hides_io;
        if self.taskstats.works().is_none() {
            self.living = scan.processes;
        }
        self.has_read = true;
        let drops = [
            ("lost_exit_records", lost),
            ("detail_dead_without_key", without_key),
            ("detail_births_without_key", self.births_without_key),
        ];
        Ok(books.ledger(drops.to_vec()))
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
