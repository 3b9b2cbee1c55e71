//! For how long a value was how high.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Milliseconds by value. A value that stands for a bucket is the highest of the bucket, so that whatever is derived from it is too high and never too low.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Levels(BTreeMap<u64, u64>);

impl Levels {
    /// The value was so high for so many milliseconds.
    pub fn add(&mut self, value: u64, ms: u64) {
        if ms > 0 {
            let time = self.0.entry(value).or_default();
            *time = time.saturating_add(ms);
        }
    }

    /// Takes another one's times up.
    pub fn merge(&mut self, other: &Self) {
        other.iter().for_each(|(value, ms)| self.add(value, ms));
    }

    /// Values with their milliseconds, the lowest value first.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0.iter().map(|(value, ms)| (*value, *ms))
    }

    /// How many milliseconds it tells of.
    #[must_use]
    pub fn total_ms(&self) -> u64 {
        self.0.values().fold(0, |total, ms| total.saturating_add(*ms))
    }

    /// The highest value; none if it tells of no time.
    #[must_use]
    pub fn highest(&self) -> Option<u64> {
        self.0.last_key_value().map(|(value, _)| *value)
    }

    /// The value that was not exceeded for so many thousandths of the time; none if it tells of no time.
    #[must_use]
    pub fn quantile(&self, per_mille: u16) -> Option<u64> {
        let wanted = u128::from(self.total_ms()) * u128::from(per_mille.min(1_000));
        let mut passed = 0_u128;
        self.iter().find_map(|(value, ms)| {
            passed += u128::from(ms) * 1_000;
            (passed >= wanted).then_some(value)
        })
    }

    /// The mean over the time, rounded up; none if it tells of no time.
    #[must_use]
    pub fn mean(&self) -> Option<u64> {
        let total = u128::from(self.total_ms());
        let sum: u128 = self.iter().map(|(value, ms)| u128::from(value) * u128::from(ms)).sum();
        (total > 0).then(|| u64::try_from(sum.div_ceil(total)).unwrap_or(u64::MAX))
    }

    /// The same with every value replaced.
    #[must_use]
    pub fn map(&self, replace: impl Fn(u64) -> u64) -> Self {
        self.iter().map(|(value, ms)| (replace(value), ms)).collect()
    }
}

impl FromIterator<(u64, u64)> for Levels {
    fn from_iter<I: IntoIterator<Item = (u64, u64)>>(values: I) -> Self {
        let mut levels = Self::default();
        values.into_iter().for_each(|(value, ms)| levels.add(value, ms));
        levels
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_and_means_are_of_time_and_of_nothing_there_is_none() {
        let levels: Levels = [(100, 90_000), (1_000, 9_000), (8_000, 1_000), (9_000, 0)].into_iter().collect();
        assert_eq!(
            [0, 500, 900, 901, 990, 1_000].map(|p| levels.quantile(p)),
            [100, 100, 100, 1_000, 1_000, 8_000].map(Some)
        );
        assert_eq!((levels.total_ms(), levels.highest()), (100_000, Some(8_000)));
        // (9,000,000 + 9,000,000 + 8,000,000) / 100,000
        assert_eq!(levels.mean(), Some(260));
        let none = Levels::default();
        assert_eq!((none.quantile(500), none.mean(), none.highest()), (None, None, None));
    }
}
