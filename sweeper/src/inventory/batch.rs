//! AWS Batch as it describes itself: where jobs may run, where they queue, and the jobs.
//!
//! A fact that Batch left out is `None`, never a default, and words stay in its own spelling: one of a later day is kept as it is. What a job
//! is told to do (command, environment, parameters) may hold secrets and is not kept.

use model::ResourceKey;
use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize, Serializer};

/// Of jobs that are over those are listed that ended no longer ago.
pub const COMPLETED_FOR: SignedDuration = SignedDuration::from_hours(24);

/// Where jobs may run.
/// <https://docs.aws.amazon.com/batch/latest/APIReference/API_ComputeEnvironmentDetail.html>
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComputeEnvironment {
    /// The resource key; it ends in the environment's name, which is unique in an account and region.
    pub id: ResourceKey,
    /// `arn:aws:batch:…`, by which queues name it.
    pub arn: Option<String>,
    /// `ENABLED` or `DISABLED`: whether it takes jobs. A disabled one keeps its machines down to `min_vcpus` all the same.
    pub state: Option<String>,
    /// `VALID`, `INVALID`, `UPDATING`, …
    pub status: Option<String>,
    /// Why that is its status.
    pub status_reason: Option<String>,
    /// `MANAGED`: Batch starts and ends the machines. `UNMANAGED`: somebody registers theirs.
    pub management: Option<String>,
    /// `ECS` or `EKS`.
    pub orchestration: Option<String>,
    /// The cluster that its machines register with.
    pub ecs_cluster_arn: Option<String>,
    /// The same where Kubernetes places the jobs.
    pub eks_cluster_arn: Option<String>,
    /// `EC2`, `SPOT`, `FARGATE`, `FARGATE_SPOT`, …
    pub resource_type: Option<String>,
    /// `BEST_FIT_PROGRESSIVE`, `SPOT_CAPACITY_OPTIMIZED`, …
    pub allocation_strategy: Option<String>,
    /// It never has fewer, even while it is disabled.
    pub min_vcpus: Option<u32>,
    /// What Batch wants at the moment.
    pub desired_vcpus: Option<u32>,
    /// Never more.
    pub max_vcpus: Option<u32>,
    /// Types and families that it may start: `m5.large`, `c6i`, `optimal`.
    pub instance_types: Option<Vec<String>>,
    /// For so long a machine without a job is kept; if left out, Batch's own pace.
    pub min_scale_down_delay_minutes: Option<u32>,
    /// Its own tags; none if Batch did not tell any, if only that there are none. The history keeps that as no tags, since versions before read no other.
    #[serde(serialize_with = "or_empty")]
    pub tags: Option<BTreeMap<String, String>>,
}

/// Where jobs wait for an environment.
/// <https://docs.aws.amazon.com/batch/latest/APIReference/API_JobQueueDetail.html>
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobQueue {
    /// The resource key; it ends in the queue's name, which is unique in an account and region.
    pub id: ResourceKey,
    /// `arn:aws:batch:…`, by which jobs name it.
    pub arn: Option<String>,
    /// `ENABLED` or `DISABLED`: whether it takes jobs.
    pub state: Option<String>,
    /// `VALID`, `INVALID`, …
    pub status: Option<String>,
    /// Why that is its status.
    pub status_reason: Option<String>,
    /// The higher one is served first where queues share an environment.
    pub priority: Option<i64>,
    /// Present where shares decide the order of jobs instead of their age.
    pub scheduling_policy_arn: Option<String>,
    /// What it may use. `None`: it did not say.
    pub environments: Option<Vec<QueuedEnvironment>>,
    /// Its own tags; none if Batch did not tell any, if only that there are none. The history keeps that as no tags, since versions before read no other.
    #[serde(serialize_with = "or_empty")]
    pub tags: Option<BTreeMap<String, String>>,
}

/// An environment of a queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuedEnvironment {
    /// The lowest is tried first.
    pub order: Option<i64>,
    /// Its ARN.
    pub arn: Option<String>,
}

