//! The list of Auto Scaling groups, and what it says of machines.

use aws_sdk_autoscaling::types::InstanceRefresh;
use model::{ResourceKind, address::Told};
use std::collections::HashMap;

use super::{
    Accounts,
    answer::Answer,
    collect::{List, list},
    machine, parse,
};
use crate::inventory::{
    AutoScalingGroup, Failure, Instance, Scope, Silent,
    reader::{Api, Refused},
};

pub(super) const GROUPS: Api = Api::autoscaling("autoscaling:DescribeAutoScalingGroups");
const REFRESHES: Api = Api::autoscaling("autoscaling:DescribeInstanceRefreshes");
/// Auto Scaling's words for a replacement of a group's machines that is over; any other may be under way.
/// <https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_InstanceRefresh.html>
const OVER: [&str; 5] = ["Successful", "Failed", "Cancelled", "RollbackFailed", "RollbackSuccessful"];
/// Auto Scaling refuses to tell of more groups at once.
const PAGE_SIZE: i32 = 100;

/// One call per 100 groups, their members included; asking for members instead would be one call per 50 of them.
pub(super) async fn groups(list_of: &List<'_>) -> Result<Vec<AutoScalingGroup>, Failure> {
    named(list_of, None).await
}

/// The group of this name, or all of them.
async fn named(list_of: &List<'_>, name: Option<&str>) -> Result<Vec<AutoScalingGroup>, Failure> {
    let List { place, page_size, scope, .. } = list_of;
    let groups = place.pages(GROUPS, list_of.told(ResourceKind::AutoScalingGroup), |token| {
        let answer = Answer::default();
        let request = place.autoscaling().describe_auto_scaling_groups().max_records((*page_size).min(PAGE_SIZE));
        let request = request.set_auto_scaling_group_names(name.map(|name| vec![name.to_owned()]));
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

/// One group as lists have it, read by itself right before one of its machines is ended; none if there is none of that name. One call.
///
/// # Errors
/// What could not be read, and why.
pub async fn group(accounts: &Accounts, scope: &Scope, name: &str) -> Result<Option<AutoScalingGroup>, Failure> {
    let place = machine::place(accounts, scope)?;
    let list_of = List { place: &place, page_size: accounts.options.page_size, scope, progress: &Silent };
    let groups = named(&list_of, Some(name)).await?;
    Ok(groups.into_iter().find(|group| group.id.id == name))
}

/// The replacement of a group's machines that is under way, and unknown where that could not be read. One call per 100 of them, with those that are over, of which Auto Scaling keeps six weeks.
pub async fn refresh(accounts: &Accounts, scope: &Scope, group: &str) -> Told {
    match refreshes(accounts, scope, group).await {
        Err(why) => Told::Unknown { why: format!("{}: {why}", REFRESHES.name) },
        Ok(all) => match all.iter().find_map(under_way) {
            Some(what) => Told::Something { what },
            None => Told::Nothing,
        },
    }
}

async fn refreshes(accounts: &Accounts, scope: &Scope, group: &str) -> Result<Vec<InstanceRefresh>, Failure> {
    let place = machine::place(accounts, scope)?;
    let pages = place.pages(
        REFRESHES,
        |_| (),
        |token| {
            let request = place.autoscaling().describe_instance_refreshes().auto_scaling_group_name(group);
            let request = request.max_records(PAGE_SIZE).set_next_token(token);
            async move {
                let page = request.send().await?;
                Ok((list(page.instance_refreshes, "instance refreshes")?, page.next_token))
            }
        },
    );
    pages.await
}

/// Which one it is, and how far; none if it is over.
fn under_way(refresh: &InstanceRefresh) -> Option<String> {
    let status = refresh.status().map_or("in a state that is not told", |status| status.as_str());
    let id = refresh.instance_refresh_id().unwrap_or("one without an id");
    (!OVER.contains(&status)).then(|| format!("{id} ({status})"))
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
    use crate::inventory::{Member, Scope, Upkeep, sample};
    use model::Provider;

    #[test]
    fn a_replacement_whose_state_is_not_known_to_be_an_end_is_under_way() {
        let of = |status: Option<&str>| {
            let refresh = InstanceRefresh::builder().instance_refresh_id("r-1").set_status(status.map(Into::into));
            under_way(&refresh.build())
        };
        for status in ["Pending", "InProgress", "Cancelling", "RollbackInProgress", "Baking", "SomethingNew"] {
            assert_eq!(of(Some(status)), Some(format!("r-1 ({status})")));
        }
        assert_eq!(of(None).as_deref(), Some("r-1 (in a state that is not told)"));
        assert!(OVER.into_iter().all(|status| of(Some(status)).is_none()));
    }

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
                        zone: None,
                        weight: None,
                    })
                    .collect(),
            ),
            tags: [].into(),
            upkeep: Upkeep::default(),
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
