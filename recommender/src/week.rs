//! Hours of the week by a site's clock, and when something was used in which week.
//!
//! An hour of a local week is the same hour in summer and winter: what begins at 8 begins at 8 when the clock is changed, too. An hour that a change leaves out is not
//! seen in that week; one that comes twice is one.

use std::{collections::BTreeMap, fmt};

use jiff::{SignedDuration, Timestamp, civil::Date, tz::TimeZone};
use serde::{Deserialize, Serialize};

use crate::demand::Span;

/// The hours of a week.
pub const HOURS: usize = 168;
/// Every zone's offset is a multiple of it.
const QUARTER: SignedDuration = SignedDuration::from_mins(15);
const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// A full hour of a local week: 0 is Monday at midnight, 167 Sunday at 23:00.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WeekHour(pub u8);

/// `Monday 08:00`
impl fmt::Display for WeekHour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let day = DAYS.get(usize::from(self.0 / 24)).copied().unwrap_or("?");
        write!(f, "{day} {:02}:00", self.0 % 24)
    }
}

/// From one hour of the week to another one, over its end if that comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Off {
    /// When the machine is stopped.
    pub stop: WeekHour,
    /// When it is started again.
    pub start: WeekHour,
}

/// One hour of one week.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    quarters: u8,
    seen: u8,
    ran: u8,
    used_at: Option<Timestamp>,
}

/// What was seen of each hour of the week, by week.
#[derive(Debug)]
pub struct Weeks {
    hours: Vec<BTreeMap<Date, Seen>>,
}

/// Spans in their order, none of which touch.
fn merged(spans: &[Span]) -> Vec<Span> {
    let mut sorted = spans.to_vec();
    sorted.sort();
    let mut merged: Vec<Span> = Vec::new();
    for span in sorted {
        match merged.last_mut().filter(|last| span.from <= last.to) {
            Some(last) => last.to = last.to.max(span.to),
            None => merged.push(span),
        }
    }
    merged
}

/// The span that begins last before the end of this one, which is the only one that may have all of it.
fn last_before(spans: &[Span], end: Timestamp) -> Option<Span> {
    spans.partition_point(|span| span.from < end).checked_sub(1).and_then(|at| spans.get(at)).copied()
}

impl Weeks {
    /// When it was known what went on, when it was used, and when it was stopped, by this clock.
    #[must_use]
    pub fn of(observed: &[Span], used: &[Span], stopped: &[Span], zone: &TimeZone) -> Self {
        let (observed, used, stopped) = (merged(observed), merged(used), merged(stopped));
        let mut hours = vec![BTreeMap::<Date, Seen>::new(); HOURS];
        let quarter_ms = QUARTER.as_millis();
        let bounds = observed.first().zip(observed.last()).map(|(first, last)| (first.from, last.to));
        // A day more on both sides, so that an hour is there as a whole of which a part was seen.
        let day = SignedDuration::from_hours(24);
        let at = bounds.and_then(|(from, _)| from.checked_sub(day).ok());
        let at = at.map(|at| i128::from(at.as_millisecond()).div_euclid(quarter_ms) * quarter_ms);
        let mut at = at.and_then(|ms| Timestamp::from_millisecond(i64::try_from(ms).ok()?).ok());
        let end = bounds.and_then(|(_, to)| to.checked_add(day).ok());
        while let (Some(from), Some(end)) = (at, end)
            && from < end
        {
            let Ok(to) = from.checked_add(QUARTER) else { break };
            let quarter = Span { from, to };
            let holds = |spans: &[Span]| last_before(spans, to).is_some_and(|span| span.holds(quarter));
            let local = from.to_zoned(zone.clone()).datetime();
            let days = local.date().weekday().to_monday_zero_offset();
            let monday = local.date().checked_sub(jiff::Span::new().days(days));
            let hour = usize::try_from(i16::from(days) * 24 + i16::from(local.hour())).unwrap_or(0);
            if let (Ok(monday), Some(weeks)) = (monday, hours.get_mut(hour)) {
                let seen = weeks.entry(monday).or_default();
                let (is_seen, is_off) = (holds(&observed), holds(&stopped));
                seen.quarters += 1;
                seen.seen += u8::from(is_seen);
                seen.ran += u8::from(is_seen && !is_off);
                let is_used = last_before(&used, to).is_some_and(|span| span.overlaps(quarter));
                seen.used_at = seen.used_at.or(is_used.then_some(from));
            }
            at = Some(to);
        }
        Self { hours }
    }

