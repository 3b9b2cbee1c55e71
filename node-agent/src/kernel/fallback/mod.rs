//! The tasks' books where the full programs do not run: `/proc` for the living, and beside it what this kernel and these rights
//! allow: the kernel's records of the dead ([`taskstats`]), tracepoints for births (`births`).
//!
//! Each is tried by itself and named by a probe of its own. Without either of them, births, program starts and deaths are not counted
//! at all rather than too low, and a process that lives and dies between two readings leaves no trace but in the host's books.

mod births;
mod dead;
mod proc;
mod record;
pub mod taskstats;

use crate::{
    coverage::Status,
    model::{Ledger, Measured, Share, Standing, add_totals},
    procfs::cgroups::{Cgroups, Mounts},
};
use births::Births;
use dead::{Dead, Place};
use heartbeat::wire;
use node_agent_ebpf::{
    Executable, Key, Totals,
    births::{Birth, Counts},
    hierarchy,
};
use proc::{Process, Scan, Whose};
use std::{collections::HashMap, io, sync::Arc};
use taskstats::Taskstats;

/// What only the programs with type information measure.
const NEEDS_TYPES: [&str; 9] = [
    "ebpf",
    "run_queue_delay",
    "switches",
    "blocked_io",
    "network",
    "direct_reclaim",
    "oom_kills",
    "task_states",
    "syscall_classes",
];

/// What is to be tried beside `/proc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Raw tracepoints.
    pub births: bool,
    /// The kernel's records of the dead.
    pub taskstats: bool,
}

/// One of them, or why there is none.
#[derive(Debug)]
enum Part<T> {
    Works(T),
    Refused(Status, String),
}

impl<T> Part<T> {
    fn new<E>(wanted: bool, start: impl FnOnce() -> Result<T, E>, words: impl Fn(&E) -> (Status, String)) -> Self {
        if !wanted {
            return Self::Refused(Status::Unsupported, "switched off by configuration".to_owned());
        }
        start().map_or_else(
            |error| {
                let (status, reason) = words(&error);
                Self::Refused(status, reason)
            },
            Self::Works,
        )
    }

    fn works(&self) -> Option<&T> {
        match self {
            Self::Works(part) => Some(part),
            Self::Refused(..) => None,
        }
    }

    fn absence(&self) -> Option<(Status, &str)> {
        match self {
            Self::Works(_) => None,
            Self::Refused(status, reason) => Some((*status, reason)),
        }
    }
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

    /// What it measures, and why not the rest; `refusal` says why it is not eBPF with type information.
    #[must_use]
    pub fn standing(&self, refusal: &(Status, String)) -> Standing {
        let (counts_births, has_records) = (self.births.works().is_some(), self.taskstats.works().is_some());
        let mut standing = Standing::of(Measured {
            tasks: true,
            cpu_split: true,
            faults: true,
            disk: self.hides_io.is_none(),
            calls: self.hides_io.is_none(),
            memory: true,
            births: counts_births || has_records,
            execs: counts_births,
            failures: has_records,
            cgroups: true,
            ..Measured::default()
        });
        for name in NEEDS_TYPES {
            standing.lacks(name, refusal.0, refusal.1.clone());
        }
        for (name, absence) in [("tracepoints", self.births.absence()), ("taskstats", self.taskstats.absence())] {
            if let Some((status, reason)) = absence {
                standing.lacks(name, status, reason);
            }
        }
        if let Some((status, reason)) = self.hides_io {
            standing.lacks("disk_io", status, reason);
            standing.lacks("call_counts", status, reason);
        }
        if has_records {
            let reason = "each is counted; its CPU time is known to a tick of the clock, about 90 % of the sum of many";
            standing.lacks("short_lives", Status::Unsupported, reason);
        } else {
            standing.lacks("short_lives", refusal.0, refusal.1.clone());
            standing.lacks("exit_status", refusal.0, refusal.1.clone());
            standing.lacks("memory_peak_of_the_dead", Status::Unsupported, "/proc forgets a process when it ends");
        }
        match (counts_births, has_records) {
            (true, _) => {}
            (false, true) => {
                let reason = "processes that begin and end are counted; that one starts another program is not";
                standing.lacks("births", Status::Unsupported, reason);
            }
            (false, false) => standing.lacks("births", refusal.0, refusal.1.clone()),
        }
        standing
    }
}

fn add_counts(to: &mut Totals, counts: Counts) {
    let Counts { forks, execs, exits } = counts;
    add_totals(to, &Totals { forks, execs, exits, ..Totals::default() });
}

