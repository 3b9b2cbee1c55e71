//! What else has been done in an account, or is being done, at the moment at which something is decided there.

use super::{Direction, class, on, row, word_of};
use crate::store::{Doing as _, StoreError, corrupt, to_unix_ms};
use guards::action::State;
use jiff::Timestamp;
use model::{
    ResourceKey,
    plan::{ActionClass, ContentHash, Plan},
};
use sea_orm::{
    ColumnTrait as _, Condition, ConnectionTrait, EntityTrait as _, PaginatorTrait as _, QueryFilter as _,
    QuerySelect as _,
};

/// The states of an action whose call may have left and has not ended.
const CALLED: [State; 3] = [State::Calling, State::Awaiting, State::Reconciling];

/// How many actions were carried out in a plan's account since then, those under way among them, whatever became of them. One that a snapshot is made for is under way: it has taken its place,
/// and what began after it does not take it away.
pub(in crate::store) async fn carried_out(
    connection: &impl ConnectionTrait,
    plan: &Plan,
    since: Timestamp,
) -> Result<u64, StoreError> {
    let (since, hash) = (to_unix_ms(since), plan.content_hash());
    let its_place = on(connection, hash).await?.into_iter().find_map(|action| action.copied_at).map(to_unix_ms);
    let before = its_place.filter(|place| *place >= since).unwrap_or(i64::MAX);
    let within = |column: row::Column| Condition::all().add(column.gte(since)).add(column.lt(before));
    let is_copied = within(row::Column::CopiedUnixMs).add(row::Column::PlanHash.ne(hash.as_str()));
    row::Entity::find()
        .filter(row::Column::Account.eq(plan.content().resource.account.as_str()))
        .filter(row::Column::Direction.eq(Direction::Do.as_str()))
        .filter(Condition::any().add(within(row::Column::CalledUnixMs)).add(is_copied))
        .count(connection)
        .await
        .doing("count the actions of a day")
}

/// The plan of an action on a resource that has been called, as far as is known, and has not ended.
pub(in crate::store) async fn called_on(
    connection: &impl ConnectionTrait,
    resource: &ResourceKey,
) -> Result<Option<ContentHash>, StoreError> {
    let row = row::Entity::find()
        .filter(row::Column::Resource.eq(resource.to_string()))
        .filter(row::Column::Direction.eq(Direction::Do.as_str()))
        .filter(row::Column::State.is_in(CALLED.map(State::as_str)))
        .one(connection)
        .await
        .doing("look for an action that has been called")?;
    row.map(|row| ContentHash::try_from(row.plan_hash).map_err(|error| corrupt("an action", error))).transpose()
}

/// The other plans of an account whose call may have left, and has not ended or left since then; of those alone that nothing undoes.
pub(in crate::store) async fn called_beside(
    connection: &impl ConnectionTrait,
    plan: &Plan,
    since: Timestamp,
) -> Result<Vec<ContentHash>, StoreError> {
    let is_called = row::Column::State.is_in(CALLED.map(State::as_str));
    let lately = Condition::any().add(is_called).add(row::Column::CalledUnixMs.gte(to_unix_ms(since)));
    let hashes: Vec<String> = row::Entity::find()
        .select_only()
        .column(row::Column::PlanHash)
        .filter(row::Column::Account.eq(plan.content().resource.account.as_str()))
        .filter(row::Column::Class.eq(word_of(ActionClass::Destructive)))
        .filter(row::Column::PlanHash.ne(plan.content_hash().as_str()))
        .filter(lately)
        .into_tuple()
        .all(connection)
        .await
        .doing("look for what else has just been called")?;
    hashes.into_iter().map(|hash| hash.try_into().map_err(|error| corrupt("an action", error))).collect()
}

/// Whether something of this class in an account has come undone that nobody has looked at. Before what nothing undoes, something of any class: it cannot come undone itself.
pub(in crate::store) async fn has_relapsed(connection: &impl ConnectionTrait, plan: &Plan) -> Result<bool, StoreError> {
    let mut relapsed = row::Entity::find();
    if plan.class() == ActionClass::Reversible {
        relapsed = relapsed.filter(row::Column::Class.eq(class(plan)));
    }
    let count = relapsed
        .filter(row::Column::Account.eq(plan.content().resource.account.as_str()))
        .filter(row::Column::RelapsedUnixMs.is_not_null())
        .filter(row::Column::ReviewedUnixMs.is_null())
        .count(connection)
        .await
        .doing("look for relapses")?;
    Ok(count > 0)
}
