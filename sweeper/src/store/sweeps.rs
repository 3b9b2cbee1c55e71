//! Sweeps as rows, with their reports.

use super::{Doing as _, Store, StoreError, from_unix_ms, to_unix_ms};
use jiff::Timestamp;
use sea_orm::{
    ActiveValue::Set, ColumnTrait as _, ConnectionTrait, EntityTrait as _, QueryFilter as _, QueryOrder as _,
    QuerySelect as _,
};

#[expect(unreachable_pub, reason = "the derives of sea-orm demand public types")]
mod row {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "sweeps")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: String,
        pub started_unix_ms: i64,
        pub finished_unix_ms: i64,
        pub complete: bool,
        pub report: String,
        pub scope: Option<String>,
        pub swept_for_unix_ms: Option<i64>,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// One finished sweep of one work unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishedSweep {
    /// A UUID.
    pub id: String,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub finished_at: Timestamp,
    /// Whether everything that was asked for could be read.
    pub complete: bool,
    /// Its report, as JSON.
    pub report: String,
    /// What was swept, in words; `None` if an earlier version swept everything at once.
    pub scope: Option<String>,
    /// The scheduled time, or the moment of the request.
    pub swept_for: Option<Timestamp>,
}

pub(crate) async fn put(transaction: &impl ConnectionTrait, sweep: &FinishedSweep) -> Result<(), StoreError> {
    let row = row::ActiveModel {
        id: Set(sweep.id.clone()),
        started_unix_ms: Set(to_unix_ms(sweep.started_at)),
        finished_unix_ms: Set(to_unix_ms(sweep.finished_at)),
        complete: Set(sweep.complete),
        report: Set(sweep.report.clone()),
        scope: Set(sweep.scope.clone()),
        swept_for_unix_ms: Set(sweep.swept_for.map(to_unix_ms)),
    };
    row::Entity::insert(row).exec_without_returning(transaction).await.doing("write a sweep's report")?;
    Ok(())
}

impl Store {
    /// Deletes the reports of sweeps that began before a moment.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn delete_sweeps_before(&self, moment: Timestamp) -> Result<u64, StoreError> {
        let deleted = row::Entity::delete_many()
            .filter(row::Column::StartedUnixMs.lt(to_unix_ms(moment)))
            .exec(self.connection())
            .await
            .doing("delete old reports")?;
        Ok(deleted.rows_affected)
    }

    /// The report of the last sweep of a work unit, as JSON; none if none is kept.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn last_report(&self, scope: &str) -> Result<Option<String>, StoreError> {
        row::Entity::find()
            .select_only()
            .column(row::Column::Report)
            .filter(row::Column::Scope.eq(scope))
            .order_by_desc(row::Column::StartedUnixMs)
            .into_tuple()
            .one(self.connection())
            .await
            .doing("read the last report of a scope")
    }

    /// The sweeps that began last, the newest first.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn last_sweeps(&self, most: u64) -> Result<Vec<FinishedSweep>, StoreError> {
        let last = row::Entity::find()
            .order_by_desc(row::Column::StartedUnixMs)
            .limit(most)
            .all(self.connection())
            .await
            .doing("read the last sweeps")?;
        last.into_iter()
            .map(|row| {
                Ok(FinishedSweep {
                    id: row.id,
                    started_at: from_unix_ms(row.started_unix_ms)?,
                    finished_at: from_unix_ms(row.finished_unix_ms)?,
                    complete: row.complete,
                    report: row.report,
                    scope: row.scope,
                    swept_for: row.swept_for_unix_ms.map(from_unix_ms).transpose()?,
                })
            })
            .collect()
    }
}
