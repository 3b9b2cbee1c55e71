//! Whether what was stopped runs again by somebody else's hand, or another machine was launched in its place: for a day each action is held against what sweeps have seen since. Then somebody missed the machine, and nothing
//! more of that class is done in that account until a person has looked.

use super::{ActError, Executor};
use crate::{
    savings::{listed_until, started_again, successor, twin},
    store::{Action, Doer, StoreError, actions::note_relapse},
};
use jiff::{SignedDuration, Timestamp};
use model::{
    ResourceKind,
    plan::{ActionClass, ContentHash, Plan},
};
use std::{
    collections::HashMap,
    sync::{MutexGuard, PoisonError},
};

/// How it has come undone, as people are told.
const STARTED: &str = "started again by somebody else";
pub(super) const REPLACED: &str = "another machine was launched in its place:";
/// Whoever starts a machine later than that after it was stopped has not missed it.
const WATCHED_FOR: SignedDuration = SignedDuration::from_hours(24);

impl Executor {
    /// Notes what somebody has started again.
    pub(super) async fn search_for_relapses(&self) -> Result<(), ActError> {
        let now = self.store.now().await?;
        let done = self.store.done_since(now.checked_sub(WATCHED_FOR).unwrap_or(Timestamp::MIN)).await?;
        if done.is_empty() {
            return Ok(());
        }
        let listings = self.store.listings_at(now).await?;
        self.looked_at().retain(|plan, _| done.iter().any(|action| action.plan == *plan));
        for action in done {
            // What was given back or deleted does not run again.
            let Some(called_at) = action.called_at.filter(|_| action.resource.kind == ResourceKind::Instance) else {
                continue;
            };
            // It was held against that listing before, and a newer one is needed to show anything else.
            let listed = listed_until(&listings, &action.resource);
            if listed.is_some() && self.looked_at().get(&action.plan).copied() == listed {
                continue;
            }
            let Some((at, because)) = self.come_undone(&action, called_at).await? else {
                listed.and_then(|listed| self.looked_at().insert(action.plan.clone(), listed));
                continue;
            };
            let by = Doer { who: self.holder.clone(), way: "service" };
            if self.note_relapse(action.clone(), at, &because, &by).await? {
                let (plan, resource) = (&action.plan, &action.resource);
                tracing::warn!(%plan, %resource, %at, because, "what was stopped has come undone; nothing more of its class is done in that account until somebody has looked (`sweeper actions review`)");
            }
        }
        Ok(())
    }

    fn looked_at(&self) -> MutexGuard<'_, HashMap<ContentHash, Timestamp>> {
        self.looked_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Since when, and how.
    async fn come_undone(
        &self,
        action: &Action,
        called_at: Timestamp,
    ) -> Result<Option<(Timestamp, String)>, ActError> {
        let versions = self.store.resource_history(&action.resource.to_string()).await?;
        if let Some(at) = started_again(called_at, &versions) {
            return Ok(Some((at, STARTED.to_owned())));
        }
        let Some(stopped) = versions.last() else { return Ok(None) };
        let newcomers = self.store.newcomers(&action.resource, called_at).await?;
        if action.class == ActionClass::Destructive {
            let plan = self.store.sealed_plan(&action.plan).await?;
            let found = plan.as_ref().and_then(Plan::group).and_then(|group| successor(group, called_at, &newcomers));
            return Ok(found.map(|(at, other)| (at, format!("{REPLACED} {other}, by its group"))));
        }
        Ok(twin(stopped, called_at, &newcomers).map(|(at, twin)| (at, format!("{REPLACED} {twin}"))))
    }

    /// Notes it, and tells it where it was told that the machine was stopped. False if that was done before.
    async fn note_relapse(
        &self,
        mut action: Action,
        at: Timestamp,
        because: &str,
        by: &Doer,
    ) -> Result<bool, ActError> {
        let transaction = self.store.begin_write().await?;
        if !note_relapse(&transaction, &action, at, because, by).await? {
            return Ok(false);
        }
        action.relapsed = Some((at, because.to_owned()));
        self.announce_relapse(&transaction, &action, at).await?;
        transaction.commit().await.map_err(|source| StoreError::Database { doing: "commit a relapse", source })?;
        Ok(true)
    }
}
