//! Volumes, snapshots and addresses: what outlives the machine that it was made for.

use model::ResourceKind;
use std::collections::BTreeMap;

use aws_sdk_ec2::types;

use super::{count, operator, said, tags, timestamp};
use crate::inventory::{Address, Scope, Snapshot, Volume, VolumeAttachment};

pub(in super::super) fn volume(scope: &Scope, record: &types::Volume) -> Result<Volume, String> {
    let id = said(record.volume_id()).ok_or("a volume has no id")?;
    Ok(Volume {
        id: scope.key(ResourceKind::Volume, id),
        volume_type: said(record.volume_type().map(types::VolumeType::as_str)),
        size_gib: count(record.size()),
        iops: count(record.iops()),
        throughput_mib_per_s: count(record.throughput()),
        state: said(record.state().map(types::VolumeState::as_str)).map(|word| word.as_str().into()),
        created_at: record.create_time().and_then(timestamp),
        availability_zone: said(record.availability_zone()),
        // An empty list is EC2's word for *attached to nothing*; no list at all is no word.
        attachments: record.attachments.as_ref().map(|list| list.iter().map(attachment).collect()),
        snapshot_id: said(record.snapshot_id()),
        operator: operator(record.operator()),
        on_outpost: record.outpost_arn().is_some(),
        tags: tags(record.tags()),
        google: None,
    })
}

fn attachment(record: &types::VolumeAttachment) -> VolumeAttachment {
    VolumeAttachment {
        instance_id: said(record.instance_id()),
        device: said(record.device()),
        state: said(record.state().map(types::VolumeAttachmentState::as_str)),
        delete_on_termination: record.delete_on_termination(),
        attached_at: record.attach_time().and_then(timestamp),
    }
}

pub(in super::super) fn snapshot(scope: &Scope, record: &types::Snapshot) -> Result<Snapshot, String> {
    let id = said(record.snapshot_id()).ok_or("a snapshot has no id")?;
    let tags = tags(record.tags());
    Ok(Snapshot {
        id: scope.key(ResourceKind::Snapshot, id),
        volume_id: said(record.volume_id()),
        volume_size_gib: count(record.volume_size()),
        full_size_bytes: record.full_snapshot_size_in_bytes().and_then(|bytes| u64::try_from(bytes).ok()),
        state: said(record.state().map(types::SnapshotState::as_str)).map(|word| word.as_str().into()),
        started_at: record.start_time().and_then(timestamp),
        storage_tier: said(record.storage_tier().map(types::StorageTier::as_str)).map(|word| word.as_str().into()),
        description: said(record.description()),
        needed_by: None,
        instance_id: machine(record.description(), &tags),
        on_outpost: record.outpost_arn().is_some(),
        tags,
    })
}

pub(in super::super) fn address(scope: &Scope, record: &types::Address) -> Result<Address, String> {
    let allocation_id = said(record.allocation_id());
    let public_ipv4 = said(record.public_ip());
    // An address from before networks were the customer's own has no allocation.
    let id = allocation_id.as_ref().or(public_ipv4.as_ref()).ok_or("an address has neither allocation nor number")?;
    Ok(Address {
        id: scope.key(ResourceKind::Address, id),
        association_id: said(record.association_id()),
        instance_id: said(record.instance_id()),
        network_interface_id: said(record.network_interface_id()),
        network_interface_owner: said(record.network_interface_owner_id()),
        service_managed: said(record.service_managed().map(types::ServiceManaged::as_str)),
        pool: said(record.public_ipv4_pool()),
        border_group: said(record.network_border_group()).filter(|group| *group != scope.region),
        tags: tags(record.tags()),
        google: None,
        allocation_id,
        public_ipv4,
    })
}

/// Tags in which backup services and people write the machine; a tag of another name may speak of any machine.
const MACHINE_TAGS: [&str; 5] =
    ["aws:backup:source-resource", "instance-id", "instance_id", "InstanceId", "SourceInstanceId"];

/// EC2 keeps no such fact. Its own images say `Created by CreateImage(i-…) for ami-…`, and so do many backup scripts. Two
/// different ids are no answer.
fn machine(description: Option<&str>, tags: &BTreeMap<String, String>) -> Option<String> {
    let in_tags = MACHINE_TAGS.iter().filter_map(|key| tags.get(*key)).map(String::as_str);
    let mut named = description.into_iter().chain(in_tags).flat_map(instance_ids);
    let first = named.next()?;
    named.all(|other| other == first).then(|| first.to_owned())
}

fn instance_ids(text: &str) -> impl Iterator<Item = &str> {
    let is_id = |word: &&str| {
        let digits = word.strip_prefix("i-").unwrap_or_default();
        matches!(digits.len(), 8 | 17) && digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
    };
    text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-').filter(is_id)
}

#[cfg(test)]
mod tests;
