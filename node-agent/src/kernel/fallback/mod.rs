//! The tasks' counters where the full programs do not run: `/proc` for the living, and beside it what this kernel and these rights
//! allow: the kernel's records of exited tasks ([`taskstats`]), tracepoints for forks (`process_events`).
//!
//! Each is tried by itself and named by a capability of its own. Without either of them, forks, program starts and exits are not counted
//! at all rather than too low, and a process that starts and exits between two samples leaves no trace but in the host's counters.

mod exited;
mod part;
mod proc;
mod process_events;
mod record;
mod status;
mod tally;
pub mod taskstats;

use crate::{
    coverage::Status,
    model::Deltas,
    procfs::cgroups::{Cgroups, Mounts},
};
use heartbeat::wire;
use node_agent_ebpf::{hierarchy, process_events::Counts};
use part::Part;
use proc::Process;
use process_events::ProcessEvents;
use std::{collections::HashMap, io};
use tally::{DeltasBuilder, Rules, add_counts, place_in};
use taskstats::Taskstats;

/// What is to be tried beside `/proc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Raw tracepoints.
    pub process_events: bool,
    /// The kernel's records of exited tasks.
    pub taskstats: bool,
}

/// The reader.
#[derive(Debug)]
pub struct Fallback {
    process_events: Part<ProcessEvents>,
    taskstats: Part<Taskstats>,
    /// Who lived at the last sample, where no receiver keeps that.
    living: HashMap<u32, Process>,
    has_read: bool,
    /// Why storage and calls of every process could not be read at the last sample.
    hides_io: Option<(Status, &'static str)>,
    process_events_without_key: u64,
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
            process_events: Part::new(
                wanted.process_events,
                || ProcessEvents::start(only_v2),
                |error| (error.status(), error.in_words()),
            ),
            taskstats: Part::new(wanted.taskstats, Taskstats::start, |error| (error.status(), error.to_string())),
            living: HashMap::new(),
            has_read: false,
            hides_io: Some((Status::Broken, "nothing has been read yet")),
            process_events_without_key: 0,
            must_start_again: false,
            cgroups: Cgroups::new(mounts),
        }
    }

    /// Why a part that was asked for by name does not work.
    #[must_use]
    pub fn refusal(&self, wanted: Wanted) -> Option<&str> {
        let process_events = self.process_events.absence().filter(|_| wanted.process_events);
        process_events.or_else(|| self.taskstats.absence().filter(|_| wanted.taskstats)).map(|(_, reason)| reason)
    }

    /// Where the counters come from.
    #[must_use]
    pub fn source(&self) -> wire::Source {
        match (self.process_events.works(), self.taskstats.works()) {
            (Some(_), Some(_)) => wire::Source::TracepointsTaskstats,
            (Some(_), None) => wire::Source::Tracepoints,
            (None, Some(_)) => wire::Source::Taskstats,
            (None, None) => wire::Source::Proc,
        }
    }

    /// Whether the parts can be read with the rights that are left.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        self.process_events.works().is_none_or(ProcessEvents::is_usable)
    }

    /// Detaches and closes everything: nothing is counted until [`Fallback::resume`].
    pub fn pause(&mut self) {
        if let Part::Works(process_events) = &mut self.process_events {
            process_events.detach();
        }
        if self.taskstats.works().is_some() {
            let reason = "the kernel's records were closed, and to open them again takes a right that is dropped";
            self.taskstats = Part::Refused(Status::Denied, reason.to_owned());
            self.must_start_again = true;
        }
        self.living.clear();
        self.has_read = false;
    }

    /// Counts again; the next sample is the baseline.
    ///
    /// # Errors
    /// If that takes a right that was dropped, or the kernel refuses.
    pub fn resume(&mut self) -> io::Result<()> {
        if self.must_start_again {
            return Err(io::Error::other("opening the kernel's records again takes a right that is dropped"));
        }
        match &mut self.process_events {
            Part::Works(process_events) => process_events.attach().map_err(io::Error::other),
            Part::Refused(..) => Ok(()),
        }
    }

    /// What happened since the last sample, and who lives now. The first sample finds no news: it is the baseline.
    ///
    /// # Errors
    /// If `/proc` cannot be listed, or the kernel refuses to hand out what it counted.
    pub fn read(&mut self) -> io::Result<Deltas> {
        let counted = match &mut self.process_events {
            Part::Works(process_events) => process_events.take().map_err(io::Error::other)?,
            Part::Refused(..) => (Vec::new(), Counts::default()),
        };
        let counted = if self.has_read { counted } else { (Vec::new(), Counts::default()) };
        self.cgroups.refresh(
            &counted.0.iter().map(|(key, _)| (hierarchy::V2, key.cgroup_id)).filter(|(_, id)| *id > 1).collect(),
            |_, _| None,
        );
        let counts_here = self.process_events.works().is_none();
        let mut builder = DeltasBuilder::default();
        let (mut lost, mut without_key) = (0, 0);
        let scan;
        if let Part::Works(taskstats) = &self.taskstats {
            let mut exited = taskstats.up_to_now();
            scan = proc::scan()?;
            let rules = Rules { has_read: self.has_read, sees_ends: true, counts_here };
            builder.add_living(&scan, &exited.living, rules);
            builder.add_exited(&mut exited, rules);
            let place = |pid| place_in(&scan.processes, pid).or_else(|| exited.place_of(pid));
            builder.add_process_events(&counted.0, &self.cgroups, place);
            let living = scan.processes.iter().filter(|(_, process)| !process.has_exited);
            exited.now_living(living.map(|(pid, process)| (*pid, process.clone())).collect());
            (lost, without_key) = (exited.lost, exited.without_key);
        } else {
            scan = proc::scan()?;
            let rules = Rules { has_read: self.has_read, sees_ends: false, counts_here: false };
            builder.add_living(&scan, &self.living, rules);
            let place = |pid| place_in(&scan.processes, pid).or_else(|| place_in(&self.living, pid));
            builder.add_process_events(&counted.0, &self.cgroups, place);
        }
        let overflow = counted.1;
        self.process_events_without_key += overflow.forks + overflow.execs + overflow.exits;
        add_counts(&mut builder.deltas.overflow[0].totals, overflow);
        self.hides_io = scan.hides_io;
        if self.taskstats.works().is_none() {
            self.living = scan.processes;
        }
        self.has_read = true;
        let drops = [
            ("lost_exit_records", lost),
            ("detail_exits_without_key", without_key),
            ("detail_process_events_without_key", self.process_events_without_key),
        ];
        Ok(builder.deltas(drops.to_vec()))
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
