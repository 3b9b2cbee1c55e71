//! Auto Scaling groups and their members.
//!
//! The SDK takes a member that the service's model calls required for said, and fills in 0, `false` or an empty text where
//! the answer lacks it. *Not protected* and *no lower limit* must not come from there, so the answer itself is asked which
//! facts it holds. That costs parsing each page a second time.

use model::ResourceKind;
use std::collections::BTreeSet;

use aws_sdk_autoscaling::types;
use aws_smithy_xml::decode::{Document, ScopedDecoder, XmlDecodeError};

use super::{count, said};
use crate::inventory::{AutoScalingGroup, Launch, LaunchTemplate, Member, Scope, Upkeep};

/// Which elements the answer has for one group, and for each of its members.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Told {
    own: BTreeSet<String>,
    members: Vec<BTreeSet<String>>,
}

/// What an answer of `DescribeAutoScalingGroups` holds; none if it has no list of groups.
pub(in super::super) fn told(answer: &[u8]) -> Result<Option<Vec<Told>>, XmlDecodeError> {
    let mut document = Document::try_from(answer)?;
    let mut response = document.root_element()?;
    while let Some(mut result) = response.next_tag() {
        while let Some(mut list) = result.next_tag() {
            if list.start_el().local() == "AutoScalingGroups" {
                let mut groups = Vec::new();
                // Whatever else stands in a list is of a later day.
                while let Some(group) = list.next_tag() {
                    if group.start_el().local() == "member" {
                        groups.push(told_of(group));
                    }
                }
                return Ok(Some(groups));
            }
        }
    }
    Ok(None)
}

fn told_of(mut group: ScopedDecoder<'_, '_>) -> Told {
    let mut told = Told::default();
    while let Some(mut fact) = group.next_tag() {
        let name = fact.start_el().local().to_owned();
        if name == "Instances" {
            while let Some(mut member) = fact.next_tag() {
                if member.start_el().local() != "member" {
                    continue;
                }
                let mut facts = BTreeSet::new();
                while let Some(fact) = member.next_tag() {
                    facts.insert(fact.start_el().local().to_owned());
                }
                told.members.push(facts);
            }
        }
        told.own.insert(name);
    }
    told
}

pub(in super::super) fn group(
    scope: &Scope,
    record: &types::AutoScalingGroup,
    told: &Told,
) -> Result<AutoScalingGroup, String> {
    let name = said(record.auto_scaling_group_name()).ok_or("an Auto Scaling group has no name")?;
    let size = |fact: &str, number| count(number).filter(|_| told.own.contains(fact));
    if record.instances().len() != told.members.len() {
        return Err(format!("the members of the Auto Scaling group {name} cannot be told from each other"));
    }
    let members = record.instances().iter().zip(&told.members).map(|(record, told)| member(&name, record, told));
    let members = members.collect::<Result<Vec<_>, _>>()?;
    let tags = record.tags().iter();
    Ok(AutoScalingGroup {
        id: scope.key(ResourceKind::AutoScalingGroup, name),
        arn: said(record.auto_scaling_group_arn()),
        min_size: size("MinSize", record.min_size()),
        max_size: size("MaxSize", record.max_size()),
        desired_capacity: size("DesiredCapacity", record.desired_capacity()),
        launch: launch(record),
        members: record.instances.as_ref().map(|_| members),
        tags: tags
            .filter_map(|tag| Some((tag.key()?.to_owned(), tag.value().unwrap_or_default().to_owned())))
            .collect(),
        upkeep: upkeep(record, told),
    })
}

fn upkeep(record: &types::AutoScalingGroup, told: &Told) -> Upkeep {
    let processes = record.suspended_processes().iter().filter_map(|process| said(process.process_name()));
    Upkeep {
        zones: record.availability_zones().iter().cloned().collect(),
        suspended: told.own.contains("SuspendedProcesses").then(|| processes.collect()),
        status: said(record.status()),
        mixes: record.mixed_instances_policy().is_some(),
        has_warm_pool: record.warm_pool_configuration().is_some(),
        tags_are_told: told.own.contains("Tags"),
    }
}

fn member(group: &str, record: &types::Instance, told: &BTreeSet<String>) -> Result<Member, String> {
    let said_state = record.lifecycle_state().filter(|_| told.contains("LifecycleState"));
    Ok(Member {
        instance_id: said(record.instance_id())
            .ok_or_else(|| format!("a member of the Auto Scaling group {group} has no id"))?,
        lifecycle_state: said(said_state.map(types::LifecycleState::as_str)),
        health: said(record.health_status()),
        protected_from_scale_in: record.protected_from_scale_in().filter(|_| told.contains("ProtectedFromScaleIn")),
        zone: said(record.availability_zone()),
        weight: said(record.weighted_capacity()),
    })
}

fn launch(record: &types::AutoScalingGroup) -> Option<Launch> {
    let mixed = || record.mixed_instances_policy()?.launch_template()?.launch_template_specification();
    if let Some(template) = record.launch_template().or_else(mixed) {
        return Some(Launch::Template(LaunchTemplate {
            id: said(template.launch_template_id()),
            name: said(template.launch_template_name()),
            version: said(template.version()),
        }));
    }
    said(record.launch_configuration_name()).map(Launch::Configuration)
}

#[cfg(test)]
mod tests;
