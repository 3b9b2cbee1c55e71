//! A task's own counters: those that the kernel keeps anyway, and those that the programs add.

use crate::{
    aggregate::{add, count_drop},
    fields::{Address, offset, zero},
    maps::{OBSERVED, OBSERVED_FILTER},
};
use core::arch::asm;
use node_agent_ebpf::{Accounted, Observed, Totals, counter, dropped};

/// The sums that the kernel keeps, as they stand now. What it does not keep stays 0; the agent knows which.
#[inline(always)]
pub(crate) fn sums<const TYPED: bool>(task: Address<TYPED>) -> Option<Accounted> {
    let start_boottime_ns = task.read(offset!(task_start_boottime))?;
    let mut now = Accounted { start_boottime_ns, counters: [zero(); counter::KEPT] };
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

/// Whether what was remembered under a task's address is that task's own. A thread that starts a program in place of its process takes over
/// the start of the first thread, which is earlier (<https://github.com/torvalds/linux/blob/v6.12/fs/exec.c#L1107-L1121>); a task that was given the
/// address of one that is gone began later.
#[inline(always)]
fn is_same_task(start_now: u64, start_before: u64) -> bool {
    start_now <= start_before
}

/// Whether what is remembered is an older task's, whose end was not shown; counts it.
#[inline(always)]
pub(crate) fn was_missed(now: &Accounted, before: Option<&Accounted>) -> bool {
    let missed = before.is_some_and(|before| !is_same_task(now.start_boottime_ns, before.start_boottime_ns));
    if missed {
        count_drop(dropped::MISSED_EXIT);
    }
    missed
}

/// A signed number, or 0 if it is negative; without a branch, of which the kernel's verifier would follow both ways for each of
/// thirteen counters.
#[inline(always)]
pub(crate) fn not_below_zero(number: u64) -> u64 {
    let mut all_ones_if_negative = number;
    // SAFETY: shifts a register. In assembly, because the compiler knows a shift and a mask for the branch that they stand for.
    unsafe { asm!("{sign} s>>= 63", sign = inout(reg) all_ones_if_negative, options(nostack, nomem, pure)) };
    number & !all_ones_if_negative
}

/// What one counter of `now` adds to what was accounted before.
#[inline(always)]
pub(crate) fn since(now: &Accounted, before: Option<&Accounted>, index: usize) -> u64 {
    match before {
        Some(before) if is_same_task(now.start_boottime_ns, before.start_boottime_ns) => {
            not_below_zero(now.counters[index].wrapping_sub(before.counters[index]))
        }
        _ => now.counters[index],
    }
}

/// The place of a task in the filter before [`OBSERVED`].
#[inline(always)]
fn place<const TYPED: bool>(task: Address<TYPED>) -> Option<*mut u64> {
    // Tasks lie at multiples of 64; 2 to the 64th over the golden ratio spreads them.
    let hash = (task.to_reckon_with() >> 6).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52;
    OBSERVED_FILTER.get_ptr_mut(hash as u32 & (node_agent_ebpf::OBSERVED_FILTER - 1))
}

/// Whether a task of this place may be in [`OBSERVED`].
#[inline(always)]
fn has_any(place: Option<*mut u64>) -> bool {
    // SAFETY: a live map value.
    place.is_none_or(|count| unsafe { core::ptr::read_volatile(count) } != 0)
}

/// What the programs have counted of this task; `None` if that is nothing.
#[inline(always)]
pub(crate) fn observed<const TYPED: bool>(task: Address<TYPED>, start_boottime_ns: u64) -> Option<*mut Observed> {
    if !has_any(place(task)) {
        return None;
    }
    look_up(task, start_boottime_ns)
}

#[inline(always)]
fn look_up<const TYPED: bool>(task: Address<TYPED>, start_boottime_ns: u64) -> Option<*mut Observed> {
    let observed = OBSERVED.get_ptr_mut(&task.number())?;
    // SAFETY: a live map value. What an older task at this address left behind is nobody's activity.
    is_same_task(start_boottime_ns, unsafe { (*observed).start_boottime_ns }).then_some(observed)
}

/// Adds to a counter of the running task; `index` is one from [`counter::KEPT`] on.
#[inline(always)]
pub(crate) fn observe<const TYPED: bool>(task: Address<TYPED>, index: usize, what: u64) {
    let Some(start_boottime_ns) = task.read(offset!(task_start_boottime)) else {
        return count_drop(dropped::UNREADABLE);
    };
    // One look-up for each message but a task's first: it is most of what a message costs.
    let Some(observed) = look_up(task, start_boottime_ns).or_else(|| begin_to_observe(task, start_boottime_ns)) else {
        return count_drop(dropped::OBSERVED);
    };
    // SAFETY: a live map value, and an index inside the array.
    add(unsafe { (&raw mut (*observed).counters).cast::<u64>().add(index - counter::KEPT) }, what);
}

/// Makes room for what is counted of a task; `None` if there is none.
#[inline(always)]
fn begin_to_observe<const TYPED: bool>(task: Address<TYPED>, start_boottime_ns: u64) -> Option<*mut Observed> {
    let none = Observed { start_boottime_ns, counters: [zero(); counter::LEN - counter::KEPT] };
    let is_new = OBSERVED.get_ptr(&task.number()).is_none();
    // Counted before it is there: nobody may miss it.
    let place = place(task).filter(|_| is_new);
    if let Some(count) = place {
        add(count, 1);
    }
    if OBSERVED.insert(&task.number(), &none, 0).is_err() {
        if let Some(count) = place {
            add(count, u64::MAX);
        }
        return None;
    }
    look_up(task, start_boottime_ns)
}

/// Forgets a task that is freed, and adds what was counted of it to a row.
#[inline(always)]
pub(crate) fn take_observed<const TYPED: bool>(task: Address<TYPED>, start_boottime_ns: u64, row: *mut Totals) {
    let place = place(task);
    if !has_any(place) {
        return;
    }
    if let Some(observed) = look_up(task, start_boottime_ns) {
        let mut index = counter::KEPT;
        while index < counter::LEN {
            // SAFETY: both are live map values.
            unsafe { add(&raw mut (*row).counters[index], (*observed).counters[index - counter::KEPT]) };
            index += 1;
        }
    }
    if OBSERVED.remove(&task.number()).is_ok()
        && let Some(count) = place
    {
        add(count, u64::MAX);
    }
}
