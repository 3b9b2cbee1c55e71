//! The iterator over all tasks: one read per heartbeat.

use crate::{
    aggregate::{add, count_drop},
    cost::Run,
    fields::{Address, offset, zero},
    identity::{control, keep_remembered, key_of},
    lineage::{self, now_ns},
    maps::{ACCOUNTED, CONTROL, RECORD},
    resident::{Resident, resident},
    sums::{observed, since, sums, was_missed},
    waits::note_call,
};
use aya_ebpf::{
    bindings::seq_file,
    helpers::{bpf_get_current_pid_tgid, generated::bpf_seq_write},
};
use core::ffi::c_void;
use node_agent_ebpf::{Task, control, counter, dropped};

/// <https://github.com/torvalds/linux/blob/v6.12/include/linux/sched.h#L117-L120>
const EXIT_DEAD: i32 = 0x10;

#[repr(C)]
struct IteratorMeta {
    seq: *mut seq_file,
}

#[repr(C)]
struct IteratorContext {
    meta: *const IteratorMeta,
    task: *const c_void,
}

/// See [`control::SHOWN_BOOTTIME_NS`].
#[inline(always)]
fn shown_until(boottime_ns: u64) {
    let _ = CONTROL.set(control::SHOWN_BOOTTIME_NS, &boottime_ns, 0);
}

/// 1 if the task is the first thread of a process of which any thread lives.
#[inline(always)]
fn is_live_process<const TYPED: bool>(task: Address<TYPED>, pid: u32, tgid: u32) -> u32 {
    let live: i32 = task.follow(offset!(task_signal)).and_then(|signal| signal.read(offset!(signal_live))).unwrap_or(1);
    u32::from(pid == tgid && live > 0)
}

/// `JOBCTL_TRAP_FREEZE`. The bit `frozen` is also set of tasks that are stopped or wait for a child of vfork:
/// <https://github.com/torvalds/linux/blob/v6.12/include/linux/sched/jobctl.h>
const TRAP_FREEZE: u32 = 1 << 23;

/// Not 0 if a freezer wants to hold the task, and its state does not say so.
#[inline(always)]
fn frozen<const TYPED: bool>(task: Address<TYPED>) -> u32 {
    let by_flag = task.read::<u32>(offset!(task_flags)).unwrap_or(0) & offset!(flag_frozen);
    by_flag | (task.read::<u32>(offset!(task_jobctl)).unwrap_or(0) & TRAP_FREEZE)
}

/// Writes one record per task. aya has no macro for iterators.
#[unsafe(link_section = "iter/task")]
#[unsafe(no_mangle)]
unsafe extern "C" fn tasks(context: *const IteratorContext) -> i32 {
    // SAFETY: the kernel passes a context of this shape; the last call has no task.
    let (meta, task) = unsafe { ((*context).meta, (*context).task) };
    if task.is_null() {
        shown_until(now_ns());
    } else {
        let run = Run::begin();
        // SAFETY: as above.
        show(unsafe { (*meta).seq }, Address::<true>::new(task as u64));
        run.end();
    }
    0
}

#[inline(always)]
fn show<const TYPED: bool>(seq: *mut seq_file, task: Address<TYPED>) {
    let Some(exit_state) = task.read::<i32>(offset!(task_exit_state)) else { return };
    if exit_state & EXIT_DEAD != 0 {
        return;
    }
    let (Some(pid), Some(tgid)) = (task.read::<u32>(offset!(task_pid)), task.read::<u32>(offset!(task_tgid))) else {
        return count_drop(dropped::UNREADABLE);
    };
    let reader = (bpf_get_current_pid_tgid() >> 32) as u32;
    if tgid == reader {
        let _ = CONTROL.set(control::OWN_TGID, &u64::from(reader), 0);
    }
    let (Some(mut key), Some(now)) = (key_of(task), sums(task)) else { return count_drop(dropped::UNREADABLE) };
    if pid == tgid {
        keep_remembered(task, tgid, &key);
    }
    lineage::place(task, lineage::entry_of(task), &mut key);
    let Some(record) = RECORD.get_ptr_mut(0) else { return };
    // SAFETY: this CPU's own value, and no other program uses it. One reader runs at a time, and a program does not move
    // from CPU to CPU.
    let record: &mut Task = unsafe { &mut *record };
    record.key = key;
    record.start_boottime_ns = now.start_boottime_ns;
    record.pid = pid;
    record.tgid = tgid;
    record.process = is_live_process(task, pid, tgid);
    record.thread = u32::from(exit_state == 0);
    record.state = task.read(offset!(task_state)).unwrap_or(0);
    record.frozen = frozen(task);
    note_call(task, record);
    record.last_arrival_ns = task.read(offset!(task_last_arrival)).unwrap_or(0);
    let memory = if record.process == 1 { resident(task) } else { Resident { now: 0, peak: 0 } };
    record.resident_bytes = memory.now;
    record.peak_resident_bytes = memory.peak;

    if now.start_boottime_ns > control(control::SHOWN_BOOTTIME_NS) {
        shown_until(u64::MAX);
    }
    let entry = ACCOUNTED.get_ptr_mut(&task.number());
    // SAFETY: a live map value. Nobody else touches it meanwhile, since one reader runs at a time and a task that has not
    // exited is not freed.
    let before = entry.map(|entry| unsafe { &*entry });
    let remembered = before.is_some() || ACCOUNTED.insert(&task.number(), &now, 0).is_ok();
    if !remembered {
        count_drop(dropped::UNTRACKED);
    }
    let mut index = 0;
    while index < counter::KEPT {
        record.new[index] = if remembered { since(&now, before, index) } else { zero() };
        index += 1;
    }
    let observed = observed(task, now.start_boottime_ns);
    while index < counter::LEN {
        // SAFETY: a live map value.
        record.new[index] = observed.map_or(zero(), |observed| unsafe { (*observed).counters[index - counter::KEPT] });
        index += 1;
    }
    // SAFETY: seq comes from the kernel; the record is a map value of this size.
    let written = unsafe { bpf_seq_write(seq, (&raw const *record).cast(), size_of::<Task>() as u32) };
    if written != 0 {
        // The kernel's page is full: it shows the same task again, which must then find what it found now.
        if entry.is_none() {
            let _ = ACCOUNTED.remove(&task.number());
        }
        return;
    }
    if let Some(entry) = entry {
        was_missed(&now, before);
        // SAFETY: as above.
        unsafe { *entry = now };
    }
    if let Some(observed) = observed {
        // What was read is taken away again, and what came meanwhile stays.
        let mut index = counter::KEPT;
        while index < counter::LEN {
            let read = record.new[index];
            if read != 0 {
                // SAFETY: a live map value.
                add(unsafe { &raw mut (*observed).counters[index - counter::KEPT] }, read.wrapping_neg());
            }
            index += 1;
        }
    }
}
