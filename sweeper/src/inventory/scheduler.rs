//! Which machines ECS or AWS Batch may place work on.

use model::{Provider, ResourceKey, ResourceKind};
use std::collections::HashMap;

use model::machine;

use super::{Inventory, Listing, Outcome, last_part};

/// What the lists that an answer rests on are of: without any of them a machine may be a scheduler's.
const KINDS: [ResourceKind; 4] = [
    ResourceKind::BatchComputeEnvironment,
    ResourceKind::BatchJob,
    ResourceKind::EcsContainerInstance,
    ResourceKind::EcsTask,
];

/// What is known of the schedulers in one account's part of one region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedulers {
    owners: HashMap<String, machine::Owner>,
    unknown: Option<String>,
}

impl Schedulers {
    /// What they have to do with one machine, `i-…`.
    #[must_use]
    pub fn of(&self, instance_id: &str) -> machine::Scheduler {
        match (self.owners.get(instance_id), &self.unknown) {
            (Some(owner), _) => machine::Scheduler::Has(owner.clone()),
            (None, None) => machine::Scheduler::NotListed,
            (None, Some(why)) => machine::Scheduler::Unknown { why: why.clone() },
        }
    }

    /// Nothing is.
    #[must_use]
    pub fn not_asked() -> Self {
        Self { owners: HashMap::new(), unknown: Some("nobody asked them".to_owned()) }
    }

    /// All were read, and have no machine.
    #[cfg(test)]
    pub(crate) fn of_no_machine() -> Self {
        Self { owners: HashMap::new(), unknown: None }
    }
}

impl Inventory {
    /// Every machine that is registered with a cluster belongs to it, whatever runs there now. A failed listing, or a container instance that does
    /// not say its machine, may be about any machine. Machines that Batch manages and that no live job names are told by Batch's own tags.
    #[must_use]
    pub fn schedulers(&self, provider: Provider, account: &str, region: &str) -> Schedulers {
        let is_here = |id: &ResourceKey| id.provider == provider && id.account == account && id.location == region;
        let mut environment_of = HashMap::new();
        for environment in self.batch_compute_environments.iter().filter(|one| is_here(&one.id)) {
            if let Some(cluster) = &environment.ecs_cluster_arn {
                environment_of.insert(last_part(cluster), environment.id.id.as_str());
            }
        }
        let mut known = Schedulers { owners: HashMap::new(), unknown: None };
        for machine in self.ecs_container_instances.iter().filter(|machine| is_here(&machine.id)) {
            let Some(instance) = &machine.instance_id else {
                known.unknown = Some(format!("the container instance {} does not say its machine", machine.id.id));
                continue;
            };
            let (kind, name) = match environment_of.get(machine.cluster.as_str()) {
                Some(environment) => ("AWS Batch compute environment", *environment),
                None => ("ECS cluster", machine.cluster.as_str()),
            };
            let owner = machine::Owner {
                kind: kind.to_owned(),
                name: Some(name.to_owned()),
                known_by: "its ECS cluster's own list".to_owned(),
            };
            known.owners.insert(instance.clone(), owner);
        }
        for kind in KINDS {
            let about = |listing: &&Listing| listing.may_speak_of(provider, account, region, kind);
            let outcomes = || self.listings.iter().filter(about).map(|listing| &listing.outcome);
            if outcomes().any(|outcome| matches!(outcome, Outcome::Complete { .. })) {
                continue;
            }
            let failed = outcomes().find_map(|outcome| match outcome {
                Outcome::Failed { what, why } => Some(format!("{what}: {why}")),
                Outcome::Complete { .. } => None,
            });
            known.unknown = Some(failed.unwrap_or_else(|| format!("nobody listed the kind {}", kind.as_str())));
            break;
        }
        known
    }
}

#[cfg(test)]
mod tests;
