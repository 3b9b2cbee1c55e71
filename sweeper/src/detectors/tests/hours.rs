//! Classes that rest on hours: machines that are barely used, and those that rest in the same hours of each week.

use super::*;
use crate::{
    inventory::Schedulers,
    rollup::{Activity, Counter, Sum},
    snapshot::{HourOfWeek, Hours, HoursCase, HoursPolicy, ProviderFacts, Subject, Week, WeekCase},
};
use std::sync::Arc;

/// A machine whose hours all were as busy as they may be.
fn with_hours(change: fn(&mut HoursCase)) -> MachineInputs {
    let hours = Hours {
        from: at(-86_400),
        until: at(0),
        measured: 24,
        cpu_ns_per_s: 100,
        disk_bytes_per_s: 10,
        network_bytes_per_s: 10,
        gpu_ns_per_s: 1,
    };
    let policy = HoursPolicy { after_s: 86_400, cpu_ns_per_s: 100, bytes_per_s: 10, gpu_ns_per_s: 1 };
    let mut case = HoursCase { hours, policy };
    change(&mut case);
    MachineInputs { hours: Some(case), ..running() }
}

#[test]
fn a_barely_used_machine_waits_and_none_of_its_hours_was_busier_than_that() {
    let of = |inputs: &MachineInputs, verdict| {
        let answer = answer(Class::BarelyUsed, inputs, &Judgement { verdict, ..blind() });
        match answer {
            Answer::Refuted { because } => Some(because),
            Answer::Confirmed { since, until, work: None } => Some(format!("{since} {until}")),
            _ => None,
        }
    };
    let all = with_hours(|_| {});
    assert_eq!(of(&all, Verdict::Waiting), Some(format!("{} {}", at(-86_400), at(0))));
    assert_eq!(of(&all, Verdict::Active), None, "at this moment it works");
    assert_eq!(of(&all, Verdict::Unknown), None);
    assert_eq!(of(&all, Verdict::Idle).as_deref(), Some("the machine is idle as a whole"));
    assert_eq!(of(&running(), Verdict::Waiting), None, "nobody asked what it did");
    assert_eq!(of(&with_hours(|case| case.hours.measured = 23), Verdict::Waiting), None, "an hour was not seen");
    let busier: [fn(&mut HoursCase); 4] = [
        |case| case.hours.cpu_ns_per_s += 1,
        |case| case.hours.disk_bytes_per_s += 1,
        |case| case.hours.network_bytes_per_s += 1,
        |case| case.hours.gpu_ns_per_s += 1,
    ];
    for change in busier {
        for verdict in [Verdict::Waiting, Verdict::Active, Verdict::Unknown] {
            let mut inputs = with_hours(change);
            inputs.hours.as_mut().expect("hours").hours.measured = 1;
            let because = of(&inputs, verdict).expect("refuted");
            assert!(because.starts_with("a full hour of the last 1 d had up to"), "{because}");
        }
    }
    let unread = MachineInputs { failed: vec![SnapshotPart::Inventory], ..all };
    assert_eq!(of(&unread, Verdict::Waiting), None, "whether it runs was not read");
}

/// A machine that worked from Monday to Friday in each of four weeks, up to an hour ago.
fn with_week(change: fn(&mut WeekCase)) -> MachineInputs {
    let policy = HoursPolicy { after_s: 86_400, cpu_ns_per_s: 100, bytes_per_s: 10, gpu_ns_per_s: 1 };
    let hours = (0..168).map(|hour| if hour < 120 { HourOfWeek(2, 2) } else { HourOfWeek(4, 0) }).collect();
    let week = Week { from: at(-28 * 86_400), until: at(-3_600), policy, hours };
    let mut case = WeekCase { week, least_hours: 48 };
    change(&mut case);
    MachineInputs { week: Some(case), ..running() }
}

