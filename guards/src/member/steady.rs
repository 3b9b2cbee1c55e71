//! Refuses while the group changes by another hand: it is being deleted, machines of it start or leave, or it has more or fewer than it keeps up. Whoever has just made it smaller has done so for this
//! machine, perhaps: made smaller once more it would end one that works.

use model::{group::GroupFacts, machine::Ec2Facts};

use super::MemberRefusal;
use crate::{Refusal, refusal::missing};

/// Set aside by somebody, and not among those that the group keeps up.
const STANDBY: &str = "Standby";

pub(super) fn guard(_: &Ec2Facts, group: &GroupFacts) -> Result<(), Refusal> {
    let changing = |what: String| Err(MemberRefusal::Changing { what }.into());
    if let Some(status) = &group.status {
        return changing(status.clone());
    }
    let members = group.members.as_ref().ok_or_else(|| missing("group's members"))?;
    let desired = group.desired_capacity.ok_or_else(|| missing("group's desired capacity"))?;
    let others = members.iter().filter(|member| !member.is_in_service());
    let moving = others.filter(|member| member.lifecycle_state.as_deref() != Some(STANDBY)).map(|member| {
        let state = member.lifecycle_state.as_deref().unwrap_or("in a state that is not told");
        format!("{} is {state}", member.instance_id)
    });
    if let Some(moving) = moving.min() {
        return changing(moving);
    }
    let in_service = members.iter().filter(|member| member.is_in_service()).count();
    if u32::try_from(in_service) == Ok(desired) {
        return Ok(());
    }
    changing(format!("{in_service} machines are in service, and it keeps up {desired}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::member::sample::{OTHER, may_end_with, of_other};

    #[test]
    fn a_group_that_is_made_smaller_is_not_made_smaller_once_more() {
        let of = |desired| may_end_with(|_, group| group.desired_capacity = desired);
        assert_eq!(of(Some(3)), Ok(()));
        for desired in [2, 4] {
            let what = format!("3 machines are in service, and it keeps up {desired}");
            assert_eq!(of(Some(desired)), Err(MemberRefusal::Changing { what }.into()));
        }
        assert_eq!(of(None), Err(missing("group's desired capacity")));
    }

    #[test]
    fn while_another_machine_comes_or_goes_none_is_ended() {
        let of = |state: &str| {
            of_other(|group, other| {
                other.lifecycle_state = Some(state.to_owned());
                group.desired_capacity = Some(2);
            })
        };
        for state in ["Pending", "Pending:Wait", "Terminating", "Detaching", "EnteringStandby"] {
            let what = format!("{OTHER} is {state}");
            assert_eq!(of(state), Err(MemberRefusal::Changing { what }.into()));
        }
        assert_eq!(of("Standby"), Ok(()));
        let what = format!("{OTHER} is in a state that is not told");
        assert_eq!(of_other(|_, other| other.lifecycle_state = None), Err(MemberRefusal::Changing { what }.into()));
        let what = "Delete in progress".to_owned();
        let deleted = may_end_with(|_, group| group.status = Some("Delete in progress".to_owned()));
        assert_eq!(deleted, Err(MemberRefusal::Changing { what }.into()));
    }
}
