//! The lists of what outlives machines: volumes, snapshots, Elastic IP addresses.

use super::{
    collect::{List, list},
    parse,
};
use crate::inventory::{
    Address, Failure, Snapshot, Volume,
    reader::{Api, Refused},
};
use model::ResourceKind;

pub(super) const VOLUMES: Api = Api::ec2("ec2:DescribeVolumes");
pub(super) const ADDRESSES: Api = Api::ec2_in_one("ec2:DescribeAddresses");
pub(super) const SNAPSHOTS: Api = Api::ec2("ec2:DescribeSnapshots");

/// One call per 1,000 volumes.
pub(super) async fn volumes(list_of: &List<'_>) -> Result<Vec<Volume>, Failure> {
    let List { place, page_size, scope, .. } = list_of;
    let volumes = place.pages(VOLUMES, list_of.told(ResourceKind::Volume), |token| {
        let request = place.ec2().describe_volumes().max_results(*page_size).set_next_token(token);
        async move {
            let page = request.send().await?;
            let records = list(page.volumes, "volumes")?;
            let volumes: Result<Vec<_>, _> = records.iter().map(|record| parse::volume(scope, record)).collect();
            Ok((volumes.map_err(Refused::malformed)?, page.next_token))
        }
    });
    volumes.await
}

/// One call per 1,000 snapshots of the account's own; without the owner EC2 would list everything that is public too.
pub(super) async fn snapshots(list_of: &List<'_>) -> Result<Vec<Snapshot>, Failure> {
    let List { place, page_size, scope, .. } = list_of;
    let snapshots = place.pages(SNAPSHOTS, list_of.told(ResourceKind::Snapshot), |token| {
        let request = place.ec2().describe_snapshots().owner_ids("self").max_results(*page_size).set_next_token(token);
        async move {
            let page = request.send().await?;
            let records = list(page.snapshots, "snapshots")?;
            let snapshots: Result<Vec<_>, _> = records.iter().map(|record| parse::snapshot(scope, record)).collect();
            Ok((snapshots.map_err(Refused::malformed)?, page.next_token))
        }
    });
    snapshots.await
}

/// One call: this list has no pages.
pub(super) async fn addresses(list_of: &List<'_>) -> Result<Vec<Address>, Failure> {
    let List { place, scope, .. } = list_of;
    let addresses = place.pages(ADDRESSES, list_of.told(ResourceKind::Address), |_| {
        let request = place.ec2().describe_addresses();
        async move {
            let records = list(request.send().await?.addresses, "addresses")?;
            let addresses: Result<Vec<_>, _> = records.iter().map(|record| parse::address(scope, record)).collect();
            Ok((addresses.map_err(Refused::malformed)?, None))
        }
    });
    addresses.await
}
