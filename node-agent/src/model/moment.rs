//! The two clocks of a heartbeat: the wall clock, which people read and which may be set, and `CLOCK_BOOTTIME`, which
//! only runs forward and also while suspended.

use rustix::time::{ClockId, clock_gettime};

/// One moment on both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Milliseconds since 1970-01-01 UTC.
    pub unix_ms: i64,
    /// Nanoseconds since boot.
    pub boottime_ns: u64,
}

impl Moment {
    /// Now.
    #[must_use]
    pub fn now() -> Self {
        let boot = clock_gettime(ClockId::Boottime);
        let seconds = u64::try_from(boot.tv_sec).unwrap_or(0);
        let nanos = u64::try_from(boot.tv_nsec).unwrap_or(0);
        Self {
            unix_ms: jiff::Timestamp::now().as_millisecond(),
            boottime_ns: seconds.saturating_mul(1_000_000_000).saturating_add(nanos),
        }
    }
}
