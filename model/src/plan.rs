//! What would be done: an immutable plan, sealed by the hash of its content.
//!
//! A [`PlanContent`] is plain data that a person can read and a machine can check; sealing it makes a [`Plan`], which cannot be changed and refuses to be
//! read back with a hash that does not fit. An approval names that hash, so a yes to one plan is never a yes to another. Until when it may be approved, and
//! what its charges come to, stands beside it. Sealing costs one SHA-256 over about 1 KiB.

mod action;
mod condition;

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use action::{Action, ActionClass};
pub use condition::Condition;

use crate::{HourlyRate, ResourceKey, Usd, canonical};

/// What would end a finding. No two plans are alike: each names the record of its finding that it was made with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanContent {
    /// The finding that it would end.
    pub finding: String,
    /// The finding's record that it was made with, counted from 1: what it rests on.
    pub record: u32,
    /// The resource that each of its actions is on.
    pub resource: ResourceKey,
    /// One line for a person.
    pub title: String,
    /// What must hold right before the first action.
    pub conditions: Vec<Condition>,
    /// What is done, in this order. One that does not go as it says ends the plan.
    pub actions: Vec<Action>,
    /// What takes it back, in this order; nothing does if there is none.
    pub reversal: Vec<Action>,
    /// What does not come back with the reversal.
    pub lost: Vec<Loss>,
    /// What is billed all the same afterwards.
    pub keeps_billing: Vec<Charge>,
    /// What the bill is lower by.
    pub net_saving: Saving,
}

/// What a reversal does not bring back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "lost", rename_all = "snake_case")]
pub enum Loss {
    /// What is in memory, and with it every process and login session.
    Memory,
    /// The same, where hibernating fails: then the machine is shut down. Its connections are lost all the same.
    MemoryUnlessHibernated,
    /// This public address: another one is given at the next start.
    PublicIpv4 {
        /// Dotted.
        address: String,
        /// True where the provider did not say whether the address is elastic; then it may be kept.
        may_be_elastic: bool,
    },
    /// What instance-store disks hold, if the machine has any.
    InstanceStore,
    /// This public address, for good: the provider gives it to others, and what names it (DNS, lists of who may connect, certificates) leads there.
    ElasticIpv4 {
        /// Dotted.
        address: String,
    },
    /// This volume: what is made again from its snapshot has another id, and is slow until it was read once.
    Volume {
        /// `vol-…`
        id: String,
    },
    /// This machine: what its group starts later is another one.
    Machine {
        /// `i-…`
        id: String,
    },
    /// This volume, with all that it holds: it goes with its machine.
    VolumeOfMachine {
        /// `vol-…`
        id: String,
        /// True where the provider did not say whether it goes with it.
        may_stay: bool,
    },
    /// This job, and what it has computed and not written elsewhere: nobody tries it again but who submits it anew.
    Job {
        /// Batch's id.
        id: String,
        /// Who submitted it, where that is known: a job, perhaps, that waits for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        submitted_by: Option<String>,
    },
    /// What Batch would have tried again, had the job failed by itself.
    Retries {
        /// So many attempts it was allowed.
        allowed: u32,
    },
    /// The provider's promise of a place: it may lack capacity of this type at the next start.
    Capacity {
        /// Of which type.
        instance_type: String,
    },
}

/// What goes on to be billed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "charge", rename_all = "snake_case")]
pub enum Charge {
    /// A volume, by its provisioned size.
    Volume {
        /// `vol-…`
        id: String,
    },
    /// An elastic address.
    ElasticIpv4 {
        /// Dotted.
        address: String,
        /// True where the provider did not say whether the address is elastic; then it may be released.
        may_be_released: bool,
    },
    /// The snapshot that is made of a volume, for as long as nobody deletes it.
    SnapshotOf {
        /// `vol-…`
        volume: String,
    },
    /// The machine that a job ran on, for as long as AWS Batch keeps it.
    MachineOfJob {
        /// `i-…`
        id: String,
    },
    /// A reservation or savings plan that covers the machine, if there is one: that has not been read.
    CommitmentsUnknown,
}

/// What one of a plan's charges comes to. It stands beside the plan and not in its hash: a price that changes, or cannot be read today, makes no new
/// plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChargePrice {
    /// Which.
    pub charge: Charge,
    /// What is billed: `100 GiB gp3`.
    pub what: Option<String>,
    /// At what price.
    #[serde(flatten)]
    pub cost: ChargeCost,
}

/// What a charge comes to in a month of 730 hours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "cost", rename_all = "snake_case")]
pub enum ChargeCost {
    /// The list price.
    Known {
        /// In whole micro-dollars.
        per_month: Usd,
        /// When the price list last said so, where it could not be read today.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        as_of: Option<Timestamp>,
    },
    /// Not known. That is not zero.
    Unknown {
        /// Why not.
        why: String,
    },
}

/// What the bill is lower by once the plan is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "saving", rename_all = "snake_case")]
pub enum Saving {
    /// Known, on the stated basis.
    Known {
        /// In whole micro-dollars.
        per_hour: HourlyRate,
        /// Over 730 hours, in whole micro-dollars.
        per_month: Usd,
        /// Which prices went in, and which did not.
        basis: String,
    },
    /// Not known. That is not zero.
    Unknown {
        /// Why not.
        why: String,
    },
}

