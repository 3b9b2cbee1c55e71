//! Google's records → ours. Pure; a word that this version does not know is kept as it is, and an empty text says nothing.

use ::model::{Provider, ResourceKey, ResourceKind};
use std::collections::{BTreeMap, BTreeSet, HashMap};

use google_cloud_compute_v1::model::{self, attached_disk};
use heartbeat::NodeId;
use jiff::Timestamp;

use crate::inventory::{
    Accelerators, Address, AttachedVolume, AutoScalingGroup, Billed, GoogleAddress, GoogleDisk, GoogleInstance,
    Instance, InstanceState, InstanceStore, Launch, LaunchTemplate, Lifecycle, MachineShape, PublicIpv4, RootDevice,
    Scope, Tenancy, Upkeep, Volume, VolumeAttachment, VolumeState, key_of,
};

/// The only facts that a record must have are its place and its id, for without them it cannot be told from another.
pub(super) fn instance(project: &str, zone: &str, record: model::Instance) -> Result<Instance, String> {
    let number = record.id.ok_or("an instance has no id")?;
    let id: NodeId =
        format!("gcp:{project}:{zone}:{number}").parse().map_err(|error| format!("an instance: {error}"))?;
    let billed = billed(&record);
    let status = record.status.as_ref().and_then(|status| status.name()).map(str::to_owned);
    let labels: BTreeMap<String, String> = record.labels.into_iter().collect();
    let scheduling = record.scheduling.unwrap_or_default();
    let provisioning_model = scheduling.provisioning_model.as_ref().and_then(|model| model.name()).map(str::to_owned);
    let created_by = record.metadata.iter().flat_map(|metadata| &metadata.items).find_map(|item| {
        item.key.as_deref().filter(|key| *key == "created-by")?;
        said(item.value.as_deref())
    });
    let is_local = |disk: &&model::AttachedDisk| disk.r#type == Some(attached_disk::Type::Scratch);
    let local_ssds = record.disks.iter().filter(is_local).count();
    let (reservation, ends_by) = (reservation(record.reservation_affinity.as_ref()), ends_by(&scheduling));
    let needs_key = record.instance_encryption_key.as_ref().is_some_and(is_customers)
        || record.disks.iter().any(|disk| disk.disk_encryption_key.as_ref().is_some_and(is_customers));
    let count = |count: Option<i32>| count.and_then(|count| u32::try_from(count).ok());
    let accelerators = record.guest_accelerators.iter().map(|added| Accelerators {
        kind: added.accelerator_type.as_deref().and_then(last),
        count: count(added.accelerator_count),
    });
    Ok(Instance {
        id: key_of(&id),
        name: said(record.name.as_deref()),
        instance_type: record.machine_type.as_deref().and_then(last),
        state: state(status.as_deref()),
        launched_at: moment(record.last_start_timestamp.as_deref()),
        attached_at: None,
        // Which reservation a machine consumes Google does not say; which it may, stands among what Google alone says.
        capacity_reservation: None,
        lifecycle: lifecycle(provisioning_model.as_deref(), scheduling.preemptible),
        availability_zone: Some(zone.to_owned()),
        on_outpost: false,
        platform_details: None,
        usage_operation: None,
        // It names the hosts that it must lie on; without such names it says nothing.
        tenancy: if scheduling.node_affinities.is_empty() { Tenancy::Unknown } else { Tenancy::Host },
        root_device: root_device(&record.disks),
        instance_store: if local_ssds > 0 { InstanceStore::Present } else { InstanceStore::Absent },
        volumes: record.disks.iter().filter_map(attached_volume).collect(),
        network_interfaces: record.network_interfaces.iter().filter_map(|one| said(one.name.as_deref())).collect(),
        public_ipv4: public_ipv4(&record.network_interfaces),
        autoscaling_group: created_by.as_deref().filter(|path| path.contains("/instanceGroupManagers/")).and_then(last),
        launch_template: None,
        operator: operator(&labels),
        hibernation_configured: None,
        instance_profile: None,
        google: Some(Box::new(GoogleInstance {
            status,
            created_at: moment(record.creation_timestamp.as_deref()),
            stopped_at: moment(record.last_stop_timestamp.as_deref()),
            suspended_at: moment(record.last_suspended_timestamp.as_deref()),
            provisioning_model,
            preemptible: scheduling.preemptible,
            termination_action: scheduling
                .instance_termination_action
                .as_ref()
                .and_then(|action| action.name())
                .map(str::to_owned),
            deletion_protection: record.deletion_protection,
            local_ssds: u32::try_from(local_ssds).unwrap_or(u32::MAX),
            created_by,
            reservation,
            ends_by,
            resource_policies: record.resource_policies.iter().filter_map(|policy| last(policy)).collect(),
            needs_key,
            accelerators: accelerators.collect(),
            billed,
            shape: None,
        })),
        tags: labels,
    })
}