#[test]
fn quiet_hours_are_enough_hours_of_the_week_of_a_machine_that_works_in_others() {
    let active = Judgement { verdict: Verdict::Active, ..blind() };
    let of = |inputs: &MachineInputs| match answer(Class::QuietHours, inputs, &active) {
        Answer::Refuted { because } => Some(because),
        Answer::Confirmed { since, until, work: None } => Some(format!("{since} {until}")),
        _ => None,
    };
    let confirmed = Some(format!("{} {}", at(-28 * 86_400), at(-3_600)));
    assert_eq!(of(&with_week(|_| {})), confirmed);
    assert_eq!(
        answer(Class::QuietHours, &with_week(|_| {}), &blind()),
        Answer::NotKnown,
        "something is not read of it"
    );
    assert_eq!(of(&running()), None, "nobody knows its weeks");
    let few = of(&with_week(|case| case.least_hours = 49)).expect("refuted");
    assert!(few.ends_with("from Saturday 00:00 to Monday 00:00 (UTC): 48 of 168 hours"), "{few}");
    let unseen = with_week(|case| (case.least_hours, case.week.hours[0]) = (49, HourOfWeek(2, 0)));
    assert_eq!(of(&unseen), None, "more hours may be quiet");
    let never = of(&with_week(|case| case.week.hours.fill(HourOfWeek(4, 0))));
    assert_eq!(never.as_deref(), Some("it worked in no hour of these weeks"));
    assert_eq!(of(&with_week(|case| case.week.hours.clear())), None, "not what a week is");
    // The machine is judged at its sixtieth second.
    let until = |seconds: i64| {
        let mut inputs = with_week(|_| {});
        inputs.week.as_mut().expect("a week").week.until = at(60 - seconds);
        of(&inputs).is_some()
    };
    assert!(until(72 * 3_600) && !until(72 * 3_600 + 1), "an older week says nothing of today");
    let unread = MachineInputs { failed: vec![SnapshotPart::Inventory], ..with_week(|_| {}) };
    assert_eq!(of(&unread), None, "whether it runs was not read");
}

#[test]
fn the_cost_of_quiet_hours_is_their_part_of_the_machines() {
    let cost = Cost::Known { per_hour: HourlyRate::from_micros(1_680_000), as_of: None };
    let subject = Subject {
        id: "aws:123456789012:eu-central-1:i-1".parse().expect("a key"),
        instance: None,
        node: None,
        coverage: Coverage::Complete,
        groups_are_known: true,
        schedulers: Arc::new(Schedulers::of_no_machine()),
    };
    let machine =
        Machine { subject, inputs: with_week(|_| {}), judgement: blind(), cost, provider: ProviderFacts::default() };
    let of = |class| Detection { class, on: On::Machine(&machine), answer: Answer::NotKnown }.cost();
    assert_eq!(of(Class::QuietHours), Cost::Known { per_hour: HourlyRate::from_micros(480_000), as_of: None });
    assert_eq!(of(Class::BarelyUsed), machine.cost);
    let unknown = Machine { inputs: running(), ..machine };
    let cost = Detection { class: Class::QuietHours, on: On::Machine(&unknown), answer: Answer::NotKnown }.cost();
    assert!(matches!(cost, Cost::Unknown { .. }), "not known, and not zero: {cost:?}");
}

const COUNTERS: [Counter; 6] = [
    Counter::Cpu,
    Counter::DiskRead,
    Counter::DiskWritten,
    Counter::NetworkReceived,
    Counter::NetworkSent,
    Counter::GpuBusy,
];

prop_compose! {
    /// An hour of which each signal was measured for some of the time, if at all, and was near the threshold.
    fn any_hour()(
        sums in prop::collection::vec(
            prop::option::weighted(0.9, (0_u64..800_000, prop_oneof![3 => Just(3_600_000_u64), 1 => 0_u64..4_000_000])),
            COUNTERS.len(),
        ),
    ) -> Activity {
        let measured = COUNTERS.into_iter().zip(sums).filter_map(|(counter, sum)| Some((counter, sum?)));
        let sums = measured.map(|(counter, (amount, ms))| (counter, Sum(amount, ms))).collect();
        Activity { sums, ..Activity::default() }
    }
}

