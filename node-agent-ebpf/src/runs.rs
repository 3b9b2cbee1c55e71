//! Plain data about runs of pipelines: which process belongs to which run and task, and what the programs tell about it.
//!
//! A task id names its run in its upper half and the task in its lower half. Lower half 0 is the engine itself; all ones
//! are tasks beyond [`TASKS_PER_SAMPLE`], which share one id: their sums stay in their run.

use super::COMM_BYTES;

/// Processes of runs whose descent is known, those that exited lately included. Memory is taken per process (about
/// 110 bytes) and not beforehand: 3.6 MB at the cap.
pub const MAX_LINEAGE: u32 = 32_768;
/// Runs at a time, candidates included. About 100 bytes each, taken when they begin.
pub const MAX_RUNS: u32 = 2_048;
/// Programs that are looked at: engines and interpreters. About 80 bytes each.
pub const MAX_WATCHED: u32 = 2_048;
/// Names of tools that interpreters run; the oldest make room. 2,048 × about 100 bytes is 0.2 MB, allocated once.
pub const MAX_TOOLS: u32 = 2_048;
/// Processes of runs that stay known after their exit, because their threads are freed in any order.
pub const LATE_EXITS: u32 = 1_024;
/// Room for events on their way to the agent, in bytes.
pub const EVENTS_BYTES: u32 = 256 * 1024;
/// Bytes of a command line that are looked at; a longer one is read from `/proc` while it lives.
pub const ARGV_BYTES: usize = 512;
/// Starts of interpreters that are looked at in one second; engines by name are always looked at.
pub const PROGRAMS_PER_SECOND: u64 = 64;
/// Tasks of engines with an id of their own between two samples.
pub const TASKS_PER_SAMPLE: u64 = 512;
/// Tasks of scripts, likewise: a script that starts thousands of programs takes no engine's place.
pub const SCRIPT_TASKS_PER_SAMPLE: u64 = 256;
/// Program starts of a task's first process that are told, since a launcher may come first.
pub const PROGRAMS_PER_TASK: u32 = 4;
/// Lower half of the id that tasks beyond the budget share.
pub const OTHERS: u32 = u32::MAX;
/// Ids that user space gives out bear this CPU number in bits 20 to 31.
pub const USER_SPACE_CPU: u32 = 0xfff;

/// The run that a task id belongs to.
#[must_use]
pub const fn run_of(task_id: u64) -> u32 {
    (task_id >> 32) as u32
}

/// The task id of the engine itself.
#[must_use]
pub const fn engine_id(run: u32) -> u64 {
    (run as u64) << 32
}

/// Indices into the two counts of entries that `LINEAGE` has, by the lowest bits of the process id; each may wrap around, and only their sum
/// means anything.
pub mod entries {
    /// Places for process ids: 64 KB for both counts, which stay in the CPU's cache.
    pub const PLACES: u32 = 4_096;
    /// Length of the array.
    pub const LEN: u32 = 2 * PLACES;

    /// Put in and not taken out by the programs.
    #[inline(always)]
    #[must_use]
    pub const fn by_programs(tgid: u32) -> u32 {
        tgid & (PLACES - 1)
    }

    /// Likewise by the agent.
    #[inline(always)]
    #[must_use]
    pub const fn by_agent(tgid: u32) -> u32 {
        PLACES + by_programs(tgid)
    }
}

/// What a process is in its run.
pub mod role {
    /// It starts the tasks.
    pub const ENGINE: u32 = 1;
    /// The first process of a task.
    pub const ROOT: u32 = 2;
    /// Any other process of a task.
    pub const MEMBER: u32 = 3;
}

/// Why a program is watched.
pub mod watched {
    /// It runs what its command line names.
    pub const INTERPRETER: u32 = 1;
    /// Likewise, and `-c` makes it run what nobody names.
    pub const INLINE: u32 = 2;
    /// It drives pipelines.
    pub const ENGINE: u32 = 3;
}

/// What happened.
pub mod event {
    /// A task's first process was forked.
    pub const TASK_BEGAN: u32 = 1;
    /// A task's first process ended.
    pub const TASK_ENDED: u32 = 2;
    /// An engine ended.
    pub const RUN_ENDED: u32 = 3;
    /// A program was started; [`super::Program`] follows.
    pub const PROGRAM: u32 = 4;
}

