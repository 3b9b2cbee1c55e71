//! Plain data that the programs inside the kernel and the agent share: no logic, no allocation, the same bytes on both
//! sides.
//!
//! Every struct is `repr(C)` without hidden padding, because the kernel compares map keys byte by byte.

#![no_std]

mod offsets;
pub mod process_events;
pub mod runs;

pub use offsets::Offsets;

/// Length of a task's name in the kernel (`TASK_COMM_LEN`), the closing zero included.
pub const COMM_BYTES: usize = 16;
/// Distinct keys that both buffers of the aggregation hold together; what comes beyond goes to overflow rows.
/// 8,192 × (72 + 232 bytes + about 48 of the kernel's own) is 2.9 MB, allocated once.
pub const MAX_AGGREGATED: u32 = 8_192;
/// Distinct pairs of key and way to end that both buffers hold together. 2,048 × (80 + 8 + about 48 bytes) is 0.3 MB,
/// allocated once.
pub const MAX_FAILURES: u32 = 2_048;
/// Living tasks whose accounted counters are remembered, so that their exit adds only what is new. Memory is taken
/// per task (about 170 bytes) and not beforehand: 8 MB for 50,000 tasks, 45 MB at the cap.
pub const MAX_TRACKED: u32 = 262_144;
/// Living tasks of which the programs themselves have counted something. Memory is taken per task (about 150 bytes) and
/// not beforehand: 10 MB at the cap.
pub const MAX_OBSERVED: u32 = 65_536;
/// Places of the filter before the observed tasks; 8 bytes each, so that it stays in the CPU's cache.
pub const OBSERVED_FILTER: u32 = 4_096;
/// Victims of the out-of-memory killer between the kill and the exit.
pub const MAX_VICTIMS: u32 = 1_024;
/// Cgroups whose names are remembered, so that a workload that came and went between two samples still has its path.
/// 4,096 × (16 + 104 bytes + about 60 of the kernel's own) is 0.7 MB, allocated once.
pub const MAX_CGROUPS: u32 = 4_096;
/// Processes that are remembered until they are freed, by the lowest bits of their ids: 16,384 × 56 bytes are 0.9 MB, allocated
/// once. A younger process takes an older one's place; of that one it is then not known what it executed, which makes it workload.
pub const MAX_PROCESSES: u32 = 16_384;
/// Longest part of a cgroup's path that is remembered, the closing zero included; a container's has 77 bytes.
pub const CGROUP_NAME_BYTES: usize = 96;
/// Deepest path that is remembered. Kubernetes on systemd needs five levels.
pub const MAX_CGROUP_DEPTH: usize = 10;
/// In place of the number of a system call. The kernel itself writes -1 where a task entered it otherwise.
pub const NO_CALL: u32 = u32::MAX;
/// An offset of this value means that the running kernel has no such field.
pub const ABSENT: u32 = u32::MAX;

/// Which cgroup tree an id belongs to; ids are unique within one tree only.
pub mod hierarchy {
    /// In the root of every tree that is looked at.
    pub const ROOT: u8 = 0;
    /// The unified (version 2) tree.
    pub const V2: u8 = 1;
    /// The version 1 tree that holds `cpuacct`.
    pub const V1_CPUACCT: u8 = 2;
    /// The version 1 tree that holds `pids`: where systemd puts services on a host without a version 2 tree.
    pub const V1_PIDS: u8 = 3;
}

/// Names one cgroup.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CgroupId {
    /// The kernel's id.
    pub id: u64,
    /// See [`hierarchy`].
    pub hierarchy: u64,
}

/// What a cgroup is called, and where it hangs.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CgroupName {
    /// Id of the cgroup above.
    pub parent_id: u64,
    /// Last part of the path, zero-padded.
    pub name: [u8; CGROUP_NAME_BYTES],
}

