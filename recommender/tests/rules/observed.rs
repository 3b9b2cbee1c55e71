//! What was observed: whether it is enough, and what was not measured.

use jiff::{SignedDuration, tz::TimeZone};
use model::Usd;
use recommender::{
    blocker::{Blocker, Unfit},
    demand::{Hour, Record, Span},
    fit::{Dimension, Misfit, Shortage},
    recommendation::Doubt,
};

use crate::support::{BEGIN, Case, GIB, WEEKS, blockers, judged, record, to, too_small, why_not};

#[test]
fn it_is_too_early_before_seven_days_with_a_weekend_and_without_many_gaps() {
    let early = |case: &Case| match &blockers(case)[..] {
        [Blocker::TooEarly { observed }] => *observed,
        other => panic!("{other:?}"),
    };
    let observed = early(&Case::of("m5.2xlarge", record(6 * 24 + 23, |_, _| ())));
    assert_eq!((observed.days, observed.weekend, observed.gaps), (6, true, 0));
    assert_eq!(to(&Case::of("m5.2xlarge", record(7 * 24, |_, _| ()))), "t3.large");
    // From Monday on, all of Saturday 10 and Sunday 11 October missing: by gaps and by the weekend; then only a quarter of Sunday, of which 4 hours may be.
    let without = |from: u32, to: u32| {
        let mut record = record(WEEKS / 4, |_, _| ());
        record.hours.retain(|hour| !(from..to).contains(&u32::try_from(hours_since_begin(hour)).unwrap()));
        Case::of("m5.2xlarge", record)
    };
    let observed = early(&without(5 * 24, 7 * 24));
    assert_eq!((observed.days, observed.weekend), (5, false));
    let observed = early(&without(6 * 24, 6 * 24 + 5));
    assert_eq!((observed.days, observed.weekend, observed.gaps, observed.gaps_per_cent()), (7, false, 5, 3));
    assert_eq!(to(&without(6 * 24, 6 * 24 + 4)), "t3.large");
    // Nine hours of 168 are 5.36 %.
    let observed = early(&without(24, 33));
    assert_eq!((observed.weekend, observed.gaps, observed.gaps_per_cent()), (true, 9, 6));
    assert!(
        blockers(&without(24, 33))[0].to_string().starts_with("too early to say: 7 days were observed with 6 % gaps")
    );
}

fn hours_since_begin(hour: &Hour) -> i64 {
    hour.begin.duration_since(BEGIN.parse().unwrap()).as_hours()
}

#[test]
fn nights_and_weekends_that_a_machine_spends_stopped_are_no_gaps_and_weekends_are_local() {
    let mut record = record(WEEKS, |_, _| ());
    let at = |hours: i64| record.hours[0].begin + SignedDuration::from_hours(hours);
    record.stopped = (0..28).map(|day| Span { from: at(day * 24 + 20), to: at(day * 24 + 30) }).collect();
    let stopped = record.stopped.clone();
    record.hours.retain(|hour| {
        let span = Span { from: hour.begin, to: hour.begin + SignedDuration::from_hours(1) };
        !stopped.iter().any(|stopped| stopped.overlaps(span))
    });
    let observed = record.observed();
    assert_eq!((observed.gaps, observed.weekend), (0, true));
    assert_eq!(to(&Case::of("m5.2xlarge", record.clone())), "t3.large");
    // It ran for 398 of the 668 hours between the first and the last one, and saves for that part of a month alone: 219,584,000 × 398 ÷ 668.
    let recommended = judged(&Case::of("m5.2xlarge", record.clone())).unwrap();
    assert_eq!(recommended.saving.unwrap().list_per_month, Usd::from_micros(130_829_988));
    record.stopped.clear();
    assert!(matches!(blockers(&Case::of("m5.2xlarge", record))[..], [Blocker::TooEarly { .. }]), "nobody knows why");
    // Auckland is 13 hours ahead: its Saturday 10 October begins on Friday at 11:00 UTC. Seven days from Friday 18:00 UTC on hold no whole weekend of its own.
    let shifted = |zone: TimeZone| {
        let all = crate::support::record(12 * 24, |_, _| ());
        Record { earlier: Vec::new(), hours: all.hours[4 * 24 + 18..].to_vec(), stopped: Vec::new(), zone }.observed()
    };
    assert!(shifted(TimeZone::UTC).weekend);
    assert!(!shifted(TimeZone::get("Pacific/Auckland").unwrap()).weekend);
}

