//! Days of machines' costs, added up beforehand.
//!
//! A question about whole days that are over takes kept sums up in the place of the rollups of their hours. What is kept of a machine's day is taken if and only if it is right: no
//! rollup of that day was written or deleted since ([`crate::store::ChangedDays`]), and what else it rests on (the stretches for which the machine was billed that day with their prices,
//! which of its versions each is of, whether an agent has joined, the weights, the rule itself) is by its fingerprint what the question works out anew anyway. So nobody has to tell that a price,
//! the end of a start, a listing or a tag was learnt later, or that the configuration was changed: the answer is, line by line, the one that rollups alone would give.

mod fingerprint;
mod make;
mod round;
mod take;

pub use make::{MADE, Made, add_up_days, run};
pub(super) use take::take_up;

use sha2::{Digest as _, Sha256};
use std::ops::Range;

/// Parts of all machines: a row is a day of one of them. Whoever changes it makes all days anew.
const PARTS: u8 = 32;
const DAY_S: i64 = 86_400;
/// So long a day must be over: the last of its rollups are made by then.
const OVER_FOR_S: i64 = 7_200;

/// The part that a machine is in, by its key.
fn part_of(key: &str) -> i64 {
    i64::from(Sha256::digest(key.as_bytes())[0] % PARTS)
}

/// The whole days, counted from 1970-01-01, that lie within this time and are over.
fn days_within(from_s: i64, to_s: i64, now_s: i64) -> Range<i64> {
    let first = from_s.div_euclid(DAY_S) + i64::from(from_s.rem_euclid(DAY_S) > 0);
    first..to_s.min(now_s.saturating_sub(OVER_FOR_S)).div_euclid(DAY_S).max(first)
}

#[cfg(test)]
mod tests;
