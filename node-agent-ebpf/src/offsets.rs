//! Globals of the object that the agent fills before it loads it.

use crate::counter;

/// Where each field lies in the running kernel, in bytes from the start of its struct; [`crate::ABSENT`] if it has none.
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
    /// `task_struct.exit_code`
    pub task_exit_code: u32,
    /// `task_struct.__state`
    pub task_state: u32,
    /// `task_struct.sched_info.last_arrival`
    pub task_last_arrival: u32,
    /// `task_struct.jobctl`: version 2's freezer
    pub task_jobctl: u32,
    /// `task_struct.stack`; absent also where a helper of the kernel's says where a task's registers are (Linux 5.15)
    pub task_stack: u32,
    /// From the begin of a stack to the registers with which its task entered the kernel
    pub stack_registers: u32,
    /// The number of the system call in those registers; absent where they are not found
    pub registers_call: u32,
    /// The call's third, fourth and fifth argument there
    pub registers_arguments: [u32; 3],
    /// The word of `task_struct` that says whether the call is a 32-bit one, whose numbers are others; absent if the kernel has none
    pub task_compat: u32,
    /// Its bit there
    pub compat_bit: u32,
    /// The bit of `task_struct.flags` that says that version 1's freezer holds it; 0 where the state says so
    pub flag_frozen: u32,
    /// `task_struct.delays`; absent also while the kernel keeps no delays.
    pub task_delays: u32,
    /// The counters before [`counter::IN_TASK`]
    pub task_counters: [u32; counter::IN_TASK],
    /// `task_delay_info.blkio_delay`
    pub delays_blkio: u32,
    /// `task_struct.mm`
    pub task_mm: u32,
    /// `mm_struct.exe_file`
    pub mm_exe_file: u32,
    /// `file.f_inode`
    pub file_inode: u32,
    /// `inode.i_ino`
    pub inode_number: u32,
    /// `inode.i_sb`
    pub inode_super_block: u32,
    /// The seconds of the inode's last change
    pub inode_changed_s: u32,
    /// The nanoseconds of the inode's last change
    pub inode_changed_ns: u32,
    /// `super_block.s_dev`
    pub super_block_device: u32,
    /// `task_struct.cgroups`
    pub task_cgroups: u32,
    /// `cred.uid`
    pub cred_uid: u32,
    /// `signal_struct.live`
    pub signal_live: u32,
    /// `signal_struct.flags`
    pub signal_flags: u32,
    /// `signal_struct.group_exit_code`
    pub signal_group_exit_code: u32,
    /// `mm_struct.hiwater_rss`, in pages
    pub mm_hiwater_rss: u32,
    /// The first resident-set counter in `mm_struct.rss_stat`, in pages
    pub mm_rss: u32,
    /// Bytes from one resident-set counter to the next
    pub mm_rss_stride: u32,
    /// `css_set.dfl_cgrp`
    pub css_set_v2: u32,
    /// The pointer of `cpuacct` in `css_set.subsys`; absent where no version 1 tree with it is mounted
    pub css_set_cpuacct: u32,
    /// The pointer of `pids` in `css_set.subsys`, likewise
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
    /// `socket.sk`
    pub socket_sk: u32,
    /// `sock.__sk_common.skc_family`
    pub sock_family: u32,
    /// `sock.__sk_common.skc_daddr`: the peer's IPv4 address
    pub sock_peer4: u32,
    /// `sock.__sk_common.skc_rcv_saddr`: its own
    pub sock_own4: u32,
    /// `sock.__sk_common.skc_v6_daddr`
    pub sock_peer6: u32,
    /// `sock.__sk_common.skc_v6_rcv_saddr`
    pub sock_own6: u32,
    /// 1 if `mark_victim` passes the task, 0 if it passes the pid
    pub victim_is_task: u32,
    /// Size of a page as a power of two
    pub page_shift: u32,
    /// 1 if `sched_process_exit` says which thread is the last one, so that exits are counted there
    pub exits_counted_at_exit: u32,
    /// Tasks that began before this moment (nanoseconds since boot) count from the first sample on.
    pub count_from_boottime_ns: u64,
}
