//! What the providers bill for: facts *and* errors.
//!
//! A collection never fails as a whole and never drops anything in silence: what could not be listed is a [`Listing`] that failed,
//! with what was asked and why it was refused. It is *unknown*, never *empty*, and a reader must not conclude that
//! a resource is gone because an inventory with failed listings lacks it.

mod address;
pub mod aws;
mod batch;
mod ecs;
pub mod gcp;
mod google;
mod instance;
mod kind;
mod launched;
mod offered;
mod protection;
mod reader;
mod record;
mod resource;
#[cfg(test)]
pub(crate) mod sample;
mod scaling;
mod scheduler;
mod snapshot;
mod stoppable;
pub(crate) mod tags;
mod usage;
mod used_by;
mod volume;
mod words;

use model::{Provider, ResourceKey, ResourceKind};
use std::{
    collections::{BTreeMap, HashMap},
    fmt,
};

pub use address::Address;
pub use batch::{
    ArrayPart, Attempt, BatchJob, COMPLETED_FOR, ComputeEnvironment, Dependency, JobContainer, JobQueue, JobTask,
    NodePart, Pod, QueuedEnvironment, Requirement, clusters_in_use,
};
pub use ecs::{EcsContainer, EcsContainerInstance, EcsTask, cluster_of, last_part};
pub use google::{Accelerators, Billed, GoogleAddress, GoogleDisk, GoogleInstance, MachineShape};
pub use instance::{
    AttachedVolume, Instance, InstanceState, InstanceStore, Lifecycle, PublicIpv4, RootDevice, Tenancy,
};
pub use kind::Kind;
pub use launched::{Launched, LaunchedBy, Trail};
pub use model::machine::owner;
pub use offered::{Offered, OfferedType};
pub use protection::{KeptProtection, Protection};
pub use reader::RetryPolicy;
pub use record::Record;
pub use resource::key_of;
pub use scaling::{AutoScalingGroup, Launch, LaunchTemplate, Member, Upkeep};
pub use scheduler::Schedulers;
pub use snapshot::{Snapshot, SnapshotState, StorageTier};
pub use usage::{Usage, UsageAnswer, UsageSource, UsageWindow};
pub use used_by::UsedBy;
pub use volume::{Volume, VolumeAttachment, VolumeState};

/// One account's part of one region: what a sweep reads and judges as a whole. Google answers for all regions of a project at once,
/// so that there the account is the project and the region [`Scope::EVERYWHERE`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Scope {
    /// Who is asked.
    pub provider: Provider,
    /// Account.
    pub account: String,
    /// Region.
    pub region: String,
}

impl Scope {
    /// In the place of a region: all regions and zones of a project of Google's.
    pub const EVERYWHERE: &'static str = "all";

    /// Provider, account and region as words.
    #[must_use]
    pub fn words(&self) -> (&'static str, &str, &str) {
        (self.provider.as_str(), &self.account, &self.region)
    }
}

/// Everything that one collection saw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inventory {
    /// All instances of the listings that are complete, ordered by resource key.
    pub instances: Vec<Instance>,
    /// All volumes, likewise.
    pub volumes: Vec<Volume>,
    /// All Elastic IP addresses, likewise.
    pub addresses: Vec<Address>,
    /// All snapshots that the accounts own, likewise.
    pub snapshots: Vec<Snapshot>,
    /// All Auto Scaling groups, likewise.
    pub autoscaling_groups: Vec<AutoScalingGroup>,
    /// All compute environments of AWS Batch, likewise.
    pub batch_compute_environments: Vec<ComputeEnvironment>,
    /// All its job queues, likewise.
    pub batch_job_queues: Vec<JobQueue>,
    /// All its jobs that live or ended within a day, likewise.
    pub batch_jobs: Vec<BatchJob>,
    /// The machines of ECS clusters, likewise; of a cluster that Batch manages and may place jobs on, those that live jobs name.
    pub ecs_container_instances: Vec<EcsContainerInstance>,
    /// The ECS tasks that live jobs of Batch run in, likewise.
    pub ecs_tasks: Vec<EcsTask>,
    /// What the providers measured of machines, likewise.
    pub usage: Vec<Usage>,
    /// What was asked for, and how it went, ordered by account, region and kind.
    pub listings: Vec<Listing>,
}

