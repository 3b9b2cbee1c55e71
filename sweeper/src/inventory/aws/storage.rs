//! The lists of what outlives machines: volumes, snapshots, Elastic IP addresses.

use super::{Options, Session, collect::malformed, failure, parse, tokens::Tokens};
use crate::inventory::{Address, Failure, Kind, Progress, Scope, Snapshot, Volume};

/// One call per 1,000 volumes.
pub(super) async fn volumes(
    session: &Session,
    options: &Options,
    scope: &Scope,
    progress: &dyn Progress,
) -> Result<Vec<Volume>, Failure> {
    let client = session.ec2(Some(&scope.region));
    let (mut volumes, mut tokens) = (Vec::new(), Tokens::default());
    while let Some(token) = tokens.next()? {
        let page = client.describe_volumes().max_results(options.page_size).set_next_token(token).send().await;
        let page = page.map_err(|error| failure::of(&error))?;
        let records = page.volumes.as_ref().ok_or_else(|| malformed("an answer has no list of volumes"))?;
        for record in records {
            volumes.push(parse::volume(scope, record).map_err(malformed)?);
        }
        progress.page(scope, Kind::Volume, records.len());
        tokens.follow(page.next_token);
    }
    Ok(volumes)
}

/// One call per 1,000 snapshots of the account's own; without the owner EC2 would list everything that is public too.
pub(super) async fn snapshots(
    session: &Session,
    options: &Options,
    scope: &Scope,
    progress: &dyn Progress,
) -> Result<Vec<Snapshot>, Failure> {
    let client = session.ec2(Some(&scope.region));
    let (mut snapshots, mut tokens) = (Vec::new(), Tokens::default());
    while let Some(token) = tokens.next()? {
        let call = client.describe_snapshots().owner_ids("self").max_results(options.page_size);
        let page = call.set_next_token(token).send().await.map_err(|error| failure::of(&error))?;
        let records = page.snapshots.as_ref().ok_or_else(|| malformed("an answer has no list of snapshots"))?;
        for record in records {
            snapshots.push(parse::snapshot(scope, record).map_err(malformed)?);
        }
        progress.page(scope, Kind::Snapshot, records.len());
        tokens.follow(page.next_token);
    }
    Ok(snapshots)
}

/// One call: this list has no pages.
pub(super) async fn addresses(
    session: &Session,
    scope: &Scope,
    progress: &dyn Progress,
) -> Result<Vec<Address>, Failure> {
    let answer = session.ec2(Some(&scope.region)).describe_addresses().send().await;
    let answer = answer.map_err(|error| failure::of(&error))?;
    let records = answer.addresses.as_ref().ok_or_else(|| malformed("an answer has no list of addresses"))?;
    let addresses = records.iter().map(|record| parse::address(scope, record).map_err(malformed));
    let addresses = addresses.collect::<Result<Vec<_>, _>>()?;
    progress.page(scope, Kind::Address, addresses.len());
    Ok(addresses)
}
