//! Adds to the books of the dead: a bounded map, and behind it one rest row for user and one for kernel tasks, so that
//! a flood of names loses attribution and never the sums.

use crate::{
    identity::control,
    maps::{DROPPED, FOLDED, REST},
};
use aya_ebpf::bindings::BPF_NOEXIST;
use core::arch::asm;
use node_agent_ebpf::{Key, Totals, control, dropped};

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
    let buffer = (control(control::BUFFER) & 1) as u8;
    key.buffer = buffer;
    if let Some(row) = FOLDED.get_ptr_mut(&*key) {
        return Some(row);
    }
    // Fails if another CPU was faster, too: then the second look finds its row.
    let zero = Totals {
        cpu_ns: 0,
        disk_read_bytes: 0,
        disk_written_bytes: 0,
        peak_resident_bytes: 0,
        forks: 0,
        execs: 0,
        exits: 0,
        oom_kills: 0,
    };
    let _ = FOLDED.insert(&*key, &zero, u64::from(BPF_NOEXIST));
    if let Some(row) = FOLDED.get_ptr_mut(&*key) {
        return Some(row);
    }
    count_drop(dropped::FOLD_OVERFLOW);
    REST.get_ptr_mut(u32::from(buffer) * 2 + u32::from(key.kernel_thread & 1))
}
