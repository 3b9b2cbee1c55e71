//! In which hours of the week a machine was quiet in each of its last weeks, by its own agent's rollups, and the same in words.

use super::{Hours, HoursCase, HoursPolicy};
use crate::{rollup::Activity, verdict::words::count};
use jiff::{Timestamp, tz::TimeZone};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// So many weeks are looked at.
pub const WEEKS: u32 = 4;
/// In so many of them an hour must have been measured, and quiet each time: one may be lost, as with a holiday's maintenance.
const NEEDED: u8 = 3;
/// Hours of a week.
const WEEK: usize = 7 * 24;
/// A machine is hardly stopped and started again for less, in hours.
const SHORTEST: usize = 4;
/// More stretches do not help a person.
const TOLD: usize = 4;

const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// In how many weeks one hour of the week was quiet, and in how many it was not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HourOfWeek(pub u8, pub u8);

impl HourOfWeek {
    fn is_quiet(self) -> bool {
        self.0 >= NEEDED && self.1 == 0
    }

    fn is_regular_work(self) -> bool {
        self.1 >= NEEDED
    }

    fn is_known(self) -> bool {
        self.1 > 0 || self.0 >= NEEDED
    }
}

/// The hours of a machine's last weeks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Week {
    /// Begin of the first hour.
    pub from: Timestamp,
    /// End of the last.
    pub until: Timestamp,
    /// What counts as quiet: an hour that is no busier than this.
    pub policy: HoursPolicy,
    /// From Monday 00:00 UTC on, 168 of them. In JSON one text of two digits for each: a fleet has 50,000 of these.
    #[serde(with = "digits")]
    pub hours: Vec<HourOfWeek>,
}

/// Everything that a judgement by weeks depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WeekCase {
    /// What was seen.
    pub week: Week,
    /// So many quiet hours of the week are worth a schedule.
    pub least_hours: u32,
}

/// Hours of the week that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stretch {
    /// The first, from Monday 00:00 UTC on.
    first: usize,
    hours: usize,
}

impl Week {
    /// Of what was done in each hour of that time, by its begin.
    #[must_use]
    pub fn of<'a>(
        (from, until): (Timestamp, Timestamp),
        policy: HoursPolicy,
        has_gpus: bool,
        done: impl IntoIterator<Item = (Timestamp, &'a Activity)>,
    ) -> Self {
        let mut hours = vec![HourOfWeek::default(); WEEK];
        for (begin, activity) in done {
            let of_hour = HoursCase { hours: Hours::of(begin, begin, has_gpus, [activity]), policy };
            let HourOfWeek(quiet, busy) = &mut hours[hour_of_week(begin)];
            if of_hour.is_exceeded() {
                *busy = busy.saturating_add(1);
            } else if of_hour.hours.measured == 1 {
                *quiet = quiet.saturating_add(1);
            }
        }
        Self { from, until, policy, hours }
    }

