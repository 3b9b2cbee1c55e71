//! Plain data that the programs inside the kernel and the agent share: no logic, no allocation, the same bytes on both
//! sides.
//!
//! Every struct is `repr(C)` without hidden padding, because the kernel compares map keys byte by byte.

#![no_std]

/// Length of a task's name in the kernel (`TASK_COMM_LEN`), the closing zero included.
pub const COMM_BYTES: usize = 16;
/// Distinct keys that both buffers of the fold hold together; what comes beyond goes to the rest rows.
/// 8,192 × (56 + 64 bytes + about 48 of the kernel's own) is 1.4 MB, allocated once.
pub const MAX_FOLDED: u32 = 8_192;
/// Living tasks whose accounted share is remembered, so that their death adds only what is new. Memory is taken
/// per task (about 100 bytes) and not beforehand.
pub const MAX_TRACKED: u32 = 262_144;
/// Victims of the out-of-memory killer between the kill and the death.
pub const MAX_VICTIMS: u32 = 1_024;
/// Cgroups whose names are remembered, so that a workload that came and went between two readings still has its path.
/// 4,096 × (16 + 104 bytes + about 60 of the kernel's own) is 0.7 MB, allocated once.
pub const MAX_CGROUPS: u32 = 4_096;
/// Longest part of a cgroup's path that is remembered, the closing zero included; a container's has 77 bytes.
pub const CGROUP_NAME_BYTES: usize = 96;
/// Deepest path that is remembered. Kubernetes on systemd needs five levels.
pub const MAX_CGROUP_DEPTH: usize = 10;
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

/// By what the books of the dead are kept.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// The kernel's id of the cgroup; equal to the inode number of its directory.
    pub cgroup_id: u64,
    /// The real user.
    pub uid: u32,
    /// See [`hierarchy`].
    pub hierarchy: u8,
    /// 1 for a kernel thread.
    pub kernel_thread: u8,
    /// 1 for a task of the agent.
    pub own: u8,
    /// Which of the two buffers this entry belongs to; see [`control::BUFFER`].
    pub buffer: u8,
    /// Name of the process (its first thread), zero-padded.
    pub comm: [u8; COMM_BYTES],
    /// Name of the parent process, zero-padded.
    pub parent_comm: [u8; COMM_BYTES],
}

/// Sums and peaks of one key.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// CPU time, in nanoseconds.
    pub cpu_ns: u64,
    /// Bytes read from storage.
    pub disk_read_bytes: u64,
    /// Bytes written to storage.
    pub disk_written_bytes: u64,
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
}

/// What the iterator writes for each living task.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// Whose task it is; `buffer` is 0.
    pub key: Key,
    /// CPU time since the last reading, in nanoseconds.
    pub new_cpu_ns: u64,
    /// Bytes read from storage since the last reading.
    pub new_disk_read_bytes: u64,
    /// Bytes written to storage since the last reading.
    pub new_disk_written_bytes: u64,
    /// Highest resident memory so far, in bytes; 0 for all but a process's first thread.
    pub peak_resident_bytes: u64,
    /// 1 if this is the first thread of a process that lives.
    pub process: u32,
    /// 1 if this thread runs or can run again.
    pub thread: u32,
}

/// What has been accounted of a living task.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accounted {
    /// When the task began, in nanoseconds since boot.
    pub start_boottime_ns: u64,
    /// CPU time, in nanoseconds.
    pub cpu_ns: u64,
    /// Bytes read from storage.
    pub disk_read_bytes: u64,
    /// Bytes written to storage.
    pub disk_written_bytes: u64,
}

/// Indices into the control array.
pub mod control {
    /// Which buffer (0 or 1) the programs fold into.
    pub const BUFFER: u32 = 0;
    /// The agent's own process id as the first pid namespace sees it; written by the iterator.
    pub const OWN_TGID: u32 = 1;
    /// Length of the array.
    pub const LEN: u32 = 2;
}

/// Indices into the array of drop counters.
pub mod dropped {
    /// Events that found no free key and went to a rest row: counted, but not attributed.
    pub const FOLD_OVERFLOW: u32 = 0;
    /// Readings of a living task that could not be remembered: accounted when it dies.
    pub const UNTRACKED: u32 = 1;
    /// Victims of the out-of-memory killer that could not be remembered.
    pub const OOM_VICTIM: u32 = 2;
    /// Tasks whose identity could not be read.
    pub const UNREADABLE: u32 = 3;
    /// Length of the array.
    pub const LEN: u32 = 4;
}

