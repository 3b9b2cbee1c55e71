//! What the database knows right before an action, all of it in the transaction that writes that the call leaves.

use super::{
    Doing as _, Store, StoreError, actions, approvals, approvers, audit, database_now,
    entities::heartbeat as beat,
    exemptions, findings, history, nodes, plans,
    switch::{self, KillSwitch},
};
use crate::{
    findings::{Finding, FindingId, Status},
    identity::Node,
};
use guards::act::{Answer, Exempted, Say, Switch};
use heartbeat::NodeId;
use jiff::{SignedDuration, Timestamp};
use model::{
    ResourceKey, ResourceKind,
    plan::{ContentHash, Plan},
};
use sea_orm::{
    ColumnTrait as _, ConnectionTrait, DatabaseTransaction, EntityTrait as _, QueryFilter as _, QueryOrder as _,
    QuerySelect as _,
};
use std::collections::BTreeMap;

/// What was read of a group may be older than a call of so long ago.
const JUST_CALLED: SignedDuration = SignedDuration::from_mins(1);
/// Actions of so long are counted.
const DAY: SignedDuration = SignedDuration::from_hours(24);

/// What the database knows.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    /// By its clock.
    pub(crate) now: Timestamp,
    /// The plan, as it was sealed.
    pub(crate) plan: Option<Plan>,
    /// Its finding, while that is open.
    pub(crate) finding: Option<Finding>,
    /// Who wants the resource left alone, or what a job is in.
    pub(crate) exempted: Vec<Exempted>,
    /// What people said of the plan.
    pub(crate) says: Vec<Say>,
    /// Of the resource, before its finding began.
    pub(crate) tags_before: Option<BTreeMap<String, String>>,
    /// The kill switch.
    pub(crate) switch: Switch,
    /// What was approved before is void.
    pub(crate) void_before: Timestamp,
    /// The node of the resource, or of the machine on which a job runs, if one has joined.
    pub(crate) node: Option<Node>,
    /// End of its newest heartbeat, in milliseconds since 1970-01-01 UTC.
    pub(crate) newest_heartbeat_unix_ms: Option<i64>,
    /// So many actions were carried out in its account in the last 24 hours, or begun by a snapshot.
    pub(crate) done_in_a_day: u64,
    /// Whether one has come undone that nobody has looked at.
    pub(crate) has_relapsed: bool,
    /// Another machine of the group that the plan names, which is being ended or has just been.
    pub(crate) ending: Option<ResourceKey>,
}

impl Known {
    /// The hash of the plan that the finding has now.
    pub(crate) fn current_plan(&self) -> Option<&ContentHash> {
        self.finding.as_ref()?.plan.as_ref().map(Plan::content_hash)
    }

    /// Whether an approval is of before the database may have been another one.
    pub(crate) fn was_restored(&self) -> bool {
        self.says.iter().any(|say| say.answer == Answer::Approve && say.at < self.void_before)
    }
}

impl Store {
    /// What is known of a plan.
    pub(crate) async fn known(&self, plan: &ContentHash) -> Result<Known, StoreError> {
        known(self.connection(), plan).await
    }

    /// Begins the transaction in which an action is decided: whoever says something of a plan, or sets the kill switch, did so before it or waits for its end.
    pub(crate) async fn begin_deciding(&self) -> Result<DatabaseTransaction, StoreError> {
        let transaction = self.begin_write().await?;
        audit::lock(&transaction).await?;
        Ok(transaction)
    }

    /// The sealed plan of this hash.
    pub(crate) async fn sealed_plan(&self, hash: &ContentHash) -> Result<Option<Plan>, StoreError> {
        plans::by_hash(self.connection(), hash).await
    }
}

/// See [`Known`].
pub(crate) async fn known(connection: &impl ConnectionTrait, hash: &ContentHash) -> Result<Known, StoreError> {
    let now = database_now(connection).await?;
    let plan = plans::by_hash(connection, hash).await?;
    let switch = match switch::switch(connection).await {
        Ok(KillSwitch { is_on: false, .. }) => Switch::Off,
        Ok(_) => Switch::On,
        Err(error) => {
            tracing::error!(error = %crate::chain(&error), "the kill switch cannot be read, which counts as on");
            Switch::Unreadable
        }
    };
    let mut known = Known {
        now,
        finding: None,
        exempted: Vec::new(),
        says: approvals::says(connection, hash, &approvers::all_enrolled(connection).await?).await?,
        tags_before: None,
        switch,
        void_before: switch::void_before(connection).await?,
        node: None,
        newest_heartbeat_unix_ms: None,
        done_in_a_day: 0,
        has_relapsed: true,
        ending: None,
        plan: None,
    };
    let Some(plan) = plan else { return Ok(known) };
    let resource = &plan.content().resource;
    let finding = FindingId(plan.content().finding.clone());
    known.finding = findings::by_id(connection, &finding).await?.filter(|finding| finding.status == Status::Open);
    for on in plan.is_on() {
        let left_alone = exemptions::of(connection, &on, now).await?.into_iter();
        known.exempted.extend(left_alone.map(|one| Exempted { by: one.approver, until: one.until }));
    }
    known.tags_before = history::tags_before(connection, &finding, resource).await?;
    if let Ok(node_id) = speaks_for(&plan).to_string().parse::<NodeId>() {
        known.node = nodes::by_id(connection, &node_id).await?;
        known.newest_heartbeat_unix_ms = newest(connection, &node_id).await?;
    }
    known.done_in_a_day = actions::carried_out(connection, &plan, now - DAY).await?;
    known.has_relapsed = actions::has_relapsed(connection, &plan).await?;
    known.ending = ending(connection, &plan, now - JUST_CALLED).await?;
    known.plan = Some(plan);
    Ok(known)
}

/// The key of the machine whose agent speaks for a plan's resource.
fn speaks_for(plan: &Plan) -> ResourceKey {
    let resource = plan.content().resource.clone();
    match plan.machine_of_job() {
        Some(machine) => ResourceKey { kind: ResourceKind::Instance, id: machine.to_owned(), ..resource },
        None => resource,
    }
}

/// Another machine of the same group whose end was called, and is under way or was since then.
async fn ending(
    connection: &impl ConnectionTrait,
    plan: &Plan,
    since: Timestamp,
) -> Result<Option<ResourceKey>, StoreError> {
    let ResourceKey { account, location, .. } = &plan.content().resource;
    let Some(group) = plan.group() else { return Ok(None) };
    for hash in actions::called_beside(connection, plan, since).await? {
        let Some(other) = plans::by_hash(connection, &hash).await? else { continue };
        let on = &other.content().resource;
        if (other.group(), &on.account, &on.location) == (Some(group), account, location) {
            return Ok(Some(on.clone()));
        }
    }
    Ok(None)
}

async fn newest(connection: &impl ConnectionTrait, node: &NodeId) -> Result<Option<i64>, StoreError> {
    beat::Entity::find()
        .select_only()
        .column(beat::Column::EndUnixMs)
        .filter(beat::Column::NodeId.eq(node.to_string()))
        .order_by_desc(beat::Column::EndUnixMs)
        .into_tuple()
        .one(connection)
        .await
        .doing("look up a node's newest heartbeat")
}
