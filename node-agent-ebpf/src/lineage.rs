//! Which run of a pipeline, and which task of it, a process belongs to.
//!
//! Descent is kept from birth on: a child of an engine begins a task, all that it brings to life belongs to that task, and what lives for
//! a millisecond is attributed as exactly as what lives for hours. A program that may be an engine is marked as a candidate when it starts, before its
//! first child, and user space says afterwards what it is. Nothing but the command line's beginning is read, and only of
//! engines, of interpreters and of a task's first programs. Cost: see `make bench-agent` and docs/journal.

use crate::{
    fields::{Address, offset},
    fold::add,
    lifecycle::wait_status,
};
use aya_ebpf::{
    bindings::BPF_F_NO_PREALLOC,
    helpers::{
        bpf_get_smp_processor_id, bpf_probe_read_kernel_str_bytes, bpf_probe_read_user,
        generated::{bpf_ktime_get_boot_ns, bpf_probe_read_user as read_user, bpf_probe_read_user_str},
    },
    macros::map,
    maps::{Array, HashMap, LruHashMap, PerCpuArray, Queue, RingBuf},
};
use node_agent_ebpf::{
    COMM_BYTES, Key,
    runs::{
        ARGV_BYTES, Death, EVENTS_BYTES, Event, INTERPRETED, LATE_DEATHS, Lineage, LineageOffsets, MAX_LINEAGE,
        MAX_RUNS, MAX_TOOLS, MAX_WATCHED, OTHERS, PROGRAMS_PER_SECOND, PROGRAMS_PER_TASK, Program, RunCounts,
        TASKS_PER_READING, Tool, budget, engine_id, event, lost, role, run_of, watched,
    },
};

/// Processes of runs, by process id.
#[map]
static LINEAGE: HashMap<u32, Lineage> = HashMap::with_max_entries(MAX_LINEAGE, BPF_F_NO_PREALLOC);

/// Runs, by number.
#[map]
static RUNS: HashMap<u32, RunCounts> = HashMap::with_max_entries(MAX_RUNS, BPF_F_NO_PREALLOC);

/// Programs to look at, by name; user space fills it from its rules.
#[map]
static WATCHED: HashMap<[u8; COMM_BYTES], u32> = HashMap::with_max_entries(MAX_WATCHED, 0);

/// What interpreters run, by process id; user space fills it.
#[map]
static TOOLS: LruHashMap<u32, Tool> = LruHashMap::with_max_entries(MAX_TOOLS, 0);

/// The last that died.
#[map]
static DEATHS: Queue<Death> = Queue::with_max_entries(LATE_DEATHS, 0);

#[map]
static EVENTS: RingBuf = RingBuf::with_byte_size(EVENTS_BYTES, 0);

/// See [`lost`].
#[map]
static LOST: Array<u64> = Array::with_max_entries(lost::LEN, 0);

/// See [`budget`].
#[map]
static BUDGET: Array<u64> = Array::with_max_entries(budget::LEN, 0);

/// Numbers given out on this CPU so far: of runs, and of tasks.
#[map]
static NUMBERS: PerCpuArray<u32> = PerCpuArray::with_max_entries(2, 0);

/// Room for the first word of a command line.
#[map]
static FIRST_WORD: PerCpuArray<[u8; FIRST_WORD_BYTES]> = PerCpuArray::with_max_entries(1, 0);

const FIRST_WORD_BYTES: usize = 256;
const NUMBER_OF_RUN: u32 = 0;
const NUMBER_OF_TASK: u32 = 1;

#[unsafe(no_mangle)]
static LINEAGE_OFFSETS: LineageOffsets = LineageOffsets {
    binprm_filename: node_agent_ebpf::ABSENT,
    binprm_interp: node_agent_ebpf::ABSENT,
    mm_arg_start: node_agent_ebpf::ABSENT,
    mm_arg_end: node_agent_ebpf::ABSENT,
};

macro_rules! own_offset {
    ($field:ident) => {
        // SAFETY: the static lives as long as the program; volatile, because the compiler may not assume its values.
        unsafe { core::ptr::read_volatile(&raw const LINEAGE_OFFSETS.$field) }
    };
}

#[inline(always)]
fn lose(index: u32) {
    if let Some(counter) = LOST.get_ptr_mut(index) {
        add(counter, 1);
    }
}

#[inline(always)]
fn now_ns() -> u64 {
    // SAFETY: the helper takes nothing and touches no memory.
    unsafe { bpf_ktime_get_boot_ns() }
}

/// The entry of a process id, if it speaks about a process that lived when this task began: an id may name another
/// process by now, or an earlier one whose entry waits to be removed.
#[inline(always)]
fn entry(tgid: u32, task_start_ns: u64) -> Option<*mut Lineage> {
    let found = LINEAGE.get_ptr_mut(&tgid)?;
    // SAFETY: a live map value.
    let (start, end) = unsafe { ((*found).start_boottime_ns, (*found).end_boottime_ns) };
    (start <= task_start_ns && (end == 0 || task_start_ns <= end)).then_some(found)
}

