//! How a process ended, and which hook tells it.

use crate::fields::{Address, offset};

/// <https://github.com/torvalds/linux/blob/v6.12/include/linux/sched/signal.h#L261>
const SIGNAL_GROUP_EXIT: u32 = 4;
/// Exit code and signal; without the bit that says whether a core was written.
const WAIT_STATUS: u32 = 0xff7f;

/// Whether `process_exit` is not attached, so that ends are told at `process_free`.
#[inline(always)]
pub(crate) fn is_end_told_at_free() -> bool {
    offset!(exits_counted_at_exit) == 0
}

/// How a process ended. What a parent is told is the code of the whole group if all its threads were ended together, and
/// else that of the first thread, whichever thread went last:
/// <https://github.com/torvalds/linux/blob/v6.12/kernel/exit.c#L1190-L1192>
#[inline(always)]
pub(crate) fn wait_status<const TYPED: bool>(task: Address<TYPED>) -> Option<u32> {
    let signal = task.follow(offset!(task_signal))?;
    let flags: u32 = signal.read(offset!(signal_flags)).unwrap_or(0);
    let wait_status: Option<u32> = if flags & SIGNAL_GROUP_EXIT != 0 {
        signal.read(offset!(signal_group_exit_code))
    } else if is_end_told_at_free() {
        // Asked of the first thread alone, which holds no reference to anybody any more.
        task.read(offset!(task_exit_code))
    } else {
        task.follow(offset!(task_group_leader)).and_then(|leader| leader.read(offset!(task_exit_code)))
    };
    Some(wait_status.unwrap_or(0) & WAIT_STATUS)
}
