//! Who sweeps what, and when: the rounds of a replica, and a sweep of everything on request.
//!
//! A replica claims what is due, one work unit after the other and the longest unswept first, until nothing is left that is free. What others hold
//! it looks at again when their leases end, so that nothing waits longer than that for a replica that died. A sweep
//! that fails leaves its lease to run out, and is then tried again by whoever comes first.

use super::{
    Context, Moment, Progress, Report, SweepError,
    discover::{Discovery, discover},
    lease,
    queue::{Queue, Taken},
    sweep_unit,
    timetable::Ticks,
};
use crate::{
    inventory::Silent,
    store::{Held, Lease},
    work_unit::WorkUnit,
};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::{SignedDuration, Timestamp};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// So many work units are swept side by side by one replica.
const AT_ONCE: usize = 8;
/// How often a replica says that it serves: three times as often as it must.
const BEAT: Duration = Duration::from_secs(60);
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

    /// Sweeps what is due and nobody else sweeps, until nothing is left, not even by a tick that comes meanwhile. Says after how long
    /// there may be more to do for it, `None` if there will not.
    pub async fn round(&mut self, ticks: &watch::Receiver<Ticks>) -> Option<Duration> {
        let Self { context, owner, discovered_for } = self;
        let mut queue = Queue::new(context, owner, ticks.clone(), discovered_for);
        // Whoever has swept one takes the next at once, whatever the others are still at.
        let units = stream::unfold(&mut queue, |queue| async move { Some((queue.next().await?, queue)) });
        units.for_each_concurrent(AT_ONCE, |taken| sweep_one(context, taken)).await;
        queue.wait()
    }

    /// Says that it serves, for as long as this is awaited: others take the smaller shares for it. It never ends.
    pub fn serves(&self) -> impl Future<Output = ()> + use<> {
        let (store, owner) = (self.context.store.clone(), self.owner.clone());
        async move {
            loop {
                if let Err(error) = store.note_replica(&owner).await {
                    tracing::warn!(error = %crate::chain(&error), "other replicas cannot be told that this one serves");
                }
                tokio::time::sleep(BEAT).await;
            }
        }
    }

    /// Releases what it holds, so that others need not wait for its leases to end.
    pub async fn leave(&self) {
        if let Err(error) = self.context.store.forget_replica(&self.owner).await {
            tracing::warn!(error = %crate::chain(&error), "other replicas cannot be told that this one ends");
        }
        match self.context.store.release_leases(&self.owner).await {
            Ok(0) => {}
            Ok(scopes) => tracing::info!(scopes, "released the scopes that were being swept; others take them over"),
            Err(error) => {
                tracing::warn!(error = %crate::chain(&error), "leases cannot be released; they run out by themselves");
            }
        }
    }
}

async fn sweep_one(context: &Context, taken: Taken) {
    let lease = &taken.lease;
    log_taken_over(lease);
    let moment = Moment { tick: taken.tick, now: Timestamp::now() };
    let swept = sweep_unit(context, &taken.discovery, lease, moment, &Silent).await;
    log(lease, moment, &swept);
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
                waiting = report.counts.waiting,
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
