//! The *region* rule: cases computed by hand.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use model::Usd;
use proptest::prelude::*;
use recommender::{
    blocker::{Blocker, NotRecommended, Unfit},
    catalogue::{Catalogue, Rate, Worth},
    demand::{Demand, Span},
    policy::Policy,
    recommendation::{Change, Evidence, Recommendation, Traffic, Undo},
    rules::{
        region::{self, RegionInput, Target, Transfer},
        rightsize::SizedMachine,
    },
};

use crate::support::{Case, GIB, WEEKS, catalogue, price, record};

/// What the tests change: an m5.2xlarge in us-east-1 for 384,000, and a region in which it costs 300,000.
struct Asked {
    case: Case,
    traffic: Option<Traffic>,
    disk_gib: Option<u64>,
    disks: Worth,
    allowed: Option<BTreeSet<String>>,
    most_latency_ms: Option<u32>,
    there: Catalogue,
    latency_ms: Option<u32>,
    disks_there: Worth,
    transfer: Transfer,
}

fn asked() -> Asked {
    let mut there = catalogue();
    (there.region, there.zone) = ("us-west-2".into(), "us-west-2a".into());
    let dollars = |text: &str| text.parse().ok();
    let mut asked = Asked {
        case: Case::of("m5.2xlarge", record(WEEKS, |_, _| ())),
        // In 672 hours.
        traffic: Some(Traffic { sent: 672 * GIB / 2, received: 672 * GIB / 4 }),
        disk_gib: Some(100),
        disks: Worth::Known(Usd::from_micros(8_000_000)),
        allowed: Some(["us-west-2".to_owned(), "us-east-1".to_owned()].into()),
        most_latency_ms: Some(80),
        there,
        latency_ms: Some(60),
        disks_there: Worth::Known(Usd::from_micros(9_000_000)),
        transfer: Transfer {
            there: dollars("0.02"),
            back: dollars("0.02"),
            to_internet: dollars("0.05"),
            snapshots: dollars("0.10"),
        },
    };
    offer(&mut asked).prices = price(300_000);
    asked
}

fn offer(asked: &mut Asked) -> &mut recommender::catalogue::Offer {
    asked.there.offers.iter_mut().find(|offer| offer.machine_type.name == "m5.2xlarge").unwrap()
}

fn judged(asked: &Asked) -> Result<Recommendation, NotRecommended> {
    let Case { resource, machine, interfaces, record, catalogue, policy } = &asked.case;
    let demand = Demand::of(record);
    let machine = SizedMachine { resource, machine, interfaces: *interfaces, record, demand: &demand, catalogue };
    let target = |catalogue| Target {
        catalogue,
        latency_ms: asked.latency_ms,
        disks_per_month: &asked.disks_there,
        transfer: asked.transfer,
    };
    let input = RegionInput {
        machine,
        traffic: asked.traffic,
        disk_gib: asked.disk_gib,
        disks_per_month: &asked.disks,
        allowed: asked.allowed.as_ref(),
        most_latency_ms: asked.most_latency_ms,
        // Its own region is not another one.
        targets: &[target(&asked.there), target(catalogue)],
    };
    region::recommend(&input, policy)
}

fn blockers(change: impl FnOnce(&mut Asked)) -> Vec<Blocker> {
    let mut asked = asked();
    change(&mut asked);
    judged(&asked).unwrap_err().blockers
}

