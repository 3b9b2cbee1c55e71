//! Until when a call may leave: by the clock that goes on while a process, or its whole machine, stands still.

use aws_sdk_ec2::{
    config::{ConfigBag, Intercept, RuntimeComponents, interceptors::BeforeTransmitInterceptorContextRef},
    error::BoxError,
};
use jiff::SignedDuration;
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// A moment of `CLOCK_BOOTTIME`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(Duration);

impl Deadline {
    /// So long from now.
    #[must_use]
    pub fn after(length: Duration) -> Self {
        Self(now().saturating_add(length))
    }

    /// So long from the moment at which something came, whose age a clock elsewhere tells. This host's own clock is read before that one is asked: a pause while it answers, or behind its answer, is a part of
    /// the age.
    ///
    /// # Errors
    /// If nobody tells the age.
    pub(super) async fn of_age<E>(
        length: Duration,
        age: impl Future<Output = Result<SignedDuration, E>>,
    ) -> Result<Self, E> {
        let before = now();
        let age = Duration::try_from(age.await?).unwrap_or_default();
        Ok(Self(before.saturating_add(length.saturating_sub(age))))
    }

    /// Whether it is not over.
    #[must_use]
    pub fn holds(self) -> bool {
        now() < self.0
    }
}

fn now() -> Duration {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::Boottime);
    Duration::from_secs(tv_sec.unsigned_abs()).saturating_add(Duration::from_nanos(tv_nsec.unsigned_abs()))
}

/// Lets one request leave before a deadline, and no request after it. It is looked at last of all, when the request is signed and about to be written.
#[derive(Clone, Debug)]
pub(super) struct LeavesBefore {
    deadline: Deadline,
    has_left: Arc<AtomicBool>,
}

impl LeavesBefore {
    pub(super) fn new(deadline: Deadline) -> Self {
        Self { deadline, has_left: Arc::default() }
    }

    /// Whether a request has left, or may have.
    pub(super) fn has_left(&self) -> bool {
        self.has_left.load(Ordering::SeqCst)
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the call did not leave in time")]
struct TooLate;

impl Intercept for LeavesBefore {
    fn name(&self) -> &'static str {
        "LeavesBefore"
    }

    fn read_before_transmit(
        &self,
        _context: &BeforeTransmitInterceptorContextRef<'_>,
        _components: &RuntimeComponents,
        _settings: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        // One attempt, whatever the client is set to.
        if !self.deadline.holds() || self.has_left.swap(true, Ordering::SeqCst) {
            return Err(TooLate.into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    #[test]
    fn a_deadline_ends() {
        assert!(Deadline::after(Duration::from_secs(5)).holds());
        assert!(!Deadline::after(Duration::ZERO).holds());
    }

    /// A deadline of what came so many milliseconds ago, and the moments before its age was asked for, and while it was.
    async fn of_age(length: Duration, age: i64) -> (Deadline, Duration, Duration) {
        let (before, mut asked) = (now(), Duration::ZERO);
        let deadline = Deadline::of_age(length, async {
            asked = now();
            // Whoever reads the clock behind this has a later moment.
            while now() == asked {}
            Ok::<_, Infallible>(SignedDuration::from_millis(age))
        });
        let Ok(deadline) = deadline.await;
        (deadline, before, asked)
    }

    #[tokio::test]
    async fn a_pause_while_the_age_is_asked_for_counts() {
        let length = Duration::from_secs(5);
        // A clock elsewhere that is ahead makes nothing fresher, and what is older than it may be is over.
        for (age, left) in [(0, 5_000), (2_000, 3_000), (5_000, 0), (9_000, 0), (-60_000, 5_000)] {
            let left = Duration::from_millis(left);
            let (Deadline(until), before, asked) = of_age(length, age).await;
            assert!(before + left <= until && until <= asked + left, "{age}: {before:?} {until:?} {asked:?}");
        }
    }
}
