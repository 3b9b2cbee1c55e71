//! Refuses while the machines of the group are being replaced, and where it could not be read whether they are: each of them is about to go, and the new ones are counted on.

use model::{address::Told, group::GroupFacts, machine::Ec2Facts};

use super::MemberRefusal;
use crate::Refusal;

pub(super) fn guard(_: &Ec2Facts, group: &GroupFacts) -> Result<(), Refusal> {
    match &group.refresh {
        Told::Nothing => Ok(()),
        Told::Something { what } => Err(MemberRefusal::Refreshing { refresh: what.clone() }.into()),
        Told::Unknown { why } => {
            let what = "whether the machines of its Auto Scaling group are being replaced".to_owned();
            Err(Refusal::NotTold { what, why: why.clone() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::member::{
        holds, may_end,
        sample::{may_end_with, member},
    };
    use model::plan::Condition;

    #[test]
    fn while_all_are_replaced_none_is_ended() {
        let of = |told: Told| may_end_with(|_, group| group.refresh = told);
        let refresh = "r-1 (InProgress)".to_owned();
        let refused = Err(MemberRefusal::Refreshing { refresh: refresh.clone() }.into());
        assert_eq!(of(Told::Something { what: refresh.clone() }), refused);
        let why = "denied".to_owned();
        assert!(matches!(of(Told::Unknown { why }), Err(Refusal::NotTold { .. })));
        // Lists do not tell it, and a plan is made by lists.
        let (facts, group) = member(|_, group| group.refresh = Told::Something { what: refresh.clone() });
        assert_eq!(may_end(&facts, &group), Ok(()));
        assert_eq!(holds(&Condition::GroupCanShrink, &facts, &group), refused);
    }
}
