//! Whether what was stopped runs again by somebody else's hand: for a day each action is held against what sweeps have seen since. Then somebody missed the machine, and nothing
//! more of that class is done in that account until a person has looked.

use super::{ActError, Executor};
use crate::{
    savings::started_again,
    store::{Action, Doer, StoreError, actions::note_relapse},
};
use jiff::{SignedDuration, Timestamp};

/// Whoever starts a machine later than that after it was stopped has not missed it.
const WATCHED_FOR: SignedDuration = SignedDuration::from_hours(24);

impl Executor {
    /// Notes what somebody has started again.
    pub(super) async fn search_for_relapses(&self) -> Result<(), ActError> {
        let since = self.store.now().await?.checked_sub(WATCHED_FOR).unwrap_or(Timestamp::MIN);
        for action in self.store.done_since(since).await? {
            let Some(called_at) = action.called_at else { continue };
            let versions = self.store.versions_since(&action.resource.to_string(), called_at).await?;
            let Some(at) = started_again(called_at, &versions) else { continue };
            let because = "started again by somebody else";
            let by = Doer { who: self.holder.clone(), way: "service" };
            if self.note_relapse(action.clone(), at, because, &by).await? {
                let (plan, resource) = (&action.plan, &action.resource);
                tracing::warn!(%plan, %resource, %at, "what was stopped was {because}; nothing more of its class is done in that account until somebody has looked (`sweeper actions review`)");
            }
        }
        Ok(())
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
