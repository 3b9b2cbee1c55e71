//! What must be so before *stuck* is good enough to end a job of AWS Batch.
//!
//! A finding that is wrong costs somebody time, an end that is wrong costs days of computing. So of a job that [is stuck](super::judge()) more is asked here, of the same two
//! heartbeats, when a plan to terminate it is made and right before that is done: nothing else of anybody's has run on its machine since the window began (the job may wait for
//! it there, over the loopback, which shows as no connection); no thread of the job sleeps until a timer wakes it; how each of its threads is held is told, and all of them
//! are in a wait that a signal would end; and the agent tells of everything that may hide work that it looks there. Whatever is not known says no. It is 100 to 200 bytes
//! more in each sample of a job, and takes one pass over the rows of a heartbeat.

use super::{Progress, WorkCase, WorkJudgement, WorkNow, decision, sample::States, words};
use crate::verdict::{
    signal::{add, is_workload},
    watched::is_told,
};
use heartbeat::wire::{self, CapabilityStatus};
use model::Verdict;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What may hide work from an agent that does not look there.
const HIDING: [&str; 4] = ["accelerators", "rdma", "interfaces", "interactive_sessions"];
const TIMED_WAITS: &str = "timed_waits";

/// What a heartbeat tells beside the job itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beside {
    /// So many rows are the job's, of containers that live or have ended.
    pub own_rows: u32,
    /// So many rows of workloads are not.
    pub other_rows: u32,
    /// What the latter have done together since the agent counts; what was not measured of one of them is not there.
    pub others: BTreeMap<Progress, u64>,
    /// The longest that a thread of the job has slept until a timer wakes it, in nanoseconds; none if none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timed_wait_ns: Option<u64>,
    /// What the agent does not say to see.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub untold: BTreeSet<String>,
}

impl Beside {
    /// `own` are the job's rows.
    pub(super) fn of(heartbeat: &wire::Heartbeat, own: &[&wire::WorkloadActivity]) -> Self {
        let capabilities = heartbeat.coverage.as_ref().map_or(&[][..], |coverage| &coverage.capabilities);
        let is_own = |row: &wire::WorkloadActivity| own.iter().any(|one| std::ptr::eq(*one, row));
        let others: Vec<_> = heartbeat.workloads.iter().filter(|row| is_workload(row) && !is_own(row)).collect();
        let done = |what: &Progress| {
            let all = others.iter().map(|row| what.of(row)).reduce(add).flatten();
            all.map(|all| (*what, all))
        };
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let hidden = HIDING.into_iter().filter(|name| !is_told(capabilities, name));
        // Where nobody looks for sleepers there may be some.
        let is_read =
            capabilities.iter().any(|one| one.name == TIMED_WAITS && one.status == i32::from(CapabilityStatus::Ok));
        Self {
            own_rows: count(own.len()),
            other_rows: count(others.len()),
            others: Progress::ALL.iter().filter_map(done).collect(),
            timed_wait_ns: own.iter().filter_map(|row| row.timed_wait_ns).max(),
            untold: hidden.chain((!is_read).then_some(TIMED_WAITS)).map(str::to_owned).collect(),
        }
    }
}

/// Why a job is not ended, though it may be stuck.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Doubt {
    /// It is not even stuck.
    #[error("{why}")]
    NotStuck {
        /// What decided, in words.
        why: String,
    },
    /// The heartbeats are of before this was asked.
    #[error("what else ran on its machine was not kept")]
    NotKept,
    /// Something may hide work there.
    #[error("the agent on its machine does not say that it sees {}", what.iter().map(String::as_str).collect::<Vec<_>>().join(", "))]
    Untold {
        /// Capabilities of the agent.
        what: BTreeSet<String>,
    },
    /// It wakes by itself.
    #[error("a thread of it sleeps until a timer wakes it, and has done so for {} s", slept_ns / 1_000_000_000)]
    Timed {
        /// For so long already, in nanoseconds.
        slept_ns: u64,
    },
    /// Nobody knows whether a signal would end what its threads wait for.
    #[error("how its threads are held is not told")]
    StatesNotTold,
    /// A file server that comes back, whoever stopped it, or whoever froze it lets it go on.
    #[error(
        "threads of it are not in a plain wait: {running} run or lack a CPU, {uninterruptible} wait for storage or the like, {stopped} are stopped, {frozen} are frozen"
    )]
    HeldByOthers {
        /// On a CPU, or waiting for one.
        running: u32,
        /// In a wait that no signal ends.
        uninterruptible: u32,
        /// By a signal or a debugger.
        stopped: u32,
        /// By a cgroup's freezer.
        frozen: u32,
    },
    /// It may wait for that.
    #[error("other work ran on its machine meanwhile, for which it may wait: {}", words::counters(by))]
    OthersRan {
        /// What of it moved; none if some of it began or ended.
        by: Vec<Progress>,
    },
    /// So it may have run.
    #[error("whether other work ran on its machine meanwhile is not known: {} of it was not measured", words::counter(*lacking))]
    OthersNotMeasured {
        /// What was not measured.
        lacking: Progress,
    },
}

/// Whether a job that was judged is so surely stuck that it may be ended.
///
/// # Errors
/// The first reason why it is not.
pub fn certain(case: &WorkCase, judgement: &WorkJudgement) -> Result<(), Doubt> {
    if judgement.verdict != Verdict::Stuck {
        return Err(Doubt::NotStuck { why: decision(judgement, case) });
    }
    let (begin, end) = case.begin.as_ref().zip(case.end.as_ref()).ok_or(Doubt::NotKept)?;
    let (before, now) = begin.beside.as_ref().zip(end.beside.as_ref()).ok_or(Doubt::NotKept)?;
    let untold: BTreeSet<String> = before.untold.union(&now.untold).cloned().collect();
    if !untold.is_empty() {
        return Err(Doubt::Untold { what: untold });
    }
    if let Some(slept_ns) = now.timed_wait_ns {
        return Err(Doubt::Timed { slept_ns });
    }
    all_plainly_wait(end.work.as_ref())?;
    others_rest(before, now)
}

/// Whether each thread of it is in a wait that a signal would end.
fn all_plainly_wait(work: Option<&WorkNow>) -> Result<(), Doubt> {
    let states = work.and_then(|work| work.states).ok_or(Doubt::StatesNotTold)?;
    let States { running, sleeping, uninterruptible, stopped, frozen } = states;
    if [running, uninterruptible, stopped, frozen] != [0; 4] {
        return Err(Doubt::HeldByOthers { running, uninterruptible, stopped, frozen });
    }
    if sleeping == 0 { Err(Doubt::StatesNotTold) } else { Ok(()) }
}

/// Whether nothing else of anybody's has run in between, and as many containers of the job's were there.
fn others_rest(before: &Beside, now: &Beside) -> Result<(), Doubt> {
    if (before.own_rows, before.other_rows) != (now.own_rows, now.other_rows) {
        return Err(Doubt::OthersRan { by: Vec::new() });
    }
    if now.other_rows == 0 {
        return Ok(());
    }
    let is_told = |needed: &Progress| before.others.contains_key(needed) && now.others.contains_key(needed);
    if let Some(lacking) = Progress::NEEDED.into_iter().find(|needed| !is_told(needed)) {
        return Err(Doubt::OthersNotMeasured { lacking });
    }
    let by: Vec<_> = Progress::ALL.into_iter().filter(|what| before.others.get(what) != now.others.get(what)).collect();
    if by.is_empty() { Ok(()) } else { Err(Doubt::OthersRan { by }) }
}
