//! What one sweep of one work unit knows, at one moment: what detectors decide from, and all that they decide from. Pure.
//!
//! A part that could not be read is there as its failure: in the inventory's listings, in the [coverage](Coverage) of each machine, in
//! [`MachineInputs::failed`], and as the reason why a price is not known. Each fact stands beside the policy that it is held against, so that whatever is decided
//! from it can be decided again.

mod batch;
mod group;
mod hours;
mod leftover;
mod machine;
mod metrics;
mod week;
mod work;
mod worker;

pub use batch::{
    AroundJob, BatchHistory, BatchInputs, BatchPolicy, BatchResource, BatchState, EnvironmentJobs, EnvironmentState,
    Head, JobState, Known, PlacedJobs, QueueJobs, QueueState, Siblings, TaskState, WaitingJob, batch_resources,
    cost as batch_cost, job_facts, says_blocked, task_of,
};
pub use group::{EndedIdle, Group, GroupInputs, GroupState, Members, Relaunches, groups};
pub use hours::{Hours, HoursCase, HoursPolicy};
pub use leftover::{Billed, Leftover, LeftoverInputs, LeftoverPolicy, Thing, leftovers};
pub use machine::{Machine, MachineInputs, Presence, ProviderFacts, Subject, join};
#[cfg(test)]
pub(crate) use metrics::seen;
pub use metrics::{QuietCase, QuietPolicy, Seen};
pub use week::{HourOfWeek, WEEKS, Week, WeekCase};
pub use work::{Asked, Listed, Work, WorkInputs, asked, key_of_task};
pub use worker::{StartedBy, Worker, WorkerPolicy, Workers, environments_gone};

use crate::{
    inventory::{Inventory, LaunchedBy, Outcome},
    pricing::UnitPrices,
};
use jiff::Timestamp;
use model::{ResourceKey, ResourceKind};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Everything that one sweep of one work unit knows.
#[derive(Debug)]
pub struct Snapshot {
    /// As of when.
    pub at: Timestamp,
    /// What providers list, jobs and leftovers among it, and what they refused to.
    pub inventory: Inventory,
    /// Its machines joined with their nodes, each judged and priced, in the order of their keys.
    pub machines: Vec<Machine>,
    /// What is billed though nobody may use it, priced, in the order of their keys.
    pub leftovers: Vec<Leftover>,
    /// Groups that keep machines up, in the order of their keys.
    pub groups: Vec<Group>,
    /// What AWS Batch runs, keeps waiting and keeps ready, priced, in the order of their keys.
    pub batch: Vec<BatchResource>,
    /// Who submitted jobs that are not over, by the ids of what was submitted, as far as the provider's trail was read.
    pub submitted_by: BTreeMap<String, LaunchedBy>,
    /// Work that should finish, as the agents see it, priced, in the order of its keys.
    pub work: Vec<Work>,
    /// Prices of what is billed by its amount, or why they are not known.
    pub prices: UnitPrices,
}

/// A part of what a sweep reads. Each may fail by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SnapshotPart {
    /// The provider's list of what the resource is one of.
    Inventory,
    /// What the provider itself measured of a machine that no agent reports from.
    ProviderMetrics,
    /// ECS's list of the tasks that jobs run in.
    EcsTasks,
}

/// How much the inventory knows of the place where a resource would be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Coverage {
    /// The inventory of that account and region is complete: what it lacks is not there.
    Complete,
    /// It was asked for and failed: nothing can be said.
    Failed,
    /// Nobody asked: on premises, or an account that the sweeper does not read.
    NotAsked,
}

/// Everything that one detection depends on, as data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Inputs {
    /// On a machine.
    Machine(Box<MachineInputs>),
    /// On what nobody may use.
    Leftover(LeftoverInputs),
    /// On a group of machines.
    Group(GroupInputs),
    /// On what is AWS Batch's.
    Batch(Box<BatchInputs>),
    /// On work that should finish.
    Work(Box<WorkInputs>),
}

impl Inputs {
    /// Whether a provider was asked about the resource at all.
    #[must_use]
    pub fn was_asked(&self) -> bool {
        match self {
            Self::Machine(inputs) => inputs.presence.was_asked(),
            Self::Leftover(inputs) => inputs.was_asked(),
            Self::Group(inputs) => inputs.was_asked(),
            Self::Batch(inputs) => inputs.was_asked(),
            Self::Work(inputs) => inputs.was_asked(),
        }
    }
}

