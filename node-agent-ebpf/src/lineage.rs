//! Which run of a pipeline, and which task of it, a process belongs to.
//!
//! Descent is kept from fork on: a child of an engine begins a task, all that it starts belongs to that task, and what lives for
//! a millisecond is attributed as exactly as what lives for hours. `programs` says where a run begins. Cost: see `make bench-agent` and docs/journal.

use crate::{
    aggregate::add,
    fields::{Address, name, offset},
    identity::control,
    wait_status::wait_status,
};
use aya_ebpf::{
    bindings::{BPF_EXIST, BPF_F_NO_PREALLOC, BPF_NOEXIST},
    helpers::{bpf_get_smp_processor_id, generated::bpf_ktime_get_boot_ns},
    macros::map,
    maps::{Array, HashMap, LruHashMap, PerCpuArray, Queue, RingBuf},
};
use node_agent_ebpf::{
    Key, control,
    runs::{
        EVENTS_BYTES, Event, Exit, LATE_EXITS, Lineage, MAX_LINEAGE, MAX_RUNS, MAX_TOOLS, OTHERS, RunCounts,
        TASKS_PER_SAMPLE, Tool, budget, engine_id, entries, event, lost, role, run_of,
    },
};

/// Processes of runs, by process id.
#[map]
pub(crate) static LINEAGE: HashMap<u32, Lineage> = HashMap::with_max_entries(MAX_LINEAGE, BPF_F_NO_PREALLOC);

/// Runs, by number.
#[map]
pub(crate) static RUNS: HashMap<u32, RunCounts> = HashMap::with_max_entries(MAX_RUNS, BPF_F_NO_PREALLOC);

/// What interpreters run, by process id; user space fills it.
#[map]
pub(crate) static TOOLS: LruHashMap<u32, Tool> = LruHashMap::with_max_entries(MAX_TOOLS, 0);

/// The last that exited.
#[map]
static EXITS: Queue<Exit> = Queue::with_max_entries(LATE_EXITS, 0);

#[map]
pub(crate) static EVENTS: RingBuf = RingBuf::with_byte_size(EVENTS_BYTES, 0);

/// See [`lost`].
#[map]
static LOST: Array<u64> = Array::with_max_entries(lost::LEN, 0);

/// See [`budget`].
#[map]
pub(crate) static BUDGET: Array<u64> = Array::with_max_entries(budget::LEN, 0);

/// Numbers given out on this CPU so far: of runs, and of tasks.
#[map]
static NUMBERS: PerCpuArray<u32> = PerCpuArray::with_max_entries(2, 0);

pub(crate) const NUMBER_OF_RUN: u32 = 0;
const NUMBER_OF_TASK: u32 = 1;

/// How many entries [`LINEAGE`] has, by the lowest bits of the process id: the sum of what the programs and what the agent has put in and not taken
/// out, see [`entries`]. A process whose place has none is not looked for, which takes some 80 ns in a large map, four times for each process.
#[map]
static ENTRIES: Array<u64> = Array::with_max_entries(entries::LEN, 0);

#[inline(always)]
fn count_entry(tgid: u32, what: u64) {
    if let Some(count) = ENTRIES.get_ptr_mut(entries::by_programs(tgid)) {
        add(count, what);
    }
}

#[inline(always)]
fn may_have_entry(tgid: u32) -> bool {
    let count = |index| ENTRIES.get(index).copied().unwrap_or(1);
    count(entries::by_programs(tgid)).wrapping_add(count(entries::by_agent(tgid))) != 0
}

/// Enters a process. Whoever is still there under its id has exited, and gives way.
#[inline(always)]
pub(crate) fn keep(tgid: u32, entry: &Lineage) -> bool {
    // Counted before it is there: nobody may miss it.
    count_entry(tgid, 1);
    if LINEAGE.insert(&tgid, entry, u64::from(BPF_NOEXIST)).is_ok() {
        return true;
    }
    count_entry(tgid, u64::MAX);
    let is_kept = LINEAGE.insert(&tgid, entry, u64::from(BPF_EXIST)).is_ok();
    if !is_kept {
        lose(lost::LINEAGE);
    }
    is_kept
}

