use super::*;
use crate::inventory::sample;
use model::{UnitPrice, Usd};
use std::collections::BTreeMap;

fn of_type(volume_type: &str) -> Volume {
    Volume {
        id: "aws:123456789012:eu-central-1:vol-1".parse().expect("a key"),
        volume_type: Some(volume_type.into()),
        size_gib: Some(100),
        iops: Some(3_000),
        throughput_mib_per_s: Some(125),
        state: None,
        created_at: None,
        availability_zone: Some("eu-central-1a".into()),
        attachments: Some(Vec::new()),
        snapshot_id: None,
        operator: None,
        on_outpost: false,
        tags: BTreeMap::new(),
        google: None,
    }
}

fn shown(volume_of: &Volume) -> Result<Vec<String>, Unpriced> {
    let shown = |Part { key, quantity }: &Part| {
        let dollars = UnitPrice::total([(UnitPrice::from_ten_billionths(10_000_000_000), *quantity)]);
        format!("{key}: {}", dollars.unwrap_or(Usd::from_micros(-1)).to_string().trim_start_matches('$'))
    };
    volume(volume_of).map(|parts| parts.iter().map(shown).collect())
}

#[test]
fn a_volume_is_billed_for_its_size_and_for_what_does_not_come_with_it() {
    for volume_type in ["gp2", "st1", "sc1"] {
        let expected = vec![format!("EBS:VolumeUsage.{volume_type} in eu-central-1: 100.00")];
        assert_eq!(shown(&of_type(volume_type)), Ok(expected));
    }
    assert_eq!(shown(&of_type("standard")), Ok(vec!["EBS:VolumeUsage in eu-central-1: 100.00".to_owned()]));
    assert_eq!(shown(&of_type("gp3")), Ok(vec!["EBS:VolumeUsage.gp3 in eu-central-1: 100.00".to_owned()]));
    let more = Volume { iops: Some(3_001), throughput_mib_per_s: Some(637), ..of_type("gp3") };
    let expected = [
        "EBS:VolumeUsage.gp3 in eu-central-1: 100.00",
        "EBS:VolumeP-IOPS.gp3 in eu-central-1: 1.00",
        "EBS:VolumeP-Throughput.gp3 in eu-central-1: 0.50",
    ];
    assert_eq!(shown(&more), Ok(expected.map(str::to_owned).to_vec()));
    let expected = ["EBS:VolumeUsage.piops in eu-central-1: 100.00", "EBS:VolumeP-IOPS.piops in eu-central-1: 3000.00"];
    assert_eq!(shown(&of_type("io1")), Ok(expected.map(str::to_owned).to_vec()));
}

#[test]
fn each_tier_of_io2_has_its_own_price() {
    let tiers = |iops| {
        let parts = volume(&Volume { iops: Some(iops), ..of_type("io2") }).expect("parts");
        parts.iter().skip(1).map(|part| (part.key.usage, part.quantity)).collect::<Vec<_>>()
    };
    let (first, second) = ((Usage::Io2Iops, Quantity::whole(32_000)), (Usage::Io2IopsTier2, Quantity::whole(32_000)));
    assert_eq!(tiers(32_000), [first]);
    assert_eq!(tiers(32_001), [first, (Usage::Io2IopsTier2, Quantity::whole(1))]);
    assert_eq!(tiers(64_000), [first, second]);
    assert_eq!(tiers(64_001), [first, second, (Usage::Io2IopsTier3, Quantity::whole(1))]);
}