/// A job: a plain one, an array or a multi-node job as a whole, or one child or node of these.
/// <https://docs.aws.amazon.com/batch/latest/APIReference/API_JobDetail.html>
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchJob {
    /// The resource key; its id is Batch's: a UUID, `UUID:3` for child 3 of an array, `UUID#0` for node 0 of a multi-node job.
    pub id: ResourceKey,
    /// `arn:aws:batch:…`
    pub arn: Option<String>,
    /// What people call it.
    pub name: Option<String>,
    /// `SUBMITTED`, `PENDING`, `RUNNABLE`, `STARTING`, `RUNNING`, `SUCCEEDED`, `FAILED`.
    pub status: Option<String>,
    /// Why, if Batch says: what a `RUNNABLE` one waits for, how a `FAILED` one ended.
    pub status_reason: Option<String>,
    /// ARN of its queue.
    pub queue: Option<String>,
    /// ARN of what it was made from.
    pub definition: Option<String>,
    /// When it was submitted.
    pub created_at: Option<Timestamp>,
    /// When the current or last attempt became `RUNNING`.
    pub started_at: Option<Timestamp>,
    /// When it ended for good.
    pub stopped_at: Option<Timestamp>,
    /// Present for an array and for each of its children.
    pub array: Option<ArrayPart>,
    /// Present for a multi-node job and for each of its nodes.
    pub node: Option<NodePart>,
    /// What it waits for while it is `PENDING`; none if Batch did not say: a list of jobs does not. The history keeps that as nothing, since versions before read no other.
    #[serde(serialize_with = "or_empty")]
    pub depends_on: Option<Vec<Dependency>>,
    /// Whether somebody took it back before it started.
    pub is_cancelled: Option<bool>,
    /// Whether somebody ended it.
    pub is_terminated: Option<bool>,
    /// An attempt is ended after so many seconds.
    pub timeout_s: Option<u64>,
    /// So many attempts it has at most.
    pub attempts_allowed: Option<u32>,
    /// What it asked for.
    pub resources: Vec<Requirement>,
    /// Where its current or last attempt runs on ECS: one task, or none before `STARTING`.
    pub tasks: Vec<JobTask>,
    /// The same on EKS.
    pub pod: Option<Pod>,
    /// The attempts that ended; retries are one fewer.
    pub attempts: Vec<Attempt>,
    /// Its own tags.
    pub tags: BTreeMap<String, String>,
}

/// A job's part in an array.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArrayPart {
    /// The array's id, for a child.
    pub parent: Option<String>,
    /// So many children, for the array itself.
    pub size: Option<u32>,
    /// Which child, from 0.
    pub index: Option<u32>,
}

/// A job's part in a multi-node job, whose own times, reason and exit are those of its main node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodePart {
    /// The multi-node job's id, for a node.
    pub parent: Option<String>,
    /// So many nodes, for the job as a whole.
    pub size: Option<u32>,
    /// Which node, from 0.
    pub index: Option<u32>,
    /// Whether it is the one that decides how the job ends.
    pub is_main: Option<bool>,
}

/// Another job that has to end first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dependency {
    /// Its id; in an array with `SEQUENTIAL` there is none.
    pub job_id: Option<String>,
    /// `N_TO_N` or `SEQUENTIAL`, between arrays.
    pub kind: Option<String>,
}

/// What a job asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requirement {
    /// `VCPU`, `MEMORY`, `GPU`; on EKS `cpu`, `memory`, `nvidia.com/gpu`, ….
    pub kind: String,
    /// Memory in MiB on ECS; on EKS in Kubernetes' words: `2`, `4096Mi`.
    pub value: String,
    /// For which container, where the job has several.
    pub container: Option<String>,
}

/// The ECS task of an attempt, as Batch tells it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobTask {
    /// Known from `STARTING` on.
    pub arn: Option<String>,
    /// What it runs on; never told on Fargate.
    pub container_instance_arn: Option<String>,
    /// Its containers; one without a name for a plain job.
    pub containers: Vec<JobContainer>,
}

/// A container of an attempt, as Batch tells it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobContainer {
    /// In the job's definition, where it has several.
    pub name: Option<String>,
    /// How it ended.
    pub exit_code: Option<i64>,
    /// Why, if it did not end by itself.
    pub reason: Option<String>,
    /// Where `CloudWatch` Logs keeps what it wrote.
    pub log_stream: Option<String>,
}

/// The pod of an attempt on EKS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pod {
    /// Its name.
    pub name: Option<String>,
    /// The Kubernetes node that it runs on.
    pub node: Option<String>,
    /// Where that node belongs.
    pub cluster_arn: Option<String>,
}