#[inline(always)]
pub(crate) fn lose(index: u32) {
    if let Some(counter) = LOST.get_ptr_mut(index) {
        add(counter, 1);
    }
}

#[inline(always)]
pub(crate) fn now_ns() -> u64 {
    // SAFETY: the helper takes nothing and touches no memory.
    unsafe { bpf_ktime_get_boot_ns() }
}

#[inline(always)]
pub(crate) fn runs_are_off() -> bool {
    control(control::RUNS_ARE_OFF) != 0
}

/// The entry of a process id, if it speaks about a process that lived when this task began: an id may name another
/// process by now, or an earlier one whose entry waits to be removed.
#[inline(always)]
pub(crate) fn entry(tgid: u32, task_start_ns: u64) -> Option<*mut Lineage> {
    if runs_are_off() || !may_have_entry(tgid) {
        return None;
    }
    let found = LINEAGE.get_ptr_mut(&tgid)?;
    // SAFETY: a live map value.
    let (start, end) = unsafe { ((*found).start_boottime_ns, (*found).end_boottime_ns) };
    (start <= task_start_ns && (end == 0 || task_start_ns <= end)).then_some(found)
}

#[inline(always)]
pub(crate) fn entry_of<const TYPED: bool>(task: Address<TYPED>) -> Option<*mut Lineage> {
    entry(task.read(offset!(task_tgid))?, task.read(offset!(task_start_boottime))?)
}

/// Puts the run's task into the key, and the name of what an interpreter runs in place of the interpreter's.
#[inline(always)]
pub(crate) fn place<const TYPED: bool>(task: Address<TYPED>, entry: Option<*mut Lineage>, key: &mut Key) {
    let Some(entry) = entry else { return };
    // SAFETY: a live map value.
    let (task_id, start) = unsafe { ((*entry).task_id, (*entry).start_boottime_ns) };
    key.task_id = task_id;
    let Some(tgid) = task.read::<u32>(offset!(task_tgid)) else { return };
    let Some(tool) = TOOLS.get_ptr(&tgid) else { return };
    // SAFETY: as above.
    unsafe {
        if (*tool).start_boottime_ns == start {
            // Word by word: the compiler would call `memcpy`, a loop.
            key.comm = name(core::ptr::read_volatile((&raw const (*tool).name).cast()));
        }
    }
}

/// A number that no other run or task has; see [`node_agent_ebpf::runs`].
#[inline(always)]
pub(crate) fn number(of: u32) -> Option<u32> {
    let counter = NUMBERS.get_ptr_mut(of)?;
    // SAFETY: a value of this CPU, and tracepoints are not preempted.
    let count = unsafe {
        *counter += 1;
        *counter & 0xf_ffff
    };
    // SAFETY: the helper takes nothing and touches no memory.
    let cpu = unsafe { bpf_get_smp_processor_id() } & 0xfff;
    Some(cpu << 20 | if count == 0 { 1 } else { count })
}

#[inline(always)]
fn tell(kind: u32, pid: u32, entry: &Lineage, wait_status: u32) {
    let Some(mut room) = EVENTS.reserve::<Event>(0) else { return lose(lost::EVENTS) };
    room.write(Event {
        kind,
        pid,
        role: entry.role,
        wait_status,
        start_boottime_ns: entry.start_boottime_ns,
        boottime_ns: now_ns(),
        task_id: entry.task_id,
    });
    room.submit(0);
}