#[test]
fn a_fact_that_is_missing_leaves_the_whole_price_unknown() {
    type Change = fn(&mut Volume);
    let table: [(&str, Change, Unpriced); 9] = [
        ("gp3", |v| v.volume_type = None, Unpriced::FactUnknown("volume type")),
        ("gp3", |v| v.size_gib = None, Unpriced::FactUnknown("size")),
        ("gp3", |v| v.iops = None, Unpriced::FactUnknown("provisioned IOPS")),
        ("gp3", |v| v.throughput_mib_per_s = None, Unpriced::FactUnknown("provisioned throughput")),
        ("io1", |v| v.iops = None, Unpriced::FactUnknown("provisioned IOPS")),
        ("gp2", |v| v.availability_zone = None, Unpriced::FactUnknown("availability zone")),
        ("gp2", |v| v.on_outpost = true, Unpriced::Outpost),
        ("gp2", |v| v.id = "gcp:omics:europe-west3-a:42".parse().expect("a key"), Unpriced::Google),
        ("z9", |_| {}, Unpriced::NotKnown { what: "volume type", word: "z9".into() }),
    ];
    for (volume_type, change, why) in table {
        let mut changed = of_type(volume_type);
        change(&mut changed);
        assert_eq!(volume(&changed), Err(why));
    }
    // What has no such thing needs not say it.
    let plain = Volume { iops: None, throughput_mib_per_s: None, ..of_type("st1") };
    assert!(volume(&plain).is_ok());
    let local = Volume { availability_zone: Some("eu-central-1-ham-1a".into()), ..of_type("gp2") };
    assert_eq!(volume(&local).expect("parts")[0].key.region, "eu-central-1-ham-1");
}

#[test]
fn an_address_of_amazons_has_a_price_and_one_of_the_customers_own_has_none() {
    let of = |pool: Option<&str>, border_group: Option<&str>| Address {
        id: "aws:123456789012:us-west-2:eipalloc-1".parse().expect("a key"),
        allocation_id: None,
        public_ipv4: None,
        association_id: None,
        instance_id: None,
        network_interface_id: None,
        network_interface_owner: None,
        service_managed: None,
        pool: pool.map(str::to_owned),
        border_group: border_group.map(str::to_owned),
        tags: BTreeMap::new(),
        google: None,
    };
    let key = |of: &Address| address(of, Usage::AddressIdle).map(|key| key.to_string());
    assert_eq!(key(&of(Some("amazon"), None)).as_deref(), Ok("PublicIPv4:IdleAddress in us-west-2"));
    let local = of(Some("amazon"), Some("us-west-2-lax-1"));
    assert_eq!(key(&local).as_deref(), Ok("PublicIPv4:IdleAddress in us-west-2-lax-1"));
    assert_eq!(key(&of(Some("ipv4pool-ec2-1"), None)), Err(Unpriced::OwnAddress("ipv4pool-ec2-1".into())));
    assert_eq!(key(&of(None, None)), Err(Unpriced::FactUnknown("address pool")));
}

#[test]
fn of_a_snapshot_only_the_most_is_known() {
    let of = |tier: Option<&str>, gib: Option<u32>, bytes: Option<u64>| Snapshot {
        volume_size_gib: gib,
        full_size_bytes: bytes,
        storage_tier: tier.map(Into::into),
        ..sample::snapshot()
    };
    let most = |of: Snapshot| snapshot_at_most(&of).map(|part| (part.key.usage, part.quantity));
    let full = most(of(Some("standard"), Some(500), Some((3 << 20) + 1)));
    assert_eq!(full, Ok((Usage::Snapshot, Quantity::of_1024(4))), "its own size, in whole MiB");
    assert_eq!(most(of(Some("archive"), Some(500), None)), Ok((Usage::SnapshotArchive, Quantity::whole(500))));
    assert_eq!(most(of(Some("standard"), None, None)), Err(Unpriced::FactUnknown("size")));
    assert_eq!(most(of(None, Some(1), None)), Err(Unpriced::FactUnknown("storage tier")));
    assert!(matches!(most(of(Some("vault"), Some(1), None)), Err(Unpriced::NotKnown { .. })));
}

#[test]
fn a_row_is_known_by_its_usage_type_without_the_region() {
    for usage in Usage::ALL {
        assert_eq!(Usage::from_usage_type(usage.usage_type()), Some(usage));
        assert_eq!(Usage::of_row(usage.usage_type()), Some(usage));
        assert_eq!(Usage::of_row(&format!("EUC1-{}", usage.usage_type())), Some(usage));
    }
    for other in [
        "EBS:VolumeUsage.gp3.outposts",
        "EUC1-EBS:VolumeUsage.gp4",
        "EUC1-Outposts-EBS:VolumeUsage.gp3",
        "Outposts-EBS:VolumeUsage.gp3",
        "EBS:SnapshotUsageUnderBilling",
        "EBS:VolumeP",
        "",
    ] {
        assert_eq!(Usage::of_row(other), None, "{other}");
    }
}
