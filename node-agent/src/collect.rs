//! One reading of everything that is measured: the tasks' books (from the kernel, or from `/proc`), the host's books, and
//! what could not be read.
//!
//! The collector refuses to guess: what a reading did not deliver is absent in it and has a probe that says why. Measured
//! without optimisation, with about 115 tasks: 1.4 to 1.8 ms of CPU time for a whole reading.

mod book;
mod controllers;
mod losses;
mod lost_cpu;
mod options;
mod reading;
mod whose;

pub use options::{CollectError, CollectorOptions, Mode};
pub use reading::Reading;

use crate::{
    budget::Step,
    coverage::{Probes, Status},
    host::{
        books,
        cgroup_usage::Controllers,
        cgroups::{Cgroups, Mounts},
        clock::Moment,
        facts::Facts,
        process,
        runtime::{Containers, report::Container},
        shipped::Shipped,
        signals::{Seen, Signals},
    },
    kernel::{
        Ledger, Measured, Share, Standing,
        fallback::{self, Fallback},
        loader::Wanted,
        object::{Object, ObjectError},
    },
    privileges::{self, Rights},
    rules::Keeper,
    workload::{Names, Rows, runs::Runs},
};
use heartbeat::wire;
use losses::lost_since;
use lost_cpu::LostCpu;
use rustix::thread::CapabilitySet;
use std::{
    collections::BTreeMap,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};
use whose::Known;
use workload_rules::Rules;

/// Why a probe does not measure that was given up.
const GIVEN_UP: &str = "given up to stay within the agent's own budget (self_budget)";

/// What serves nothing but these steps.
fn probes_of(given_up: &[Step]) -> Vec<&'static str> {
    let probe = |step: &Step| match step {
        Step::SyscallClasses => Some("syscall_classes"),
        Step::Network => Some("network"),
        Step::Interval => None,
    };
    given_up.iter().filter_map(probe).collect()
}

enum Books {
    Ebpf(Box<Object>),
    Proc(Box<Fallback>),
}

