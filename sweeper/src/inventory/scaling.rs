//! What keeps a number of machines alive, as its provider describes it.

use model::{
    ResourceKey,
    address::Told,
    group::{GroupFacts, MemberFacts},
};
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// What Auto Scaling says of one group. A fact that it left out is `None`, never a default.
/// <https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_AutoScalingGroup.html>
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AutoScalingGroup {
    /// The resource key; its id is the group's name, which is unique in an account and region.
    pub id: ResourceKey,
    /// `arn:aws:autoscaling:…`
    pub arn: Option<String>,
    /// It never lets the number of members fall below; in machines, or in units of weight where members have one.
    pub min_size: Option<u32>,
    /// Never above.
    pub max_size: Option<u32>,
    /// What it keeps up: a member that stops is replaced.
    pub desired_capacity: Option<u32>,
    /// What it starts machines from.
    pub launch: Option<Launch>,
    /// Its machines. `None`: it did not say, so any machine may be one.
    pub members: Option<Vec<Member>>,
    /// Its own tags, which its machines may or may not have.
    pub tags: BTreeMap<String, String>,
    /// How it comes to end machines. No history is kept of it.
    #[serde(skip)]
    pub upkeep: Upkeep,
}

/// What decides how an Auto Scaling group ends machines, its own way or by request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Upkeep {
    /// The zones that it starts machines in; empty if it did not say.
    pub zones: BTreeSet<String>,
    /// What it is kept from doing, in Auto Scaling's words. `None`: it did not say.
    pub suspended: Option<BTreeSet<String>>,
    /// What is being done with it as a whole, such as `Delete in progress`.
    pub status: Option<String>,
    /// Whether it mixes types of machines or ways to buy them.
    pub mixes: bool,
    /// Whether it keeps a warm pool.
    pub has_warm_pool: bool,
    /// Whether it said which tags the group has.
    pub tags_are_told: bool,
}

impl AutoScalingGroup {
    /// The facts that guards look at, with what lists do not tell.
    #[must_use]
    pub fn end_facts(&self, refresh: Told) -> GroupFacts {
        let Upkeep { zones, suspended, status, mixes, has_warm_pool, tags_are_told } = self.upkeep.clone();
        let member = |member: &Member| MemberFacts {
            instance_id: member.instance_id.clone(),
            lifecycle_state: member.lifecycle_state.clone(),
            health: member.health.clone(),
            protected_from_scale_in: member.protected_from_scale_in,
            zone: member.zone.clone(),
            weight: member.weight.clone(),
        };
        GroupFacts {
            name: self.id.id.clone(),
            min_size: self.min_size,
            desired_capacity: self.desired_capacity,
            members: self.members.as_ref().map(|members| members.iter().map(member).collect()),
            zones,
            suspended,
            status,
            mixes,
            has_warm_pool,
            refresh,
            tags: tags_are_told.then(|| self.tags.clone()),
        }
    }
}

/// What a group starts machines from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Launch {
    /// A launch template; with several instance types, the one that they are variants of.
    Template(LaunchTemplate),
    /// The older form, by its name.
    Configuration(String),
}

/// A launch template in one of its versions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchTemplate {
    /// `lt-…`
    pub id: Option<String>,
    /// What people call it.
    pub name: Option<String>,
    /// A number, or `$Latest` or `$Default`: whichever that is at the moment of a start.
    pub version: Option<String>,
}

/// One machine of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// `i-…`
    pub instance_id: String,
    /// `InService`, `Standby`, `Terminating:Wait`, `Warmed:Stopped`, …: in Auto Scaling's words.
    pub lifecycle_state: Option<String>,
    /// `Healthy` or `Unhealthy`, in Auto Scaling's words.
    pub health: Option<String>,
    /// Whether the group leaves it alone when it shrinks.
    pub protected_from_scale_in: Option<bool>,
    /// For example `eu-central-1a`.
    #[serde(skip)]
    pub zone: Option<String>,
    /// For how many units of the group's capacity it counts, where that is not one.
    #[serde(skip)]
    pub weight: Option<String>,
}
