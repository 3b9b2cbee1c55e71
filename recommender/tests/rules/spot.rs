//! The *spot* rule: cases computed by hand.

use jiff::SignedDuration;
use model::{HourlyRate, Usd, machine::Lifecycle};
use proptest::{collection::vec, prelude::*};
use recommender::{
    blocker::{Blocker, NotRecommended, Unfit},
    catalogue::{MachineType, Rate, Worth},
    demand::{Demand, Span},
    fit::{Dimension, Misfit},
    policy::Policy,
    recommendation::{Change, Recommendation, Undo},
    rules::spot::{self, Pool, Runs, SpotInput},
    spare::{Band, StateSign},
};

use crate::support::{Case, WEEKS, record};

/// What the tests change: an m5.large, 20 runs of ten hours, pools in three zones.
struct Asked {
    case: Case,
    lifecycle: Lifecycle,
    state: Option<Vec<StateSign>>,
    runs: Runs,
    /// Zone, type, price in micro-dollars, band.
    pools: Vec<(&'static str, &'static str, Option<i64>, Band)>,
}

fn asked() -> Asked {
    Asked {
        case: Case::of("m5.large", record(WEEKS, |_, _| ())),
        lifecycle: Lifecycle::OnDemand,
        state: Some(Vec::new()),
        runs: Runs {
            lengths: vec![SignedDuration::from_hours(10); 20],
            cpu_per_cent: Some(95),
            retried: Some(true),
            checkpoint_every: None,
        },
        pools: vec![
            ("a", "m5.large", Some(40_000), Band::Under(5)),
            ("b", "m5.large", Some(35_000), Band::Under(5)),
            ("c", "m5.large", Some(36_000), Band::Under(5)),
        ],
    }
}

fn judged(asked: &Asked) -> Result<Recommendation, NotRecommended> {
    let machine_type = |name: &str| -> &MachineType { &asked.case.catalogue.offer(name).unwrap().machine_type };
    let pool = |(zone, name, price, band): &(&'static str, &str, Option<i64>, Band)| {
        let known = price.map(|price| Rate::Known(HourlyRate::from_micros(price)));
        let highest = known.unwrap_or_else(|| Rate::Unknown("no history".into()));
        Pool { zone, machine_type: machine_type(name), highest, band: *band }
    };
    let pools: Vec<_> = asked.pools.iter().map(pool).collect();
    let demand = Demand::of(&asked.case.record);
    let input = SpotInput {
        resource: &asked.case.resource,
        lifecycle: &asked.lifecycle,
        offer: asked.case.catalogue.offer("m5.large").unwrap(),
        demand: &demand,
        state: asked.state.as_deref(),
        runs: &asked.runs,
        pools: &pools,
    };
    spot::recommend(&input, &asked.case.policy)
}

fn chosen(asked: &Asked) -> Vec<(String, String, u64)> {
    match judged(asked).unwrap().change {
        Change::Spot { pools } => {
            pools.into_iter().map(|pool| (pool.zone, pool.machine_type, pool.rework_per_million)).collect()
        }
        other => panic!("{other:?}"),
    }
}

fn refused(change: impl FnOnce(&mut Asked)) -> Vec<Blocker> {
    let mut asked = asked();
    change(&mut asked);
    judged(&asked).unwrap_err().blockers
}

/// Why a pool was not chosen.
fn why_not(change: impl FnOnce(&mut Asked)) -> Unfit {
    let mut asked = asked();
    change(&mut asked);
    let refused = judged(&asked).unwrap_err();
    assert_eq!(refused.blockers, [Blocker::TooFewPools { found: 2, least: 3 }]);
    refused.considered[0].why_not.clone()
}

