//! AWS's records → ours. Pure; a word that this version does not know is kept as it is, and an empty text says nothing.

mod batch;
mod ecs;
mod scaling;
mod storage;

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_ec2::types::{self, DeviceType, InstanceLifecycleType, InstanceStateName};
use aws_smithy_types::DateTime;
use heartbeat::NodeId;
use jiff::Timestamp;

pub(super) use batch::{Environments, Job, Jobs, Queues, Summaries, environment, job, queue};
pub(super) use ecs::{
    Clusters, ContainerInstanceArns, ContainerInstances, Failure as EcsFailure, Tasks, container_instance, task,
};
pub(super) use scaling::{Told, group, told};
pub(super) use storage::{address, snapshot, volume};

use crate::inventory::{
    AttachedVolume, Instance, InstanceState, InstanceStore, LaunchTemplate, Lifecycle, PublicIpv4, RootDevice, Tenancy,
    key_of,
};

/// The only fact that a record must have is its id, for without one it cannot be told from another.
pub(super) fn instance(account: &str, region: &str, record: &types::Instance) -> Result<Instance, String> {
    let instance_id = record.instance_id().ok_or("an instance has no id")?;
    let id: NodeId =
        format!("aws:{account}:{region}:{instance_id}").parse().map_err(|error| format!("an instance: {error}"))?;
    let tags = tags(record.tags());
    let placement = record.placement();
    Ok(Instance {
        id: key_of(&id),
        name: tags.get("Name").filter(|name| !name.is_empty()).cloned(),
        instance_type: record.instance_type().map(|word| word.as_str().to_owned()),
        state: state(record.state().and_then(types::InstanceState::name)),
        launched_at: record.launch_time().and_then(timestamp),
        attached_at: root_volume(record).and_then(types::EbsInstanceBlockDevice::attach_time).and_then(timestamp),
        lifecycle: lifecycle(record),
        capacity_reservation: said(record.capacity_reservation_id()),
        availability_zone: placement.and_then(types::Placement::availability_zone).map(str::to_owned),
        on_outpost: record.outpost_arn().is_some(),
        platform_details: record.platform_details().map(str::to_owned),
        usage_operation: record.usage_operation().map(str::to_owned),
        tenancy: tenancy(placement.and_then(types::Placement::tenancy)),
        root_device: match record.root_device_type() {
            Some(DeviceType::Ebs) => RootDevice::Ebs,
            Some(DeviceType::InstanceStore) => RootDevice::InstanceStore,
            _ => RootDevice::Unknown,
        },
        // The record lists volumes only: its type tells.
        instance_store: InstanceStore::Unknown,
        volumes: volumes(record),
        network_interfaces: record
            .network_interfaces()
            .iter()
            .filter_map(|interface| said(interface.network_interface_id()))
            .collect(),
        public_ipv4: public_ipv4(record),
        autoscaling_group: tags.get("aws:autoscaling:groupName").cloned(),
        launch_template: tags.get("aws:ec2launchtemplate:id").map(|id| LaunchTemplate {
            id: Some(id.clone()),
            name: None,
            version: tags.get("aws:ec2launchtemplate:version").cloned(),
        }),
        operator: operator(record.operator()),
        hibernation_configured: record.hibernation_options().and_then(types::HibernationOptions::configured),
        instance_profile: record.iam_instance_profile().and_then(|profile| last(profile.arn())),
        google: None,
        tags,
    })
}

/// The name at the end of an ARN with a path.
fn last(arn: Option<&str>) -> Option<String> {
    said(arn?.rsplit('/').next())
}

fn state(name: Option<&InstanceStateName>) -> InstanceState {
    match name {
        None => InstanceState::Unknown,
        Some(InstanceStateName::Pending) => InstanceState::Pending,
        Some(InstanceStateName::Running) => InstanceState::Running,
        Some(InstanceStateName::Stopping) => InstanceState::Stopping,
        Some(InstanceStateName::Stopped) => InstanceState::Stopped,
        Some(InstanceStateName::ShuttingDown) => InstanceState::ShuttingDown,
        Some(InstanceStateName::Terminated) => InstanceState::Terminated,
        Some(other) => InstanceState::Other(other.as_str().to_owned()),
    }
}