/// Reads everything, again and again.
pub struct Collector {
    books: Books,
    /// Why the host's processes are not seen: then nothing of them is measured, whatever the books say.
    hidden_host: Option<String>,
    /// Why it is not eBPF.
    ebpf_refusal: Option<(Status, String)>,
    cgroups: Cgroups,
    controllers: Controllers,
    facts: Facts,
    keeper: Arc<Keeper>,
    rules: Arc<Rules>,
    /// What had been lost when the rows' counters were zero.
    drops_before: Vec<(&'static str, u64)>,
    signals: Signals,
    shipped: Shipped,
    containers: Containers,
    rows: Rows,
    names: Names,
    runs: Runs,
    counters_since: Moment,
    configured_interval: Duration,
    interval: Duration,
    drops: Vec<(&'static str, u64)>,
    lost_readings: u64,
    unshared: u64,
    lost_cpu: LostCpu,
    programs: Option<(u64, u64)>,
    probes: Probes,
    keep_ptrace: bool,
    /// What became of the agent's rights.
    rights: Option<Rights>,
}

impl Collector {
    /// Loads what the mode asks for and takes the baseline: the rows' counters are zero when this returns.
    ///
    /// # Errors
    /// See [`CollectError`].
    pub fn start(options: &CollectorOptions) -> Result<Self, CollectError> {
        let wanted = Wanted { syscall_classes: options.syscall_classes };
        let hidden_host = process::hidden_host(Path::new("/proc"));
        let (mut books, ebpf_refusal) = match options.mode {
            Mode::Tracepoints | Mode::Taskstats | Mode::Proc => {
                let fallback = Fallback::start(options.mode.needs());
                if let Some(reason) = fallback.refusal(options.mode.needs()) {
                    return Err(CollectError::Part(reason.to_owned()));
                }
                (Books::Proc(Box::new(fallback)), Some((Status::Unsupported, "switched off by configuration".into())))
            }
            // The task iterator shows the reader's own pid namespace, and events name processes by numbers of the host's.
            Mode::Ebpf if let Some(reason) = &hidden_host => {
                return Err(ObjectError::Refused { reason: reason.clone(), denied: true }.into());
            }
            Mode::Auto if let Some(reason) = &hidden_host => {
                let fallback = Fallback::start(fallback::Wanted { births: false, taskstats: false });
                (Books::Proc(Box::new(fallback)), Some((Status::Denied, reason.clone())))
            }
            Mode::Ebpf => (Books::Ebpf(Box::new(Object::load(&wanted)?)), None),
            Mode::Auto => match Object::load(&wanted) {
                Ok(object) => (Books::Ebpf(Box::new(object)), None),
                Err(error) => {
                    let status = if error.is_denied() { Status::Denied } else { Status::Unsupported };
                    let fallback = Fallback::start(fallback::Wanted { births: true, taskstats: true });
                    (Books::Proc(Box::new(fallback)), Some((status, error.to_string())))
                }
            },
        };
        let signals = Signals::start(&options.gpu, hidden_host.clone());
        let baseline = match &mut books {
            Books::Ebpf(object) => object.read()?,
            Books::Proc(fallback) => fallback.read().map_err(CollectError::Proc)?,
        };
        let mounts = Mounts::read();
        let mut collector = Self {
            lost_cpu: LostCpu::new(&mounts, matches!(books, Books::Ebpf(_))),
            books,
            hidden_host,
            ebpf_refusal,
            controllers: Controllers::new(&mounts),
            cgroups: Cgroups::new(mounts),
            facts: Facts::read(signals.bus().any_gpu()),
            rules: options.rules.rules(),
            keeper: Arc::clone(&options.rules),
            drops_before: Vec::new(),
            signals,
            shipped: Shipped::read(&options.host_root),
            // After the first read, by which the programs know whose children are the agent's own.
            containers: Containers::start(&options.runtime),
            rows: Rows::default(),
            names: Names::default(),
            runs: Runs::default(),
            counters_since: Moment::now(),
            configured_interval: options.interval,
            interval: options.interval,
            drops: baseline.drops.clone(),
            lost_readings: 0,
            unshared: 0,
            programs: baseline.programs,
            probes: Probes::default(),
            keep_ptrace: options.keep_ptrace,
            rights: None,
        };
        // Who lives now has a row from the first heartbeat on, with empty sums.
        let living = baseline.shares.into_iter().filter(|(_, share)| share.live_threads > 0);
        let quiet = living.map(|(key, share)| {
            let peak_resident_bytes = share.totals.peak_resident_bytes;
            (key, Share { totals: node_agent_ebpf::Totals { peak_resident_bytes, ..Default::default() }, ..share })
        });
        collector.book(&Ledger { shares: quiet.collect(), paths: baseline.paths, ..Ledger::default() });
        collector.begin_lost_cpu();
        // It began before the programs did, which know the agent's later children by themselves.
        if let (Books::Ebpf(object), Some(helper)) = (&mut collector.books, collector.signals.helper()) {
            object.know_helper(helper)?;
        }
        let mut probes = Probes::default();
        let _ = books::read(collector.hidden_host.as_deref(), &mut probes);
        let _ = collector.look(collector.counters_since, &mut probes);
        collector.state(&mut probes, None);
        collector.probes = probes;
        tracing::info!(collector = collector.collector().as_str_name(), "measuring from here on");
        Ok(collector)
    }

    /// Where the tasks' books come from.
    #[must_use]
    pub fn collector(&self) -> wire::Collector {
        match &self.books {
            Books::Ebpf(_) => wire::Collector::Ebpf,
            Books::Proc(fallback) => fallback.collector(),
        }
    }

    /// What is measured and what is not, as of the last reading.
    #[must_use]
    pub fn probes(&self) -> Vec<wire::Probe> {
        self.probes.to_wire()
    }

    /// When the rows' counters were zero.
    #[must_use]
    pub fn counters_since(&self) -> Moment {
        self.counters_since
    }

    /// Reads everything. A part that cannot be read is absent in the reading and named by a probe.
    pub fn read(&mut self) -> Reading {
        let mut probes = Probes::default();
        let next_rules = self.keeper.rules();
        let (cpu_samples, sampled_at) = (self.lost_cpu.sample(), Instant::now());
        let ledger = match &mut self.books {
            Books::Ebpf(object) => object.read().map_err(|error| error.to_string()),
            Books::Proc(fallback) => fallback.read().map_err(|error| format!("/proc cannot be read: {error}")),
        };
        // The moment belongs to the tasks' books, which matter most; the host's follow within a millisecond.
        let taken = Moment::now();
        let failure = match ledger {
            Ok(ledger) => {
                self.drops.clone_from(&ledger.drops);
                self.unshared = self.unshared.saturating_add(ledger.unshared);
                self.programs = ledger.programs;
                self.begin(&ledger);
                self.add(&ledger);
                None
            }
            Err(failure) => {
                self.lost_readings += 1;
                Some(failure)
            }
        };
        let was_read = failure.is_none();
        let host = books::read(self.hidden_host.as_deref(), &mut probes);
        let signals = self.look(taken, &mut probes);
        if was_read {
            // May wait for ends under way: after all that belongs to this moment.
            if let Some(samples) = cpu_samples {
                self.take_up_lost_cpu(&samples, sampled_at);
            }
            self.end();
        }
        let measured = self.state(&mut probes, failure.as_deref());
        let (cgroups, schedules) = (self.cgroup_usage(&mut probes), self.schedules(&mut probes));
        self.probes = probes.clone();
        let drops = self.lost();
        let containers = self.describe();
        let reading = Reading {
            taken,
            counters_since: self.counters_since,
            interval: self.interval,
            facts: self.facts.clone(),
            host,
            signals,
            cgroups,
            schedules,
            rows: self.rows.clone(),
            names: self.names.clone(),
            containers,
            runs: self.runs.clone(),
            rules_version: self.rules.version.clone(),
            measured,
            collector: self.collector(),
            probes,
            drops: lost_since(&self.drops_before, &drops),
            programs: self.programs,
        };
        if was_read {
            self.take_over(next_rules, taken, drops);
        }
        reading
    }

    /// New rules begin with the next reading. Rows that other rules would have sorted otherwise begin anew, at this moment:
    /// none of their counters ever runs backwards, and the sweeper subtracts nothing across the change.
    fn take_over(&mut self, rules: Arc<Rules>, now: Moment, drops: Vec<(&'static str, u64)>) {
        if rules == self.rules {
            return;
        }
        let is_anew = rules.housekeeping != self.rules.housekeeping;
        if is_anew {
            self.rows.begin_anew();
            self.runs.begin_anew();
            self.counters_since = now;
            self.drops_before = drops;
        }
        self.names = Names::default();
        if let Books::Ebpf(object) = &self.books
            && let Err(error) = object.watcher().take_over(Arc::clone(&rules).into())
        {
            tracing::warn!(%error, "engines of pipelines are still known by the rules before");
        }
        self.rules = rules;
        if is_anew {
            self.begin_lost_cpu();
        }
    }

    /// What is told of the containers that rows stand for. Whom nobody knows yet is asked for, and known by the next sample.
    fn describe(&mut self) -> BTreeMap<String, Container> {
        let mut described = BTreeMap::new();
        for (_, key, _) in self.rows.iter() {
            let name = self.names.of(key).and_then(|meaning| meaning.name.as_ref());
            let id = name.and_then(|name| name.id.rsplit('/').next());
            if let Some(container) = id.and_then(|id| self.containers.describe(id)) {
                described.insert(key.to_owned(), container.clone());
            }
        }
        self.containers.end();
        described
    }

    /// Looks for GPUs' work, people and callers.
    fn look(&mut self, now: Moment, probes: &mut Probes) -> Seen {
        let mut known = Known {
            rules: &self.rules.housekeeping,
            shipped: &mut self.shipped,
            containers: &mut self.containers,
            books: &self.books,
            cgroups: &self.cgroups,
            rows: &self.rows,
        };
        self.signals.read(now, &mut known, probes)
    }

    /// Says for each probe of the tasks' books how it stands, and which columns hold a measurement.
    fn state(&self, probes: &mut Probes, failure: Option<&str>) -> Measured {
        let standing = self.standing();
        standing.state(probes);
        self.keeper.report(probes);
        self.shipped.state(probes);
        self.containers.state(probes);
        self.lost_cpu.state(probes);
        if standing.measured.cgroups && !self.cgroups.any() {
            probes.set("cgroups", Status::NotApplicable, "no cgroup tree is mounted");
        }
        match &self.books {
            Books::Ebpf(_) => probes.ok("pipelines"),
            Books::Proc(_) => {
                let reason = "which process began which is told by eBPF alone";
                probes.set("pipelines", Status::Unsupported, reason);
            }
        }
        match &self.rights {
            Some(rights) => rights.state(probes),
            None => probes.set("privileges", Status::NotApplicable, "they are given up once everything is attached"),
        }
        match failure {
            None => standing.measured,
            Some(failure) => {
                standing.state_failure(probes, failure);
                Measured::default()
            }
        }
    }

    /// Detaches every program; nothing is counted until [`Collector::resume`].
    pub fn pause(&mut self) {
        self.signals.pause();
        match &mut self.books {
            Books::Ebpf(object) => object.detach(),
            Books::Proc(fallback) => fallback.pause(),
        }
    }

    /// Counts again, from zero: what happened in between is nobody's activity.
    ///
    /// # Errors
    /// If the kernel refuses, or it takes a right that was given up: then a new process can.
    pub fn resume(&mut self, given_up: &[Step]) -> Result<(), CollectError> {
        match &mut self.books {
            Books::Ebpf(object) => object.attach(&probes_of(given_up), GIVEN_UP)?,
            Books::Proc(fallback) => fallback.resume().map_err(CollectError::Resume)?,
        }
        let _ = self.read();
        self.begin_anew();
        Ok(())
    }

    /// Does without these from here on, and with all others.
    ///
    /// # Errors
    /// If the kernel refuses to attach again what was given up.
    pub fn do_without(&mut self, given_up: &[Step]) -> Result<(), CollectError> {
        let doubled = if given_up.contains(&Step::Interval) { 2 } else { 1 };
        self.interval = self.configured_interval.saturating_mul(doubled);
        let Books::Ebpf(object) = &mut self.books else { return Ok(()) };
        let before = object.standing().measured;
        object.attach(&probes_of(given_up), GIVEN_UP)?;
        let now = object.standing().measured;
        // A sum with a gap in it is no sum since the old begin.
        if (now.network && !before.network) || (now.syscalls && !before.syscalls) {
            self.begin_anew();
        }
        Ok(())
    }

    /// Every counter of the rows is zero from here on.
    fn begin_anew(&mut self) {
        self.rows.begin_anew();
        self.runs.begin_anew();
        self.counters_since = Moment::now();
        self.drops_before = self.lost();
        self.begin_lost_cpu();
    }

    /// Gives up every right that measuring does not need from here on; the probe `privileges` says what came of it.
    pub fn give_up_rights(&mut self) {
        let books = &self.books;
        let (keep, why) = match books {
            _ if self.keep_ptrace => (CapabilitySet::SYS_PTRACE, "as keep_ptrace says"),
            Books::Ebpf(_) => (CapabilitySet::empty(), ""),
            // Nothing else shows other users' storage traffic.
            Books::Proc(_) => (CapabilitySet::SYS_PTRACE, "to read /proc/PID/io"),
        };
        let is_usable = || match books {
            Books::Ebpf(object) => object.is_usable(),
            Books::Proc(fallback) => fallback.is_usable(),
        };
        self.rights = Some(privileges::give_up(keep, why, is_usable));
        // What needed them is looked at once more: who asks for the probes is to hear what holds from here on.
        let mut probes = Probes::default();
        let _ = books::read(self.hidden_host.as_deref(), &mut probes);
        let _ = self.look(Moment::now(), &mut probes);
        self.signals.begin();
        self.state(&mut probes, None);
        self.probes = probes;
    }

    fn standing(&self) -> Standing {
        let mut standing = match &self.books {
            Books::Ebpf(object) => object.standing().clone(),
            Books::Proc(fallback) => {
                let unknown = (Status::Unsupported, String::new());
                fallback.standing(self.ebpf_refusal.as_ref().unwrap_or(&unknown))
            }
        };
        if let Some(reason) = &self.hidden_host {
            standing.see_nothing(reason);
        }
        standing
    }
}
