//! Refuses where the group would be below its minimum without the machine: Auto Scaling refuses that, or starts another one in its place.

use model::{group::GroupFacts, machine::Ec2Facts};

use super::MemberRefusal;
use crate::{Refusal, refusal::missing};

pub(super) fn guard(_: &Ec2Facts, group: &GroupFacts) -> Result<(), Refusal> {
    let min = group.min_size.ok_or_else(|| missing("group's minimum size"))?;
    let desired = group.desired_capacity.ok_or_else(|| missing("group's desired capacity"))?;
    if desired > min { Ok(()) } else { Err(MemberRefusal::AtMinimum { desired, min }.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::member::sample::{may_end_with, member};

    #[test]
    fn a_group_goes_down_to_its_minimum_and_not_below() {
        let of = |min| may_end_with(|_, group| group.min_size = min);
        for (min, passes) in [(0, true), (2, true), (3, false), (4, false)] {
            let refused = Err(MemberRefusal::AtMinimum { desired: 3, min }.into());
            assert_eq!(of(Some(min)), if passes { Ok(()) } else { refused }, "{min}");
        }
        assert_eq!(of(None), Err(missing("group's minimum size")));
        let (facts, group) = member(|_, group| group.desired_capacity = None);
        assert_eq!(guard(&facts, &group), Err(missing("group's desired capacity")));
    }
}