/// EC2 leaves the field out for an instance on demand, and only for such a one.
fn lifecycle(record: &types::Instance) -> Lifecycle {
    match record.instance_lifecycle() {
        None => Lifecycle::OnDemand,
        Some(InstanceLifecycleType::Spot) => Lifecycle::Spot,
        Some(InstanceLifecycleType::CapacityBlock) => Lifecycle::CapacityBlock,
        Some(other) => Lifecycle::Other(other.as_str().to_owned()),
    }
}

fn tenancy(word: Option<&types::Tenancy>) -> Tenancy {
    match word {
        None => Tenancy::Unknown,
        Some(types::Tenancy::Default) => Tenancy::Shared,
        Some(types::Tenancy::Dedicated) => Tenancy::Dedicated,
        Some(types::Tenancy::Host) => Tenancy::Host,
        Some(other) => Tenancy::Other(other.as_str().to_owned()),
    }
}

fn root_volume(record: &types::Instance) -> Option<&types::EbsInstanceBlockDevice> {
    let root = record.root_device_name()?;
    record.block_device_mappings().iter().find(|device| device.device_name() == Some(root))?.ebs()
}

fn volumes(record: &types::Instance) -> Vec<AttachedVolume> {
    let attached = |device: &types::InstanceBlockDeviceMapping| {
        let ebs = device.ebs()?;
        Some(AttachedVolume {
            id: ebs.volume_id()?.to_owned(),
            device: said(device.device_name()),
            attached_at: ebs.attach_time().and_then(timestamp),
            delete_on_termination: ebs.delete_on_termination(),
        })
    };
    record.block_device_mappings().iter().filter_map(attached).collect()
}

/// An address that EC2 lends for the time of running belongs to `amazon`; an elastic one belongs to an account.
fn public_ipv4(record: &types::Instance) -> Vec<PublicIpv4> {
    let mut addresses: BTreeSet<PublicIpv4> = record
        .network_interfaces()
        .iter()
        .flat_map(|interface| {
            let of_addresses = interface.private_ip_addresses().iter().filter_map(|address| address.association());
            interface.association().into_iter().chain(of_addresses)
        })
        .filter_map(|association| {
            Some(PublicIpv4 {
                address: association.public_ip()?.to_owned(),
                elastic: association.ip_owner_id().map(|owner| owner != "amazon"),
            })
        })
        .collect();
    // The instance's own field does not say whose the address is.
    if let Some(address) = record.public_ip_address()
        && !addresses.iter().any(|known| known.address == address)
    {
        addresses.insert(PublicIpv4 { address: address.to_owned(), elastic: None });
    }
    addresses.into_iter().collect()
}

fn tags(tags: &[types::Tag]) -> BTreeMap<String, String> {
    let pair = |tag: &types::Tag| Some((tag.key()?.to_owned(), tag.value().unwrap_or_default().to_owned()));
    tags.iter().filter_map(pair).collect()
}

fn operator(operator: Option<&types::OperatorResponse>) -> Option<String> {
    let managed = operator.filter(|operator| operator.managed() == Some(true))?;
    Some(managed.principal().unwrap_or("not named").to_owned())
}

/// An element without text is AWS's other way to leave a fact out.
fn said(text: Option<&str>) -> Option<String> {
    text.filter(|text| !text.is_empty()).map(str::to_owned)
}

/// Sizes and counts are never below zero.
fn count(number: Option<i32>) -> Option<u32> {
    number.and_then(|number| u32::try_from(number).ok())
}

/// None for a time that no calendar holds.
fn timestamp(time: &DateTime) -> Option<Timestamp> {
    Timestamp::from_nanosecond(time.as_nanos()).ok()
}

#[cfg(test)]
mod tests;
