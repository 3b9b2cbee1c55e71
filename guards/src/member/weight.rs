//! Refuses where a machine of the group counts for another number of units than one: then one machine fewer is another number of units, and the group may end or start others for it.

use model::{group::GroupFacts, machine::Ec2Facts};

use super::MemberRefusal;
use crate::Refusal;

pub(super) fn guard(_: &Ec2Facts, group: &GroupFacts) -> Result<(), Refusal> {
    let members = group.members.iter().flatten();
    let mut weights = members.filter_map(|member| member.weight.as_deref());
    if weights.all(|weight| weight == "1") { Ok(()) } else { Err(MemberRefusal::Weighted.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::member::sample::of_member;

    #[test]
    fn machines_are_counted_by_ones() {
        let of = |weight: &str| of_member(|member| member.weight = Some(weight.to_owned()));
        assert_eq!(of("1"), Ok(()));
        for weight in ["2", "0", ""] {
            assert_eq!(of(weight), Err(MemberRefusal::Weighted.into()), "{weight}");
        }
    }
}
