//! The spans of time that rollups tell of.

use serde::{Deserialize, Serialize};

/// How long the period of a rollup is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Made from heartbeats.
    FiveMinutes,
    /// Made from the twelve of five minutes.
    Hour,
}

impl Tier {
    /// Its length, in milliseconds.
    #[must_use]
    pub const fn length_ms(self) -> i64 {
        match self {
            Self::FiveMinutes => 5 * 60_000,
            Self::Hour => 60 * 60_000,
        }
    }

    /// As the database has it: its length in seconds.
    #[must_use]
    pub const fn number(self) -> i64 {
        self.length_ms() / 1_000
    }
}

/// One span of time: what ended after its begin, and at its end at the latest. They are the same for all nodes, and begin with 1970-01-01 UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Period {
    /// How long it is.
    pub tier: Tier,
    /// Its begin, in milliseconds since 1970-01-01 UTC by the node's clock.
    pub start_unix_ms: i64,
}

impl Period {
    /// The one in which something ended at this time.
    #[must_use]
    pub fn of(tier: Tier, end_unix_ms: i64) -> Self {
        let start_unix_ms = end_unix_ms.saturating_sub(1).div_euclid(tier.length_ms()).saturating_mul(tier.length_ms());
        Self { tier, start_unix_ms }
    }

    /// Its end, in milliseconds since 1970-01-01 UTC.
    #[must_use]
    pub fn end_unix_ms(self) -> i64 {
        self.start_unix_ms.saturating_add(self.tier.length_ms())
    }

    /// Whether what ended at this time belongs to it.
    #[must_use]
    pub fn holds(self, end_unix_ms: i64) -> bool {
        end_unix_ms > self.start_unix_ms && end_unix_ms <= self.end_unix_ms()
    }

    /// The hour that it is a part of.
    #[must_use]
    pub fn hour(self) -> Self {
        Self::of(Tier::Hour, self.end_unix_ms())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_with_a_period_belongs_to_it_and_five_minutes_lie_in_one_hour() {
        let period = Period::of(Tier::FiveMinutes, 300_000);
        assert_eq!((period.start_unix_ms, period.end_unix_ms()), (0, 300_000));
        assert_eq!(Period::of(Tier::FiveMinutes, 300_001).start_unix_ms, 300_000);
        assert_eq!(Period::of(Tier::FiveMinutes, 0).start_unix_ms, -300_000);
        assert_eq!([0, 1, 300_000, 300_001].map(|end| period.holds(end)), [false, true, true, false]);
        for at in 0..24 {
            let period = Period { tier: Tier::FiveMinutes, start_unix_ms: at * 300_000 };
            assert_eq!(period.hour(), Period { tier: Tier::Hour, start_unix_ms: at / 12 * 3_600_000 });
        }
        assert!(Period::of(Tier::Hour, i64::MIN).end_unix_ms() <= 0, "no overflow");
    }
}
