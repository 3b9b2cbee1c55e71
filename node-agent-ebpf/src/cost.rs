//! What the programs cost, measured by themselves: two readings of the clock per run, about 20 ns each where the CPU has
//! a steady counter. The kernel's own statistics (`kernel.bpf_stats_enabled`) are refused, because they slow down
//! everybody's programs.

use crate::{fold::add, maps::COST};
use aya_ebpf::helpers::{bpf_get_prandom_u32, bpf_ktime_get_ns};

/// Books the time since `begin`, and `runs` runs of that length.
#[inline(always)]
fn book(begin: u64, runs: u64) {
    if let Some(cost) = COST.get_ptr_mut(0) {
        // SAFETY: the helper takes nothing and only reads a clock.
        let ns = unsafe { bpf_ktime_get_ns() }.wrapping_sub(begin);
        // SAFETY: the cost is a live map value. A program in an interrupt may add at the same time: atomically, then.
        unsafe {
            add(&raw mut (*cost).ns, ns * runs);
            add(&raw mut (*cost).runs, runs);
        }
    }
}

/// Does `work` and books its time for one run of 16, as that of all 16: for programs that run so often that the clock
/// would cost as much as they do.
#[inline(always)]
pub(crate) fn timed_sometimes(work: impl FnOnce()) {
    // SAFETY: the helper takes nothing.
    let is_timed = unsafe { bpf_get_prandom_u32() } & 15 == 0;
    // SAFETY: the helper takes nothing and only reads a clock.
    let begin = if is_timed { unsafe { bpf_ktime_get_ns() } } else { 0 };
    work();
    if is_timed {
        book(begin, 16);
    }
}

/// Does `work` and books its time.
#[inline(always)]
pub(crate) fn timed(work: impl FnOnce()) {
    // SAFETY: the helper takes nothing and only reads a clock.
    let begin = unsafe { bpf_ktime_get_ns() };
    work();
    book(begin, 1);
}
