//! The list of Auto Scaling groups, and what it says of machines.

use model::ResourceKind;
use std::collections::HashMap;

use super::{answer::Answer, collect::List, parse};
use crate::inventory::{
    AutoScalingGroup, Failure, Instance,
    reader::{Api, Refused},
};

pub(super) const GROUPS: Api = Api::autoscaling("autoscaling:DescribeAutoScalingGroups");
/// Auto Scaling refuses to tell of more groups at once.
const PAGE_SIZE: i32 = 100;

/// One call per 100 groups, their members included; asking for members instead would be one call per 50 of them.
pub(super) async fn groups(list_of: &List<'_>) -> Result<Vec<AutoScalingGroup>, Failure> {
    let List { place, page_size, scope, .. } = list_of;
    let groups = place.pages(GROUPS, list_of.told(ResourceKind::AutoScalingGroup), |token| {
        let answer = Answer::default();
        let request = place.autoscaling().describe_auto_scaling_groups().max_records((*page_size).min(PAGE_SIZE));
        let request = request.set_next_token(token).customize().interceptor(answer.clone());
        async move {
            let page = request.send().await?;
            let told = told(&answer)?;
            let records = page.auto_scaling_groups();
            if records.len() != told.len() {
                return Err(Refused::malformed("an answer's Auto Scaling groups cannot be told from each other"));
            }
            let groups = records.iter().zip(&told).map(|(record, told)| parse::group(scope, record, told));
            let groups: Result<Vec<_>, _> = groups.collect();
            Ok((groups.map_err(Refused::malformed)?, page.next_token))
        }
    });
    groups.await
}

/// A machine belongs to the group that lists it. One that no group lists keeps what its tag says: it may have been started
/// between the two lists.
pub(crate) fn name_members(instances: &mut [Instance], groups: &[AutoScalingGroup]) {
    let mut group_of = HashMap::new();
    for group in groups {
        for member in group.members.iter().flatten() {
            group_of.insert(member.instance_id.as_str(), group.id.id.as_str());
        }
    }
    for instance in instances {
        if let Some(group) = group_of.get(instance.id.id.as_str()) {
            instance.autoscaling_group = Some((*group).to_owned());
        }
    }
}

/// Which facts an answer holds.
fn told(answer: &Answer) -> Result<Vec<parse::Told>, Refused> {
    let told = parse::told(&answer.body()).map_err(|error| Refused::malformed(crate::chain(&error)))?;
    told.ok_or_else(|| Refused::malformed("an answer has no list of Auto Scaling groups"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inventory::{Member, Scope, sample};
    use model::Provider;

    #[test]
    fn a_machine_that_either_source_names_is_a_member() {
        let scope = Scope { provider: Provider::Aws, account: "123456789012".into(), region: "eu-central-1".into() };
        let group = |name: &str, members: &[&str]| AutoScalingGroup {
            id: scope.key(ResourceKind::AutoScalingGroup, name),
            arn: None,
            min_size: None,
            max_size: None,
            desired_capacity: None,
            launch: None,
            members: Some(
                members
                    .iter()
                    .map(|id| Member {
                        instance_id: (*id).to_owned(),
                        lifecycle_state: None,
                        health: None,
                        protected_from_scale_in: None,
                    })
                    .collect(),
            ),
            tags: [].into(),
        };
        let instance = |id: &str, tag: Option<&str>| Instance {
            id: format!("aws:123456789012:eu-central-1:{id}").parse().expect("a node id"),
            autoscaling_group: tag.map(str::to_owned),
            ..sample::instance()
        };
        let mut instances = [
            instance("i-1", None),
            instance("i-2", Some("by-tag")),
            instance("i-3", Some("moved-from")),
            instance("i-4", None),
        ];
        name_members(&mut instances, &[group("workers", &["i-1", "i-3"]), group("empty", &[])]);
        let named = instances.each_ref().map(|instance| instance.autoscaling_group.as_deref());
        assert_eq!(named, [Some("workers"), Some("by-tag"), Some("workers"), None]);
    }
}
