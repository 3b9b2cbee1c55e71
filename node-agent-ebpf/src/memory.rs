//! Memory that runs out: the out-of-memory killer, and tasks that must reclaim memory by themselves.
//!
//! The killer's tracepoint names a victim by its pid up to Linux 6.7 and by its task after that; either way the kill is
//! counted when the victim exits, under the victim's own key.

use crate::{
    aggregate::{add, count_drop, row},
    cost::Run,
    fields::{Address, offset},
    identity::{self, key_of},
    lineage,
    maps::{CONTROL, VICTIMS},
};
use aya_ebpf::{
    bindings::BPF_NOEXIST, helpers::bpf_get_current_task, macros::btf_tracepoint, programs::BtfTracePointContext,
};
use node_agent_ebpf::{control, dropped};

#[btf_tracepoint(function = "mark_victim")]
fn mark_victim(context: BtfTracePointContext) -> i32 {
    let first = context.arg::<u64>(0);
    let pid = if offset!(victim_is_task) == 1 {
        Address::<true>::new(first).read(offset!(task_pid))
    } else {
        Some(first as u32)
    };
    let Some(pid) = pid else {
        count_drop(dropped::UNREADABLE);
        return 0;
    };
    // Counted before it is there: its exit may not miss it.
    count_victim(1);
    if VICTIMS.insert(&pid, &1, u64::from(BPF_NOEXIST)).is_err() {
        count_victim(u64::MAX);
        if VICTIMS.get_ptr(&pid).is_none() {
            count_drop(dropped::OOM_VICTIM);
        }
    }
    0
}

#[inline(always)]
fn count_victim(what: u64) {
    if let Some(count) = CONTROL.get_ptr_mut(control::VICTIMS) {
        add(count, what);
    }
}

/// Whether the out-of-memory killer chose this thread, which ends now.
#[inline(always)]
pub(crate) fn was_victim(pid: u32) -> bool {
    let was = identity::control(control::VICTIMS) != 0 && VICTIMS.remove(&pid).is_ok();
    if was {
        count_victim(u64::MAX);
    }
    was
}

/// The task goes on to scan at least 32 pages: that costs more than to find its key.
#[btf_tracepoint(function = "mm_vmscan_direct_reclaim_begin")]
fn direct_reclaim(_: BtfTracePointContext) -> i32 {
    let run = Run::begin();
    // SAFETY: the helper takes nothing.
    reclaims(Address::<false>::new(unsafe { bpf_get_current_task() }));
    run.end();
    0
}

#[inline(always)]
fn reclaims<const TYPED: bool>(task: Address<TYPED>) {
    let Some(mut key) = key_of(task) else { return count_drop(dropped::UNREADABLE) };
    lineage::place(task, lineage::entry_of(task), &mut key);
    if let Some(row) = row(&mut key) {
        // SAFETY: the row is a live map value.
        add(unsafe { &raw mut (*row).direct_reclaims }, 1);
    }
}
