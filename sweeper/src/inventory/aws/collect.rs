//! Reads every scope side by side; what goes wrong in one leaves the others alone.

use model::ResourceKind;
use std::{collections::HashSet, hash::Hash};

use futures::{StreamExt, stream};

use super::{Accounts, Options, Session, images, jobs, parse, place::Place, scaling, storage, types};
use crate::inventory::{
    Failure, FailureKind, Instance, Inventory, Kind, Listing, Outcome, Progress, Scope,
    reader::{Api, Refused},
};

const INSTANCES: Api = Api::ec2("ec2:DescribeInstances");

/// Reads the account that the session's credentials are of, and those that the options name roles for. It takes as long as
/// the largest region: its pages come one after the other.
pub async fn collect(session: &Session, options: &Options, progress: &dyn Progress) -> Inventory {
    let accounts = Accounts::open(session, options).await;
    let discovered = accounts.scopes().await;
    progress.scopes(discovered.scopes.len());
    let mut inventory = Inventory::default();
    for listing in discovered.failed {
        inventory.absorb(Inventory::failed(listing));
    }
    let accounts = &accounts;
    let mut reading = stream::iter(discovered.scopes)
        .map(|scope| async move { read(accounts, &scope, progress).await })
        .buffer_unordered(options.scopes_at_once.max(1));
    while let Some(read) = reading.next().await {
        inventory.absorb(read);
    }
    inventory
}

/// Reads one scope, all kinds of resources side by side. Whatever fails is in the listings, each kind by itself.
pub async fn read(accounts: &Accounts, scope: &Scope, progress: &dyn Progress) -> Inventory {
    let Some(place) = accounts.place(scope) else {
        let why = Failure {
            kind: FailureKind::Credentials,
            message: format!("account {} is not open here; name a role of it in `aws.accounts`", scope.account),
        };
        let outcome = Outcome::Failed { what: "opening the account".to_owned(), why };
        return Inventory::failed(Listing { kind: None, ..Listing::of(scope, ResourceKind::Instance, outcome) });
    };
    let list = List { place: &place, page_size: accounts.options.page_size, scope, progress };
    let (instances, volumes, addresses, snapshots, groups, jobs) = futures::join!(
        instances(&list),
        storage::volumes(&list),
        storage::addresses(&list),
        storage::snapshots(&list),
        scaling::groups(&list),
        jobs::read(&list),
    );
    let mut inventory = Inventory::default();
    let outcomes = [
        (ResourceKind::Instance, keep(INSTANCES, instances, &mut inventory.instances, |it| &it.id)),
        (ResourceKind::Volume, keep(storage::VOLUMES, volumes, &mut inventory.volumes, |it| &it.id)),
        (ResourceKind::Address, keep(storage::ADDRESSES, addresses, &mut inventory.addresses, |it| &it.id)),
        (ResourceKind::Snapshot, keep(storage::SNAPSHOTS, snapshots, &mut inventory.snapshots, |it| &it.id)),
        (ResourceKind::AutoScalingGroup, keep(scaling::GROUPS, groups, &mut inventory.autoscaling_groups, |it| &it.id)),
    ];
    inventory.listings = outcomes.map(|(kind, outcome)| Listing::of(scope, kind, outcome)).into();
    inventory.absorb(jobs);
    types::add(&list, &mut inventory).await;
    images::add(&list, &mut inventory).await;
    scaling::name_members(&mut inventory.instances, &inventory.autoscaling_groups);
    progress.scope_done(scope);
    inventory
}

/// Where one scope is listed, in pages of what size, and who is told.
pub(super) struct List<'a> {
    pub(super) place: &'a Place,
    pub(super) page_size: i32,
    pub(super) scope: &'a Scope,
    pub(super) progress: &'a dyn Progress,
}

impl List<'_> {
    /// Tells of one page of a kind.
    pub(super) fn told(&self, kind: impl Into<Kind>) -> impl Fn(usize) + '_ {
        let kind = kind.into();
        move |listed| self.progress.page(self.scope, kind, listed)
    }
}

/// A list that was read to its end, or nothing of it. A resource that changes while pages are read may stand on two of them.
pub(super) fn keep<T, K: Clone + Eq + Hash>(
    api: Api,
    read: Result<Vec<T>, Failure>,
    into: &mut Vec<T>,
    id: impl Fn(&T) -> &K,
) -> Outcome {
    match read {
        Ok(mut read) => {
            let mut seen = HashSet::new();
            read.retain(|resource| seen.insert(id(resource).clone()));
            *into = read;
            Outcome::Complete { listed: into.len() }
        }
        Err(why) => Outcome::Failed { what: api.name.to_owned(), why },
    }
}

/// What a page must hold, however empty it is: an answer without its list is none.
pub(super) fn list<T>(list: Option<Vec<T>>, of: &str) -> Result<Vec<T>, Refused> {
    list.ok_or_else(|| Refused::malformed(format!("an answer has no list of {of}")))
}

async fn instances(list_of: &List<'_>) -> Result<Vec<Instance>, Failure> {
    let List { place, page_size, scope, .. } = list_of;
    let instances = place.pages(INSTANCES, list_of.told(ResourceKind::Instance), |token| {
        let request = place.ec2().describe_instances().max_results(*page_size).set_next_token(token);
        async move {
            let page = request.send().await?;
            let mut instances = Vec::new();
            for reservation in list(page.reservations, "reservations")? {
                for record in list(reservation.instances, "instances in a reservation")? {
                    let instance = parse::instance(&scope.account, &scope.region, &record);
                    instances.push(instance.map_err(Refused::malformed)?);
                }
            }
            Ok((instances, page.next_token))
        }
    });
    instances.await
}
