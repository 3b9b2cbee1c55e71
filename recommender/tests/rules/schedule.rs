//! The *schedule* rule: cases computed by hand.

use jiff::{Timestamp, ToSpan, civil::DateTime, tz::TimeZone};
use model::{HourlyRate, Usd, machine::Machine};
use proptest::{collection::vec, prelude::*};
use recommender::{
    blocker::{Blocker, NotRecommended},
    catalogue::{Prices, Rate},
    demand::Span,
    policy::Policy,
    recommendation::{Change, Doubt, Level, Recommendation},
    rules::schedule::{self, ScheduleInput},
    week::{Off, WeekHour},
};

use crate::support::{Case, price, record};

/// What the tests change: an m5.2xlarge that people use on working days from 8 to 18 o'clock, for six weeks from Monday 5 October 2026 on.
struct Asked {
    machine: Machine,
    prices: Prices,
    zone: TimeZone,
    observed: Vec<Span>,
    used: Option<Vec<Span>>,
    stopped: Vec<Span>,
    timers: Option<u32>,
}

fn zone(name: &str) -> TimeZone {
    TimeZone::get(name).unwrap()
}

/// Day after that Monday, and time of day, by the clock of a zone.
fn local(zone: &TimeZone, day: i64, hour: i8, minute: i8) -> Timestamp {
    let at: DateTime = "2026-10-05T00:00".parse().unwrap();
    let at = at.checked_add(day.days()).unwrap();
    zone.to_timestamp(at.with().hour(hour).minute(minute).build().unwrap()).unwrap()
}

/// The same on these days.
fn each(zone: &TimeZone, days: impl Iterator<Item = i64>, from: (i8, i8), to: (i8, i8)) -> Vec<Span> {
    let span = |day| Span { from: local(zone, day, from.0, from.1), to: local(zone, day, to.0, to.1) };
    days.map(span).collect()
}

fn working_days(weeks: i64) -> impl Iterator<Item = i64> {
    (0..weeks * 7).filter(|day| day % 7 < 5)
}

fn asked(weeks: i64) -> Asked {
    let berlin = zone("Europe/Berlin");
    Asked {
        machine: Case::of("m5.2xlarge", record(0, |_, _| ())).machine,
        prices: price(384_000),
        observed: vec![Span { from: local(&berlin, 0, 0, 0), to: local(&berlin, weeks * 7, 0, 0) }],
        used: Some(each(&berlin, working_days(weeks), (8, 0), (18, 0))),
        stopped: Vec::new(),
        timers: Some(0),
        zone: berlin,
    }
}

fn judged(asked: &Asked) -> Result<Recommendation, NotRecommended> {
    let resource = "aws:123456789012:us-east-1:i-0123456789abcdef0".parse().unwrap();
    let input = ScheduleInput {
        resource: &resource,
        machine: &asked.machine,
        prices: &asked.prices,
        zone: &asked.zone,
        observed: &asked.observed,
        used: asked.used.as_deref(),
        stopped: &asked.stopped,
        timers: asked.timers,
    };
    schedule::recommend(&input, &Policy::default())
}

fn off(asked: &Asked) -> Vec<String> {
    match judged(asked).unwrap().change {
        Change::Schedule { off, .. } => off.iter().map(|Off { stop, start }| format!("{stop} to {start}")).collect(),
        other => panic!("{other:?}"),
    }
}

fn blockers(asked: &Asked) -> Vec<Blocker> {
    judged(asked).unwrap_err().blockers
}

const NIGHTS: [&str; 5] = [
    "Monday 19:00 to Tuesday 07:00",
    "Tuesday 19:00 to Wednesday 07:00",
    "Wednesday 19:00 to Thursday 07:00",
    "Thursday 19:00 to Friday 07:00",
    "Friday 19:00 to Monday 07:00",
];

