//! What nobody uses: since when, by the kept history, and at what cost.

use super::{Context, SweepError, bills::Bills};
use crate::{
    detectors::FoundOn,
    findings::Finding,
    inventory::{Address, InstanceState, Inventory, Snapshot, UsedBy, Volume},
    snapshot::{Billed, Leftover, LeftoverPolicy, leftovers},
    store::Store,
};
use jiff::Timestamp;
use model::{ResourceKey, ResourceKind};
use serde::{Deserialize, de::DeserializeOwned};
use std::collections::{HashMap, HashSet};

/// Everything that nobody uses, or that an open finding names.
pub(super) async fn read(
    context: &Context,
    inventory: &Inventory,
    bills: &Bills<'_>,
    open: &[Finding],
    now: Timestamp,
) -> Result<Vec<Leftover>, SweepError> {
    let unused: Vec<&ResourceKey> =
        Billed::all(inventory).filter(|billed| billed.used_by() == UsedBy::Nothing).map(Billed::id).collect();
    let of = |kind| unused.iter().filter(|key| key.kind == kind).map(|key| (*key).clone()).collect::<Vec<_>>();
    let mut since = HashMap::new();
    let store = &context.store;
    since.extend(store.lasting_since(ResourceKind::Volume.into(), &of(ResourceKind::Volume), was_unattached).await?);
    since.extend(store.lasting_since(ResourceKind::Address.into(), &of(ResourceKind::Address), was_unused).await?);
    since.extend(outlived(store, inventory, &of(ResourceKind::Snapshot)).await?);
    since.extend(store.lasting_since(ResourceKind::Instance.into(), &of(ResourceKind::Instance), was_stopped).await?);
    let named =
        open.iter().filter(|finding| finding.class.found_on() == FoundOn::Leftover).map(|finding| &finding.resource);
    let verdict = &context.config.verdict;
    let policy = LeftoverPolicy {
        unused_after_s: verdict.leftover_after.as_secs(),
        stopped_after_s: verdict.stopped_after.as_secs(),
        snapshot_after_s: verdict.snapshot_after.as_secs(),
    };
    let mut left = leftovers(inventory, named, |key: &ResourceKey| since.get(key).copied(), now, policy);
    for leftover in &mut left {
        leftover.cost = bills.leftover(&leftover.id);
    }
    Ok(left)
}

/// Since when each of these snapshots has been listed without its volume.
async fn outlived(
    store: &Store,
    inventory: &Inventory,
    snapshots: &[ResourceKey],
) -> Result<HashMap<ResourceKey, Timestamp>, SweepError> {
    let orphaned: HashSet<&ResourceKey> = snapshots.iter().collect();
    let volume = |snapshot: &Snapshot| {
        let id = snapshot.volume_id.clone()?;
        Some((snapshot.id.clone(), ResourceKey { kind: ResourceKind::Volume, id, ..snapshot.id.clone() }))
    };
    let of_orphaned = inventory.snapshots.iter().filter(|snapshot| orphaned.contains(&snapshot.id));
    let volumes: HashMap<ResourceKey, ResourceKey> = of_orphaned.filter_map(volume).collect();
    let keys: Vec<ResourceKey> = volumes.values().cloned().collect::<HashSet<_>>().into_iter().collect();
    let gone = store.missing_since(ResourceKind::Volume.into(), &keys).await?;
    let mut since = store.lasting_since(ResourceKind::Snapshot.into(), snapshots, |_| true).await?;
    for (snapshot, since) in &mut since {
        // A volume that no list ever had was gone when its snapshot was first listed.
        let gone = volumes.get(snapshot).and_then(|volume| gone.get(volume));
        *since = gone.map_or(*since, |gone| (*gone).max(*since));
    }
    Ok(since)
}

/// A version of the history; what another version of this program kept otherwise shows nothing.
fn kept<T: DeserializeOwned>(record: &str) -> Option<T> {
    serde_json::from_str(record).ok()
}

/// Whether a kept version of a volume shows it attached to nothing.
pub(crate) fn was_unattached(record: &str) -> bool {
    kept::<Volume>(record).is_some_and(|kept| kept.used_by() == UsedBy::Nothing)
}

/// Whether a kept version of an address shows it tied to nothing.
pub(crate) fn was_unused(record: &str) -> bool {
    kept::<Address>(record).is_some_and(|kept| kept.used_by() == UsedBy::Nothing)
}

/// Of an instance's many facts its state is enough.
fn was_stopped(record: &str) -> bool {
    #[derive(Deserialize)]
    struct State {
        state: InstanceState,
    }
    kept::<State>(record).is_some_and(|kept| matches!(kept.state, InstanceState::Stopped | InstanceState::Suspended))
}
