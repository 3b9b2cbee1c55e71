//! Forks, program starts and exits.
//!
//! An exit is counted at `sched_process_free` and not at `sched_process_exit`: only there is the scheduler's sum final
//! (at exit it is stale by up to a tick and holds 25 % of the truth for processes of 0.4 ms), and everything that identifies the task can still be read. Its memory is gone by then, so the
//! peak is read at `sched_process_exit`, where the kernel still shows it (6.16 and later). `signal_struct.maxrss` is refused:
//! an exec puts the parent's memory into it (measured: 128 MB for `/bin/true`).

use crate::{
    aggregate::{add, count_drop, failure, row, row_or_new},
    cgroup::remember_names,
    cost::Run,
    fields::{Address, offset},
    identity::{control, is_kernel_thread, key_of, key_of_freed, remember},
    lineage,
    maps::{ACCOUNTED, CONTROL},
    memory::was_victim,
    programs,
    resident::resident,
    sums::{since, sums, take_observed, was_missed},
    wait_status::{is_end_told_at_free, wait_status},
};
use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};
use node_agent_ebpf::{Key, Totals, control, counter, dropped, runs::Lineage};

#[btf_tracepoint(function = "sched_process_fork")]
fn process_fork(context: BtfTracePointContext) -> i32 {
    let run = Run::begin();
    forked(Address::<true>::new(context.arg::<u64>(0)), Address::<true>::new(context.arg::<u64>(1)));
    run.end();
    0
}

#[inline(always)]
fn forked<const TYPED: bool>(parent: Address<TYPED>, child: Address<TYPED>) {
    let (Some(pid), Some(tgid)) = (child.read::<u32>(offset!(task_pid)), child.read::<u32>(offset!(task_tgid))) else {
        return count_drop(dropped::UNREADABLE);
    };
    if pid != tgid {
        return;
    }
    if parent.read::<u32>(offset!(task_tgid)).map(u64::from) == Some(control(control::OWN_TGID)) {
        let is_first = control(control::HELPER_TGID) == 0;
        let slot = if is_first { control::HELPER_TGID } else { control::SECOND_HELPER_TGID };
        let _ = CONTROL.set(slot, &u64::from(tgid), 0);
    }
    let task_id = lineage::forked(parent, child, tgid);
    let Some(mut key) = key_of(child) else { return count_drop(dropped::UNREADABLE) };
    remember(child, &key);
    // The kernel itself starts a program now and then (a module's loader): that is the kernel's doing until the program begins.
    key.kernel_thread |= u8::from(is_kernel_thread(parent));
    key.task_id = task_id;
    if let Some((row, is_new)) = row_or_new(&mut key) {
        // SAFETY: the row is a live map value.
        add(unsafe { &raw mut (*row).forks }, 1);
        if is_new {
            remember_names(child, &key);
        }
    }
}

#[btf_tracepoint(function = "sched_process_exec")]
fn process_exec(context: BtfTracePointContext) -> i32 {
    let run = Run::begin();
    let task = Address::<true>::new(context.arg::<u64>(0));
    let task_id = programs::started(task, Address::<true>::new(context.arg::<u64>(2)));
    begun(task, task_id);
    run.end();
    0
}

#[inline(always)]
fn begun<const TYPED: bool>(task: Address<TYPED>, task_id: u64) {
    let Some(mut key) = key_of(task) else { return count_drop(dropped::UNREADABLE) };
    remember(task, &key);
    key.task_id = task_id;
    if let Some((row, is_new)) = row_or_new(&mut key) {
        // SAFETY: the row is a live map value.
        add(unsafe { &raw mut (*row).execs }, 1);
        if is_new {
            remember_names(task, &key);
        }
    }
}

/// Attached only where the kernel says which thread is the last one and shows exits before it takes the memory away:
/// <https://github.com/torvalds/linux/blob/v6.16/kernel/exit.c#L936-L945>
#[btf_tracepoint(function = "sched_process_exit")]
fn process_exit(context: BtfTracePointContext) -> i32 {
    let is_last_thread = context.arg::<u64>(1) & 0xff != 0;
    if is_last_thread {
        let run = Run::begin();
        ended(Address::<true>::new(context.arg::<u64>(0)));
        run.end();
    }
    0
}