/// One attempt that ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// From 1, in Batch's order.
    pub number: u32,
    /// Where it ran on ECS.
    pub tasks: Vec<JobTask>,
    /// Where it ran on EKS.
    pub pod: Option<Pod>,
    /// When it became `RUNNING`.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub stopped_at: Option<Timestamp>,
    /// Why.
    pub reason: Option<String>,
}

/// What was not told is kept as versions before keep it.
#[expect(clippy::ref_option, reason = "as serde has it")]
fn or_empty<T: Default + Serialize, S: Serializer>(told: &Option<T>, serializer: S) -> Result<S::Ok, S::Error> {
    match told {
        Some(told) => told.serialize(serializer),
        None => T::default().serialize(serializer),
    }
}

impl ComputeEnvironment {
    /// Whether Batch starts and ends machines for it: an environment of Fargate has none, and those of an unmanaged one are somebody else's.
    #[must_use]
    pub fn has_machines(&self) -> bool {
        self.management.as_deref() == Some("MANAGED")
            && !self.resource_type.as_deref().is_some_and(|it| it.starts_with("FARGATE"))
    }
}

/// The clusters of managed environments on which a job may be placed at the moment. Of these only the machines are listed that jobs name, of every
/// other cluster all.
#[must_use]
pub fn clusters_in_use(
    environments: &[ComputeEnvironment],
    queues: &[JobQueue],
    jobs: &[BatchJob],
) -> BTreeSet<String> {
    let named = |queue: &JobQueue| queue.arn.clone().unwrap_or_else(|| queue.id.id.clone());
    let placing: BTreeSet<_> = jobs.iter().filter(|job| job.is_placed()).map(|job| job.queue.clone()).collect();
    let known: BTreeSet<_> = queues.iter().map(named).collect();
    let may_be_anywhere = placing.iter().any(|queue| queue.as_ref().is_none_or(|queue| !known.contains(queue)));
    let serves = |environment: &ComputeEnvironment, queue: &JobQueue| {
        queue.environments.as_ref().is_none_or(|used| {
            used.iter().any(|used| used.arn.is_none() || environment.arn.is_none() || used.arn == environment.arn)
        })
    };
    let is_in_use = |environment: &&ComputeEnvironment| {
        let mut serving = queues.iter().filter(|queue| placing.contains(&Some(named(queue))));
        environment.management.as_deref() == Some("MANAGED")
            && (may_be_anywhere || serving.any(|queue| serves(environment, queue)))
    };
    let clusters = environments.iter().filter(is_in_use).filter_map(|one| one.ecs_cluster_arn.as_deref());
    clusters.map(|arn| super::ecs::last_part(arn).to_owned()).collect()
}

impl BatchJob {
    /// Whether nothing of it will run again; a word that this version does not know may mean anything, and is no end.
    #[must_use]
    pub fn is_over(&self) -> bool {
        is_over(self.status.as_deref())
    }

    /// Whether it is placed on a machine now, or may be.
    #[must_use]
    pub fn is_placed(&self) -> bool {
        let waits = ["SUBMITTED", "PENDING", "RUNNABLE"];
        !self.is_over() && !self.status.as_deref().is_some_and(|status| waits.contains(&status))
    }

    /// Id of what was submitted: its own, or that of the array or the multi-node job that it is a part of.
    #[must_use]
    pub fn submitted_as(&self) -> &str {
        let array = self.array.as_ref().and_then(|array| array.parent.as_deref());
        let whole = array.or_else(|| self.node.as_ref().and_then(|node| node.parent.as_deref()));
        whole.unwrap_or(&self.id.id)
    }

    /// Since when it is in its status, as far as Batch tells: a running one since it started, one that is over since it stopped, any other
    /// since it was submitted.
    #[must_use]
    pub fn since(&self) -> Option<Timestamp> {
        match self.status.as_deref() {
            Some("RUNNING") => self.started_at.or(self.created_at),
            _ if self.is_over() => self.stopped_at,
            _ => self.created_at,
        }
    }
}

pub(super) fn is_over(status: Option<&str>) -> bool {
    matches!(status, Some("SUCCEEDED" | "FAILED"))
}
