//! What outlives machines and is used by none: since when, by the kept history, and at what cost.

use super::{Context, SweepError, bills::Bills};
use crate::{
    findings::Finding,
    inventory::{Address, Inventory, Kind, Tie, Volume},
    snapshot::{Leftover, leftovers},
};
use jiff::Timestamp;
use model::{ResourceKey, ResourceKind};
use serde::de::DeserializeOwned;
use std::collections::HashMap;

/// Everything that is tied to nothing, or that an open finding names.
pub(super) async fn read(
    context: &Context,
    inventory: &Inventory,
    bills: &Bills<'_>,
    open: &[Finding],
    now: Timestamp,
) -> Result<Vec<Leftover>, SweepError> {
    let mut since = HashMap::new();
    let unused = |tie: &Tie| *tie == Tie::Nothing;
    let volumes = inventory.volumes.iter().filter(|volume| unused(&volume.tie())).map(|volume| volume.id.clone());
    let addresses = inventory.addresses.iter().filter(|address| unused(&address.tie()));
    let addresses = addresses.map(|address| address.id.clone());
    let store = &context.store;
    let of = |kind: ResourceKind| Kind::from(kind);
    let was_unused = |record: &str| kept::<Volume>(record).is_some_and(|volume| unused(&volume.tie()));
    since.extend(store.lasting_since(of(ResourceKind::Volume), &volumes.collect::<Vec<_>>(), was_unused).await?);
    let was_unused = |record: &str| kept::<Address>(record).is_some_and(|address| unused(&address.tie()));
    since.extend(store.lasting_since(of(ResourceKind::Address), &addresses.collect::<Vec<_>>(), was_unused).await?);
    let named = open.iter().map(|finding| &finding.resource);
    let after_s = context.config.verdict.leftover_after.as_secs();
    let mut left = leftovers(inventory, named, |key: &ResourceKey| since.get(key).copied(), now, after_s);
    for leftover in &mut left {
        leftover.cost = bills.leftover(&leftover.id);
    }
    Ok(left)
}

/// A version of the history; what another version of this program kept otherwise shows nothing.
fn kept<T: DeserializeOwned>(record: &str) -> Option<T> {
    serde_json::from_str(record).ok()
}