/// Off from 19:50 to 05:55, which lists show from 20:05 to 06:10: of the hours from 19:00 and from 5:00 on only a part is measured.
#[test]
fn an_hour_in_which_a_machine_was_stopped_or_started_is_neither_measured_nor_missing() {
    let at = |minutes: i64| record(1, |_, _| ()).hours[0].begin + SignedDuration::from_mins(minutes);
    let make = |shown_min: i64| {
        let mut record = record(WEEKS, |at, hour| {
            if matches!(at % 24, 5 | 19) {
                hour.milli_cores = [(100, 300_000)].into_iter().collect();
            }
        });
        record.hours.retain(|hour| (5..20).contains(&(hours_since_begin(hour) % 24)));
        let day = 24 * 60;
        let shown = (0..28).map(|number| number * day + shown_min);
        record.stopped = shown.map(|from| Span { from: at(from), to: at(from + 10 * 60 + 5) }).collect();
        record
    };
    let observed = make(20 * 60 + 5).observed();
    // From 06:00 on the first day to 18:59 on the last one, 13 hours of each day.
    assert_eq!((observed.span_hours, observed.hours, observed.gaps, observed.weekend), (661, 364, 0, true));
    assert_eq!(to(&Case::of("m5.2xlarge", make(20 * 60 + 5))), "t3.large");
    assert_eq!(make(20 * 60).observed().gaps, 0, "shown at the full hour, and to 06:05");
    // Where nobody saw a stop for longer before, it is not known what became of these hours.
    assert_eq!(make(21 * 60 + 5).observed().gaps, 2 * 27);
    // Nor of an hour of which no agent measured anything.
    let mut unseen = make(20 * 60 + 5);
    unseen.hours.retain(Hour::is_whole);
    assert_eq!(unseen.observed().gaps, 27, "of those from 19:00 on; in those from 20:00 on a list shows it stopped");
    // What was measured in a part counts: work of forty minutes each night.
    let of = |change: fn(&mut Hour)| {
        let mut record = make(20 * 60 + 5);
        record.hours.iter_mut().filter(|hour| !hour.is_whole()).for_each(change);
        Case::of("m5.2xlarge", record).offering(&["m5.2xlarge", "m5.xlarge"])
    };
    assert_eq!(to(&of(|_| ())), "m5.xlarge");
    let full = of(|hour| hour.milli_cores = [(4_100, 2_400_000)].into_iter().collect());
    assert!(matches!(why_not(&full, "m5.xlarge"), Unfit::Misfit(_) | Unfit::Failed(_)));
    let filled = of(|hour| hour.memory_peak_bytes = Some(13 * GIB));
    assert_eq!(why_not(&filled, "m5.xlarge"), too_small(Dimension::Memory, 13 * GIB, 13_743_895_347));
    let killed = of(|hour| hour.oom_kills = Some(1));
    let shortage = Shortage::OomKills(2 * 28);
    assert_eq!(why_not(&killed, "m5.xlarge"), Unfit::Misfit(Misfit::Understated { shortage }));
}

#[test]
fn what_some_hours_alone_show_speaks_against_less() {
    // One hour of a hundred tells it.
    let case = |change: fn(&mut Hour)| {
        let record = record(WEEKS, |at, hour| {
            (hour.throttled_ms, hour.run_queue_delay_ms, hour.rdma_bytes) = (None, None, None);
            if at % 100 == 5 {
                change(hour);
            }
        });
        Case::of("m5.2xlarge", record).offering(&["m5.2xlarge", "m5.xlarge"])
    };
    let understated = |shortage| Unfit::Misfit(Misfit::Understated { shortage });
    let throttled = case(|hour| hour.throttled_ms = Some(288_001));
    assert_eq!(why_not(&throttled, "m5.xlarge"), understated(Shortage::Throttled(81)));
    let waits = case(|hour| hour.run_queue_delay_ms = Some(2_880_001));
    assert_eq!(why_not(&waits, "m5.xlarge"), understated(Shortage::Waiting(801)));
    assert_eq!(blockers(&case(|hour| hour.rdma_bytes = Some(1))), [Blocker::Rdma { bytes: 7 }]);
    // Little in few hours is no proof that it was little in all.
    let little = judged(&case(|hour| hour.run_queue_delay_ms = Some(0))).unwrap();
    assert!(little.confidence.doubts.contains(&Doubt::WaitsNotMeasured));
    // An hour that is no whole one shows it as well.
    let mut part = case(|_| ());
    part.record.hours[5].milli_cores = [(100, 300_000)].into_iter().collect();
    part.record.hours[5].throttled_ms = Some(288_001);
    assert_eq!(why_not(&part, "m5.xlarge"), understated(Shortage::Throttled(81)));
}

#[test]
fn what_was_not_measured_is_never_taken_for_nothing() {
    type Change = fn(&mut Hour);
    let measured_all_but = |change: Change| {
        Case::of("m5.2xlarge", record(WEEKS, move |_, hour| change(hour))).offering(&["m5.2xlarge", "m5.xlarge"])
    };
    let unmeasured = |what: &str| vec![Blocker::NotMeasured { what: what.to_owned() }];
    assert_eq!(blockers(&measured_all_but(|hour| hour.memory_peak_bytes = None)), unmeasured("memory in use"));
    let case = measured_all_but(|hour| hour.milli_cores = [].into_iter().collect());
    assert!(blockers(&case).contains(&unmeasured("CPU use")[0]));
    let not_measured = |what| Unfit::Misfit(Misfit::NotMeasured { what });
    for (change, what) in [
        ((|hour| hour.oom_kills = None) as Change, Dimension::Memory),
        (|hour| hour.swap_pages = None, Dimension::Memory),
        (|hour| hour.steal_ms = None, Dimension::Cpu),
        (|hour| hour.network = None, Dimension::Network),
        (|hour| hour.disk = None, Dimension::Disk),
        (|hour| hour.disk_operations = None, Dimension::Operations),
    ] {
        assert_eq!(why_not(&measured_all_but(change), "m5.xlarge"), not_measured(what));
    }
    // Measured in 94 % of the hours is not measured.
    let case = Case::of(
        "m5.2xlarge",
        record(WEEKS, |at, hour| {
            if at % 100 < 6 {
                hour.memory_peak_bytes = None;
            }
        }),
    );
    assert_eq!(blockers(&case), unmeasured("memory in use"));
    // Where nobody measured how long tasks waited, it is said.
    let recommended = judged(&measured_all_but(|hour| hour.run_queue_delay_ms = None)).unwrap();
    assert!(recommended.confidence.doubts.contains(&Doubt::WaitsNotMeasured));
}