fn why_not(change: impl FnOnce(&mut Asked)) -> Blocker {
    let mut asked = asked();
    change(&mut asked);
    let refused = judged(&asked).unwrap_err();
    assert_eq!((refused.blockers, refused.considered.len()), (vec![Blocker::NoRegion], 1));
    assert_eq!(refused.considered[0].machine_type, "m5.2xlarge in us-west-2a");
    match &refused.considered[0].why_not {
        Unfit::NotWorthIt(why) => (**why).clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_move_pays_for_every_byte_that_was_seen_for_its_disks_and_for_itself() {
    let recommended = judged(&asked()).unwrap();
    let Change::Region { from, to, zone, machine_type } = &recommended.change else { panic!("{recommended:?}") };
    assert_eq!([from.as_str(), to, zone, machine_type], ["us-east-1", "us-west-2", "us-west-2a", "m5.2xlarge"]);
    // In 730 hours 365 GiB sent at 0.05 (the internet is dearer than the way back) and 182.5 GiB received at 0.02.
    let transfer = 18_250_000 + 3_650_000;
    let Evidence::Traffic { transfer_per_month, .. } = recommended.evidence else { panic!("{recommended:?}") };
    assert_eq!(transfer_per_month, Usd::from_micros(transfer));
    // 84,000 × 730 = 61.32, less 1 for the disks and 21.90 for the transfer.
    assert_eq!(
        recommended.saving.as_ref().unwrap().list_per_month,
        Usd::from_micros(61_320_000 - 1_000_000 - transfer)
    );
    // 100 GiB at 0.02 and 0.10, and the old disks for a month.
    assert_eq!(recommended.saving.as_ref().unwrap().once, Usd::from_micros(2_000_000 + 10_000_000 + 8_000_000));
    assert_eq!(recommended.undo, Undo::StartTheOldOne { region: "us-east-1".into() });
}

#[test]
fn transfer_can_eat_the_saving() {
    // 600 GiB sent and 600 received in 672 hours: 651.786 GiB of each a month at 0.07 together come to 45.625, and what is left of 60.32 is a bit less than
    // 14.695, for parts of a MiB count as one. With 800 of each it would be 43.45 and 17.38.
    let traffic = |gib: u64| Some(Traffic { sent: gib * GIB, received: gib * GIB });
    let mut some = asked();
    some.traffic = traffic(600);
    assert_eq!(judged(&some).unwrap().saving.as_ref().unwrap().list_per_month.in_cents(), "$14.69");
    let eaten = why_not(|asked| asked.traffic = traffic(800));
    match eaten {
        Blocker::TransferCostsMore { transfer, saving } => {
            assert_eq!((transfer.in_cents(), saving.in_cents()), ("$60.83".into(), "$60.32".into()));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_region_that_lacks_the_type_or_is_not_allowed_or_too_far_is_refused_by_name() {
    let lacks = why_not(|asked| asked.there.offers.retain(|offer| offer.machine_type.name != "m5.2xlarge"));
    assert_eq!(lacks, Blocker::NotOffered { machine_type: "m5.2xlarge".into(), zone: "us-west-2a".into() });
    let forbidden = why_not(|asked| asked.allowed = Some(["us-east-1".to_owned()].into()));
    assert_eq!(forbidden, Blocker::NotAllowedThere { region: "us-west-2".into() });
    let far = why_not(|asked| asked.latency_ms = Some(81));
    assert_eq!(far, Blocker::TooFar { region: "us-west-2".into(), ms: 81, most: 80 });
    assert!(matches!(why_not(|asked| asked.latency_ms = None), Blocker::FactUnknown { .. }));
}

#[test]
fn what_is_not_priced_is_not_recommended() {
    type Forget = fn(&mut Asked);
    let forgotten: [Forget; 6] = [
        |asked| asked.transfer.there = None,
        |asked| asked.transfer.back = None,
        |asked| asked.transfer.to_internet = None,
        |asked| asked.transfer.snapshots = None,
        |asked| asked.disks_there = Worth::Unknown("no row".into()),
        |asked| offer(asked).prices.list = Rate::Unknown("two rows".into()),
    ];
    for forget in forgotten {
        assert!(matches!(why_not(forget), Blocker::PriceUnknown { .. }));
    }
    let same = why_not(|asked| offer(asked).prices = price(384_000));
    assert!(matches!(same, Blocker::SavesTooLittle { .. }), "{same}");
    let late = why_not(|asked| asked.disk_gib = Some(1_000));
    // 20 + 100 + 8 once, and three times 38.42 in three months.
    assert_eq!(
        late,
        Blocker::PaysBackLate { once: Usd::from_micros(128_000_000), saving: Usd::from_micros(38_420_000), months: 3 }
    );
    assert_eq!(Policy::default().pays_back_in_months, 3);
}

#[test]
fn what_is_not_known_of_the_machine_is_a_reason_each() {
    let refused = blockers(|asked| {
        asked.traffic = None;
        asked.disk_gib = None;
        asked.disks = Worth::Unknown("no row".into());
        asked.allowed = None;
        asked.most_latency_ms = None;
    });
    let plain: Vec<String> = refused.iter().map(ToString::to_string).collect();
    assert_eq!(
        plain,
        [
            "traffic was not measured",
            "how large its disks are is not known",
            "what it saves is not known: no row",
            "in which regions its data may be is not known",
            "how far it may be from those who talk with it is not known",
        ]
    );
    let early = blockers(|asked| asked.case.record.hours.truncate(100));
    assert!(matches!(early[..], [Blocker::TooEarly { .. }]));
}

#[test]
fn of_a_machine_that_runs_half_of_the_time_the_traffic_is_that_of_its_hours() {
    let mut half = asked();
    let begin = half.case.record.hours[0].begin;
    let at = |hours: i64| begin + SignedDuration::from_hours(hours);
    half.case.record.stopped = (0..28).map(|day| Span { from: at(day * 24 + 12), to: at(day * 24 + 24) }).collect();
    let mut nth = 0;
    half.case.record.hours.retain(|_| {
        nth += 1;
        (nth - 1) % 24 < 12
    });
    half.traffic = Some(Traffic { sent: 0, received: 330 * GIB });
    // 336 of 660 hours: 330 GiB in 660 hours are 365 in 730, for 7.30. 61.32 × 336 ÷ 660 = 31.217454, less 1 and 7.30.
    assert_eq!(
        judged(&half).unwrap().saving.as_ref().unwrap().list_per_month,
        Usd::from_micros(31_217_454 - 1_000_000 - 7_300_000)
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn more_traffic_and_larger_disks_never_save_more(
        sent in 0..1_000_u64, received in 0..1_000_u64, more in (0..500_u64, 0..500_u64), gib in 0..500_u64, larger in 0..500_u64,
    ) {
        let saved = |sent: u64, received: u64, gib: u64| {
            let mut asked = asked();
            asked.case.record.hours.truncate(7 * 24);
            asked.traffic = Some(Traffic { sent: sent * GIB, received: received * GIB });
            asked.disk_gib = Some(gib);
            judged(&asked).ok().map(|recommended| recommended.saving.unwrap())
        };
        let before = saved(sent, received, gib);
        let after = saved(sent + more.0, received + more.1, gib + larger);
        prop_assert!(after.as_ref().map(|saving| saving.surely()) <= before.as_ref().map(|saving| saving.surely()));
        if let (Some(before), Some(after)) = (before, after) {
            prop_assert!(after.once >= before.once);
        }
    }
}