/// Which file a process executes. Two files that exist at the same time never share it, and a file that was changed or
/// replaced has another one.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Executable {
    /// Inode number (`i_ino`); 0 if the file is not known, or there is none.
    pub inode: u64,
    /// When the inode last changed (`ctime`), in nanoseconds since 1970-01-01 UTC, modulo 2 to the 64th.
    pub changed_ns: u64,
    /// The file system's device as the kernel writes it (`s_dev`): the major number times 2 to the 20th, and the minor number.
    pub device: u32,
    /// Always 0.
    pub padding: u32,
}

/// By what the counters of processes are kept.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// The kernel's id of its cgroup in the unified tree; equal to the inode number of its directory. 0 for the root.
    pub cgroup_id: u64,
    /// Likewise in the version 1 tree that `hierarchy` names; 0 for the root, and where there is no such tree.
    pub cgroup_v1_id: u64,
    /// The task of a pipeline's run that it belongs to; 0 if it belongs to none.
    pub task_id: u64,
    /// What it executes.
    pub executable: Executable,
    /// The real user.
    pub uid: u32,
    /// The tree of `cgroup_v1_id`; see [`hierarchy`].
    pub hierarchy: u8,
    /// 1 for a kernel thread.
    pub kernel_thread: u8,
    /// 1 for a task of the agent or of its helper.
    pub own: u8,
    /// Which of the two buffers this entry belongs to; see [`control::BUFFER`].
    pub buffer: u8,
    /// Name of the process (its first thread), zero-padded. Anybody may choose it: it is for people, and decides nothing.
    pub comm: [u8; COMM_BYTES],
}

/// What is remembered of a process until its last thread is freed: its memory, and so the file that it executes, is gone by then.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// When it began, in nanoseconds since boot; 0 while the entry is being written.
    pub start_boottime_ns: u64,
    /// What it executes.
    pub executable: Executable,
    /// Its name, zero-padded.
    pub comm: [u8; COMM_BYTES],
    /// Its id in the first pid namespace.
    pub tgid: u32,
    /// Always 0.
    pub padding: u32,
}

/// Indices into the cumulative counters of a task and of a key.
pub mod counter {
    /// CPU time, in nanoseconds: `se.sum_exec_runtime`.
    pub const CPU_NS: usize = 0;
    /// CPU time in user mode, in nanoseconds: `utime`.
    pub const USER_NS: usize = 1;
    /// CPU time in kernel mode, in nanoseconds: `stime`.
    pub const SYSTEM_NS: usize = 2;
    /// Time on a run queue without a CPU, in nanoseconds: `sched_info.run_delay`.
    pub const RUN_QUEUE_NS: usize = 3;
    /// Switches away while it waited: `nvcsw`.
    pub const VOLUNTARY_SWITCHES: usize = 4;
    /// Switches away while it would have run on: `nivcsw`.
    pub const INVOLUNTARY_SWITCHES: usize = 5;
    /// Page faults served from memory: `min_flt`.
    pub const MINOR_FAULTS: usize = 6;
    /// Page faults that needed storage: `maj_flt`.
    pub const MAJOR_FAULTS: usize = 7;
    /// Bytes read from storage: `ioac.read_bytes`.
    pub const DISK_READ_BYTES: usize = 8;
    /// Bytes written to storage: `ioac.write_bytes`.
    pub const DISK_WRITTEN_BYTES: usize = 9;
    /// Read system calls: `ioac.syscr`.
    pub const READ_CALLS: usize = 10;
    /// Write system calls: `ioac.syscw`.
    pub const WRITE_CALLS: usize = 11;
    /// The counters before this index lie in `task_struct` itself.
    pub const IN_TASK: usize = 12;
    /// Time blocked on block I/O, in nanoseconds: `delays->blkio_delay`.
    pub const BLOCKED_IO_NS: usize = 12;
    /// The kernel keeps the counters before this index; those from here on are kept by the programs.
    pub const KEPT: usize = 13;
    /// Bytes received over the network, loopback excluded.
    pub const NETWORK_RECEIVED_BYTES: usize = 13;
    /// Bytes sent over the network, loopback excluded.
    pub const NETWORK_SENT_BYTES: usize = 14;
    /// The first of the classes of system calls; see [`super::syscall_class`].
    pub const SYSCALLS: usize = 15;
    /// How many counters there are.
    pub const LEN: usize = SYSCALLS + super::syscall_class::LEN;
}

