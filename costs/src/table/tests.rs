use super::*;
use crate::{
    Billed, DaySum, KeptDay, Measure, NOT_LISTED, PriceFrom, Row, Stretch, Used, Version, View, hours, pack, priced,
    split::tests::any_seen, stretches,
};
use model::HourlyRate;
use proptest::prelude::*;

fn by(text: &str) -> By {
    text.parse().expect("dimensions")
}

fn day(hour: &Hour) -> Arc<str> {
    format!("day {}", hour.start_s / 86_400).into()
}

fn text(value: &str) -> Value {
    Some(value.into())
}

/// A machine with two tools, one of them of a task that is not named, housekeeping, and an hour that nobody saw.
#[test]
fn lines_are_told_by_dimension_and_kind_and_come_to_the_bill() {
    let place = Place { instance: text("i-1"), ..Place::default() };
    let ns = 3_600_000_000_000;
    let used = |cores_permille: u64| Used { cpu_ns: Some(ns / 1_000 * cores_permille), ..Used::default() };
    let seen = Seen::Measured {
        seconds: 3_600,
        cpu: Measure { capacity: ns, in_use: ns / 2, ms: 3_600_000 },
        memory: None,
        gpu: Measure::default(),
        used: vec![used(250), used(100), used(50)],
    };
    let subjects = [
        Subject { tool: text("bwa"), task: text("align"), ..Subject::default() },
        Subject { tool: text("samtools"), ..Subject::default() },
        Subject { is_system: true, workload: text("cron"), ..Subject::default() },
    ];
    let hour = Hour { start_s: 0, micros: 1_000, billed_s: 3_600, ..Hour::default() };
    let blind = Hour { start_s: 3_600, not_known: vec![("no price".into(), 60)], ..hour.clone() };
    let report = |by: By| {
        let mut costs = Costs::new(by, Weights::default());
        costs.machine(1);
        costs.add(&place, &hour, (&seen, &subjects), || day(&hour));
        costs.add(&place, &blind, (&Seen::Not("no agent".into()), &[]), || day(&blind));
        costs.report()
    };
    let tools = report(by("tool"));
    let told: Vec<_> =
        tools.lines.iter().map(|line| (line.group.values[0].as_deref(), line.group.kind, line.micros)).collect();
    let expected = [
        (None, Kind::Unattributed, Some(1_000)),
        (None, Kind::Idle, Some(500)),
        (Some("bwa"), Kind::Used, Some(250)),
        (Some("samtools"), Kind::Used, Some(100)),
        (None, Kind::Unowned, Some(100)),
        (None, Kind::System, Some(50)),
        (None, Kind::NotKnown, None),
    ];
    assert_eq!(told, expected);
    assert_eq!((tools.bill_micros, tools.billed_s, tools.not_known_s), (2_000, 7_200, 60));
    let why: Vec<_> =
        tools.reasons.iter().map(|reason| (&*reason.why, reason.machines, reason.seconds, reason.micros)).collect();
    assert_eq!(why, [("no agent", 1, 3_600, 1_000), ("no price", 1, 60, 0)]);
    let tasks = report(by("task,instance"));
    let align = tasks.lines.iter().find(|line| line.group.values == [text("align"), text("i-1")]).expect("a line");
    assert_eq!(align.micros, Some(250));
    let workloads = report(by("workload"));
    let cron = workloads.lines.iter().find(|line| line.group.values == [text("cron")]).expect("a line");
    assert_eq!((cron.group.kind, cron.micros), (Kind::System, Some(50)));
}

/// What really happened to a machine, and when it was listed.
#[derive(Clone, Debug)]
struct Truth {
    /// When it was started, and for how long it ran.
    starts: Vec<(i64, i64)>,
    /// When it was listed, and whether that worked.
    listings: Vec<(i64, bool)>,
    /// From when on it cost how much.
    prices: Vec<(i64, i64)>,
    seen: Vec<Seen>,
    subjects: Vec<(u8, bool)>,
    place: (u8, u8, u8),
}

const HOURS: usize = 2;
const END_S: i64 = 2 * SECONDS_PER_HOUR;
const GOOD_FOR_S: i64 = SECONDS_PER_HOUR;

