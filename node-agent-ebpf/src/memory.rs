//! The out-of-memory killer.
//!
//! The tracepoint names a victim by its pid up to Linux 6.7 and by its task after that; either way the kill is
//! booked when the victim dies, under the victim's own key.

use crate::{
    fields::{Address, offset},
    fold::count_drop,
    maps::VICTIMS,
};
use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};
use node_agent_ebpf::dropped;

#[btf_tracepoint(function = "mark_victim")]
fn mark_victim(context: BtfTracePointContext) -> i32 {
    let first = context.arg::<u64>(0);
    let pid = if offset!(victim_is_task) == 1 { Address(first).read(offset!(task_pid)) } else { Some(first as u32) };
    let Some(pid) = pid else {
        count_drop(dropped::UNREADABLE);
        return 0;
    };
    if VICTIMS.insert(&pid, &1, 0).is_err() {
        count_drop(dropped::OOM_VICTIM);
    }
    0
}
