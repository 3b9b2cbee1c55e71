//! When to measure: a steady schedule on `CLOCK_BOOTTIME`, which also runs while the machine sleeps.
//!
//! Ticks lie at whole intervals from the first one, so they do not drift. A tick that is missed (a machine that slept, a sample that
//! took long) makes one longer interval; no interval but the first, and one that a sample out of turn ends, is shorter than half of the configured one,
//! and that one is not shorter than two seconds, or half of the configured one where that is less.
//!
//! The first tick comes at a part of the interval that belongs to the node: machines that start in the same second, by the
//! thousand, measure and send at moments of their own from then on.

use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime, timerfd_create,
    timerfd_settime,
};
use sha2::{Digest as _, Sha256};
use std::{io, os::fd::OwnedFd, time::Duration};
use tokio::io::unix::AsyncFd;

/// What a sample out of turn speaks about at least, unless half of the interval is shorter.
///
/// The kernel shows the CPUs' time by the 10 ms, and charges it by ticks of 4 ms and more to whoever runs just then. An answer 78 ms after the last
/// heartbeat was held to 16 ms of CPU time that is nobody's, which two such steps are: machines that slept were told not to by chance. In 2 s
/// they are a twentieth of what is allowed, and the sweeper sees 2 s of what the machine does.
const LEAST: Duration = Duration::from_secs(2);

/// The pure part: which tick is next.
#[derive(Clone, Copy, Debug)]
struct Schedule {
    origin: Duration,
    interval: Duration,
}

impl Schedule {
    /// The first tick that lies at least half an interval after the last sample.
    fn after(&self, last: Duration) -> Duration {
        let since = last.saturating_sub(self.origin) + self.interval / 2;
        let ticks = since.as_nanos().div_ceil(self.interval.as_nanos().max(1));
        self.origin + self.interval.saturating_mul(u32::try_from(ticks).unwrap_or(u32::MAX))
    }

    /// When a sample out of turn says something, after the last one.
    fn worthwhile(&self, last: Duration) -> Duration {
        last + LEAST.min(self.interval / 2)
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
        Self::start_after(interval, interval)
    }

    /// The first tick is `first` away, which is at most one interval; the others follow it at whole intervals.
    ///
    /// # Errors
    /// If the process may open no more files.
    pub fn start_after(first: Duration, interval: Duration) -> io::Result<Self> {
        let origin = (boottime() + first).saturating_sub(interval);
        let timer = timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        // SAFETY: an `OwnedFd` is that one open file until it is dropped, and `AsyncFd` drops it only after deregistering it.
        let timer = unsafe { AsyncFd::register(timer) }?;
        Ok(Self { schedule: Schedule { origin, interval }, last: origin, timer })
    }

    /// How long it is until a sample out of turn says something. No tick lies before that.
    #[must_use]
    pub fn until_worthwhile(&self) -> Duration {
        self.schedule.worthwhile(self.last).saturating_sub(boottime())
    }

    /// A sample is taken out of turn: the next tick is at least half an interval later.
    pub fn sampled(&mut self) {
        self.last = boottime();
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

/// The part of a length of time that belongs to this node: the same each time, and spread evenly over all nodes.
#[must_use]
pub fn share_of(node: &heartbeat::NodeId, length: Duration) -> Duration {
    let digest = Sha256::digest(node.to_string().as_bytes());
    let head = digest.iter().take(4).fold(0_u32, |sum, byte| sum << 8 | u32::from(*byte));
    length.mul_f64(f64::from(head) / f64::from(u32::MAX))
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
                prop_assert!(schedule.worthwhile(last) <= tick);
                prop_assert!(schedule.worthwhile(last) - last >= LEAST.min(interval / 2));
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

    #[test]
    fn ten_thousand_nodes_that_start_together_do_not_come_together() {
        let interval = Duration::from_secs(30);
        let mut per_second = [0_u32; 31];
        for number in 0..10_000_u64 {
            let node = format!("aws:123456789012:eu-central-1:i-{number:017x}").parse().unwrap();
            let share = share_of(&node, interval);
            assert_eq!(share, share_of(&node, interval));
            per_second[usize::try_from(share.as_secs()).unwrap()] += 1;
        }
        // 333 each on average; five standard deviations are 91.
        assert!(per_second[..30].iter().all(|count| (242..=425).contains(count)), "{per_second:?}");
    }

    #[tokio::test]
    async fn the_first_tick_comes_when_it_is_due_and_the_others_keep_its_distance() {
        let (first, interval) = (Duration::from_millis(20), Duration::from_millis(100));
        let start = boottime();
        let mut ticker = Ticker::start_after(first, interval).unwrap();
        for count in 0..3 {
            ticker.tick().await.unwrap();
            let due = start + first + interval * count;
            assert!(ticker.last >= due, "tick {count} is early");
            assert_eq!(
                (ticker.schedule.after(ticker.last) - ticker.schedule.origin).as_nanos() % interval.as_nanos(),
                0
            );
        }
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
