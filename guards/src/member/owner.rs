//! Refuses a member whose group is kept by something larger, AWS Batch, ECS, Kubernetes and the like, which has placed work on it or changes the group by itself; and one that a scheduler or a service
//! has beside its group.

use std::collections::BTreeMap;

use model::{
    group::GroupFacts,
    machine::{AutoScaling, Ec2Facts, Scheduler},
};

use super::MemberRefusal;
use crate::{
    Refusal,
    membership::{self, GROUP},
};

pub(super) fn guard(facts: &Ec2Facts, group: &GroupFacts) -> Result<(), Refusal> {
    let tags = facts.tags.as_ref().ok_or(Refusal::TagsUnreadable)?;
    let of_group = group.tags.as_ref().ok_or(Refusal::TagsUnreadable)?;
    for tags in [tags, of_group] {
        // Groups start machines by fleets, and those are marked as such: the group is the more telling of the two.
        if let Some(owner) = membership::by_tag(tags).filter(|owner| owner.kind != GROUP) {
            return Err(Refusal::MemberOf { owner });
        }
    }
    match &facts.scheduler {
        Scheduler::NotListed => {}
        Scheduler::Has(owner) => return Err(Refusal::MemberOf { owner: owner.clone() }),
        Scheduler::Unknown { why } => return Err(Refusal::SchedulersUnreadable { why: why.clone() }),
    }
    let no_tags = BTreeMap::new();
    if let Some(owner) = membership::owner(&no_tags, None, None, facts.operator.as_deref()) {
        return Err(Refusal::MemberOf { owner });
    }
    match &facts.autoscaling {
        AutoScaling::Member(name) if *name == group.name => Ok(()),
        AutoScaling::Member(_) | AutoScaling::NotListed => {
            Err(MemberRefusal::NotListed { group: group.name.clone() }.into())
        }
        AutoScaling::Unknown => Err(Refusal::GroupsUnreadable),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::member::sample::{GROUP as WORKERS, may_end_with, member};
    use model::machine::Owner;

    fn owned(kind: &str, name: Option<&str>, known_by: &str) -> Result<(), Refusal> {
        let owner = Owner { kind: kind.to_owned(), name: name.map(str::to_owned), known_by: known_by.to_owned() };
        Err(Refusal::MemberOf { owner })
    }

    #[test]
    fn what_keeps_the_group_decides_about_its_machines() {
        for (key, kind) in [
            ("eks:cluster-name", "EKS cluster"),
            ("AWSBatchServiceTag", "AWS Batch compute environment"),
            ("AmazonECSManaged", "ECS cluster"),
            ("kubernetes.io/cluster/prod", "Kubernetes cluster"),
            ("elasticbeanstalk:environment-name", "Elastic Beanstalk environment"),
        ] {
            let of_machine = may_end_with(|facts, _| {
                facts.tags.get_or_insert_default().insert(key.to_owned(), "x".to_owned());
            });
            assert_eq!(of_machine, owned(kind, Some("x"), key));
            let of_group = may_end_with(|_, group| {
                drop(group.tags.get_or_insert_default().insert(key.to_owned(), "x".to_owned()));
            });
            assert_eq!(of_group, owned(kind, Some("x"), key));
        }
        let fleet = may_end_with(|facts, _| {
            facts.tags.get_or_insert_default().insert("aws:ec2:fleet-id".to_owned(), "fleet-1".to_owned());
        });
        assert_eq!(fleet, Ok(()), "groups start machines by fleets");
    }

    #[test]
    fn what_has_the_machine_beside_its_group_may_have_placed_work_there() {
        let owner = Owner { kind: "ECS cluster".to_owned(), name: None, known_by: "its own list".to_owned() };
        let has = may_end_with(|facts, _| facts.scheduler = Scheduler::Has(owner.clone()));
        assert_eq!(has, Err(Refusal::MemberOf { owner }));
        let why = "denied".to_owned();
        let unread = may_end_with(|facts, _| facts.scheduler = Scheduler::Unknown { why: why.clone() });
        assert_eq!(unread, Err(Refusal::SchedulersUnreadable { why }));
        let operated = may_end_with(|facts, _| facts.operator = Some("eks.amazonaws.com".to_owned()));
        assert_eq!(operated, owned("AWS service", Some("eks.amazonaws.com"), "operator"));
        assert_eq!(may_end_with(|facts, _| facts.tags = None), Err(Refusal::TagsUnreadable));
        assert_eq!(may_end_with(|_, group| group.tags = None), Err(Refusal::TagsUnreadable));
        let (facts, group) = member(|_, group| group.tags = None);
        assert_eq!(guard(&facts, &group), Err(Refusal::TagsUnreadable));
    }

    #[test]
    fn another_groups_machine_is_not_this_ones() {
        let of = |autoscaling: AutoScaling| {
            let (facts, group) = member(|facts, _| facts.autoscaling = autoscaling);
            guard(&facts, &group)
        };
        let other = Err(MemberRefusal::NotListed { group: WORKERS.to_owned() }.into());
        assert_eq!(of(AutoScaling::Member("others".to_owned())), other);
        assert_eq!(of(AutoScaling::NotListed), other);
        assert_eq!(of(AutoScaling::Unknown), Err(Refusal::GroupsUnreadable));
        assert_eq!(of(AutoScaling::Member(WORKERS.to_owned())), Ok(()));
    }
}