    /// Whether every hour of the week is known.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.hours.len() == WEEK && self.hours.iter().all(|hour| hour.is_known())
    }

    /// Whether it did anything in any of them.
    #[must_use]
    pub fn has_worked(&self) -> bool {
        self.hours.iter().any(|hour| hour.1 > 0)
    }

    /// How many hours of the week it may be off: those that were quiet each time, in stretches of four at least.
    #[must_use]
    pub fn quiet_hours(&self) -> u32 {
        let sum: usize = self.quiet().iter().map(|stretch| stretch.hours).sum();
        u32::try_from(sum).unwrap_or(u32::MAX)
    }

    fn quiet(&self) -> Vec<Stretch> {
        let mut quiet = self.stretches(HourOfWeek::is_quiet);
        quiet.retain(|stretch| stretch.hours >= SHORTEST);
        quiet
    }

    /// When it works as a rule, in words: `every day from 03:00 to 04:00`; none if there are no such hours.
    #[must_use]
    pub fn regular_work(&self) -> Option<String> {
        // Day by day: what lasts as long, from the same time on.
        let mut alike: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
        for Stretch { first, hours } in self.stretches(HourOfWeek::is_regular_work) {
            if hours >= WEEK {
                return Some("at all hours".to_owned());
            }
            alike.entry((first % 24, hours)).or_default().push(first / 24);
        }
        let mut told: Vec<String> = Vec::new();
        for ((begin, hours), days) in alike.iter().take(TOLD) {
            let days = match days.as_slice() {
                [0, 1, 2, 3, 4, 5, 6] => "every day".to_owned(),
                [0, 1, 2, 3, 4] => "from Monday to Friday".to_owned(),
                days => format!("on {}", days.iter().map(|day| DAYS[day % 7]).collect::<Vec<_>>().join(", ")),
            };
            let end =
                if *hours < 24 { format!("to {:02}:00", (begin + hours) % 24) } else { format!("for {hours} hours") };
            told.push(format!("{days} from {begin:02}:00 {end}"));
        }
        if alike.len() > TOLD {
            told.push("and at other times".to_owned());
        }
        (!told.is_empty()).then(|| format!("{} (UTC)", told.join("; ")))
    }

    /// Hours that follow each other and are all so, in the order of their begins.
    fn stretches(&self, is_so: impl Fn(HourOfWeek) -> bool) -> Vec<Stretch> {
        let all = self.hours.len();
        let is_so = |hour: usize| is_so(self.hours[hour % all]);
        // A week that is so as a whole has no begin.
        let Some(other) = (0..all).find(|hour| !is_so(*hour)) else {
            return if all == 0 { Vec::new() } else { vec![Stretch { first: 0, hours: all }] };
        };
        let mut stretches: Vec<Stretch> = Vec::new();
        for hour in (other..other + all).filter(|hour| is_so(*hour)) {
            match stretches.last_mut() {
                Some(last) if last.first + last.hours == hour => last.hours += 1,
                _ => stretches.push(Stretch { first: hour, hours: 1 }),
            }
        }
        for stretch in &mut stretches {
            stretch.first %= all;
        }
        stretches.sort_by_key(|stretch| stretch.first);
        stretches
    }

    /// The same in words: `quiet in each week from Friday 19:00 to Monday 06:00 UTC: 59 of 168 hours`.
    #[must_use]
    pub fn in_words(&self) -> String {
        let stretches = self.quiet();
        let told = stretches.iter().take(TOLD).map(|Stretch { first, hours }| {
            format!("from {} to {}", time_of_week(*first), time_of_week(first + hours))
        });
        let mut told: Vec<String> = told.collect();
        if stretches.len() > TOLD {
            let more = u32::try_from(stretches.len() - TOLD).unwrap_or(u32::MAX);
            told.push(format!("and {}", count(more, "more stretch", "more stretches")));
        }
        format!("quiet in each of the last weeks {} (UTC): {} of {WEEK} hours", told.join(", "), self.quiet_hours())
    }
}

mod digits {
    use super::{HourOfWeek, WEEK};
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    pub(super) fn serialize<S: Serializer>(hours: &[HourOfWeek], serializer: S) -> Result<S::Ok, S::Error> {
        let text: String =
            hours.iter().map(|HourOfWeek(quiet, busy)| format!("{}{}", quiet.min(&9), busy.min(&9))).collect();
        serializer.serialize_str(&text)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<HourOfWeek>, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digits: Option<Vec<u8>> = text.bytes().map(|byte| byte.is_ascii_digit().then(|| byte - b'0')).collect();
        let digits = digits.filter(|digits| digits.len() == 2 * WEEK);
        let digits = digits.ok_or_else(|| D::Error::custom("hours of the week are two digits each"))?;
        Ok(digits.chunks_exact(2).map(|pair| HourOfWeek(pair[0], pair[1])).collect())
    }
}

/// Which hour of its week this one is, from Monday 00:00 UTC on.
fn hour_of_week(begin: Timestamp) -> usize {
    let civil = begin.to_zoned(TimeZone::UTC);
    let day = usize::try_from(civil.weekday().to_monday_zero_offset()).unwrap_or_default();
    (day * 24 + usize::try_from(civil.hour()).unwrap_or_default()) % WEEK
}

