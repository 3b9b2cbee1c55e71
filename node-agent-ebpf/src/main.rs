//! The programs that run inside the kernel.
//!
//! They keep no second set of counters: the iterator reads the scheduler's own sums of every living task once per
//! heartbeat, and a task's exit adds what nobody has read yet. Nothing is attached to a path that runs more often than
//! once per task or program; `sched_switch` is refused on purpose.
//!
//! **Exactness.** A task is accounted either by the iterator (and [`maps::ACCOUNTED`] remembers how much) or at
//! `sched_process_free`, where the scheduler's sum is final. The iterator passes over tasks in state `EXIT_DEAD`: that
//! state is set before the callback that frees the task is queued, and the iterator's program runs inside an RCU read
//! section, so the two can never account the same nanosecond.
//! See `release_task` and `delayed_put_task_struct`: <https://github.com/torvalds/linux/blob/v6.12/kernel/exit.c#L225-L300>

#![no_std]
#![no_main]
#![feature(asm_experimental_arch)]
#![expect(clippy::missing_safety_doc, reason = "programs are called by the kernel alone")]

mod aggregate;
mod cgroup;
mod cost;
mod fields;
mod identity;
mod lifecycle;
mod lineage;
mod maps;
mod memory;
mod network;
mod programs;
mod resident;
mod sample;
mod sums;
mod syscalls;
mod wait_status;
mod waits;

#[cfg(not(test))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

/// The kernel asks for it: some helpers may be used by GPL-compatible programs only, and this one is dual-licensed.
#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";
