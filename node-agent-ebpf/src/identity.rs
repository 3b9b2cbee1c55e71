//! Whose task it is.
//!
//! A thread is booked under its process's name. What is read here stays readable until the task is freed: its
//! credentials and its place in the cgroup trees are released after `sched_process_free`
//! (<https://github.com/torvalds/linux/blob/v6.12/kernel/fork.c#L979-L1000>).

use crate::{
    cgroup,
    fields::{Address, name, no_name, offset, zero},
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

/// The bytes of a word before its first zero byte; the other bytes are zero.
#[inline(always)]
fn before_zero(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    // Little-endian, as all that this is built for: the lowest byte comes first. Its highest bit is set in the first zero byte, and
    // perhaps in later bytes.
    let zeros = word.wrapping_sub(ONES) & !word & (ONES << 7);
    word & ((zeros & zeros.wrapping_neg()) >> 7).wrapping_sub(1)
}

/// A task's name, padded with zeros; the kernel itself does not always pad it.
#[inline(always)]
pub(crate) fn comm<const TYPED: bool>(task: Address<TYPED>, to: &mut [u8; COMM_BYTES]) {
    if !TYPED {
        // SAFETY: the helper checks the address and writes at most the buffer's length; on failure the name stays empty.
        let _ = unsafe { bpf_probe_read_kernel_str_bytes(task.field(offset!(task_comm)), to) };
        return;
    }
    let first = before_zero(task.read(offset!(task_comm)).unwrap_or(0));
    let rest = before_zero(task.read(offset!(task_comm) + 8).unwrap_or(0));
    // All ones if the first half has no zero, else none: without a branch, of which the kernel's verifier would follow both ways.
    let goes_on = ((first >> 56).wrapping_neg() >> 63).wrapping_neg();
    // The last byte is a zero, also while another thread writes the name.
    let rest = rest & goes_on & (u64::MAX >> 8);
    *to = name([first, rest]);
}

/// The key of a task, without the task of a run; `None` if it cannot be read.
#[inline(always)]
pub(crate) fn key_of<const TYPED: bool>(task: Address<TYPED>) -> Option<Key> {
    let mut key = Key {
        cgroup_id: zero(),
        task_id: zero(),
        uid: 0,
        hierarchy: hierarchy::ROOT,
        kernel_thread: 0,
        own: 0,
        buffer: 0,
        comm: no_name(),
        parent_comm: no_name(),
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
    Some(key)
}