    /// In how many weeks the hour that was seen most often was seen.
    #[must_use]
    pub fn most_seen(&self) -> u8 {
        (0..HOURS).map(|hour| self.seen_in(hour, None)).max().unwrap_or(0)
    }

    /// Whether it was used in any hour of any week.
    #[must_use]
    pub fn is_used(&self) -> bool {
        self.hours.iter().flat_map(BTreeMap::values).any(|seen| seen.used_at.is_some())
    }

    /// Quarters of an hour that were seen, and of those within these spans the ones in which it ran.
    #[must_use]
    pub fn ran_within(&self, off: &[Off]) -> (u64, u64) {
        let (mut all, mut within) = (0, 0);
        for (hour, weeks) in self.hours.iter().enumerate() {
            let is_off = off.iter().any(|off| off.holds(hour));
            for seen in weeks.values() {
                all += u64::from(seen.seen);
                within += if is_off { u64::from(seen.ran) } else { 0 };
            }
        }
        (all, within)
    }

    /// When it can be off: hours that were never used and were seen in so many weeks, less the slack, for at least so long at a time.
    #[must_use]
    pub fn off(&self, weeks: u8, slack: usize, least: usize) -> Vec<Off> {
        self.off_without(None, weeks, slack, least)
    }

    /// The first use that the schedule which was made from all other weeks would have been in the way of.
    #[must_use]
    pub fn in_the_way(&self, weeks: u8, slack: usize, least: usize) -> Option<Timestamp> {
        let mondays: std::collections::BTreeSet<Date> = self.hours.iter().flat_map(BTreeMap::keys).copied().collect();
        mondays.into_iter().find_map(|monday| {
            let off = self.off_without(Some(monday), weeks.saturating_sub(1), slack, least);
            let used_at = |hour: usize| self.hours.get(hour)?.get(&monday)?.used_at;
            (0..HOURS).filter(|hour| off.iter().any(|off| off.holds(*hour))).filter_map(used_at).min()
        })
    }

    fn seen_in(&self, hour: usize, without: Option<Date>) -> u8 {
        let weeks = self.hours.get(hour).into_iter().flatten().filter(|(monday, _)| Some(**monday) != without);
        u8::try_from(weeks.filter(|(_, seen)| seen.seen == seen.quarters).count()).unwrap_or(u8::MAX)
    }

    fn off_without(&self, without: Option<Date>, weeks: u8, slack: usize, least: usize) -> Vec<Off> {
        let is_free = |hour: usize| {
            let of_hour = self.hours.get(hour).into_iter().flatten();
            let is_used =
                of_hour.filter(|(monday, _)| Some(**monday) != without).any(|(_, seen)| seen.used_at.is_some());
            !is_used && self.seen_in(hour, without) >= weeks
        };
        let free: Vec<bool> = (0..HOURS).map(is_free).collect();
        let around = |hour: usize| (0..=2 * slack).map(move |by| (hour + HOURS + by - slack) % HOURS);
        let is_off: Vec<bool> = (0..HOURS).map(|hour| around(hour).all(|near| free.get(near) == Some(&true))).collect();
        let is_off = |hour: usize| is_off.get(hour % HOURS) == Some(&true);
        let begins = (0..HOURS).filter(|hour| is_off(*hour) && !is_off(hour + HOURS - 1));
        let spans = begins.filter_map(|begin| {
            let hours = (0..HOURS).take_while(|by| is_off(begin + by)).count();
            (hours >= least.max(1)).then(|| Off { stop: week_hour(begin), start: week_hour(begin + hours) })
        });
        spans.collect()
    }
}

fn week_hour(hour: usize) -> WeekHour {
    WeekHour(u8::try_from(hour % HOURS).unwrap_or(0))
}

impl Off {
    fn holds(self, hour: usize) -> bool {
        let from_stop = |hour: usize| (hour + HOURS - usize::from(self.stop.0)) % HOURS;
        from_stop(hour) < from_stop(usize::from(self.start.0))
    }
}