/// Whether another task may have an id of its own.
#[inline(always)]
fn may_list(budget: u64) -> bool {
    let Some(left) = BUDGET.get_ptr_mut(budget as u32) else { return false };
    // SAFETY: a live map value.
    let now = unsafe { core::ptr::read_volatile(left) };
    // Two CPUs at once may take one more than there is: then it wraps around, and counts as used up.
    if now == 0 || now > TASKS_PER_SAMPLE {
        return false;
    }
    add(left, u64::MAX);
    true
}

/// A process was forked; called before it is counted. The task of a run that it belongs to, or 0.
#[inline(always)]
pub(crate) fn forked<const TYPED: bool>(parent: Address<TYPED>, child: Address<TYPED>, tgid: u32) -> u64 {
    let Some(of_parent) = entry_of(parent) else { return 0 };
    // SAFETY: a live map value.
    let of_parent = unsafe { *of_parent };
    let run = run_of(of_parent.task_id);
    let Some(counts) = RUNS.get_ptr_mut(&run) else { return 0 };
    let Some(start_boottime_ns) = child.read(offset!(task_start_boottime)) else { return 0 };
    let mut entry =
        Lineage { start_boottime_ns, end_boottime_ns: 0, task_id: of_parent.task_id, role: role::MEMBER, programs: 0 };
    if of_parent.role == role::ENGINE {
        // SAFETY: as above.
        let is_listed = may_list(unsafe { (*counts).budget });
        let number = if is_listed { number(NUMBER_OF_TASK) } else { Some(OTHERS) };
        entry.role = role::ROOT;
        entry.task_id = engine_id(run) | u64::from(number.unwrap_or(OTHERS));
        // SAFETY: as above.
        add(unsafe { &raw mut (*counts).started }, 1);
        if is_listed {
            tell(event::TASK_BEGAN, tgid, &entry, 0);
        } else {
            lose(lost::TASKS);
        }
    }
    if keep(tgid, &entry) { entry.task_id } else { 0 }
}

/// A process ended; `task` is a thread of it that still tells how. Called after that thread was counted.
#[inline(always)]
pub(crate) fn ended<const TYPED: bool>(task: Address<TYPED>, entry: Option<*mut Lineage>) {
    let Some(entry) = entry else { return };
    let Some(pid) = task.read::<u32>(offset!(task_tgid)) else { return };
    // SAFETY: a live map value.
    let entry = unsafe { &mut *entry };
    if entry.end_boottime_ns != 0 {
        return;
    }
    entry.end_boottime_ns = now_ns();
    let wait_status = wait_status(task).unwrap_or(0);
    if entry.role == role::ROOT {
        if let Some(counts) = RUNS.get_ptr_mut(&run_of(entry.task_id)) {
            // SAFETY: as above.
            unsafe {
                add(&raw mut (*counts).ended, 1);
                if wait_status != 0 {
                    add(&raw mut (*counts).failed, 1);
                }
            }
        }
        if entry.task_id as u32 != OTHERS {
            tell(event::TASK_ENDED, pid, entry, wait_status);
        }
    }
    if entry.role == role::ENGINE {
        tell(event::RUN_ENDED, pid, entry, wait_status);
    }
    // Its threads may be freed a moment later and still belong to it.
    let exit = Exit { start_boottime_ns: entry.start_boottime_ns, tgid: pid, padding: 0 };
    if EXITS.push(exit, 0).is_err() {
        if let Ok(Some(oldest)) = EXITS.pop() {
            forget(&oldest);
        }
        if EXITS.push(exit, 0).is_err() {
            forget(&exit);
        }
    }
}

#[inline(always)]
fn forget(exit: &Exit) {
    let Some(entry) = LINEAGE.get_ptr(&exit.tgid) else { return };
    // SAFETY: a live map value.
    if unsafe { (*entry).start_boottime_ns } == exit.start_boottime_ns {
        if LINEAGE.remove(&exit.tgid).is_ok() {
            count_entry(exit.tgid, u64::MAX);
        }
        let _ = TOOLS.remove(&exit.tgid);
    }
}
