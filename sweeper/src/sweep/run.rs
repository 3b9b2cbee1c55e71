//! Who sweeps what, and when: the rounds of a replica, and a sweep of everything on request.
//!
//! A replica claims what is due for the current tick, one work unit after the other, until nothing is left that is free. What others hold
//! it looks at again when their leases end, so that nothing waits longer than that for a replica that died. A sweep
//! that fails leaves its lease to run out, and is then tried again by whoever comes first.

use super::{
    Context, Moment, Progress, Report, SweepError,
    discover::{Discovery, discover},
    lease, sweep_unit,
    timetable::Ticks,
};
use crate::{
    inventory::Silent,
    store::{Held, Lease, StoreError, WorkUnitState, WorkUnits},
    work_unit::WorkUnit,
};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::{SignedDuration, Timestamp};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// So many work units are swept side by side by one replica.
const AT_ONCE: usize = 8;
/// A round that changed nothing is not repeated sooner than this.
const PAUSE: Duration = Duration::from_secs(1);
/// How often a sweep on request looks whether a work unit that it waits for is free.
const POLL: Duration = Duration::from_millis(200);

/// One process that sweeps on schedule.
#[derive(Debug)]
pub struct Replica {
    context: Context,
    owner: String,
    /// The ticks for which it has asked which scopes there are.
    discovered_for: Option<Ticks>,
}

impl Replica {
    /// A replica with a name of its own.
    #[must_use]
    pub fn new(context: Context) -> Self {
        Self { context, owner: lease::owner(), discovered_for: None }
    }

    /// What it is called in leases and logs.
    #[must_use]
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// Sweeps what is due for the current ticks and nobody else sweeps. Says after how long there may be more to do for
    /// it, `None` if there will not.
    pub async fn round(&mut self, ticks: &watch::Receiver<Ticks>) -> Option<Duration> {
        match self.sweep_due(ticks).await {
            Ok(wait) => wait.map(|wait| wait.max(PAUSE)),
            Err(error) => {
                tracing::error!(error = %crate::chain(&error), "nothing can be swept; it is tried again");
                Some(self.context.config.sweep.lease / 3)
            }
        }
    }

    async fn sweep_due(&mut self, heard: &watch::Receiver<Ticks>) -> Result<Option<Duration>, StoreError> {
        let ticks = heard.borrow().clone();
        let (store, config) = (&self.context.store, &self.context.config);
        if self.discovered_for.as_ref() == Some(&ticks) {
            let wait = free_in(&store.work_units().await?, &ticks);
            if wait != Some(Duration::ZERO) {
                return Ok(wait);
            }
        }
        let discovery = discover(config).await;
        store.register_scopes(discovery.scopes(), config.sweep.lease).await?;
        self.discovered_for = Some(ticks.clone());
        let (this, ticks, discovery) = (&*self, &ticks, &discovery);
        let due = store.work_units().await?.states.into_iter().filter(|state| is_due(state, ticks));
        // All of them end, whatever becomes of one: what they hold is worth writing.
        let ended: Vec<Result<(), StoreError>> = stream::iter(due)
            .map(|state| async move {
                // A newer tick ends the round: what was found out for the old ones is too old.
                let is_current = *heard.borrow() == *ticks;
                if is_current { this.sweep_one(discovery, &state.unit, ticks).await } else { Ok(()) }
            })
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;
        ended.into_iter().collect::<Result<(), _>>()?;
        Ok(free_in(&store.work_units().await?, ticks))
    }

    /// Does nothing if somebody else sweeps it, or has.
    async fn sweep_one(&self, discovery: &Discovery, unit: &WorkUnit, ticks: &Ticks) -> Result<(), StoreError> {
        let Context { store, config, .. } = &self.context;
        let tick = ticks.of(unit);
        if let Some(lease) = store.claim_due(unit, tick, &self.owner, config.sweep.lease).await? {
            log_taken_over(&lease);
            let moment = Moment { tick, now: Timestamp::now() };
            let swept = sweep_unit(&self.context, discovery, &lease, moment, &Silent).await;
            log(&lease, moment, &swept);
        }
        Ok(())
    }

