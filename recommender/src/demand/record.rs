//! What was observed of a machine, and whether that is enough to say anything.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp, civil::Weekday, tz::TimeZone};
use model::Usd;
use serde::{Deserialize, Serialize};

use super::Hour;

/// Least time that must have been observed, in days.
pub const LEAST_DAYS: u32 = 7;
/// Most of the time in which the machine ran that may be without measurements, in per cent.
pub const MOST_GAPS_PER_CENT: u32 = 5;
/// So long before the list that first showed it a stop may have begun. Where lists are further apart, what was not measured between them is missing.
const LISTED_AFTER: SignedDuration = SignedDuration::from_hours(1);
/// Most hours of a day of a weekend that may be without measurements.
const MOST_GAPS_OF_A_DAY: usize = 4;

/// What was observed of one machine, as one type: a record begins anew when the type changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Hours before those that count as observed, in their order, of which less was told. What they do show speaks against a change as much as what later ones show.
    pub earlier: Vec<Hour>,
    /// Its hours, in their order. An hour that is not there was not measured.
    pub hours: Vec<Hour>,
    /// When its provider showed it stopped, in their order: nothing was to be measured then.
    pub stopped: Vec<Span>,
    /// By whose clock its weekends are.
    pub zone: TimeZone,
}

/// From then on, and before then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Span {
    /// Its begin.
    pub from: Timestamp,
    /// Its end.
    pub to: Timestamp,
}

impl Span {
    /// Whether they have a moment in common.
    #[must_use]
    pub fn overlaps(self, other: Self) -> bool {
        self.from < other.to && other.from < self.to
    }

    /// Whether all of the other one lies in it.
    #[must_use]
    pub fn holds(self, other: Self) -> bool {
        self.from <= other.from && other.to <= self.to
    }

    /// How long it is; nothing if it ends before it begins.
    #[must_use]
    pub fn length(self) -> SignedDuration {
        self.to.duration_since(self.from).max(SignedDuration::ZERO)
    }
}

/// How much was observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observed {
    /// Whole days from the first measured hour to the end of the last one.
    pub days: u32,
    /// Hours from the first measured one to the last one, both included.
    pub span_hours: u32,
    /// Hours that were measured.
    pub hours: u32,
    /// Hours between the first and the last one that were neither measured nor, as a whole or in a part, spent stopped.
    pub gaps: u32,
    /// Whether a Saturday and the Sunday after it were observed: measured or stopped, but for four hours of each at most.
    pub weekend: bool,
}

impl Observed {
    /// Gaps in per cent of the time in which the machine ran, rounded up.
    #[must_use]
    pub fn gaps_per_cent(self) -> u32 {
        let all = u64::from(self.hours) + u64::from(self.gaps);
        u32::try_from((u64::from(self.gaps) * 100).div_ceil(all.max(1))).unwrap_or(100)
    }

    /// What of an amount for a whole month is due if the machine goes on to run for the part of the time that it ran, rounded down.
    #[must_use]
    pub fn of_month(self, amount: Usd) -> Usd {
        let ran = i128::from(amount.micros()) * (i128::from(self.hours) + i128::from(self.gaps));
        let micros = ran.div_euclid(i128::from(self.span_hours.max(1)));
        Usd::from_micros(i64::try_from(micros).unwrap_or(i64::MAX))
    }

    /// Whether it is enough to say anything: at least [`LEAST_DAYS`] with a weekend, and gaps of [`MOST_GAPS_PER_CENT`] at most.
    #[must_use]
    pub fn is_enough(self) -> bool {
        self.days >= LEAST_DAYS && self.weekend && self.gaps_per_cent() <= MOST_GAPS_PER_CENT
    }
}

/// An hour from this moment on.
pub(super) fn hour_from(begin: Timestamp) -> Option<Span> {
    Some(Span { from: begin, to: begin.checked_add(SignedDuration::from_hours(1)).ok()? })
}

impl Record {
    /// Every hour of which anything is known, in their order.
    pub fn all_hours(&self) -> impl Iterator<Item = &Hour> {
        self.earlier.iter().chain(&self.hours)
    }

    /// How much was observed.
    #[must_use]
    pub fn observed(&self) -> Observed {
        let of = |is_whole| {
            let hours = self.hours.iter().filter(move |hour| hour.is_whole() == is_whole);
            hours.filter(|hour| hour.milli_cores.total_ms() > 0).map(|hour| hour.begin).collect()
        };
        Observed::of(of(true), &of(false), &self.stopped, &self.zone)
    }
}

impl Observed {
    /// If these hours were measured, by their begins, those only in a part, and nothing was to be measured while it was stopped.
    #[must_use]
    pub fn of(measured: BTreeSet<Timestamp>, in_part: &BTreeSet<Timestamp>, stopped: &[Span], zone: &TimeZone) -> Self {
        let (Some(first), Some(last)) = (measured.first(), measured.last()) else {
            return Self { days: 0, span_hours: 0, hours: 0, gaps: 0, weekend: false };
        };
        // Of an hour in which it was stopped or started an agent measures a part, and what it measured counts. Where it measured nothing nobody knows, unless a list of that very hour shows it stopped.
        let is_edge = |hour: Span, stopped: &Span| {
            let earliest = stopped.from.checked_sub(LISTED_AFTER).unwrap_or(Timestamp::MIN);
            earliest < hour.to && hour.from <= stopped.to
        };
        let (mut gaps, mut days) = (0_u32, BTreeMap::<_, usize>::new());
        let mut at = Some(*first);
        while let Some(span) = at.filter(|at| at <= last).and_then(hour_from) {
            let was_stopped = || stopped.iter().any(|stopped| stopped.holds(span));
            let is_seen = measured.contains(&span.from) || was_stopped();
            let was_in_part = in_part.contains(&span.from);
            let is_half_seen =
                stopped.iter().any(|stopped| stopped.overlaps(span) || (was_in_part && is_edge(span, stopped)));
            let is_gap = !is_seen && !is_half_seen;
            gaps += u32::from(is_gap);
            let day = span.from.to_zoned(zone.clone()).date();
            *days.entry(day).or_default() += usize::from(is_seen);
            at = Some(span.to);
        }
        // A day has 23 to 25 hours; one of which the record holds only a part is no whole day.
        let is_seen = |hours: &usize| *hours + MOST_GAPS_OF_A_DAY >= 24;
        let weekend = days.iter().any(|(day, hours)| {
            let sunday = day.tomorrow().ok().and_then(|sunday| days.get(&sunday));
            day.weekday() == Weekday::Saturday && is_seen(hours) && sunday.is_some_and(is_seen)
        });
        let length = last.duration_since(*first).as_hours() + 1;
        Self {
            days: u32::try_from(length / 24).unwrap_or(0),
            span_hours: u32::try_from(length).unwrap_or(u32::MAX),
            hours: u32::try_from(measured.len()).unwrap_or(u32::MAX),
            gaps,
            weekend,
        }
    }
}
