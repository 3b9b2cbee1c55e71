//! What a view of one interval holds. Each `None` is *not measured*.

use heartbeat::wire::{self, Class};

/// What happened in one interval. Each `None` is *not measured*.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct View {
    /// Name, CPUs, memory, kernel.
    pub host: wire::Host,
    /// End of the interval, in milliseconds since 1970-01-01 UTC.
    pub taken_unix_ms: i64,
    /// Time since boot, in nanoseconds.
    pub boottime_ns: u64,
    /// Length of the interval, in seconds.
    pub seconds: f64,
    /// Whether the counters come from eBPF.
    pub ebpf: bool,
    /// The whole machine.
    pub machine: Machine,
    /// Rows by class and key.
    pub workloads: Vec<Row>,
    /// Executions of pipelines.
    pub runs: Vec<Run>,
    /// GPUs as they are now.
    pub gpus: Vec<wire::Gpu>,
    /// Who sits at a terminal.
    pub interactive_sessions: Option<wire::InteractiveSessions>,
    /// Who would notice.
    pub inbound_peers: Option<wire::InboundPeers>,
    /// Capabilities that are neither ok nor without an object.
    pub problems: Vec<wire::Capability>,
    /// What was lost in the interval.
    pub lost: Vec<wire::Drop>,
    /// CPUs that the agent itself used, and its resident memory in bytes.
    pub agent: (Option<f64>, Option<u64>),
}

/// The whole machine. CPU figures are in CPUs: 1.5 is one and a half of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Machine {
    /// Busy.
    pub cpu: Option<f64>,
    /// In user mode.
    pub user: Option<f64>,
    /// In kernel mode.
    pub system: Option<f64>,
    /// Idle while a task waited for I/O.
    pub iowait: Option<f64>,
    /// Given to others by the hypervisor.
    pub steal: Option<f64>,
    /// Tasks that could have run and had no CPU: the sum over all rows.
    pub run_queue: Option<f64>,
    /// Tasks that were blocked on block I/O: the sum over all rows.
    pub blocked_io: Option<f64>,
    /// Bytes available without swapping.
    pub memory_available_bytes: Option<u64>,
    /// Bytes read from and written to disks, per second.
    pub disk: [Option<f64>; 2],
    /// Read and write operations, per second.
    pub disk_operations: [Option<f64>; 2],
    /// Bytes in and out over the network, per second.
    pub network: [Option<f64>; 2],
    /// Context switches per second.
    pub switches: Option<f64>,
    /// Tasks created per second.
    pub created: Option<f64>,
    /// Page faults that needed storage, per second.
    pub major_faults: Option<f64>,
    /// Pages that tasks reclaimed by themselves, per second.
    pub reclaimed: Option<f64>,
    /// Pages to and from swap, per second.
    pub swapped: Option<f64>,
    /// Kills by the out-of-memory killer in the interval.
    pub oom_kills: Option<u64>,
    /// Shares of the interval, 0 to 1.
    pub pressure: Pressure,
}

/// Pressure stall information as shares of the interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pressure {
    /// Some task waited for a CPU.
    pub cpu: Option<f64>,
    /// Some task waited for memory.
    pub memory: Option<f64>,
    /// All tasks waited for memory.
    pub memory_full: Option<f64>,
    /// Some task waited for I/O.
    pub io: Option<f64>,
    /// All tasks waited for I/O.
    pub io_full: Option<f64>,
}

/// One workload, run, task or tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Whose work it is.
    pub class: Class,
    /// Cgroup path, or a tool's name.
    pub key: String,
    /// Kind and name of the workload, if that is known.
    pub name: Option<wire::WorkloadName>,
    /// The busiest program.
    pub command: String,
    /// Processes alive now.
    pub processes: u32,
    /// Threads alive now.
    pub threads: u32,
    /// CPUs used.
    pub cpu: Option<f64>,
    /// Tasks that could have run and had no CPU.
    pub run_queue: Option<f64>,
    /// Tasks that were blocked on block I/O.
    pub blocked_io: Option<f64>,
    /// Resident bytes now; where that is not measured, the highest of one process.
    pub memory_bytes: Option<u64>,
    /// Bytes read from and written to storage, per second.
    pub disk: [Option<f64>; 2],
    /// Bytes in and out over the network, per second.
    pub network: [Option<f64>; 2],
    /// Programs and processes started, per second.
    pub starts: Option<f64>,
    /// Kills by the out-of-memory killer in the interval.
    pub oom_kills: Option<u64>,
    /// CPU time since the agent's start, in nanoseconds.
    pub cpu_ns: Option<u64>,
}

/// One execution of a pipeline.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// Identifies the run.
    pub id: String,
    /// What drives it.
    pub engine: String,
    /// The pipeline's name, possibly empty.
    pub pipeline: String,
    /// Time since its begin, or its whole length if it ended, in nanoseconds.
    pub age_ns: u64,
    /// How it ended; `None` while it lives or if that is not known.
    pub wait_status: Option<u32>,
    /// Whether it ended.
    pub ended: bool,
    /// Engine and tasks.
    pub row: Row,
    /// Tasks begun, ended, and failed.
    pub counts: [u64; 3],
    /// The listed tasks: the living first, then the latest.
    pub tasks: Vec<Task>,
}

/// One task of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Task {
    /// Its name.
    pub name: String,
    /// Time since its begin, or its whole length if it ended, in nanoseconds.
    pub age_ns: u64,
    /// How it ended; `None` while it lives or if that is not known.
    pub wait_status: Option<u32>,
    /// Whether it ended.
    pub ended: bool,
    /// All its processes.
    pub row: Row,
    /// The same by tool.
    pub tools: Vec<Row>,
}
