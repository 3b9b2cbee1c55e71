//! The second object: forks, program starts and ends by raw tracepoints and helpers alone.
//!
//! For kernels whose type information cannot be read: it reads no field of the kernel, so it has to know no offset. A task's address serves
//! as its name, which is unique while it lives. Cost: one look-up and one addition per event, as in `main.rs`.

#![no_std]
#![no_main]
#![feature(asm_experimental_arch)]

use aya_ebpf::{
    bindings::BPF_NOEXIST,
    helpers::{
        bpf_get_current_comm, bpf_get_current_pid_tgid, bpf_get_current_uid_gid,
        generated::{bpf_get_current_cgroup_id, bpf_get_current_task},
    },
    macros::{map, raw_tracepoint},
    maps::{Array, HashMap, LruHashMap},
    programs::RawTracePointContext,
};
use core::arch::asm;
use node_agent_ebpf::process_events::{Counts, MAX_PARENTS, MAX_PROCESS_EVENTS, ProcessEventKey, control};

/// `CLONE_THREAD`: <https://github.com/torvalds/linux/blob/v6.12/include/uapi/linux/sched.h#L23>
const CLONE_THREAD: u64 = 0x0001_0000;
/// The parent of all kernel threads.
const KTHREADD: u32 = 2;

/// What happened since the agent last swapped the buffers.
#[map]
static PROCESS_EVENTS: HashMap<ProcessEventKey, Counts> = HashMap::with_max_entries(MAX_PROCESS_EVENTS, 0);

/// What found no place there, by buffer.
#[map]
static OVERFLOW: Array<Counts> = Array::with_max_entries(2, 0);

/// The parent of each living process that was forked under our eyes, by the task's address.
#[map]
static PARENTS: LruHashMap<u64, u64> = LruHashMap::with_max_entries(MAX_PARENTS, 0);

/// See [`control`].
#[map]
static CONTROL: Array<u64> = Array::with_max_entries(control::LEN, 0);

/// The kernel asks for it: some helpers may be used by GPL-compatible programs only, and this one is dual-licensed.
#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";

#[cfg(not(test))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

#[inline(always)]
fn own_process() -> u32 {
    (bpf_get_current_pid_tgid() >> 32) as u32
}

#[inline(always)]
fn is_first_thread() -> bool {
    let ids = bpf_get_current_pid_tgid();
    ids as u32 == (ids >> 32) as u32
}

#[inline(always)]
fn own_task() -> u64 {
    // SAFETY: the helper takes nothing and returns an address that is only compared.
    unsafe { bpf_get_current_task() }
}

/// The counters of the current task's name, under the place of `owner`.
#[inline(always)]
fn counts(owner: u32) -> Option<*mut Counts> {
    let buffer = CONTROL.get(control::BUFFER).copied().unwrap_or(0) & 1;
    let shows_cgroup = CONTROL.get(control::SHOWS_CGROUP).copied().unwrap_or(0) == 1;
    let is_kernel_thread = owner == KTHREADD || own_process() == KTHREADD;
    let key = ProcessEventKey {
        // SAFETY: the helper takes nothing.
        cgroup_id: if shows_cgroup { unsafe { bpf_get_current_cgroup_id() } } else { 0 },
        owner,
        uid: bpf_get_current_uid_gid() as u32,
        kernel_thread: u32::from(is_kernel_thread),
        buffer: buffer as u32,
        comm: bpf_get_current_comm().unwrap_or_default(),
    };
    if let Some(found) = PROCESS_EVENTS.get_ptr_mut(&key) {
        return Some(found);
    }
    // Fails if another CPU was faster, too: then the second lookup finds its entry.
    let _ = PROCESS_EVENTS.insert(&key, &Counts { forks: 0, execs: 0, exits: 0 }, u64::from(BPF_NOEXIST));
    PROCESS_EVENTS.get_ptr_mut(&key).or_else(|| OVERFLOW.get_ptr_mut(buffer as u32))
}

/// Adds one, atomically. `core` has no atomic addition for this target.
#[inline(always)]
fn count(to: *mut u64) {
    // SAFETY: `to` points to an aligned u64 in a map value, and such counters are only ever added to.
    unsafe { asm!("lock *(u64 *)({to} + 0) += {one}", to = in(reg) to, one = in(reg) 1_u64, options(nostack)) };
}

/// The parent counts the fork, under its own name: the child bears the same one.
#[raw_tracepoint(tracepoint = "task_newtask")]
fn new_task(context: RawTracePointContext) -> i32 {
    if context.arg::<u64>(1) & CLONE_THREAD != 0 {
        return 0;
    }
    let parent = own_process();
    let _ = PARENTS.insert(&context.arg::<u64>(0), &u64::from(parent), 0);
    if let Some(counts) = counts(parent) {
        // SAFETY: the counters are a live map value.
        count(unsafe { &raw mut (*counts).forks });
    }
    0
}

/// Whose place counts: the parent's, because it lives longer.
#[inline(always)]
fn owner() -> u32 {
    // SAFETY: the value is copied at once.
    match unsafe { PARENTS.get(&own_task()) } {
        Some(parent) => *parent as u32,
        None => own_process(),
    }
}

#[raw_tracepoint(tracepoint = "sched_process_exec")]
fn program_start(_: RawTracePointContext) -> i32 {
    if let Some(counts) = counts(owner()) {
        // SAFETY: the counters are a live map value.
        count(unsafe { &raw mut (*counts).execs });
    }
    0
}

/// Every process has exactly one first thread. (One that is replaced, because another thread starts a program, counts as an end too many.)
#[raw_tracepoint(tracepoint = "sched_process_exit")]
fn task_end(_: RawTracePointContext) -> i32 {
    if !is_first_thread() {
        return 0;
    }
    let owner = owner();
    let _ = PARENTS.remove(&own_task());
    if let Some(counts) = counts(owner) {
        // SAFETY: the counters are a live map value.
        count(unsafe { &raw mut (*counts).exits });
    }
    0
}
