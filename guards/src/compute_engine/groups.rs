//! Refuses a machine that is a member of a group of instances, managed or not, by Google's own list of what refers to it: the one replaces it, behind the
//! other is a load balancer. Metadata, which people can change, do not tell that for certain.

use model::{
    address::Told,
    machine::{ComputeEngineFacts, Owner},
};

use crate::Refusal;

pub(super) fn guard(facts: &ComputeEngineFacts) -> Result<(), Refusal> {
    match &facts.groups {
        Told::Nothing => Ok(()),
        Told::Something { what } => {
            let [kind, known_by] = ["group of instances", "Google's list of what refers to it"].map(str::to_owned);
            Err(Refusal::MemberOf { owner: Owner { kind, name: Some(what.clone()), known_by } })
        }
        Told::Unknown { why } => {
            Err(Refusal::NotTold { what: "which groups it is a member of".to_owned(), why: why.clone() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute_engine::{may_stop_now, sample::facts};

    #[test]
    fn a_member_of_a_group_is_the_groups() {
        let member = facts(|facts| facts.groups = Told::Something { what: "workers".to_owned() });
        let told = may_stop_now(&member).expect_err("a member").to_string();
        assert!(told.contains("group of instances workers (by `Google's list of what refers to it`)"), "{told}");
        assert_eq!(guard(&facts(|_| ())), Ok(()));
    }

    #[test]
    fn a_list_that_was_not_read_may_hold_it() {
        let why = "compute.instances.listReferrers: not allowed".to_owned();
        let unread = facts(|facts| facts.groups = Told::Unknown { why: why.clone() });
        let what = "which groups it is a member of".to_owned();
        assert_eq!(may_stop_now(&unread), Err(Refusal::NotTold { what, why }));
    }
}
