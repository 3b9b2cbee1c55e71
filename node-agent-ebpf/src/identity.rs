//! Whose task it is, and what it executes.
//!
//! A thread counts under its process's name and executable. Credentials and the place in the cgroup trees stay readable until the
//! task is freed: they are released after `sched_process_free`
//! (<https://github.com/torvalds/linux/blob/v6.12/kernel/fork.c#L979-L1000>). Its memory, and with it the executable, is gone by then, and
//! the task holds no reference to its parent and its first thread any more: what is needed of these is remembered in
//! [`PROCESSES`] when the process starts, when it starts a program, and at each sample.

use crate::{
    cgroup,
    fields::{Address, name, no_name, offset, zero},
    maps::{CONTROL, PROCESSES},
};
use aya_ebpf::helpers::bpf_probe_read_kernel_str_bytes;
use node_agent_ebpf::{COMM_BYTES, Executable, Key, MAX_PROCESSES, Process, control, hierarchy};

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

/// From Linux 6.13 on the kernel notes in this bit that somebody has asked for the time:
/// <https://github.com/torvalds/linux/blob/v6.13/include/linux/fs.h#L1667-L1680>
const CTIME_QUERIED: u32 = 1 << 31;

#[inline(always)]
fn no_executable() -> Executable {
    Executable { inode: zero(), changed_ns: zero(), device: 0, padding: 0 }
}

/// The file that a living task executes; inode 0 if it has released its memory, or never had any.
#[inline(always)]
fn executable<const TYPED: bool>(task: Address<TYPED>) -> Option<Executable> {
    let file = task.follow(offset!(task_mm))?.follow(offset!(mm_exe_file))?;
    let inode = file.follow(offset!(file_inode))?;
    let seconds: u64 = inode.read(offset!(inode_changed_s))?;
    let nanoseconds: u32 = inode.read(offset!(inode_changed_ns))?;
    Some(Executable {
        inode: inode.read(offset!(inode_number))?,
        changed_ns: seconds.wrapping_mul(1_000_000_000).wrapping_add(u64::from(nanoseconds & !CTIME_QUERIED)),
        device: inode.follow(offset!(inode_super_block))?.read(offset!(super_block_device))?,
        padding: 0,
    })
}

#[inline(always)]
fn slot(tgid: u32) -> Option<*mut Process> {
    PROCESSES.get_ptr_mut(tgid & (MAX_PROCESSES - 1))
}

/// What is remembered of this task's process.
///
/// A first thread began when its process did, also if it is another thread that started a program: that takes over pid and start of the
/// first one (<https://github.com/torvalds/linux/blob/v6.12/fs/exec.c#L1100-L1130>). So an older process that had this id, and whose successor's
/// fork was not seen, lends it nothing. Of another thread no more is known than that it began no earlier; a process that has its id by
/// now began later.
#[inline(always)]
fn remembered<const TYPED: bool>(task: Address<TYPED>, tgid: u32) -> Option<*mut Process> {
    let slot = slot(tgid)?;
    let start_boottime_ns: u64 = task.read(offset!(task_start_boottime))?;
    let pid: u32 = task.read(offset!(task_pid))?;
    // SAFETY: a live map value.
    let (of, start) = unsafe { ((*slot).tgid, core::ptr::read_volatile(&raw const (*slot).start_boottime_ns)) };
    let may_be_its = if pid == tgid { start == start_boottime_ns } else { start <= start_boottime_ns };
    (of == tgid && start != 0 && may_be_its).then_some(slot)
}

