//! Refuses a member of a group that keeps a warm pool: it may go back there instead of ending, and the pool starts others for it.
//! <https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-warm-pools.html>

use model::{group::GroupFacts, machine::Ec2Facts};

use super::MemberRefusal;
use crate::Refusal;

pub(super) fn guard(_: &Ec2Facts, group: &GroupFacts) -> Result<(), Refusal> {
    if group.has_warm_pool { Err(MemberRefusal::WarmPool.into()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::member::sample::may_end_with;

    #[test]
    fn a_group_with_a_pool_is_left_alone() {
        assert_eq!(may_end_with(|_, group| group.has_warm_pool = true), Err(MemberRefusal::WarmPool.into()));
    }
}
