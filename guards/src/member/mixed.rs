//! Refuses a member of a group that mixes types of machines or ways to buy them: without it the mix is another one, and the group may end a machine that works to have it again.

use model::{group::GroupFacts, machine::Ec2Facts};

use super::MemberRefusal;
use crate::Refusal;

pub(super) fn guard(_: &Ec2Facts, group: &GroupFacts) -> Result<(), Refusal> {
    if group.mixes { Err(MemberRefusal::Mixed.into()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::member::sample::may_end_with;

    #[test]
    fn a_group_that_mixes_is_left_alone() {
        assert_eq!(may_end_with(|_, group| group.mixes = true), Err(MemberRefusal::Mixed.into()));
    }
}
