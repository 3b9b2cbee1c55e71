//! Refuses a machine that belongs to something larger, which would replace it or has placed work on it, and one of which it cannot be read whether it does.

use std::collections::BTreeMap;

use model::machine::{AutoScaling, Ec2Facts, Owner, Scheduler};

use crate::Refusal;

pub(crate) fn guard(facts: &Ec2Facts) -> Result<(), Refusal> {
    let tags = facts.tags.as_ref().ok_or(Refusal::TagsUnreadable)?;
    let group = match &facts.autoscaling {
        AutoScaling::Member(name) => Some(name.as_str()),
        AutoScaling::NotListed | AutoScaling::Unknown => None,
    };
    let scheduler = match &facts.scheduler {
        Scheduler::Has(owner) => Some(owner),
        Scheduler::NotListed | Scheduler::Unknown { .. } => None,
    };
    if let Some(owner) = owner(tags, scheduler, group, facts.operator.as_deref()) {
        return Err(Refusal::MemberOf { owner });
    }
    if facts.autoscaling == AutoScaling::Unknown {
        return Err(Refusal::GroupsUnreadable);
    }
    match &facts.scheduler {
        Scheduler::Unknown { why } => Err(Refusal::SchedulersUnreadable { why: why.clone() }),
        Scheduler::Has(_) | Scheduler::NotListed => Ok(()),
    }
}

/// What a member of a group belongs to that nothing larger keeps.
pub(crate) const GROUP: &str = "Auto Scaling group";

