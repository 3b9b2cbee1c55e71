//! A task's own counters: those that the kernel keeps anyway, and those that the programs add.

use crate::{
    fields::{Address, offset},
    fold::{add, count_drop},
    maps::OBSERVED,
};
use node_agent_ebpf::{Accounted, Observed, counter, dropped};

/// The sums that the kernel keeps, as they stand now. What it does not keep stays 0; the agent knows which.
#[inline(always)]
pub(crate) fn sums(task: Address) -> Option<Accounted> {
    let start_boottime_ns = task.read(offset!(task_start_boottime))?;
    let mut now = Accounted { start_boottime_ns, counters: [0; counter::KEPT] };
    now.counters[counter::CPU_NS] = task.read(offset!(task_counters[counter::CPU_NS]))?;
    let mut index = counter::USER_NS;
    while index < counter::IN_TASK {
        now.counters[index] = task.read(offset!(task_counters[index])).unwrap_or(0);
        index += 1;
    }
    // Tasks that began while the kernel kept no delays have none.
    if let Some(delays) = task.follow(offset!(task_delays)) {
        now.counters[counter::BLOCKED_IO_NS] = delays.read(offset!(delays_blkio)).unwrap_or(0);
    }
    Some(now)
}

/// Whether what is remembered is an older task's, whose death was not shown; counts it.
#[inline(always)]
pub(crate) fn was_missed(now: &Accounted, before: Option<&Accounted>) -> bool {
    let missed = before.is_some_and(|before| before.start_boottime_ns != now.start_boottime_ns);
    if missed {
        count_drop(dropped::MISSED_DEATH);
    }
    missed
}

/// What one counter of `now` adds to what was accounted before.
#[inline(always)]
pub(crate) fn since(now: &Accounted, before: Option<&Accounted>, index: usize) -> u64 {
    match before {
        Some(before) if before.start_boottime_ns == now.start_boottime_ns => {
            now.counters[index].saturating_sub(before.counters[index])
        }
        _ => now.counters[index],
    }
}

/// What the programs have counted of this task; `None` if that is nothing.
#[inline(always)]
pub(crate) fn observed(task: Address, start_boottime_ns: u64) -> Option<*mut Observed> {
    let observed = OBSERVED.get_ptr_mut(&task.0)?;
    // SAFETY: a live map value. What an older task at this address left behind is nobody's activity.
    (unsafe { (*observed).start_boottime_ns } == start_boottime_ns).then_some(observed)
}

/// Adds to a counter of the running task; `index` is one from [`counter::KEPT`] on.
#[inline(always)]
pub(crate) fn observe(task: Address, index: usize, what: u64) {
    let Some(start_boottime_ns) = task.read(offset!(task_start_boottime)) else {
        return count_drop(dropped::UNREADABLE);
    };
    if observed(task, start_boottime_ns).is_none() {
        let none = Observed { start_boottime_ns, counters: [0; counter::LEN - counter::KEPT] };
        if OBSERVED.insert(&task.0, &none, 0).is_err() {
            return count_drop(dropped::OBSERVED);
        }
    }
    let Some(observed) = observed(task, start_boottime_ns) else { return count_drop(dropped::OBSERVED) };
    // SAFETY: a live map value, and an index inside the array.
    add(unsafe { (&raw mut (*observed).counters).cast::<u64>().add(index - counter::KEPT) }, what);
}

/// Forgets a task that is freed.
#[inline(always)]
pub(crate) fn forget_observed(task: Address) {
    if OBSERVED.get_ptr(&task.0).is_some() {
        let _ = OBSERVED.remove(&task.0);
    }
}