fn time_of_week(hour: usize) -> String {
    format!("{} {:02}:00", DAYS[hour / 24 % 7], hour % 24)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rollup::{Counter, Sum};
    use jiff::SignedDuration;

    const POLICY: HoursPolicy = HoursPolicy { after_s: 3_600, cpu_ns_per_s: 100, bytes_per_s: 100, gpu_ns_per_s: 1 };

    /// A Monday, 00:00 UTC.
    fn monday() -> Timestamp {
        "2026-11-02T00:00:00Z".parse().expect("a time")
    }

    fn hour(cpu_ns_per_s: u64) -> Activity {
        let mut hour = Activity::default();
        for counter in
            [Counter::Cpu, Counter::DiskRead, Counter::DiskWritten, Counter::NetworkReceived, Counter::NetworkSent]
        {
            hour.sums.insert(counter, Sum(0, 3_600_000));
        }
        hour.sums.insert(Counter::Cpu, Sum(cpu_ns_per_s * 3_600, 3_600_000));
        hour
    }

    /// Four weeks in which each hour is as `is_busy` says, by its number in the week and its week, and is missing where it says nothing.
    fn weeks(is_busy: impl Fn(usize, usize) -> Option<bool>) -> Week {
        let (quiet, busy) = (hour(100), hour(101));
        let hours = (0..WEEK * 4).filter_map(|hour| {
            let begin = monday() + SignedDuration::from_hours(i64::try_from(hour).expect("few"));
            is_busy(hour % WEEK, hour / WEEK).map(|is_busy| (begin, if is_busy { &busy } else { &quiet }))
        });
        Week::of((monday(), monday()), POLICY, false, hours)
    }

    /// From Monday to Friday, from 6 to 19 o'clock.
    fn works(hour: usize) -> bool {
        hour / 24 < 5 && (6..19).contains(&(hour % 24))
    }

    #[test]
    fn nights_and_weekends_are_told() {
        let week = weeks(|hour, _| Some(works(hour)));
        assert!(week.is_complete() && week.has_worked());
        assert_eq!(week.quiet_hours(), 168 - 5 * 13);
        assert_eq!(
            week.in_words(),
            "quiet in each of the last weeks from Monday 19:00 to Tuesday 06:00, from Tuesday 19:00 to Wednesday 06:00, \
             from Wednesday 19:00 to Thursday 06:00, from Thursday 19:00 to Friday 06:00, and 1 more stretch (UTC): 103 of 168 hours"
        );
        let weekend = weeks(|hour, _| Some(hour / 24 < 5));
        let told = "quiet in each of the last weeks from Saturday 00:00 to Monday 00:00 (UTC): 48 of 168 hours";
        assert_eq!((weekend.quiet_hours(), weekend.in_words().as_str()), (48, told));
    }

    #[test]
    fn an_hour_that_was_busy_once_is_not_quiet_and_one_that_was_seen_too_rarely_is_not_known() {
        let once = weeks(|hour, week| Some(works(hour) || (hour == 150 && week == 2)));
        assert_eq!((once.quiet_hours(), once.is_complete()), (168 - 5 * 13 - 1, true));
        let lost = weeks(|hour, week| (week > 0).then_some(works(hour)));
        assert_eq!((lost.quiet_hours(), lost.is_complete()), (168 - 5 * 13, true), "three weeks are enough");
        let rare = weeks(|hour, week| (week > 1).then_some(works(hour)));
        assert_eq!((rare.quiet_hours(), rare.is_complete(), rare.has_worked()), (0, false, true));
        assert_eq!(weeks(|_, _| None).quiet_hours(), 0);
    }

    #[test]
    fn work_at_the_same_hours_is_told_day_by_day() {
        let told =
            |is_busy: &dyn Fn(usize, usize) -> bool| weeks(|hour, week| Some(is_busy(hour, week))).regular_work();
        assert_eq!(told(&|hour, _| hour % 24 == 3).as_deref(), Some("every day from 03:00 to 04:00 (UTC)"));
        assert_eq!(told(&|hour, _| works(hour)).as_deref(), Some("from Monday to Friday from 06:00 to 19:00 (UTC)"));
        let twice = told(&|hour, _| hour == 22 || hour == 23 || hour == 24 || hour == 6 * 24 + 4);
        assert_eq!(twice.as_deref(), Some("on Sunday from 04:00 to 05:00; on Monday from 22:00 to 01:00 (UTC)"));
        assert_eq!(told(&|hour, week| hour == 30 && week < 2), None, "twice in four weeks is no rule");
        assert_eq!(told(&|_, _| true).as_deref(), Some("at all hours"));
        assert_eq!(
            told(&|hour, _| hour == 3 || hour == 31 || hour == 59 || hour == 87 || hour == 116)
                .map(|told| told.ends_with("and at other times (UTC)")),
            Some(true)
        );
        assert_eq!(weeks(|_, _| None).regular_work(), None);
    }

    #[test]
    fn its_json_reads_back() {
        let week = weeks(|hour, _| Some(works(hour)));
        let text = serde_json::to_string(&week).expect("JSON");
        assert_eq!(serde_json::from_str::<Week>(&text).expect("a week"), week);
        assert!(text.len() < 600, "{text}");
        assert!(serde_json::from_str::<Week>(&text.replace("40", "4x")).is_err());
        assert!(serde_json::from_str::<Week>(&text.replacen("40", "", 1)).is_err(), "an hour is missing");
    }

    #[test]
    fn short_stretches_are_none_and_a_quiet_week_has_no_begin() {
        let short = weeks(|hour, _| Some(hour % 4 == 0));
        assert_eq!((short.quiet_hours(), short.is_complete()), (0, true), "three hours each");
        let four = weeks(|hour, _| Some(hour % 5 == 0 && hour < 165));
        assert_eq!(four.quiet_hours(), 32 * 4 + 7, "{}", four.in_words());
        let all = weeks(|_, _| Some(false));
        assert_eq!((all.quiet_hours(), all.has_worked()), (168, false));
    }
}
