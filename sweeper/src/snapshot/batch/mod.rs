//! What AWS Batch runs, keeps waiting and keeps ready: jobs, queues and compute environments.

mod cost;
mod known;
mod read;
mod terminable;
#[cfg(test)]
mod tests;

pub use cost::cost;
pub use known::{BatchHistory, Known, PlacedJobs, task_of};
pub(super) use read::thing_of_job;
pub use read::{batch_resources, says_blocked};
pub use terminable::{AroundJob, job_facts};

use super::{Coverage, SnapshotPart, Thing};
use crate::{inventory::LaunchedBy, pricing::Cost};
use jiff::Timestamp;
use model::ResourceKey;
use serde::{Deserialize, Serialize};

/// A job, a queue or a compute environment that may be waste, or of which that was found once.
#[derive(Clone, Debug)]
pub struct BatchResource {
    /// Its key.
    pub id: ResourceKey,
    /// What detectors decide from.
    pub inputs: BatchInputs,
    /// What its provider says of it; none if it does not list it.
    pub thing: Option<Thing>,
    /// What it costs.
    pub cost: Cost,
}

/// Everything that a detection on it depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchInputs {
    /// As of when.
    pub at: Timestamp,
    /// Whether its provider would list it.
    pub coverage: Coverage,
    /// As it is listed; none if it is not.
    pub state: Option<BatchState>,
    /// What that is held against.
    pub policy: BatchPolicy,
    /// What could not be read of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<SnapshotPart>,
}

/// After how many seconds something is waste.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchPolicy {
    /// A queue whose first job cannot be placed.
    pub blocked_after_s: u64,
    /// A job that is starting.
    pub starting_after_s: u64,
    /// A job whose task has stopped or is not known.
    pub lost_after_s: u64,
    /// The last child of an array, however short the others were.
    pub straggling_after_s: u64,
    /// Capacity that is kept ready for queues without a job.
    pub held_after_s: u64,
    /// A job whose head has failed. No version before asked for that.
    #[serde(default)]
    pub orphaned_after_s: u64,
}

/// What is listed of one resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "of", rename_all = "snake_case")]
pub enum BatchState {
    /// A job that is placed on a machine, or a part of one that is.
    Job(JobState),
    /// A queue.
    Queue(QueueState),
    /// A compute environment.
    Environment(EnvironmentState),
}

/// What is listed of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobState {
    /// In Batch's words; none if it did not say.
    pub status: Option<String>,
    /// Since when it has had this status, as far as Batch, ECS or the kept history tells.
    pub since: Option<Timestamp>,
    /// The ECS task that it runs in.
    pub task: TaskState,
    /// Of a child of an array: what became of the others, where all of them are over.
    pub siblings: Option<Siblings>,
    /// Who submitted it, as far as the provider's trail was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submitted_by: Option<LaunchedBy>,
    /// The job that submitted it; none if no job did, or none that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<Head>,
}

/// A job that submits others and waits for them: the head of a workflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// Batch's id of it.
    pub id: String,
    /// What people call it.
    pub name: Option<String>,
    /// In Batch's words; none if it did not say.
    pub status: Option<String>,
    /// When it ended for good.
    pub ended_at: Option<Timestamp>,
}

/// What ECS says of a job's task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum TaskState {
    /// Batch names none: it has none yet, or Kubernetes runs it.
    NotNamed,
    /// It is known.
    Known {
        /// In ECS's words.
        status: Option<String>,
        /// When it stopped.
        stopped_at: Option<Timestamp>,
        /// Why, in ECS's words.
        reason: Option<String>,
    },
    /// ECS was asked for it and does not know it.
    Missing {
        /// Since when no list has had it.
        since: Option<Timestamp>,
    },
}

/// The other children of an array, all of which are over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Siblings {
    /// So many children of the array ended.
    pub over: u32,
    /// Of so many it is known how long they ran.
    pub timed: u32,
    /// The longest of these, in seconds.
    pub longest_s: u64,
    /// When the last of these ended.
    pub last_end: Timestamp,
}

/// What is listed of a queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueState {
    /// Its jobs; none if they could not be listed.
    pub jobs: Option<QueueJobs>,
}

/// The jobs of a queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueJobs {
    /// So many wait to be placed.
    pub runnable: u32,
    /// So many are starting or running.
    pub placed: u32,
    /// When one of them last began to run, or ended.
    pub last_move: Option<Timestamp>,
    /// The one that has waited longest of those that Batch says to be blocked, or else of all.
    pub first: Option<WaitingJob>,
}

/// A job that waits to be placed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingJob {
    /// Batch's id of it.
    pub id: String,
    /// What people call it.
    pub name: Option<String>,
    /// Since when it could have been placed, as far as Batch or the kept history tells.
    pub since: Option<Timestamp>,
    /// Since when every list has shown that Batch says so.
    pub blocked_since: Option<Timestamp>,
    /// Why it cannot be, in Batch's words: `CAPACITY:…`, `MISCONFIGURATION:…`; none if Batch does not say that it cannot.
    pub blocked_by: Option<String>,
}

/// What is listed of a compute environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvironmentState {
    /// It is never given fewer; none if Batch did not say, or whose machines are not Batch's.
    pub min_vcpus: Option<u32>,
    /// Since when every list has shown that it keeps some.
    pub held_since: Option<Timestamp>,
    /// The jobs of its queues; none if they, or which queues these are, could not be read.
    pub jobs: Option<EnvironmentJobs>,
    /// So many machines are registered with its cluster; none if that is not known.
    pub machines: Option<u32>,
}

/// The jobs of all queues that an environment serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvironmentJobs {
    /// So many are not over.
    pub live: u32,
    /// When the last one ended, or the begin of the time in which ended ones are listed.
    pub last_end: Timestamp,
}

impl BatchInputs {
    /// Whether its provider was asked about it at all.
    #[must_use]
    pub fn was_asked(&self) -> bool {
        self.coverage != Coverage::NotAsked
    }
}
