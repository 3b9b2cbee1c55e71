//! Programs that may be the engine of a run, or that give a task its name.
//!
//! A program that may be an engine is marked as a candidate when it starts, before its first child, and user space says
//! afterwards what it is. Nothing but the command line's beginning is read, and only of engines, of interpreters and of a
//! task's first programs.

use crate::{
    aggregate::add,
    fields::{Address, no_name, offset},
    identity::comm,
    lineage::{BUDGET, EVENTS, NUMBER_OF_RUN, RUNS, TOOLS, entry, keep, lose, now_ns, number, runs_are_off},
};
use aya_ebpf::{
    helpers::{
        bpf_probe_read_user,
        generated::{bpf_probe_read_user as read_user, bpf_probe_read_user_str},
    },
    macros::map,
    maps::{HashMap, PerCpuArray},
};
use node_agent_ebpf::{
    COMM_BYTES,
    runs::{
        ARGV_BYTES, Event, Lineage, LineageOffsets, MAX_WATCHED, OTHERS, PROGRAMS_PER_SECOND, PROGRAMS_PER_TASK,
        Program, RunCounts, budget, engine_id, event, lost, role, watched,
    },
};

/// Programs to look at, by name; user space fills it from its rules.
#[map]
static WATCHED: HashMap<[u8; COMM_BYTES], u32> = HashMap::with_max_entries(MAX_WATCHED, 0);

/// Room for the first word of a command line.
#[map]
static FIRST_WORD: PerCpuArray<[u8; FIRST_WORD_BYTES]> = PerCpuArray::with_max_entries(1, 0);

const FIRST_WORD_BYTES: usize = 256;
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

/// Whether a script was started that names its interpreter: the kernel then calls the process by the script.
#[inline(always)]
fn is_script<const TYPED: bool>(binprm: Address<TYPED>) -> bool {
    let interpreter = binprm.follow(own_offset!(binprm_interp));
    match (interpreter, binprm.follow(own_offset!(binprm_filename))) {
        (Some(interpreter), Some(file)) => interpreter.number() != file.number(),
        _ => false,
    }
}

/// Whether the first word behind an interpreter's name is `-c` or a bundle with it among its first three letters.
/// Without a loop: the verifier would follow each byte on a path of its own.
#[inline(always)]
fn is_inline<const TYPED: bool>(task: Address<TYPED>) -> bool {
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
fn may_read() -> bool {
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
    if !keep(tgid, &entry) {
        return None;
    }
    Some(entry)
}

/// A program was started; called before it is counted. The task of a run that it belongs to, or 0.
#[inline(always)]
pub(crate) fn started<const TYPED: bool>(task: Address<TYPED>, binprm: Address<TYPED>) -> u64 {
    if runs_are_off() {
        return 0;
    }
    let (Some(tgid), Some(start)) = (task.read::<u32>(offset!(task_tgid)), task.read(offset!(task_start_boottime)))
    else {
        return 0;
    };
    let mut name = no_name();
    comm(task, &mut name);
    let kind = match WATCHED.get_ptr(&name) {
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
    // SAFETY: as above.
    let task_id = known.map_or(0, |known| unsafe { (*known).task_id });
    if kind == 0 && !is_first_of_task {
        return task_id;
    }
    let is_inline = kind == watched::INLINE && is_inline(task);
    if !is_first_of_task && (is_inline || (kind != watched::ENGINE && !may_read())) {
        return task_id;
    }
    let Some(mut room) = EVENTS.reserve::<Program>(0) else {
        lose(lost::EVENTS);
        return task_id;
    };
    let program = room.as_mut_ptr();
    // SAFETY: `program` is room for one, and each of its members is written before it is submitted or read.
    let task_id = unsafe {
        (*program).comm = name;
        (*program).argv_bytes = read_argv(task, &mut (*program).argv);
        let entry = match known {
            Some(known) => Some(*known),
            None => begin_run(kind, tgid, start),
        };
        let Some(entry) = entry else {
            room.discard(0);
            return task_id;
        };
        (*program).event = Event {
            kind: event::PROGRAM,
            pid: tgid,
            role: entry.role,
            wait_status: 0,
            start_boottime_ns: entry.start_boottime_ns,
            boottime_ns: now_ns(),
            task_id: entry.task_id,
        };
        entry.task_id
    };
    room.submit(0);
    task_id
}

/// The beginning of the command line, and the length of all of it.
#[inline(always)]
fn read_argv<const TYPED: bool>(task: Address<TYPED>, to: &mut [u8; ARGV_BYTES]) -> u64 {
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
