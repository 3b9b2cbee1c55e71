//! For how long a value was how high.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Buckets of each doubling: a bucket's upper end is at most a quarter above its lower one.
const BUCKETS_OF_A_DOUBLING: u32 = 4;

/// Milliseconds by bucket. Buckets 0 to 3 are these values themselves; from 4 on each doubling has four of them, of one width.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Histogram(BTreeMap<u16, u64>);

impl Histogram {
    /// The value was so high for so long.
    pub fn add(&mut self, value: u64, ms: u64) {
        if ms > 0 {
            let time = self.0.entry(bucket(value)).or_default();
            *time = time.saturating_add(ms);
        }
    }

    /// Takes another one's times up.
    pub fn merge(&mut self, other: &Self) {
        for (bucket, ms) in &other.0 {
            let time = self.0.entry(*bucket).or_default();
            *time = time.saturating_add(*ms);
        }
    }

    /// How long it tells of, in milliseconds.
    #[must_use]
    pub fn total_ms(&self) -> u64 {
        self.0.values().fold(0, |total, ms| total.saturating_add(*ms))
    }

    /// Milliseconds by value, the lowest value first: of each bucket the highest that it holds.
    pub fn levels(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0.iter().map(|(bucket, ms)| (highest(*bucket), *ms))
    }

    /// The value that was not exceeded for so many per cent of the time: the highest of its bucket. `None` if it tells of no time.
    #[must_use]
    pub fn percentile(&self, per_cent: u8) -> Option<u64> {
        let wanted = u128::from(self.total_ms()) * u128::from(per_cent.min(100));
        let mut passed = 0_u128;
        self.0.iter().find_map(|(bucket, ms)| {
            passed += u128::from(*ms) * 100;
            (passed >= wanted).then(|| highest(*bucket))
        })
    }
}

/// The bucket that holds this value.
fn bucket(value: u64) -> u16 {
    if value < u64::from(BUCKETS_OF_A_DOUBLING) {
        return u16::try_from(value).unwrap_or(0);
    }
    let doublings = value.ilog2();
    // The two bits below the highest one.
    let part = (value >> (doublings - 2)) & 3;
    u16::try_from(BUCKETS_OF_A_DOUBLING * (doublings - 1)).unwrap_or(u16::MAX - 3) + u16::try_from(part).unwrap_or(0)
}

/// The highest value of a bucket.
fn highest(bucket: u16) -> u64 {
    if u32::from(bucket) < BUCKETS_OF_A_DOUBLING {
        return bucket.into();
    }
    let doublings = u32::from(bucket) / BUCKETS_OF_A_DOUBLING + 1;
    let part = u128::from(bucket) % u128::from(BUCKETS_OF_A_DOUBLING);
    // Who wrote a bucket that no value falls into gets the highest value.
    let end = 1_u128.checked_shl(doublings.saturating_sub(2)).map_or(u128::MAX, |width| width.saturating_mul(5 + part));
    u64::try_from(end - 1).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_lies_in_its_bucket_and_buckets_follow_each_other() {
        let ends: Vec<u64> = (0..252).map(highest).collect();
        assert_eq!(&ends[..14], &[0, 1, 2, 3, 4, 5, 6, 7, 9, 11, 13, 15, 19, 23]);
        assert_eq!(ends.last(), Some(&u64::MAX));
        for (at, end) in ends.iter().enumerate() {
            assert_eq!(usize::from(bucket(*end)), at, "{end}");
            if *end < u64::MAX {
                assert_eq!(usize::from(bucket(end + 1)), at + 1, "{end}");
            }
        }
        assert_eq!(highest(u16::MAX), u64::MAX);
    }

    #[test]
    fn a_percentile_is_what_the_value_did_not_exceed_for_so_long() {
        let mut cores = Histogram::default();
        assert_eq!(cores.percentile(99), None);
        cores.add(100, 0);
        assert_eq!(cores.total_ms(), 0);
        cores.add(0, 90_000);
        cores.add(1_000, 9_000);
        cores.add(64_000, 1_000);
        assert_eq!(cores.levels().collect::<Vec<_>>(), [(0, 90_000), (1_023, 9_000), (65_535, 1_000)]);
        assert_eq!([0, 50, 90, 91, 99, 100].map(|p| cores.percentile(p)), [0, 0, 0, 1_023, 1_023, 65_535].map(Some));
        let mut twice = cores.clone();
        twice.merge(&cores);
        assert_eq!((twice.total_ms(), twice.percentile(99)), (200_000, Some(1_023)));
    }
}
