//! What was saved by everything that was carried out, as the store has it.

use super::{Saved, ended, released, stopped};
use crate::store::{Action, Direction, Span, Store, StoreError};
use guards::action::State;
use jiff::Timestamp;
use model::{
    ResourceKey, ResourceKind,
    plan::{ActionClass, ContentHash},
};
use std::collections::HashMap;

/// Why what was saved is not known.
#[derive(Debug, thiserror::Error)]
pub enum NotKnown {
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Plans are never deleted: what was done by one that is gone is no saving of zero.
    #[error("the plan {} is not in the database any more", .0.short())]
    NoPlan(ContentHash),
}

/// What each of these actions has saved that was carried out.
///
/// # Errors
/// See [`NotKnown`].
pub async fn realised(store: &Store, actions: &[Action]) -> Result<Vec<Saved>, NotKnown> {
    let listings = store.listings_at(store.now().await?).await?;
    let undone: HashMap<&str, Timestamp> = actions
        .iter()
        .filter(|action| action.direction == Direction::Undo && action.state == State::Done)
        .map(|action| (action.plan.as_str(), action.changed_at))
        .collect();
    let mut saved = Vec::new();
    for action in actions.iter().filter(|action| action.direction == Direction::Do && action.state == State::Done) {
        let plan = store.sealed_plan(&action.plan).await?.ok_or_else(|| NotKnown::NoPlan(action.plan.clone()))?;
        let versions = store.resource_history(&action.resource.to_string()).await?;
        let listed = listed_until(&listings, &action.resource);
        let stopped = match action.resource.kind {
            ResourceKind::Address | ResourceKind::Volume => released(action.changed_at, &versions, listed),
            _ if action.class == ActionClass::Destructive => ended(action.changed_at, &versions, listed),
            _ => stopped(action.changed_at, undone.get(action.plan.as_str()).copied(), &versions, listed),
        };
        saved.push(Saved::of(&plan, action.asked_by.clone(), stopped));
    }
    Ok(saved)
}

/// Until when what is of its kind in its account and region could be listed.
pub(crate) fn listed_until(listings: &[Span], resource: &ResourceKey) -> Option<Timestamp> {
    let ResourceKey { provider, account, location, kind, .. } = resource;
    let is_its = |span: &&Span| {
        span.kind == kind.as_str()
            && span.provider == provider.as_str()
            && span.account == *account
            && span.region == *location
    };
    listings.iter().find(is_its).filter(|span| span.failed.is_none()).map(|span| span.until)
}
