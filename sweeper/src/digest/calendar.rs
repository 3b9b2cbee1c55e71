//! When a list's digests come, and which days they are about, by the clock of their readers. Pure.

use crate::{
    config::DigestList,
    sweep::{ScheduleError, Scheduler},
};
use chrono::{DateTime, Datelike as _, Days, NaiveDate, NaiveTime, Offset as _, TimeDelta, TimeZone as _, Utc};
use chrono_tz::Tz;
use jiff::{SignedDuration, Timestamp, civil};
use std::time::Duration;

/// A day of 24 hours, at whose end a digest is that of now.
const DAY: SignedDuration = SignedDuration::from_hours(24);

/// The calendar of one list.
#[derive(Debug)]
pub struct Calendar {
    scheduler: Scheduler,
    zone: Tz,
}

impl Calendar {
    /// That of a list.
    ///
    /// # Errors
    /// If its time or zone is none, which is checked when the configuration is read.
    pub fn of(list: &DigestList) -> Result<Self, ScheduleError> {
        let key = format!("digest.lists.{}", list.name);
        let scheduler = Scheduler::new(&key, &list.schedule(), &list.timezone, Duration::ZERO)?;
        Ok(Self { scheduler, zone: list.zone() })
    }

    /// When the latest digest was due at a moment; none before the first one of all.
    #[must_use]
    pub fn latest_at(&self, moment: Timestamp) -> Option<Timestamp> {
        self.scheduler.latest_at(utc(moment)?)
    }

    /// When the next one is due.
    #[must_use]
    pub fn next_after(&self, moment: Timestamp) -> Option<Timestamp> {
        let next = self.scheduler.next_after(utc(moment)?)?;
        Timestamp::from_second(next.timestamp()).ok()
    }

    /// What the readers' clock says at a moment.
    #[must_use]
    pub fn local(&self, moment: Timestamp) -> civil::DateTime {
        let offset = utc(moment).map_or(0, |at| at.with_timezone(&self.zone).offset().fix().local_minus_utc());
        jiff::tz::Offset::from_seconds(offset).unwrap_or(jiff::tz::Offset::UTC).to_datetime(moment)
    }

    /// The last so many days up to a moment, each with its begin and end; the last one ends with the moment.
    #[must_use]
    pub fn days_up_to(&self, moment: Timestamp, count: u64) -> Vec<(civil::Date, Timestamp, Timestamp)> {
        // What ends at midnight is about the day before.
        let last = moment.checked_sub(SignedDuration::from_nanos(1)).unwrap_or(moment);
        let Some(last) = utc(last).map(|at| at.with_timezone(&self.zone).date_naive()) else { return Vec::new() };
        let day = |back: u64| {
            let date = last.checked_sub_days(Days::new(back))?;
            let (from, until) = (self.begin_of(date)?, self.begin_of(date.checked_add_days(Days::new(1))?)?);
            Some((civil_date(date)?, from, until.min(moment)))
        };
        (0..count).rev().filter_map(day).collect()
    }

    /// Midnight, or the first moment after it where the clocks skip it.
    fn begin_of(&self, date: NaiveDate) -> Option<Timestamp> {
        let midnight = date.and_time(NaiveTime::MIN);
        let begin = (0..=3_i64).find_map(|hour| {
            let at = midnight.checked_add_signed(TimeDelta::hours(hour))?;
            self.zone.from_local_datetime(&at).earliest()
        })?;
        Timestamp::from_second(begin.timestamp()).ok()
    }
}

/// When the day began that ends at a moment.
#[must_use]
pub fn day_before(moment: Timestamp) -> Timestamp {
    moment.checked_sub(DAY).unwrap_or(Timestamp::MIN)
}

/// When the week began that ends at a moment.
#[must_use]
pub fn week_before(moment: Timestamp) -> Timestamp {
    moment.checked_sub(DAY * 7).unwrap_or(Timestamp::MIN)
}

fn utc(moment: Timestamp) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp(moment.as_second(), moment.subsec_nanosecond().unsigned_abs())
}

fn civil_date(date: NaiveDate) -> Option<civil::Date> {
    let (year, month, day) = (date.year().try_into().ok()?, date.month().try_into().ok()?, date.day().try_into().ok()?);
    civil::Date::new(year, month, day).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use notifier::digest::Every;

    fn calendar(every: Every, zone: &str) -> Calendar {
        let list = DigestList {
            name: "everyone".into(),
            every,
            at: "08:00".into(),
            timezone: zone.into(),
            ..DigestList::default()
        };
        Calendar::of(&list).expect("a calendar")
    }

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    #[test]
    fn digests_come_by_the_clock_of_their_readers_through_summer_time() {
        let daily = calendar(Every::Day, "Europe/Berlin");
        for (now, latest, next) in [
            ("2026-03-28T07:00:00Z", "2026-03-28T07:00:00Z", "2026-03-29T06:00:00Z"),
            ("2026-03-29T05:59:59Z", "2026-03-28T07:00:00Z", "2026-03-29T06:00:00Z"),
            ("2026-03-29T06:00:00.5Z", "2026-03-29T06:00:00Z", "2026-03-30T06:00:00Z"),
            ("2026-10-25T08:00:00Z", "2026-10-25T07:00:00Z", "2026-10-26T07:00:00Z"),
        ] {
            assert_eq!(
                (daily.latest_at(at(now)), daily.next_after(at(now))),
                (Some(at(latest)), Some(at(next))),
                "{now}"
            );
        }
        let weekly = calendar(Every::Week, "America/New_York");
        assert_eq!(weekly.latest_at(at("2026-11-27T02:00:00Z")), Some(at("2026-11-23T13:00:00Z")));
        assert_eq!(weekly.local(at("2026-11-23T13:00:00Z")).to_string(), "2026-11-23T08:00:00");
    }

    #[test]
    fn days_are_those_of_the_readers_and_as_long_as_theirs() {
        let berlin = calendar(Every::Day, "Europe/Berlin");
        let days = berlin.days_up_to(at("2026-03-30T06:00:00Z"), 3);
        let shown: Vec<_> =
            days.iter().map(|(date, from, until)| (date.to_string(), until.duration_since(*from).as_hours())).collect();
        assert_eq!(shown, [("2026-03-28".into(), 24), ("2026-03-29".into(), 23), ("2026-03-30".into(), 8)]);
        assert!(days.windows(2).all(|pair| pair[0].2 == pair[1].1), "no gap and nothing twice: {days:?}");
        // What ends at midnight is about the day before.
        let days = berlin.days_up_to(at("2026-01-01T23:00:00Z"), 1);
        assert_eq!(days[0].0.to_string(), "2026-01-01");
        // Midnight itself is skipped in some years.
        let beirut = calendar(Every::Day, "Asia/Beirut");
        let days = beirut.days_up_to(at("2024-03-31T20:00:00Z"), 2);
        assert_eq!(days.iter().map(|(date, ..)| date.to_string()).collect::<Vec<_>>(), ["2024-03-30", "2024-03-31"]);
        assert!(days[0].2 == days[1].1, "{days:?}");
    }
}
