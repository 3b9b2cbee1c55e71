//! What is known of one job of AWS Batch that may be terminated: plain data, by what Batch and ECS say of it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{ResourceKey, ResourceKind, address::Told};

/// What a job is a part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobShape {
    /// Of nothing: one task, which is all of it.
    Plain,
    /// An array as a whole, whose children run.
    Array,
    /// A child of an array. AWS tags none of them.
    Child,
    /// A multi-node job, or one of its nodes.
    MultiNode,
}

/// Where a job was submitted to, and what it was made from.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct JobPlace {
    /// ARN of its queue.
    pub queue: String,
    /// ARN of its definition, with the revision.
    pub definition: String,
    /// ARN of the compute environment whose cluster its machine is in.
    pub environment: String,
}

impl JobPlace {
    /// The keys of its queue and of its compute environment, which end in their names.
    #[must_use]
    pub fn keys(&self, job: &ResourceKey) -> [ResourceKey; 2] {
        let of = |kind, arn: &str| {
            let id = arn.rsplit('/').next().unwrap_or(arn).to_owned();
            ResourceKey { kind, id, ..job.clone() }
        };
        [of(ResourceKind::BatchJobQueue, &self.queue), of(ResourceKind::BatchComputeEnvironment, &self.environment)]
    }
}

/// One attempt of a job, on one machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct JobAttempt {
    /// Which, from 1.
    pub number: u32,
    /// When it became `RUNNING`.
    pub started_at: Timestamp,
    /// ARN of its ECS task.
    pub task: String,
    /// ARN of the ECS container instance that the task is on.
    pub container_instance: String,
    /// EC2's id of that machine: `i-…`
    pub machine: String,
}

impl JobAttempt {
    /// The key of its machine.
    #[must_use]
    pub fn machine_key(&self, job: &ResourceKey) -> ResourceKey {
        ResourceKey { kind: ResourceKind::Instance, id: self.machine.clone(), ..job.clone() }
    }
}

/// What Batch and ECS say of a job. What they did not say is none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobFacts {
    /// Twelve digits.
    pub account: String,
    /// Its region.
    pub region: String,
    /// In Batch's words: a UUID.
    pub job_id: String,
    /// What people call it.
    pub name: Option<String>,
    /// `RUNNING`, …
    pub status: Option<String>,
    /// What it is a part of.
    pub shape: JobShape,
    /// Whether it runs on Kubernetes (EKS) and not on ECS.
    pub on_kubernetes: bool,
    /// Whether somebody has cancelled or terminated it already, and it has not ended yet.
    pub is_ending: bool,
    /// Where it was submitted to; none where one part of it is not known.
    pub place: Option<JobPlace>,
    /// Its attempt at present; none where one part of it is not known.
    pub attempt: Option<JobAttempt>,
    /// Which other job waits for its end: those fail with it.
    pub dependents: Told,
    /// Which other job, that is not over, it has submitted, or may have: such a one may be lost with its head.
    pub heads: Told,
    /// Who submitted it, as the provider's trail tells; none where that is not known.
    pub submitted_by: Option<String>,
    /// So many attempts it has at most; none if Batch did not say.
    pub attempts_allowed: Option<u32>,
    /// Its own tags; none if they could not be read.
    pub tags: Option<BTreeMap<String, String>>,
    /// Those of its queue.
    pub queue_tags: Option<BTreeMap<String, String>>,
    /// Those of its compute environment.
    pub environment_tags: Option<BTreeMap<String, String>>,
    /// Those of its machine.
    pub machine_tags: Option<BTreeMap<String, String>>,
}

impl JobFacts {
    /// What a job is in, as far as that is known: its machine, its queue and its compute environment. Who wants one of these left alone wants that of the job, too.
    #[must_use]
    pub fn is_in(&self, job: &ResourceKey) -> Vec<ResourceKey> {
        let machine = self.attempt.iter().map(|attempt| attempt.machine_key(job));
        machine.chain(self.place.iter().flat_map(|place| place.keys(job))).collect()
    }
}
