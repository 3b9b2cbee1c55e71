//! What the types in use have: one call for each type in each zone, since the list of all types would be some 80 pages.

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt as _, stream};

use super::{collect::machines_failed, parse, place::Place};
use crate::inventory::{Failure, Instance, Inventory, Kind, Listing, MachineShape, Outcome, reader::Api};

const GET: Api = Api::google("compute.machineTypes.get", "compute");
/// More would only wait for the same bucket.
const AT_ONCE: usize = 4;

/// Zone and type.
type Key = (String, String);

/// Says of each machine what its type has. One type that cannot be read makes the listing of types unknown, and no machine.
pub(super) async fn add(place: &Place<'_>, inventory: &mut Inventory) {
    if let Some(failed) = machines_failed(inventory) {
        inventory.listings.push(Listing::of(place.scope, Kind::MachineType, failed));
        return;
    }
    let wanted: BTreeSet<Key> = inventory.instances.iter().filter_map(key).collect();
    let mut answers =
        stream::iter(wanted).map(|key| async move { (get(place, &key).await, key) }).buffer_unordered(AT_ONCE);
    let mut shapes: BTreeMap<Key, MachineShape> = BTreeMap::new();
    let mut failed: Option<(Key, Failure)> = None;
    while let Some((answer, key)) = answers.next().await {
        match answer {
            Ok(shape) => {
                shapes.insert(key, shape);
            }
            // The first by name, so that two sweeps of the same say the same.
            Err(why) if failed.as_ref().is_none_or(|(before, _)| key < *before) => failed = Some((key, why)),
            Err(_) => {}
        }
    }
    drop(answers);
    for instance in &mut inventory.instances {
        let shape = key(instance).and_then(|key| shapes.get(&key).cloned());
        if let Some(google) = &mut instance.google {
            google.shape = shape;
        }
    }
    place.told(Kind::MachineType, shapes.len());
    let outcome = match failed {
        None => Outcome::Complete { listed: shapes.len() },
        Some(((zone, name), why)) => {
            let why = Failure { message: format!("{name} in {zone}: {}", why.message), ..why };
            Outcome::Failed { what: GET.name.to_owned(), why }
        }
    };
    inventory.listings.push(Listing::of(place.scope, Kind::MachineType, outcome));
}

fn key(instance: &Instance) -> Option<Key> {
    Some((instance.id.location.clone(), instance.instance_type.clone()?))
}

async fn get(place: &Place<'_>, (zone, name): &Key) -> Result<MachineShape, Failure> {
    let shapes = place.pages(GET, |_| {
        let request = place.clients().machine_types.get().set_project(place.project());
        let request = request.set_zone(zone.as_str()).set_machine_type(name.as_str());
        async move { Ok((vec![parse::shape(request.send().await?)], None)) }
    });
    Ok(shapes.await?.pop().unwrap_or_default())
}
