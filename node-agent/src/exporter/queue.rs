//! The spool as two tasks share it: one puts in and never waits for the other, which takes out.
//!
//! The lock is held for file operations only, never across a request. The other way goes what the sweeper asks: a sample at once.

use crate::spool::{Spool, Stats};
use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tokio::sync::Notify;

/// A sample out of turn costs as much as one of the schedule: no sweeper gets one more often.
const ASKED_AT_MOST_EVERY: Duration = Duration::from_secs(5);

/// A spool between collection and sending.
pub struct Queue {
    spool: Mutex<Spool>,
    grown: Notify,
    questions: Mutex<Questions>,
    asked: Notify,
}

/// What the sweeper asked.
#[derive(Debug, Default)]
struct Questions {
    /// What is to be answered next.
    open: Option<String>,
    /// The last one, and when it came.
    last: Option<(String, Instant)>,
}

impl Questions {
    /// Takes a question up, unless it is none, is the last one again, or comes too soon after it. Whether it did.
    fn ask(&mut self, question: &str, now: Instant) -> bool {
        let is_heeded = heartbeat::api::is_question(question)
            && self
                .last
                .as_ref()
                .is_none_or(|(last, at)| last != question && now.duration_since(*at) >= ASKED_AT_MOST_EVERY);
        if is_heeded {
            self.open = Some(question.to_owned());
            self.last = Some((question.to_owned(), now));
        }
        is_heeded
    }
}

impl Queue {
    /// Shares a spool.
    #[must_use]
    pub fn new(spool: Spool) -> Self {
        let questions = Mutex::new(Questions::default());
        Self { spool: Mutex::new(spool), grown: Notify::new(), questions, asked: Notify::new() }
    }

    /// The spool, for a few file operations.
    pub fn spool(&self) -> MutexGuard<'_, Spool> {
        // Its state is consistent after each single file operation: a panic elsewhere is no reason to stop reporting.
        self.spool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a heartbeat in and wakes the sender.
    pub fn push(&self, heartbeat: heartbeat::wire::Heartbeat) -> Option<u64> {
        let sequence = self.spool().push(heartbeat);
        self.grown.notify_one();
        sequence
    }

    /// What waits and what was lost.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.spool().stats()
    }

    fn questions(&self) -> MutexGuard<'_, Questions> {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The sweeper asks for a sample at once.
    pub fn ask(&self, question: &str) {
        if self.questions().ask(question, Instant::now()) {
            tracing::debug!("the sweeper asks for a sample now");
            self.asked.notify_one();
        }
    }

    /// Waits for a question. It is safe to drop the wait and begin it again.
    pub async fn asked(&self) -> String {
        loop {
            if let Some(question) = self.questions().open.take() {
                return question;
            }
            self.asked.notified().await;
        }
    }

    /// Waits until something was put in since the last call.
    pub async fn grown(&self) {
        self.grown.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_heeded_once_and_not_too_soon_after_another() {
        let (mut questions, now) = (Questions::default(), Instant::now());
        let [first, second] = ["0", "a"].map(|digit| digit.repeat(32));
        for none in ["", "0", &"0".repeat(31), &"0".repeat(33), &"g".repeat(32), &"A".repeat(32)] {
            assert!(!questions.ask(none, now), "{none}");
        }
        assert!(questions.ask(&first, now));
        assert!(!questions.ask(&first, now + 2 * ASKED_AT_MOST_EVERY), "each acknowledgement repeats it for a while");
        assert!(!questions.ask(&second, now + ASKED_AT_MOST_EVERY - Duration::from_millis(1)));
        assert_eq!(questions.open.take(), Some(first));
        assert!(questions.ask(&second, now + ASKED_AT_MOST_EVERY));
        assert_eq!(questions.open.take(), Some(second));
    }
}
