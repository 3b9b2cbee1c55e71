//! Who carries which action out.

use super::{Action, NewAction, held, ms, new_row, of_row, row};
use crate::store::{Doing as _, Store, StoreError, clock, corrupt, to_unix_ms};
use guards::action::{Event, State};
use model::plan::ContentHash;
use sea_orm::{
    ActiveModelTrait as _, ColumnTrait as _, ConnectionTrait as _, EntityTrait as _, QueryFilter as _, QueryOrder as _,
    QuerySelect as _,
    sea_query::{Expr, OnConflict, SimpleExpr},
};
use std::time::Duration;

impl Store {
    /// The database's clock, so much later.
    pub(super) fn later(&self, by: Duration) -> SimpleExpr {
        Expr::cust(format!("{} + {}", clock(self.connection().get_database_backend()), ms(by)))
    }

    /// The plans that somebody has approved, nobody has begun to carry out, and that are valid still. A plan waits for a sweep that confirms its finding:
    /// nobody who approved it need do so again because one list failed.
    pub(crate) async fn approved_plans(&self) -> Result<Vec<ContentHash>, StoreError> {
        let backend = self.connection().get_database_backend();
        let sql = format!(
            "SELECT DISTINCT approvals.plan_hash AS plan_hash FROM approvals JOIN plans ON plans.content_hash = approvals.plan_hash \
             JOIN findings ON findings.id = plans.finding_id AND findings.open_key IS NOT NULL AND findings.confirmed_sweeps > 0 \
             WHERE approvals.answer = 'approve' AND plans.valid_until_unix_ms > {} AND NOT EXISTS \
             (SELECT 1 FROM actions WHERE actions.plan_hash = approvals.plan_hash AND actions.direction = 'do') \
             ORDER BY approvals.plan_hash",
            clock(backend)
        );
        let statement = sea_orm::Statement::from_string(backend, sql);
        let rows = self.connection().query_all_raw(statement).await.doing("look for approved plans")?;
        let hash = |row: sea_orm::QueryResult| {
            let text: String = row.try_get("", "plan_hash").doing("look for approved plans")?;
            text.try_into().map_err(|_| corrupt("an approval", "its plan"))
        };
        rows.into_iter().map(hash).collect()
    }

    /// Claims an action that nobody has claimed; none if somebody has.
    pub(crate) async fn claim_action(
        &self,
        new: NewAction<'_>,
        holder: &str,
        lease: Duration,
    ) -> Result<Option<Action>, StoreError> {
        let now = to_unix_ms(self.now().await?);
        let model = new_row(&new, holder, now, now.saturating_add(ms(lease)));
        let inserted = row::Entity::insert(row::ActiveModel::from(model.clone()).reset_all())
            .on_conflict(OnConflict::new().do_nothing().to_owned())
            .exec_without_returning(self.connection())
            .await
            .doing("claim an action")?;
        if inserted == 0 { Ok(None) } else { of_row(model).map(Some) }
    }

    /// Takes over the actions whose holders were not heard of for too long. Each goes on where its state says, and never by a call again.
    pub(crate) async fn take_over_actions(
        &self,
        holder: &str,
        lease: Duration,
        most: usize,
    ) -> Result<Vec<Action>, StoreError> {
        let open = State::ALL.into_iter().filter(|state| !state.is_final()).map(State::as_str);
        let now = self.now().await?;
        let rows = row::Entity::find()
            .filter(row::Column::State.is_in(open))
            .filter(row::Column::HeldUntilUnixMs.lte(to_unix_ms(now)))
            .order_by_asc(row::Column::ClaimedUnixMs)
            .limit(u64::try_from(most).unwrap_or(u64::MAX))
            .all(self.connection())
            .await
            .doing("look for actions that nobody holds")?;
        let mut taken = Vec::new();
        for row in rows {
            let mut action = of_row(row)?;
            let Some(next) = action.state.next(Event::TakenOver) else { continue };
            let epoch = action.epoch.saturating_add(1);
            let updated = row::Entity::update_many()
                .col_expr(row::Column::State, Expr::value(next.as_str()))
                .col_expr(row::Column::Epoch, Expr::value(epoch))
                .col_expr(row::Column::Holder, Expr::value(holder))
                .col_expr(row::Column::HeldUntilUnixMs, self.later(lease))
                .col_expr(row::Column::ChangedUnixMs, self.later(Duration::ZERO))
                .filter(held(&action))
                .filter(row::Column::HeldUntilUnixMs.lte(to_unix_ms(now)))
                .exec(self.connection())
                .await
                .doing("take an action over")?;
            if updated.rows_affected == 1 {
                (action.state, action.epoch, action.changed_at) = (next, epoch, now);
                holder.clone_into(&mut action.holder);
                taken.push(action);
            }
        }
        Ok(taken)
    }

    /// Holds an action for so long from now on. False if somebody else has it.
    pub(crate) async fn hold_action(&self, action: &Action, lease: Duration) -> Result<bool, StoreError> {
        let updated = row::Entity::update_many()
            .col_expr(row::Column::HeldUntilUnixMs, self.later(lease))
            .filter(held(action))
            .exec(self.connection())
            .await
            .doing("hold an action")?;
        Ok(updated.rows_affected == 1)
    }

    /// Writes what an action waits for, for whoever looks.
    pub(crate) async fn note_action(&self, action: &Action, outcome: &str) -> Result<(), StoreError> {
        row::Entity::update_many()
            .col_expr(row::Column::Outcome, Expr::value(outcome))
            .filter(held(action))
            .exec(self.connection())
            .await
            .doing("note what an action waits for")?;
        Ok(())
    }
}
