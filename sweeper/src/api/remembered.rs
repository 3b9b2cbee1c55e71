//! What the fleet token and the operator token were when the database was last asked: their SHA-256 sums.
//!
//! Whoever shows one of them is let in without a look-up. Each look-up for a stranger brings it up to date, so that a flood that uses up all look-ups
//! (`strangers`) keeps what is remembered fresh; and without one there are look-ups left.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// A token that was changed, by another sweeper over the same database too, is void so soon. Within it strangers' limits fill by 250 look-ups.
const KEPT_FOR: Duration = Duration::from_secs(5);

/// The tokens that people hand out, as far as they are remembered.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    pub(super) fleet: Remembered,
    pub(super) operator: Remembered,
}

/// One token's SHA-256 in hexadecimal digits, and when the database was asked for it.
#[derive(Debug, Default)]
pub(super) struct Remembered(Mutex<Option<(String, Instant)>>);

impl Remembered {
    /// What the database said, if it was asked within five seconds.
    pub(super) fn lately(&self) -> Option<String> {
        self.lately_at(Instant::now())
    }

    fn lately_at(&self, now: Instant) -> Option<String> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (known, asked) = kept.as_ref()?;
        (now.saturating_duration_since(*asked) < KEPT_FOR).then(|| known.clone())
    }

    /// What the database said when it was asked at that time. An answer that came late replaces none to a later question.
    pub(super) fn keep(&self, known: String, asked: Instant) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.as_ref().is_none_or(|(_, before)| *before <= asked) {
            *kept = Some((known, asked));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_remembered_for_five_seconds_and_by_the_latest_question() {
        let (remembered, asked) = (Remembered::default(), Instant::now());
        assert_eq!(remembered.lately_at(asked), None);
        remembered.keep("new".to_owned(), asked);
        remembered.keep("old".to_owned(), asked.checked_sub(Duration::from_millis(1)).expect("a time before"));
        assert_eq!(remembered.lately_at(asked + Duration::from_millis(4_999)).as_deref(), Some("new"));
        assert_eq!(remembered.lately_at(asked + Duration::from_secs(5)), None);
    }
}
