//! Machines that AWS Batch started, and whether they have joined their cluster.

use crate::inventory::{
    COMPLETED_FOR, ComputeEnvironment, Instance, Inventory, Kind, Outcome, clusters_in_use, last_part,
};
use jiff::Timestamp;
use model::{Provider, ResourceKey, ResourceKind};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap, HashSet};

/// What is known of a machine that AWS Batch started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worker {
    /// Its last start, as far as EC2 tells.
    pub launched_at: Option<Timestamp>,
    /// Whether it is registered with a cluster; none if not all machines of Batch's clusters are listed.
    pub is_registered: Option<bool>,
    /// No job has ended later; where that is longer ago than jobs are listed, the begin of that time.
    pub last_end: Timestamp,
    /// So long its environment keeps a machine without a job, in seconds. None where that is not known, where the environment keeps some for good, and where it is longer than
    /// heartbeats tell of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_for_s: Option<u64>,
    /// A machine has so long to boot and to register, in seconds.
    pub register_after_s: u64,
    /// Batch has so long to end a machine, in seconds.
    #[serde(default = "end_within_s")]
    pub end_within_s: u64,
    /// Whether the environment that started it is still there.
    #[serde(default, skip_serializing_if = "StartedBy::is_not_told")]
    pub started_by: StartedBy,
}

/// Whether the compute environment that started a worker is still there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum StartedBy {
    /// Environments could not be listed, or it does not say which it was and there are some.
    #[default]
    NotTold,
    /// It is listed.
    Listed,
    /// It is not.
    Gone {
        /// Since when no list has had it, where one ever had.
        since: Option<Timestamp>,
    },
}

impl StartedBy {
    fn is_not_told(&self) -> bool {
        *self == Self::NotTold
    }
}

/// The workers of one scope.
#[derive(Debug)]
pub struct Workers<'a> {
    /// Its cluster, by `i-…`.
    registered: HashMap<&'a str, &'a str>,
    environments: &'a [ComputeEnvironment],
    are_environments_listed: bool,
    /// Since when no list has had an environment that a machine names.
    missing_since: HashMap<ResourceKey, Timestamp>,
    are_all_listed: bool,
    last_end: Timestamp,
    policy: WorkerPolicy,
}

/// How long things take, in seconds.
#[derive(Clone, Copy, Debug)]
pub struct WorkerPolicy {
    /// A machine has so long to boot and to register.
    pub register_after_s: u64,
    /// Batch looks at its machines every few minutes, and EC2 takes some to end one: it has so long.
    pub end_within_s: u64,
    /// Heartbeats tell of so long.
    pub lookback_s: u64,
}

/// Batch's own, where an environment names none: <https://docs.aws.amazon.com/batch/latest/APIReference/API_ComputeScalingPolicy.html>.
const SCALE_DOWN_DELAY_MINUTES: u32 = 20;

/// What it was before it could be set.
fn end_within_s() -> u64 {
    900
}

/// The tag that names a machine's environment; older machines have none.
const ENVIRONMENT: &str = "aws:batch:compute-environment";

/// The environments that machines name and that no list has.
#[must_use]
pub fn environments_gone(inventory: &Inventory) -> Vec<ResourceKey> {
    let listed: HashSet<&ResourceKey> = inventory.batch_compute_environments.iter().map(|one| &one.id).collect();
    let named: BTreeSet<ResourceKey> = inventory.instances.iter().filter_map(environment_of).collect();
    named.into_iter().filter(|key| !listed.contains(key)).collect()
}

fn environment_of(instance: &Instance) -> Option<ResourceKey> {
    let name = last_part(instance.tags.get(ENVIRONMENT)?).to_owned();
    Some(ResourceKey { kind: ResourceKind::BatchComputeEnvironment, id: name, ..instance.id.clone() })
}

/// What the lists that an answer rests on are of.
const KINDS: [ResourceKind; 4] = [
    ResourceKind::BatchComputeEnvironment,
    ResourceKind::BatchJobQueue,
    ResourceKind::BatchJob,
    ResourceKind::EcsContainerInstance,
];

