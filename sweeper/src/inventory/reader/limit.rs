//! A token bucket for each of the provider's own, which asks less than the provider would allow.
//!
//! Providers count calls in token buckets (AWS: per account, region and API); whoever else works in the account pays from the
//! same ones. So a bucket here starts half full and refills at 80 % of the documented rate, is emptied and refills at half of
//! that once the provider refuses a call, and recovers by 1 % of its full rate a second: 50 s from the half to the whole.
//! A waiting call costs one timer; a bucket is 64 bytes.
//!
//! Why no crate: `governor` 0.10 cannot change the rate of a limiter (<https://github.com/boinkor-net/governor/issues/273>).

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// A call and the provider's bucket that pays for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::inventory) struct Api {
    /// As a policy names it: `ec2:DescribeInstances`.
    pub(in crate::inventory) name: &'static str,
    /// Calls with the same word here share a bucket.
    pub(in crate::inventory) bucket: &'static str,
    /// So many calls a second the provider allows for ever.
    refill_per_s: u32,
    /// So many at once.
    size: u32,
}

impl Api {
    /// A call that may be made so often a second for ever, and so often at once, as its provider documents.
    pub(in crate::inventory) const fn new(
        name: &'static str,
        bucket: &'static str,
        refill_per_s: u32,
        size: u32,
    ) -> Self {
        Self { name, bucket, refill_per_s, size }
    }
}

/// The state of one bucket. Pure: the caller says what time it is.
#[derive(Debug)]
struct Bucket {
    /// Below zero: so many calls wait.
    tokens: f64,
    size: f64,
    per_s: f64,
    full_per_s: f64,
    /// Until when it was filled.
    at: Instant,
    /// When the provider last refused.
    refused_at: Option<Instant>,
}

/// Of the rate that the provider documents.
const SHARE_OF_RATE: f64 = 0.8;
/// Of the burst that it documents.
const SHARE_OF_BURST: f64 = 0.5;
/// Calls that were under way at the first refusal are refused too, which says nothing new.
const ONE_REFUSAL: Duration = Duration::from_secs(1);
/// Of the full rate, and never less: 16 a second come down to one.
const SLOWEST: f64 = 1.0 / 16.0;
/// So much of the full rate comes back each second.
const RECOVERY_PER_S: f64 = 0.01;

impl Bucket {
    fn new(api: Api, now: Instant) -> Self {
        let size = f64::from(api.size) * SHARE_OF_BURST;
        let full_per_s = f64::from(api.refill_per_s) * SHARE_OF_RATE;
        Self { tokens: size, size, per_s: full_per_s, full_per_s, at: now, refused_at: None }
    }

    fn fill(&mut self, now: Instant) {
        let passed_s = now.saturating_duration_since(self.at).as_secs_f64();
        self.at = self.at.max(now);
        // At the rate before the recovery: for a moment a little too slow, never too fast.
        self.tokens = (self.tokens + passed_s * self.per_s).min(self.size);
        self.per_s = (self.per_s + passed_s * self.full_per_s * RECOVERY_PER_S).min(self.full_per_s);
    }

    /// Takes a token, and says how long to wait until it is there. First come, first served.
    fn take(&mut self, now: Instant) -> Duration {
        self.fill(now);
        self.tokens -= 1.0;
        Duration::try_from_secs_f64(-self.tokens / self.per_s).unwrap_or_default()
    }

    fn refused(&mut self, now: Instant) {
        self.fill(now);
        // The provider's bucket is empty, so this one is.
        self.tokens = self.tokens.min(0.0);
        if self.refused_at.is_some_and(|at| now.saturating_duration_since(at) < ONE_REFUSAL) {
            return;
        }
        self.refused_at = Some(now);
        self.per_s = (self.per_s / 2.0).max(self.full_per_s * SLOWEST);
    }
}

/// A bucket that many calls share.
#[derive(Debug)]
pub(in crate::inventory) struct Limiter(Mutex<Bucket>);