/// Remembers what the process of this task, which is its first thread, executes and is called.
#[inline(always)]
pub(crate) fn remember<const TYPED: bool>(task: Address<TYPED>, key: &Key) {
    let (Some(tgid), Some(start_boottime_ns)) =
        (task.read::<u32>(offset!(task_tgid)), task.read::<u64>(offset!(task_start_boottime)))
    else {
        return;
    };
    let Some(slot) = slot(tgid) else { return };
    // SAFETY: a live map value. Whoever reads it meanwhile finds nobody there.
    unsafe {
        core::ptr::write_volatile(&raw mut (*slot).start_boottime_ns, zero());
        // Word by word: the compiler would call `memmove`, a loop over single bytes that takes longer than all the rest.
        let (to, from) = ((&raw mut (*slot).executable).cast::<u64>(), (&raw const key.executable).cast::<u64>());
        core::ptr::write_volatile(to, core::ptr::read_volatile(from));
        core::ptr::write_volatile(to.add(1), core::ptr::read_volatile(from.add(1)));
        core::ptr::write_volatile(to.add(2), core::ptr::read_volatile(from.add(2)));
        let (to, from) = ((&raw mut (*slot).comm).cast::<u64>(), (&raw const key.comm).cast::<u64>());
        core::ptr::write_volatile(to, core::ptr::read_volatile(from));
        core::ptr::write_volatile(to.add(1), core::ptr::read_volatile(from.add(1)));
        (*slot).tgid = tgid;
        core::ptr::write_volatile(&raw mut (*slot).start_boottime_ns, start_boottime_ns);
    }
}

/// Remembers it again if its place was taken.
#[inline(always)]
pub(crate) fn keep_remembered<const TYPED: bool>(task: Address<TYPED>, tgid: u32, key: &Key) {
    let is_known = remembered(task, tgid)
        // SAFETY: a live map value.
        .is_some_and(|process| unsafe { (*process).executable.inode == key.executable.inode });
    if !is_known && key.executable.inode != 0 {
        remember(task, key);
    }
}

/// The key of a task that lives, without the task of a run; `None` if it cannot be read.
#[inline(always)]
pub(crate) fn key_of<const TYPED: bool>(task: Address<TYPED>) -> Option<Key> {
    let (mut key, tgid) = place_of(task)?;
    comm(task.follow(offset!(task_group_leader))?, &mut key.comm);
    if key.kernel_thread == 0 {
        key.executable = executable(task).unwrap_or(no_executable());
        if key.executable.inode == 0 {
            recall(task, tgid, &mut key);
        }
    }
    Some(key)
}

/// The key of a task that is freed.
#[inline(always)]
pub(crate) fn key_of_freed<const TYPED: bool>(task: Address<TYPED>) -> Option<Key> {
    let (mut key, tgid) = place_of(task)?;
    let is_remembered = key.kernel_thread == 0 && recall(task, tgid, &mut key);
    // A process goes by its first thread's own name, which it may have changed since it was remembered.
    if !is_remembered || task.read(offset!(task_pid)) == Some(tgid) {
        comm(task, &mut key.comm);
    }
    Some(key)
}

/// Fills in what is remembered; false if that is nothing.
#[inline(always)]
fn recall<const TYPED: bool>(task: Address<TYPED>, tgid: u32, key: &mut Key) -> bool {
    let Some(process) = remembered(task, tgid) else { return false };
    // SAFETY: a live map value.
    unsafe {
        key.executable = (*process).executable;
        // Word by word: the compiler would call `memcpy`, a loop.
        key.comm = name(core::ptr::read_volatile((&raw const (*process).comm).cast()));
    }
    true
}

#[inline(always)]
pub(crate) fn is_kernel_thread<const TYPED: bool>(task: Address<TYPED>) -> bool {
    task.read::<u32>(offset!(task_flags)).unwrap_or(0) & PF_KTHREAD != 0
}

/// A key with what a task tells of itself, and its process id.
#[inline(always)]
fn place_of<const TYPED: bool>(task: Address<TYPED>) -> Option<(Key, u32)> {
    let mut key = Key {
        cgroup_id: zero(),
        cgroup_v1_id: zero(),
        task_id: zero(),
        executable: no_executable(),
        uid: 0,
        hierarchy: hierarchy::ROOT,
        kernel_thread: 0,
        own: 0,
        buffer: 0,
        comm: no_name(),
    };
    key.uid = task.follow(offset!(task_cred))?.read(offset!(cred_uid))?;
    key.kernel_thread = u8::from(is_kernel_thread(task));
    let tgid: u32 = task.read(offset!(task_tgid))?;
    let number = u64::from(tgid);
    let own = [control::OWN_TGID, control::HELPER_TGID, control::SECOND_HELPER_TGID];
    key.own = u8::from(own.iter().any(|slot| number == control(*slot)));
    cgroup::place(task, &mut key);
    Some((key, tgid))
}