impl Inventory {
    /// True if nothing that was asked for failed.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.listings.iter().all(|listing| matches!(listing.outcome, Outcome::Complete { .. }))
    }

    /// Whether it is known of every machine in a scope which Auto Scaling group lists it: a failed listing, or a group that does not
    /// say its members, may hold any machine.
    #[must_use]
    pub fn groups_are_known(&self, provider: Provider, account: &str, region: &str) -> bool {
        let is_listed = |listing: &Listing| {
            matches!(listing.outcome, Outcome::Complete { .. })
                && listing.may_speak_of(provider, account, region, ResourceKind::AutoScalingGroup)
        };
        let is_here = |id: &ResourceKey| id.provider == provider && id.account == account && id.location == region;
        let mut groups = self.autoscaling_groups.iter().filter(|group| is_here(&group.id));
        self.listings.iter().any(is_listed) && groups.all(|group| group.members.is_some())
    }

    /// The tags of all that is listed with tags, by its key.
    #[must_use]
    pub fn tags(&self) -> HashMap<&ResourceKey, &BTreeMap<String, String>> {
        let instances = self.instances.iter().map(|instance| (&instance.id, &instance.tags));
        let volumes = self.volumes.iter().map(|volume| (&volume.id, &volume.tags));
        let addresses = self.addresses.iter().map(|address| (&address.id, &address.tags));
        let snapshots = self.snapshots.iter().map(|snapshot| (&snapshot.id, &snapshot.tags));
        let groups = self.autoscaling_groups.iter().map(|group| (&group.id, &group.tags));
        let environments = self.batch_compute_environments.iter();
        let environments = environments.filter_map(|environment| Some((&environment.id, environment.tags.as_ref()?)));
        let queues = self.batch_job_queues.iter().filter_map(|queue| Some((&queue.id, queue.tags.as_ref()?)));
        let jobs = self.batch_jobs.iter().map(|job| (&job.id, &job.tags));
        let all = instances.chain(volumes).chain(addresses).chain(snapshots).chain(groups);
        all.chain(environments).chain(queues).chain(jobs).collect()
    }

    /// Whether what providers measured could not be read where this machine is.
    #[must_use]
    pub fn usage_failed(&self, id: &ResourceKey) -> bool {
        self.listings.iter().any(|listing| {
            matches!(listing.outcome, Outcome::Failed { .. })
                && listing.may_speak_of(id.provider, &id.account, &id.location, Kind::Usage)
        })
    }

    /// Whether all machines of a scope are listed.
    #[must_use]
    pub fn lists_machines(&self, provider: Provider, account: &str, region: &str) -> bool {
        self.listings.iter().any(|listing| {
            matches!(listing.outcome, Outcome::Complete { .. })
                && listing.may_speak_of(provider, account, region, ResourceKind::Instance)
        })
    }

    /// Nothing but a failure.
    #[must_use]
    pub fn failed(listing: Listing) -> Self {
        Self { listings: vec![listing], ..Self::default() }
    }

    /// Takes in what was seen of another scope.
    pub fn absorb(&mut self, other: Self) {
        self.instances.extend(other.instances);
        self.volumes.extend(other.volumes);
        self.addresses.extend(other.addresses);
        self.snapshots.extend(other.snapshots);
        self.autoscaling_groups.extend(other.autoscaling_groups);
        self.batch_compute_environments.extend(other.batch_compute_environments);
        self.batch_job_queues.extend(other.batch_job_queues);
        self.batch_jobs.extend(other.batch_jobs);
        self.ecs_container_instances.extend(other.ecs_container_instances);
        self.ecs_tasks.extend(other.ecs_tasks);
        self.usage.extend(other.usage);
        self.listings.extend(other.listings);
        self.instances.sort_by(|a, b| a.id.cmp(&b.id));
        self.volumes.sort_by(|a, b| a.id.cmp(&b.id));
        self.addresses.sort_by(|a, b| a.id.cmp(&b.id));
        self.snapshots.sort_by(|a, b| a.id.cmp(&b.id));
        self.autoscaling_groups.sort_by(|a, b| a.id.cmp(&b.id));
        self.batch_compute_environments.sort_by(|a, b| a.id.cmp(&b.id));
        self.batch_job_queues.sort_by(|a, b| a.id.cmp(&b.id));
        self.batch_jobs.sort_by(|a, b| a.id.cmp(&b.id));
        self.ecs_container_instances.sort_by(|a, b| a.id.cmp(&b.id));
        self.ecs_tasks.sort_by(|a, b| a.id.cmp(&b.id));
        self.usage.sort_by(|a, b| a.id.cmp(&b.id));
        self.listings.sort_by(|a, b| a.place().cmp(&b.place()));
    }
}