/// The SHA-256 of a plan's canonical JSON.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct ContentHash(String);

impl ContentHash {
    /// 64 lower-case hexadecimal digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its first twelve digits, for people to type: no two plans of an installation have these in common, by chance.
    #[must_use]
    pub fn short(&self) -> &str {
        self.0.get(..12).unwrap_or(&self.0)
    }
}

/// A text that is no content hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a content hash has 64 lower-case hexadecimal digits")]
pub struct NotAHash;

impl TryFrom<String> for ContentHash {
    type Error = NotAHash;

    fn try_from(text: String) -> Result<Self, NotAHash> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if text.len() == 64 && text.bytes().all(is_digit) { Ok(Self(text)) } else { Err(NotAHash) }
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A sealed plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct Plan {
    #[serde(flatten)]
    content: PlanContent,
    content_hash: ContentHash,
    valid_until: Timestamp,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    charge_prices: Vec<ChargePrice>,
}

/// Why a stored plan is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// It was changed after it was sealed, or by another version that knows other fields.
    #[error("the plan says that its content hash is {stated}, but its content hashes to {actual}")]
    HashMismatch {
        /// What it says.
        stated: ContentHash,
        /// What it is.
        actual: ContentHash,
    },
    /// The plan cannot be written as JSON.
    #[error("the plan cannot be written as JSON: {0}")]
    NotJson(String),
}

#[derive(Deserialize)]
struct Unchecked {
    #[serde(flatten)]
    content: PlanContent,
    content_hash: ContentHash,
    valid_until: Timestamp,
    #[serde(default)]
    charge_prices: Vec<ChargePrice>,
}

impl TryFrom<Unchecked> for Plan {
    type Error = PlanError;

    fn try_from(read: Unchecked) -> Result<Self, PlanError> {
        let sealed = Self::seal(read.content, read.valid_until)?;
        if sealed.content_hash == read.content_hash {
            Ok(sealed.priced(read.charge_prices))
        } else {
            Err(PlanError::HashMismatch { stated: read.content_hash, actual: sealed.content_hash })
        }
    }
}

impl Plan {
    /// Seals a plan that may be approved until then.
    ///
    /// # Errors
    /// [`PlanError::NotJson`] if it cannot be written as JSON; no plan that the recommender makes is one.
    pub fn seal(content: PlanContent, valid_until: Timestamp) -> Result<Self, PlanError> {
        let value = serde_json::to_value(&content).map_err(|error| PlanError::NotJson(error.to_string()))?;
        let content_hash = ContentHash(canonical::sha256_hex(&value));
        Ok(Self { content, content_hash, valid_until, charge_prices: Vec::new() })
    }

    /// The same plan, with these prices of its charges beside it.
    #[must_use]
    pub fn priced(self, charge_prices: Vec<ChargePrice>) -> Self {
        Self { charge_prices, ..self }
    }

    /// What is told beside the plan of what its charges come to.
    #[must_use]
    pub fn charge_prices(&self) -> &[ChargePrice] {
        &self.charge_prices
    }

    /// What goes on to be billed, each with its price where one is told.
    pub fn charges(&self) -> impl Iterator<Item = (&Charge, Option<&ChargePrice>)> {
        let price = |charge: &Charge| self.charge_prices.iter().find(|price| price.charge == *charge);
        self.content.keeps_billing.iter().map(move |charge| (charge, price(charge)))
    }

    /// What would be done.
    #[must_use]
    pub fn content(&self) -> &PlanContent {
        &self.content
    }

    /// What an approval must name.
    #[must_use]
    pub fn content_hash(&self) -> &ContentHash {
        &self.content_hash
    }

    /// The Auto Scaling group that it makes smaller; none for most.
    #[must_use]
    pub fn group(&self) -> Option<&str> {
        self.content.conditions.iter().find_map(|condition| match condition {
            Condition::MemberOf { group } => Some(group.as_str()),
            _ => None,
        })
    }

    /// EC2's id of the machine on which the job runs that it terminates; none for most.
    #[must_use]
    pub fn machine_of_job(&self) -> Option<&str> {
        self.content.conditions.iter().find_map(|condition| match condition {
            Condition::JobAttemptIs { attempt } => Some(attempt.machine.as_str()),
            _ => None,
        })
    }

    /// All that is left alone only if this plan is not carried out: its resource, and of a job its machine, its queue and its compute environment.
    #[must_use]
    pub fn is_on(&self) -> Vec<ResourceKey> {
        let resource = &self.content.resource;
        let around = self.content.conditions.iter().flat_map(|condition| match condition {
            Condition::JobAttemptIs { attempt } => vec![attempt.machine_key(resource)],
            Condition::JobPlaceIs { place } => place.keys(resource).to_vec(),
            _ => Vec::new(),
        });
        std::iter::once(resource.clone()).chain(around).collect()
    }

    /// From then on it must not be approved nor carried out.
    #[must_use]
    pub fn valid_until(&self) -> Timestamp {
        self.valid_until
    }

    /// The worst that any of its actions is.
    #[must_use]
    pub fn class(&self) -> ActionClass {
        self.content.actions.iter().map(|action| action.class()).max().unwrap_or(ActionClass::Reversible)
    }

    /// Whether another plan would do the same under the same conditions, for the same reasons: all but the record that it was made with.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        PlanContent { record: other.content.record, ..self.content.clone() } == other.content
    }
}
