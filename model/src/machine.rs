//! What a provider says of a machine, as far as it decides what may be done to it.

mod compute_engine;

use std::{collections::BTreeMap, fmt};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use compute_engine::ComputeEngineFacts;

/// What the provider says of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Machine {
    /// No provider: the machine is the reader's own.
    OnPrem,
    /// A machine of a provider that nothing here knows, by the provider's name.
    NotKnown(String),
    /// An EC2 instance.
    Ec2(Box<Ec2Facts>),
    /// A machine of Google Cloud.
    ComputeEngine(Box<ComputeEngineFacts>),
}

/// What EC2 says of an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ec2Facts {
    /// Twelve digits.
    pub account: String,
    /// For example `eu-central-1`.
    pub region: String,
    /// For example `i-0123456789abcdef0`.
    pub instance_id: String,
    /// The value of its `Name` tag.
    pub name: Option<String>,
    /// For example `m5.large`; none if EC2 did not say.
    pub instance_type: Option<String>,
    /// `running`, `stopped`, … in EC2's words; none if EC2 did not say.
    pub state: Option<String>,
    /// The last start; none if EC2 did not say.
    pub launched_at: Option<Timestamp>,
    /// How it was bought.
    pub lifecycle: Lifecycle,
    /// The on-demand capacity reservation that it runs in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_reservation: Option<String>,
    /// What it boots from.
    pub root: Root,
    /// Whether it has instance-store disks.
    pub instance_store: InstanceStore,
    /// Whether it was set up to hibernate when it was launched; none if EC2 did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hibernates: Option<bool>,
    /// The attached volumes.
    pub volumes: Vec<String>,
    /// The public IPv4 addresses of all its interfaces.
    pub public_ipv4: Vec<PublicIpv4>,
    /// All its tags; none if they could not be read.
    pub tags: Option<BTreeMap<String, String>>,
    /// What the Auto Scaling groups say of it; a tag may be missing on a machine that was attached by hand.
    pub autoscaling: AutoScaling,
    /// What ECS and AWS Batch say of it; a machine that was registered by hand has no tag of theirs.
    pub scheduler: Scheduler,
    /// The service that EC2 itself names as the operator of the instance.
    pub operator: Option<String>,
    /// Whether somebody has protected it.
    pub protection: Protection,
}

/// How an instance was bought.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lifecycle {
    /// By the second, at the list price.
    OnDemand,
    /// From spare capacity. Only a persistent request survives a stop, and EC2 does not say here which kind it is.
    Spot,
    /// Paid in advance.
    CapacityBlock,
    /// Another way, in EC2's words.
    Other(String),
}

/// What an instance boots from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Root {
    /// A volume that outlives a stop.
    Ebs,
    /// A disk of the host: such an instance cannot be stopped, only ended.
    InstanceStore,
    /// EC2 did not say.
    Unknown,
}

/// Whether an Auto Scaling group keeps an instance up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AutoScaling {
    /// The group of this name.
    Member(String),
    /// None of those that there are.
    NotListed,
    /// The groups, or the members of one, could not be read: any of them may.
    Unknown,
}

/// Whether a scheduler of containers, ECS or AWS Batch, may place work on an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scheduler {
    /// This one.
    Has(Owner),
    /// None of those that there are.
    NotListed,
    /// A list of theirs could not be read: any of them may.
    Unknown {
        /// The call and what it was refused with, which names the permission that it needs.
        why: String,
    },
}

/// Whether an instance has disks that do not outlive a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InstanceStore {
    /// None.
    Absent,
    /// At least one.
    Present,
    /// Not looked up.
    Unknown,
}

/// Whether somebody has protected an instance from being stopped or ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protection {
    /// Neither is on.
    Off,
    /// It is.
    On {
        /// Which: `stop protection`, `termination protection`.
        by: String,
    },
    /// Not looked up, or it could not be read.
    #[default]
    Unknown,
    /// Its turn to be asked about has not come yet.
    NotYet,
}

/// A public address of an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublicIpv4 {
    /// Dotted.
    pub address: String,
    /// Whether it stays with the account; none if EC2 did not say.
    pub elastic: Option<bool>,
}

/// What a machine belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// For a person: `Auto Scaling group`.
    pub kind: String,
    /// Which one, if the tag says so.
    pub name: Option<String>,
    /// The tag that gave it away, `the group's own list`, `its ECS cluster's own list`, or `operator` where EC2 itself names one.
    pub known_by: String,
}

/// `Auto Scaling group workers (by `aws:autoscaling:groupName`)`
impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)?;
        if let Some(name) = &self.name {
            write!(f, " {name}")?;
        }
        write!(f, " (by `{}`)", self.known_by)
    }
}

/// Tags that name an owner, in the order in which they are believed; compared without case.
const OWNER_TAGS: [&str; 5] = ["owner", "created-by", "createdby", "user", "team"];

/// Who owns a resource of these tags, by the first of those that name an owner.
#[must_use]
pub fn owner(tags: &BTreeMap<String, String>) -> Option<String> {
    OWNER_TAGS.iter().find_map(|wanted| {
        let (_, value) =
            tags.iter().find(|(key, value)| key.eq_ignore_ascii_case(wanted) && !value.trim().is_empty())?;
        Some(value.clone())
    })
}
