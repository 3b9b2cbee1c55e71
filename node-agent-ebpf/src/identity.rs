//! Whose task it is.
//!
//! A thread is booked under its process's name. What is read here stays readable until the task is freed: its
//! credentials and its place in the cgroup trees are released after `sched_process_free`
//! (<https://github.com/torvalds/linux/blob/v6.12/kernel/fork.c#L979-L1000>).

use crate::{
    fields::{Address, offset},
    maps::CONTROL,
};
use aya_ebpf::helpers::bpf_probe_read_kernel_str_bytes;
use node_agent_ebpf::{COMM_BYTES, Key, control, hierarchy};

/// `PF_KTHREAD`, unchanged since Linux 2.6: <https://github.com/torvalds/linux/blob/v6.12/include/linux/sched.h#L1694>
const PF_KTHREAD: u32 = 0x0020_0000;
/// The root of every kernfs tree has inode number 1.
const ROOT_ID: u64 = 1;

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

#[inline(always)]
fn cgroup_id(cgroup: Option<Address>) -> u64 {
    cgroup
        .and_then(|cgroup| cgroup.follow(offset!(cgroup_kn)))
        .and_then(|node| node.read(offset!(kn_id)))
        .unwrap_or(ROOT_ID)
}

#[inline(always)]
fn cgroup_of_subsystem(css_set: Address, at: u32) -> u64 {
    cgroup_id(css_set.follow(at).and_then(|css| css.follow(offset!(css_cgroup))))
}

/// Fills the key's cgroup: the version 2 tree if the task is below its root there, else a version 1 tree.
#[inline(always)]
fn cgroup(task: Address, key: &mut Key) {
    let Some(css_set) = task.follow(offset!(task_cgroups)) else { return };
    let mut id = cgroup_id(css_set.follow(offset!(css_set_v2)));
    let mut tree = hierarchy::V2;
    if id == ROOT_ID {
        id = cgroup_of_subsystem(css_set, offset!(css_set_cpuacct));
        tree = hierarchy::V1_CPUACCT;
    }
    if id == ROOT_ID {
        id = cgroup_of_subsystem(css_set, offset!(css_set_pids));
        tree = hierarchy::V1_PIDS;
    }
    if id != ROOT_ID {
        key.cgroup_id = id;
        key.hierarchy = tree;
    }
}

/// The key of a task; `None` if it cannot be read.
#[inline(always)]
pub(crate) fn key_of(task: Address) -> Option<Key> {
    let mut key = Key {
        cgroup_id: 0,
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
    cgroup(task, &mut key);
    Some(key)
}
