//! One machine as its provider describes it.

use model::{Provider, ResourceKey, ResourceKind};
use std::{collections::BTreeMap, fmt};

use jiff::Timestamp;
use model::machine;
use serde::{Deserialize, Serialize};

use super::{GoogleInstance, LaunchTemplate, Schedulers};

/// What its provider says of one instance; EC2's words stand for those of others where they mean the same. A fact that the provider
/// left out is `None`, never a default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instance {
    /// The resource key; it holds account, region and instance id.
    pub id: ResourceKey,
    /// The value of the `Name` tag, unless empty.
    pub name: Option<String>,
    /// For example `m5.large`.
    pub instance_type: Option<String>,
    /// What EC2 last knew it to do.
    pub state: InstanceState,
    /// The last start: EC2 resets it with every start.
    pub launched_at: Option<Timestamp>,
    /// When the root volume was attached; for most instances the day of their creation, whatever was started since.
    pub attached_at: Option<Timestamp>,
    /// How it was bought.
    pub lifecycle: Lifecycle,
    /// The on-demand capacity reservation that it runs in, which is billed whether or not a machine does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity_reservation: Option<String>,
    /// For example `eu-central-1a`; a local zone such as `us-west-2-lax-1a` has prices of its own.
    pub availability_zone: Option<String>,
    /// True for a machine in the customer's own building (AWS Outposts).
    pub on_outpost: bool,
    /// For example `Linux/UNIX`.
    pub platform_details: Option<String>,
    /// The billed operation, for example `RunInstances:0010`.
    pub usage_operation: Option<String>,
    /// Whether other customers' machines may run on the same host.
    pub tenancy: Tenancy,
    /// What it boots from.
    pub root_device: RootDevice,
    /// Whether it has disks of its host.
    pub instance_store: InstanceStore,
    /// Attached EBS volumes.
    pub volumes: Vec<AttachedVolume>,
    /// Its network interfaces, `eni-…`.
    pub network_interfaces: Vec<String>,
    /// Public IPv4 addresses of all interfaces, sorted.
    pub public_ipv4: Vec<PublicIpv4>,
    /// All tags; EC2 returns them with the instance or not the instance at all.
    pub tags: BTreeMap<String, String>,
    /// The Auto Scaling group that lists it or, if none does or the groups could not be listed, that its tag names.
    pub autoscaling_group: Option<String>,
    /// The launch template that its tags say it was started from.
    pub launch_template: Option<LaunchTemplate>,
    /// The AWS service that EC2 names as its operator.
    pub operator: Option<String>,
    /// Whether it could hibernate instead of stopping.
    pub hibernation_configured: Option<bool>,
    /// The name of its IAM instance profile; none if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_profile: Option<String>,
    /// What only Google says of an instance; none for one of EC2's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub google: Option<Box<GoogleInstance>>,
}

/// EC2's state of an instance.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InstanceState {
    /// Starting.
    Pending,
    /// Running, and billed.
    Running,
    /// Stopping.
    Stopping,
    /// Stopped: only its volumes and addresses are billed.
    Stopped,
    /// On its way to `terminated`.
    ShuttingDown,
    /// Gone; EC2 lists it for about an hour more. Google's word `TERMINATED` means stopped.
    Terminated,
    /// Being suspended, Google's only.
    Suspending,
    /// Suspended: its memory is kept and billed, its volumes and addresses too. Google's only.
    Suspended,
    /// A word of EC2's that this version does not know.
    Other(String),
    /// EC2 did not say.
    Unknown,
}

/// How an instance was bought.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lifecycle {
    /// By the second.
    OnDemand,
    /// From spare capacity, at a price that changes.
    Spot,
    /// Paid in advance.
    CapacityBlock,
    /// Another way, in EC2's words.
    Other(String),
}

