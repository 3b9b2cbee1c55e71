//! What happened in one span of time, held against the thresholds.

use super::{BusyRow, DecidingRow, Policy, Signal};
use serde::{Deserialize, Serialize};

/// What happened in one span of time. `None` is *not measured*, never zero.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observation {
    /// Begin, in milliseconds since 1970-01-01 UTC by the node's clock.
    pub start_unix_ms: i64,
    /// End, likewise.
    pub end_unix_ms: i64,
    /// CPU time of workloads, in nanoseconds; where exits are not attributed, all CPU time that has no other owner counts.
    pub workload_cpu_ns: Option<u64>,
    /// Forks and execs of workloads.
    #[serde(alias = "workload_births")]
    pub workload_starts: Option<u64>,
    /// Only from the `/proc` source, in place of `workload_starts`: tasks created that nobody can attribute.
    #[serde(alias = "unattributed_births")]
    pub unattributed_starts: Option<u64>,
    /// Bytes that workloads caused to be read from and written to storage.
    pub workload_disk_bytes: Option<u64>,
    /// Bytes in and out over the network, without loopback: of workloads where `unattributed_network_bytes` is there, else of the host
    /// without the agent's own; with those of RDMA adapters.
    pub network_bytes: Option<u64>,
    /// Kills by the out-of-memory killer.
    pub oom_kills: Option<u64>,
    /// Time in which the GPUs worked, added up over all of them, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_busy_ns: Option<u64>,
    /// The last input at a terminal, if it came in this span, in milliseconds since 1970-01-01 UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_input_unix_ms: Option<i64>,
    /// Ports of workloads that somebody on another machine newly connected to.
    #[serde(alias = "new_callers", default, skip_serializing_if = "Option::is_none")]
    pub new_inbound_peers: Option<u64>,
    /// Signals that this host has, that its agent looks for, and that it could not read. What an agent never claimed to
    /// look for is not among them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blind: Vec<Signal>,
    /// Kernel events that were lost: what they would have shown is not known.
    pub lost_events: u64,
    /// CPU time of the host that no row accounts for, in nanoseconds; only where exits are attributed, since it counts as the
    /// workloads' elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unattributed_cpu_ns: Option<u64>,
    /// CPU time of kernel threads, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_cpu_ns: Option<u64>,
    /// Traffic of the host's disks that no row accounts for, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unattributed_disk_bytes: Option<u64>,
    /// Bytes that the host's interfaces moved and neither workloads, housekeeping nor the agent account for; only where bytes are
    /// attributed exactly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unattributed_network_bytes: Option<u64>,
    /// CPU time of housekeeping, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub housekeeping_cpu_ns: Option<u64>,
    /// The housekeeping row that used most of it, if it was more than 1 % of a core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busiest_housekeeping: Option<BusyRow>,
    /// Cross-checks that this source should deliver and did not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unchecked: Vec<Contradiction>,
    /// Where a signal was above its threshold, the row that did most of the strongest one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deciding_row: Option<DecidingRow>,
    /// The agent was restarted in this span, and for so long only the host's own counters tell what happened, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart_gap_ms: Option<i64>,
    /// Somebody's work waited: a run or a batch step was open, or data was exchanged with a peer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waited: bool,
    /// At its end, the longest that a thread of somebody's has slept in a call that a timer ends, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slept_ms: Option<i64>,
}

/// What speaks against quiet workloads, though nobody's work is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Contradiction {
    /// The host's CPUs worked, and no row accounts for it.
    UnattributedCpu,
    /// Kernel threads worked: they may serve files or storage to others.
    KernelCpu,
    /// The host's disks worked, and no row accounts for it.
    UnattributedDisk,
    /// The host's interfaces moved data, and no row accounts for it.
    UnattributedNetwork,
    /// Housekeeping used more CPU time than it should: some of it may be work under a false name.
    Housekeeping,
}

