//! For how long something is left alone, as people say it. Pure.

use jiff::{SignedDuration, Timestamp, Unit, civil::Weekday, tz::TimeZone};

/// People begin to work at nine.
const MORNING_HOUR: i8 = 9;

/// An end that hangs on when, and where, it is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delay {
    /// An hour later.
    Hour,
    /// The next day at nine.
    Tomorrow,
    /// The next Monday at nine.
    Monday,
    /// A week later.
    Week,
}

impl Delay {
    /// All of them, the shortest first.
    pub(super) const ALL: [Self; 4] = [Self::Hour, Self::Tomorrow, Self::Monday, Self::Week];

    /// The word for it in a button.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Hour => "hour",
            Self::Tomorrow => "tomorrow",
            Self::Monday => "monday",
            Self::Week => "week",
        }
    }

    pub(super) fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|delay| delay.as_str() == word)
    }

    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Hour => "For an hour",
            Self::Tomorrow => "Until tomorrow, 9 am",
            Self::Monday => "Until Monday, 9 am",
            Self::Week => "For a week",
        }
    }

    /// Its end, for somebody in this time zone, on a full minute: who is heard twice says the same. None beyond the end of time.
    #[must_use]
    pub fn until(self, now: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let morning = |day: jiff::civil::Date| {
            let at = day.at(MORNING_HOUR, 0, 0, 0).to_zoned(zone.clone()).ok()?;
            Some(at.timestamp())
        };
        let later = |hours: i64| now.checked_add(SignedDuration::from_hours(hours)).ok()?.round(Unit::Minute).ok();
        let today = now.to_zoned(zone.clone()).date();
        match self {
            Self::Hour => later(1),
            Self::Tomorrow => morning(today.tomorrow().ok()?),
            Self::Monday => morning(today.nth_weekday(1, Weekday::Monday).ok()?),
            Self::Week => later(7 * 24),
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn until(delay: Delay, now: &str, zone: &str) -> String {
        let zone = TimeZone::get(zone).unwrap();
        delay.until(now.parse().unwrap(), &zone).unwrap().to_string()
    }

    #[test]
    fn a_delay_ends_by_the_clock_on_the_wall() {
        // A Saturday; in Auckland it is Sunday by then.
        let now = "2026-11-28T15:20:31Z";
        assert_eq!(until(Delay::Hour, now, "Europe/Berlin"), "2026-11-28T16:21:00Z");
        assert_eq!(until(Delay::Week, now, "Europe/Berlin"), "2026-12-05T15:21:00Z");
        assert_eq!(until(Delay::Tomorrow, now, "Europe/Berlin"), "2026-11-29T08:00:00Z");
        assert_eq!(until(Delay::Monday, now, "Europe/Berlin"), "2026-11-30T08:00:00Z");
        assert_eq!(until(Delay::Tomorrow, now, "Pacific/Auckland"), "2026-11-29T20:00:00Z");
        assert_eq!(until(Delay::Monday, now, "Pacific/Auckland"), "2026-11-29T20:00:00Z");
    }

    #[test]
    fn monday_is_never_today_and_summer_time_is_minded() {
        assert_eq!(until(Delay::Monday, "2026-11-30T10:00:00Z", "UTC"), "2026-12-07T09:00:00Z");
        // The clocks go back in between.
        assert_eq!(until(Delay::Monday, "2026-10-24T10:00:00Z", "Europe/Berlin"), "2026-10-26T08:00:00Z");
        assert_eq!(until(Delay::Tomorrow, "2026-10-24T10:00:00Z", "Europe/Berlin"), "2026-10-25T08:00:00Z");
    }

    #[test]
    fn a_delay_is_found_by_its_word() {
        for delay in Delay::ALL {
            assert_eq!(Delay::from_word(delay.as_str()), Some(delay));
        }
        assert_eq!(Delay::from_word("never"), None);
    }
}
