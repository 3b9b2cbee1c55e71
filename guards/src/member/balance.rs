//! Refuses where the group's zones would be out of balance without the machine: Auto Scaling then starts one where there are few and *ends another one* where there are many, which may be one
//! that works. <https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_TerminateInstanceInAutoScalingGroup.html>

use std::collections::BTreeMap;

use model::{group::GroupFacts, machine::Ec2Facts};

use super::MemberRefusal;
use crate::{Refusal, refusal::missing};

/// Auto Scaling's word for what balances zones.
const BALANCES: &str = "AZRebalance";

pub(super) fn guard(facts: &Ec2Facts, group: &GroupFacts) -> Result<(), Refusal> {
    if group.suspended.as_ref().is_some_and(|suspended| suspended.contains(BALANCES)) {
        return Ok(());
    }
    if group.zones.is_empty() {
        return Err(missing("group's zones"));
    }
    let mut left: BTreeMap<&str, u32> = group.zones.iter().map(|zone| (zone.as_str(), 0)).collect();
    for member in group.members.iter().flatten().filter(|member| member.is_in_service()) {
        let zone = member.zone.as_deref().ok_or_else(|| missing("group's zones"))?;
        let count = left.entry(zone).or_default();
        *count += u32::from(member.instance_id != facts.instance_id);
    }
    let most = left.values().copied().max().unwrap_or_default();
    let least = left.values().copied().min().unwrap_or_default();
    if most - least <= 1 { Ok(()) } else { Err(MemberRefusal::Unbalanced.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::member::sample::{may_end_with, of_other};

    #[test]
    fn no_other_machine_ends_for_the_sake_of_balance() {
        // Three members: this one and two others, each in the zone of that letter.
        let of = |zones: &str, own: &str, others: [&str; 2]| {
            may_end_with(|_, group| {
                group.zones = zones.split_whitespace().map(str::to_owned).collect();
                let members = group.members.as_mut().expect("members");
                for (member, zone) in members.iter_mut().zip([own, others[0], others[1]]) {
                    member.zone = Some(zone.to_owned());
                }
            })
        };
        let refused = Err(MemberRefusal::Unbalanced.into());
        assert_eq!(of("a", "a", ["a", "a"]), Ok(()), "one zone is always in balance");
        assert_eq!(of("a b", "a", ["a", "b"]), Ok(()), "one each is left");
        assert_eq!(of("a b", "b", ["a", "a"]), refused, "two against none");
        assert_eq!(of("a b c", "a", ["b", "c"]), Ok(()), "it cannot be better than none, one and one");
        assert_eq!(of("a b c", "a", ["b", "b"]), refused);
        assert_eq!(of("a b", "b", ["c", "c"]), refused, "a zone that the group was moved away from counts as well");
    }

    #[test]
    fn where_nothing_balances_zones_or_they_are_not_known() {
        let unbalanced = |suspended: &str| {
            of_other(|group, other| {
                (other.zone, group.zones) = (Some("b".to_owned()), ["a", "b"].map(str::to_owned).into());
                let members = group.members.as_mut().expect("members");
                members[1].zone = Some("b".to_owned());
                group.suspended = Some([suspended.to_owned()].into());
            })
        };
        assert_eq!(unbalanced("Launch"), Err(MemberRefusal::Unbalanced.into()));
        assert_eq!(unbalanced("AZRebalance"), Ok(()));
        assert_eq!(may_end_with(|_, group| group.zones.clear()), Err(missing("group's zones")));
        assert_eq!(of_other(|_, other| other.zone = None), Err(missing("group's zones")));
    }
}