/// Indices into the array of losses. None of them hides activity: the counters stay exact.
pub mod lost {
    /// Processes whose descent found no room.
    pub const LINEAGE: u32 = 0;
    /// Runs that found no room.
    pub const RUNS: u32 = 1;
    /// Starts of interpreters beyond [`super::PROGRAMS_PER_SECOND`].
    pub const PROGRAMS: u32 = 2;
    /// Events that found no room.
    pub const EVENTS: u32 = 3;
    /// Tasks beyond [`super::TASKS_PER_SAMPLE`].
    pub const TASKS: u32 = 4;
    /// Length of the array.
    pub const LEN: u32 = 5;
}

/// Indices into the array of budgets.
pub mod budget {
    /// Tasks that may still get an id of their own; user space fills it up at each sample.
    pub const TASKS: u32 = 0;
    /// The second for which [`PROGRAMS`] counts.
    pub const SECOND: u32 = 1;
    /// Starts of interpreters in that second.
    pub const PROGRAMS: u32 = 2;
    /// As [`TASKS`], for what was not known by its name when it began: scripts, most of the time.
    pub const SCRIPT_TASKS: u32 = 3;
    /// Length of the array.
    pub const LEN: u32 = 4;
}

/// The place of one process.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lineage {
    /// When the process began, or a little earlier, in nanoseconds since boot.
    pub start_boottime_ns: u64,
    /// When it ended; 0 while it lives.
    pub end_boottime_ns: u64,
    /// Its task.
    pub task_id: u64,
    /// See [`role`].
    pub role: u32,
    /// Program starts that were told.
    pub programs: u32,
}

/// The counters of one run that only the programs can keep exactly.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunCounts {
    /// The [`budget`] of its tasks.
    pub budget: u64,
    /// Tasks begun.
    pub started: u64,
    /// Tasks ended.
    pub ended: u64,
    /// Of these, other than with exit code 0.
    pub failed: u64,
}

/// The name of what an interpreter runs.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tool {
    /// [`Lineage::start_boottime_ns`] of its process.
    pub start_boottime_ns: u64,
    /// Zero-padded.
    pub name: [u8; COMM_BYTES],
}

/// A process of a run that exited.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exit {
    /// [`Lineage::start_boottime_ns`].
    pub start_boottime_ns: u64,
    /// Its process id.
    pub tgid: u32,
    /// Always 0.
    pub padding: u32,
}

/// Something that happened to a process of a run.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// See [`event`].
    pub kind: u32,
    /// Process id in the first pid namespace.
    pub pid: u32,
    /// See [`role`].
    pub role: u32,
    /// How it ended, as wait(2) gives it; 0 for other events.
    pub wait_status: u32,
    /// When the process began, in nanoseconds since boot.
    pub start_boottime_ns: u64,
    /// When this happened, in nanoseconds since boot.
    pub boottime_ns: u64,
    /// The task that it belongs to.
    pub task_id: u64,
}

/// An [`event::PROGRAM`].
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    /// What all events have.
    pub event: Event,
    /// Executable name as the kernel cuts it, zero-padded.
    pub comm: [u8; COMM_BYTES],
    /// Length of the whole command line, in bytes.
    pub argv_bytes: u64,
    /// Its beginning: words, each with a closing zero.
    pub argv: [u8; ARGV_BYTES],
}

/// Where the fields lie that only this part needs; see [`super::Offsets`].
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineageOffsets {
    /// `linux_binprm.filename`
    pub binprm_filename: u32,
    /// `linux_binprm.interp`
    pub binprm_interp: u32,
    /// `mm_struct.arg_start`
    pub mm_arg_start: u32,
    /// `mm_struct.arg_end`
    pub mm_arg_end: u32,
}

#[cfg(feature = "user")]
mod user {
    use super::{Lineage, LineageOffsets, RunCounts, Tool};

    // SAFETY: each is repr(C), Copy, made of integers only and without padding.
    unsafe impl aya::Pod for Lineage {}
    // SAFETY: as above.
    unsafe impl aya::Pod for RunCounts {}
    // SAFETY: as above.
    unsafe impl aya::Pod for Tool {}
    // SAFETY: as above.
    unsafe impl aya::Pod for LineageOffsets {}
}

const _: () = {
    assert!(size_of::<Lineage>() == 3 * 8 + 2 * 4);
    assert!(size_of::<Tool>() == 8 + COMM_BYTES);
    assert!(size_of::<Exit>() == 8 + 2 * 4);
    assert!(size_of::<Event>() == 4 * 4 + 3 * 8);
    assert!(size_of::<Program>() == size_of::<Event>() + COMM_BYTES + 8 + ARGV_BYTES);
};
