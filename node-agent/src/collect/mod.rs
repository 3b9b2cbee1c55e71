//! One reading of everything that is measured: the tasks' books (from the kernel, or from `/proc`), the host's books, and
//! what could not be read.
//!
//! The collector refuses to guess: what a reading did not deliver is absent in it and has a probe that says why. Measured
//! without optimisation, with about 115 tasks: 1.4 to 1.8 ms of CPU time for a whole reading.

mod book;
mod change;
mod controllers;
mod losses;
mod lost_cpu;
mod options;
mod reading;
mod status;
mod tasks;
mod whose;

pub use options::{CollectError, CollectorOptions, Mode};
pub use reading::Reading;

use crate::{
    coverage::{Probes, Status},
    host::{
        books,
        cgroup_usage::Controllers,
        facts::Facts,
        runtime::{Containers, report::Container},
        shipped::Shipped,
        signals::{Seen, Signals},
    },
    model::{Ledger, Moment, Share},
    privileges::Rights,
    procfs::{
        cgroups::{Cgroups, Mounts},
        process,
    },
    rules::Keeper,
    workload::{Names, Rows, runs::Runs},
};
use heartbeat::wire;
use losses::lost_since;
use lost_cpu::LostCpu;
use std::{
    collections::BTreeMap,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};
use tasks::Books;
use whose::Known;
use workload_rules::Rules;

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
        let hidden_host = process::hidden_host(Path::new("/proc"));
        let (mut books, ebpf_refusal) = Books::start(options, hidden_host.as_deref())?;
        let signals = Signals::start(&options.gpu, hidden_host.clone());
        let baseline = books.read()?;
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
        self.books.collector()
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
}

#[cfg(test)]
mod rules_tests;
