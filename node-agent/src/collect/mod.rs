//! One sample of everything that is measured: the tasks' counters (from the kernel, or from `/proc`), the host's counters, and
//! what could not be read.
//!
//! The sampler refuses to guess: what a sample did not deliver is absent in it and has a capability that says why. Measured
//! without optimisation, with about 115 tasks: 1.4 to 1.8 ms of CPU time for a whole sample.

mod add;
mod change;
mod controllers;
mod losses;
mod lost_cpu;
mod options;
mod sample;
mod status;
mod tasks;
mod whose;

pub use options::{CollectError, Mode, SamplerOptions};
pub use sample::Sample;

use crate::{
    coverage::{Capabilities, Status},
    host::{
        cgroup_usage::Controllers,
        counters,
        facts::Facts,
        runtime::{Containers, report::Container},
        shipped::Shipped,
        signals::{Seen, Signals},
    },
    model::{Delta, Deltas, Moment},
    privileges::Rights,
    procfs::{
        cgroups::{Cgroups, Mounts},
        process,
    },
    rules::{self, RulesStore},
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
use tasks::TaskCounters;
use whose::Known;
use workload_rules::Rules;

/// Reads everything, again and again.
pub struct Sampler {
    task_counters: TaskCounters,
    /// Why the host's processes are not seen: then nothing of them is measured, whatever the counters say.
    hidden_host: Option<String>,
    /// Why it is not eBPF.
    ebpf_refusal: Option<(Status, String)>,
    cgroups: Cgroups,
    controllers: Controllers,
    facts: Facts,
    rules_store: Arc<RulesStore>,
    rules: Arc<Rules>,
    /// Of `rules`.
    rules_digest: String,
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
    lost_samples: u64,
    overflowed: u64,
    lost_cpu: LostCpu,
    programs: Option<(u64, u64)>,
    capabilities: Capabilities,
    keep_ptrace: bool,
    /// What became of the agent's rights.
    rights: Option<Rights>,
}

impl Sampler {
    /// Loads what the mode asks for and takes the baseline: the rows' counters are zero when this returns.
    ///
    /// # Errors
    /// See [`CollectError`].
    pub fn start(options: &SamplerOptions) -> Result<Self, CollectError> {
        let hidden_host = process::hidden_host(Path::new("/proc"));
        let (mut task_counters, ebpf_refusal) = TaskCounters::start(options, hidden_host.as_deref())?;
        let signals = Signals::start(&options.gpu, options.cpu_ppm_of_host, hidden_host.clone());
        let baseline = task_counters.read()?;
        let (mounts, rules) = (Mounts::read(), options.rules.rules());
        let mut sampler = Self {
            lost_cpu: LostCpu::new(&mounts, matches!(task_counters, TaskCounters::Ebpf(_))),
            task_counters,
            hidden_host,
            ebpf_refusal,
            controllers: Controllers::new(&mounts),
            cgroups: Cgroups::new(mounts),
            facts: Facts::read(signals.bus().any_gpu()),
            rules_digest: rules::digest(&rules),
            rules,
            rules_store: Arc::clone(&options.rules),
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
            lost_samples: 0,
            overflowed: 0,
            programs: baseline.programs,
            capabilities: Capabilities::default(),
            keep_ptrace: options.keep_ptrace,
            rights: None,
        };
        // Who lives now has a row from the first heartbeat on, with empty sums.
        let living = baseline.by_key.into_iter().filter(|(_, delta)| delta.live_threads > 0);
        let quiet = living.map(|(key, delta)| {
            let peak_resident_bytes = delta.totals.peak_resident_bytes;
            (key, Delta { totals: node_agent_ebpf::Totals { peak_resident_bytes, ..Default::default() }, ..delta })
        });
        sampler.add_sample(&Deltas { by_key: quiet.collect(), paths: baseline.paths, ..Deltas::default() });
        sampler.begin_lost_cpu();
        // It began before the programs did, which know the agent's later children by themselves.
        if let (TaskCounters::Ebpf(object), Some(helper)) = (&mut sampler.task_counters, sampler.signals.helper()) {
            object.know_helper(helper)?;
        }
        let mut capabilities = Capabilities::default();
        let traffic = counters::traffic(sampler.hidden_host.as_deref(), &mut capabilities);
        let _ = counters::read(traffic, &mut capabilities);
        let _ = sampler.read_signals(sampler.counters_since, &mut capabilities);
        sampler.state(&mut capabilities, None);
        sampler.capabilities = capabilities;
        tracing::info!(source = sampler.source().as_str_name(), "measuring from here on");
        Ok(sampler)
    }

    /// Where the tasks' counters come from.
    #[must_use]
    pub fn source(&self) -> wire::Source {
        self.task_counters.source()
    }

    /// What is measured and what is not, as of the last sample.
    #[must_use]
    pub fn capabilities(&self) -> Vec<wire::Capability> {
        self.capabilities.to_wire()
    }

    /// When the rows' counters were zero.
    #[must_use]
    pub fn counters_since(&self) -> Moment {
        self.counters_since
    }

    /// Reads everything. A part that cannot be read is absent in the sample and named by a capability.
    pub fn read(&mut self) -> Sample {
        let mut capabilities = Capabilities::default();
        let next_rules = self.rules_store.rules();
        let traffic = counters::traffic(self.hidden_host.as_deref(), &mut capabilities);
        // Last before the tasks: what runs in between hides as much of what was lost.
        let (cpu_samples, sampled_at) = (self.lost_cpu.sample(), Instant::now());
        let deltas = match &mut self.task_counters {
            TaskCounters::Ebpf(object) => object.read().map_err(|error| error.to_string()),
            TaskCounters::Proc(fallback) => fallback.read().map_err(|error| format!("/proc cannot be read: {error}")),
        };
        // The moment belongs to the tasks' counters, which matter most; the host's come within a millisecond of them.
        let taken = Moment::now();
        let failure = match deltas {
            Ok(deltas) => {
                self.drops.clone_from(&deltas.drops);
                self.overflowed = self.overflowed.saturating_add(deltas.overflowed);
                self.programs = deltas.programs;
                self.begin(&deltas);
                self.add(&deltas);
                None
            }
            Err(failure) => {
                self.lost_samples += 1;
                Some(failure)
            }
        };
        let was_read = failure.is_none();
        let host = counters::read(traffic, &mut capabilities);
        let signals = self.read_signals(taken, &mut capabilities);
        if was_read {
            // May wait for ends under way: after all that belongs to this moment.
            if let Some(samples) = cpu_samples {
                self.take_up_lost_cpu(&samples, sampled_at);
            }
            self.end();
        }
        let measured = self.state(&mut capabilities, failure.as_deref());
        let (cgroups, schedules) = (self.cgroup_usage(&mut capabilities), self.schedules(&mut capabilities));
        self.capabilities = capabilities.clone();
        let drops = self.lost();
        let containers = self.describe();
        let sample = Sample {
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
            rules_digest: self.rules_digest.clone(),
            measured,
            source: self.source(),
            capabilities,
            drops: lost_since(&self.drops_before, &drops),
            programs: self.programs,
        };
        if was_read {
            self.take_over(next_rules, taken, drops);
        }
        sample
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

    /// Looks for GPUs' work, interactive sessions and inbound peers.
    fn read_signals(&mut self, now: Moment, capabilities: &mut Capabilities) -> Seen {
        let mut known = Known {
            rules: &self.rules.housekeeping,
            shipped: &mut self.shipped,
            containers: &mut self.containers,
            task_counters: &self.task_counters,
            cgroups: &self.cgroups,
            rows: &self.rows,
        };
        self.signals.read(now, &mut known, capabilities)
    }
}

#[cfg(test)]
mod rules_tests;
