//! Reads one project, all kinds of resources side by side; what goes wrong with one leaves the others alone.

use model::ResourceKind;
use std::{collections::HashSet, hash::Hash};

use super::{
    Session,
    list::{self, Listed, Part, Piece, Warning},
    monitoring, parse,
    place::Place,
    shapes,
};
use crate::inventory::{
    Failure, Inventory, Listing, Outcome, Progress, Scope,
    reader::{Api, Refused},
};

const INSTANCES: Api = Api::google("compute.instances.aggregatedList", "compute");
const DISKS: Api = Api::google("compute.disks.aggregatedList", "compute");
const ADDRESSES: Api = Api::google("compute.addresses.aggregatedList", "compute");
const GROUPS: Api = Api::google("compute.instanceGroupManagers.aggregatedList", "compute");

/// A page of any aggregated list as pieces: the client has a type of its own for each.
macro_rules! pieces {
    ($page:expr, $list:ident) => {{
        let page = $page;
        let parts = page.items.into_iter().map(|(scope, part)| {
            let warning = part.warning.map(|warning| warning!(warning));
            Piece::Part(Part { scope, items: part.$list, warning })
        });
        let mut pieces: Vec<_> = parts.collect();
        pieces.extend(page.unreachables.into_iter().map(Piece::Unreachable));
        pieces.extend(page.warning.map(|warning| Piece::Warning(warning!(warning))));
        Ok((pieces, page.next_page_token))
    }};
}

macro_rules! warning {
    ($warning:expr) => {
        Warning {
            code: $warning.code.as_ref().and_then(|code| code.name()).map(str::to_owned),
            message: $warning.message,
        }
    };
}

/// Asks for one page of an aggregated list, however many pages it has.
macro_rules! aggregated {
    ($place:expr, $api:expr, $client:ident, $list:ident) => {
        listed($place, $api, |token| {
            let request = $place.clients().$client.aggregated_list().set_project($place.project());
            let request = request.set_max_results($place.options().page_size).set_or_clear_page_token(token);
            async move { pieces!(request.send().await?, $list) }
        })
    };
}

/// Reads one project. Whatever fails is in the listings, each kind by itself, and within a kind each zone that did not answer.
pub async fn read(session: &Session, scope: &Scope, progress: &dyn Progress) -> Inventory {
    let place = Place::new(session, scope, progress);
    let usage = async {
        if !place.options().monitoring {
            return None;
        }
        Some(monitoring::usage(&place).await)
    };
    let (instances, disks, addresses, groups, usage) = futures::join!(
        aggregated!(&place, INSTANCES, instances, instances),
        aggregated!(&place, DISKS, disks, disks),
        aggregated!(&place, ADDRESSES, addresses, addresses),
        aggregated!(&place, GROUPS, groups, instance_group_managers),
        usage,
    );
    let mut inventory = Inventory::default();
    let mut keep = Keep { place: &place, listings: Vec::new() };
    let project = place.project();
    inventory.instances = keep.all(
        ResourceKind::Instance,
        INSTANCES,
        instances,
        |zone, record| parse::instance(project, zone, record).map(Some),
        |it| &it.id,
    );
    inventory.volumes = keep.all(
        ResourceKind::Volume,
        DISKS,
        disks,
        |zone, record| parse::volume(project, zone, record).map(Some),
        |it| &it.id,
    );
    inventory.addresses = keep.all(
        ResourceKind::Address,
        ADDRESSES,
        addresses,
        |zone, record| parse::address(project, zone, record),
        |it| &it.id,
    );
    inventory.autoscaling_groups = keep.all(
        ResourceKind::AutoScalingGroup,
        GROUPS,
        groups,
        |zone, record| parse::group(project, zone, &record).map(Some),
        |it| &it.id,
    );
    parse::name_machines(&inventory.instances, &mut inventory.volumes, &mut inventory.addresses);
    inventory.listings = keep.listings;
    shapes::add(&place, &mut inventory).await;
    if let Some(usage) = usage {
        monitoring::add(&place, usage, &mut inventory);
    }
    progress.scope_done(scope);
    // Within a page the places come in no order.
    let mut ordered = Inventory::default();
    ordered.absorb(inventory);
    ordered
}

/// Why the machines of the project are not known; then what is told of each of them is not known either.
pub(super) fn machines_failed(inventory: &Inventory) -> Option<Outcome> {
    let is_of_machines =
        |listing: &&Listing| listing.kind == Some(ResourceKind::Instance.into()) && !listing.is_of_a_part();
    let listing = inventory.listings.iter().find(is_of_machines)?;
    matches!(listing.outcome, Outcome::Failed { .. }).then(|| listing.outcome.clone())
}

async fn listed<T, F, Fut>(place: &Place<'_>, api: Api, call: F) -> Result<Listed<T>, Failure>
where
    F: FnMut(Option<String>) -> Fut,
    Fut: Future<Output = Result<(Vec<Piece<T>>, Option<String>), Refused>>,
{
    list::whole(place.pages(api, call).await?)
}

/// Takes lists into an inventory.
struct Keep<'a> {
    place: &'a Place<'a>,
    listings: Vec<Listing>,
}

impl Keep<'_> {
    /// A list that was read to its end, or nothing of it. A record that cannot be told from another makes its whole list malformed; a
    /// resource that changes while pages are read may stand on two of them.
    fn all<R, T, K: Clone + Eq + Hash>(
        &mut self,
        kind: ResourceKind,
        api: Api,
        read: Result<Listed<R>, Failure>,
        parse: impl Fn(&str, R) -> Result<Option<T>, String>,
        id: impl Fn(&T) -> &K,
    ) -> Vec<T> {
        let parsed = read.and_then(|listed| {
            let parsed = listed.items.into_iter().filter_map(|(zone, record)| parse(&zone, record).transpose());
            let parsed: Result<Vec<T>, String> = parsed.collect();
            Ok((parsed.map_err(|why| Refused::malformed(why).why)?, listed.unknown))
        });
        let what = || api.name.to_owned();
        match parsed {
            Ok((mut items, unknown)) => {
                let mut seen = HashSet::new();
                items.retain(|item| seen.insert(id(item).clone()));
                self.place.told(kind, items.len());
                self.listings.push(Listing::of(self.place.scope, kind, Outcome::Complete { listed: items.len() }));
                for (region, why) in unknown {
                    let failed = Listing::of(self.place.scope, kind, Outcome::Failed { what: what(), why });
                    self.listings.push(Listing { region: Some(region), ..failed });
                }
                items
            }
            Err(why) => {
                self.listings.push(Listing::of(self.place.scope, kind, Outcome::Failed { what: what(), why }));
                Vec::new()
            }
        }
    }
}
