//! Which scope is swept when: a schedule for all of them, and others for those that the configuration names.
//!
//! Each schedule ticks by itself. A scope follows the first one that names it; what was missed is caught up with once, for each scope by
//! its own schedule.

use super::schedule::{ScheduleError, Scheduler};
use crate::{
    config::{ScopeSchedule, SweepConfig},
    work_unit::WorkUnit,
};
use chrono::{DateTime, Utc};
use futures::future::try_join_all;
use jiff::Timestamp;
use std::sync::Arc;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// All schedules of a configuration.
#[derive(Debug)]
pub struct Timetable {
    named: Arc<[ScopeSchedule]>,
    /// One for each of `named`, and at last the one for everything else.
    schedules: Vec<Scheduler>,
}

impl Timetable {
    /// Checks all expressions and zones.
    ///
    /// # Errors
    /// [`ScheduleError::Expression`] or [`ScheduleError::Zone`], with the key.
    pub fn new(config: &SweepConfig) -> Result<Self, ScheduleError> {
        let own = config.schedules.iter().enumerate().map(|(n, own)| {
            let zone = own.timezone.as_ref().unwrap_or(&config.timezone);
            Scheduler::new(&format!("sweep.schedules[{n}]"), &own.schedule, zone, config.watchdog)
        });
        let rest = Scheduler::new("sweep", &config.schedule, &config.timezone, config.watchdog);
        Ok(Self { named: config.schedules.as_slice().into(), schedules: own.chain([rest]).collect::<Result<_, _>>()? })
    }

    /// When a work unit is swept next; `None` if there is no such time within the range of dates.
    #[must_use]
    pub fn next_after(&self, unit: &WorkUnit, moment: DateTime<Utc>) -> Option<Timestamp> {
        let next = self.schedules.get(place(&self.named, unit))?.next_after(moment)?;
        Timestamp::from_second(next.timestamp()).ok()
    }

    /// A channel that holds the latest ticks so far: what was missed while nobody ran is due at once. If a schedule never
    /// ticked, the beginning of time stands for it, for which every new scope is due.
    #[must_use]
    pub fn channel(&self) -> (watch::Sender<Ticks>, watch::Receiver<Ticks>) {
        let latest = |schedule: &Scheduler| schedule.latest_at(Utc::now()).unwrap_or(Timestamp::UNIX_EPOCH);
        let latest = self.schedules.iter().map(latest).collect();
        watch::channel(Ticks { named: Arc::clone(&self.named), latest })
    }

    /// Keeps the channel up to date until `stop`, or until nobody listens any more.
    ///
    /// # Errors
    /// [`ScheduleError::Setup`].
    pub async fn run(&self, ticks: watch::Sender<Ticks>, stop: CancellationToken) -> Result<(), ScheduleError> {
        let ticks = &ticks;
        let running = self.schedules.iter().enumerate().map(|(place, schedule)| {
            let announce = move |tick| {
                ticks.send_if_modified(|ticks| ticks.advance(place, tick));
            };
            schedule.run(announce, ticks.closed(), stop.clone())
        });
        try_join_all(running).await.map(drop)
    }
}

fn place(named: &[ScopeSchedule], unit: &WorkUnit) -> usize {
    let (provider, account, region) = unit.words();
    named.iter().position(|own| own.covers(provider, account, region)).unwrap_or(named.len())
}

/// The latest tick of each schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticks {
    named: Arc<[ScopeSchedule]>,
    latest: Vec<Timestamp>,
}

