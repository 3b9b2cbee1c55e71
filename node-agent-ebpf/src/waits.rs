//! In which system call a task sleeps: the registers with which it entered the kernel lie at the top of its stack.

use crate::{
    aggregate::count_drop,
    fields::{Address, offset, zero},
};
use aya_ebpf::helpers::generated::bpf_task_pt_regs;
use node_agent_ebpf::{ABSENT, NO_CALL, Task, dropped};

/// `TASK_INTERRUPTIBLE`: <https://github.com/torvalds/linux/blob/v6.12/include/linux/sched.h#L98>
const INTERRUPTIBLE: u32 = 1;

/// Where they lie. A helper's call is not looked at by the verifier where the stack's own offset decides that it is never made.
#[inline(always)]
fn registers<const TYPED: bool>(task: Address<TYPED>) -> Address<false> {
    if let Some(stack) = task.read::<u64>(offset!(task_stack)) {
        return Address::new(stack + u64::from(offset!(stack_registers)));
    }
    // SAFETY: the verifier knows that this is a task.
    let at = unsafe { bpf_task_pt_regs(task.number() as *mut _) };
    Address::new(at as u64)
}

/// Writes the call in which a task sleeps, and its arguments. Tasks in 32-bit calls and those of the kernel itself sleep in none.
#[inline(always)]
pub(crate) fn note_call<const TYPED: bool>(task: Address<TYPED>, record: &mut Task) {
    record.call = NO_CALL;
    record.padding = zero() as u32;
    record.arguments = [zero(), zero(), zero()];
    if offset!(registers_call) == ABSENT
        || record.state & INTERRUPTIBLE == 0
        || record.key.kernel_thread == 1
        || task.read::<u32>(offset!(task_compat)).unwrap_or(0) & offset!(compat_bit) != 0
    {
        return;
    }
    let registers = registers(task);
    let (Some(call), Some(third), Some(fourth), Some(fifth)) = (
        registers.copy(offset!(registers_call)),
        registers.copy(offset!(registers_arguments[0])),
        registers.copy(offset!(registers_arguments[1])),
        registers.copy(offset!(registers_arguments[2])),
    ) else {
        // An argument that is not known is not the one that says: no timeout.
        return count_drop(dropped::UNREADABLE);
    };
    record.call = call;
    record.arguments = [third, fourth, fifth];
}
