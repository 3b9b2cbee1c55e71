//! A member of a group that nothing speaks for keeping.

use std::collections::BTreeMap;

use model::{
    address::Told,
    group::{GroupFacts, MemberFacts},
    machine::{AutoScaling, Ec2Facts},
};

use super::may_end_now;
use crate::{Refusal, sample::facts};

pub(crate) const GROUP: &str = "workers";
/// Another member.
pub(crate) const OTHER: &str = "i-00000000000000002";

/// One of three members, of a group that may go down to one.
pub(crate) fn member(change: impl FnOnce(&mut Ec2Facts, &mut GroupFacts)) -> (Ec2Facts, GroupFacts) {
    let mut facts = facts(|facts| {
        facts.tag("owner", "ada");
        facts.tag("aws:autoscaling:groupName", GROUP);
        facts.0.autoscaling = AutoScaling::Member(GROUP.to_owned());
    });
    let one = |id: &str| MemberFacts {
        instance_id: id.to_owned(),
        lifecycle_state: Some("InService".to_owned()),
        health: Some("Healthy".to_owned()),
        protected_from_scale_in: Some(false),
        zone: Some("a".to_owned()),
        weight: None,
    };
    let mut group = GroupFacts {
        name: GROUP.to_owned(),
        min_size: Some(1),
        desired_capacity: Some(3),
        members: Some([&*facts.instance_id, OTHER, "i-00000000000000003"].map(one).into()),
        zones: ["a".to_owned()].into(),
        suspended: Some([].into()),
        status: None,
        mixes: false,
        has_warm_pool: false,
        refresh: Told::Nothing,
        tags: Some(BTreeMap::new()),
    };
    change(&mut facts, &mut group);
    (facts, group)
}

/// What is said of it with this change alone.
pub(crate) fn may_end_with(change: impl FnOnce(&mut Ec2Facts, &mut GroupFacts)) -> Result<(), Refusal> {
    let (facts, group) = member(change);
    may_end_now(&facts, &group)
}

/// The same with a change of the member itself.
pub(crate) fn of_member(change: impl FnOnce(&mut MemberFacts)) -> Result<(), Refusal> {
    may_end_with(|_, group| change(&mut group.members.as_mut().expect("members")[0]))
}

/// The same with a change of the group and of another member.
pub(crate) fn of_other(change: impl FnOnce(&mut GroupFacts, &mut MemberFacts)) -> Result<(), Refusal> {
    may_end_with(|_, group| {
        let mut other = group.members.as_mut().expect("members").remove(1);
        change(group, &mut other);
        group.members.as_mut().expect("members").push(other);
    })
}
