//! What a provider measured of a machine from outside.

use jiff::{SignedDuration, Timestamp};
use model::ResourceKey;
use serde::{Deserialize, Serialize};

/// How busy a machine was, as its provider saw it. **Weak evidence**: it tells neither who worked nor on what, misses what lies
/// between its points, and a machine that waits for something looks like one that nobody needs. It may raise a finding,
/// never an action, and says nothing about a machine whose agent reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Of which machine.
    pub id: ResourceKey,
    /// Who measured.
    pub source: UsageSource,
    /// The first moment that was asked for.
    pub from: Timestamp,
    /// The last one.
    pub until: Timestamp,
    /// Length of the periods that each point is about, in seconds.
    pub period_s: u32,
    /// So many periods have a point of every metric that is given here; a machine that was stopped has fewer than fit in.
    pub periods: u32,
    /// The highest mean of a period over all processors, in millionths of what the machine has.
    pub busiest_cpu_millionths: Option<u32>,
    /// The highest mean of a period, both directions and all interfaces together, in bytes a second.
    pub busiest_network_bytes_per_s: Option<u64>,
}

/// Whose measurements these are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UsageSource {
    /// AWS.
    CloudWatch,
    /// Google Cloud.
    CloudMonitoring,
}

impl UsageSource {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::CloudWatch, Self::CloudMonitoring];

    /// The word for it in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CloudWatch => "cloud_watch",
            Self::CloudMonitoring => "cloud_monitoring",
        }
    }

    /// The source of that word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|source| source.as_str() == word)
    }

    /// What people call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::CloudWatch => "CloudWatch",
            Self::CloudMonitoring => "Cloud Monitoring",
        }
    }
}

/// What a provider answered when it was asked how busy a machine was. It is kept, since asking again costs money.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageAnswer {
    /// Of which machine.
    pub id: ResourceKey,
    /// Who was asked.
    pub source: UsageSource,
    /// When.
    pub asked_at: Timestamp,
    /// None if nothing was measured, which is not zero.
    pub usage: Option<Usage>,
}

/// What measurements are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsageWindow {
    /// The first moment.
    pub from: Timestamp,
    /// The last one.
    pub until: Timestamp,
    /// Length of each period in seconds.
    pub period_s: u32,
}

impl UsageWindow {
    /// The whole hours of so long a time before `now`, in periods of an hour.
    #[must_use]
    pub fn hours_before(now: Timestamp, lookback: SignedDuration) -> Self {
        let period_s = 3_600;
        let whole = |time: Timestamp| {
            let second = time.as_second();
            Timestamp::from_second(second - second.rem_euclid(i64::from(period_s))).unwrap_or(time)
        };
        let until = whole(now);
        Self { from: whole(until.checked_sub(lookback).unwrap_or(Timestamp::MIN)), until, period_s }
    }

    /// So many periods fit in.
    #[must_use]
    pub fn periods(&self) -> u32 {
        let seconds = self.until.as_second().saturating_sub(self.from.as_second());
        u32::try_from(seconds / i64::from(self.period_s.max(1))).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_made_of_whole_hours() {
        let now = Timestamp::from_second(1_790_000_000 + 17).unwrap_or_default();
        let window = UsageWindow::hours_before(now, SignedDuration::from_hours(24 * 14));
        assert_eq!((window.until.as_second() % 3_600, window.from.as_second() % 3_600), (0, 0));
        assert!(window.until <= now && now.as_second() - window.until.as_second() < 3_600);
        assert_eq!(window.periods(), 14 * 24);
    }

    #[test]
    fn a_source_is_found_by_its_word() {
        assert!(UsageSource::ALL.into_iter().all(|source| UsageSource::from_word(source.as_str()) == Some(source)));
        assert_eq!(UsageSource::from_word("tea leaves"), None);
    }
}
