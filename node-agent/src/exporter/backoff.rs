//! How long to wait before the next try: full jitter, and never less than the sweeper asked for.
//!
//! With full jitter (a uniform wait between nothing and a doubling bound) a fleet that lost its sweeper does not come
//! back as one wave: <https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/>.

use rand::Rng;
use std::time::Duration;

/// The most that a `Retry-After` is believed.
const MOST_ASKED: Duration = Duration::from_secs(3600);
const FIRST_BOUND: Duration = Duration::from_secs(1);

/// Counts failures in a row.
#[derive(Clone, Debug)]
pub struct Backoff {
    failures: u32,
    most: Duration,
}

impl Backoff {
    /// For an agent with this interval: waits at most four intervals, but at least 5 s and at most 2 min.
    #[must_use]
    pub fn for_interval(interval: Duration) -> Self {
        let most = interval.saturating_mul(4).clamp(Duration::from_secs(5), Duration::from_secs(120));
        Self { failures: 0, most }
    }

    /// A try has worked.
    pub fn reset(&mut self) {
        self.failures = 0;
    }

    /// A try has failed: how long to wait now.
    pub fn next(&mut self, asked: Option<Duration>, random: &mut impl Rng) -> Duration {
        let bound = FIRST_BOUND.saturating_mul(1_u32.checked_shl(self.failures).unwrap_or(u32::MAX)).min(self.most);
        self.failures = self.failures.saturating_add(1);
        let jittered = bound.mul_f64(random.random::<f64>());
        // What was asked for is jittered as well, upwards, for all agents were asked for the same.
        asked.map_or(jittered, |asked| asked.min(MOST_ASKED) + jittered)
    }
}

/// Reads `Retry-After`: seconds or an HTTP date (RFC 9110, section 10.2.3).
#[must_use]
pub fn retry_after(value: &str, now: jiff::Timestamp) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = jiff::fmt::rfc2822::parse(value).ok()?.timestamp();
    Some(Duration::try_from(date.duration_since(now)).unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use proptest::prelude::*;
    use rand::{SeedableRng as _, rngs::StdRng};

    proptest! {
        #[test]
        fn a_wait_never_exceeds_its_bound_and_never_undercuts_what_was_asked(
            seed: u64, failures in 0_u32..200, interval_s in 0_u64..4000, asked_s in prop::option::of(0_u64..100_000)
        ) {
            let mut backoff = Backoff::for_interval(Duration::from_secs(interval_s));
            let mut random = StdRng::seed_from_u64(seed);
            for _ in 0..failures {
                backoff.next(None, &mut random);
            }
            let asked = asked_s.map(Duration::from_secs);
            let wait = backoff.next(asked, &mut random);
            let least = asked.unwrap_or_default().min(MOST_ASKED);
            prop_assert!(wait >= least && wait <= least + Duration::from_secs(120));
            if failures == 0 {
                prop_assert!(wait <= least + FIRST_BOUND);
            }
        }
    }

    #[test]
    fn retry_after_is_read_as_seconds_or_as_a_date() {
        let now: jiff::Timestamp = "1994-11-06T08:49:07Z".parse().unwrap();
        assert_eq!(retry_after(" 120 ", now), Some(Duration::from_secs(120)));
        assert_eq!(retry_after("Sun, 06 Nov 1994 08:49:37 GMT", now), Some(Duration::from_secs(30)));
        assert_eq!(retry_after("Sun, 06 Nov 1994 08:48:37 GMT", now), Some(Duration::ZERO));
        assert_eq!(retry_after("soon", now), None);
    }
}