enum Key {
    Is(&'static str),
    StartsWith(&'static str),
}

/// The more telling owner first: an EKS node is also a member of an Auto Scaling group. The services set these tags
/// themselves; those that begin with `aws:` cannot be set or removed by anyone else.
const KINDS: [(Key, &str); 16] = [
    (Key::Is("eks:cluster-name"), "EKS cluster"),
    (Key::Is("aws:eks:cluster-name"), "EKS cluster"),
    (Key::StartsWith("kubernetes.io/cluster/"), "Kubernetes cluster"),
    (Key::StartsWith("k8s.io/"), "Kubernetes cluster"),
    (Key::StartsWith("karpenter.sh/"), "Karpenter node pool"),
    (Key::Is("AWSBatchServiceTag"), "AWS Batch compute environment"),
    (Key::StartsWith("aws:batch:"), "AWS Batch compute environment"),
    (Key::StartsWith("aws:ecs:"), "ECS cluster"),
    (Key::Is("AmazonECSManaged"), "ECS cluster"),
    (Key::Is("AmazonECSCluster"), "ECS cluster"),
    (Key::StartsWith("aws:elasticmapreduce:"), "EMR cluster"),
    (Key::StartsWith("parallelcluster:"), "ParallelCluster"),
    (Key::StartsWith("elasticbeanstalk:"), "Elastic Beanstalk environment"),
    (Key::StartsWith("aws:autoscaling:"), GROUP),
    (Key::Is("aws:ec2:fleet-id"), "EC2 Fleet"),
    (Key::Is("aws:ec2spot:fleet-request-id"), "Spot Fleet"),
];

/// What the tags name, the most telling first.
pub(crate) fn by_tag(tags: &BTreeMap<String, String>) -> Option<Owner> {
    KINDS.iter().find_map(|(key, kind)| {
        let (tag, value) = tags.iter().find(|(tag, _)| match key {
            Key::Is(name) => tag.as_str() == *name,
            Key::StartsWith(prefix) => tag.starts_with(prefix),
        })?;
        Some(Owner {
            kind: (*kind).to_owned(),
            name: Some(value.clone()).filter(|value| !value.is_empty()),
            known_by: tag.clone(),
        })
    })
}

pub(crate) fn owner(
    tags: &BTreeMap<String, String>,
    scheduler: Option<&Owner>,
    autoscaling_group: Option<&str>,
    operator: Option<&str>,
) -> Option<Owner> {
    let named = |kind: &str, name: &str, known_by: &str| Owner {
        kind: kind.to_owned(),
        name: Some(name.to_owned()),
        known_by: known_by.to_owned(),
    };
    by_tag(tags)
        .or_else(|| scheduler.cloned())
        .or_else(|| autoscaling_group.map(|name| named(GROUP, name, "the group's own list")))
        .or_else(|| operator.map(|name| named("AWS service", name, "operator")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::facts;

    fn owned(kind: &str, name: Option<&str>, known_by: &str) -> Result<(), Refusal> {
        let owner = Owner { kind: kind.to_owned(), name: name.map(str::to_owned), known_by: known_by.to_owned() };
        Err(Refusal::MemberOf { owner })
    }

    #[test]
    fn a_member_of_something_larger_is_its_owners() {
        for (key, value, kind) in [
            ("aws:autoscaling:groupName", "workers", "Auto Scaling group"),
            ("aws:ec2:fleet-id", "fleet-1", "EC2 Fleet"),
            ("aws:ec2spot:fleet-request-id", "sfr-1", "Spot Fleet"),
            ("AWSBatchServiceTag", "batch", "AWS Batch compute environment"),
            ("aws:batch:compute-environment", "ce", "AWS Batch compute environment"),
            ("aws:ecs:clusterName", "web", "ECS cluster"),
            ("AmazonECSManaged", "", "ECS cluster"),
            ("AmazonECSCluster", "web", "ECS cluster"),
            ("aws:eks:cluster-name", "k", "EKS cluster"),
            ("eks:cluster-name", "k", "EKS cluster"),
            ("kubernetes.io/cluster/k", "owned", "Kubernetes cluster"),
            ("k8s.io/role/node", "1", "Kubernetes cluster"),
            ("karpenter.sh/nodepool", "default", "Karpenter node pool"),
            ("aws:elasticmapreduce:job-flow-id", "j-1", "EMR cluster"),
            ("parallelcluster:cluster-name", "hpc", "ParallelCluster"),
            ("elasticbeanstalk:environment-name", "web", "Elastic Beanstalk environment"),
        ] {
            let name = Some(value).filter(|value| !value.is_empty());
            assert_eq!(guard(&facts(|facts| facts.tag(key, value))), owned(kind, name, key));
        }
        let by_list = guard(&facts(|facts| facts.0.autoscaling = AutoScaling::Member("workers".to_owned())));
        assert_eq!(by_list, owned("Auto Scaling group", Some("workers"), "the group's own list"));
        let operated = guard(&facts(|facts| facts.0.operator = Some("eks.amazonaws.com".to_owned())));
        assert_eq!(operated, owned("AWS service", Some("eks.amazonaws.com"), "operator"));
        let owner = Owner { kind: "ECS cluster".to_owned(), name: None, known_by: "its own list".to_owned() };
        let scheduled = guard(&facts(|facts| facts.0.scheduler = Scheduler::Has(owner)));
        assert_eq!(scheduled, owned("ECS cluster", None, "its own list"));
    }

    #[test]
    fn the_more_telling_owner_is_named() {
        let of = |change: fn(&mut crate::sample::Facts)| guard(&facts(change));
        let both = of(|facts| {
            facts.tag("aws:autoscaling:groupName", "eks-workers");
            facts.tag("eks:cluster-name", "prod");
        });
        assert_eq!(both, owned("EKS cluster", Some("prod"), "eks:cluster-name"));
        let listed = of(|facts| {
            facts.0.autoscaling = AutoScaling::Member("eks-workers".to_owned());
            facts.tag("eks:cluster-name", "prod");
        });
        assert_eq!(listed, owned("EKS cluster", Some("prod"), "eks:cluster-name"), "whom a person would go to");
        let known = of(|facts| {
            facts.0.scheduler = Scheduler::Unknown { why: "denied".to_owned() };
            facts.0.autoscaling = AutoScaling::Member("workers".to_owned());
        });
        assert_eq!(
            known,
            owned("Auto Scaling group", Some("workers"), "the group's own list"),
            "what is known comes first"
        );
    }

    #[test]
    fn what_could_not_be_read_may_own_it() {
        assert_eq!(guard(&facts(|_| ())), Ok(()));
        assert_eq!(guard(&facts(|facts| facts.0.tags = None)), Err(Refusal::TagsUnreadable));
        let groups = guard(&facts(|facts| facts.0.autoscaling = AutoScaling::Unknown));
        assert_eq!(groups, Err(Refusal::GroupsUnreadable));
        let why = "ecs:ListClusters: AccessDenied".to_owned();
        let schedulers = guard(&facts(|facts| facts.0.scheduler = Scheduler::Unknown { why: why.clone() }));
        assert_eq!(schedulers, Err(Refusal::SchedulersUnreadable { why }));
    }
}
