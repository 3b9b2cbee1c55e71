//! What means that a machine belongs to something larger.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What a machine belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// For a person: `Auto Scaling group`.
    pub kind: String,
    /// Which one, if the tag says so.
    pub name: Option<String>,
    /// The tag that gave it away, `the group's own list`, `its ECS cluster's own list`, or `operator` where EC2 itself names one.
    pub known_by: String,
}

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
    (Key::StartsWith("aws:autoscaling:"), "Auto Scaling group"),
    (Key::Is("aws:ec2:fleet-id"), "EC2 Fleet"),
    (Key::Is("aws:ec2spot:fleet-request-id"), "Spot Fleet"),
];

pub(super) fn owner(
    tags: &BTreeMap<String, String>,
    scheduler: Option<&Owner>,
    autoscaling_group: Option<&str>,
    operator: Option<&str>,
) -> Option<Owner> {
    let by_tag = KINDS.iter().find_map(|(key, kind)| {
        let (tag, value) = tags.iter().find(|(tag, _)| match key {
            Key::Is(name) => tag.as_str() == *name,
            Key::StartsWith(prefix) => tag.starts_with(prefix),
        })?;
        Some(Owner {
            kind: (*kind).to_owned(),
            name: Some(value.clone()).filter(|value| !value.is_empty()),
            known_by: tag.clone(),
        })
    });
    let named = |kind: &str, name: &str, known_by: &str| Owner {
        kind: kind.to_owned(),
        name: Some(name.to_owned()),
        known_by: known_by.to_owned(),
    };
    by_tag
        .or_else(|| scheduler.cloned())
        .or_else(|| autoscaling_group.map(|name| named("Auto Scaling group", name, "the group's own list")))
        .or_else(|| operator.map(|name| named("AWS service", name, "operator")))
}

/// `Auto Scaling group workers (tag aws:autoscaling:groupName)`
impl std::fmt::Display for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.kind)?;
        if let Some(name) = &self.name {
            write!(f, " {name}")?;
        }
        write!(f, " (by `{}`)", self.known_by)
    }
}
