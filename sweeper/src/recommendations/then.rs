//! What was known of a provider's resources at a moment, as the history has it: what decides whether a machine may be stopped.

use crate::{
    inventory::{Failure, FailureKind, Inventory, Kind, Listing, Outcome},
    store,
};
use jiff::{SignedDuration, Timestamp};
use model::{Provider, ResourceKey, ResourceKind};
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;

/// A list that was not read for so long may be another one by now.
const FORGOTTEN: SignedDuration = SignedDuration::from_hours(24);
/// What is read of the history: machines, and what may have them.
pub(super) const KINDS: [ResourceKind; 4] = [
    ResourceKind::Instance,
    ResourceKind::AutoScalingGroup,
    ResourceKind::BatchComputeEnvironment,
    ResourceKind::EcsContainerInstance,
];

/// Provider, account, region and kind of a list.
type Place = (String, String, String, String);

/// Lists of which this version cannot read a record.
#[derive(Debug, Default)]
struct Damaged {
    places: BTreeSet<Place>,
    /// Kinds of records whose keys do not tell the place either: it may be any.
    kinds: BTreeSet<String>,
}

/// The inventory that sweeps had read by then. A list that failed, has not been read for a day, or of which this version cannot read a record, is not known.
pub(super) fn inventory(resources: Vec<store::Version>, spans: &[store::Span], at: Timestamp) -> Inventory {
    let (mut inventory, mut damaged) = (Inventory::default(), Damaged::default());
    for version in resources {
        let (place, word) = (place(&version), version.kind.clone());
        let kind = Kind::from_word(&version.kind).and_then(Kind::resource);
        let read = match kind {
            Some(ResourceKind::Instance) => take(version, &mut inventory.instances),
            Some(ResourceKind::AutoScalingGroup) => take(version, &mut inventory.autoscaling_groups),
            Some(ResourceKind::BatchComputeEnvironment) => take(version, &mut inventory.batch_compute_environments),
            Some(ResourceKind::EcsContainerInstance) => take(version, &mut inventory.ecs_container_instances),
            _ => Ok(()),
        };
        if let Err(error) = read {
            tracing::error!(?place, %error, "a record of the history cannot be read by this version; its list is taken for not known");
            match place {
                Some(place) => damaged.places.insert(place),
                None => damaged.kinds.insert(word),
            };
        }
    }
    inventory.listings = spans.iter().filter_map(|span| listing(span, &damaged, at)).collect();
    inventory
}

fn place(version: &store::Version) -> Option<Place> {
    let key: ResourceKey = version.resource.parse().ok()?;
    Some((key.provider.as_str().to_owned(), key.account, key.location, version.kind.clone()))
}

fn take<T: DeserializeOwned>(version: store::Version, into: &mut Vec<T>) -> Result<(), serde_json::Error> {
    into.push(serde_json::from_value(version.record)?);
    Ok(())
}

fn listing(span: &store::Span, damaged: &Damaged, at: Timestamp) -> Option<Listing> {
    let place = (span.provider.clone(), span.account.clone(), span.region.clone(), span.kind.clone());
    let why = if damaged.places.contains(&place) || damaged.kinds.contains(&span.kind) {
        Some("a record of it cannot be read by this version".to_owned())
    } else if span.failed.is_some() {
        span.failed.clone()
    } else if at.duration_since(span.until) > FORGOTTEN {
        Some(format!("no sweep has read it since {}", span.until))
    } else {
        None
    };
    let outcome = match why {
        Some(message) => {
            let why = Failure { kind: FailureKind::Provider, message };
            Outcome::Failed { what: format!("the list of the kind {}", span.kind), why }
        }
        None => Outcome::Complete { listed: 0 },
    };
    Some(Listing {
        provider: Provider::from_word(&span.provider)?,
        account: Some(span.account.clone()),
        region: Some(span.region.clone()),
        kind: Some(Kind::from_word(&span.kind)?),
        outcome,
    })
}

#[cfg(test)]
mod tests;