#[test]
fn three_pools_at_the_price_of_the_dearest_with_its_expected_rework() {
    // Fewer than 5 % within 730 hours: an hourly rate below 5 ÷ 95 ÷ 730. An attempt of 36,000,000 ms is lost with x = 5 × 36,000,000 ÷ 249,660,000,000.
    // 36,000,000 × 5 × (36,000,000 + 2 × 600,000) ÷ (2 × (249,660,000,000 - 180,000,000)) = 13,419.9 ms of each run: 13,420 of 36,000,000 are 372.8 millionths.
    let recommended = judged(&asked()).unwrap();
    let pools =
        [("b", 373), ("c", 373), ("a", 373)].map(|(zone, rework)| (zone.to_owned(), "m5.large".to_owned(), rework));
    assert_eq!(chosen(&asked()), pools);
    // 96,000 × 730 less 40,000 × 730 × 1.000373
    assert_eq!(recommended.saving.as_ref().unwrap().list_per_month, Usd::from_micros(70_080_000 - 29_210_892));
    assert_eq!(recommended.saving.as_ref().unwrap().effective_per_month, Worth::Known(Usd::from_micros(40_869_108)));
    assert_eq!(recommended.undo, Undo::OnDemandAgain);
}

#[test]
fn checkpoints_lower_the_rework_and_long_runs_and_higher_bands_raise_it() {
    let rework = |change: fn(&mut Asked)| {
        let mut asked = asked();
        change(&mut asked);
        chosen(&asked)[0].2
    };
    // 36,000,000 × 5 × (3,600,000 + 1,200,000) ÷ (2 × (249,660,000,000 - 18,000,000)) = 1,730.5 ms
    assert_eq!(rework(|asked| asked.runs.checkpoint_every = Some(SignedDuration::from_hours(1))), 49);
    // A checkpoint every 20 hours comes to no run of ten.
    assert_eq!(rework(|asked| asked.runs.checkpoint_every = Some(SignedDuration::from_hours(20))), 373);
    // 360,000,000 × 20 × (360,000,000 + 1,200,000) ÷ (2 × (210,240,000,000 - 7,200,000,000)) = 6,404,255.3 ms of 360,000,000
    let long = |asked: &mut Asked| {
        asked.runs.lengths = vec![SignedDuration::from_hours(100); 20];
        asked.pools.iter_mut().for_each(|pool| pool.3 = Band::Under(20));
    };
    assert_eq!(rework(long), 17_790);
    // Half of all attempts of more than 1,460 hours would fail.
    let endless = |hours: i64| {
        why_not(move |asked| {
            asked.runs.lengths[0] = SignedDuration::from_hours(hours);
            asked.pools[0].3 = Band::Under(20);
        })
    };
    let too_often = |band| Unfit::NotWorthIt(Box::new(Blocker::InterruptedTooOften { band }));
    assert_eq!(endless(1_461), too_often(Band::Under(20)));
    assert_eq!(why_not(|asked| asked.pools[0].3 = Band::Above), too_often(Band::Above));
    assert_eq!(why_not(|asked| asked.pools[0].3 = Band::Unknown), too_often(Band::Unknown));
}

