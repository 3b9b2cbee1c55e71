//! Machines that AWS Batch started, and whether they have joined their cluster.

use crate::inventory::{
    COMPLETED_FOR, ComputeEnvironment, Instance, Inventory, Kind, Outcome, clusters_in_use, last_part,
};
use jiff::Timestamp;
use model::{Provider, ResourceKind};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// What is known of a machine that AWS Batch started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worker {
    /// Its last start, as far as EC2 tells.
    pub launched_at: Option<Timestamp>,
    /// Whether it is registered with a cluster; none if not all machines of Batch's clusters are listed.
    pub is_registered: Option<bool>,
    /// No job has ended later; where that is longer ago than jobs are listed, the begin of that time.
    pub last_end: Timestamp,
    /// A machine has so long to boot and to register, in seconds.
    pub register_after_s: u64,
}

/// The workers of one scope.
#[derive(Debug)]
pub struct Workers<'a> {
    registered: HashSet<&'a str>,
    are_all_listed: bool,
    last_end: Timestamp,
    register_after_s: u64,
}

/// What the lists that an answer rests on are of.
const KINDS: [ResourceKind; 4] = [
    ResourceKind::BatchComputeEnvironment,
    ResourceKind::BatchJobQueue,
    ResourceKind::BatchJob,
    ResourceKind::EcsContainerInstance,
];

impl<'a> Workers<'a> {
    /// Looks through the inventory of one scope.
    #[must_use]
    pub fn of(inventory: &'a Inventory, at: Timestamp, register_after_s: u64) -> Self {
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
            registered: machines.iter().filter_map(|one| one.instance_id.as_deref()).collect(),
            are_all_listed: KINDS.into_iter().all(is_complete)
                && batch_compute_environments.iter().filter(|one| one.has_machines()).all(|one| is_listed(&one))
                && machines.iter().all(|one| one.instance_id.is_some()),
            last_end: last_end.map_or(listed_from, |end| end.max(listed_from)),
            register_after_s,
        }
    }

    /// What is known of a machine as a worker; none if Batch did not start it.
    #[must_use]
    pub fn find(&self, instance: &Instance) -> Option<Worker> {
        let is_batchs = |tag: &String| tag == "AWSBatchServiceTag" || tag.starts_with("aws:batch:");
        if instance.id.provider != Provider::Aws || !instance.tags.keys().any(is_batchs) {
            return None;
        }
        let is_registered = self.registered.contains(instance.id.id.as_str());
        Some(Worker {
            launched_at: instance.launched_at,
            is_registered: if is_registered { Some(true) } else { self.are_all_listed.then_some(false) },
            last_end: self.last_end,
            register_after_s: self.register_after_s,
        })
    }
}