    /// Releases what it holds, so that others need not wait for its leases to end.
    pub async fn leave(&self) {
        match self.context.store.release_leases(&self.owner).await {
            Ok(0) => {}
            Ok(scopes) => tracing::info!(scopes, "released the scopes that were being swept; others take them over"),
            Err(error) => {
                tracing::warn!(error = %crate::chain(&error), "leases cannot be released; they run out by themselves");
            }
        }
    }
}

fn is_due(state: &WorkUnitState, ticks: &Ticks) -> bool {
    state.swept_for.is_none_or(|swept_for| swept_for < ticks.of(&state.unit))
}

/// After how long a work unit that is due may be claimed; `None` if none is due.
fn free_in(units: &WorkUnits, ticks: &Ticks) -> Option<Duration> {
    let due = units.states.iter().filter(|state| is_due(state, ticks));
    let wait = |held: &Held| Duration::try_from(held.until.duration_since(units.now)).unwrap_or_default();
    due.map(|state| state.held.as_ref().map_or(Duration::ZERO, wait)).min()
}

fn log_taken_over(lease: &Lease) {
    if let Some(from) = &lease.taken_from {
        tracing::warn!(scope = %lease.unit, from, epoch = lease.epoch, "took over a scope whose lease has run out");
    }
}

fn log(lease: &Lease, moment: Moment, swept: &Result<Report, SweepError>) {
    let count = |result: &'static str| metrics::counter!("sweeps_total", "result" => result).increment(1);
    match swept {
        Ok(report) => {
            count(if report.complete { "complete" } else { "incomplete" });
            for line in report.scopes.iter().filter(|line| line.failed.is_some()) {
                tracing::warn!(scope = %lease.unit, kind = line.kind, why = line.failed, "not read");
            }
            tracing::info!(
                scope = %lease.unit,
                tick = %moment.tick,
                epoch = lease.epoch,
                duration_ms = report.finished_at.duration_since(moment.now).as_millis(),
                complete = report.complete,
                active = report.counts.active,
                idle = report.counts.idle,
                unknown = report.counts.unknown,
                opened = ?report.opened,
                closed = ?report.closed,
                "swept"
            );
        }
        Err(error @ (SweepError::LeaseLost { .. } | SweepError::Overtaken { .. })) => {
            count("refused");
            tracing::warn!(tick = %moment.tick, epoch = lease.epoch, "{error}");
        }
        Err(error) => {
            count("failed");
            tracing::error!(
                scope = %lease.unit,
                error = %crate::chain(error),
                "the sweep failed; it is tried again when its lease has run out"
            );
        }
    }
}

/// Sweeps everything as of `now`, whenever it was swept last. A work unit that somebody else is sweeping is waited for as long
/// as a lease lasts; after that the report names who has it.
///
/// # Errors
/// See [`SweepError`]. WorkUnits that were swept before it failed stay written.
pub async fn run(context: &Context, now: Timestamp, progress: &dyn Progress) -> Result<Report, SweepError> {
    run_as(context, &lease::owner(), now, progress).await
}

/// The same under a name that the caller knows: who drops this future releases its leases with
/// [`release_leases`](crate::store::Store::release_leases).
///
/// # Errors
/// As [`run`].
pub async fn run_as(
    context: &Context,
    owner: &str,
    now: Timestamp,
    progress: &dyn Progress,
) -> Result<Report, SweepError> {
    let swept = sweep_all(context, owner, now, progress).await;
    if swept.is_err() {
        // The others were dropped where they stood. If this fails too, their leases run out by themselves.
        let _ = context.store.release_leases(owner).await;
    }
    swept
}

