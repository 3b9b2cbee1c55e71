//! From a case to a verdict on a piece of work.
//!
//! Work is `stuck` if and only if it should finish (its [`Contract`](super::Contract)), and for `stuck_after` up to the newest heartbeat, in one boot and by one agent that was
//! there all the time and lost nothing, no counter of it moved: no task of it ran at all, so that it read, wrote, sent, started and ended nothing; and nothing that it may
//! wait for is seen: it holds no connection, no GPU and no RDMA adapter worked, no other task of its run, no run within it and no container ran where that may be
//! its doing, nobody typed within `interactive_after`, and no thread of it only lacks a CPU. It is `active` if a counter of it moved, `waiting` if one of those is seen, and
//! `unknown` in every other case. Work that runs and gets nowhere (a spin, a poll) is never stuck by this.
//!
//! A task that lives after its run is judged by when that ended (`orphan.rs`): whether it runs is told, and decides nothing.
//!
//! A run as a whole is `stuck` if and only if it has not ended, and within the same window five tasks of it failed at least, and none succeeded. It is `active` if one did.

use super::{
    Contract, Failure, WorkCase, WorkNow, WorkSample,
    gaps::{gaps, span_ms},
    orphan, run,
    sample::States,
};
use crate::verdict::window::Gpu;
use heartbeat::wire;
use model::Verdict;
use serde::{Deserialize, Serialize};

/// A counter that shows progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Progress {
    /// CPU time, in nanoseconds: who has used none has not run.
    Cpu,
    /// Processes started by fork and programs started by exec.
    Starts,
    /// Processes that ended.
    Exits,
    /// Switches away from tasks that waited, and from tasks that would have run on.
    Switches,
    /// Page faults.
    Faults,
    /// Read and write system calls.
    Calls,
    /// Bytes from and to storage.
    Disk,
    /// Bytes over the network.
    Network,
}

impl Progress {
    pub(super) const ALL: [Self; 8] =
        [Self::Cpu, Self::Starts, Self::Exits, Self::Switches, Self::Faults, Self::Calls, Self::Disk, Self::Network];
    /// Without these nothing is said. Some kernels lack one of the others, and nothing that they count is done without CPU time.
    pub(super) const NEEDED: [Self; 4] = [Self::Cpu, Self::Starts, Self::Exits, Self::Switches];

    /// The counter of a row; none if it was not measured.
    pub(super) fn of(self, row: &wire::WorkloadActivity) -> Option<u64> {
        use crate::verdict::signal::add;
        match self {
            Self::Cpu => row.cpu_ns,
            Self::Starts => add(row.forks, row.execs),
            Self::Exits => row.exits,
            Self::Switches => add(row.voluntary_switches, row.involuntary_switches),
            Self::Faults => add(row.minor_faults, row.major_faults),
            Self::Calls => add(row.read_calls, row.write_calls),
            Self::Disk => add(row.disk_read_bytes, row.disk_written_bytes),
            Self::Network => add(row.network_received_bytes, row.network_sent_bytes),
        }
    }
}

/// What work waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkWait {
    /// It holds connections with other machines, or may.
    Connections {
        /// So many.
        count: u32,
    },
    /// GPUs worked.
    Gpu,
    /// RDMA adapters moved data.
    Rdma,
    /// This ran elsewhere on the node, and may do so for it.
    Others {
        /// By name, eight at most.
        names: Vec<String>,
    },
    /// Somebody typed at a terminal.
    Person {
        /// When, in milliseconds since 1970-01-01 UTC.
        last_input_unix_ms: i64,
    },
}

/// Why a verdict on work is `unknown`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkUnknown {
    /// No heartbeat is known.
    NoAgent,
    /// Somebody without the node's key claims to be it.
    Disputed,
    /// The agent stopped reporting.
    Silent {
        /// End of the last heartbeat, in milliseconds since 1970-01-01 UTC.
        last_heartbeat_unix_ms: i64,
    },
    /// The newest heartbeat does not show it: it has ended, or its processes are not seen.
    NotShown,
    /// One agent in one boot has not seen it for long enough.
    ObservedTooShort,
    /// The agent was not there, or did not run, for a part of the time.
    Gaps {
        /// Heartbeats that it made.
        made: u64,
        /// Heartbeats that there should be.
        expected: u64,
    },
    /// Something was not measured.
    NotMeasured {
        /// What.
        what: Vec<String>,
    },
    /// Kernel events were lost.
    LostEvents {
        /// How many.
        count: u64,
    },
    /// Too few tasks of the run failed to say so.
    FewFailures {
        /// So many did.
        failed: u64,
    },
    /// Its run has ended, and not for long.
    EndedLately {
        /// When the run ended, in milliseconds since 1970-01-01 UTC.
        run_ended_unix_ms: i64,
    },
    /// Threads of it could run and had no CPU.
    HeldBack {
        /// So many.
        threads: u32,
    },
}

/// How work that does not run is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Held {
    /// By a cgroup's freezer.
    Frozen,
    /// By a signal or a debugger.
    Stopped,
    /// In a wait that no signal ends, mostly for storage.
    Uninterruptible,
    /// In a wait that a signal would end: a lock, a pipe, a sleep, a child.
    Asleep,
    /// Its threads' states are not told.
    NotTold,
}

