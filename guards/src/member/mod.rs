//! What stands between a plan and a member of an Auto Scaling group that is to be ended: a file per guard, as of machines. Nothing undoes that, and a group that is made smaller at the wrong moment ends other machines.

mod balance;
mod in_group;
mod in_service;
mod minimum;
mod mixed;
mod owner;
mod refresh;
mod refusal;
#[cfg(test)]
pub(crate) mod sample;
mod scale_in;
mod steady;
mod suspended;
mod warm_pool;
mod weight;

pub use refusal::MemberRefusal;

use model::{
    group::{GroupFacts, MemberFacts},
    machine::Ec2Facts,
    plan::Condition,
};

use crate::{Refusal, capacity, exemption, protection, purchase, same, state};

/// One question about a member and its group.
type Guard = fn(&Ec2Facts, &GroupFacts) -> Result<(), Refusal>;

/// The most fundamental first.
const END: [Guard; 17] = [
    exempt,
    group_exempt,
    owner::guard,
    is_protected,
    runs,
    bought_so,
    is_reserved,
    in_group::guard,
    in_service::guard,
    scale_in::guard,
    warm_pool::guard,
    weight::guard,
    mixed::guard,
    suspended::guard,
    steady::guard,
    minimum::guard,
    balance::guard,
];
/// What has to do with the group alone, and may have changed since a plan was made.
const CAN_SHRINK: [Guard; 8] = [
    warm_pool::guard,
    weight::guard,
    mixed::guard,
    suspended::guard,
    steady::guard,
    minimum::guard,
    balance::guard,
    refresh::guard,
];

fn exempt(facts: &Ec2Facts, _: &GroupFacts) -> Result<(), Refusal> {
    exemption::guard(facts)
}

fn group_exempt(_: &Ec2Facts, group: &GroupFacts) -> Result<(), Refusal> {
    exemption::of_tags(group.tags.as_ref()).map_err(|refused| match refused {
        Refusal::Exempt { tag } => MemberRefusal::GroupExempt { tag }.into(),
        refused => refused,
    })
}

fn is_protected(facts: &Ec2Facts, _: &GroupFacts) -> Result<(), Refusal> {
    protection::guard(facts)
}

fn runs(facts: &Ec2Facts, _: &GroupFacts) -> Result<(), Refusal> {
    state::guard(facts)
}

fn bought_so(facts: &Ec2Facts, _: &GroupFacts) -> Result<(), Refusal> {
    purchase::guard(facts)
}

fn is_reserved(facts: &Ec2Facts, _: &GroupFacts) -> Result<(), Refusal> {
    capacity::guard(facts)
}

/// What a group says of one of its members.
fn listed<'a>(facts: &Ec2Facts, group: &'a GroupFacts) -> Result<&'a MemberFacts, Refusal> {
    group.member(&facts.instance_id).ok_or_else(|| MemberRefusal::NotListed { group: group.name.clone() }.into())
}

/// Whether a member of a group may be ended, by what lists say of both.
///
/// # Errors
/// The one reason that decided, the most fundamental first.
pub fn may_end(facts: &Ec2Facts, group: &GroupFacts) -> Result<(), Refusal> {
    END.iter().try_for_each(|guard| guard(facts, group))
}

/// The same right before the call: with what lists do not tell.
pub(crate) fn may_end_now(facts: &Ec2Facts, group: &GroupFacts) -> Result<(), Refusal> {
    may_end(facts, group)?;
    refresh::guard(facts, group)
}

/// Whether a condition of a plan holds, by what EC2 and Auto Scaling say now. That its node is still idle nobody but the node tells.
pub(crate) fn holds(condition: &Condition, facts: &Ec2Facts, group: &GroupFacts) -> Result<(), Refusal> {
    match condition {
        Condition::TagsPermit => {
            exempt(facts, group)?;
            group_exempt(facts, group)?;
            owner::guard(facts, group)
        }
        Condition::StateIs { state } => same::state(state, facts),
        Condition::LaunchedAtIs { at } => same::launched_at(*at, facts),
        Condition::InstanceTypeIs { instance_type } => same::instance_type(instance_type, facts),
        Condition::NotProtected => protection::guard(facts),
        Condition::StillIdle => Ok(()),
        Condition::MemberOf { group: wanted } => {
            in_group::of(wanted, facts, group)?;
            in_service::guard(facts, group)?;
            scale_in::guard(facts, group)
        }
        Condition::GroupCanShrink => CAN_SHRINK.iter().try_for_each(|guard| guard(facts, group)),
        Condition::NoInstanceStoreWrites
        | Condition::AddressIs { .. }
        | Condition::TiedToNothing
        | Condition::UnusedSince { .. }
        | Condition::NoReverseName
        | Condition::NotOffered
        | Condition::VolumeIs { .. }
        | Condition::SnapshotCompleted
        | Condition::JobPlaceIs { .. }
        | Condition::JobAttemptIs { .. }
        | Condition::NothingDependsOnIt
        | Condition::StillStuck { .. } => Err(Refusal::OfAnotherKind),
    }
}

