//! When to measure: a steady schedule on `CLOCK_BOOTTIME`, which also runs while the machine sleeps.
//!
//! Ticks lie at whole intervals from the start, so they do not drift. A tick that is missed (a machine that slept, a reading that
//! took long) makes one longer interval; no interval is shorter than half of the configured one.

use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime, timerfd_create,
    timerfd_settime,
};
use std::{io, os::fd::OwnedFd, time::Duration};
use tokio::io::unix::AsyncFd;

/// The pure part: which tick is next.
#[derive(Clone, Copy, Debug)]
struct Schedule {
    origin: Duration,
    interval: Duration,
}

impl Schedule {
    /// The first tick that lies at least half an interval after the last reading.
    fn after(&self, last: Duration) -> Duration {
        let since = last.saturating_sub(self.origin) + self.interval / 2;
        let ticks = since.as_nanos().div_ceil(self.interval.as_nanos().max(1));
        self.origin + self.interval.saturating_mul(u32::try_from(ticks).unwrap_or(u32::MAX))
    }
}

/// Waits for the ticks of a schedule.
pub struct Ticker {
    schedule: Schedule,
    last: Duration,
    timer: AsyncFd<OwnedFd>,
}

/// Time since boot, sleep included.
fn boottime() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(now.tv_nsec).unwrap_or_default())
}

impl Ticker {
    /// The schedule begins now; its first tick is one interval away.
    ///
    /// # Errors
    /// If the process may open no more files.
    pub fn start(interval: Duration) -> io::Result<Self> {
        let origin = boottime();
        let timer = timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        // SAFETY: an `OwnedFd` is that one open file until it is dropped, and `AsyncFd` drops it only after deregistering it.
        let timer = unsafe { AsyncFd::register(timer) }?;
        Ok(Self { schedule: Schedule { origin, interval }, last: origin, timer })
    }

    /// Waits for the next tick. It is safe to drop the wait and begin it again.
    ///
    /// # Errors
    /// If the kernel refuses the timer, which it does not.
    pub async fn tick(&mut self) -> io::Result<()> {
        let at = self.schedule.after(self.last);
        let at =
            Timespec { tv_sec: i64::try_from(at.as_secs()).unwrap_or(i64::MAX), tv_nsec: i64::from(at.subsec_nanos()) };
        let never = Timespec { tv_sec: 0, tv_nsec: 0 };
        let setting = Itimerspec { it_interval: never, it_value: at };
        timerfd_settime(self.timer.get_ref(), TimerfdTimerFlags::ABSTIME, &setting)?;
        let mut expirations = [0_u8; 8];
        loop {
            let mut ready = self.timer.readable().await?;
            let read = ready.try_io(|timer| Ok(rustix::io::read(timer.get_ref(), &mut expirations)?));
            if let Ok(read) = read {
                read?;
                break;
            }
        }
        self.last = boottime();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ticks_do_not_drift_and_no_interval_is_short(
            origin_ms in 0_u64..1_000_000, interval_ms in 100_u64..60_000, late_ms in prop::collection::vec(0_u64..200_000, 1..50)
        ) {
            let interval = Duration::from_millis(interval_ms);
            let schedule = Schedule { origin: Duration::from_millis(origin_ms), interval };
            let mut last = schedule.origin;
            for late in late_ms {
                let tick = schedule.after(last);
                prop_assert_eq!((tick - schedule.origin).as_nanos() % interval.as_nanos(), 0);
                prop_assert!(tick >= last + interval / 2);
                prop_assert!(tick <= last + interval * 3 / 2);
                last = tick + Duration::from_millis(late);
            }
        }
    }

    #[test]
    fn a_missed_tick_is_one_longer_interval_and_never_two_short_ones() {
        let schedule = Schedule { origin: Duration::ZERO, interval: Duration::from_secs(10) };
        let after = |s: f64| schedule.after(Duration::from_secs_f64(s)).as_secs();
        assert_eq!(after(0.0), 10);
        assert_eq!(after(10.001), 20, "on time: the next tick");
        assert_eq!(after(13.0), 20, "a little late: a shorter interval brings the schedule back");
        assert_eq!(after(18.0), 30, "very late: the next tick is skipped");
        assert_eq!(after(3600.5), 3610, "after an hour of sleep: one long interval, then the schedule");
    }

    #[tokio::test]
    async fn ticks_come_at_whole_intervals_from_the_start() {
        let interval = Duration::from_millis(50);
        let mut ticker = Ticker::start(interval).unwrap();
        let origin = ticker.last;
        for _ in 0..4 {
            let due = ticker.schedule.after(ticker.last);
            ticker.tick().await.unwrap();
            assert!(ticker.last >= due, "never early");
        }
        assert!(ticker.last - origin >= 4 * interval / 2);
    }
}
