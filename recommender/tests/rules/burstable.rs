//! Burstable types: cases computed by hand.

use recommender::{
    blocker::Unfit,
    catalogue::Burst,
    fit::{Dimension, Misfit},
};

use crate::support::{Case, WEEKS, judged, record, to, too_small, why_not};

#[test]
fn a_burstable_type_is_judged_by_its_baseline_and_its_credits() {
    let load = |milli_cores: u64| {
        let steady = record(WEEKS, move |_, hour| hour.milli_cores = [(milli_cores, 3_600_000)].into_iter().collect());
        Case::of("m5.large", steady).offering(&["m5.large", "t3.large"])
    };
    // A t3.large may use 30 % of 2 vCPUs for ever: 600 thousandths, less the headroom 480.
    assert_eq!(to(&load(480)), "t3.large");
    assert_eq!(why_not(&load(700), "t3.large"), too_small(Dimension::Baseline, 700, 480), "35 % of 2 vCPUs");
    // The same at a baseline of 20 %.
    let mut twenty = load(700);
    twenty.offer("t3.large").machine_type.burst =
        Burst::Credits { baseline_milli_cores: 400, most_kept_ms: 34_560_000 };
    assert_eq!(why_not(&twenty, "t3.large"), too_small(Dimension::Baseline, 700, 320));
    // Nobody said where the baseline is.
    let mut unsaid = load(100);
    unsaid.offer("t3.large").machine_type.burst = Burst::Unknown;
    assert_eq!(why_not(&unsaid, "t3.large"), Unfit::Misfit(Misfit::BaselineUnknown));
}

#[test]
fn credits_are_replayed_hour_by_hour() {
    // Quiet for 23 hours, then an hour at 1,600 thousandths. Above the baseline of 600 that are 1,000 for an hour: 3,600,000 ms. 23 hours at 100 earn
    // 500 × 23 hours = 41,400,000 ms, and 37,800,000 are left.
    let daily = |at: u32, milli_cores: u64| {
        let record = record(WEEKS, move |hour_at, hour| {
            if hour_at % 24 == at {
                hour.milli_cores = [(milli_cores, 3_600_000)].into_iter().collect();
            }
        });
        Case::of("m5.large", record).offering(&["m5.large", "t3.large"])
    };
    let evidence = serde_json::to_value(judged(&daily(23, 1_600)).unwrap().evidence).unwrap();
    assert_eq!(evidence["replayed"]["fewest_credits_ms"], 0, "at the begin");
    // The same in the first hour: there are no credits yet, as there would be none after the change.
    match why_not(&daily(0, 1_600), "t3.large") {
        Unfit::Failed(failure) => {
            assert_eq!((failure.what, failure.needed, failure.offered), (Dimension::Credits, 3_600_000, 0));
        }
        other => panic!("{other:?}"),
    }
    // In the third hour two hours have earned 2 × 500 × 3,600 = 3,600,000 ms: just enough. At 1,601 thousandths 3,603,600 would be needed.
    assert_eq!(to(&daily(2, 1_600)), "t3.large");
    let Unfit::Failed(failure) = why_not(&daily(2, 1_601), "t3.large") else { panic!("it fits") };
    assert_eq!((failure.needed, failure.offered), (3_603_600, 3_600_000));
    // A gap before it: what was earned before counts no more.
    let mut gap = daily(23, 1_600);
    gap.record.hours.remove(22);
    assert!(matches!(why_not(&gap, "t3.large"), Unfit::Failed(_)));
}