/// What an instance shares its host with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tenancy {
    /// Anyone.
    Shared,
    /// Only the same account's instances.
    Dedicated,
    /// It lies on a host that is billed as a whole.
    Host,
    /// A word of EC2's that this version does not know.
    Other(String),
    /// EC2 did not say.
    Unknown,
}

/// What an instance boots from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RootDevice {
    /// A volume.
    Ebs,
    /// A disk of the host.
    InstanceStore,
    /// A persistent disk of Google's.
    PersistentDisk,
    /// EC2 did not say, or in a word that this version does not know.
    Unknown,
}

/// Whether a machine has disks of its host, whose data do not outlive a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InstanceStore {
    /// Its type has none.
    Absent,
    /// Its type has at least one.
    Present,
    /// The type could not be read, or does not say.
    Unknown,
}

/// An EBS volume of an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachedVolume {
    /// `vol-…`
    pub id: String,
    /// What the instance knows it by, for example `/dev/xvdf`.
    pub device: Option<String>,
    /// Since when.
    pub attached_at: Option<Timestamp>,
    /// Whether it goes with the instance.
    pub delete_on_termination: Option<bool>,
}

/// A public address of an instance.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PublicIpv4 {
    /// Dotted.
    pub address: String,
    /// Whether it stays with the account when the instance stops; none if EC2 did not say.
    pub elastic: Option<bool>,
}

impl InstanceState {
    /// Whether the instance runs; `None` if the provider does not say, or says it in a word not known here.
    #[must_use]
    pub fn runs(&self) -> Option<bool> {
        match self {
            Self::Running => Some(true),
            Self::Stopped
            | Self::Stopping
            | Self::ShuttingDown
            | Self::Terminated
            | Self::Suspending
            | Self::Suspended => Some(false),
            Self::Pending | Self::Other(_) | Self::Unknown => None,
        }
    }

    /// EC2's word for it, or Google's where EC2 has none; none if the provider did not say.
    #[must_use]
    pub fn word(&self) -> Option<&str> {
        Some(match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
            Self::ShuttingDown => "shutting-down",
            Self::Terminated => "terminated",
            Self::Suspending => "suspending",
            Self::Suspended => "suspended",
            Self::Other(word) => word,
            Self::Unknown => return None,
        })
    }
}

impl fmt::Display for InstanceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word().unwrap_or("unknown"))
    }
}

impl Instance {
    /// The region of an EC2 instance, taken from the resource key.
    #[must_use]
    pub fn region(&self) -> Option<&str> {
        (self.id.provider == Provider::Aws).then_some(self.id.location.as_str())
    }

    /// The key of the group that keeps it up: an Auto Scaling group, or a managed instance group of Google Cloud.
    #[must_use]
    pub fn group(&self) -> Option<ResourceKey> {
        let of_group = |location: &str, name: &str| ResourceKey {
            location: location.to_owned(),
            kind: ResourceKind::AutoScalingGroup,
            id: name.to_owned(),
            ..self.id.clone()
        };
        match self.id.provider {
            Provider::Aws => self.autoscaling_group.as_deref().map(|name| of_group(&self.id.location, name)),
            Provider::Gcp => {
                // `projects/42/zones/ZONE/instanceGroupManagers/NAME`, and `regions/REGION` likewise.
                let path = self.google.as_ref()?.created_by.as_deref()?;
                let (_, place) = path.split_once("/zones/").or_else(|| path.split_once("/regions/"))?;
                let (location, name) = place.split_once("/instanceGroupManagers/")?;
                Some(of_group(location, name))
            }
            Provider::OnPrem => None,
        }
    }

    /// What starts another one like it: its group, else the launch template that it was started from. None for one of AWS Batch, which starts machines for
    /// jobs alone.
    #[must_use]
    pub fn started_by(&self) -> Option<ResourceKey> {
        let template = || {
            let id = self.launch_template.as_ref()?.id.clone()?;
            Some(ResourceKey { kind: ResourceKind::LaunchTemplate, id, ..self.id.clone() })
        };
        if self.is_batchs() { None } else { self.group().or_else(template) }
    }

