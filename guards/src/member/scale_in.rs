//! Refuses a member that somebody has protected from scale-in, and one of which that is not known. The call would end it all the same: the protection is from the group alone.

use model::{group::GroupFacts, machine::Ec2Facts};

use super::{MemberRefusal, listed};
use crate::{Refusal, refusal::missing};

pub(super) fn guard(facts: &Ec2Facts, group: &GroupFacts) -> Result<(), Refusal> {
    match listed(facts, group)?.protected_from_scale_in {
        Some(false) => Ok(()),
        Some(true) => Err(MemberRefusal::ProtectedFromScaleIn.into()),
        None => Err(missing("protection from scale-in")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::member::sample::of_member;

    #[test]
    fn whoever_protected_it_is_asked_first() {
        let of = |protected| of_member(|member| member.protected_from_scale_in = protected);
        assert_eq!(of(Some(false)), Ok(()));
        assert_eq!(of(Some(true)), Err(MemberRefusal::ProtectedFromScaleIn.into()));
        assert_eq!(of(None), Err(missing("protection from scale-in")));
    }
}
