//! Where heartbeats come from, as the exporter sees it.
//!
//! The exporter asks once per interval and gives each heartbeat its sequence; what a heartbeat holds is none of its
//! business. [`SamplerSource`] is the one real source; tests bring canned heartbeats.

use crate::{
    aggregate::{self, OwnCosts},
    budget::{Budget, Cost, Limits, Step},
    collect::Sampler,
    coverage::{Capabilities, Status},
    model::Moment,
    names,
    switch::Switch,
};
use heartbeat::wire;
use rustix::time::{ClockId, clock_gettime};

/// Gives one heartbeat per call; the time between two calls is the interval that the heartbeat speaks about.
///
/// What only the exporter knows is left to it: `sequence` is 0, and `AgentCost.spooled_heartbeats`,
/// `AgentCost.spool_dropped_heartbeats` and `HostCounters.own_network_…` are absent.
pub trait HeartbeatSource: Send {
    /// Reads the counters now.
    ///
    /// # Errors
    /// If there will never be another heartbeat. What a single capability cannot measure is no error: coverage says it.
    fn next(&mut self) -> anyhow::Result<wire::Heartbeat>;

    /// Whether this tick is to pass without a sample, because intervals are longer for now.
    fn passes_over(&mut self) -> bool {
        false
    }

    /// Whether the last sample was the last one, until whoever runs this begins it anew.
    fn is_paused(&self) -> bool {
        false
    }
}

/// Heartbeats of this host.
pub struct SamplerSource {
    sampler: Sampler,
    previous: Moment,
    switch: Option<Switch>,
    budget: Option<Budget>,
    /// CPU time of the agent and its programs at the last sample, in nanoseconds.
    spent_ns: Option<u64>,
    passed_over: bool,
    /// Nothing is attached: the switch was seen thrown, however short that was.
    is_paused: bool,
}

impl SamplerSource {
    /// The first heartbeat speaks about the time since the sampler's start.
    #[must_use]
    pub fn new(sampler: Sampler) -> Self {
        let previous = sampler.counters_since();
        let (passed_over, is_paused) = (false, false);
        Self { sampler, previous, switch: None, budget: None, spent_ns: None, passed_over, is_paused }
    }

    /// From here on it stops where `switch` says so, and does less where it costs more than `limits`.
    #[must_use]
    pub fn obeying(self, switch: Switch, limits: Limits) -> Self {
        Self { switch: Some(switch), budget: Some(Budget::new(limits)), ..self }
    }

    /// Detaches everything: nothing is counted until [`SamplerSource::resume`].
    pub fn pause(&mut self) {
        self.is_paused = true;
        self.sampler.pause();
    }

    /// Counts again after the kill switch was released.
    ///
    /// # Errors
    /// If that takes a new process.
    pub fn resume(&mut self) -> anyhow::Result<()> {
        let shed = self.budget.as_ref().map(Budget::shed).unwrap_or_default();
        self.sampler.resume(shed)?;
        self.previous = self.sampler.counters_since();
        self.spent_ns = None;
        self.is_paused = false;
        Ok(())
    }

    /// Looks at what the interval cost, and does more or less from the next one on.
    fn keep_within_budget(&mut self, heartbeat: &mut wire::Heartbeat) {
        let Some(budget) = &mut self.budget else { return };
        let Some((agent, interval)) = heartbeat.agent.as_mut().zip(heartbeat.interval.as_ref()) else { return };
        let spent_ns = agent.cpu_ns.map(|own| own.saturating_add(agent.bpf_ns.unwrap_or(0)));
        let cost = Cost {
            cpu_ns: spent_ns.zip(self.spent_ns).map(|(now, before)| now.saturating_sub(before)),
            interval_ns: interval.end_boottime_ns.saturating_sub(interval.start_boottime_ns),
            cpus: heartbeat.host.as_ref().map_or(1, |host| host.cpus),
            resident_bytes: agent.resident_bytes,
        };
        self.spent_ns = spent_ns;
        agent.degraded_steps = budget.steps();
        let mut capabilities = Capabilities::default();
        budget.state(&mut capabilities);
        if let Some(coverage) = &mut heartbeat.coverage {
            coverage.capabilities.extend(capabilities.to_wire());
        }
        if budget.notice(&cost) {
            let shed = budget.shed();
            tracing::info!(steps = budget.steps(), ?shed, "the agent's own budget");
            if let Err(error) = self.sampler.do_without(shed) {
                tracing::warn!(%error, "what was shed cannot be measured again");
            }
            // A new begin of the counters is a new begin of the interval.
            if self.sampler.counters_since().boottime_ns > self.previous.boottime_ns {
                self.previous = self.sampler.counters_since();
            }
        }
    }

    /// Stops measuring at once if the kill switch is thrown, and says so in this heartbeat, which is the last one.
    fn obey_switch(&mut self, heartbeat: &mut wire::Heartbeat) {
        let Some(switch) = &self.switch else { return };
        let mut capabilities = Capabilities::default();
        switch.state(&mut capabilities);
        // One check decides both: the file may be gone a moment later.
        if capabilities.status("kill_switch") == Some(Status::Denied) {
            self.pause();
        }
        if let Some(coverage) = &mut heartbeat.coverage {
            coverage.capabilities.extend(capabilities.to_wire());
        }
    }

    /// What is measured and what is not.
    #[must_use]
    pub fn capabilities(&self) -> Vec<wire::Capability> {
        self.sampler.capabilities()
    }
}

impl HeartbeatSource for SamplerSource {
    fn next(&mut self) -> anyhow::Result<wire::Heartbeat> {
        let sample = self.sampler.read();
        let mut heartbeat = aggregate::heartbeat(&self.previous, &sample, &own_costs());
        self.previous = sample.taken;
        self.keep_within_budget(&mut heartbeat);
        self.obey_switch(&mut heartbeat);
        names::make_harmless(&mut heartbeat);
        Ok(heartbeat)
    }

    fn passes_over(&mut self) -> bool {
        let is_longer = self.budget.as_ref().is_some_and(|budget| budget.has_shed(Step::Interval));
        self.passed_over = is_longer && !self.passed_over;
        self.passed_over
    }

    fn is_paused(&self) -> bool {
        self.is_paused
    }
}

fn own_costs() -> OwnCosts {
    let cpu = clock_gettime(ClockId::ProcessCPUTime);
    let cpu_ns = u64::try_from(cpu.tv_sec).ok().zip(u64::try_from(cpu.tv_nsec).ok());
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    OwnCosts {
        cpu_ns: cpu_ns.map(|(s, ns)| s.saturating_mul(1_000_000_000).saturating_add(ns)),
        resident_bytes: bytes_of(&status, "VmRSS:"),
        peak_resident_bytes: bytes_of(&status, "VmHWM:"),
    }
}

/// One line of `/proc/self/status`, which counts memory in units of 1,024 bytes.
fn bytes_of(status: &str, name: &str) -> Option<u64> {
    let kib =
        status.lines().find_map(|line| line.strip_prefix(name)?.split_ascii_whitespace().next()?.parse::<u64>().ok());
    kib?.checked_mul(1024)
}
