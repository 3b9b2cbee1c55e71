//! Judges one piece of work on a node: a job, or a task of a run, that should finish.
//!
//! Pure, as the verdict on the node. The agent's counters are cumulative, so two heartbeats tell all that a task did in between: a [`WorkCase`] holds what these two
//! say of the work and of what it may wait for, and nothing else is asked.

mod certain;
mod contract;
mod gaps;
mod judge;
mod orphan;
mod run;
mod sample;
mod spin;
mod words;

pub use certain::{Beside, Doubt, certain};
pub use contract::{Contract, RunTask};
pub use judge::{Held, Progress, WorkDecision, WorkJudgement, WorkUnknown, WorkWait, judge};
pub use sample::{Failure, RunEnd, RunNow, WorkNow, WorkSample};
pub use spin::{Spin, spin};
pub use words::{decision, spin_in_words};

use crate::identity::Identity;
use heartbeat::{BootId, wire};
use serde::{Deserialize, Serialize};

/// After how long work is stuck.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkPolicy {
    /// A node that missed more heartbeats than this in a row is silent.
    pub missed_heartbeats: u32,
    /// Work that has made no progress for so long is stuck, in milliseconds.
    pub stuck_after_ms: i64,
    /// Work that has done nothing but compute for so long spins, in milliseconds. No version before asked for that.
    #[serde(default = "never")]
    pub spinning_after_ms: i64,
    /// A session with a terminal waits for this long after its last input, in milliseconds.
    pub interactive_after_ms: i64,
}

fn never() -> i64 {
    i64::MAX
}

impl Default for WorkPolicy {
    fn default() -> Self {
        Self {
            missed_heartbeats: 3,
            stuck_after_ms: 30 * 60_000,
            spinning_after_ms: 120 * 60_000,
            interactive_after_ms: 120 * 60_000,
        }
    }
}

/// Everything that one judgement of a piece of work depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkCase {
    /// When it is judged, in milliseconds since 1970-01-01 UTC by the sweeper's clock.
    pub now_unix_ms: i64,
    /// What it is held against.
    pub policy: WorkPolicy,
    /// What says that it should progress.
    pub contract: Contract,
    /// The heartbeat in which its window begins: the newest one that is old enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begin: Option<WorkSample>,
    /// The newest heartbeat that is old enough to show that it spins; read only where it [may](Self::may_spin).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier: Option<WorkSample>,
    /// The newest heartbeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<WorkSample>,
    /// Who speaks for the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
}

impl WorkCase {
    /// What two heartbeats of a node, the older one first, say of this work.
    #[must_use]
    pub fn new(
        now_unix_ms: i64,
        policy: WorkPolicy,
        contract: Contract,
        [begin, end]: [Option<&(BootId, wire::Heartbeat)>; 2],
        identity: Option<Identity>,
    ) -> Self {
        let sample = |of: Option<&(BootId, wire::Heartbeat)>| {
            of.and_then(|(boot_id, heartbeat)| WorkSample::of(*boot_id, heartbeat, &contract))
        };
        let (begin, end) = (sample(begin), sample(end));
        Self { now_unix_ms, policy, contract, begin, earlier: None, end, identity }
    }
}

#[cfg(test)]
mod tests;
