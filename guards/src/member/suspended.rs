//! Refuses where somebody keeps the group from ending machines, and where that is not known.
//! <https://docs.aws.amazon.com/autoscaling/ec2/userguide/as-suspend-resume-processes.html>

use model::{group::GroupFacts, machine::Ec2Facts};

use super::MemberRefusal;
use crate::{Refusal, refusal::missing};

/// Auto Scaling's word for the ending of machines.
const ENDS: &str = "Terminate";

pub(super) fn guard(_: &Ec2Facts, group: &GroupFacts) -> Result<(), Refusal> {
    let suspended = group.suspended.as_ref().ok_or_else(|| missing("group's suspended processes"))?;
    if suspended.contains(ENDS) {
        return Err(MemberRefusal::Suspended { process: ENDS.to_owned() }.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::member::sample::may_end_with;

    #[test]
    fn who_keeps_the_group_from_ending_machines_means_all_of_them() {
        let of = |process: &str| may_end_with(|_, group| group.suspended = Some([process.to_owned()].into()));
        assert_eq!(of("Terminate"), Err(MemberRefusal::Suspended { process: "Terminate".to_owned() }.into()));
        assert_eq!(of("Launch"), Ok(()));
        assert_eq!(may_end_with(|_, group| group.suspended = None), Err(missing("group's suspended processes")));
    }
}
