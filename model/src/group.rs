//! What a provider says of a group that keeps machines up, as far as it decides whether one of them may be ended.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::address::Told;

/// What Auto Scaling says of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupFacts {
    /// Its name, which is unique in an account and region.
    pub name: String,
    /// It never lets the number of members fall below; none if Auto Scaling did not say.
    pub min_size: Option<u32>,
    /// So many members it keeps up; none if Auto Scaling did not say.
    pub desired_capacity: Option<u32>,
    /// Its machines, those of a warm pool not among them; none if Auto Scaling did not say.
    pub members: Option<Vec<MemberFacts>>,
    /// The zones that it starts machines in; empty if Auto Scaling did not say.
    pub zones: BTreeSet<String>,
    /// What it is kept from doing, in Auto Scaling's words: `Terminate`, `AZRebalance`, …; none if Auto Scaling did not say.
    pub suspended: Option<BTreeSet<String>>,
    /// What is being done with it as a whole, such as `Delete in progress`.
    pub status: Option<String>,
    /// Whether it mixes types of machines or ways to buy them.
    pub mixes: bool,
    /// Whether it keeps a pool of machines that were started before they are needed.
    pub has_warm_pool: bool,
    /// The replacement of its machines that is under way. Lists do not tell it.
    pub refresh: Told,
    /// Its own tags, which its machines may or may not have; none if Auto Scaling did not say.
    pub tags: Option<BTreeMap<String, String>>,
}

/// What Auto Scaling says of one machine of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberFacts {
    /// `i-…`
    pub instance_id: String,
    /// `InService`, `Standby`, `Terminating:Wait`, … in Auto Scaling's words; none if it did not say.
    pub lifecycle_state: Option<String>,
    /// `Healthy` or `Unhealthy`, in Auto Scaling's words; none if it did not say.
    pub health: Option<String>,
    /// Whether the group leaves it alone when it shrinks; none if Auto Scaling did not say.
    pub protected_from_scale_in: Option<bool>,
    /// For example `eu-central-1a`; none if Auto Scaling did not say.
    pub zone: Option<String>,
    /// For how many units of the group's capacity it counts, where that is not one.
    pub weight: Option<String>,
}

/// The word for a member that does what the group keeps it up for.
pub const IN_SERVICE: &str = "InService";

impl GroupFacts {
    /// What it says of a machine; none if it has no such member, or does not say which it has.
    #[must_use]
    pub fn member(&self, instance_id: &str) -> Option<&MemberFacts> {
        self.members.as_ref()?.iter().find(|member| member.instance_id == instance_id)
    }
}

impl MemberFacts {
    /// Whether it does what the group keeps it up for.
    #[must_use]
    pub fn is_in_service(&self) -> bool {
        self.lifecycle_state.as_deref() == Some(IN_SERVICE)
    }
}