/// The one thing that decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkDecision {
    /// These counters moved within the window.
    Moved {
        /// Which; none if it began within the window.
        by: Vec<Progress>,
    },
    /// None moved, and it may wait for this.
    Waiting {
        /// What.
        on: Vec<WorkWait>,
    },
    /// None moved, and nothing explains it.
    Still {
        /// How it is held.
        held: Held,
        /// Processes alive.
        processes: u32,
        /// Threads alive.
        threads: u32,
        /// How long none of these threads has run, in milliseconds, where that is told.
        not_run_ms: Option<i64>,
    },
    /// Tasks of the run succeeded within the window.
    Succeeded {
        /// So many.
        tasks: u64,
    },
    /// Tasks of the run failed, and none succeeded.
    Failing {
        /// So many failed.
        tasks: u64,
        /// The latest of them, where it is still listed.
        last: Option<Failure>,
    },
    /// It lives, though its run has ended.
    Orphaned {
        /// When the run ended, in milliseconds since 1970-01-01 UTC.
        run_ended_unix_ms: i64,
        /// How the run's first process ended, as wait(2) gives it; none if that was not seen.
        run_wait_status: Option<u32>,
        /// Processes alive.
        processes: u32,
        /// CPU time that they used within the window, in milliseconds; none if that is not known.
        cpu_ms: Option<u64>,
    },
    /// There is not enough evidence.
    Unknown(WorkUnknown),
}

/// A verdict with what decided it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkJudgement {
    /// The verdict.
    pub verdict: Verdict,
    /// The window that was judged, in milliseconds since 1970-01-01 UTC; none without one.
    pub window_unix_ms: Option<[i64; 2]>,
    /// What decided.
    pub decision: WorkDecision,
}

/// A name of each kind is enough for a person.
const NAMED: usize = 8;

/// Judges a case.
#[must_use]
pub fn judge(case: &WorkCase) -> WorkJudgement {
    let of = |decision| WorkJudgement {
        verdict: match &decision {
            WorkDecision::Moved { .. } | WorkDecision::Succeeded { .. } => Verdict::Active,
            WorkDecision::Waiting { .. } => Verdict::Waiting,
            WorkDecision::Still { .. } | WorkDecision::Failing { .. } => Verdict::Stuck,
            WorkDecision::Orphaned { cpu_ms: Some(1..), .. } => Verdict::Active,
            // Whether it should run at all, nobody knows.
            WorkDecision::Orphaned { .. } | WorkDecision::Unknown(_) => Verdict::Unknown,
        },
        window_unix_ms: case
            .begin
            .as_ref()
            .zip(case.end.as_ref())
            .map(|(begin, end)| [begin.end_unix_ms, end.end_unix_ms]),
        decision,
    };
    let decided = window(case).and_then(|(begin, end)| {
        // What is not listed for want of room, or of the right to read it, has not ended by that.
        let hidden = match case.contract {
            Contract::BatchJob { .. } => None,
            Contract::Pod { .. } => end.containers_are_unread.then_some("names of containers"),
            Contract::RunTask(_) | Contract::OrphanedTask(_) | Contract::Run { .. } => {
                end.runs_are_unread.then_some("runs and their tasks")
            }
        };
        let hidden = hidden.map(|what| WorkUnknown::NotMeasured { what: vec![what.to_owned()] });
        let not_shown = WorkDecision::Unknown(hidden.unwrap_or(WorkUnknown::NotShown));
        if let Contract::Run { .. } = case.contract {
            let now = end.run.as_ref().ok_or(not_shown)?;
            return Ok(run::decide(case, begin?, end, now));
        }
        if let Contract::OrphanedTask(_) = case.contract {
            // A run that is open again has no orphans.
            let (now, run_end) = end.work.as_ref().zip(end.run_end).ok_or(not_shown)?;
            return Ok(orphan::decide(case, begin?, end, now, run_end));
        }
        let now = end.work.as_ref().ok_or(not_shown)?;
        Ok(decide(case, begin?, end, now))
    });
    of(decided.unwrap_or_else(|undecided| undecided))
}

/// An end that may not be there for what is decided then.
type Or<'a> = Result<&'a WorkSample, WorkDecision>;

/// The two ends, the first one if it can be compared with the second; or what is decided without them.
fn window(case: &WorkCase) -> Result<(Or<'_>, &WorkSample), WorkDecision> {
    let unknown = |why| Err(WorkDecision::Unknown(why));
    let Some(end) = &case.end else { return unknown(WorkUnknown::NoAgent) };
    if case.identity.is_some_and(|identity| identity.disputed_since_unix_ms.is_some()) {
        return unknown(WorkUnknown::Disputed);
    }
    let silent_after_ms = end.interval_ms.saturating_mul(i64::from(case.policy.missed_heartbeats).max(1));
    if case.now_unix_ms.saturating_sub(end.end_unix_ms) > silent_after_ms {
        return unknown(WorkUnknown::Silent { last_heartbeat_unix_ms: end.end_unix_ms });
    }
    let is_comparable = |begin: &&WorkSample| {
        begin.boot_id == end.boot_id
            && begin.counters_since_boottime_ns == end.counters_since_boottime_ns
            && begin.is_exact == end.is_exact
            && begin.end_boottime_ns < end.end_boottime_ns
    };
    let begin = case.begin.as_ref().filter(is_comparable);
    Ok((begin.ok_or(WorkDecision::Unknown(WorkUnknown::ObservedTooShort)), end))
}