/// Whether all that tells where jobs of AWS Batch run could be listed beside a machine.
#[must_use]
pub fn lists_jobs(inventory: &Inventory, machine: &ResourceKey) -> bool {
    let kinds = [ResourceKind::BatchJob, ResourceKind::EcsTask, ResourceKind::EcsContainerInstance];
    let is_listed = |kind| coverage(inventory, &ResourceKey { kind, ..machine.clone() }) == Coverage::Complete;
    kinds.into_iter().all(is_listed)
}

/// How much the inventory knows of the place where a resource would be.
fn coverage(inventory: &Inventory, id: &ResourceKey) -> Coverage {
    let ResourceKey { provider, account, location, kind, .. } = id;
    // Whether a node's host is there, the list of machines would say.
    let kind = if *kind == ResourceKind::Node { ResourceKind::Instance } else { *kind };
    let mut covered = Coverage::NotAsked;
    for listing in &inventory.listings {
        if listing.may_speak_of(*provider, account, location, kind) {
            match &listing.outcome {
                Outcome::Failed { .. } if listing.is_of_a_part() => return Coverage::Failed,
                Outcome::Complete { .. } => covered = Coverage::Complete,
                Outcome::Failed { .. } if covered != Coverage::Complete => covered = Coverage::Failed,
                Outcome::Failed { .. } => {}
            }
        }
    }
    covered
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inventory::{Listing, sample::listing};
    use model::Provider;

    #[test]
    fn a_failed_region_is_unknown_and_never_empty() {
        let id: ResourceKey = "aws:123456789012:eu-central-1:i-1".parse().expect("a key");
        let host: ResourceKey = "host:0123456789abcdef0123456789abcdef".parse().expect("a key");
        let of = |listings: Vec<Listing>, id| coverage(&Inventory { listings, ..Inventory::default() }, id);
        let account = Some("123456789012");
        assert_eq!(of(vec![], &id), Coverage::NotAsked);
        assert_eq!(of(vec![listing(account, Some("eu-central-1"), true)], &id), Coverage::Complete);
        assert_eq!(of(vec![listing(account, Some("eu-central-1"), false)], &id), Coverage::Failed);
        assert_eq!(of(vec![listing(account, Some("us-east-1"), true)], &id), Coverage::NotAsked);
        assert_eq!(of(vec![listing(Some("999999999999"), Some("eu-central-1"), true)], &id), Coverage::NotAsked);
        assert_eq!(of(vec![listing(None, None, false)], &id), Coverage::Failed, "it may have been that account");
        assert_eq!(of(vec![listing(None, None, false)], &host), Coverage::NotAsked);
        let volumes =
            Listing { kind: Some(ResourceKind::Volume.into()), ..listing(account, Some("eu-central-1"), false) };
        let instances = listing(account, Some("eu-central-1"), true);
        assert_eq!(of(vec![volumes, instances], &id), Coverage::Complete, "what else was not listed is another matter");
    }

    #[test]
    fn a_zone_that_failed_is_unknown_although_the_rest_of_its_project_is_known() {
        let of = |listings: &[(&str, bool)], id: &str| {
            let google = |(region, complete): &(&str, bool)| Listing {
                provider: Provider::Gcp,
                ..listing(Some("omics"), Some(region), *complete)
            };
            let listings = listings.iter().map(google).collect();
            coverage(&Inventory { listings, ..Inventory::default() }, &id.parse().expect("a key"))
        };
        let (here, there) = ("gcp:omics:europe-west3-a:1", "gcp:omics:europe-west3-b:1");
        let parts = [("all", true), ("europe-west3-b", false)];
        assert_eq!(of(&parts, here), Coverage::Complete);
        assert_eq!(of(&parts, there), Coverage::Failed);
        assert_eq!(of(&[parts[1], parts[0]], there), Coverage::Failed, "in any order");
        assert_eq!(of(&[("all", false)], here), Coverage::Failed);
        assert_eq!(of(&parts, "gcp:other:europe-west3-a:1"), Coverage::NotAsked);
    }
}