impl Observation {
    /// The signals that showed work, strongest first.
    ///
    /// An observation that spans several intervals is held to the threshold of one: its activity may all have fallen into one.
    #[must_use]
    pub fn active(&self, policy: &Policy, interval_ms: i64) -> Vec<Signal> {
        let above = |value, threshold_per_s| self.is_above(value, threshold_per_s, interval_ms);
        let starts = self.workload_starts.is_some_and(|starts| starts > 0)
            || above(
                self.unattributed_starts.map(|n| n.saturating_mul(1000)),
                policy.unattributed_starts_threshold_per_1000_s,
            );
        [
            (Signal::OomKill, self.oom_kills.is_some_and(|kills| kills > 0)),
            (Signal::WorkloadCpu, above(self.workload_cpu_ns, policy.workload_cpu_threshold_ns_per_s)),
            (Signal::WorkloadStarts, starts),
            (Signal::WorkloadDisk, above(self.workload_disk_bytes, policy.disk_threshold_bytes_per_s)),
            (Signal::Network, above(self.network_bytes, policy.network_threshold_bytes_per_s)),
            (Signal::Gpu, above(self.gpu_busy_ns, policy.gpu_busy_threshold_ns_per_s)),
            (Signal::Person, self.last_input_unix_ms.is_some()),
            (Signal::InboundPeers, self.new_inbound_peers.is_some_and(|ports| ports > 0)),
        ]
        .into_iter()
        .filter_map(|(signal, active)| active.then_some(signal))
        .collect()
    }

    /// Whether somebody's work waited in it, on a machine that is idle after so many milliseconds.
    pub(super) fn has_waited(&self, policy: &Policy, idle_after_ms: i64) -> bool {
        self.waited || self.slept_ms.is_some_and(|slept_ms| policy.is_sleeper(slept_ms, idle_after_ms))
    }

    pub(super) fn is_above(&self, value: Option<u64>, threshold_per_s: u64, interval_ms: i64) -> bool {
        let span_ms = u64::try_from((self.end_unix_ms - self.start_unix_ms).clamp(0, interval_ms.max(1))).unwrap_or(0);
        value.is_some_and(|value| u128::from(value) * 1000 > u128::from(threshold_per_s) * u128::from(span_ms))
    }

    /// What the machine did in this interval that nobody's quietness explains: the host's counters against those of the workloads.
    /// Housekeeping is judged over a longer time.
    #[must_use]
    pub fn contradictions(&self, policy: &Policy, interval_ms: i64) -> Vec<Contradiction> {
        let above = |value, threshold_per_s| self.is_above(value, threshold_per_s, interval_ms);
        [
            (
                Contradiction::UnattributedCpu,
                above(self.unattributed_cpu_ns, policy.unattributed_cpu_threshold_ns_per_s),
            ),
            (Contradiction::KernelCpu, above(self.kernel_cpu_ns, policy.kernel_cpu_threshold_ns_per_s)),
            (
                Contradiction::UnattributedDisk,
                above(self.unattributed_disk_bytes, policy.unattributed_disk_threshold_bytes_per_s),
            ),
            (
                Contradiction::UnattributedNetwork,
                above(self.unattributed_network_bytes, policy.network_threshold_bytes_per_s),
            ),
        ]
        .into_iter()
        .filter_map(|(what, contradicts)| contradicts.then_some(what))
        .collect()
    }

    /// The signals without which quietness is not proven.
    #[must_use]
    pub fn not_measured(&self) -> Vec<Signal> {
        let absent = [
            (Signal::WorkloadCpu, self.workload_cpu_ns.is_none()),
            (Signal::WorkloadStarts, self.workload_starts.is_none() && self.unattributed_starts.is_none()),
            (Signal::WorkloadDisk, self.workload_disk_bytes.is_none()),
            (Signal::Network, self.network_bytes.is_none()),
        ];
        let mut signals: Vec<_> = absent.into_iter().filter_map(|(signal, absent)| absent.then_some(signal)).collect();
        signals.extend(self.blind.iter().filter(|blind| **blind != Signal::Network || self.network_bytes.is_some()));
        signals
    }
}