impl Truth {
    /// The start that a listing shows.
    fn shown_at(&self, at_s: i64) -> Option<i64> {
        self.starts
            .iter()
            .find(|(from_s, length_s)| (*from_s..from_s + length_s).contains(&at_s))
            .map(|(from_s, _)| *from_s)
    }

    fn complete(&self) -> impl DoubleEndedIterator<Item = i64> + '_ {
        self.listings.iter().filter(|(_, worked)| *worked).map(|(at_s, _)| *at_s)
    }

    /// As the history has it.
    fn versions(&self) -> Vec<Version> {
        let mut versions: Vec<Version> = Vec::new();
        for at_s in self.complete() {
            let launched_s = self.shown_at(at_s);
            let version = Version { from_s: at_s, until_s: None, runs: Some(launched_s.is_some()), launched_s };
            match versions.last_mut() {
                Some(last) if (last.runs, last.launched_s) == (version.runs, version.launched_s) => {}
                Some(last) => {
                    last.until_s = Some(at_s);
                    versions.push(version);
                }
                None => versions.push(version),
            }
        }
        versions
    }

    fn not_listed(&self) -> Vec<(i64, i64)> {
        let complete: Vec<i64> = self.complete().collect();
        let failed = |from_s: i64, to_s: i64| {
            self.listings.iter().any(|(at_s, worked)| !worked && (from_s..to_s).contains(at_s))
        };
        let mut gaps: Vec<_> = complete
            .windows(2)
            .map(|pair| (pair[0], pair[1]))
            .filter(|(from_s, to_s)| failed(*from_s, *to_s))
            .collect();
        gaps.extend(complete.last().map(|last| (*last, i64::MAX)));
        gaps
    }

    /// Second by second, by what the listings before and behind it show: whether it is billed, and by which start; none is not known.
    fn billed(&self, at_s: i64, not_listed: &[(i64, i64)]) -> Option<Option<i64>> {
        let before = self.complete().rfind(|listed| *listed <= at_s);
        let behind = self.complete().find(|listed| *listed > at_s);
        // A machine that is listed for the first time has no history to be of.
        if let Some(start) = behind.and_then(|behind| self.shown_at(behind)).filter(|start| *start <= at_s) {
            return Some(Some(start));
        }
        let Some(before) = before else { return Some(None) };
        let start = self.shown_at(before);
        match behind {
            _ if start.is_none() => Some(None),
            None => None,
            Some(behind) if not_listed.contains(&(before, behind)) => None,
            Some(_) => Some(start),
        }
    }

    fn price(&self, at_s: i64) -> Option<i64> {
        let last = self.prices.iter().rfind(|(from_s, _)| *from_s <= at_s)?;
        (at_s < last.0 + GOOD_FOR_S).then_some(last.1)
    }

    /// Micro-dollars × 3,600 of each hour, and its seconds at a price and at none: by counting.
    fn bill(&self) -> Vec<(i64, u64, u64)> {
        let mut hours = vec![(0, 0, 0); HOURS];
        let mut count = |at_s: i64| {
            let Ok(hour) = usize::try_from(at_s / SECONDS_PER_HOUR) else { return };
            let Some(hour) = hours.get_mut(hour) else { return };
            match self.price(at_s) {
                Some(price) => (hour.0, hour.1) = (hour.0 + price, hour.1 + 1),
                None => hour.2 += 1,
            }
        };
        let not_listed = self.not_listed();
        let mut of_start = BTreeMap::<i64, Vec<i64>>::new();
        let mut unknown = Vec::new();
        for at_s in 0..END_S {
            match self.billed(at_s, &not_listed) {
                Some(Some(start)) => of_start.entry(start).or_default().push(at_s),
                Some(None) => {}
                None => unknown.push(at_s),
            }
        }
        let last_shown = self.complete().next_back().and_then(|at_s| self.shown_at(at_s));
        for (start, seconds) in of_start {
            seconds.iter().for_each(|at_s| count(*at_s));
            let end_s = seconds.last().copied().unwrap_or(0) + 1;
            // What is over is billed for a minute, unless nobody knows for how long it went on.
            if Some(start) != last_shown && !unknown.contains(&end_s) {
                (end_s..start + 60).for_each(&mut count);
            }
        }
        for at_s in unknown {
            hours[usize::try_from(at_s / SECONDS_PER_HOUR).expect("within two hours")].2 += 1;
        }
        hours
    }
}