#[inline(always)]
fn entry_of(task: Address) -> Option<*mut Lineage> {
    entry(task.read(offset!(task_tgid))?, task.read(offset!(task_start_boottime))?)
}

/// Puts the run's task into the key, and the name of what an interpreter runs in place of the interpreter's.
#[inline(always)]
pub(crate) fn place(task: Address, key: &mut Key) {
    let Some(entry) = entry_of(task) else { return };
    // SAFETY: a live map value.
    let (task_id, start) = unsafe { ((*entry).task_id, (*entry).start_boottime_ns) };
    key.task_id = task_id;
    let Some(tgid) = task.read::<u32>(offset!(task_tgid)) else { return };
    let Some(tool) = TOOLS.get_ptr(&tgid) else { return };
    // SAFETY: as above.
    unsafe {
        if (*tool).start_boottime_ns == start {
            key.comm = (*tool).name;
            key.kernel_thread |= INTERPRETED;
        }
    }
}

/// A number that no other run or task has; see [`node_agent_ebpf::runs`].
#[inline(always)]
fn number(of: u32) -> Option<u32> {
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
    if now == 0 || now > TASKS_PER_READING {
        return false;
    }
    add(left, u64::MAX);
    true
}

/// A process was born; called before it is booked.
#[inline(always)]
pub(crate) fn born(parent: Address, child: Address, tgid: u32) {
    let Some(of_parent) = entry_of(parent) else { return };
    // SAFETY: a live map value.
    let of_parent = unsafe { *of_parent };
    let run = run_of(of_parent.task_id);
    let Some(counts) = RUNS.get_ptr_mut(&run) else { return };
    let Some(start_boottime_ns) = child.read(offset!(task_start_boottime)) else { return };
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
    if LINEAGE.insert(&tgid, &entry, 0).is_err() {
        lose(lost::LINEAGE);
    }
}

/// Whether a script was started that names its interpreter: the kernel then calls the process by the script.
#[inline(always)]
fn is_script(binprm: Address) -> bool {
    let interpreter = binprm.follow(own_offset!(binprm_interp));
    match (interpreter, binprm.follow(own_offset!(binprm_filename))) {
        (Some(interpreter), Some(file)) => interpreter.0 != file.0,
        _ => false,
    }
}

/// Whether the first word behind an interpreter's name is `-c` or a bundle with it among its first three letters.
/// Without a loop: the verifier would follow each byte on a path of its own.
#[inline(always)]
fn is_inline(task: Address) -> bool {
    let Some(mm) = task.follow(offset!(task_mm)) else { return false };
    let (Some(start), Some(first)) = (mm.read::<u64>(own_offset!(mm_arg_start)), FIRST_WORD.get_ptr_mut(0)) else {
        return false;
    };
    // SAFETY: a value of this CPU; the helper checks the address and writes at most the buffer's length.
    let length = unsafe { bpf_probe_read_user_str(first.cast(), FIRST_WORD_BYTES as u32, start as *const _) };
    if length <= 0 || length as usize >= FIRST_WORD_BYTES {
        return false;
    }
    // SAFETY: the helper checks the address.
    let word = unsafe { bpf_probe_read_user((start + length as u64) as *const [u8; 4]) };
    let Ok([sign, letters @ ..]) = word else { return false };
    sign == b'-'
        && letters[0] != b'-'
        && letters[0] != 0
        && (letters[0] == b'c' || (letters[1] != 0 && (letters[1] == b'c' || letters[2] == b'c')))
}

/// Whether one more start of an interpreter may be looked at in this second.
#[inline(always)]
fn may_look() -> bool {
    let (Some(second), Some(used)) = (BUDGET.get_ptr_mut(budget::SECOND), BUDGET.get_ptr_mut(budget::PROGRAMS)) else {
        return false;
    };
    // About a second: 2 to the 30th nanoseconds.
    let now = now_ns() >> 30;
    // SAFETY: live map values. Two CPUs at the turn of a second may both reset the count, which lets a few more pass.
    unsafe {
        if core::ptr::read_volatile(second) != now {
            core::ptr::write_volatile(second, now);
            core::ptr::write_volatile(used, 0);
        }
        if core::ptr::read_volatile(used) >= PROGRAMS_PER_SECOND {
            lose(lost::PROGRAMS);
            return false;
        }
    }
    add(used, 1);
    true
}

