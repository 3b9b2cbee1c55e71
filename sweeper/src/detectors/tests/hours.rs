//! Classes that rest on hours: machines that are barely used, and those that rest in the same hours of each week.

use super::*;
use crate::{
    inventory::Schedulers,
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
    let of = |inputs: &MachineInputs| match answer(Class::QuietHours, inputs, &blind()) {
        Answer::Refuted { because } => Some(because),
        Answer::Confirmed { since, until, work: None } => Some(format!("{since} {until}")),
        _ => None,
    };
    let confirmed = Some(format!("{} {}", at(-28 * 86_400), at(-3_600)));
    assert_eq!(of(&with_week(|_| {})), confirmed);
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
}