/// How the living are booked.
#[derive(Clone, Copy)]
struct Rules {
    /// This is not the baseline.
    has_read: bool,
    /// Records tell who ended: what `/proc` still shows of such a process is booked already.
    sees_ends: bool,
    /// Who is new counts as a birth.
    counts_here: bool,
}

/// The reading that is being put together.
#[derive(Debug, Default)]
struct Books {
    ledger: Ledger,
    /// Numbers for cgroup paths, as [`Ledger::paths`] wants them.
    ids: HashMap<Arc<str>, u64>,
}

impl Books {
    /// Cgroup 0 has no path: that is a process of which nobody knows where it belongs.
    fn key(&mut self, whose: &Whose) -> Key {
        let next = self.ids.len() as u64 + 1;
        let cgroup_id = whose.path.clone().map_or(0, |path| *self.ids.entry(path).or_insert(next));
        Key {
            cgroup_id,
            cgroup_v1_id: 0,
            task_id: 0,
            executable: whose.executable,
            uid: whose.uid,
            hierarchy: hierarchy::ROOT,
            kernel_thread: u8::from(whose.is_kernel_thread),
            own: u8::from(whose.is_own),
            buffer: 0,
            comm: whose.comm,
        }
    }

    fn share(&mut self, whose: &Whose) -> &mut Share {
        let key = self.key(whose);
        self.ledger.share(key)
    }

    fn book_living(&mut self, scan: &Scan, before: &HashMap<u32, Process>, rules: Rules) {
        for (pid, process) in &scan.processes {
            if process.is_dead && rules.sees_ends {
                continue;
            }
            let was = before.get(pid).filter(|was| was.start_ticks == process.start_ticks);
            let news = match was {
                Some(was) => process.sums.since(was.sums),
                None if rules.has_read => process.sums,
                None => process.sums.since(process.sums),
            };
            let totals = Totals {
                peak_resident_bytes: process.peak_resident_bytes,
                forks: u64::from(rules.counts_here && rules.has_read && was.is_none()),
                ..news.totals()
            };
            let share = self.share(&process.whose);
            add_totals(&mut share.totals, &totals);
            if !process.is_dead {
                share.resident_bytes = share.resident_bytes.saturating_add(process.resident_bytes);
                share.live_processes = share.live_processes.saturating_add(1);
                share.live_threads = share.live_threads.saturating_add(process.threads);
            }
        }
    }

    fn book_dead(&mut self, dead: &mut Dead, rules: Rules) {
        let (by_key, rest, failures) = dead.take();
        // Who died before the baseline is nobody's activity.
        if !rules.has_read {
            return;
        }
        let counted = |totals: Totals| if rules.counts_here { totals } else { Totals { forks: 0, exits: 0, ..totals } };
        for (whose, totals) in by_key {
            add_totals(&mut self.share(&whose).totals, &counted(totals));
        }
        for (to, totals) in self.ledger.rest.iter_mut().zip(rest) {
            add_totals(&mut to.totals, &counted(totals));
        }
        for ((whose, wait_status), count) in failures {
            let key = self.key(&whose);
            self.ledger.failures.push((key, wait_status, count));
        }
    }

    fn book_births(&mut self, births: &[(Birth, Counts)], cgroups: &Cgroups, place: impl Fn(u32) -> Option<Place>) {
        /// The root of every tree.
        const ROOT_ID: u64 = 1;
        for (birth, counts) in births {
            let owner = place(birth.owner).unwrap_or_default();
            let path = match birth.cgroup_id {
                0 => owner.path,
                ROOT_ID => Some("/".into()),
                id => cgroups.path(hierarchy::V2, id).map(Arc::from).or(owner.path),
            };
            // Who starts a process does so itself; which program another one became nobody has seen.
            let is_itself = counts.execs == 0 && counts.exits == 0;
            let executable = if is_itself { owner.executable } else { Executable::default() };
            let whose = Whose {
                path,
                uid: birth.uid,
                comm: birth.comm,
                executable,
                is_kernel_thread: birth.kernel_thread == 1,
                is_own: birth.owner == std::process::id(),
            };
            add_counts(&mut self.share(&whose).totals, *counts);
        }
    }

    fn ledger(self, drops: Vec<(&'static str, u64)>) -> Ledger {
        let paths = self.ids.into_iter().map(|(path, id)| (id, path.to_string())).collect();
        Ledger { paths: Some(paths), drops, ..self.ledger }
    }
}

fn place_in(processes: &HashMap<u32, Process>, pid: u32) -> Option<Place> {
    let place = |process: &Process| Place { path: process.whose.path.clone(), executable: process.whose.executable };
    processes.get(&pid).map(place)
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
