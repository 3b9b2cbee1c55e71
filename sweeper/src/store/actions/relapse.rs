//! What has come undone: by the sweeper, because somebody wanted that, or by somebody else's hand.

use super::{Action, Direction, of_row, row};
use crate::{
    audit::Deed,
    store::{
        Doing as _, Store, StoreError,
        audit::{self, Doer, NewEntry},
        to_unix_ms,
    },
};
use guards::action::State;
use jiff::Timestamp;
use model::plan::ContentHash;
use sea_orm::{ColumnTrait as _, DatabaseTransaction, EntityTrait as _, QueryFilter as _, sea_query::Expr};
use std::collections::BTreeMap;

impl Store {
    /// What was carried out since then and has not come undone as far as anybody has noted.
    ///
    /// # Errors
    /// If the database does not answer, or holds what this version never wrote.
    pub async fn done_since(&self, since: Timestamp) -> Result<Vec<Action>, StoreError> {
        let rows = row::Entity::find()
            .filter(row::Column::Direction.eq(Direction::Do.as_str()))
            .filter(row::Column::State.eq(State::Done.as_str()))
            .filter(row::Column::ChangedUnixMs.gte(to_unix_ms(since)))
            .filter(row::Column::RelapsedUnixMs.is_null())
            .all(self.connection())
            .await
            .doing("read what was done")?;
        rows.into_iter().map(of_row).collect()
    }
}

/// Notes that what was done has come undone, with an entry in the audit log. False if that was noted before.
pub(crate) async fn note_relapse(
    transaction: &DatabaseTransaction,
    action: &Action,
    at: Timestamp,
    because: &str,
    by: &Doer,
) -> Result<bool, StoreError> {
    if !relapse(transaction, &action.plan, at, because).await? {
        return Ok(false);
    }
    let detail = BTreeMap::from([
        ("resource".to_owned(), action.resource.to_string()),
        ("because".to_owned(), because.to_owned()),
    ]);
    audit::append(transaction, NewEntry { by, did: Deed::Relapsed, on: action.plan.as_str(), detail }).await?;
    Ok(true)
}

/// Notes that what was done has come undone; false if it was noted before.
pub(super) async fn relapse(
    transaction: &DatabaseTransaction,
    plan: &ContentHash,
    at: Timestamp,
    because: &str,
) -> Result<bool, StoreError> {
    let noted = row::Entity::update_many()
        .col_expr(row::Column::RelapsedUnixMs, Expr::value(to_unix_ms(at)))
        .col_expr(row::Column::RelapsedBecause, Expr::value(because))
        .filter(row::Column::PlanHash.eq(plan.as_str()))
        .filter(row::Column::Direction.eq(Direction::Do.as_str()))
        .filter(row::Column::RelapsedUnixMs.is_null())
        .exec(transaction)
        .await
        .doing("note a relapse")?;
    Ok(noted.rows_affected > 0)
}