impl<'a> Workers<'a> {
    /// Looks through the inventory of one scope. `missing_since`: since when no list has had each environment that machines name.
    #[must_use]
    pub fn of(
        inventory: &'a Inventory,
        missing_since: HashMap<ResourceKey, Timestamp>,
        at: Timestamp,
        policy: WorkerPolicy,
    ) -> Self {
        let Inventory { batch_compute_environments, batch_job_queues, batch_jobs, .. } = inventory;
        let in_use = clusters_in_use(batch_compute_environments, batch_job_queues, batch_jobs);
        let is_listed = |environment: &&ComputeEnvironment| {
            let cluster = environment.ecs_cluster_arn.as_deref();
            cluster.is_some_and(|cluster| !in_use.contains(last_part(cluster)))
        };
        let is_complete = |kind: ResourceKind| {
            let mut listings =
                inventory.listings.iter().filter(|listing| listing.kind.is_none_or(|own| own == Kind::from(kind)));
            let mut any = false;
            listings.all(|listing| {
                any = true;
                matches!(listing.outcome, Outcome::Complete { .. })
            }) && any
        };
        let machines = &inventory.ecs_container_instances;
        let listed_from = at.checked_sub(COMPLETED_FOR).unwrap_or(Timestamp::MIN);
        let last_end = batch_jobs.iter().filter_map(|job| job.stopped_at).max();
        Self {
            registered: machines.iter().filter_map(|one| Some((one.instance_id.as_deref()?, &*one.cluster))).collect(),
            environments: batch_compute_environments,
            are_environments_listed: is_complete(ResourceKind::BatchComputeEnvironment),
            missing_since,
            are_all_listed: KINDS.into_iter().all(is_complete)
                && batch_compute_environments.iter().filter(|one| one.has_machines()).all(|one| is_listed(&one))
                && machines.iter().all(|one| one.instance_id.is_some()),
            last_end: last_end.map_or(listed_from, |end| end.max(listed_from)),
            policy,
        }
    }

    /// What is known of a machine as a worker; none if Batch did not start it.
    #[must_use]
    pub fn find(&self, instance: &Instance) -> Option<Worker> {
        if instance.id.provider != Provider::Aws || !instance.is_batchs() {
            return None;
        }
        let cluster = self.registered.get(instance.id.id.as_str());
        let is_registered = cluster.is_some();
        Some(Worker {
            launched_at: instance.launched_at,
            is_registered: if is_registered { Some(true) } else { self.are_all_listed.then_some(false) },
            last_end: self.last_end,
            kept_for_s: cluster.and_then(|cluster| self.kept_for_s(cluster)),
            register_after_s: self.policy.register_after_s,
            end_within_s: self.policy.end_within_s,
            started_by: self.started_by(instance),
        })
    }

    fn started_by(&self, instance: &Instance) -> StartedBy {
        if !self.are_environments_listed {
            return StartedBy::NotTold;
        }
        match environment_of(instance) {
            Some(key) if self.environments.iter().any(|one| one.id == key) => StartedBy::Listed,
            Some(key) => StartedBy::Gone { since: self.missing_since.get(&key).copied() },
            // Some may be its: which, it does not say.
            None if self.environments.iter().any(ComputeEnvironment::has_machines) => StartedBy::NotTold,
            None => StartedBy::Gone { since: None },
        }
    }

    fn kept_for_s(&self, cluster: &str) -> Option<u64> {
        let is_its =
            |one: &&ComputeEnvironment| one.ecs_cluster_arn.as_deref().is_some_and(|arn| last_part(arn) == cluster);
        let mut its = self.environments.iter().filter(is_its);
        let (Some(environment), None) = (its.next(), its.next()) else { return None };
        if !environment.has_machines() || environment.min_vcpus != Some(0) {
            return None;
        }
        let minutes = environment.min_scale_down_delay_minutes.unwrap_or(SCALE_DOWN_DELAY_MINUTES);
        // Longer than the look-back nobody is seen to be idle.
        let WorkerPolicy { end_within_s, lookback_s, .. } = self.policy;
        Some(u64::from(minutes) * 60).filter(|kept_for_s| kept_for_s + end_within_s < lookback_s)
    }
}
