//! What a replica sweeps next: whenever it can take one more, the work unit that has waited longest.
//!
//! The order is that of the database's rows, so that all replicas go by one queue, and whoever is free takes its head, but no more at a time than its
//! share: what is due, divided by the replicas that serve. What is beyond it is left to the others for two seconds and taken then, so nothing waits for the slowest:
//! a tick that comes while a work unit is still being swept makes the others due at once.

use super::{
    Context,
    discover::{Discovery, discover},
    timetable::Ticks,
};
use crate::store::{Held, Lease, StoreError, WorkUnitState, WorkUnits};
use jiff::Timestamp;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::watch;

/// Where nothing could be taken it is not tried again sooner than this.
const PAUSE: Duration = Duration::from_secs(1);
/// So long what is beyond its share is left to other replicas, each time: one that was killed is still counted, and one with another schedule may not look.
const COURTESY: Duration = Duration::from_secs(2);

/// A work unit that was claimed, to be swept now. It counts as being swept until it is dropped.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) lease: Lease,
    /// The scheduled time that it was due for.
    pub(super) tick: Timestamp,
    pub(super) discovery: Arc<Discovery>,
    _swept: Swept,
}

/// One of those that are being swept.
#[derive(Debug)]
struct Swept(watch::Sender<usize>);

impl Swept {
    fn new(count: &watch::Sender<usize>) -> Self {
        count.send_modify(|count| *count = count.saturating_add(1));
        Self(count.clone())
    }
}

impl Drop for Swept {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count = count.saturating_sub(1));
    }
}

enum Next {
    Unit(Box<Taken>),
    /// Nothing is free, and will be after so long at the earliest; `None`: not before the next tick.
    After(Option<Duration>),
}

/// The work units of one round of a replica.
#[derive(Debug)]
pub(super) struct Queue<'a> {
    context: &'a Context,
    owner: &'a str,
    ticks: watch::Receiver<Ticks>,
    /// The ticks for which it was asked which scopes there are.
    discovered_for: &'a mut Option<Ticks>,
    /// What was found out then; none where there was nothing to sweep with it, since it grows old.
    discovery: Option<Arc<Discovery>>,
    /// So many work units that were taken from here are being swept.
    swept: watch::Sender<usize>,
    wait: Option<Duration>,
    /// Since when it has left to others what is free.
    at_share_since: Option<Instant>,
}

impl<'a> Queue<'a> {
    pub(super) fn new(
        context: &'a Context,
        owner: &'a str,
        ticks: watch::Receiver<Ticks>,
        discovered_for: &'a mut Option<Ticks>,
    ) -> Self {
        let swept = watch::Sender::new(0);
        Self { context, owner, ticks, discovered_for, discovery: None, swept, wait: None, at_share_since: None }
    }

    /// Once [`Self::next`] has given none: after how long there may be something again, `None` if not before the next tick.
    pub(super) fn wait(&self) -> Option<Duration> {
        self.wait
    }

    /// The next one, as soon as one is due and free. None once nothing is free and nothing is being swept any more; while something is,
    /// ticks are waited for, and leases that end.
    pub(super) async fn next(&mut self) -> Option<Taken> {
        loop {
            let ticks = self.ticks.borrow_and_update().clone();
            let mut swept = self.swept.subscribe();
            let is_last = *swept.borrow_and_update() == 0;
            let next = self.take(&ticks).await.unwrap_or_else(|error| {
                tracing::error!(error = %crate::chain(&error), "nothing can be swept; it is tried again");
                Next::After(Some(self.context.config.sweep.lease / 3))
            });
            match next {
                Next::Unit(taken) => return Some(*taken),
                Next::After(wait) => self.wait = wait.map(|wait| wait.max(PAUSE)),
            }
            if is_last {
                return None;
            }
            let wait = self.wait;
            let again = async {
                match wait {
                    Some(wait) => tokio::time::sleep(wait).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                // No more ticks: the sweeper is stopping.
                changed = self.ticks.changed() => if changed.is_err() { return None },
                // One less in hand: there may be room in its share.
                _ = swept.changed() => {}
                () = again => {}
            }
        }
    }

    async fn take(&mut self, ticks: &Ticks) -> Result<Next, StoreError> {
        let Context { store, config, .. } = self.context;
        let lease = config.sweep.lease;
        let is_new = self.discovered_for.as_ref() != Some(ticks);
        let discovery = match self.discovery.clone().filter(|_| !is_new) {
            Some(discovery) => discovery,
            None => {
                // No provider is asked for nothing.
                let wait = if is_new { Some(Duration::ZERO) } else { free_in(&store.work_units().await?, ticks) };
                if wait != Some(Duration::ZERO) {
                    return Ok(Next::After(wait));
                }
                let discovery = Arc::new(discover(config).await);
                store.register_scopes(discovery.scopes(), lease).await?;
                *self.discovered_for = Some(ticks.clone());
                Arc::clone(self.discovery.insert(discovery))
            }
        };
        if self.has_its_share(ticks).await? && self.at_share_since.get_or_insert_with(Instant::now).elapsed() < COURTESY
        {
            return Ok(Next::After(Some(PAUSE)));
        }
        self.at_share_since = None;
        match store.claim_longest_unswept(|unit| ticks.of(unit), self.owner, lease).await? {
            Some(lease) => {
                let (tick, swept) = (ticks.of(&lease.unit), Swept::new(&self.swept));
                Ok(Next::Unit(Box::new(Taken { lease, tick, discovery, _swept: swept })))
            }
            None => {
                // What is free only later is swept with what is found out then.
                self.discovery = None;
                Ok(Next::After(free_in(&store.work_units().await?, ticks)))
            }
        }
    }

    /// Whether it sweeps as many work units as are due for each replica that serves. Others have fewer then, and are to take what is free.
    async fn has_its_share(&self, ticks: &Ticks) -> Result<bool, StoreError> {
        let store = &self.context.store;
        let replicas = store.note_replica(self.owner).await?;
        let in_hand = *self.swept.borrow();
        if in_hand == 0 || replicas == 1 {
            return Ok(false);
        }
        let due = store.work_units().await?.states.iter().filter(|state| is_due(state, ticks)).count();
        Ok(in_hand >= due.div_ceil(replicas))
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

#[cfg(test)]
mod tests;
