use super::*;
use crate::inventory::sample;
use model::UnitPrice;

fn volume(id: &str, volume_type: &str) -> Volume {
    Volume {
        id: format!("aws:123456789012:eu-central-1:{id}").parse().expect("a key"),
        volume_type: Some(volume_type.into()),
        size_gib: Some(100),
        iops: Some(4_000),
        throughput_mib_per_s: Some(125),
        state: None,
        created_at: None,
        availability_zone: Some("eu-central-1a".into()),
        attachments: Some(Vec::new()),
        snapshot_id: None,
        operator: None,
        on_outpost: false,
        tags: std::collections::BTreeMap::new(),
        google: None,
    }
}

fn prices(known: &[(Usage, &str)]) -> UnitPrices {
    let key = |usage| UnitKey { provider: Provider::Aws, region: "eu-central-1".into(), usage };
    let price = |text: &str| text.parse::<UnitPrice>().expect("a price");
    known.iter().map(|(usage, text)| (key(*usage), Ok((price(text), None)))).collect()
}

fn inventory() -> Inventory {
    Inventory {
        instances: vec![sample::instance()],
        volumes: vec![volume("vol-1", "gp3"), volume("vol-2", "gp2")],
        ..Inventory::default()
    }
}

#[test]
fn all_parts_of_a_volume_are_priced_or_none() {
    let inventory = inventory();
    let whole = prices(&[(Usage::Gp3, "0.0952"), (Usage::Gp3Iops, "0.006")]);
    let bills = Bills::of(&inventory, &whole);
    assert_eq!(bills.volume(&inventory.volumes[0]), Ok((Usd::from_micros(15_520_000), None)));
    let part = prices(&[(Usage::Gp3, "0.0952")]);
    let missing = Bills::of(&inventory, &part).volume(&inventory.volumes[0]);
    assert_eq!(missing, Err(Unpriced::NoRow("EBS:VolumeP-IOPS.gp3 in eu-central-1".into())));
}

#[test]
fn what_a_stop_leaves_is_described_and_priced_or_says_why_not() {
    let (inventory, prices) = (inventory(), prices(&[(Usage::Gp2, "0.1")]));
    let bills = Bills::of(&inventory, &prices);
    let told = |charge: Charge| bills.charge(&charge).map(|price| (price.what, price.cost));
    let (what, cost) = told(Charge::Volume { id: "vol-2".into() }).expect("a price");
    assert_eq!(what.as_deref(), Some("100 GiB gp2"));
    assert_eq!(cost, ChargeCost::Known { per_month: Usd::from_micros(10_000_000), as_of: None });
    let (what, cost) = told(Charge::Volume { id: "vol-9".into() }).expect("a price");
    assert!(what.is_none() && matches!(&cost, ChargeCost::Unknown { why } if why.contains("volumes")), "{cost:?}");
    let elastic = Charge::ElasticIpv4 { address: "203.0.113.9".into(), may_be_released: false };
    assert!(matches!(told(elastic), Some((None, ChargeCost::Unknown { .. }))));
    assert_eq!(told(Charge::CommitmentsUnknown), None);
}

#[test]
fn an_hour_of_a_lent_address_is_told_in_whole_micro_dollars_or_not_at_all() {
    let inventory = inventory();
    let of = |price: &str| {
        let prices = prices(&[(Usage::AddressInUse, price)]);
        Bills::of(&inventory, &prices).lent_address(&inventory.instances[0])
    };
    assert_eq!(of("0.005"), stop::Price::OnDemand(HourlyRate::from_micros(5_000)));
    assert!(matches!(of("0.0000005"), stop::Price::Unknown(why) if why.contains("micro-dollars")));
}

#[test]
fn prices_are_asked_for_that_something_needs() {
    let usages: Vec<Usage> = keys(&inventory()).into_iter().map(|key| key.usage).collect();
    assert_eq!(usages, [Usage::Gp2, Usage::Gp3, Usage::Gp3Iops, Usage::AddressInUse]);
    let mut unused = inventory();
    unused.volumes[0].state = Some(crate::inventory::VolumeState::Available);
    let usages: Vec<Usage> = keys(&unused).into_iter().map(|key| key.usage).collect();
    assert!(
        usages.contains(&Usage::Snapshot),
        "a plan to delete it needs the most that its snapshot may cost: {usages:?}"
    );
}

#[test]
fn a_machine_that_is_stopped_costs_all_that_it_keeps_or_says_why_that_is_not_known() {
    let stopped = |change: fn(&mut Instance)| {
        let mut inventory = inventory();
        let instance = &mut inventory.instances[0];
        (instance.state, instance.public_ipv4) = (crate::inventory::InstanceState::Stopped, Vec::new());
        change(instance);
        let prices = prices(&[(Usage::Gp3, "0.08"), (Usage::Gp3Iops, "0.005")]);
        Bills::of(&inventory, &prices).leftover(&inventory.instances[0].id)
    };
    // $8.00 and $5.00 for 1,000 operations a month of 730 hours.
    assert_eq!(stopped(|_| {}), Cost::Known { per_hour: HourlyRate::from_micros(17_808), as_of: None });
    let why = |cost: Cost| match cost {
        Cost::Unknown { why } => why,
        Cost::Known { per_hour, .. } => panic!("{per_hour}"),
    };
    let none = why(stopped(|instance| instance.volumes.clear()));
    assert_eq!(none, "the provider did not say its volumes", "which is not zero");
    let other = why(stopped(|instance| instance.volumes[0].id = "vol-9".into()));
    assert!(other.contains("list of volumes"), "{other}");
    let address = why(stopped(|instance| {
        instance.public_ipv4 = vec![PublicIpv4 { address: "203.0.113.7".into(), elastic: None }];
    }));
    assert!(address.contains("list of addresses"), "it may be elastic: {address}");
}
