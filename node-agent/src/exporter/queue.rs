//! The spool as two tasks share it: one puts in and never waits for the other, which takes out.
//!
//! The lock is held for file operations only, never across a request.

use crate::spool::{Spool, Stats};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// A spool between collection and sending.
pub struct Queue {
    spool: Mutex<Spool>,
    grown: Notify,
}

impl Queue {
    /// Shares a spool.
    #[must_use]
    pub fn new(spool: Spool) -> Self {
        Self { spool: Mutex::new(spool), grown: Notify::new() }
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

    /// Waits until something was put in since the last call.
    pub async fn grown(&self) {
        self.grown.notified().await;
    }
}