#[inline(always)]
fn ended<const TYPED: bool>(task: Address<TYPED>) {
    let Some(mut key) = key_of(task) else { return count_drop(dropped::UNREADABLE) };
    let entry = lineage::entry_of(task);
    lineage::place(task, entry, &mut key);
    let peak = resident(task).peak;
    if let Some(row) = row(&mut key) {
        // Peaks are not set atomically: of two processes of one key that end at the same moment, the lower peak may win.
        // SAFETY: the row is a live map value.
        unsafe {
            if peak > (*row).peak_resident_bytes {
                (*row).peak_resident_bytes = peak;
            }
        }
        count_exit(task, &key, row);
    }
    lineage::ended(task, entry);
}

/// Counts the end of a process, and how it came.
#[inline(always)]
fn count_exit<const TYPED: bool>(task: Address<TYPED>, key: &Key, row: *mut Totals) {
    // SAFETY: the row is a live map value.
    add(unsafe { &raw mut (*row).exits }, 1);
    let Some(wait_status) = wait_status(task) else { return count_drop(dropped::UNREADABLE) };
    if wait_status != 0 {
        failure(key, wait_status);
    }
}

#[btf_tracepoint(function = "sched_process_free")]
fn process_free(context: BtfTracePointContext) -> i32 {
    let run = Run::begin();
    let task = Address::<true>::new(context.arg::<u64>(0));
    let entry = lineage::entry_of(task);
    freed(task, entry);
    // The first thread's end is the process's: after an exec by another thread, that one has taken over its place.
    let tgid = task.read::<u32>(offset!(task_tgid));
    if task.read::<u32>(offset!(task_pid)) == tgid {
        for slot in [control::HELPER_TGID, control::SECOND_HELPER_TGID] {
            if tgid.map(u64::from) == Some(control(slot)) {
                let _ = CONTROL.set(slot, &0, 0);
            }
        }
        if is_end_told_at_free() {
            lineage::ended(task, entry);
        }
    }
    run.end();
    0
}

#[inline(always)]
fn freed<const TYPED: bool>(task: Address<TYPED>, entry: Option<*mut Lineage>) {
    let (Some(mut key), Some(now)) = (key_of_freed(task), sums(task)) else {
        count_drop(dropped::UNREADABLE);
        let _ = ACCOUNTED.remove(&task.number());
        return;
    };
    lineage::place(task, entry, &mut key);
    let Some(row) = row(&mut key) else { return };
    let may_be_accounted = now.start_boottime_ns <= control(control::SHOWN_BOOTTIME_NS);
    // SAFETY: only this program removes the entry, and nobody else looks at a task that is freed.
    let before = if may_be_accounted { unsafe { ACCOUNTED.get(&task.number()) } } else { None };
    let is_known = before.is_some() && !was_missed(&now, before);
    // What an older task used before the agent's first sample is nobody's activity now.
    if is_known || now.start_boottime_ns >= offset!(count_from_boottime_ns) {
        let mut index = 0;
        while index < counter::KEPT {
            let new = since(&now, before, index);
            if new != 0 {
                // SAFETY: the row is a live map value.
                add(unsafe { &raw mut (*row).counters[index] }, new);
            }
            index += 1;
        }
    }
    if before.is_some() {
        let _ = ACCOUNTED.remove(&task.number());
    }
    take_observed(task, now.start_boottime_ns, row);
    // Only the task that stands for its process has a signal to send at exit, also after an exec by another thread:
    // https://github.com/torvalds/linux/blob/v6.12/include/linux/sched/signal.h#L715-L718
    if is_end_told_at_free() && task.read::<i32>(offset!(task_exit_signal)).unwrap_or(-1) >= 0 {
        count_exit(task, &key, row);
    }
    if was_victim(task.read(offset!(task_pid)).unwrap_or(0)) {
        // SAFETY: the row is a live map value.
        add(unsafe { &raw mut (*row).oom_kills }, 1);
    }
}
