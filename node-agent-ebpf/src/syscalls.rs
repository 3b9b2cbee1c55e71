//! System calls by class: attached only where somebody asks for it, since it runs at each call of each task.

use crate::{cost::Run, fields::Address, maps::CLASSES, sums::observe};
use aya_ebpf::{helpers::bpf_get_current_task, macros::raw_tracepoint, programs::RawTracePointContext};
use node_agent_ebpf::{counter, syscall_class};

#[raw_tracepoint(tracepoint = "sys_enter")]
fn syscall(context: RawTracePointContext) -> i32 {
    let run = Run::begin();
    let number = context.arg::<u64>(1);
    let class = u32::try_from(number).ok().and_then(|number| CLASSES.get(number).copied());
    let class = match class {
        Some(class) if class < syscall_class::LEN as u64 => class as usize,
        _ => syscall_class::OTHER,
    };
    // SAFETY: the helper takes nothing.
    observe(Address::<false>::new(unsafe { bpf_get_current_task() }), counter::SYSCALLS + class, 1);
    run.end();
    0
}