/// Where each field lies in the running kernel, in bytes from the start of its struct; [`ABSENT`] if it has none.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offsets {
    /// `task_struct.pid`
    pub task_pid: u32,
    /// `task_struct.tgid`
    pub task_tgid: u32,
    /// `task_struct.flags`
    pub task_flags: u32,
    /// `task_struct.comm`
    pub task_comm: u32,
    /// `task_struct.group_leader`
    pub task_group_leader: u32,
    /// `task_struct.real_parent`
    pub task_real_parent: u32,
    /// `task_struct.cred`
    pub task_cred: u32,
    /// `task_struct.signal`
    pub task_signal: u32,
    /// `task_struct.exit_state`
    pub task_exit_state: u32,
    /// `task_struct.exit_signal`
    pub task_exit_signal: u32,
    /// `task_struct.start_boottime`
    pub task_start_boottime: u32,
    /// `task_struct.se.sum_exec_runtime`
    pub task_cpu: u32,
    /// `task_struct.ioac.read_bytes`
    pub task_read_bytes: u32,
    /// `task_struct.ioac.write_bytes`
    pub task_write_bytes: u32,
    /// `task_struct.mm`
    pub task_mm: u32,
    /// `task_struct.cgroups`
    pub task_cgroups: u32,
    /// `cred.uid`
    pub cred_uid: u32,
    /// `signal_struct.live`
    pub signal_live: u32,
    /// `mm_struct.hiwater_rss`, in pages
    pub mm_hiwater_rss: u32,
    /// The first resident-set counter in `mm_struct.rss_stat`, in pages
    pub mm_rss: u32,
    /// Bytes from one resident-set counter to the next
    pub mm_rss_stride: u32,
    /// `css_set.dfl_cgrp`
    pub css_set_v2: u32,
    /// The pointer of `cpuacct` in `css_set.subsys`
    pub css_set_cpuacct: u32,
    /// The pointer of `pids` in `css_set.subsys`
    pub css_set_pids: u32,
    /// `cgroup_subsys_state.cgroup`
    pub css_cgroup: u32,
    /// `cgroup.kn`
    pub cgroup_kn: u32,
    /// `kernfs_node.id`
    pub kn_id: u32,
    /// `kernfs_node.name`
    pub kn_name: u32,
    /// `kernfs_node.parent`
    pub kn_parent: u32,
    /// 1 if `mark_victim` passes the task, 0 if it passes the pid
    pub victim_is_task: u32,
    /// Size of a page as a power of two
    pub page_shift: u32,
    /// 1 if `sched_process_exit` says which thread is the last one, so that exits are counted there
    pub exits_counted_at_exit: u32,
    /// Tasks that began before this moment (nanoseconds since boot) count from the first reading on.
    pub count_from_boottime_ns: u64,
}

#[cfg(feature = "user")]
mod user {
    use super::{Accounted, CgroupId, CgroupName, Key, Offsets, Task, Totals};

    // SAFETY: each is repr(C), Copy, made of integers only and without padding.
    unsafe impl aya::Pod for Key {}
    // SAFETY: as above.
    unsafe impl aya::Pod for CgroupId {}
    // SAFETY: as above.
    unsafe impl aya::Pod for CgroupName {}
    // SAFETY: as above.
    unsafe impl aya::Pod for Totals {}
    // SAFETY: as above.
    unsafe impl aya::Pod for Task {}
    // SAFETY: as above.
    unsafe impl aya::Pod for Accounted {}
    // SAFETY: as above.
    unsafe impl aya::Pod for Offsets {}
}

// Padding would make equal keys differ.
const _: () = {
    assert!(size_of::<Key>() == 8 + 4 + 4 + 2 * COMM_BYTES);
    assert!(size_of::<CgroupId>() == 2 * 8);
    assert!(size_of::<CgroupName>() == 8 + CGROUP_NAME_BYTES);
    assert!(size_of::<Totals>() == 8 * 8);
    assert!(size_of::<Task>() == size_of::<Key>() + 4 * 8 + 2 * 4);
    assert!(size_of::<Accounted>() == 4 * 8);
    assert!(size_of::<Offsets>() == 32 * 4 + 8);
};