#[test]
fn rework_can_cost_more_than_spare_capacity_saves() {
    // 1,400 hours at under 20 %: x = 0.479; (1,400 + 1/3) ÷ 2 × 20 ÷ 80 ÷ 730 ÷ (1 - x) = 0.4608 of the time is lost. 70,000 × 1.46 is more than 96,000.
    let dear = why_not(|asked| {
        asked.runs.lengths = vec![SignedDuration::from_hours(1_400); 20];
        asked.pools[0] = ("a", "m5.large", Some(70_000), Band::Under(20));
    });
    match dear {
        Unfit::NotWorthIt(why) => match *why {
            Blocker::SavesTooLittle { saving, .. } => assert_eq!(saving.micros() / 1_000_000, -4),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_not_cheaper_not_priced_or_does_not_fit_is_no_pool() {
    let dear = why_not(|asked| asked.pools[0].2 = Some(90_000));
    assert!(matches!(dear, Unfit::NotWorthIt(why) if matches!(*why, Blocker::SavesTooLittle { .. })));
    let unpriced = why_not(|asked| asked.pools[0].2 = None);
    assert_eq!(unpriced, Unfit::NotWorthIt(Box::new(Blocker::PriceUnknown { why: "no history".into() })));
    // A pool counts once, and a larger type is one, too.
    assert_eq!(refused(|asked| asked.pools[0] = asked.pools[1]), [Blocker::TooFewPools { found: 2, least: 3 }]);
    let mut larger = asked();
    larger.pools[0] = ("b", "m5.xlarge", Some(30_000), Band::Under(5));
    assert_eq!(chosen(&larger)[0].1, "m5.xlarge");
    let local = why_not(|asked| {
        asked.case.offer("m5.large").machine_type.local_disk_gib = Some(75);
        asked.pools[0].1 = "m5.xlarge";
    });
    assert_eq!(local, Unfit::Misfit(Misfit::TooSmall { what: Dimension::LocalDisk, needed: 75, usable: 0 }));
}

#[test]
fn a_database_and_whatever_holds_state_stays_on_demand() {
    let signs = vec![
        StateSign::Database { command: "postgres".into() },
        StateSign::DataVolume { id: "vol-1".into() },
        StateSign::InboundPeers { port: 5432 },
    ];
    let blockers = refused(|asked| asked.state = Some(signs.clone()));
    assert_eq!(blockers, [Blocker::HoldsState { signs: signs.clone() }]);
    let plain =
        "it holds state: it runs the database postgres, it has the data volume vol-1, others call it at port 5432";
    assert_eq!(blockers[0].to_string(), plain);
    let unknown = |fact: &str| vec![Blocker::FactUnknown { fact: fact.into() }];
    assert_eq!(refused(|asked| asked.state = None), unknown("whether it holds state"));
}

#[test]
fn what_is_not_known_of_its_runs_is_a_reason_each() {
    let unknown = |fact: &str| vec![Blocker::FactUnknown { fact: fact.into() }];
    assert_eq!(refused(|asked| asked.runs.retried = None), unknown("whether lost runs are begun again"));
    assert_eq!(refused(|asked| asked.runs.retried = Some(false)), [Blocker::NotRetried]);
    assert_eq!(refused(|asked| asked.runs.cpu_per_cent = None), unknown("how much of the CPU time was of runs"));
    assert_eq!(refused(|asked| asked.runs.cpu_per_cent = Some(94)), [Blocker::WorkOutsideRuns { per_cent: 94 }]);
    assert_eq!(refused(|asked| asked.runs.lengths.truncate(19)), [Blocker::TooFewRuns { runs: 19, least: 20 }]);
    assert_eq!(refused(|asked| asked.lifecycle = Lifecycle::Spot), [Blocker::NotOnDemand]);
    let early = refused(|asked| asked.case.record.hours.truncate(100));
    assert!(matches!(early[..], [Blocker::TooEarly { .. }]));
    assert_eq!(Policy::default().least_spot_pools, 3);
}

#[test]
fn a_machine_that_runs_half_of_the_time_saves_half() {
    let mut asked = asked();
    let begin = asked.case.record.hours[0].begin;
    let at = |hours: i64| begin + SignedDuration::from_hours(hours);
    // Measured for the first twelve hours of each day; the last day ends after them, so 336 of 660 hours.
    asked.case.record.stopped = (0..28).map(|day| Span { from: at(day * 24 + 12), to: at(day * 24 + 24) }).collect();
    asked.case.record.hours =
        asked.case.record.hours.into_iter().enumerate().filter(|(at, _)| at % 24 < 12).map(|(_, hour)| hour).collect();
    // 70,080,000 × 336 ÷ 660 and 29,200,000 × 336 ÷ 660 × 1.000373, down and up
    let saved = 35_677_090 - 14_870_999;
    assert_eq!(judged(&asked).unwrap().saving.as_ref().unwrap().list_per_month, Usd::from_micros(saved));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn longer_runs_and_more_interruptions_never_save_more(
        lengths in vec(1..400_i64, 20..40), longer in 0..400_i64, band in 1..20_u8, above in 0..20_u8,
    ) {
        let saved = |lengths: &[i64], band: u8| {
            let mut asked = asked();
            asked.case.record.hours.truncate(7 * 24);
            asked.runs.lengths = lengths.iter().map(|hours| SignedDuration::from_hours(*hours)).collect();
            asked.pools.iter_mut().for_each(|pool| pool.3 = Band::Under(band));
            judged(&asked).ok().map(|recommended| recommended.saving.unwrap().list_per_month)
        };
        let before = saved(&lengths, band);
        prop_assert!(saved(&lengths, band + above) <= before, "of interruptions");
        let longest = *lengths.iter().max().unwrap();
        let mut all_longer = lengths.clone();
        all_longer.iter_mut().for_each(|hours| *hours = longest + longer);
        prop_assert!(saved(&all_longer, band) <= before, "of all runs");
    }
}
