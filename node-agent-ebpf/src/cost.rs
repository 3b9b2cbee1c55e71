//! What the programs cost, measured by themselves, in one run of 16: to read the clock twice takes 40 to 80 ns, a tenth of what a program does. The
//! kernel's own statistics (`kernel.bpf_stats_enabled`) are refused, because they slow down
//! everybody's programs.

use crate::{aggregate::add, maps::COST};
use aya_ebpf::helpers::{bpf_get_prandom_u32, bpf_ktime_get_ns};

/// One run of so many is timed, and counts as that of all of them.
const RUNS: u64 = 16;

/// A run of a program; no closure, because one that the compiler does not inline becomes a function whose name the kernel refuses.
pub(crate) struct Run {
    /// 0 if it is not timed.
    begin_ns: u64,
}

impl Run {
    #[inline(always)]
    pub(crate) fn begin() -> Self {
        // SAFETY: neither helper takes anything; one only reads a clock.
        let begin_ns =
            if unsafe { bpf_get_prandom_u32() } as u64 % RUNS == 0 { unsafe { bpf_ktime_get_ns() } } else { 0 };
        Self { begin_ns }
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
