//! What is proposed: an immutable plan, sealed by the hash of its content.
//!
//! A [`Plan`] is plain data that a person can read and a machine can check; sealing it makes a [`Proposal`], which cannot
//! be changed and refuses to be read back with a hash that does not fit. An approval names that hash, so a yes to one
//! plan is never a yes to another. Sealing costs one SHA-256 over about 2 KiB.

use std::{collections::BTreeMap, fmt};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use model::{HourlyRate, ResourceKey, Usd};

use crate::canonical;

/// A plan that would end a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The finding that it would end.
    pub finding: String,
    /// The resource that it acts on.
    pub resource: ResourceKey,
    /// One line for a person.
    pub title: String,
    /// What is done, in this order. A step that does not go as it says ends the plan.
    pub steps: Vec<Step>,
    /// What takes it back.
    pub reversal: Vec<Step>,
    /// What does not come back with the reversal.
    pub lost: Vec<Loss>,
    /// What is billed all the same afterwards.
    pub keeps_billing: Vec<Charge>,
    /// What the bill is lower by.
    pub net_saving: Saving,
    /// From then on the plan must not be approved nor executed.
    pub expires_at: Timestamp,
}

/// One step of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum Step {
    /// Read the resource again and go on only if every condition holds.
    Confirm {
        /// What must hold.
        conditions: Vec<Condition>,
    },
    /// Call the provider.
    Call(Call),
    /// Wait for the resource to reach a state.
    Await {
        /// In the provider's words.
        state: String,
        /// Stop waiting after so long.
        within_seconds: u32,
    },
}

/// One call of a provider's API, complete: whoever executes it adds nothing but credentials and a request id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// `ec2`
    pub service: String,
    /// `StopInstances`
    pub action: String,
    /// The account that the call must reach; refused if the credentials are of another.
    pub account: String,
    /// `eu-central-1`
    pub region: String,
    /// The request's parameters in the provider's own words. No floats.
    pub parameters: BTreeMap<String, Value>,
    /// What the provider answers if all is well: `DryRunOperation`, or `ok`.
    pub expect: String,
}

/// What must hold right before acting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "condition", rename_all = "snake_case")]
pub enum Condition {
    /// The provider reports this state.
    StateIs {
        /// In the provider's words.
        state: String,
    },
    /// The machine has not been started again since.
    LaunchedAtIs {
        /// As the inventory had it.
        at: Timestamp,
    },
    /// The machine is still of this type.
    InstanceTypeIs {
        /// As the inventory had it.
        instance_type: String,
    },
    /// The machine's tags can be read, and none of them exempts it or makes it part of something larger.
    TagsStillPermit,
    /// A live look at the node still says idle.
    StillIdle,
    /// Neither stop protection nor termination protection is on. It is never switched off to get there.
    NotProtected,
    /// The machine has no instance-store disk that was written to since boot.
    NoInstanceStoreWrites,
}

/// What a reversal does not bring back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "lost", rename_all = "snake_case")]
pub enum Loss {
    /// What is in memory, and with it every process and login session.
    Memory,
    /// This public address: another one is given at the next start.
    PublicIpv4 {
        /// Dotted.
        address: String,
        /// True where the provider did not say whether the address is elastic; then it may be kept.
        may_be_elastic: bool,
    },
    /// What instance-store disks hold, if the machine has any.
    InstanceStore,
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
#[serde(transparent)]
pub struct ContentHash(String);

impl ContentHash {
    /// 64 lower-case hexadecimal digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
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
pub struct Proposal {
    #[serde(flatten)]
    plan: Plan,
    content_hash: ContentHash,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    charge_prices: Vec<ChargePrice>,
}

/// Why a stored proposal is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProposalError {
    /// It was changed after it was sealed, or by another version that knows other fields.
    #[error("the proposal says that its content hash is {stated}, but its content hashes to {actual}")]
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
    plan: Plan,
    content_hash: ContentHash,
    #[serde(default)]
    charge_prices: Vec<ChargePrice>,
}

impl TryFrom<Unchecked> for Proposal {
    type Error = ProposalError;

    fn try_from(read: Unchecked) -> Result<Self, ProposalError> {
        let sealed = Self::seal(read.plan)?;
        if sealed.content_hash == read.content_hash {
            Ok(sealed.priced(read.charge_prices))
        } else {
            Err(ProposalError::HashMismatch { stated: read.content_hash, actual: sealed.content_hash })
        }
    }
}

impl Proposal {
    /// Seals a plan.
    ///
    /// # Errors
    /// [`ProposalError::NotJson`] if the plan cannot be written as JSON; no plan that this crate makes is one.
    pub fn seal(plan: Plan) -> Result<Self, ProposalError> {
        let value = serde_json::to_value(&plan).map_err(|error| ProposalError::NotJson(error.to_string()))?;
        Ok(Self { content_hash: ContentHash(canonical::sha256_hex(&value)), plan, charge_prices: Vec::new() })
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
        self.plan.keeps_billing.iter().map(move |charge| (charge, price(charge)))
    }

    /// What is proposed.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// What an approval must name.
    #[must_use]
    pub fn content_hash(&self) -> &ContentHash {
        &self.content_hash
    }
}

impl Call {
    /// The same call for the provider's own command line, so that a person can check it or make it by hand.
    /// Only the shapes that this crate's rules use are rendered: lists of texts, texts and true flags.
    #[must_use]
    pub fn command_line(&self) -> String {
        let mut line = format!("aws {} {} --region {}", self.service, kebab(&self.action), self.region);
        for (name, value) in &self.parameters {
            let values: Vec<&str> = match value {
                Value::Bool(false) => continue,
                Value::Bool(true) => Vec::new(),
                Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
                Value::String(text) => vec![text.as_str()],
                Value::Null | Value::Number(_) | Value::Object(_) => continue,
            };
            line.push_str(" --");
            line.push_str(&kebab(name));
            for value in values {
                line.push(' ');
                line.push_str(value);
            }
        }
        line
    }
}

/// `StopInstances` → `stop-instances`.
fn kebab(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 4);
    for (n, c) in name.chars().enumerate() {
        if c.is_ascii_uppercase() && n > 0 {
            out.push('-');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}
