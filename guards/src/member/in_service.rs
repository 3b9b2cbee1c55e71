//! Refuses a member that does not do what the group keeps it up for, by Auto Scaling's word: it is starting, leaving, set aside or in a warm pool, or the group replaces it by itself.

use model::{group::GroupFacts, machine::Ec2Facts};

use super::{MemberRefusal, listed};
use crate::{Refusal, refusal::missing};

const HEALTHY: &str = "Healthy";

pub(super) fn guard(facts: &Ec2Facts, group: &GroupFacts) -> Result<(), Refusal> {
    let member = listed(facts, group)?;
    let state = member.lifecycle_state.as_deref().ok_or_else(|| missing("state in its group"))?;
    if !member.is_in_service() {
        return Err(MemberRefusal::NotInService { state: state.to_owned() }.into());
    }
    match member.health.as_deref() {
        Some(HEALTHY) => Ok(()),
        Some(health) => Err(MemberRefusal::NotHealthy { health: health.to_owned() }.into()),
        None => Err(missing("health in its group")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::member::sample::of_member;

    #[test]
    fn only_a_member_in_service_passes() {
        let of = |state: Option<&str>| of_member(|member| member.lifecycle_state = state.map(str::to_owned));
        assert_eq!(of(Some("InService")), Ok(()));
        assert_eq!(of(None), Err(missing("state in its group")));
        let states = [
            "Pending",
            "Standby",
            "EnteringStandby",
            "Terminating:Wait",
            "Detached",
            "Warmed:Running",
            "inservice",
            "",
        ];
        for state in states {
            assert_eq!(of(Some(state)), Err(MemberRefusal::NotInService { state: state.to_owned() }.into()));
        }
    }

    #[test]
    fn what_its_group_replaces_by_itself_is_the_groups() {
        let of = |health: Option<&str>| of_member(|member| member.health = health.map(str::to_owned));
        assert_eq!(of(Some("Unhealthy")), Err(MemberRefusal::NotHealthy { health: "Unhealthy".to_owned() }.into()));
        assert_eq!(of(None), Err(missing("health in its group")));
    }
}
