//! When sweeps run: a cron expression in a named time zone, behind a watchdog.
//!
//! `tokio-cron-scheduler` keeps the clock. Two things about it need watching: a repeated job can stop for good when a tick
//! lies in the past (its issues 113 and 114), and it fixes the time zone's offset when a job is added, so that summer
//! time shifts it. The watchdog works out by itself when the next tick is due; one that is late by more than
//! `sweep.watchdog` is caught up with once and the scheduler is set up anew. Cost: one comparison a second.
//!
//! A tick is named by the time that the expression gives for it, not by when it is noticed, so that replicas whose clocks
//! and schedulers differ by seconds mean the same tick. Of several that were missed only the latest counts.

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use croner::{
    Cron,
    parser::{CronParser, Seconds},
};
use jiff::Timestamp;
use std::time::Duration;
use tokio::{
    sync::mpsc,
    time::{Instant, MissedTickBehavior, interval_at},
};
use tokio_cron_scheduler::{Job, JobScheduler, JobSchedulerError};
use tokio_util::sync::CancellationToken;

/// The scheduler may wake a little before the second that it waits for.
const EARLY: Duration = Duration::from_millis(500);

/// Why a schedule cannot be kept.
#[derive(Debug, thiserror::Error)]
pub enum ScheduleError {
    /// The expression is none.
    #[error(
        "`{key}.schedule` is `{text}`, which is not a cron expression of six fields, such as `0 */10 * * * *`: {why}"
    )]
    Expression {
        /// Where it stands.
        key: String,
        /// What it says.
        text: String,
        /// What is wrong with it.
        why: String,
    },
    /// The zone is none.
    #[error("`{key}.timezone` is `{text}`, which is not an IANA time zone such as `UTC` or `Europe/Berlin`")]
    Zone {
        /// Where it stands.
        key: String,
        /// What it says.
        text: String,
    },
    /// The scheduler refused.
    #[error("the scheduler cannot be set up")]
    Setup(#[from] JobSchedulerError),
}

/// Says which tick is the latest.
#[derive(Debug)]
pub struct Scheduler {
    text: String,
    cron: Cron,
    zone: Tz,
    /// How late a tick may be before it is caught up with.
    tolerance: Duration,
}

impl Scheduler {
    /// Checks an expression and a zone, which `key` says the place of.
    ///
    /// # Errors
    /// [`ScheduleError::Expression`] or [`ScheduleError::Zone`].
    pub fn new(key: &str, expression: &str, zone: &str, tolerance: Duration) -> Result<Self, ScheduleError> {
        let (key, text) = (key.to_owned(), expression.to_owned());
        let cron =
            CronParser::builder().seconds(Seconds::Required).dom_and_dow(true).build().parse(expression).map_err(
                |error| ScheduleError::Expression { key: key.clone(), text: text.clone(), why: error.to_string() },
            )?;
        let zone = zone.parse().map_err(|_| ScheduleError::Zone { key, text: zone.to_owned() })?;
        Ok(Self { text, cron, zone, tolerance })
    }

    /// The first tick after a moment; `None` if there is none within the range of dates.
    #[must_use]
    pub fn next_after(&self, moment: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let next = self.cron.find_next_occurrence(&moment.with_timezone(&self.zone), false).ok()?;
        Some(next.with_timezone(&Utc))
    }

    /// The last tick at or before a moment; `None` if there is none within the range of dates.
    #[must_use]
    pub fn latest_at(&self, moment: DateTime<Utc>) -> Option<Timestamp> {
        let latest = self.cron.find_previous_occurrence(&moment.with_timezone(&self.zone), true).ok()?;
        Timestamp::from_second(latest.timestamp()).ok()
    }

    /// Tells the latest tick whenever it is another one, until `stop`, or until `unheard`.
    ///
    /// # Errors
    /// [`ScheduleError::Setup`].
    pub(super) async fn run(
        &self,
        announce: impl Fn(Timestamp),
        unheard: impl Future<Output = ()>,
        stop: CancellationToken,
    ) -> Result<(), ScheduleError> {
        let mut last = None;
        // A job that runs a moment early, and once more in time, means the same tick.
        let mut announce = |now| {
            if let Some(tick) = self.latest_at(now)
                && last.replace(tick) != Some(tick)
            {
                announce(tick);
            }
        };
        tokio::pin!(unheard);
        let (heard, mut hear) = mpsc::channel(1);
        let mut scheduler = self.set_up(heard.clone()).await?;
        let mut due = self.next_after(Utc::now());
        let second = Duration::from_secs(1);
        let mut watch = interval_at(Instant::now() + second, second);
        watch.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                () = &mut unheard => break,
                Some(()) = hear.recv() => {
                    let now = Utc::now() + EARLY;
                    due = self.next_after(now);
                    announce(now);
                }
                _ = watch.tick() => {
                    let now = Utc::now();
                    if due.is_some_and(|due| is_late(due, now, self.tolerance)) {
                        tracing::warn!(due = ?due, "a scheduled sweep is late; it is caught up with and the schedule is set up anew");
                        metrics::counter!("sweep_schedule_restarts_total").increment(1);
                        let _ = scheduler.shutdown().await;
                        scheduler = self.set_up(heard.clone()).await?;
                        due = self.next_after(now);
                        announce(now);
                    }
                }
            }
        }
        let _ = scheduler.shutdown().await;
        Ok(())
    }

    async fn set_up(&self, heard: mpsc::Sender<()>) -> Result<JobScheduler, JobSchedulerError> {
        let scheduler = JobScheduler::new().await?;
        let job = Job::new_async_tz(self.text.as_str(), self.zone, move |_, _| {
            let heard = heard.clone();
            Box::pin(async move {
                // Full or closed: somebody is about to look anyway, or nobody ever will.
                let _ = heard.try_send(());
            })
        })?;
        scheduler.add(job).await?;
        scheduler.start().await?;
        Ok(scheduler)
    }
}

