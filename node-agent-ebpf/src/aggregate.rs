//! Adds to the counters of exited processes: a bounded map, and behind it one overflow row for user and one for kernel tasks, so that
//! a flood of names loses attribution and never the sums.

use crate::{
    identity::control,
    maps::{AGGREGATED, DROPPED, FAILURES, OVERFLOW, ZERO},
};
use aya_ebpf::bindings::BPF_NOEXIST;
use core::arch::asm;
use node_agent_ebpf::{Failure, Key, Totals, control, dropped};

/// Counts one loss.
#[inline(always)]
pub(crate) fn count_drop(index: u32) {
    if let Some(counter) = DROPPED.get_ptr_mut(index) {
        add(counter, 1);
    }
}

/// Adds to one member of a map value, atomically. `core` has no atomic addition for this target, because it lacks
/// compare-and-swap; the instruction exists in every kernel.
#[inline(always)]
pub(crate) fn add(to: *mut u64, what: u64) {
    // SAFETY: `to` points to an aligned u64 in a map value, and such counters are only ever added to.
    unsafe { asm!("lock *(u64 *)({to} + 0) += {what}", to = in(reg) to, what = in(reg) what, options(nostack)) };
}

/// The row to add to, made if need be.
#[inline(always)]
pub(crate) fn row(key: &mut Key) -> Option<*mut Totals> {
    Some(row_or_new(key)?.0)
}

/// The same, and whether it was not there yet.
#[inline(always)]
pub(crate) fn row_or_new(key: &mut Key) -> Option<(*mut Totals, bool)> {
    let buffer = (control(control::BUFFER) & 1) as u8;
    key.buffer = buffer;
    if let Some(row) = AGGREGATED.get_ptr_mut(&*key) {
        return Some((row, false));
    }
    // Fails if another CPU was faster, too: then the second lookup finds its row.
    let _ = AGGREGATED.insert(&*key, ZERO.get(0)?, u64::from(BPF_NOEXIST));
    if let Some(row) = AGGREGATED.get_ptr_mut(&*key) {
        return Some((row, true));
    }
    count_drop(dropped::MAP_OVERFLOW);
    Some((OVERFLOW.get_ptr_mut(u32::from(buffer) * 2 + u32::from(key.kernel_thread & 1))?, true))
}

/// Counts one way to end under a key that [`row`] has seen.
#[inline(always)]
pub(crate) fn failure(key: &Key, wait_status: u32) {
    let failure = Failure { key: *key, wait_status, padding: 0 };
    if let Some(count) = FAILURES.get_ptr_mut(&failure) {
        return add(count, 1);
    }
    let _ = FAILURES.insert(&failure, &0, u64::from(BPF_NOEXIST));
    match FAILURES.get_ptr_mut(&failure) {
        Some(count) => add(count, 1),
        None => count_drop(dropped::FAILURES),
    }
}