/// Makes a process the engine of a run that nobody has judged yet.
#[inline(always)]
fn begin_run(kind: u32, tgid: u32, start_boottime_ns: u64) -> Option<Lineage> {
    let run = number(NUMBER_OF_RUN)?;
    let budget = if kind == watched::ENGINE { budget::TASKS } else { budget::SCRIPT_TASKS };
    let counts = RunCounts { budget: u64::from(budget), started: 0, ended: 0, failed: 0 };
    if RUNS.insert(&run, &counts, 0).is_err() {
        lose(lost::RUNS);
        return None;
    }
    let entry =
        Lineage { start_boottime_ns, end_boottime_ns: 0, task_id: engine_id(run), role: role::ENGINE, programs: 0 };
    if LINEAGE.insert(&tgid, &entry, 0).is_err() {
        lose(lost::LINEAGE);
        return None;
    }
    Some(entry)
}

/// A program was started; called before it is booked.
#[inline(always)]
pub(crate) fn program_started(task: Address, binprm: Address) {
    let (Some(tgid), Some(start)) = (task.read::<u32>(offset!(task_tgid)), task.read(offset!(task_start_boottime)))
    else {
        return;
    };
    let mut comm = [0; COMM_BYTES];
    // SAFETY: the helper checks the address and writes at most the buffer's length.
    let _ =
        unsafe { bpf_probe_read_kernel_str_bytes((task.0 + u64::from(offset!(task_comm))) as *const u8, &mut comm) };
    let kind = match WATCHED.get_ptr(&comm) {
        // SAFETY: a live map value.
        Some(kind) => unsafe { *kind },
        None if is_script(binprm) => watched::INTERPRETER,
        None => 0,
    };
    let known = entry(tgid, start);
    let mut is_first_of_task = false;
    if let Some(known) = known {
        let _ = TOOLS.remove(&tgid);
        // SAFETY: a live map value, written by its own process only.
        unsafe {
            if (*known).role == role::ROOT && (*known).programs < PROGRAMS_PER_TASK {
                (*known).programs += 1;
                is_first_of_task = (*known).task_id as u32 != OTHERS;
            }
        }
    }
    if kind == 0 && !is_first_of_task {
        return;
    }
    let is_inline = kind == watched::INLINE && is_inline(task);
    if !is_first_of_task && (is_inline || (kind != watched::ENGINE && !may_look())) {
        return;
    }
    let Some(mut room) = EVENTS.reserve::<Program>(0) else { return lose(lost::EVENTS) };
    let program = room.as_mut_ptr();
    // SAFETY: `program` is room for one, and each of its members is written before it is submitted or read.
    unsafe {
        (*program).comm = comm;
        (*program).argv_bytes = read_argv(task, &mut (*program).argv);
        let entry = match known {
            Some(known) => Some(*known),
            None => begin_run(kind, tgid, start),
        };
        let Some(entry) = entry else { return room.discard(0) };
        (*program).event = Event {
            kind: event::PROGRAM,
            pid: tgid,
            role: entry.role,
            wait_status: 0,
            start_boottime_ns: entry.start_boottime_ns,
            boottime_ns: now_ns(),
            task_id: entry.task_id,
        };
    }
    room.submit(0);
}

/// The beginning of the command line, and the length of all of it.
#[inline(always)]
fn read_argv(task: Address, to: &mut [u8; ARGV_BYTES]) -> u64 {
    let Some(mm) = task.follow(offset!(task_mm)) else { return 0 };
    let start: u64 = mm.read(own_offset!(mm_arg_start)).unwrap_or(0);
    let end: u64 = mm.read(own_offset!(mm_arg_end)).unwrap_or(0);
    if start == 0 || end <= start {
        return 0;
    }
    let length = end - start;
    let held = if length > ARGV_BYTES as u64 { ARGV_BYTES as u64 } else { length };
    // SAFETY: the helper checks the address and writes at most `held` bytes.
    let read = unsafe { read_user(to.as_mut_ptr().cast(), held as u32, start as *const _) };
    if read == 0 { length } else { 0 }
}

/// A task was freed; called after it was booked. The first thread's end is the process's: after an exec by another
/// thread, that one has taken over its place.
#[inline(always)]
pub(crate) fn freed(task: Address) {
    let (Some(pid), Some(tgid)) = (task.read::<u32>(offset!(task_pid)), task.read::<u32>(offset!(task_tgid))) else {
        return;
    };
    if pid != tgid {
        return;
    }
    let Some(entry) = entry_of(task) else { return };
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
    let death = Death { start_boottime_ns: entry.start_boottime_ns, tgid: pid, padding: 0 };
    if DEATHS.push(death, 0).is_err() {
        if let Ok(Some(oldest)) = DEATHS.pop() {
            bury(&oldest);
        }
        if DEATHS.push(death, 0).is_err() {
            bury(&death);
        }
    }
}

#[inline(always)]
fn bury(death: &Death) {
    let Some(entry) = LINEAGE.get_ptr(&death.tgid) else { return };
    // SAFETY: a live map value.
    if unsafe { (*entry).start_boottime_ns } == death.start_boottime_ns {
        let _ = LINEAGE.remove(&death.tgid);
        let _ = TOOLS.remove(&death.tgid);
    }
}
