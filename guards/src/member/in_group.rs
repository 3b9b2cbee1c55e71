//! Refuses a machine that the group of the plan does not list: it has been detached, moved to another group or ended since, and nothing may be ended in its place.

use model::{group::GroupFacts, machine::Ec2Facts};

use super::MemberRefusal;
use crate::{Refusal, refusal::missing};

pub(super) fn guard(facts: &Ec2Facts, group: &GroupFacts) -> Result<(), Refusal> {
    if group.members.is_none() {
        return Err(missing("group's members"));
    }
    match group.member(&facts.instance_id) {
        Some(_) => Ok(()),
        None => Err(MemberRefusal::NotListed { group: group.name.clone() }.into()),
    }
}

/// The same, of a plan that names the group.
pub(super) fn of(wanted: &str, facts: &Ec2Facts, group: &GroupFacts) -> Result<(), Refusal> {
    if group.name != wanted {
        return Err(MemberRefusal::NotListed { group: wanted.to_owned() }.into());
    }
    guard(facts, group)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::member::{
        holds,
        sample::{GROUP, may_end_with, member},
    };
    use model::plan::Condition;

    #[test]
    fn only_what_the_group_lists_is_ended_in_it() {
        let gone = Err(MemberRefusal::NotListed { group: GROUP.to_owned() }.into());
        assert_eq!(may_end_with(|_, group| drop(group.members.as_mut().expect("members").remove(0))), gone);
        assert_eq!(may_end_with(|_, group| group.members = None), Err(missing("group's members")));
    }

    #[test]
    fn a_plan_is_about_one_group() {
        let of = |wanted: &str| {
            let (facts, group) = member(|_, _| ());
            holds(&Condition::MemberOf { group: wanted.to_owned() }, &facts, &group)
        };
        assert_eq!(of(GROUP), Ok(()));
        assert_eq!(of("others"), Err(MemberRefusal::NotListed { group: "others".to_owned() }.into()));
    }
}
