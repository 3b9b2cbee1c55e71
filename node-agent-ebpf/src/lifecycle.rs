//! Births, program starts and deaths.
//!
//! A death is booked at `sched_process_free` and not at `sched_process_exit`: only there is the scheduler's sum final
//! (at exit it is stale by up to a tick and holds 25 % of the truth for processes of 0.4 ms), and everything that identifies the task can still be read. Its memory is gone by then, so the
//! peak is read at `sched_process_exit`, where the kernel still shows it (6.16 and later). `signal_struct.maxrss` is refused:
//! an exec puts the parent's memory into it (measured: 128 MB for `/bin/true`).

use crate::{
    cgroup::remember_names,
    fields::{Address, offset},
    fold::{add, count_drop, row},
    identity::key_of,
    ledger::{peak_resident_bytes, since, sums},
    maps::{ACCOUNTED, VICTIMS},
};
use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};
use node_agent_ebpf::dropped;

#[btf_tracepoint(function = "sched_process_fork")]
fn process_fork(context: BtfTracePointContext) -> i32 {
    let child = Address(context.arg::<u64>(1));
    let (Some(pid), Some(tgid)) = (child.read::<u32>(offset!(task_pid)), child.read::<u32>(offset!(task_tgid))) else {
        count_drop(dropped::UNREADABLE);
        return 0;
    };
    if pid != tgid {
        return 0;
    }
    let Some(mut key) = key_of(child) else {
        count_drop(dropped::UNREADABLE);
        return 0;
    };
    if let Some(row) = row(&mut key) {
        // SAFETY: the row is a live map value.
        add(unsafe { &raw mut (*row).forks }, 1);
    }
    0
}

#[btf_tracepoint(function = "sched_process_exec")]
fn process_exec(context: BtfTracePointContext) -> i32 {
    let task = Address(context.arg::<u64>(0));
    let Some(mut key) = key_of(task) else {
        count_drop(dropped::UNREADABLE);
        return 0;
    };
    remember_names(task, &key);
    if let Some(row) = row(&mut key) {
        // SAFETY: the row is a live map value.
        add(unsafe { &raw mut (*row).execs }, 1);
    }
    0
}

/// Attached only where the kernel says which thread is the last one and shows exits before it takes the memory away:
/// <https://github.com/torvalds/linux/blob/v6.16/kernel/exit.c#L936-L945>
#[btf_tracepoint(function = "sched_process_exit")]
fn process_exit(context: BtfTracePointContext) -> i32 {
    let is_last_thread = context.arg::<u64>(1) & 0xff != 0;
    if !is_last_thread {
        return 0;
    }
    let task = Address(context.arg::<u64>(0));
    let Some(mut key) = key_of(task) else {
        count_drop(dropped::UNREADABLE);
        return 0;
    };
    let peak = peak_resident_bytes(task);
    if let Some(row) = row(&mut key) {
        // Peaks are not set atomically: of two processes of one key that end at the same moment, the lower peak may win.
        // SAFETY: the row is a live map value.
        unsafe {
            add(&raw mut (*row).exits, 1);
            if peak > (*row).peak_resident_bytes {
                (*row).peak_resident_bytes = peak;
            }
        }
    }
    0
}

#[btf_tracepoint(function = "sched_process_free")]
fn process_free(context: BtfTracePointContext) -> i32 {
    let task = Address(context.arg::<u64>(0));
    let (Some(mut key), Some(now)) = (key_of(task), sums(task)) else {
        count_drop(dropped::UNREADABLE);
        let _ = ACCOUNTED.remove(&task.0);
        return 0;
    };
    let Some(row) = row(&mut key) else { return 0 };
    // SAFETY: a copy is made at once, and only this program removes the entry.
    let before = unsafe { ACCOUNTED.get(&task.0) }.copied();
    // What an older task used before the agent's first reading is nobody's activity now.
    if before.is_some() || now.start_boottime_ns >= offset!(count_from_boottime_ns) {
        let new = since(&now, before.as_ref());
        // SAFETY: the row is a live map value.
        unsafe {
            add(&raw mut (*row).cpu_ns, new.cpu_ns);
            add(&raw mut (*row).disk_read_bytes, new.disk_read_bytes);
            add(&raw mut (*row).disk_written_bytes, new.disk_written_bytes);
        }
    }
    if before.is_some() {
        let _ = ACCOUNTED.remove(&task.0);
    }
    // Elsewhere `process_exit` counts. Only the task that stands for its process has a signal to send at exit, also after an exec by another thread:
    // https://github.com/torvalds/linux/blob/v6.12/include/linux/sched/signal.h#L715-L718
    let is_counted_here = offset!(exits_counted_at_exit) == 0;
    if is_counted_here && task.read::<i32>(offset!(task_exit_signal)).unwrap_or(-1) >= 0 {
        // SAFETY: the row is a live map value.
        add(unsafe { &raw mut (*row).exits }, 1);
    }
    let pid: u32 = task.read(offset!(task_pid)).unwrap_or(0);
    if VICTIMS.get_ptr(&pid).is_some() {
        let _ = VICTIMS.remove(&pid);
        // SAFETY: the row is a live map value.
        add(unsafe { &raw mut (*row).oom_kills }, 1);
    }
    0
}
