//! The numbers that a judgement depends on.

use serde::{Deserialize, Serialize};

/// Floors and windows. Floors are per second and apply to one heartbeat interval at a time, so that a burst does not
/// hide in a long average.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// A node that missed more heartbeats than this in a row is silent, and silence is `unknown`.
    pub missed_heartbeats: u32,
    /// A machine that booted less than this long ago is `unknown`, in milliseconds.
    pub boot_grace_ms: i64,
    /// Quiet for this long is `idle`, in milliseconds.
    pub idle_after_ms: i64,
    /// CPU time of workloads above this is activity, in nanoseconds per second. 2,000,000 is 0.2 % of one core.
    pub workload_cpu_floor_ns_per_s: u64,
    /// Storage traffic of workloads above this is activity, in bytes per second.
    pub disk_floor_bytes_per_s: u64,
    /// Network traffic of the host, without loopback and without the agent's own, above this is activity, in bytes per second.
    pub network_floor_bytes_per_s: u64,
    /// Only where births are not attributed (the `/proc` collector): more tasks created by nobody in particular than
    /// this is activity, in thousandths of a task per second.
    pub unattributed_births_floor_per_1000_s: u64,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            missed_heartbeats: 3,
            boot_grace_ms: 10 * 60_000,
            idle_after_ms: 30 * 60_000,
            workload_cpu_floor_ns_per_s: 2_000_000,
            disk_floor_bytes_per_s: 4096,
            network_floor_bytes_per_s: 4096,
            unattributed_births_floor_per_1000_s: 1000,
        }
    }
}
