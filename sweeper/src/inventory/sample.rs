//! Ordinary resources for tests to change.

use jiff::Timestamp;
use model::{Provider, ResourceKey, ResourceKind};

use super::{
    Address, AttachedVolume, Failure, FailureKind, Instance, InstanceState, InstanceStore, Lifecycle, Listing, Outcome,
    PublicIpv4, RootDevice, Snapshot, SnapshotState, StorageTier, Tenancy, Volume, VolumeState,
};

/// Running, on demand, EBS root, nothing special.
pub(crate) fn instance() -> Instance {
    Instance {
        id: "aws:123456789012:eu-central-1:i-0123456789abcdef0".parse().expect("a node id"),
        name: Some("align-7".into()),
        instance_type: Some("m5.large".into()),
        state: InstanceState::Running,
        launched_at: Some(Timestamp::UNIX_EPOCH),
        attached_at: Some(Timestamp::UNIX_EPOCH),
        lifecycle: Lifecycle::OnDemand,
        capacity_reservation: None,
        availability_zone: Some("eu-central-1a".into()),
        on_outpost: false,
        platform_details: Some("Linux/UNIX".into()),
        usage_operation: Some("RunInstances".into()),
        tenancy: Tenancy::Shared,
        root_device: RootDevice::Ebs,
        instance_store: InstanceStore::Unknown,
        volumes: vec![AttachedVolume {
            id: "vol-1".into(),
            device: Some("/dev/xvda".into()),
            attached_at: Some(Timestamp::UNIX_EPOCH),
            delete_on_termination: Some(true),
        }],
        network_interfaces: vec!["eni-1".into()],
        public_ipv4: vec![PublicIpv4 { address: "203.0.113.7".into(), elastic: Some(false) }],
        tags: [("Name".to_owned(), "align-7".to_owned())].into(),
        autoscaling_group: None,
        launch_template: None,
        operator: None,
        hibernation_configured: Some(false),
        instance_profile: None,
        google: None,
    }
}

/// 100 GiB, attached to nothing, nothing special.
pub(crate) fn volume() -> Volume {
    Volume {
        id: "aws:123456789012:eu-central-1:vol-0123456789abcdef0".parse().expect("a key"),
        volume_type: Some("gp3".into()),
        size_gib: Some(100),
        iops: Some(3_000),
        throughput_mib_per_s: Some(125),
        state: Some(VolumeState::Available),
        created_at: Some(Timestamp::UNIX_EPOCH),
        availability_zone: Some("eu-central-1a".into()),
        attachments: Some(Vec::new()),
        snapshot_id: None,
        operator: None,
        on_outpost: false,
        tags: [("Name".to_owned(), "scratch".to_owned()), ("owner".to_owned(), "genomics".to_owned())].into(),
        google: None,
    }
}

/// Whole, at hand, and the copy of a volume that is gone.
pub(crate) fn snapshot() -> Snapshot {
    Snapshot {
        id: "aws:123456789012:eu-central-1:snap-0123456789abcdef0".parse().expect("a key"),
        volume_id: Some("vol-0fedcba9876543210".into()),
        volume_size_gib: Some(100),
        full_size_bytes: None,
        state: Some(SnapshotState::Completed),
        started_at: Some(Timestamp::UNIX_EPOCH),
        storage_tier: Some(StorageTier::Standard),
        description: None,
        needed_by: Some(Vec::new()),
        instance_id: None,
        on_outpost: false,
        tags: [("Name".to_owned(), "before the move".to_owned())].into(),
    }
}

/// Of Amazon's own range, tied to nothing.
pub(crate) fn address() -> Address {
    Address {
        id: "aws:123456789012:eu-central-1:eipalloc-0123456789abcdef0".parse().expect("a key"),
        allocation_id: Some("eipalloc-0123456789abcdef0".into()),
        public_ipv4: Some("203.0.113.8".into()),
        association_id: None,
        instance_id: None,
        network_interface_id: None,
        network_interface_owner: None,
        service_managed: None,
        pool: Some("amazon".into()),
        border_group: None,
        tags: [].into(),
        google: None,
    }
}

/// A list of instances of AWS, whole or throttled.
pub(crate) fn listing(account: Option<&str>, region: Option<&str>, complete: bool) -> Listing {
    Listing {
        provider: Provider::Aws,
        account: account.map(str::to_owned),
        region: region.map(str::to_owned),
        kind: region.map(|_| ResourceKind::Instance.into()),
        outcome: if complete {
            Outcome::Complete { listed: 0 }
        } else {
            Outcome::Failed {
                what: "ec2:DescribeInstances".into(),
                why: Failure { kind: FailureKind::Throttled, message: String::new() },
            }
        },
    }
}

/// What AWS Batch says of itself, as a kind of resource, from the few facts that a test names.
pub(crate) fn of_batch<T: serde::de::DeserializeOwned>(kind: ResourceKind, id: &str, facts: &str) -> T {
    let (account, location) = ("123456789012".to_owned(), "eu-central-1".to_owned());
    let key = ResourceKey { provider: Provider::Aws, account, location, kind, id: id.to_owned() };
    let all = serde_json::json!({
        "id": key, "cluster": "omics",
        "arn": format!("arn:{id}"),
        "depends_on": [], "resources": [], "tasks": [], "attempts": [], "tags": {}, "containers": [],
    });
    let mut told: serde_json::Map<_, _> = serde_json::from_value(all).expect("an object");
    told.extend(serde_json::from_str::<serde_json::Map<_, _>>(facts).expect("facts are an object"));
    serde_json::from_value(told.into()).expect("a resource of AWS Batch")
}
