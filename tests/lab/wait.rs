//! Waiting for an event that another process brings about.

use std::{future::Future, time::Duration};
use tokio::time::{Instant, sleep};

/// How often a condition is looked at: often enough that no scenario is slower for it, rarely enough to cost nothing.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Looks at `condition` until it yields a value, and returns that value.
///
/// # Panics
///
/// When `timeout` has passed without one; the message names `what` was waited for.
pub async fn until<T, F>(what: &str, timeout: Duration, mut condition: impl FnMut() -> F) -> T
where
    F: Future<Output = Option<T>>,
{
    let deadline = Instant::now() + timeout;
    loop {
        if let Some(value) = condition().await {
            return value;
        }
        assert!(Instant::now() < deadline, "waited {timeout:?} in vain for {what}");
        sleep(POLL_INTERVAL).await;
    }
}