/// Classes of system calls, in the order of their counters.
pub mod syscall_class {
    /// Reads of files, pipes and devices.
    pub const READ: usize = 0;
    /// Writes, likewise.
    pub const WRITE: usize = 1;
    /// Sockets.
    pub const NETWORK: usize = 2;
    /// Mappings and the heap.
    pub const MEMORY: usize = 3;
    /// Processes, threads and signals.
    pub const PROCESS: usize = 4;
    /// Clocks, timers and naps.
    pub const TIME: usize = 5;
    /// Waiting for others: polls, futexes, children.
    pub const WAIT: usize = 6;
    /// All others.
    pub const OTHER: usize = 7;
    /// How many classes there are.
    pub const LEN: usize = 8;
    /// System calls of a higher number are [`OTHER`].
    pub const MAX_NUMBER: usize = 512;
}

/// Sums and peaks of one key.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// See [`counter`].
    pub counters: [u64; counter::LEN],
    /// Highest resident memory of any one process, in bytes.
    pub peak_resident_bytes: u64,
    /// Processes started.
    pub forks: u64,
    /// Programs started.
    pub execs: u64,
    /// Processes ended.
    pub exits: u64,
    /// Processes ended by the out-of-memory killer.
    pub oom_kills: u64,
    /// Times that a task had to reclaim memory by itself.
    pub direct_reclaims: u64,
}

/// One way in which the processes of one key ended.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Failure {
    /// Whose processes they were.
    pub key: Key,
    /// As wait(2) gives it: exit code times 256, or the signal's number.
    pub wait_status: u32,
    /// Always 0.
    pub padding: u32,
}

/// What the iterator writes for each living task.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// Whose task it is; `buffer` is 0.
    pub key: Key,
    /// What is new in each counter since the last sample.
    pub new: [u64; counter::LEN],
    /// Highest resident memory so far, in bytes; 0 for all but a process's first thread.
    pub peak_resident_bytes: u64,
    /// Resident memory now, in bytes; likewise.
    pub resident_bytes: u64,
    /// When the task began, in nanoseconds since boot.
    pub start_boottime_ns: u64,
    /// When it was last put onto a CPU, by the scheduler's own clock.
    pub last_arrival_ns: u64,
    /// The third, fourth and fifth argument of the system call in which it sleeps.
    pub arguments: [u64; 3],
    /// Thread id in the first pid namespace.
    pub pid: u32,
    /// Process id in the first pid namespace.
    pub tgid: u32,
    /// 1 if this is the first thread of a process that lives.
    pub process: u32,
    /// 1 if this thread runs or can run again.
    pub thread: u32,
    /// The kernel's state of it (`__state`), bit by bit.
    pub state: u32,
    /// Not 0 if a freezer is to hold it: it does once the task waits where a signal reaches it.
    pub frozen: u32,
    /// Number of the system call in which it sleeps; [`NO_CALL`] if it does not, or that is not known.
    pub call: u32,
    /// Always 0.
    pub padding: u32,
}

/// What has been accounted of a living task.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accounted {
    /// When the task began, in nanoseconds since boot.
    pub start_boottime_ns: u64,
    /// The counters that the kernel keeps.
    pub counters: [u64; counter::KEPT],
}

/// What the programs have counted of a living task since the iterator last came by.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observed {
    /// When the task began, in nanoseconds since boot: tells it from an older one at the same address.
    pub start_boottime_ns: u64,
    /// The counters from [`counter::KEPT`] on.
    pub counters: [u64; counter::LEN - counter::KEPT],
}

