use aws_sdk_ec2::types::{
    Address as AddressRecord, OperatorResponse, Snapshot as SnapshotRecord, Tag, Volume as VolumeRecord,
    VolumeAttachment as AttachmentRecord,
};
use aws_smithy_types::DateTime;
use jiff::Timestamp;
use model::{Provider, ResourceKind};

use super::*;
use crate::inventory::{SnapshotState, StorageTier, VolumeState};

fn scope() -> Scope {
    Scope { provider: Provider::Aws, account: "123456789012".into(), region: "eu-central-1".into() }
}

fn tag(key: &str, value: &str) -> Tag {
    Tag::builder().key(key).value(value).build()
}

#[test]
fn a_full_volume_keeps_every_fact() {
    let record = VolumeRecord::builder()
        .volume_id("vol-1")
        .volume_type("gp3".into())
        .size(500)
        .iops(4_000)
        .throughput(250)
        .state("in-use".into())
        .create_time(DateTime::from_secs(1_000))
        .availability_zone("eu-central-1a")
        .attachments(
            AttachmentRecord::builder()
                .instance_id("i-1")
                .device("/dev/sdf")
                .state("attached".into())
                .delete_on_termination(false)
                .attach_time(DateTime::from_secs(2_000))
                .build(),
        )
        .snapshot_id("snap-1")
        .operator(OperatorResponse::builder().managed(true).principal("ecs.amazonaws.com").build())
        .tags(tag("owner", "genomics"))
        .build();
    let volume = volume(&scope(), &record).expect("a volume with an id");
    assert_eq!(
        volume,
        Volume {
            id: scope().key(ResourceKind::Volume, "vol-1"),
            volume_type: Some("gp3".into()),
            size_gib: Some(500),
            iops: Some(4_000),
            throughput_mib_per_s: Some(250),
            state: Some(VolumeState::InUse),
            created_at: Timestamp::from_second(1_000).ok(),
            availability_zone: Some("eu-central-1a".into()),
            attachments: Some(vec![VolumeAttachment {
                instance_id: Some("i-1".into()),
                device: Some("/dev/sdf".into()),
                state: Some("attached".into()),
                delete_on_termination: Some(false),
                attached_at: Timestamp::from_second(2_000).ok(),
            }]),
            snapshot_id: Some("snap-1".into()),
            operator: Some("ecs.amazonaws.com".into()),
            on_outpost: false,
            tags: [("owner".to_owned(), "genomics".to_owned())].into(),
            google: None,
        }
    );
    assert_eq!(volume.id.to_string(), "aws:123456789012:eu-central-1:vol-1");
}

#[test]
fn a_volume_of_which_nothing_is_said_is_not_a_free_one() {
    let of = |record: &VolumeRecord| volume(&scope(), record).expect("a volume with an id");
    let bare = of(&VolumeRecord::builder().volume_id("vol-1").build());
    assert_eq!((bare.size_gib, bare.iops, bare.state, bare.attachments), (None, None, None, None));
    let free = of(&VolumeRecord::builder().volume_id("vol-1").set_attachments(Some(Vec::new())).build());
    assert_eq!(free.attachments, Some(Vec::new()));
    let odd = of(&VolumeRecord::builder().volume_id("vol-1").state("dreaming".into()).size(-1).build());
    assert_eq!((odd.state, odd.size_gib), (Some(VolumeState::Other("dreaming".into())), None));
}

#[test]
fn a_record_without_an_id_cannot_be_told_from_another() {
    assert!(volume(&scope(), &VolumeRecord::builder().build()).is_err());
    assert!(snapshot(&scope(), &SnapshotRecord::builder().snapshot_id("").build()).is_err());
    assert!(address(&scope(), &AddressRecord::builder().build()).is_err());
}

#[test]
fn an_address_is_known_by_its_allocation_or_else_by_its_number() {
    let associated = AddressRecord::builder()
        .allocation_id("eipalloc-1")
        .public_ip("198.51.100.1")
        .association_id("eipassoc-1")
        .network_interface_id("eni-1")
        .network_interface_owner_id("amazon-elb")
        .service_managed("alb".into())
        .public_ipv4_pool("amazon")
        .instance_id("");
    let associated = address(&scope(), &associated.build()).expect("an address with an allocation");
    assert_eq!(associated.id.to_string(), "aws:123456789012:eu-central-1:eipalloc-1");
    assert_eq!((associated.instance_id, associated.association_id.as_deref()), (None, Some("eipassoc-1")));
    assert_eq!(associated.network_interface_owner.as_deref(), Some("amazon-elb"));
    assert_eq!((associated.service_managed.as_deref(), associated.pool.as_deref()), (Some("alb"), Some("amazon")));

    let classic = AddressRecord::builder().public_ip("198.51.100.2").build();
    let classic = address(&scope(), &classic).expect("an address with a number");
    assert_eq!(classic.id.to_string(), "aws:123456789012:eu-central-1:address/198.51.100.2");
}

#[test]
fn a_full_snapshot_keeps_every_fact() {
    let record = SnapshotRecord::builder()
        .snapshot_id("snap-1")
        .volume_id("vol-1")
        .volume_size(500)
        .full_snapshot_size_in_bytes(7_000_000_000)
        .state("completed".into())
        .start_time(DateTime::from_secs(3_000))
        .storage_tier("archive".into())
        .description("Created by CreateImage(i-0123456789abcdef0) for ami-1")
        .build();
    let snapshot = snapshot(&scope(), &record).expect("a snapshot with an id");
    assert_eq!(
        snapshot,
        Snapshot {
            id: scope().key(ResourceKind::Snapshot, "snap-1"),
            volume_id: Some("vol-1".into()),
            volume_size_gib: Some(500),
            full_size_bytes: Some(7_000_000_000),
            state: Some(SnapshotState::Completed),
            started_at: Timestamp::from_second(3_000).ok(),
            storage_tier: Some(StorageTier::Archive),
            description: Some("Created by CreateImage(i-0123456789abcdef0) for ami-1".into()),
            needed_by: None,
            instance_id: Some("i-0123456789abcdef0".into()),
            on_outpost: false,
            tags: BTreeMap::new(),
        }
    );
}

#[test]
fn a_snapshots_machine_is_the_only_one_that_it_names() {
    let machine_of = |description: &str, tag: Option<(&str, &str)>| {
        let tags = tag.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        machine(Some(description), &tags)
    };
    let (one, other) = ("i-0123456789abcdef0", "i-fde9cece");
    let of_backup = "arn:aws:ec2:eu-central-1:123456789012:instance/i-0123456789abcdef0";
    for (description, tag, expected) in [
        ("Created by CreateImage(i-fde9cece) for ami-1 from vol-1", None, Some(other)),
        (
            "This snapshot is created by the AWS Backup service.",
            Some(("aws:backup:source-resource", of_backup)),
            Some(one),
        ),
        ("nightly", Some(("instance-id", one)), Some(one)),
        ("nightly", Some(("restored-to", one)), None),
        ("i-0123456789abcdef0 again", Some(("instance-id", one)), Some(one)),
        ("i-fde9cece", Some(("instance-id", one)), None),
        ("moved from i-fde9cece to i-0123456789abcdef0", None, None),
        ("proxy-i-fde9cece, i-, i-12345, i-FDE9CECE", None, None),
        ("", None, None),
    ] {
        assert_eq!(machine_of(description, tag).as_deref(), expected, "{description} {tag:?}");
    }
}
