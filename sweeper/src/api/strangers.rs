//! How many tokens that nobody knows are looked up: so many a second and no more, by whomever they are shown.
//!
//! Each costs a look-up in the database. Beyond the limit whoever is not remembered is asked to come again later; nodes whose tokens are
//! remembered are served as ever.

use super::problem::{Reason, Refusal};
use std::{
    sync::{Mutex, PoisonError},
    time::Instant,
};

/// Unknown tokens a second that are looked up for ever.
const PER_S: f64 = 50.0;
/// And so many at once, after a quiet time.
const BURST: f64 = 500.0;

/// Each kind of token has a limit of its own, so that a flood of one kind keeps nobody out who shows another.
#[derive(Debug, Default)]
pub(super) struct Limits {
    pub(super) nodes: Strangers,
    pub(super) joining: Strangers,
    pub(super) operators: Strangers,
    pub(super) readers: Strangers,
}

/// A bucket that unknown tokens empty and time fills.
#[derive(Debug)]
pub(super) struct Strangers(Mutex<(f64, Instant)>);

impl Default for Strangers {
    fn default() -> Self {
        Self(Mutex::new((BURST, Instant::now())))
    }
}

impl Strangers {
    /// Refuses a look-up while too many tokens have turned out to be unknown.
    pub(super) fn may_look_up(&self) -> Result<(), Refusal> {
        self.may_look_up_at(Instant::now())
    }

    fn may_look_up_at(&self, now: Instant) -> Result<(), Refusal> {
        if self.fill(now, 0.0) >= 1.0 {
            return Ok(());
        }
        let detail =
            "Too many tokens that nobody knows are being shown; yours could not be looked up. Try again later.";
        Err(Refusal::new(Reason::TooManyUnknown, detail))
    }

    /// A token turned out to be unknown.
    pub(super) fn note(&self) {
        self.fill(Instant::now(), 1.0);
    }

    fn fill(&self, now: Instant, taken: f64) -> f64 {
        let mut bucket = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (left, at) = *bucket;
        let left = (left + now.saturating_duration_since(at).as_secs_f64() * PER_S).min(BURST) - taken;
        *bucket = (left.max(0.0), now.max(at));
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn unknown_tokens_use_up_the_look_ups_and_time_gives_them_back() {
        let strangers = Strangers::default();
        for _ in 0..500 {
            assert!(strangers.may_look_up().is_ok());
            strangers.note();
        }
        // What time has given back meanwhile.
        (0..100).for_each(|_| strangers.note());
        let refused = strangers.may_look_up().map_err(|refusal| refusal.reason);
        assert_eq!(refused, Err(Reason::TooManyUnknown));
        assert!(strangers.may_look_up_at(Instant::now() + Duration::from_secs(1)).is_ok());
    }

    #[test]
    fn tokens_that_are_known_use_up_nothing() {
        let strangers = Strangers::default();
        assert!((0..10_000).all(|_| strangers.may_look_up().is_ok()));
    }
}