#[test]
fn office_hours_stay_the_same_when_the_clock_is_changed() {
    // On 25 October the clock goes back: what begins at 06:00 UTC begins at 07:00 UTC from then on.
    let berlin = asked(6);
    assert_eq!(off(&berlin), NIGHTS);
    let recommended = judged(&berlin).unwrap();
    // Four nights of 12 hours and a weekend of 60 are 108 of 168, six times; 25 October has an hour more, at night: 649 of 1,009. 280,320,000 × 649 ÷ 1,009
    assert_eq!(recommended.saving.as_ref().unwrap().list_per_month, Usd::from_micros(180_304_935));
    assert!(matches!(recommended.change, Change::Schedule { zone, .. } if zone == "Europe/Berlin"));
    assert_eq!(
        (recommended.confidence.level, recommended.confidence.doubts),
        (Level::Medium, vec![Doubt::FewWeeks { weeks: 6 }])
    );
    // By the clock of UTC the hours from 6 to 17 are used in some weeks.
    let utc = Asked { zone: TimeZone::UTC, ..asked(6) };
    assert_eq!(off(&utc)[0], "Monday 18:00 to Tuesday 05:00");
    // And in spring: 29 March 2027 is 25 weeks later.
    let later = asked(27);
    assert_eq!(off(&later), NIGHTS);
    assert_eq!(judged(&later).unwrap().confidence.level, Level::High);
}

#[test]
fn a_zone_of_half_hours_keeps_whole_hours_around_what_is_used() {
    let kolkata = zone("Asia/Kolkata");
    let mut asked = asked(6);
    asked.observed = vec![Span { from: local(&kolkata, 0, 0, 0), to: local(&kolkata, 42, 0, 0) }];
    asked.used = Some(each(&kolkata, working_days(6), (9, 30), (17, 15)));
    asked.zone = kolkata;
    // 9 to 18, with an hour before and after.
    assert_eq!(off(&asked)[0], "Monday 19:00 to Tuesday 08:00");
}

#[test]
fn a_job_each_week_is_kept_and_one_at_an_irregular_time_makes_no_schedule() {
    let mut weekly = asked(6);
    let night = each(&weekly.zone, (0..6).map(|week| week * 7 + 2), (3, 0), (3, 20));
    weekly.used.as_mut().unwrap().extend(night.clone());
    // Between 05:00 and 07:00 there are two hours: too few for a stop.
    assert_eq!(off(&weekly)[1..3], ["Tuesday 19:00 to Wednesday 02:00", "Wednesday 19:00 to Thursday 07:00"]);
    let mut once = asked(6);
    once.used.as_mut().unwrap().push(night[3]);
    let refused = blockers(&once);
    assert_eq!(refused, [Blocker::Irregular { at: night[3].from }]);
    assert!(refused[0].to_string().contains("2026-10-28T02:00:00Z"), "{}", refused[0]);
    // So it is where four weeks are all that was seen: each is held against the schedule of the three others.
    let mut shortest = asked(4);
    shortest.used.as_mut().unwrap().push(night[3]);
    assert_eq!(blockers(&shortest), [Blocker::Irregular { at: night[3].from }]);
    // Each week at another hour of the night: an hour beside those of other weeks is within the slack, three hours beside them are not.
    let at_hours = |hours: [i8; 6]| {
        let mut drifting = asked(6);
        let drift = (0..).zip(hours).map(|(week, hour)| {
            let at = |minute| local(&drifting.zone, week * 7 + 2, hour, minute);
            Span { from: at(0), to: at(5) }
        });
        let drift: Vec<_> = drift.collect();
        drifting.used.as_mut().unwrap().extend(drift);
        drifting
    };
    assert_eq!(off(&at_hours([0, 1, 2, 3, 4, 5]))[1], "Tuesday 19:00 to Tuesday 23:00");
    let irregular = at_hours([0, 3, 6, 20, 23, 3]);
    assert_eq!(blockers(&irregular), [Blocker::Irregular { at: local(&irregular.zone, 2, 0, 0) }]);
}

#[test]
fn what_was_not_seen_in_four_weeks_is_not_switched_off() {
    assert_eq!(blockers(&asked(3)), [Blocker::TooFewWeeks { weeks: 3, least: 4 }]);
    assert_eq!(off(&asked(4)), NIGHTS);
    // Wednesday nights were not seen in three of six weeks: from the hour before to the hour after they stay on.
    let mut unseen = asked(6);
    let gaps = each(&unseen.zone, [2, 9, 16].into_iter(), (1, 0), (1, 15));
    let mut from = unseen.observed[0].from;
    let end = unseen.observed[0].to;
    unseen.observed.clear();
    for gap in gaps {
        unseen.observed.push(Span { from, to: gap.from });
        from = gap.to;
    }
    unseen.observed.push(Span { from, to: end });
    assert_eq!(off(&unseen)[1..3], ["Tuesday 19:00 to Wednesday 00:00", "Wednesday 03:00 to Wednesday 07:00"]);
}