/// One part of a collection that succeeds or fails by itself: one kind of resource in one scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// Who was asked.
    pub provider: Provider,
    /// None if the account could not be learnt.
    pub account: Option<String>,
    /// None if the collection failed before any region was asked; [`Scope::EVERYWHERE`] for all places of a Google project but those
    /// that a listing of their own says to have failed.
    pub region: Option<String>,
    /// None if it failed before anything was listed: then nothing is known of any kind.
    pub kind: Option<Kind>,
    /// How it went.
    pub outcome: Outcome,
}

impl Listing {
    /// What one scope's listing of one kind came to.
    #[must_use]
    pub fn of(scope: &Scope, kind: impl Into<Kind>, outcome: Outcome) -> Self {
        let Scope { provider, account, region } = scope.clone();
        Self { provider, account: Some(account), region: Some(region), kind: Some(kind.into()), outcome }
    }

    /// Whether it speaks of this kind of resource in this place; one that failed early may have been the one that would.
    #[must_use]
    pub fn may_speak_of(&self, provider: Provider, account: &str, region: &str, kind: impl Into<Kind>) -> bool {
        let kind = kind.into();
        let may_be = |own: &Option<String>, wanted: &str| own.as_ref().is_none_or(|own| own == wanted);
        let everywhere = provider == Provider::Gcp && self.region.as_deref() == Some(Scope::EVERYWHERE);
        self.provider == provider
            && may_be(&self.account, account)
            && (everywhere || may_be(&self.region, region))
            && self.kind.is_none_or(|own| own == kind)
    }

    /// True if it is of one zone or region of a scope that holds all of them: it wins over the listing of the scope.
    #[must_use]
    pub fn is_of_a_part(&self) -> bool {
        self.provider == Provider::Gcp && self.region.as_deref().is_some_and(|region| region != Scope::EVERYWHERE)
    }

    fn place(&self) -> (Provider, Option<&str>, Option<&str>, Option<Kind>) {
        (self.provider, self.account.as_deref(), self.region.as_deref(), self.kind)
    }
}

/// How a listing went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All pages were read.
    Complete {
        /// So many resources, in any state.
        listed: usize,
    },
    /// Nothing is known of it.
    Failed {
        /// The call that failed: `ec2:DescribeInstances`.
        what: String,
        /// Why.
        why: Failure,
    },
}

/// Why a provider could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind}: {message}")]
pub struct Failure {
    /// What a reader can do about it depends on this.
    pub kind: FailureKind,
    /// In the provider's words.
    pub message: String,
}

/// The classes of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FailureKind {
    /// The credentials are good but lack the permission, or the region is not enabled.
    Denied,
    /// Too many calls, even after retries.
    Throttled,
    /// No answer in time.
    TimedOut,
    /// No credentials, or credentials that the provider does not accept.
    Credentials,
    /// No connection.
    Unreachable,
    /// An answer that breaks the provider's own contract.
    Malformed,
    /// The provider failed, or refused for another reason.
    Provider,
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Denied => "denied",
            Self::Throttled => "throttled",
            Self::TimedOut => "timed out",
            Self::Credentials => "credentials",
            Self::Unreachable => "unreachable",
            Self::Malformed => "malformed answer",
            Self::Provider => "provider error",
        })
    }
}

/// Told how a collection gets on.
pub trait Progress: Send + Sync {
    /// So many scopes will be read.
    fn scopes(&self, total: usize);
    /// One more page of a scope was read, which held so many resources.
    fn page(&self, scope: &Scope, kind: Kind, listed: usize);
    /// A scope is done.
    fn scope_done(&self, scope: &Scope);
}

/// Tells nobody.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn scopes(&self, _total: usize) {}
    fn page(&self, _scope: &Scope, _kind: Kind, _listed: usize) {}
    fn scope_done(&self, _scope: &Scope) {}
}