/// What the programs cost on one CPU.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Time between their first and last instruction, in nanoseconds.
    pub ns: u64,
    /// Runs.
    pub runs: u64,
    /// Runs until the next one that is timed.
    pub until_timed: u64,
}

/// Indices into the control array.
pub mod control {
    /// Which buffer (0 or 1) the programs aggregate into.
    pub const BUFFER: u32 = 0;
    /// The agent's own process id as the first pid namespace sees it; written by the iterator.
    pub const OWN_TGID: u32 = 1;
    /// Victims of the out-of-memory killer that have not exited yet; as long as there are none, no exit looks for itself among them.
    pub const VICTIMS: u32 = 2;
    /// No task that began after this moment (nanoseconds since boot) has been accounted while it lived: its exit need not look
    /// for what was. All may have been, while a sample runs.
    pub const SHOWN_BOOTTIME_NS: u32 = 3;
    /// Process id of the agent's helper, as the first pid namespace sees it; 0 while there is none. Whatever the agent starts is its helper;
    /// one that is older than the programs is written by the agent.
    pub const HELPER_TGID: u32 = 4;
    /// The other helper, while there are two: one reads GPUs, one asks the container runtime.
    pub const SECOND_HELPER_TGID: u32 = 5;
    /// Not 0 while runs of pipelines are not followed.
    pub const RUNS_ARE_OFF: u32 = 6;
    /// Length of the array.
    pub const LEN: u32 = 7;
}

/// Indices into the array of drop counters.
pub mod dropped {
    /// Events that found no free key and went to an overflow row: counted, but not attributed.
    pub const MAP_OVERFLOW: u32 = 0;
    /// Samples of a living task that could not be remembered: accounted when it exits.
    pub const UNTRACKED: u32 = 1;
    /// Victims of the out-of-memory killer that could not be remembered.
    pub const OOM_VICTIM: u32 = 2;
    /// Tasks whose identity could not be read, or not in which call they sleep.
    pub const UNREADABLE: u32 = 3;
    /// Ways to end that found no free place: the end is counted, how it came is not.
    pub const FAILURES: u32 = 4;
    /// Tasks whose network traffic or system calls found no free place.
    pub const OBSERVED: u32 = 5;
    /// Tasks that were accounted while they lived and whose exit was not shown: found when a younger task has their address.
    pub const MISSED_EXIT: u32 = 6;
    /// Length of the array.
    pub const LEN: u32 = 7;
}

#[cfg(feature = "user")]
mod user {
    use super::{Accounted, CgroupId, CgroupName, Cost, Failure, Key, Observed, Offsets, Process, Task, Totals};

    macro_rules! plain {
        ($($name:ty),*) => { $(
            // SAFETY: repr(C), Copy, made of integers only and without padding.
            unsafe impl aya::Pod for $name {}
        )* };
    }
    plain!(Accounted, CgroupId, CgroupName, Cost, Failure, Key, Observed, Offsets, Process, Task, Totals);
}

// Padding would make equal keys differ.
const _: () = {
    assert!(size_of::<Executable>() == 2 * 8 + 2 * 4);
    assert!(size_of::<Key>() == 3 * 8 + size_of::<Executable>() + 4 + 4 + COMM_BYTES);
    assert!(size_of::<Process>() == 8 + size_of::<Executable>() + COMM_BYTES + 2 * 4);
    assert!(size_of::<CgroupId>() == 2 * 8);
    assert!(size_of::<CgroupName>() == 8 + CGROUP_NAME_BYTES);
    assert!(size_of::<Totals>() == (counter::LEN + 6) * 8);
    assert!(size_of::<Failure>() == size_of::<Key>() + 2 * 4);
    assert!(size_of::<Task>() == size_of::<Key>() + (counter::LEN + 7) * 8 + 8 * 4);
    assert!(size_of::<Accounted>() == (1 + counter::KEPT) * 8);
    assert!(size_of::<Offsets>() == 70 * 4 + 8);
};
