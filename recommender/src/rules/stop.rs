//! *Stop this idle instance.*
//!
//! Proposed if and only if the verdict is idle and the machine is a running on-demand EC2 instance with an EBS root, whose
//! facts are all known, that carries no exemption and belongs to nothing larger. Everything else is a [`NotProposed`] that
//! names the one reason which decided, the most fundamental first. A member of an Auto Scaling group, a fleet or a
//! scheduler would be replaced at once: such a machine is its owner's to stop. Terminating is not this rule's business.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

mod membership;
mod plan;
mod refuse;

pub use membership::Owner;
pub use refuse::NotProposed;

use model::{HourlyRate, ResourceKey, Verdict};

use crate::proposal::{Proposal, ProposalError};

/// A machine with this tag is never proposed, whatever the tag's value, except `false`.
pub const EXEMPTION_TAG: &str = "cloud-sweeper:exempt";

/// How long a proposal may be approved.
pub const VALID_FOR: SignedDuration = SignedDuration::from_hours(24);

/// Everything that the rule looks at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopInput {
    /// The finding that the proposal would end.
    pub finding: String,
    /// The machine.
    pub resource: ResourceKey,
    /// What the verdict engine found.
    pub verdict: Verdict,
    /// What the provider says of the machine.
    pub machine: Machine,
    /// What the machine costs.
    pub price: Price,
    /// What each public address costs that it gives back when it stops. None if nobody asked, as in what earlier versions kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lent_ipv4: Option<Price>,
    /// The caller's clock; the proposal expires [`VALID_FOR`] later.
    pub now: Timestamp,
}

/// What the provider says of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Machine {
    /// No provider: the machine is the reader's own.
    OnPrem,
    /// A machine of a provider that this rule does not know, by the provider's name.
    NotKnown(String),
    /// An EC2 instance.
    Ec2(Box<Ec2Facts>),
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

/// What a machine costs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Price {
    /// The on-demand list price.
    OnDemand(HourlyRate),
    /// Not known, and why.
    Unknown(String),
}

/// Proposes to stop an idle machine, or says why not.
///
/// # Errors
/// The one reason that decided, the most fundamental first.
pub fn propose(input: &StopInput) -> Result<Proposal, NotProposed> {
    let facts = refuse::unless_stoppable(input)?;
    let plan = plan::of(input, &facts).ok_or(NotProposed::ExpiryOutOfRange)?;
    Proposal::seal(plan).map_err(|error: ProposalError| NotProposed::CannotSeal { why: error.to_string() })
}