fn is_late(due: DateTime<Utc>, now: DateTime<Utc>, tolerance: Duration) -> bool {
    (now - due).to_std().is_ok_and(|late| late > tolerance)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::watch;

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().expect("a time")
    }

    #[test]
    fn ticks_follow_the_zone_through_summer_time() {
        let daily =
            Scheduler::new("sweep", "0 0 9 * * *", "Europe/Berlin", Duration::from_secs(60)).expect("a schedule");
        assert_eq!(daily.next_after(at("2026-03-28T12:00:00Z")), Some(at("2026-03-29T07:00:00Z")));
        assert_eq!(daily.next_after(at("2026-10-25T12:00:00Z")), Some(at("2026-10-26T08:00:00Z")));
    }

    #[test]
    fn a_tick_is_named_by_its_scheduled_time_whenever_it_is_noticed() {
        let latest = |expression: &str, zone: &str, moment: &str| {
            let schedule = Scheduler::new("sweep", expression, zone, Duration::from_secs(60)).expect("a schedule");
            schedule.latest_at(at(moment)).map(|tick| tick.to_string())
        };
        for moment in ["2026-11-21T20:10:00Z", "2026-11-21T20:10:00.7Z", "2026-11-21T20:19:59.999Z"] {
            assert_eq!(latest("0 */10 * * * *", "UTC", moment).as_deref(), Some("2026-11-21T20:10:00Z"), "{moment}");
        }
        // Of a week without a sweeper the last day counts, by the clock of the zone.
        for (moment, tick) in [
            ("2026-03-29T06:59:59Z", "2026-03-28T08:00:00Z"),
            ("2026-03-29T07:00:00Z", "2026-03-29T07:00:00Z"),
            ("2026-10-26T07:59:59Z", "2026-10-25T08:00:00Z"),
        ] {
            assert_eq!(latest("0 0 9 * * *", "Europe/Berlin", moment).as_deref(), Some(tick), "{moment}");
        }
    }

    #[test]
    fn a_tick_is_late_only_after_its_tolerance_has_passed() {
        let due = at("2026-01-01T00:00:00Z");
        assert!(!is_late(due, at("2025-12-31T23:00:00Z"), Duration::from_secs(60)));
        assert!(!is_late(due, at("2026-01-01T00:01:00Z"), Duration::from_secs(60)));
        assert!(is_late(due, at("2026-01-01T00:01:01Z"), Duration::from_secs(60)));
    }

    #[test]
    fn what_is_no_schedule_is_refused_with_its_key() {
        for (expression, zone, key) in [
            ("*/10 * * * *", "UTC", "sweep.schedule"),
            ("", "UTC", "sweep.schedule"),
            ("0 * * * * *", "Mars", "sweep.timezone"),
        ] {
            let error = Scheduler::new("sweep", expression, zone, Duration::ZERO).expect_err("refused");
            assert!(error.to_string().contains(key), "{error}");
        }
    }

    #[tokio::test]
    async fn ticks_arrive_while_the_clock_runs() {
        let scheduler = Scheduler::new("sweep", "* * * * * *", "UTC", Duration::from_secs(60)).expect("a schedule");
        let (sender, mut receiver) = watch::channel(Timestamp::UNIX_EPOCH);
        let stop = CancellationToken::new();
        let running = tokio::spawn({
            let stop = stop.clone();
            async move {
                let announce = |tick| {
                    sender.send_replace(tick);
                };
                scheduler.run(announce, sender.closed(), stop).await
            }
        });
        let mut last = *receiver.borrow_and_update();
        while last.duration_since(Timestamp::UNIX_EPOCH).is_zero() {
            assert!(receiver.changed().await.is_ok());
            last = *receiver.borrow_and_update();
        }
        for _ in 0..2 {
            let tick = tokio::time::timeout(Duration::from_secs(20), receiver.changed()).await;
            assert!(matches!(tick, Ok(Ok(()))));
            let tick = *receiver.borrow_and_update();
            assert!(tick > last && tick.subsec_nanosecond() == 0, "{tick} after {last}");
            last = tick;
        }
        stop.cancel();
        assert!(running.await.expect("the task ends").is_ok());
    }
}