/// What is said of a machine that waits, and was there for these hours.
fn is_barely_used(hours: &[Activity], has_gpus: bool) -> bool {
    let seconds = 3_600 * u64::try_from(hours.len()).expect("few");
    let policy = HoursPolicy { after_s: seconds, cpu_ns_per_s: 100, bytes_per_s: 100, gpu_ns_per_s: 100 };
    let case = HoursCase { hours: Hours::of(at(-86_400), at(0), has_gpus, hours), policy };
    let inputs = MachineInputs { hours: Some(case), ..running() };
    let waits = Judgement { verdict: Verdict::Waiting, ..blind() };
    matches!(answer(Class::BarelyUsed, &inputs, &waits), Answer::Confirmed { .. })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// The oracle is the class's own sentence: each signal was measured for nine tenths of each hour, and none was above its threshold in any.
    #[test]
    fn barely_used_is_what_was_measured_in_every_hour_and_low_in_all_of_them(
        hours in prop::collection::vec(any_hour(), 1..6),
        has_gpus: bool,
    ) {
        let per_s = |hour: &Activity, counter| hour.sum(counter).map_or(0.0, |Sum(amount, ms)| {
            let seconds = if ms < 3_240_000 { 3_600.0 } else { ms as f64 / 1_000.0 };
            // Whole units a second are compared.
            (amount as f64 / seconds).trunc()
        });
        let expected = hours.iter().all(|hour| {
            let needed = &COUNTERS[..if has_gpus { 6 } else { 5 }];
            let measured = |counter: &Counter| hour.sum(*counter).is_some_and(|Sum(_, ms)| ms >= 3_240_000);
            let disk = per_s(hour, Counter::DiskRead) + per_s(hour, Counter::DiskWritten);
            let network = per_s(hour, Counter::NetworkReceived) + per_s(hour, Counter::NetworkSent);
            let low = [per_s(hour, Counter::Cpu), disk, network, per_s(hour, Counter::GpuBusy)].iter().all(|rate| *rate <= 100.0);
            needed.iter().all(measured) && low
        });
        prop_assert_eq!(is_barely_used(&hours, has_gpus), expected);
    }

    /// More work never makes a machine barely used, and neither does an hour or a signal that was not seen.
    #[test]
    fn neither_more_work_nor_less_evidence_makes_a_machine_barely_used(
        hours in prop::collection::vec(any_hour(), 1..6),
        at in 0_usize..6,
        counter in prop::sample::select(COUNTERS.to_vec()),
        more in 0_u64..1_000_000,
    ) {
        let was = is_barely_used(&hours, true);
        let at = at % hours.len();
        let mut busier = hours.clone();
        busier[at].sums.entry(counter).and_modify(|sum| sum.0 += more);
        prop_assert!(was || !is_barely_used(&busier, true));
        let mut unseen = hours.clone();
        unseen[at].sums.remove(&counter);
        prop_assert!(was || !is_barely_used(&unseen, true) || hours[at].sum(counter).is_none());
        prop_assert!(!is_barely_used(&unseen, true), "every signal is needed");
    }

    /// More work never makes more hours quiet.
    #[test]
    fn more_work_never_makes_more_hours_of_the_week_quiet(
        busy in prop::collection::vec(any::<bool>(), 28),
        also in 0_usize..672,
    ) {
        let policy = HoursPolicy { after_s: 3_600, cpu_ns_per_s: 100, bytes_per_s: 100, gpu_ns_per_s: 100 };
        let of = |is_busy: &dyn Fn(usize) -> bool| {
            let hours: Vec<_> = (0..672).map(|hour| {
                let cpu = if is_busy(hour) { 400_000 } else { 0 };
                let sums = COUNTERS.into_iter().map(|counter| {
                    (counter, Sum(if counter == Counter::Cpu { cpu } else { 0 }, 3_600_000))
                });
                (at(i64::try_from(hour).expect("few") * 3_600), Activity { sums: sums.collect(), ..Activity::default() })
            }).collect();
            Week::of((at(0), at(0)), policy, true, hours.iter().map(|(begin, hour)| (*begin, hour))).quiet_hours()
        };
        // In stretches of a day each.
        let before = of(&|hour| busy[hour / 24]);
        let after = of(&|hour| busy[hour / 24] || hour == also);
        prop_assert!(after <= before, "{} {}", before, after);
    }
}
