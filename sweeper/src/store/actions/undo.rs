//! What undoes an action, and what stands still until somebody has looked at that.

use super::{Action, Direction, NewAction, new_row, of_row, on, relapse::relapse, row};
use crate::{
    audit::Deed,
    store::{
        Doing as _, Store, StoreError, approvers,
        audit::{self, Doer, NewEntry},
        database_now, plans, to_unix_ms,
    },
};
use guards::action::State;
use model::plan::{ContentHash, Plan};
use sea_orm::{ActiveModelTrait as _, ColumnTrait as _, DatabaseTransaction, EntityTrait as _, QueryFilter as _};
use std::{collections::BTreeMap, time::Duration};

impl Store {
    /// Asks to undo an action, in somebody's name: the action that does so, claimed by nobody yet.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn undo(&self, plan: &Plan, by: &Doer) -> Result<Result<Action, NotUndone>, StoreError> {
        let transaction = self.begin_write().await?;
        // First, so that of two at once one waits for the other.
        let detail = BTreeMap::from([("resource".to_owned(), plan.content().resource.to_string())]);
        let entry = NewEntry { by, did: Deed::UndoAsked, on: plan.content_hash().as_str(), detail };
        audit::append(&transaction, entry).await?;
        if approvers::enrolled(&transaction, &by.who).await?.is_none() {
            return Ok(Err(NotUndone::NotEnrolled));
        }
        let before = on(&transaction, plan.content_hash()).await?;
        let is = |direction| before.iter().rfind(move |action| action.direction == direction);
        match is(Direction::Do) {
            Some(action) if action.may_have_been_done() => {}
            Some(action) => return Ok(Err(NotUndone::IsNotDone { state: action.state.as_str() })),
            None => return Ok(Err(NotUndone::NothingDone)),
        }
        if plan.content().reversal.is_empty() {
            return Ok(Err(NotUndone::NoReversal));
        }
        let attempt = match is(Direction::Undo) {
            None => 1,
            Some(action) if matches!(action.state, State::Failed | State::Voided) => action.attempt + 1,
            Some(action) => return Ok(Err(NotUndone::Already { state: action.state.as_str() })),
        };
        let because = format!("undone by {}", by.who);
        let action = begin(&transaction, plan, attempt, std::slice::from_ref(&by.who), &because).await?;
        transaction.commit().await.doing("commit an action")?;
        Ok(Ok(action))
    }

    /// Says that somebody has looked at what came undone in an account: actions are carried out there again. Says of how many.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn review_relapses(&self, account: &str, by: &Doer) -> Result<u64, StoreError> {
        let transaction = self.begin_write().await?;
        let reviewed = row::Entity::update_many()
            .col_expr(row::Column::ReviewedUnixMs, self.later(Duration::ZERO))
            .filter(row::Column::Account.eq(account))
            .filter(row::Column::RelapsedUnixMs.is_not_null())
            .filter(row::Column::ReviewedUnixMs.is_null())
            .exec(&transaction)
            .await
            .doing("note that relapses were looked at")?;
        if reviewed.rows_affected == 0 {
            return Ok(0);
        }
        let detail = BTreeMap::from([("actions".to_owned(), reviewed.rows_affected.to_string())]);
        audit::append(&transaction, NewEntry { by, did: Deed::Reviewed, on: account, detail }).await?;
        transaction.commit().await.doing("commit a review")?;
        Ok(reviewed.rows_affected)
    }
}

/// Asks to undo an action in nobody's name, because work had begun on the machine before it was off. What nothing undoes stays as it is, and so does what somebody has undone.
pub(crate) async fn undo_for_work(
    transaction: &DatabaseTransaction,
    plan: &ContentHash,
    by: &Doer,
) -> Result<(), StoreError> {
    let Some(plan) = &plans::by_hash(transaction, plan).await? else { return Ok(()) };
    let before = on(transaction, plan.content_hash()).await?;
    if plan.content().reversal.is_empty() || before.iter().any(|action| action.direction == Direction::Undo) {
        return Ok(());
    }
    let because = "work had begun on it before it was off";
    let detail = BTreeMap::from([
        ("because".to_owned(), because.to_owned()),
        ("resource".to_owned(), plan.content().resource.to_string()),
    ]);
    let entry = NewEntry { by, did: Deed::UndoAsked, on: plan.content_hash().as_str(), detail };
    audit::append(transaction, entry).await?;
    begin(transaction, plan, 1, &[], because).await?;
    Ok(())
}

/// Has another try follow one that failed, in the same names and after so long.
pub(crate) async fn undo_again(
    transaction: &DatabaseTransaction,
    failed: &Action,
    wait: Duration,
) -> Result<(), StoreError> {
    let Some(plan) = &plans::by_hash(transaction, &failed.plan).await? else { return Ok(()) };
    let now = database_now(transaction).await?;
    let from = to_unix_ms(now).saturating_add(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX));
    let new = NewAction { plan, direction: Direction::Undo, attempt: failed.attempt + 1, asked_by: &failed.asked_by };
    insert(transaction, new_row(&new, "", to_unix_ms(now), from)).await
}

async fn insert(transaction: &DatabaseTransaction, model: row::Model) -> Result<(), StoreError> {
    row::Entity::insert(row::ActiveModel::from(model).reset_all())
        .exec_without_returning(transaction)
        .await
        .doing("ask to undo an action")?;
    Ok(())
}

/// Writes the action that undoes a plan's, claimed by nobody yet, and that what was done has come undone.
async fn begin(
    transaction: &DatabaseTransaction,
    plan: &Plan,
    attempt: u32,
    asked_by: &[String],
    because: &str,
) -> Result<Action, StoreError> {
    let now = database_now(transaction).await?;
    let new = NewAction { plan, direction: Direction::Undo, attempt, asked_by };
    let model = new_row(&new, "", to_unix_ms(now), to_unix_ms(now));
    insert(transaction, model.clone()).await?;
    relapse(transaction, plan.content_hash(), now, because).await?;
    of_row(model)
}

/// Why an action is not undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotUndone {
    /// Nobody knows them.
    #[error("you are not enrolled any more")]
    NotEnrolled,
    /// There is no action.
    #[error("nothing was done by this plan, so that there is nothing to undo")]
    NothingDone,
    /// It is under way, or came to nothing.
    #[error("the action is `{state}`, not `done`: there is nothing to undo")]
    IsNotDone {
        /// How far it is.
        state: &'static str,
    },
    /// The plan says how.
    #[error("nothing undoes this plan")]
    NoReversal,
    /// Somebody has.
    #[error("it is being undone, or was: that action is `{state}`")]
    Already {
        /// How far it is.
        state: &'static str,
    },
}
