//! What the programs cost, measured by themselves, in one run of 17 of each CPU: to read the clock twice takes 40 to 80 ns, a tenth of what a program
//! does. Which one is counted and not drawn: the helper for random numbers takes 30 ns of each message. The kernel's own statistics
//! (`kernel.bpf_stats_enabled`) are refused, because they slow down everybody's programs.

use crate::{aggregate::add, maps::COST};
use aya_ebpf::helpers::bpf_ktime_get_ns;

/// One run of so many is timed, and counts as that of all of them. A prime: what takes turns, as sends and receives do, is met in turn.
const RUNS: u64 = 17;

/// A run of a program; no closure, because one that the compiler does not inline becomes a function whose name the kernel refuses.
pub(crate) struct Run {
    /// 0 if it is not timed.
    begin_ns: u64,
}

impl Run {
    #[inline(always)]
    pub(crate) fn begin() -> Self {
        let Some(cost) = COST.get_ptr_mut(0) else { return Self { begin_ns: 0 } };
        // SAFETY: a live map value. A program in an interrupt may take the same turn: then that one is timed twice, or not at all.
        let is_timed = unsafe {
            let left = core::ptr::read_volatile(&raw const (*cost).until_timed);
            core::ptr::write_volatile(&raw mut (*cost).until_timed, if left == 0 { RUNS - 1 } else { left - 1 });
            left == 0
        };
        // SAFETY: the helper takes nothing and only reads a clock.
        Self { begin_ns: if is_timed { unsafe { bpf_ktime_get_ns() } } else { 0 } }
    }

    #[inline(always)]
    pub(crate) fn end(self) {
        if self.begin_ns == 0 {
            return;
        }
        let Some(cost) = COST.get_ptr_mut(0) else { return };
        // SAFETY: the helper takes nothing and only reads a clock.
        let ns = unsafe { bpf_ktime_get_ns() }.wrapping_sub(self.begin_ns);
        // SAFETY: the cost is a live map value. A program in an interrupt may add at the same time: atomically, then.
        unsafe {
            add(&raw mut (*cost).ns, ns * RUNS);
            add(&raw mut (*cost).runs, RUNS);
        }
    }
}
