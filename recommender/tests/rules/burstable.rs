//! Burstable types: cases computed by hand.

use recommender::{
    backtest::{self, Replayed},
    blocker::Unfit,
    catalogue::Burst,
    fit::{Dimension, Misfit, Shortage},
};

use crate::support::{CREDIT_MS, Case, GIB, WEEKS, judged, record, to, too_small, why_not};

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

#[test]
fn a_machine_that_the_hypervisor_held_back_needs_more_than_it_shows() {
    // Of 2 vCPUs 20 thousandths may be withheld; a t3.large has as many vCPUs, but may not use them all of the time.
    let stolen = record(WEEKS, |at, hour| hour.steal_ms = Some(if at == 9 { 72_001 } else { 0 }));
    let case = Case::of("m5.large", stolen).offering(&["m5.large", "t3.large"]);
    assert_eq!(why_not(&case, "t3.large"), Unfit::Misfit(Misfit::Understated { shortage: Shortage::Stolen(21) }));
}

/// The replay by itself, of what the rule would not get as far as.
#[test]
fn the_replay_finds_the_first_hour_that_would_have_failed() {
    let case = Case::of("m5.2xlarge", record(0, |_, _| ()));
    let of = |name: &str| &case.catalogue.offer(name).unwrap().machine_type;
    let failed = |record: &recommender::demand::Record, name: &str| {
        let failure = backtest::replay(record, of("m5.2xlarge"), of(name)).unwrap_err();
        (failure.at, failure.what, failure.needed, failure.offered)
    };
    let spike = record(48, |at, hour| {
        if at >= 30 {
            hour.memory_peak_bytes = Some(17 * GIB);
        }
    });
    assert_eq!(failed(&spike, "m5.xlarge"), (spike.hours[30].begin, Dimension::Memory, 17 * GIB, 16 * GIB));
    let busy = record(48, |at, hour| {
        hour.milli_cores = [(if at == 7 { 4_001 } else { 100 }, 3_600_000)].into_iter().collect();
    });
    assert_eq!(failed(&busy, "m5.xlarge"), (busy.hours[7].begin, Dimension::Cpu, 4_001, 4_000));
    // Credits are kept up to a bound: 100 hours at 500 thousandths below the baseline would earn 3,000 of them, and 864 are kept.
    // 15 hours at 1,600 need 900.
    let long = record(120, |at, hour| {
        if at >= 100 {
            hour.milli_cores = [(1_600, 3_600_000)].into_iter().collect();
        }
    });
    let (at, what, needed, offered) = failed(&long, "t3.large");
    // 14 hours use 840 of them, and 24 are left.
    assert_eq!(
        (at, what, needed, offered),
        (long.hours[114].begin, Dimension::Credits, 60 * CREDIT_MS, 24 * CREDIT_MS)
    );
    let calm = backtest::replay(&record(24, |_, _| ()), of("m5.2xlarge"), of("m5.large")).unwrap();
    // 100 of 2,000 thousandths, and 2 of 8 GiB.
    let expected = Replayed { hours: 24, cpu_per_mille: 50, memory_per_mille: Some(250), fewest_credits_ms: None };
    assert_eq!(calm, expected);
}
