//! Waiting for an event that another process brings about.

use std::{future::Future, time::Duration};
use tokio::time::{Instant, sleep};

/// Between two checks of a condition, at least: often enough that no scenario is slower for it.
const SHORTEST: Duration = Duration::from_millis(50);
/// And at most.
const LONGEST: Duration = Duration::from_millis(500);
/// So many times as long as a check took: one that starts a program takes a core for 0.2 s, and what is waited for needs that core.
const PAUSE: u32 = 4;
/// And this part of what was waited so far: what took ten seconds is seen half a second late at most, and what waits beside it is not slowed by the question.
const PART: u32 = 20;

/// Looks at `condition` until it yields a value, and returns that value.
///
/// # Panics
///
/// When `timeout` has passed without one; the message names `what` was waited for.
pub async fn until<T, F>(what: &str, timeout: Duration, mut condition: impl FnMut() -> F) -> T
where
    F: Future<Output = Option<T>>,
{
    let start = Instant::now();
    let deadline = start + timeout;
    loop {
        let began = Instant::now();
        if let Some(value) = condition().await {
            return value;
        }
        assert!(Instant::now() < deadline, "waited {timeout:?} in vain for {what}");
        sleep((began.elapsed() * PAUSE).max(start.elapsed() / PART).clamp(SHORTEST, LONGEST)).await;
    }
}
