//! The iterator over all tasks: one read per heartbeat.

use crate::{
    fields::{Address, offset},
    fold::count_drop,
    identity::key_of,
    maps::{ACCOUNTED, CONTROL},
};
use aya_ebpf::{
    bindings::seq_file,
    helpers::{bpf_get_current_pid_tgid, generated::bpf_seq_write},
};
use core::ffi::c_void;
use node_agent_ebpf::{Accounted, Task, control, dropped};

/// <https://github.com/torvalds/linux/blob/v6.12/include/linux/sched.h#L117-L120>
const EXIT_DEAD: i32 = 0x10;
/// `MM_FILEPAGES`, `MM_ANONPAGES` and `MM_SHMEMPAGES`: <https://github.com/torvalds/linux/blob/v6.12/include/linux/mm_types_task.h#L25-L31>
const RESIDENT_COUNTERS: [u32; 3] = [0, 1, 3];

#[repr(C)]
struct IteratorMeta {
    seq: *mut seq_file,
}

#[repr(C)]
struct IteratorContext {
    meta: *const IteratorMeta,
    task: *const c_void,
}

/// The task's own sums, as they stand now.
#[inline(always)]
pub(crate) fn sums(task: Address) -> Option<Accounted> {
    Some(Accounted {
        start_boottime_ns: task.read(offset!(task_start_boottime))?,
        cpu_ns: task.read(offset!(task_cpu))?,
        disk_read_bytes: task.read(offset!(task_read_bytes)).unwrap_or(0),
        disk_written_bytes: task.read(offset!(task_write_bytes)).unwrap_or(0),
    })
}

/// What `now` adds to what was accounted before.
#[inline(always)]
pub(crate) fn since(now: &Accounted, before: Option<&Accounted>) -> Accounted {
    match before {
        Some(before) if before.start_boottime_ns == now.start_boottime_ns => Accounted {
            start_boottime_ns: now.start_boottime_ns,
            cpu_ns: now.cpu_ns.saturating_sub(before.cpu_ns),
            disk_read_bytes: now.disk_read_bytes.saturating_sub(before.disk_read_bytes),
            disk_written_bytes: now.disk_written_bytes.saturating_sub(before.disk_written_bytes),
        },
        _ => *now,
    }
}

/// Peak resident memory of a process: the high-water mark, which the kernel brings up to date only when memory
/// is given back, or what is resident now. Both are as approximate as the kernel's own `VmHWM`.
#[inline(always)]
pub(crate) fn peak_resident_bytes(task: Address) -> u64 {
    let Some(mm) = task.follow(offset!(task_mm)) else { return 0 };
    let mark: u64 = mm.read(offset!(mm_hiwater_rss)).unwrap_or(0);
    let mut resident = 0_u64;
    if let Some(first) = mm_counter(mm, RESIDENT_COUNTERS[0]) {
        resident += first;
        resident += mm_counter(mm, RESIDENT_COUNTERS[1]).unwrap_or(0);
        resident += mm_counter(mm, RESIDENT_COUNTERS[2]).unwrap_or(0);
    }
    (if mark > resident { mark } else { resident }) << (offset!(page_shift) & 31)
}

#[inline(always)]
fn mm_counter(mm: Address, index: u32) -> Option<u64> {
    let first = offset!(mm_rss);
    if first == node_agent_ebpf::ABSENT {
        return None;
    }
    let pages: i64 = mm.read(first + index * offset!(mm_rss_stride))?;
    Some(if pages > 0 { pages as u64 } else { 0 })
}

/// 1 if the task is the first thread of a process of which any thread lives.
#[inline(always)]
fn is_live_process(task: Address) -> u32 {
    let pid: Option<u32> = task.read(offset!(task_pid));
    let tgid: Option<u32> = task.read(offset!(task_tgid));
    let live: i32 = task.follow(offset!(task_signal)).and_then(|signal| signal.read(offset!(signal_live))).unwrap_or(1);
    u32::from(pid == tgid && live > 0)
}

/// Writes one record per task. aya has no macro for iterators.
#[unsafe(link_section = "iter/task")]
#[unsafe(no_mangle)]
unsafe extern "C" fn tasks(context: *const IteratorContext) -> i32 {
    // SAFETY: the kernel passes a context of this shape; the last call has no task.
    let (meta, task) = unsafe { ((*context).meta, (*context).task) };
    if task.is_null() {
        return 0;
    }
    let task = Address(task as u64);
    let Some(exit_state) = task.read::<i32>(offset!(task_exit_state)) else { return 0 };
    if exit_state & EXIT_DEAD != 0 {
        return 0;
    }
    let reader = (bpf_get_current_pid_tgid() >> 32) as u32;
    if task.read::<u32>(offset!(task_tgid)) == Some(reader) {
        let _ = CONTROL.set(control::OWN_TGID, &u64::from(reader), 0);
    }
    let (Some(key), Some(now)) = (key_of(task), sums(task)) else {
        count_drop(dropped::UNREADABLE);
        return 0;
    };
    // SAFETY: a copy is made at once; the entry cannot be replaced meanwhile, since one reader runs at a time and a
    // task that is not dead is not freed.
    let before = unsafe { ACCOUNTED.get(&task.0) }.copied();
    let new = since(&now, before.as_ref());
    let process = is_live_process(task);
    let mut record = Task {
        key,
        new_cpu_ns: new.cpu_ns,
        new_disk_read_bytes: new.disk_read_bytes,
        new_disk_written_bytes: new.disk_written_bytes,
        peak_resident_bytes: if process == 1 { peak_resident_bytes(task) } else { 0 },
        process,
        thread: u32::from(exit_state == 0),
    };
    if ACCOUNTED.insert(&task.0, &now, 0).is_err() {
        count_drop(dropped::UNTRACKED);
        record.new_cpu_ns = 0;
        record.new_disk_read_bytes = 0;
        record.new_disk_written_bytes = 0;
    }
    // SAFETY: seq comes from the kernel; the record lies on the stack.
    let written = unsafe { bpf_seq_write((*meta).seq, (&raw const record).cast(), size_of::<Task>() as u32) };
    if written != 0 {
        // The kernel's page is full: it shows the same task again, which must then find its old sums.
        match before {
            Some(before) => _ = ACCOUNTED.insert(&task.0, &before, 0),
            None => _ = ACCOUNTED.remove(&task.0),
        }
    }
    0
}
