//! Reads every region side by side; what goes wrong in one leaves the others alone.

use std::collections::{BTreeSet, HashSet};

use futures::{StreamExt, stream};

use super::{Options, Session, failure, parse};
use crate::inventory::{Failure, FailureKind, Instance, Inventory, Progress, Provider, Scope, ScopeOutcome};

/// Reads the account that the session's credentials are of. It takes as long as the largest region: its pages come one
/// after the other.
pub async fn collect(session: &Session, options: &Options, progress: &dyn Progress) -> Inventory {
    let account = match account(session).await {
        Ok(account) => account,
        Err(why) => return nothing(None, "sts:GetCallerIdentity", why),
    };
    let regions = if options.regions.is_empty() {
        match enabled_regions(session).await {
            Ok(regions) => regions,
            Err(why) => return nothing(Some(account), "ec2:DescribeRegions", why),
        }
    } else {
        options.regions.iter().cloned().collect()
    };
    progress.regions(regions.len());

    let mut reading = stream::iter(regions)
        .map(|region| {
            let account = account.as_str();
            async move { (read_region(session, options, account, &region, progress).await, region) }
        })
        .buffer_unordered(options.regions_at_once.max(1));
    let mut inventory = Inventory::default();
    while let Some((read, region)) = reading.next().await {
        let outcome = match read {
            Ok(instances) => {
                let outcome = ScopeOutcome::Complete { instances: instances.len() };
                inventory.instances.extend(instances);
                outcome
            }
            Err(why) => ScopeOutcome::Failed { what: "ec2:DescribeInstances".to_owned(), why },
        };
        progress.region_done(&region, &outcome);
        inventory.scopes.push(Scope {
            provider: Provider::Aws,
            account: Some(account.clone()),
            region: Some(region),
            outcome,
        });
    }
    inventory.instances.sort_by(|a, b| a.id.cmp(&b.id));
    inventory.scopes.sort_by(|a, b| a.region.cmp(&b.region));
    inventory
}

fn nothing(account: Option<String>, what: &str, why: Failure) -> Inventory {
    let outcome = ScopeOutcome::Failed { what: what.to_owned(), why };
    Inventory { instances: Vec::new(), scopes: vec![Scope { provider: Provider::Aws, account, region: None, outcome }] }
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

async fn read_region(
    session: &Session,
    options: &Options,
    account: &str,
    region: &str,
    progress: &dyn Progress,
) -> Result<Vec<Instance>, Failure> {
    let client = session.ec2(Some(region));
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
            instances.push(parse::instance(account, region, record).map_err(malformed)?);
        }
        progress.page(region, instances.len() - before);
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
