//! When to try again: exponential back-off with full jitter.
//!
//! Full jitter (a uniform draw between zero and the exponential bound) spreads clients that failed
//! together better than a jittered fraction does:
//! <https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/>. A server's own
//! `Retry-After` is never undershot, and never cut short by `max`.
//!
//! Pure but for the random source, which the caller hands in. Refused: counting attempts and
//! discarding; both belong to the outbox, which remembers.

use std::time::Duration;

use rand::Rng;

/// A uniform draw from `0 ..= min(max, base × 2^attempt)`; `attempt` counts failures from 0.
pub fn full_jitter<R: Rng + ?Sized>(attempt: u32, base: Duration, max: Duration, rng: &mut R) -> Duration {
    let factor = 2_u32.checked_pow(attempt).unwrap_or(u32::MAX);
    let bound = base.checked_mul(factor).unwrap_or(max).min(max);
    let nanos = u64::try_from(bound.as_nanos()).unwrap_or(u64::MAX);
    Duration::from_nanos(rng.random_range(0..=nanos))
}

/// The wait before the next attempt: what the server asked for, if it asked, plus a jittered
/// back-off so that messages which were refused together do not come back together.
pub fn delay<R: Rng + ?Sized>(
    attempt: u32,
    retry_after: Option<Duration>,
    base: Duration,
    max: Duration,
    rng: &mut R,
) -> Duration {
    retry_after.unwrap_or_default().saturating_add(full_jitter(attempt, base, max, rng))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;
    use rand::{SeedableRng, rngs::StdRng};

    use super::{delay, full_jitter};

    proptest! {
        #[test]
        fn never_above_the_bound(attempt in any::<u32>(), base_ms in 0_u64..600_000, max_ms in 0_u64..3_600_000, seed in any::<u64>()) {
            let (base, max) = (Duration::from_millis(base_ms), Duration::from_millis(max_ms));
            let waited = full_jitter(attempt, base, max, &mut StdRng::seed_from_u64(seed));
            prop_assert!(waited <= max);
            if let Some(factor) = 2_u32.checked_pow(attempt) {
                prop_assert!(waited <= base * factor);
            }
        }

        #[test]
        fn never_earlier_than_the_server_asked(attempt in any::<u32>(), after_s in 0_u64..100_000, seed in any::<u64>()) {
            let after = Duration::from_secs(after_s);
            let max = Duration::from_secs(900);
            let waited = delay(attempt, Some(after), Duration::from_secs(2), max, &mut StdRng::seed_from_u64(seed));
            prop_assert!(waited >= after);
            prop_assert!(waited <= after + max);
        }
    }

    #[test]
    fn spreads_over_the_whole_range() {
        let mut rng = StdRng::seed_from_u64(7);
        let (base, max) = (Duration::from_secs(2), Duration::from_secs(900));
        let draws: Vec<_> = (0..1_000).map(|_| full_jitter(5, base, max, &mut rng)).collect();
        let bound = Duration::from_secs(64);
        for quarter in 0..4 {
            let (low, high) = (bound / 4 * quarter, bound / 4 * (quarter + 1));
            let within = draws.iter().filter(|d| **d >= low && **d < high).count();
            assert!((150..=350).contains(&within), "{within} of 1000 in quarter {quarter}");
        }
    }

    #[test]
    fn extreme_inputs_do_not_overflow() {
        let mut rng = StdRng::seed_from_u64(1);
        let waited = delay(u32::MAX, Some(Duration::MAX), Duration::MAX, Duration::MAX, &mut rng);
        assert_eq!(waited, Duration::MAX);
    }
}
