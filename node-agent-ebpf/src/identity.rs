//! Whose task it is.
//!
//! A thread is booked under its process's name. What is read here stays readable until the task is freed: its
//! credentials and its place in the cgroup trees are released after `sched_process_free`
//! (<https://github.com/torvalds/linux/blob/v6.12/kernel/fork.c#L979-L1000>).

use crate::{
    cgroup,
    fields::{Address, offset},
    lineage,
    maps::CONTROL,
};
use aya_ebpf::helpers::bpf_probe_read_kernel_str_bytes;
use node_agent_ebpf::{COMM_BYTES, Key, control, hierarchy};

/// `PF_KTHREAD`, unchanged since Linux 2.6: <https://github.com/torvalds/linux/blob/v6.12/include/linux/sched.h#L1694>
const PF_KTHREAD: u32 = 0x0020_0000;

#[inline(always)]
pub(crate) fn control(index: u32) -> u64 {
    CONTROL.get(index).copied().unwrap_or(0)
}

#[inline(always)]
fn comm(task: Address, to: &mut [u8; COMM_BYTES]) {
    let name = (task.0 + u64::from(offset!(task_comm))) as *const u8;
    // SAFETY: the helper checks the address and writes at most the buffer's length; on failure the name stays empty.
    let _ = unsafe { bpf_probe_read_kernel_str_bytes(name, to) };
}

/// The key of a task; `None` if it cannot be read.
#[inline(always)]
pub(crate) fn key_of(task: Address) -> Option<Key> {
    let mut key = Key {
        cgroup_id: 0,
        task_id: 0,
        uid: 0,
        hierarchy: hierarchy::ROOT,
        kernel_thread: 0,
        own: 0,
        buffer: 0,
        comm: [0; COMM_BYTES],
        parent_comm: [0; COMM_BYTES],
    };
    let leader = task.follow(offset!(task_group_leader))?;
    comm(leader, &mut key.comm);
    if let Some(parent) = task.follow(offset!(task_real_parent)) {
        comm(parent.follow(offset!(task_group_leader)).unwrap_or(parent), &mut key.parent_comm);
    }
    key.uid = task.follow(offset!(task_cred))?.read(offset!(cred_uid))?;
    let flags: u32 = task.read(offset!(task_flags))?;
    key.kernel_thread = u8::from(flags & PF_KTHREAD != 0);
    let tgid: u32 = task.read(offset!(task_tgid))?;
    key.own = u8::from(u64::from(tgid) == control(control::OWN_TGID));
    cgroup::place(task, &mut key);
    lineage::place(task, &mut key);
    Some(key)
}
