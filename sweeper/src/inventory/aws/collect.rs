//! Reads every scope side by side; what goes wrong in one leaves the others alone.

use std::collections::{BTreeSet, HashSet};

use futures::{StreamExt, stream};

use super::{Options, Session, failure, parse};
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

/// Reads one scope. Whatever fails is in the listings.
pub async fn read(session: &Session, options: &Options, scope: &Scope, progress: &dyn Progress) -> Inventory {
    let mut inventory = Inventory::default();
    let outcome = match instances(session, options, scope, progress).await {
        Ok(instances) => {
            inventory.instances = instances;
            Outcome::Complete { listed: inventory.instances.len() }
        }
        Err(why) => Outcome::Failed { what: "ec2:DescribeInstances".to_owned(), why },
    };
    inventory.listings.push(Listing::of(scope, Kind::Instance, outcome));
    progress.scope_done(scope);
    inventory
}

fn nothing(account: Option<String>, what: &str, why: Failure) -> Listing {
    let outcome = Outcome::Failed { what: what.to_owned(), why };
    Listing { provider: Provider::Aws, account, region: None, kind: None, outcome }
}

fn malformed(message: impl Into<String>) -> Failure {
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
    let mut instances = Vec::new();
    let mut seen = HashSet::new();
    let mut token: Option<String> = None;
    loop {
        let page = client
            .describe_instances()
            .max_results(options.page_size)
            .set_next_token(token)
            .send()
            .await
            .map_err(|error| failure::of(&error))?;
        let before = instances.len();
        for record in page.reservations().iter().flat_map(|reservation| reservation.instances()) {
            instances.push(parse::instance(&scope.account, &scope.region, record).map_err(malformed)?);
        }
        progress.page(scope, Kind::Instance, instances.len() - before);
        match page.next_token.filter(|next| !next.is_empty()) {
            None => return Ok(unique(instances)),
            // A token that comes twice would go round for ever.
            Some(next) if seen.insert(next.clone()) => token = Some(next),
            Some(_) => return Err(malformed("a page token came twice")),
        }
    }
}

/// An instance that starts while pages are read may stand on two of them.
fn unique(mut instances: Vec<Instance>) -> Vec<Instance> {
    let mut seen = HashSet::new();
    instances.retain(|instance| seen.insert(instance.id.clone()));
    instances
}
