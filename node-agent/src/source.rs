//! Where heartbeats come from, as the uplink sees it.
//!
//! The uplink asks once per interval and gives each heartbeat its sequence; what a heartbeat holds is none of its
//! business. [`Readings`] is the one real source; tests bring canned heartbeats.

use crate::{
    collect::Collector,
    fold::{self, OwnCosts},
    host::clock::Moment,
};
use heartbeat::wire;
use rustix::time::{ClockId, clock_gettime};

/// Gives one heartbeat per call; the time between two calls is the interval that the heartbeat speaks about.
///
/// What only the uplink knows is left to it: `sequence` is 0, and `AgentCost.spooled_heartbeats`,
/// `AgentCost.spool_dropped_heartbeats` and `HostCounters.own_network_…` are absent.
pub trait Source: Send {
    /// Reads the counters now.
    ///
    /// # Errors
    /// If there will never be another heartbeat. What a single probe cannot measure is no error: coverage says it.
    fn next(&mut self) -> anyhow::Result<wire::Heartbeat>;
}

/// Heartbeats of this host.
pub struct Readings {
    collector: Collector,
    previous: Moment,
}

impl Readings {
    /// The first heartbeat speaks about the time since the collector's start.
    #[must_use]
    pub fn new(collector: Collector) -> Self {
        let previous = collector.counters_since();
        Self { collector, previous }
    }

    /// What is measured and what is not.
    #[must_use]
    pub fn probes(&self) -> Vec<wire::Probe> {
        self.collector.probes()
    }
}

impl Source for Readings {
    fn next(&mut self) -> anyhow::Result<wire::Heartbeat> {
        let reading = self.collector.read();
        let heartbeat = fold::heartbeat(&self.previous, &reading, &own_costs());
        self.previous = reading.taken;
        Ok(heartbeat)
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