    /// Whether AWS Batch started it.
    #[must_use]
    pub fn is_batchs(&self) -> bool {
        self.tags.keys().any(|tag| tag == "AWSBatchServiceTag" || tag.starts_with("aws:batch:"))
    }

    /// The facts that the *stop* rule looks at; none for a machine of no cloud.
    #[must_use]
    pub fn stop_facts(
        &self,
        groups_are_known: bool,
        schedulers: &Schedulers,
        protection: impl Into<machine::Protection>,
    ) -> Option<machine::Machine> {
        let ResourceKey { account, location: region, id: instance, .. } = &self.id;
        match self.id.provider {
            Provider::Aws => {}
            Provider::Gcp => {
                let facts = self.compute_engine_facts()?;
                return Some(machine::Machine::ComputeEngine(Box::new(facts)));
            }
            Provider::OnPrem => return None,
        }
        Some(machine::Machine::Ec2(Box::new(machine::Ec2Facts {
            account: account.clone(),
            region: region.clone(),
            instance_id: instance.clone(),
            name: self.name.clone(),
            instance_type: self.instance_type.clone(),
            state: self.state.word().map(str::to_owned),
            launched_at: self.launched_at,
            lifecycle: (&self.lifecycle).into(),
            capacity_reservation: self.capacity_reservation.clone(),
            root: match self.root_device {
                RootDevice::Ebs => machine::Root::Ebs,
                RootDevice::InstanceStore => machine::Root::InstanceStore,
                RootDevice::PersistentDisk | RootDevice::Unknown => machine::Root::Unknown,
            },
            instance_store: match self.instance_store {
                InstanceStore::Absent => machine::InstanceStore::Absent,
                InstanceStore::Present => machine::InstanceStore::Present,
                InstanceStore::Unknown => machine::InstanceStore::Unknown,
            },
            // What was never asked for is left out, as in what earlier versions kept.
            hibernates: self.hibernation_configured.filter(|is_set_up| *is_set_up),
            volumes: self.volumes.iter().map(|volume| volume.id.clone()).collect(),
            public_ipv4: self.public_addresses(),
            tags: Some(self.tags.clone()),
            autoscaling: match &self.autoscaling_group {
                Some(name) => machine::AutoScaling::Member(name.clone()),
                None if groups_are_known => machine::AutoScaling::NotListed,
                None => machine::AutoScaling::Unknown,
            },
            scheduler: schedulers.of(instance),
            operator: self.operator.clone(),
            protection: protection.into(),
        })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inventory::sample;

    #[test]
    fn the_group_of_a_machine_is_named_in_its_own_place() {
        let of = |change: fn(&mut Instance)| {
            let mut instance = sample::instance();
            change(&mut instance);
            instance.group().map(|group| group.to_string())
        };
        assert_eq!(of(|_| {}), None);
        let group = of(|instance| instance.autoscaling_group = Some("workers".into()));
        assert_eq!(group.as_deref(), Some("aws:123456789012:eu-central-1:group/workers"));
        let google = |path: Option<&str>| {
            let google = GoogleInstance { created_by: path.map(str::to_owned), ..GoogleInstance::default() };
            let id = "gcp:omics:europe-west3-b:7".parse().expect("a key");
            let instance = Instance { id, google: Some(Box::new(google)), ..sample::instance() };
            instance.group().map(|group| group.to_string())
        };
        for (path, group) in [
            ("projects/42/zones/europe-west3-b/instanceGroupManagers/w", Some("gcp:omics:europe-west3-b:group/w")),
            ("projects/42/regions/europe-west3/instanceGroupManagers/w", Some("gcp:omics:europe-west3:group/w")),
            ("projects/42/zones/europe-west3-b/instances/w", None),
            ("w", None),
        ] {
            assert_eq!(google(Some(path)).as_deref(), group, "{path}");
        }
        assert_eq!(google(None), None);
    }
}