#[test]
fn what_is_off_already_saves_nothing() {
    let mut by_hand = asked(6);
    let berlin = by_hand.zone.clone();
    by_hand.stopped = working_days(6)
        .map(|day| Span {
            from: local(&berlin, day, 19, 0),
            to: local(&berlin, day + if day % 7 == 4 { 3 } else { 1 }, 7, 0),
        })
        .collect();
    // Six hours of the first Monday were before it began.
    let refused = blockers(&by_hand);
    assert!(
        matches!(refused[..], [Blocker::SavesTooLittle { saving, .. }] if saving < Usd::from_micros(2_000_000)),
        "{refused:?}"
    );
    let mut covered = asked(6);
    covered.prices.effective = Rate::Known(HourlyRate::from_micros(0));
    assert!(matches!(blockers(&covered)[..], [Blocker::Covered { .. }]));
}

#[test]
fn what_is_not_known_or_makes_no_sense_is_refused_by_name() {
    let mut unknown = asked(6);
    unknown.used = None;
    unknown.zone = TimeZone::fixed(jiff::tz::offset(2));
    unknown.prices.list = Rate::Unknown("no row".into());
    let plain: Vec<String> = blockers(&unknown).iter().map(ToString::to_string).collect();
    let expected = [
        "when it was used is not known",
        "by whose clock it is used is not known",
        "what it saves is not known: no row",
    ];
    assert_eq!(plain, expected);
    let mut never = asked(6);
    never.used = Some(Vec::new());
    assert_eq!(blockers(&never), [Blocker::NeverUsed]);
    let mut always = asked(6);
    always.used = Some(always.observed.clone());
    assert_eq!(blockers(&always), [Blocker::AlwaysNeeded { hours: 4 }]);
    let own = Asked { machine: Machine::OnPrem, ..asked(6) };
    assert_eq!(blockers(&own), [Blocker::OnPrem]);
    // Whether it is off right now does not matter, but what else stands before a stop does.
    let mut case = Case::of("m5.2xlarge", record(0, |_, _| ()));
    case.facts().state = Some("stopped".into());
    assert_eq!(off(&Asked { machine: case.machine.clone(), ..asked(6) }), NIGHTS);
    case.facts().protection = model::machine::Protection::On { by: "stop protection".into() };
    assert!(matches!(blockers(&Asked { machine: case.machine, ..asked(6) })[..], [Blocker::Guarded { .. }]));
    let doubts = |timers| judged(&Asked { timers, ..asked(6) }).unwrap().confidence.doubts;
    assert_eq!(doubts(Some(2))[1], Doubt::TimersExist { timers: 2 });
    assert_eq!(doubts(None)[1], Doubt::TimersUnknown);
    assert_eq!(WeekHour(167).to_string(), "Sunday 23:00");
}

/// Hours since Monday at midnight, by this clock.
fn since_monday(at: Timestamp, zone: &TimeZone) -> u8 {
    let local = at.to_zoned(zone.clone());
    u8::try_from(i16::from(local.weekday().to_monday_zero_offset()) * 24 + i16::from(local.hour())).unwrap()
}

fn is_off(hour: u8, off: &[Off]) -> bool {
    off.iter().any(|Off { stop, start }| match stop < start {
        true => (stop.0..start.0).contains(&hour),
        false => hour >= stop.0 || hour < start.0,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The oracle goes through each use in steps of five minutes.
    #[test]
    fn no_schedule_would_have_been_in_the_way_of_a_recorded_use(
        weekly in vec((0..10_080_i64, 5..600_i64), 1..6),
        once in vec((0..60_480_i64, 5..90_i64), 0..3),
        name in prop_oneof![Just("Europe/Berlin"), Just("America/New_York"), Just("Asia/Kolkata"), Just("Pacific/Auckland")],
    ) {
        let mut asked = asked(6);
        asked.zone = zone(name);
        let begin = asked.observed[0].from;
        let span = |minute: i64, long: i64| Span { from: begin + minute.minutes(), to: begin + (minute + long).minutes() };
        let again = weekly.iter().flat_map(|(at, long)| (0..6).map(move |week| span(week * 10_080 + at, *long)));
        let used: Vec<_> = again.chain(once.iter().map(|(at, long)| span(*at, *long))).collect();
        asked.used = Some(used.clone());
        if let Ok(Recommendation { change: Change::Schedule { off, .. }, .. }) = judged(&asked) {
            for one in used {
                let mut at = one.from;
                while at < one.to {
                    prop_assert!(!is_off(since_monday(at, &asked.zone), &off), "{at}: {off:?}");
                    at += 5.minutes();
                }
            }
        }
    }
}
