//! What a provider says of a public address, as far as it decides whether it may be given back.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What EC2 says of an Elastic IP address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddressFacts {
    /// For example `eu-central-1`.
    pub region: String,
    /// `eipalloc-…`; none of an address from before networks were the customer's own.
    pub allocation_id: Option<String>,
    /// Dotted; none if EC2 did not say.
    pub address: Option<String>,
    /// The value of its `Name` tag.
    pub name: Option<String>,
    /// All its tags; none if they could not be read.
    pub tags: Option<BTreeMap<String, String>>,
    /// What it is tied to: a machine, a network interface or an association; none if to nothing.
    pub tied_to: Option<String>,
    /// The service that keeps it for itself, such as `alb`.
    pub service: Option<String>,
    /// `amazon`, or the customer's own range of addresses; none if EC2 did not say.
    pub pool: Option<String>,
    /// The zone that it can be used in alone, such as `us-west-2-lax-1`; none for a whole region.
    pub border_group: Option<String>,
    /// The name that leads back from it. Lists do not tell it.
    pub reverse_name: Told,
    /// The account that it has been offered to. Lists do not tell it.
    pub offered_to: Told,
}

/// What a provider tells where it has to be asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "told", rename_all = "snake_case")]
pub enum Told {
    /// There is none.
    Nothing,
    /// This.
    Something {
        /// In the provider's words.
        what: String,
    },
    /// It was not asked, or did not answer. That is not nothing.
    Unknown {
        /// Why not.
        why: String,
    },
}