fn decide(case: &WorkCase, begin: &WorkSample, end: &WorkSample, now: &WorkNow) -> WorkDecision {
    let Some(before) = &begin.work else { return WorkDecision::Moved { by: Vec::new() } };
    // A counter that runs backwards is one of other tasks: what it counts has changed all the same.
    let moved = |what: &Progress| match (before.counters.get(what), now.counters.get(what)) {
        (Some(before), Some(now)) => before != now,
        _ => false,
    };
    let by: Vec<_> = Progress::ALL.into_iter().filter(moved).collect();
    if !by.is_empty() {
        return WorkDecision::Moved { by };
    }
    let span_ms = span_ms(begin, end);
    if span_ms < case.policy.stuck_after_ms {
        return WorkDecision::Unknown(WorkUnknown::ObservedTooShort);
    }
    if let Some(lacking) = lacking(begin, before, end, now, span_ms) {
        return WorkDecision::Unknown(lacking);
    }
    let on = waits(case, begin, end);
    if !on.is_empty() {
        return WorkDecision::Waiting { on };
    }
    match now.states {
        Some(States { running, .. }) if running > 0 => {
            WorkDecision::Unknown(WorkUnknown::HeldBack { threads: running })
        }
        states => WorkDecision::Still {
            held: held(states),
            processes: now.live_processes,
            threads: now.live_threads,
            not_run_ms: now.not_run_ns.map(|ns| i64::try_from(ns / 1_000_000).unwrap_or(i64::MAX)),
        },
    }
}

/// What the two ends lack to show that nothing happened in between.
fn lacking(begin: &WorkSample, before: &WorkNow, end: &WorkSample, now: &WorkNow, span_ms: i64) -> Option<WorkUnknown> {
    let mut what = Vec::new();
    if !end.is_exact {
        what.push("the kernel's counters of each task".to_owned());
    }
    let is_missing = |needed: &Progress| !(before.counters.contains_key(needed) && now.counters.contains_key(needed));
    what.extend(Progress::NEEDED.into_iter().filter(is_missing).map(|needed| super::words::counter(needed).to_owned()));
    let gpu_is_read = |sample: &WorkSample| match sample.gpu {
        Gpu::Absent => true,
        Gpu::Measured => sample.gpu_busy_ns.is_some(),
        Gpu::NotMeasured => false,
    };
    if !gpu_is_read(begin) || !gpu_is_read(end) {
        what.push("the GPUs".to_owned());
    }
    if begin.network_is_unread || end.network_is_unread || begin.rdma_bytes.is_some() != end.rdma_bytes.is_some() {
        what.push("all adapters and interfaces".to_owned());
    }
    if end.people_are_unread {
        what.push("sessions".to_owned());
    }
    if end.peers.is_none() {
        what.push("whose each connection is".to_owned());
    }
    if !what.is_empty() {
        return Some(WorkUnknown::NotMeasured { what });
    }
    gaps(begin, end, span_ms)
}

/// What the work may wait for.
fn waits(case: &WorkCase, begin: &WorkSample, end: &WorkSample) -> Vec<WorkWait> {
    let mut on = Vec::new();
    let connections = end.peers.into_iter().chain(begin.peers).max().unwrap_or(0);
    if connections > 0 {
        on.push(WorkWait::Connections { count: connections });
    }
    if end.gpu_busy_ns != begin.gpu_busy_ns {
        on.push(WorkWait::Gpu);
    }
    if end.rdma_bytes != begin.rdma_bytes {
        on.push(WorkWait::Rdma);
    }
    // What is not measured may have run.
    let ran = |(name, cpu_ns): (&String, &Option<u64>)| {
        let before = begin.others.get(name).copied().flatten();
        (cpu_ns.is_none() || before != *cpu_ns).then(|| name.clone())
    };
    let names: Vec<_> = end.others.iter().filter_map(ran).take(NAMED).collect();
    if !names.is_empty() {
        on.push(WorkWait::Others { names });
    }
    let is_recent = |at: &i64| end.end_unix_ms.saturating_sub(*at) < case.policy.interactive_after_ms;
    if let Some(last_input_unix_ms) = end.last_input_unix_ms.filter(is_recent) {
        on.push(WorkWait::Person { last_input_unix_ms });
    }
    on
}

fn held(states: Option<States>) -> Held {
    match states {
        None => Held::NotTold,
        Some(states) if states.frozen > 0 => Held::Frozen,
        Some(states) if states.stopped > 0 => Held::Stopped,
        Some(states) if states.uninterruptible > 0 => Held::Uninterruptible,
        Some(_) => Held::Asleep,
    }
}
