//! One volume, and the snapshot that was made of it for a plan, read right before it is deleted. Needs no more than lists need.

use aws_sdk_ec2::types::{self, Filter};
use model::volume::SnapshotFacts;

use super::{
    Accounts,
    collect::list,
    machine::place,
    parse,
    storage::{SNAPSHOTS, VOLUMES},
};
use crate::inventory::{Failure, Scope, Volume, reader::Refused};

/// Names the plan that a snapshot was made for, by its hash: who looks for it finds it by that, also after a crash.
pub const PLAN_TAG: &str = "cloud-sweeper:plan";

/// One volume as lists have it; none if EC2 does not know it any more. One call.
///
/// # Errors
/// What could not be read, and why.
pub async fn volume(accounts: &Accounts, scope: &Scope, id: &str) -> Result<Option<Volume>, Failure> {
    let place = place(accounts, scope)?;
    let volumes = place.pages(
        VOLUMES,
        |_| (),
        |token| {
            let this = Filter::builder().name("volume-id").values(id).build();
            let request = place.ec2().describe_volumes().filters(this).set_next_token(token);
            async move {
                let page = request.send().await?;
                Ok((list(page.volumes, "volumes")?, page.next_token))
            }
        },
    );
    let records: Vec<types::Volume> = volumes.await?;
    let record = records.iter().find(|record| record.volume_id() == Some(id));
    record.map(|record| parse::volume(scope, record)).transpose().map_err(|why| Refused::malformed(why).why)
}

/// The snapshot of a volume that was made for a plan, the oldest if there are several; none if there is none. One call.
///
/// # Errors
/// What could not be read, and why.
pub async fn snapshot_for(
    accounts: &Accounts,
    scope: &Scope,
    volume: &str,
    plan: &str,
) -> Result<Option<SnapshotFacts>, Failure> {
    let place = place(accounts, scope)?;
    let tag = format!("tag:{PLAN_TAG}");
    let snapshots = place.pages(
        SNAPSHOTS,
        |_| (),
        |token| {
            let of = |name: &str, value: &str| Filter::builder().name(name).values(value).build();
            let request = place.ec2().describe_snapshots().owner_ids("self").set_next_token(token);
            let request = request.filters(of("volume-id", volume)).filters(of(&tag, plan));
            async move {
                let page = request.send().await?;
                Ok((list(page.snapshots, "snapshots")?, page.next_token))
            }
        },
    );
    let records: Vec<types::Snapshot> = snapshots.await?;
    let parsed: Result<Vec<_>, _> = records.iter().map(|record| parse::snapshot(scope, record)).collect();
    let parsed = parsed.map_err(|why| Refused::malformed(why).why)?;
    let oldest = parsed.into_iter().min_by_key(|snapshot| (snapshot.started_at, snapshot.id.id.clone()));
    Ok(oldest.map(|snapshot| SnapshotFacts {
        plan: snapshot.tags.get(PLAN_TAG).cloned(),
        snapshot_id: snapshot.id.id,
        volume_id: snapshot.volume_id,
        size_gib: snapshot.volume_size_gib,
        state: snapshot.state.as_ref().map(ToString::to_string),
        started_at: snapshot.started_at,
    }))
}
