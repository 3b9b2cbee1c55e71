//! Reads every scope side by side; what goes wrong in one leaves the others alone.

use std::{
    collections::{BTreeSet, HashSet},
    hash::Hash,
};

use futures::{StreamExt, stream};

use super::{Options, Session, failure, parse, scaling, storage, tokens::Tokens};
use crate::inventory::{Failure, FailureKind, Instance, Inventory, Kind, Listing, Outcome, Progress, Provider, Scope};

/// Reads the account that the session's credentials are of. It takes as long as the largest region: its pages come one
/// after the other.
pub async fn collect(session: &Session, options: &Options, progress: &dyn Progress) -> Inventory {
    let scopes = match scopes(session, options).await {
        Ok(scopes) => scopes,
        Err(failed) => return Inventory::failed(failed),
    };
    progress.scopes(scopes.len());
    let mut reading = stream::iter(scopes)
        .map(|scope| async move { read(session, options, &scope, progress).await })
        .buffer_unordered(options.regions_at_once.max(1));
    let mut inventory = Inventory::default();
    while let Some(read) = reading.next().await {
        inventory.absorb(read);
    }
    inventory
}

/// What there is to read: each region that is named or, if none is, enabled.
///
/// # Errors
/// The call that failed, for the whole account.
pub async fn scopes(session: &Session, options: &Options) -> Result<Vec<Scope>, Listing> {
    let account = account(session).await.map_err(|why| nothing(None, "sts:GetCallerIdentity", why))?;
    let regions = if options.regions.is_empty() {
        let enabled = enabled_regions(session).await;
        enabled.map_err(|why| nothing(Some(account.clone()), "ec2:DescribeRegions", why))?
    } else {
        options.regions.iter().cloned().collect()
    };
    let scope = |region| Scope { provider: Provider::Aws, account: account.clone(), region };
    Ok(regions.into_iter().map(scope).collect())
}

/// Reads one scope, all kinds of resources side by side. Whatever fails is in the listings, each kind by itself.
pub async fn read(session: &Session, options: &Options, scope: &Scope, progress: &dyn Progress) -> Inventory {
    let (instances, volumes, addresses, snapshots, groups) = futures::join!(
        instances(session, options, scope, progress),
        storage::volumes(session, options, scope, progress),
        storage::addresses(session, scope, progress),
        storage::snapshots(session, options, scope, progress),
        scaling::groups(session, options, scope, progress),
    );
    let mut inventory = Inventory::default();
    let outcomes = [
        (Kind::Instance, keep("ec2:DescribeInstances", instances, &mut inventory.instances, |it| &it.id)),
        (Kind::Volume, keep("ec2:DescribeVolumes", volumes, &mut inventory.volumes, |it| &it.id)),
        (Kind::Address, keep("ec2:DescribeAddresses", addresses, &mut inventory.addresses, |it| &it.id)),
        (Kind::Snapshot, keep("ec2:DescribeSnapshots", snapshots, &mut inventory.snapshots, |it| &it.id)),
        (
            Kind::AutoScalingGroup,
            keep("autoscaling:DescribeAutoScalingGroups", groups, &mut inventory.autoscaling_groups, |it| &it.id),
        ),
    ];
    inventory.listings = outcomes.map(|(kind, outcome)| Listing::of(scope, kind, outcome)).into();
    scaling::name_members(&mut inventory.instances, &inventory.autoscaling_groups);
    progress.scope_done(scope);
    inventory
}

/// A list that was read to its end, or nothing of it. A resource that changes while pages are read may stand on two of them.
fn keep<T, K: Clone + Eq + Hash>(
    what: &str,
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
        Err(why) => Outcome::Failed { what: what.to_owned(), why },
    }
}

fn nothing(account: Option<String>, what: &str, why: Failure) -> Listing {
    let outcome = Outcome::Failed { what: what.to_owned(), why };
    Listing { provider: Provider::Aws, account, region: None, kind: None, outcome }
}

pub(super) fn malformed(message: impl Into<String>) -> Failure {
    Failure { kind: FailureKind::Malformed, message: message.into() }
}

async fn account(session: &Session) -> Result<String, Failure> {
    let identity = session.sts().get_caller_identity().send().await.map_err(|error| failure::of(&error))?;
    identity.account.ok_or_else(|| malformed("the caller has no account"))
}

async fn enabled_regions(session: &Session) -> Result<BTreeSet<String>, Failure> {
    let answer = session.ec2(None).describe_regions().all_regions(false).send().await;
    let regions: BTreeSet<String> = answer
        .map_err(|error| failure::of(&error))?
        .regions
        .unwrap_or_default()
        .into_iter()
        .filter_map(|region| region.region_name)
        .collect();
    if regions.is_empty() {
        return Err(malformed("no region is enabled"));
    }
    Ok(regions)
}

async fn instances(
    session: &Session,
    options: &Options,
    scope: &Scope,
    progress: &dyn Progress,
) -> Result<Vec<Instance>, Failure> {
    let client = session.ec2(Some(&scope.region));
    let (mut instances, mut tokens) = (Vec::new(), Tokens::default());
    while let Some(token) = tokens.next()? {
        let page = client.describe_instances().max_results(options.page_size).set_next_token(token).send().await;
        let page = page.map_err(|error| failure::of(&error))?;
        let before = instances.len();
        let reservations = page.reservations.ok_or_else(|| malformed("an answer has no list of reservations"))?;
        for reservation in reservations {
            let records = reservation.instances.ok_or_else(|| malformed("a reservation has no list of instances"))?;
            for record in &records {
                instances.push(parse::instance(&scope.account, &scope.region, record).map_err(malformed)?);
            }
        }
        progress.page(scope, Kind::Instance, instances.len() - before);
        tokens.follow(page.next_token);
    }
    Ok(instances)
}