impl Ticks {
    /// The latest tick of the schedule that a work unit follows.
    #[must_use]
    pub fn of(&self, unit: &WorkUnit) -> Timestamp {
        self.latest.get(place(&self.named, unit)).copied().unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// One schedule for everything.
    #[cfg(test)]
    pub(super) fn all(latest: Timestamp) -> Self {
        Self { named: Arc::default(), latest: vec![latest] }
    }

    /// Ticks only go forward, whatever the clock does. True if it did.
    fn advance(&mut self, place: usize, tick: Timestamp) -> bool {
        let Some(latest) = self.latest.get_mut(place).filter(|latest| **latest < tick) else { return false };
        *latest = tick;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inventory::Scope;
    use model::Provider;

    fn unit(account: &str, region: &str) -> WorkUnit {
        WorkUnit::Scope(Scope { provider: Provider::Aws, account: account.into(), region: region.into() })
    }

    fn own(provider: Option<&str>, account: Option<&str>, region: Option<&str>, schedule: &str) -> ScopeSchedule {
        let word = |word: Option<&str>| word.map(str::to_owned);
        let (provider, account, region) = (word(provider), word(account), word(region));
        ScopeSchedule { provider, account, region, schedule: schedule.to_owned(), timezone: None }
    }

    fn timetable() -> Timetable {
        let berlin = ScopeSchedule {
            timezone: Some("Europe/Berlin".to_owned()),
            ..own(None, Some("111111111111"), Some("eu-central-1"), "0 0 9 * * *")
        };
        let schedules = vec![
            berlin,
            own(None, Some("111111111111"), None, "0 30 * * * *"),
            own(Some(WorkUnit::NO_PROVIDER), None, None, "0 * * * * *"),
        ];
        Timetable::new(&SweepConfig { schedules, ..SweepConfig::default() }).expect("schedules")
    }

    #[test]
    fn a_scope_follows_the_first_schedule_that_names_it_in_that_schedules_zone() {
        let moment = "2026-07-01T10:00:01Z".parse().expect("a time");
        let next = |unit: &WorkUnit| timetable().next_after(unit, moment).map(|next| next.to_string());
        for (unit, expected) in [
            (unit("111111111111", "eu-central-1"), "2026-07-02T07:00:00Z"),
            (unit("111111111111", "us-east-1"), "2026-07-01T10:30:00Z"),
            (unit("222222222222", "eu-central-1"), "2026-07-01T10:10:00Z"),
            (WorkUnit::Uncovered, "2026-07-01T10:01:00Z"),
        ] {
            assert_eq!(next(&unit).as_deref(), Some(expected), "{unit}");
        }
    }

    #[test]
    fn a_tick_is_due_for_its_own_scopes_alone_and_never_goes_back() {
        let (sender, receiver) = timetable().channel();
        let (named, other) = (unit("111111111111", "us-east-1"), unit("222222222222", "us-east-1"));
        let before = receiver.borrow().of(&other);
        let tick: Timestamp = "2200-01-01T00:30:00Z".parse().expect("a time");
        assert!(sender.send_if_modified(|ticks| ticks.advance(1, tick)));
        assert_eq!((receiver.borrow().of(&named), receiver.borrow().of(&other)), (tick, before));
        let earlier = "2200-01-01T00:00:00Z".parse().expect("a time");
        assert!(!sender.send_if_modified(|ticks| ticks.advance(1, earlier)), "a clock that is set back");
        assert!(!sender.send_if_modified(|ticks| ticks.advance(1, tick)), "nothing new");
        assert_eq!(receiver.borrow().of(&named), tick);
    }

    #[test]
    fn what_is_no_schedule_is_refused_with_its_key() {
        let refused = |config: SweepConfig| Timetable::new(&config).expect_err("refused").to_string();
        let config = |schedules| SweepConfig { schedules, ..SweepConfig::default() };
        let bad = refused(config(vec![own(None, Some("1"), None, "0 0 * * * *"), own(None, Some("2"), None, "often")]));
        assert!(bad.contains("`sweep.schedules[1].schedule` is `often`"), "{bad}");
        let bad = refused(SweepConfig { schedule: "often".to_owned(), ..SweepConfig::default() });
        assert!(bad.contains("`sweep.schedule` is `often`"), "{bad}");
    }
}
