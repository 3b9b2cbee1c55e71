//! Resident memory of a process.

use crate::{
    fields::{Address, offset},
    sums::not_below_zero,
};
use node_agent_ebpf::ABSENT;

/// `MM_FILEPAGES`, `MM_ANONPAGES` and `MM_SHMEMPAGES`: <https://github.com/torvalds/linux/blob/v6.12/include/linux/mm_types_task.h#L25-L31>
const COUNTERS: [u32; 3] = [0, 1, 3];

/// Size of an `atomic_long_t`.
const ATOMIC_BYTES: u32 = 8;

/// Resident memory in bytes.
#[derive(Clone, Copy)]
pub(crate) struct Resident {
    pub(crate) now: u64,
    pub(crate) peak: u64,
}

/// What is resident now, and the peak: the high-water mark, which the kernel brings up to date only when memory is given
/// back, or what is resident now. Both are as approximate as the kernel's own `VmRSS` and `VmHWM`.
#[inline(always)]
pub(crate) fn resident<const TYPED: bool>(task: Address<TYPED>) -> Resident {
    let Some(mm) = task.follow(offset!(task_mm)) else { return Resident { now: 0, peak: 0 } };
    let mark: u64 = mm.read(offset!(mm_hiwater_rss)).unwrap_or(0);
    let pages = counter(mm, COUNTERS[0]) + counter(mm, COUNTERS[1]) + counter(mm, COUNTERS[2]);
    let shift = offset!(page_shift) & 31;
    Resident { now: pages << shift, peak: (if mark > pages { mark } else { pages }) << shift }
}

#[inline(always)]
fn counter<const TYPED: bool>(mm: Address<TYPED>, index: u32) -> u64 {
    let first = offset!(mm_rss);
    if first == ABSENT {
        return 0;
    }
    let stride = offset!(mm_rss_stride);
    let at = first + index * stride;
    // Up to Linux 6.1 they are an array of `atomic_long_t`, of which the verifier says that it is no struct; from 6.2 on each is a struct of its own.
    let pages = if stride > ATOMIC_BYTES { mm.read(at) } else { mm.copy(at) };
    // A counter that is the sum of several CPUs' may be below zero for a moment.
    not_below_zero(pages.unwrap_or(0))
}
