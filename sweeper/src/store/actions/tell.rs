//! What happens to an action.

use super::{Action, Told, held, row};
use crate::{
    audit::Deed,
    store::{
        Doing as _, StoreError,
        audit::{self, Doer, NewEntry},
        database_now, to_unix_ms,
    },
};
use guards::action::{Event, State};
use jiff::{SignedDuration, Timestamp};
use sea_orm::{DatabaseTransaction, EntityTrait as _, QueryFilter as _, sea_query::Expr};
use std::{collections::BTreeMap, time::Duration};

/// Writes what happened to an action, with an entry in the audit log where that tells of more than a preparation. False if it cannot happen in that state,
/// or somebody else has the action: then nothing is written.
pub(crate) async fn tell(
    transaction: &DatabaseTransaction,
    action: &mut Action,
    event: Event,
    told: &Told,
    lease: Duration,
) -> Result<bool, StoreError> {
    let Some(next) = action.state.next(event) else { return Ok(false) };
    let now = database_now(transaction).await?;
    let until = now.checked_add(SignedDuration::try_from(lease).unwrap_or(SignedDuration::MAX));
    let mut update = row::Entity::update_many()
        .col_expr(row::Column::State, Expr::value(next.as_str()))
        .col_expr(row::Column::ChangedUnixMs, Expr::value(to_unix_ms(now)))
        .col_expr(row::Column::HeldUntilUnixMs, Expr::value(to_unix_ms(until.unwrap_or(Timestamp::MAX))))
        .filter(held(action));
    if next == State::Calling {
        update = update.col_expr(row::Column::CalledUnixMs, Expr::value(to_unix_ms(now)));
    }
    update = update.col_expr(row::Column::Outcome, Expr::value(told.outcome.clone()));
    for (column, value) in [(row::Column::RequestId, &told.request_id), (row::Column::RestsOn, &told.rests_on)] {
        if let Some(value) = value {
            update = update.col_expr(column, Expr::value(value.as_str()));
        }
    }
    let updated = update.exec(transaction).await.doing("write an action's state")?;
    if updated.rows_affected == 0 {
        return Ok(false);
    }
    (action.state, action.changed_at) = (next, now);
    if next == State::Calling {
        action.called_at = Some(now);
    }
    action.outcome.clone_from(&told.outcome);
    action.request_id = told.request_id.clone().or(action.request_id.take());
    log(transaction, action, told).await?;
    Ok(true)
}

/// Writes that a snapshot is made for an action, which counts from the first time on. False if somebody else has the action.
pub(crate) async fn will_copy(transaction: &DatabaseTransaction, action: &mut Action) -> Result<bool, StoreError> {
    let now = database_now(transaction).await?;
    let first = action.copied_at.unwrap_or(now);
    let updated = row::Entity::update_many()
        .col_expr(row::Column::CopiedUnixMs, Expr::value(to_unix_ms(first)))
        .filter(held(action))
        .exec(transaction)
        .await
        .doing("write that a snapshot is made")?;
    action.copied_at = Some(first);
    Ok(updated.rows_affected == 1)
}

/// Writes the audit entry of a state that somebody will ask about.
async fn log(transaction: &DatabaseTransaction, action: &Action, told: &Told) -> Result<(), StoreError> {
    let did = match action.state {
        State::Claimed | State::DryRun | State::Asking => return Ok(()),
        State::Calling => Deed::Called,
        State::Awaiting => Deed::Accepted,
        State::Reconciling => Deed::Lost,
        State::Done => Deed::Done,
        State::Voided => Deed::Voided,
        State::Failed => Deed::Failed,
    };
    let mut detail = BTreeMap::from([
        ("asked_by".to_owned(), action.asked_by.join(",")),
        ("direction".to_owned(), action.direction.as_str().to_owned()),
        ("finding".to_owned(), action.finding.0.clone()),
        ("resource".to_owned(), action.resource.to_string()),
    ]);
    detail.extend(action.request_id.iter().map(|id| ("request_id".to_owned(), id.clone())));
    detail.extend(told.outcome.iter().map(|outcome| ("outcome".to_owned(), outcome.clone())));
    detail.extend(told.rests_on.iter().map(|facts| ("rests_on_sha256".to_owned(), crate::audit::hash(facts))));
    let by = Doer { who: action.holder.clone(), way: "service" };
    audit::append(transaction, NewEntry { by: &by, did, on: action.plan.as_str(), detail }).await
}
