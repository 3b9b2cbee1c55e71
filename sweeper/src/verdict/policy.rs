//! The numbers that a judgement depends on.

use serde::{Deserialize, Serialize};

/// Thresholds and windows. Thresholds are per second and apply to one heartbeat interval at a time, so that a burst does not
/// hide in a long average.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// A node that missed more heartbeats than this in a row is silent, and silence is `unknown`.
    pub missed_heartbeats: u32,
    /// A machine that booted less than this long ago is `unknown`, in milliseconds.
    pub boot_grace_ms: i64,
    /// Quiet for this long is `idle`, in milliseconds.
    pub idle_after_ms: i64,
    /// The same for a machine with a GPU, which costs more while nobody uses it.
    #[serde(default = "gpu_idle_after_ms")]
    pub gpu_idle_after_ms: i64,
    /// The GPUs of a machine that is not idle are unused when none of them worked for this long, in milliseconds.
    #[serde(default = "gpu_unused_after_ms")]
    pub gpu_unused_after_ms: i64,
    /// A session with a terminal waits for this long after its last input, in milliseconds.
    #[serde(default = "interactive_after_ms")]
    pub interactive_after_ms: i64,
    /// A port of somebody's waits for this long after its last call, in milliseconds. Evidence from before this key was judged without.
    #[serde(default)]
    pub called_after_ms: i64,
    /// Whether a timer or a crontab that the distribution does not ship waits, and a process that has slept by a timer for half of `idle_after`: whoever wakes up more
    /// often shows within `idle_after` what it does then. Their node is not idle.
    #[serde(default = "schedules_wait")]
    pub schedules_wait: bool,
    /// CPU time of workloads above this is activity, in nanoseconds per second. 2,000,000 is 0.2 % of one core.
    #[serde(alias = "workload_cpu_floor_ns_per_s")]
    pub workload_cpu_threshold_ns_per_s: u64,
    /// Storage traffic of workloads above this is activity, in bytes per second.
    #[serde(alias = "disk_floor_bytes_per_s")]
    pub disk_threshold_bytes_per_s: u64,
    /// Network traffic above this is activity, in bytes per second: of workloads where it is attributed exactly, else of the host
    /// without loopback and without the agent's own. Where it is attributed, traffic of the host that nobody accounts for contradicts
    /// quiet workloads above the same threshold.
    #[serde(alias = "network_floor_bytes_per_s")]
    pub network_threshold_bytes_per_s: u64,
    /// Work of the GPUs above this, added up over all of them, is activity, in nanoseconds per second. 1,000,000 is 0.1 % of one GPU.
    #[serde(alias = "gpu_busy_floor_ns_per_s", default = "gpu_busy_threshold_ns_per_s")]
    pub gpu_busy_threshold_ns_per_s: u64,
    /// Only where process starts are not attributed (the `/proc` source): more tasks created by nobody in particular than
    /// this is activity, in thousandths of a task per second.
    #[serde(alias = "unattributed_births_floor_per_1000_s")]
    pub unattributed_starts_threshold_per_1000_s: u64,
    /// CPU time of the host that no row accounts for, above this, contradicts quiet workloads, in nanoseconds per second. The two
    /// sums differ by interrupts and by the tick's sampling, a few thousandths of a core on a quiet machine: 200,000,000 is a
    /// fifth of one core.
    #[serde(alias = "unattributed_cpu_floor_ns_per_s", default = "unattributed_cpu_threshold_ns_per_s")]
    pub unattributed_cpu_threshold_ns_per_s: u64,
    /// Likewise CPU time of kernel threads: file servers (Lustre, NFS) and storage targets (NVMe over RDMA) work in them. Those of a quiet
    /// machine use less than a hundredth of a core.
    #[serde(alias = "kernel_cpu_floor_ns_per_s", default = "kernel_cpu_threshold_ns_per_s")]
    pub kernel_cpu_threshold_ns_per_s: u64,
    /// Likewise traffic of the host's disks that no process caused, in bytes per second. A quiet machine writes its
    /// housekeeping's pages an interval after they were counted: 10 MiB per second is more than that ever comes to.
    #[serde(alias = "unattributed_disk_floor_bytes_per_s", default = "unattributed_disk_threshold_bytes_per_s")]
    pub unattributed_disk_threshold_bytes_per_s: u64,
    /// CPU time of housekeeping above this, averaged over any `idle_after` of the window, contradicts idleness, in nanoseconds per
    /// second. 50,000,000 is 5 % of one core: 90 s in half an hour, more than a run of apt's timers takes.
    #[serde(default = "housekeeping_cpu_budget_ns_per_s")]
    pub housekeeping_cpu_budget_ns_per_s: u64,
}

// Evidence from before these keys is judged by their defaults; it holds nothing that they apply to.
const fn gpu_idle_after_ms() -> i64 {
    15 * 60_000
}

const fn gpu_unused_after_ms() -> i64 {
    60 * 60_000
}

const fn interactive_after_ms() -> i64 {
    120 * 60_000
}

const fn schedules_wait() -> bool {
    true
}

const fn gpu_busy_threshold_ns_per_s() -> u64 {
    1_000_000
}

const fn unattributed_cpu_threshold_ns_per_s() -> u64 {
    200_000_000
}

const fn kernel_cpu_threshold_ns_per_s() -> u64 {
    200_000_000
}

const fn unattributed_disk_threshold_bytes_per_s() -> u64 {
    10 << 20
}

const fn housekeeping_cpu_budget_ns_per_s() -> u64 {
    50_000_000
}

impl Policy {
    /// How long a machine must be quiet to be idle, in milliseconds; `reads_gpus` says whether it has some, and they are read.
    pub(super) fn idle_after_ms(&self, reads_gpus: bool) -> i64 {
        if reads_gpus { self.gpu_idle_after_ms } else { self.idle_after_ms }
    }

    /// Whether a process that has slept by a timer for so many milliseconds waits, on a machine that is idle after so many.
    pub(super) fn is_sleeper(&self, slept_ms: i64, idle_after_ms: i64) -> bool {
        self.schedules_wait && slept_ms >= idle_after_ms / 2
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            missed_heartbeats: 3,
            boot_grace_ms: 10 * 60_000,
            idle_after_ms: 30 * 60_000,
            gpu_idle_after_ms: gpu_idle_after_ms(),
            gpu_unused_after_ms: gpu_unused_after_ms(),
            interactive_after_ms: interactive_after_ms(),
            called_after_ms: interactive_after_ms(),
            schedules_wait: schedules_wait(),
            workload_cpu_threshold_ns_per_s: 2_000_000,
            disk_threshold_bytes_per_s: 4096,
            network_threshold_bytes_per_s: 4096,
            gpu_busy_threshold_ns_per_s: gpu_busy_threshold_ns_per_s(),
            unattributed_starts_threshold_per_1000_s: 1000,
            unattributed_cpu_threshold_ns_per_s: unattributed_cpu_threshold_ns_per_s(),
            kernel_cpu_threshold_ns_per_s: kernel_cpu_threshold_ns_per_s(),
            unattributed_disk_threshold_bytes_per_s: unattributed_disk_threshold_bytes_per_s(),
            housekeeping_cpu_budget_ns_per_s: housekeeping_cpu_budget_ns_per_s(),
        }
    }
}