#[cfg(test)]
mod tests {
    use super::{
        sample::{may_end_with, member},
        *,
    };
    use crate::EXEMPTION_TAG;
    use jiff::Timestamp;
    use model::machine::{InstanceStore, Lifecycle, Protection, Root};

    #[test]
    fn a_member_that_nothing_speaks_for_keeping_may_be_ended() {
        assert_eq!(may_end_with(|_, _| ()), Ok(()));
        let (facts, group) = member(|_, _| ());
        assert_eq!(may_end(&facts, &group), Ok(()));
    }

    #[test]
    fn whoever_exempts_a_machine_or_its_group_exempts_the_machine() {
        let tag = || EXEMPTION_TAG.to_owned();
        let exempt = Err(Refusal::Exempt { tag: tag() });
        let machine = |facts: &mut Ec2Facts, _: &mut GroupFacts| {
            facts.tags.get_or_insert_default().insert(EXEMPTION_TAG.to_owned(), String::new());
        };
        assert_eq!(may_end_with(machine), exempt);
        let (facts, group) = member(machine);
        assert_eq!(holds(&Condition::TagsPermit, &facts, &group), exempt);
        let of_group = Err(MemberRefusal::GroupExempt { tag: tag() }.into());
        let whole = |_: &mut Ec2Facts, group: &mut GroupFacts| {
            drop(group.tags.get_or_insert_default().insert(tag(), String::new()));
        };
        assert_eq!(may_end_with(whole), of_group);
        let (facts, group) = member(whole);
        assert_eq!(holds(&Condition::TagsPermit, &facts, &group), of_group);
    }

    #[test]
    fn what_keeps_a_machine_from_being_stopped_keeps_it_from_being_ended() {
        let by = "termination protection".to_owned();
        let protected = may_end_with(|facts, _| facts.protection = Protection::On { by: by.clone() });
        assert_eq!(protected, Err(Refusal::Protected { by }), "Auto Scaling heeds it not");
        let state = "stopped".to_owned();
        let stopped = may_end_with(|facts, _| facts.state = Some(state.clone()));
        assert_eq!(stopped, Err(Refusal::NotRunning { state }));
        assert_eq!(may_end_with(|facts, _| facts.lifecycle = Lifecycle::Spot), Err(Refusal::Spot));
        let id = "cr-1".to_owned();
        let reserved = may_end_with(|facts, _| facts.capacity_reservation = Some(id.clone()));
        assert_eq!(reserved, Err(Refusal::CapacityReserved { id }));
    }

    #[test]
    fn what_it_holds_is_lost_and_the_plan_says_so() {
        for store in [InstanceStore::Present, InstanceStore::Unknown] {
            assert_eq!(may_end_with(|facts, _| facts.instance_store = store), Ok(()));
        }
        assert_eq!(may_end_with(|facts, _| facts.root = Root::InstanceStore), Ok(()));
    }

    #[test]
    fn a_condition_on_something_else_never_holds_of_a_member() {
        let (facts, group) = member(|_, _| ());
        for condition in [
            Condition::NoInstanceStoreWrites,
            Condition::AddressIs { address: "203.0.113.8".to_owned() },
            Condition::TiedToNothing,
            Condition::UnusedSince { at: Timestamp::UNIX_EPOCH },
            Condition::NoReverseName,
            Condition::NotOffered,
            Condition::SnapshotCompleted,
        ] {
            assert_eq!(holds(&condition, &facts, &group), Err(Refusal::OfAnotherKind), "{condition:?}");
        }
        for condition in [Condition::MemberOf { group: sample::GROUP.to_owned() }, Condition::GroupCanShrink] {
            assert_eq!(crate::holds(&condition, &facts), Err(Refusal::OfAnotherKind), "no other machine has a group");
        }
    }

    #[test]
    fn each_condition_is_held_against_what_is_true_now() {
        let of = |condition: &Condition| {
            let (facts, group) = member(|facts, group| {
                (facts.state, facts.protection) = (Some("stopping".to_owned()), Protection::Unknown);
                (facts.launched_at, facts.instance_type) = (None, None);
                group.min_size = Some(3);
                let members = group.members.as_mut().expect("members");
                members[0].protected_from_scale_in = Some(true);
            });
            holds(condition, &facts, &group)
        };
        let running = Condition::StateIs { state: "running".to_owned() };
        let named = Condition::InstanceTypeIs { instance_type: "m5.large".to_owned() };
        for condition in [
            running,
            named,
            Condition::LaunchedAtIs { at: crate::sample::LAUNCHED },
            Condition::NotProtected,
            Condition::MemberOf { group: sample::GROUP.to_owned() },
            Condition::GroupCanShrink,
        ] {
            assert!(of(&condition).is_err(), "{condition:?}");
        }
        assert_eq!(of(&Condition::StillIdle), Ok(()), "another guard's");
    }
}