/// What it is billed for beside its type; none for a machine of which Google names no disk, since each boots from one.
fn billed(record: &model::Instance) -> Option<Billed> {
    if record.disks.is_empty() {
        return None;
    }
    let licenses: BTreeSet<String> =
        record.disks.iter().flat_map(|disk| &disk.licenses).map(|url| license(url)).collect();
    let local = record.disks.iter().filter(|disk| disk.r#type == Some(attached_disk::Type::Scratch));
    let size = |disk: &model::AttachedDisk| disk.disk_size_gb.and_then(|size| u64::try_from(size).ok());
    let confidential = record.confidential_instance_config.as_ref();
    let tier =
        record.network_performance_config.as_ref().and_then(|config| config.total_egress_bandwidth_tier.as_ref());
    Some(Billed {
        licenses: licenses.into_iter().collect(),
        local_ssd_gib: local.map(size).sum(),
        confidential: confidential.is_some_and(|config| {
            config.enable_confidential_compute == Some(true) || config.confidential_instance_type.is_some()
        }),
        network_tier: tier.map(|tier| tier.name().unwrap_or("without a name").to_owned()),
    })
}

/// `https://www.googleapis.com/compute/v1/projects/rhel-cloud/global/licenses/rhel-9-server` → `rhel-cloud/rhel-9-server`
fn license(url: &str) -> String {
    let parts = url.split_once("projects/").and_then(|(_, path)| path.split_once("/global/licenses/"));
    parts.map_or_else(|| url.to_owned(), |(project, name)| format!("{project}/{name}"))
}

/// <https://cloud.google.com/compute/docs/instances/instance-lifecycle>: `TERMINATED` is the older word for stopped. Of a machine in
/// repair, or about to stop in good order, nobody can say whether it runs.
fn state(status: Option<&str>) -> InstanceState {
    match status {
        None => InstanceState::Unknown,
        Some("PENDING" | "PROVISIONING" | "STAGING") => InstanceState::Pending,
        Some("RUNNING") => InstanceState::Running,
        Some("STOPPING") => InstanceState::Stopping,
        Some("STOPPED" | "TERMINATED") => InstanceState::Stopped,
        Some("SUSPENDING") => InstanceState::Suspending,
        Some("SUSPENDED") => InstanceState::Suspended,
        Some("DEPROVISIONING") => InstanceState::ShuttingDown,
        Some(other) => InstanceState::Other(other.to_owned()),
    }
}

fn lifecycle(model: Option<&str>, preemptible: Option<bool>) -> Lifecycle {
    match (model, preemptible) {
        (Some("SPOT"), _) | (_, Some(true)) => Lifecycle::Spot,
        (Some("STANDARD"), _) | (None, Some(false)) => Lifecycle::OnDemand,
        (Some(other), _) => Lifecycle::Other(other.to_owned()),
        (None, None) => Lifecycle::Other("not said".to_owned()),
    }
}

/// The reservation that it must consume: none if it takes whichever fits, or none.
fn reservation(affinity: Option<&model::ReservationAffinity>) -> Option<String> {
    let affinity = affinity?;
    let kind = affinity.consume_reservation_type.as_ref()?.name();
    let named = || affinity.values.first().and_then(|name| last(name)).unwrap_or_else(|| "not named".to_owned());
    (!matches!(kind, Some("ANY_RESERVATION" | "NO_RESERVATION"))).then(named)
}

/// What ends it at a time of its own.
fn ends_by(scheduling: &model::Scheduling) -> Option<String> {
    let action = scheduling.instance_termination_action.as_ref().and_then(|action| action.name());
    let at = said(scheduling.termination_time.as_deref()).map(|at| format!("its terminationTime is {at}"));
    let after = || scheduling.max_run_duration.as_ref().map(|_| "it has a maxRunDuration".to_owned());
    let deletes = || (action == Some("DELETE")).then(|| "its instanceTerminationAction is DELETE".to_owned());
    at.or_else(after).or_else(deletes)
}

/// Whether a key is the customer's own; one that Google's key service keeps has a name there.
fn is_customers(key: &model::CustomerEncryptionKey) -> bool {
    key.kms_key_name.is_none()
}

fn root_device(disks: &[model::AttachedDisk]) -> RootDevice {
    match disks.iter().find(|disk| disk.boot == Some(true)).and_then(|disk| disk.r#type.as_ref()) {
        Some(attached_disk::Type::Persistent) => RootDevice::PersistentDisk,
        Some(attached_disk::Type::Scratch) => RootDevice::InstanceStore,
        _ => RootDevice::Unknown,
    }
}

fn attached_volume(disk: &model::AttachedDisk) -> Option<AttachedVolume> {
    Some(AttachedVolume {
        id: last(disk.source.as_deref()?)?,
        device: said(disk.device_name.as_deref()),
        attached_at: None,
        delete_on_termination: disk.auto_delete,
    })
}

/// Whether an address stays when the machine stops is told by the list of addresses alone.
fn public_ipv4(interfaces: &[model::NetworkInterface]) -> Vec<PublicIpv4> {
    let configs = interfaces.iter().flat_map(|interface| &interface.access_configs);
    let addresses: BTreeSet<PublicIpv4> = configs
        .filter_map(|config| Some(PublicIpv4 { address: said(config.nat_ip.as_deref())?, elastic: None }))
        .collect();
    addresses.into_iter().collect()
}

/// The service that started it for itself, by the labels that these services put on their machines.
fn operator(labels: &BTreeMap<String, String>) -> Option<String> {
    const BY_LABEL: [(&str, &str); 3] =
        [("goog-gke-", "gke"), ("goog-dataproc-", "dataproc"), ("goog-batch-", "batch")];
    let service = |label: &String| BY_LABEL.iter().find(|(begin, _)| label.starts_with(begin));
    labels.keys().find_map(service).map(|(_, service)| (*service).to_owned())
}

pub(super) fn volume(project: &str, place: &str, record: model::Disk) -> Result<Volume, String> {
    let name = said(record.name.as_deref()).ok_or("a disk has no name")?;
    let (attached, detached) =
        (moment(record.last_attach_timestamp.as_deref()), moment(record.last_detach_timestamp.as_deref()));
    let attachments: Vec<VolumeAttachment> = record
        .users
        .iter()
        .map(|user| VolumeAttachment {
            instance_id: Some(path_in_project(user)),
            device: None,
            state: None,
            delete_on_termination: None,
            attached_at: None,
        })
        .collect();
    // A list without items is left out. One that was attached later than it was detached should have an item.
    let contradictory = attachments.is_empty() && attached.is_some() && detached < attached;
    let attachments = (!contradictory).then_some(attachments);
    let state = record.status.as_ref().and_then(|status| status.name()).map(|word| match (word, &attachments) {
        ("READY", Some(attachments)) if attachments.is_empty() => VolumeState::Available,
        ("READY", Some(_)) => VolumeState::InUse,
        ("CREATING", _) => VolumeState::Creating,
        ("DELETING", _) => VolumeState::Deleting,
        ("FAILED", _) => VolumeState::Error,
        (other, _) => VolumeState::Other(other.to_owned()),
    });
    Ok(Volume {
        id: resource(project, place, ResourceKind::Volume, name),
        volume_type: record.r#type.as_deref().and_then(last),
        size_gib: record.size_gb.and_then(|size| u32::try_from(size).ok()),
        iops: record.provisioned_iops.and_then(|iops| u32::try_from(iops).ok()),
        // Google counts it in another unit for each type of disk.
        throughput_mib_per_s: None,
        state,
        created_at: moment(record.creation_timestamp.as_deref()),
        availability_zone: record.zone.as_deref().and_then(last),
        attachments,
        snapshot_id: record.source_snapshot.as_deref().and_then(last),
        operator: None,
        on_outpost: false,
        tags: record.labels.into_iter().collect(),
        google: Some(Box::new(GoogleDisk {
            number: record.id,
            last_attached_at: attached,
            last_detached_at: detached,
            replica_zones: record.replica_zones.iter().filter_map(|zone| last(zone)).collect(),
        })),
    })
}

/// None for an address of a private network: nobody bills it.
pub(super) fn address(project: &str, place: &str, record: model::Address) -> Result<Option<Address>, String> {
    if record.address_type.as_ref().and_then(|kind| kind.name()) == Some("INTERNAL") {
        return Ok(None);
    }
    let name = said(record.name.as_deref()).ok_or("an address has no name")?;
    let users: Vec<String> = record.users.iter().map(|user| path_in_project(user)).collect();
    let is_ipv4 = |text: &&str| text.parse::<std::net::Ipv4Addr>().is_ok();
    let purpose = record.purpose.as_ref().and_then(|purpose| purpose.name()).map(str::to_owned);
    Ok(Some(Address {
        id: resource(project, place, ResourceKind::Address, name),
        allocation_id: None,
        public_ipv4: record.address.as_deref().filter(is_ipv4).map(str::to_owned),
        association_id: users.first().cloned(),
        instance_id: users.iter().find(|user| user.contains("/instances/")).cloned(),
        network_interface_id: None,
        network_interface_owner: None,
        service_managed: purpose.clone().filter(|purpose| purpose != "GCE_ENDPOINT"),
        pool: None,
        border_group: None,
        tags: record.labels.into_iter().collect(),
        google: Some(Box::new(GoogleAddress {
            number: record.id,
            status: record.status.as_ref().and_then(|status| status.name()).map(str::to_owned),
            created_at: moment(record.creation_timestamp.as_deref()),
            purpose,
            network_tier: record.network_tier.as_ref().and_then(|tier| tier.name()).map(str::to_owned),
            users,
        })),
    }))
}

/// The list of groups does not tell their members: any machine may be one.
pub(super) fn group(
    project: &str,
    place: &str,
    record: &model::InstanceGroupManager,
) -> Result<AutoScalingGroup, String> {
    let name = said(record.name.as_deref()).ok_or("a managed instance group has no name")?;
    let template = record.instance_template.as_deref().and_then(last);
    Ok(AutoScalingGroup {
        id: resource(project, place, ResourceKind::AutoScalingGroup, name),
        arn: None,
        min_size: None,
        max_size: None,
        desired_capacity: record.target_size.and_then(|size| u32::try_from(size).ok()),
        launch: template.map(|name| Launch::Template(LaunchTemplate { id: None, name: Some(name), version: None })),
        members: None,
        tags: BTreeMap::new(),
        upkeep: Upkeep::default(),
    })
}

pub(super) fn shape(record: model::MachineType) -> MachineShape {
    let count = |count: Option<i32>| count.and_then(|count| u32::try_from(count).ok());
    MachineShape {
        vcpus: count(record.guest_cpus),
        // Called MB, and counted in 1,024s: a machine of 4 GB has 4096.
        memory_mib: count(record.memory_mb),
        shared_cpu: record.is_shared_cpu,
        local_ssds: record.bundled_local_ssds.and_then(|bundled| count(bundled.partition_count)),
        accelerators: record
            .accelerators
            .into_iter()
            .map(|one| Accelerators {
                kind: one.guest_accelerator_type.as_deref().and_then(last),
                count: count(one.guest_accelerator_count),
            })
            .collect(),
    }
}

/// Disks and addresses name the machine that they are tied to; what is tied to one that is listed gets its number instead, as its key
/// has it. A machine that is not listed stays a path.
pub(super) fn name_machines(instances: &[Instance], volumes: &mut [Volume], addresses: &mut [Address]) {
    let numbers: HashMap<String, &str> = instances
        .iter()
        .filter_map(|instance| {
            let zone = &instance.id.location;
            Some((format!("zones/{zone}/instances/{}", instance.name.as_deref()?), instance.id.id.as_str()))
        })
        .collect();
    let attachments = volumes.iter_mut().flat_map(|volume| volume.attachments.iter_mut().flatten());
    let of_addresses = addresses.iter_mut().map(|address| &mut address.instance_id);
    for machine in attachments.map(|attachment| &mut attachment.instance_id).chain(of_addresses) {
        if let Some(number) = machine.as_ref().and_then(|path| numbers.get(path)) {
            *machine = Some((*number).to_owned());
        }
    }
}

fn resource(project: &str, place: &str, kind: ResourceKind, name: String) -> ResourceKey {
    let scope = Scope { provider: Provider::Gcp, account: project.to_owned(), region: place.to_owned() };
    scope.key(kind, name)
}

/// `https://www.googleapis.com/compute/v1/projects/omics/zones/z/instances/n` → `zones/z/instances/n`
fn path_in_project(url: &str) -> String {
    let rest = url.split_once("projects/").and_then(|(_, rest)| rest.split_once('/'));
    rest.map_or(url, |(_, rest)| rest).to_owned()
}

/// The last part of a URL or path.
fn last(url: &str) -> Option<String> {
    said(url.rsplit('/').next())
}

fn said(text: Option<&str>) -> Option<String> {
    text.filter(|text| !text.is_empty()).map(str::to_owned)
}

/// RFC 3339, with the offset of Google's own office; none for a time that no calendar holds.
fn moment(text: Option<&str>) -> Option<Timestamp> {
    text?.parse().ok()
}

#[cfg(test)]
mod tests;