fn any_truth() -> impl Strategy<Value = Truth> {
    let start = (prop_oneof![1..60_i64, 1..1_500_i64], prop_oneof![1..90_i64, 1..3_000_i64]);
    let starts = proptest::collection::vec(start, 1..5).prop_map(|starts| {
        let mut now_s = 0;
        let place = |(pause_s, length_s)| {
            now_s += pause_s;
            let from_s = now_s;
            now_s += length_s;
            (from_s, length_s)
        };
        starts.into_iter().map(place).collect()
    });
    let listings = proptest::collection::vec((prop_oneof![1..60_i64, 1..900_i64], prop::bool::weighted(0.8)), 2..40)
        .prop_map(|listings| {
            let mut now_s = 0;
            let mut place = |(pause_s, worked)| {
                now_s += pause_s;
                (now_s, worked)
            };
            listings.into_iter().map(&mut place).filter(|(at_s, _)| *at_s < END_S).collect()
        });
    let prices = proptest::collection::btree_map(0..END_S, 0..5_000_000_i64, 0..3)
        .prop_map(|prices| prices.into_iter().collect());
    let seen = prop_oneof![3 => any_seen(), 1 => Just(Seen::Not("no agent".into()))];
    let seen = proptest::collection::vec(seen, HOURS);
    let subjects = proptest::collection::vec((0..4_u8, any::<bool>()), 6);
    (starts, listings, prices, seen, subjects, (0..2_u8, 0..2_u8, 0..2_u8)).prop_map(
        |(starts, listings, prices, seen, subjects, place)| Truth { starts, listings, prices, seen, subjects, place },
    )
}

/// One machine of a fleet: what is known of it, its hours, what was seen in each, and who used it.
struct Machine<'a> {
    number: u64,
    place: Place,
    hours: Vec<(Hour, &'a Seen)>,
    subjects: Vec<Subject>,
}

impl<'a> Machine<'a> {
    fn of(number: usize, truth: &'a Truth) -> Self {
        let prices = truth.prices.iter().map(|(from_s, micros)| PriceFrom {
            from_s: *from_s,
            good_until_s: from_s + GOOD_FOR_S,
            per_hour: HourlyRate::from_micros(*micros),
        });
        let prices: Vec<_> = prices.collect();
        let billed = stretches(&truth.versions(), &truth.not_listed(), END_S);
        let billed: Vec<Stretch> =
            billed.iter().flat_map(|stretch| priced(stretch, &prices, &"no price".into())).collect();
        assert!(billed.iter().all(|stretch| stretch.billed != Billed::Yes));
        let named = |what: &str, number: u8| (number > 0).then(|| format!("{what}-{number}").into());
        let (user, team, region) = truth.place;
        let place = Place {
            instance: text(&number.to_string()),
            user: named("user", user),
            team: named("team", team),
            region: named("region", region),
            account: text("1"),
            provider: text("aws"),
        };
        let subjects = truth.subjects.iter().map(|(name, is_system)| Subject {
            is_system: *is_system,
            tool: named("tool", *name),
            task: named("task", name % 2),
            run: named("run", name % 3),
            pipeline: named("pipeline", name % 3),
            workload: named("workload", *name),
        });
        let subjects = subjects.collect();
        let seen = |hour: &Hour| {
            let at = usize::try_from(hour.start_s / SECONDS_PER_HOUR).expect("within two hours");
            &truth.seen[at]
        };
        let hours = hours(&billed, 0, END_S).into_iter().map(|hour| (hour.clone(), seen(&hour))).collect();
        Self { number: number.try_into().expect("a small number"), place, hours, subjects }
    }

    fn take_up(&self, costs: &mut Costs) {
        costs.machine(self.number);
        for (hour, seen) in &self.hours {
            costs.add(&self.place, hour, (seen, &self.subjects), || day(hour));
        }
    }

    fn key(&self) -> Arc<str> {
        format!("machine {}", self.number).into()
    }