async fn sweep_all(
    context: &Context,
    owner: &str,
    now: Timestamp,
    progress: &dyn Progress,
) -> Result<Report, SweepError> {
    let Context { store, config, .. } = context;
    let asked = Asked { context, owner, now, at: Instant::now(), progress };
    let discovery = discover(config).await;
    store.register_scopes(discovery.scopes(), config.sweep.lease).await?;
    let units: Vec<WorkUnit> = store.work_units().await?.states.into_iter().map(|state| state.unit).collect();
    let not_asked = discovery.not_asked(&units);
    progress.scopes(discovery.to_read(&units));
    let swept: Vec<_> =
        stream::iter(units).map(|unit| asked.sweep(&discovery, unit)).buffer_unordered(AT_ONCE).try_collect().await?;
    let (mut reports, mut held) = (Vec::new(), Vec::new());
    for (unit, swept) in swept {
        match swept {
            Ok(report) => reports.push(report),
            Err(by) => held.push((unit, by)),
        }
    }
    Ok(Report { not_asked, ..Report::union(now, reports, &held, &store.open_findings().await?) })
}

/// A sweep of everything that was asked for.
struct Asked<'a> {
    context: &'a Context,
    owner: &'a str,
    now: Timestamp,
    /// When that was `now`.
    at: Instant,
    progress: &'a dyn Progress,
}

impl Asked<'_> {
    async fn sweep(
        &self,
        discovery: &Discovery,
        unit: WorkUnit,
    ) -> Result<(WorkUnit, Result<Report, Held>), SweepError> {
        let Context { store, config, .. } = self.context;
        let length = config.sweep.lease;
        let since = Instant::now();
        loop {
            if let Some(lease) = store.claim(&unit, self.owner, length).await? {
                let passed = SignedDuration::try_from(self.at.elapsed()).unwrap_or_default();
                let moment = Moment { tick: self.now, now: self.now.checked_add(passed).unwrap_or(self.now) };
                match sweep_unit(self.context, discovery, &lease, moment, self.progress).await {
                    // This machine slept, perhaps. Nothing is written, so that it can begin anew.
                    Err(error @ SweepError::LeaseLost { .. }) => tracing::warn!("{error}"),
                    swept => return Ok((unit, Ok(swept?))),
                }
            }
            let states = store.work_units().await?.states;
            let held = states.into_iter().find(|state| state.unit == unit).and_then(|state| state.held);
            if let Some(held) = held {
                if since.elapsed() >= length {
                    return Ok((unit, Err(held)));
                }
                self.progress.waits_for(&unit, &held.by);
            }
            tokio::time::sleep(POLL).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_790_000_000 + second).unwrap_or_default()
    }

    fn units(states: &[(Option<i64>, Option<i64>)]) -> WorkUnits {
        let state = |(swept_for, until): &(Option<i64>, Option<i64>)| WorkUnitState {
            unit: WorkUnit::Uncovered,
            held: until.map(|until| Held { by: "web-1/7/00".into(), until: at(until) }),
            epoch: 1,
            swept_for: swept_for.map(at),
            started_at: None,
            finished_at: None,
            complete: None,
            last_complete_at: None,
            listed: None,
            failed: None,
        };
        WorkUnits { now: at(0), states: states.iter().map(state).collect() }
    }

    #[test]
    fn a_replica_looks_again_when_the_first_lease_on_something_due_ends() {
        let wait = |states: &[_]| free_in(&units(states), &Ticks::all(at(10)));
        assert_eq!(wait(&[]), None);
        assert_eq!(wait(&[(Some(10), None), (Some(11), Some(5))]), None, "swept for this tick or a later one");
        assert_eq!(wait(&[(Some(9), Some(30)), (None, Some(20)), (Some(10), Some(1))]), Some(Duration::from_secs(20)));
        assert_eq!(wait(&[(Some(9), Some(30)), (None, None)]), Some(Duration::ZERO));
    }
}