impl Limiter {
    pub(in crate::inventory) fn new(api: Api) -> Self {
        Self(Mutex::new(Bucket::new(api, Instant::now())))
    }

    /// Waits until one more call may be made.
    pub(in crate::inventory) async fn ready(&self) {
        let wait = self.0.lock().unwrap_or_else(PoisonError::into_inner).take(Instant::now());
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
    }

    /// The provider says that there were too many.
    pub(in crate::inventory) fn refused(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).refused(Instant::now());
    }
}

/// The buckets of one place, each made at first use and kept, so that all that is read there shares them.
#[derive(Debug, Default)]
pub(in crate::inventory) struct Limiters(Mutex<BTreeMap<&'static str, Arc<Limiter>>>);

impl Limiters {
    /// The bucket that pays for this call.
    pub(in crate::inventory) fn of(&self, api: Api) -> Arc<Limiter> {
        let mut limiters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(limiters.entry(api.bucket).or_insert_with(|| Arc::new(Limiter::new(api))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const API: Api = Api::new("ec2:DescribeInstances", "ec2:DescribeInstances", 20, 100);

    /// So many calls are let through from `start` on, in so long; each call comes as soon as the one before was let through.
    fn let_through(bucket: &mut Bucket, start: Instant, within: Duration) -> u32 {
        let (mut now, mut calls) = (start, 0);
        loop {
            now += bucket.take(now);
            if now.duration_since(start) > within {
                return calls;
            }
            calls += 1;
        }
    }

    #[test]
    fn half_the_burst_and_four_fifths_of_the_rate_are_used() {
        let start = Instant::now();
        assert_eq!(let_through(&mut Bucket::new(API, start), start, Duration::ZERO), 50);
        let in_a_minute = let_through(&mut Bucket::new(API, start), start, 60 * SECOND);
        assert!((1_008..=1_011).contains(&in_a_minute), "50 at once and 16 a second: {in_a_minute}");
    }

    #[test]
    fn a_refusal_empties_the_bucket_and_halves_the_rate_once_for_all_calls_under_way() {
        let start = Instant::now();
        let mut bucket = Bucket::new(API, start);
        for _ in 0..20 {
            bucket.refused(start);
        }
        assert_eq!(bucket.take(start), Duration::from_millis(125), "8 a second, and none at once");
        let much_later = (1..=20).map(|n| start + 2 * n * SECOND);
        much_later.for_each(|now| bucket.refused(now));
        let wait = bucket.take(start + 40 * SECOND);
        assert!((wait.as_secs_f64() - 1.0).abs() < 0.01, "never slower than one a second: {wait:?}");
    }

    #[test]
    fn the_rate_comes_back_slowly_and_never_above_the_start() {
        let start = Instant::now();
        let mut bucket = Bucket::new(API, start);
        bucket.refused(start);
        bucket.fill(start + 25 * SECOND);
        assert!((bucket.per_s - 12.0).abs() < 0.001, "{bucket:?}");
        bucket.fill(start + 3_600 * SECOND);
        assert!((bucket.per_s - 16.0).abs() < 0.001, "{bucket:?}");
        assert!((bucket.tokens - 50.0).abs() < 0.001, "{bucket:?}");
    }

    #[test]
    fn a_clock_that_stands_still_gives_no_tokens() {
        let start = Instant::now();
        let mut bucket = Bucket::new(API, start + SECOND);
        bucket.tokens = 0.0;
        bucket.fill(start);
        assert!(bucket.tokens.abs() < f64::EPSILON, "{bucket:?}");
    }

    #[tokio::test]
    async fn a_call_waits_for_its_token() {
        let limiter = Limiter::new(API);
        limiter.refused();
        let began = Instant::now();
        limiter.ready().await;
        assert!(began.elapsed() >= Duration::from_millis(100), "8 a second: {:?}", began.elapsed());
    }
}