    fn kept(&self, view: View) -> KeptDay {
        let mut sum = DaySum::new(view);
        for (hour, seen) in &self.hours {
            sum.add(7 + i64::try_from(hour.version).expect("few"), hour, (seen, &self.subjects), &Weights::default());
        }
        KeptDay::new([0; 16], Some(sum))
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Attributed + reserved and unused + idle + unattributed = bill, exactly, by any dimensions; and the bill is what counting second by second makes it.
    #[test]
    fn whatever_ran_and_was_seen_of_it_every_micro_dollar_of_the_bill_is_told_once(
        fleet in proptest::collection::vec(any_truth(), 1..3),
        one in proptest::sample::select(Dimension::ALL.to_vec()),
        other in proptest::sample::select(Dimension::ALL.to_vec()),
    ) {
        let by: By = format!("{},{}", one.as_str(), other.as_str()).parse().unwrap_or_else(|_| by(one.as_str()));
        let mut costs = Costs::new(by, Weights::default());
        let (mut bill, mut billed_s, mut not_known_s) = (0, 0, 0);
        for (number, truth) in fleet.iter().enumerate() {
            Machine::of(number, truth).take_up(&mut costs);
            for (micro_seconds, seconds, unknown) in truth.bill() {
                bill += u64::try_from((micro_seconds + 1_800) / 3_600).expect("no negative price");
                (billed_s, not_known_s) = (billed_s + seconds, not_known_s + unknown);
            }
        }
        let report = costs.report();
        prop_assert_eq!((report.billed_s, report.not_known_s), (billed_s, not_known_s));
        prop_assert_eq!(report.bill_micros, bill);
        prop_assert_eq!(report.lines.iter().filter_map(|line| line.micros).sum::<u64>(), bill);
        prop_assert_eq!(report.lines.iter().map(|line| line.not_known_s).sum::<u64>(), not_known_s);
        let unattributed: u64 = report.lines.iter().filter(|line| line.group.kind == Kind::Unattributed).filter_map(|line| line.micros).sum();
        let of_reasons = |kind: Kind| report.reasons.iter().filter(move |reason| reason.kind == kind);
        prop_assert_eq!(of_reasons(Kind::Unattributed).map(|reason| reason.micros).sum::<u64>(), unattributed);
        prop_assert_eq!(of_reasons(Kind::NotKnown).map(|reason| reason.seconds).sum::<u64>(), not_known_s);
        prop_assert!(of_reasons(Kind::NotKnown).all(|reason| [NOT_LISTED, "no price"].contains(&&*reason.why)));
    }

    /// Whichever machines' days were added up beforehand, packed and read again, the report is the same one.
    #[test]
    fn kept_days_come_to_the_same_as_their_hours(
        fleet in proptest::collection::vec((any_truth(), any::<bool>(), any::<bool>()), 1..4),
        one in proptest::sample::select(Dimension::ALL.to_vec()),
        other in proptest::sample::select(Dimension::ALL.to_vec()),
    ) {
        let by: By = format!("{},{}", one.as_str(), other.as_str()).parse().unwrap_or_else(|_| by(one.as_str()));
        let (mut expected, mut costs) = (Costs::new(by.clone(), Weights::default()), Costs::new(by.clone(), Weights::default()));
        let (mut row, mut of_keys) = (Row::new(), HashMap::new());
        for (number, (truth, is_kept, is_right)) in fleet.iter().enumerate() {
            let machine = Machine::of(number, truth);
            machine.take_up(&mut expected);
            if *is_kept {
                row.insert(machine.key(), machine.kept(by.view()));
            }
            if *is_kept && *is_right {
                of_keys.insert(machine.key(), machine);
            } else {
                machine.take_up(&mut costs);
            }
        }
        let of_subjects: Vec<Dimension> = by.dimensions().iter().copied().filter(|one| one.is_of_subjects()).collect();
        let days = Days::unpack(&pack(by.view(), &row).expect("packed"), &of_subjects).expect("unpacked");
        costs.take_up(&days, (0, || "day 0".into()), |key, whole| {
            let machine = of_keys.get(key)?;
            Some((machine.number, vec![&machine.place; whole.versions.len()]))
        });
        prop_assert_eq!(costs.lines(), expected.lines());
        prop_assert_eq!(costs.report(), expected.report());
    }
}
