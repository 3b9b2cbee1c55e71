//! Whether what was stopped runs again by somebody else's hand, or another machine was launched in its place: for a day each action is held against what sweeps have seen since. Then somebody missed the machine, and nothing
//! more of that class is done in that account until a person has looked.

use super::{ActError, Executor};
use crate::{
    savings::{started_again, twin},
    store::{Action, Doer, StoreError, actions::note_relapse},
};
use jiff::{SignedDuration, Timestamp};
use model::ResourceKind;

/// How it has come undone, as people are told.
const STARTED: &str = "started again by somebody else";
pub(super) const REPLACED: &str = "another machine was launched in its place:";
/// Whoever starts a machine later than that after it was stopped has not missed it.
const WATCHED_FOR: SignedDuration = SignedDuration::from_hours(24);

impl Executor {
    /// Notes what somebody has started again.
    pub(super) async fn search_for_relapses(&self) -> Result<(), ActError> {
        let since = self.store.now().await?.checked_sub(WATCHED_FOR).unwrap_or(Timestamp::MIN);
        for action in self.store.done_since(since).await? {
            // What was given back or deleted does not run again.
            let Some(called_at) = action.called_at.filter(|_| action.resource.kind == ResourceKind::Instance) else {
                continue;
            };
            let Some((at, because)) = self.come_undone(&action, called_at).await? else { continue };
            let by = Doer { who: self.holder.clone(), way: "service" };
            if self.note_relapse(action.clone(), at, &because, &by).await? {
                let (plan, resource) = (&action.plan, &action.resource);
                tracing::warn!(%plan, %resource, %at, because, "what was stopped has come undone; nothing more of its class is done in that account until somebody has looked (`sweeper actions review`)");
            }
        }
        Ok(())
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
