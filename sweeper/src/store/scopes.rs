//! WorkUnits of the work as rows, and the leases on them.
//!
//! Time is the database's own, on both databases: replicas whose clocks differ agree on when a lease ends, and who was
//! paused learns it from the clock that went on. It decides only when a work unit may be claimed anew. What keeps a result
//! from being written twice is the epoch, which grows with each claim and is compared under the lock of the row, in the
//! transaction of the result itself. A claim costs one short transaction of three statements.

mod queue;

use super::{Doing as _, Store, StoreError, clock, database_now, from_unix_ms, place::place, to_unix_ms};
use crate::{inventory::Scope, work_unit::WorkUnit};
use jiff::Timestamp;
use model::Provider;
use sea_orm::{
    ActiveValue::Set,
    ColumnTrait as _, Condition, ConnectionTrait, DatabaseTransaction, DbBackend, EntityTrait as _, QueryFilter as _,
    QueryOrder as _, QuerySelect as _,
    sea_query::{Expr, ExprTrait as _, LockBehavior, LockType},
};
use std::{collections::BTreeSet, time::Duration};

#[expect(unreachable_pub, reason = "the derives of sea-orm demand public types")]
mod row {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "scopes")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub provider: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub account: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub region: String,
        pub lease_owner: Option<String>,
        pub lease_epoch: i64,
        pub lease_until_unix_ms: i64,
        pub swept_for_unix_ms: Option<i64>,
        pub started_unix_ms: Option<i64>,
        pub finished_unix_ms: Option<i64>,
        pub complete: Option<bool>,
        pub last_complete_unix_ms: Option<i64>,
        pub listed: Option<String>,
        pub failed: Option<String>,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// The right to sweep a work unit, for as long as nobody has claimed it anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// What is swept.
    pub unit: WorkUnit,
    /// Number of this claim: the work unit's next one has a greater one.
    pub epoch: i64,
    /// Who had it before and let it run out.
    pub taken_from: Option<String>,
    /// For which scheduled time the work unit had been swept before.
    pub swept_for: Option<Timestamp>,
}

/// How a work unit was swept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The scheduled time, or the moment of the request.
    pub swept_for: Timestamp,
    /// Whether everything that was asked for could be read.
    pub complete: bool,
    /// What was listed, in words.
    pub listed: Option<String>,
    /// What could not be, and why.
    pub failed: Option<String>,
}

/// Who sweeps a work unit, and until when at least.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// A replica, or a command.
    pub by: String,
    /// By the database's clock, unless it is renewed.
    pub until: Timestamp,
}

/// What is known of a work unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkUnitState {
    /// Which.
    pub unit: WorkUnit,
    /// Who sweeps it now; a lease that has run out is nobody's.
    pub held: Option<Held>,
    /// How often it was claimed.
    pub epoch: i64,
    /// The scheduled time that it was last swept for.
    pub swept_for: Option<Timestamp>,
    /// When its last sweep began.
    pub started_at: Option<Timestamp>,
    /// When a sweep of it last ended.
    pub finished_at: Option<Timestamp>,
    /// Whether all of it could be read then.
    pub complete: Option<bool>,
    /// When all of it was last read.
    pub last_complete_at: Option<Timestamp>,
    /// What was listed, in words.
    pub listed: Option<String>,
    /// What could not be, and why.
    pub failed: Option<String>,
}

/// All work units at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkUnits {
    /// The database's clock.
    pub now: Timestamp,
    /// By provider, account and region.
    pub states: Vec<WorkUnitState>,
}

fn ms(length: Duration) -> i64 {
    i64::try_from(length.as_millis()).unwrap_or(i64::MAX / 2)
}

fn is(unit: &WorkUnit) -> Condition {
    place([row::Column::Provider, row::Column::Account, row::Column::Region], unit.words())
}

/// The row of a work unit under this very claim.
fn held_by(lease: &Lease, now: Expr) -> Condition {
    is(&lease.unit).add(row::Column::LeaseEpoch.eq(lease.epoch)).add(Expr::col(row::Column::LeaseUntilUnixMs).gt(now))
}

/// A row that nobody holds.
fn free(now: Expr) -> Condition {
    Condition::all().add(Expr::col(row::Column::LeaseUntilUnixMs).lte(now))
}

impl Store {
    fn clock(&self) -> Expr {
        Expr::cust(clock(self.connection().get_database_backend()))
    }

    /// Begins a transaction that locks rows of work units. PostgreSQL ends it if nothing is heard for a lease's length, so that a
    /// replica which was stopped in its midst keeps nobody out for longer than that.
    pub(crate) async fn begin_leased(&self, length: Duration) -> Result<DatabaseTransaction, StoreError> {
        let transaction = self.begin_write().await?;
        if transaction.get_database_backend() == DbBackend::Postgres {
            let limit = ms(length).clamp(1_000, i64::from(i32::MAX));
            let limit = format!("SET LOCAL idle_in_transaction_session_timeout = {limit}");
            transaction.execute_unprepared(&limit).await.doing("limit a transaction")?;
        }
        Ok(transaction)
    }

    /// Whether anything in this account (of Google: project) is swept.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn is_swept(&self, provider: Provider, account: &str) -> Result<bool, StoreError> {
        let rows = row::Entity::find()
            .filter(row::Column::Provider.eq(provider.to_string()))
            .filter(row::Column::Account.eq(account))
            .limit(1)
            .all(&self.connection);
        Ok(!rows.await.doing("look for the scopes of an account")?.is_empty())
    }

    /// Makes scopes known, and the work unit of everything else. A new scope waits for a sweep of that work unit which is being
    /// written: from the next one on the resources of the scope are no longer in it.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn register_scopes(&self, scopes: &BTreeSet<Scope>, length: Duration) -> Result<(), StoreError> {
        let known: BTreeSet<_> = self.work_units().await?.states.into_iter().map(|state| state.unit).collect();
        let wanted = std::iter::once(WorkUnit::Uncovered).chain(scopes.iter().cloned().map(WorkUnit::Scope));
        let new: Vec<WorkUnit> = wanted.filter(|unit| !known.contains(unit)).collect();
        if new.is_empty() {
            return Ok(());
        }
        let transaction = self.begin_leased(length).await?;
        // That row first: it is the one whose lock keeps the work unit's sweep and this apart.
        insert(&transaction, &WorkUnit::Uncovered).await?;
        row::Entity::find()
            .filter(is(&WorkUnit::Uncovered))
            .lock_exclusive()
            .one(&transaction)
            .await
            .doing("lock the work unit of uncovered nodes")?;
        for unit in &new {
            insert(&transaction, unit).await?;
        }
        transaction.commit().await.doing("commit new scopes")
    }

    /// Everything that is known of the work units. Those of providers that only a later version knows are left out.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn work_units(&self) -> Result<WorkUnits, StoreError> {
        let now = database_now(self.connection()).await?;
        let rows = row::Entity::find()
            .order_by_asc(row::Column::Provider)
            .order_by_asc(row::Column::Account)
            .order_by_asc(row::Column::Region)
            .all(self.connection())
            .await
            .doing("read the scopes")?;
        let states = rows.into_iter().filter_map(|row| state(row, now).transpose()).collect::<Result<_, _>>()?;
        Ok(WorkUnits { now, states })
    }

    /// Claims a work unit if it has not been swept for this tick and nobody holds it.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn claim_due(
        &self,
        unit: &WorkUnit,
        tick: Timestamp,
        owner: &str,
        length: Duration,
    ) -> Result<Option<Lease>, StoreError> {
        let due = Condition::any()
            .add(row::Column::SweptForUnixMs.is_null())
            .add(row::Column::SweptForUnixMs.lt(to_unix_ms(tick)));
        self.claim_where(unit, Some(due), owner, length).await
    }

    /// Claims this work unit, whenever it was swept last; `None` if somebody else holds it.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn claim(&self, unit: &WorkUnit, owner: &str, length: Duration) -> Result<Option<Lease>, StoreError> {
        self.claim_where(unit, None, owner, length).await
    }

    async fn claim_where(
        &self,
        unit: &WorkUnit,
        also: Option<Condition>,
        owner: &str,
        length: Duration,
    ) -> Result<Option<Lease>, StoreError> {
        let transaction = self.begin_leased(length).await?;
        let free = row::Entity::find()
            .filter(is(unit).add_option(also))
            .filter(free(self.clock()))
            // SQLite needs no lock of the row: this transaction is its only writer.
            .lock_with_behavior(LockType::Update, LockBehavior::SkipLocked)
            .one(&transaction)
            .await
            .doing("look for a work unit to sweep")?;
        let Some(free) = free else {
            transaction.rollback().await.doing("end a search for a work unit")?;
            return Ok(None);
        };
        let epoch = free.lease_epoch.saturating_add(1);
        row::Entity::update_many()
            .col_expr(row::Column::LeaseOwner, Expr::value(owner))
            .col_expr(row::Column::LeaseEpoch, Expr::value(epoch))
            .col_expr(row::Column::LeaseUntilUnixMs, self.clock().add(ms(length)))
            .col_expr(row::Column::StartedUnixMs, self.clock())
            .filter(is(unit))
            .exec(&transaction)
            .await
            .doing("claim a work unit")?;
        transaction.commit().await.doing("commit a claim")?;
        let swept_for = free.swept_for_unix_ms.map(from_unix_ms).transpose()?;
        Ok(Some(Lease { unit: unit.clone(), epoch, taken_from: free.lease_owner, swept_for }))
    }

    /// Makes a lease last `length` from now on. False if it has run out.
    ///
    /// # Errors
    /// If the database does not answer; the lease then lasts as long as before.
    pub async fn renew(&self, lease: &Lease, length: Duration) -> Result<bool, StoreError> {
        let renewed = row::Entity::update_many()
            .col_expr(row::Column::LeaseUntilUnixMs, self.clock().add(ms(length)))
            .filter(held_by(lease, self.clock()))
            .exec(self.connection())
            .await
            .doing("renew a lease")?;
        Ok(renewed.rows_affected == 1)
    }

    /// Releases everything that `owner` holds, so that others need not wait. Nothing is noted of what was begun.
    ///
    /// # Errors
    /// If the database does not answer; the leases then run out by themselves.
    pub async fn release_leases(&self, owner: &str) -> Result<u64, StoreError> {
        let released = row::Entity::update_many()
            .col_expr(row::Column::LeaseOwner, Expr::value(None::<String>))
            .col_expr(row::Column::LeaseUntilUnixMs, Expr::value(0_i64))
            .filter(row::Column::LeaseOwner.eq(owner))
            .exec(self.connection())
            .await
            .doing("release leases")?;
        Ok(released.rows_affected)
    }
}

/// Notes how a work unit was swept, ends the lease and locks the row until the transaction ends. False if the lease has run
/// out or the work unit was claimed anew: then the transaction must be rolled back.
pub(crate) async fn finish(
    transaction: &DatabaseTransaction,
    lease: &Lease,
    finished: &Finished,
) -> Result<bool, StoreError> {
    let now = || Expr::cust(clock(transaction.get_database_backend()));
    let swept_for = lease.swept_for.map_or(finished.swept_for, |before| before.max(finished.swept_for));
    let mut update = row::Entity::update_many()
        .col_expr(row::Column::LeaseOwner, Expr::value(None::<String>))
        .col_expr(row::Column::LeaseUntilUnixMs, Expr::value(0_i64))
        .col_expr(row::Column::SweptForUnixMs, Expr::value(to_unix_ms(swept_for)))
        .col_expr(row::Column::FinishedUnixMs, now())
        .col_expr(row::Column::Complete, Expr::value(finished.complete))
        .col_expr(row::Column::Listed, Expr::value(finished.listed.clone()))
        .col_expr(row::Column::Failed, Expr::value(finished.failed.clone()));
    if finished.complete {
        update = update.col_expr(row::Column::LastCompleteUnixMs, now());
    }
    let updated = update.filter(held_by(lease, now())).exec(transaction).await.doing("note a swept work unit")?;
    Ok(updated.rows_affected == 1)
}

/// The scopes that are known, as a transaction sees them.
pub(crate) async fn known(connection: &impl ConnectionTrait) -> Result<BTreeSet<Scope>, StoreError> {
    let rows = row::Entity::find().all(connection).await.doing("read the scopes")?;
    let unit = |row: row::Model| WorkUnit::from_words(&row.provider, &row.account, &row.region);
    let scopes = rows.into_iter().filter_map(unit).filter_map(|unit| match unit {
        WorkUnit::Scope(scope) => Some(scope),
        WorkUnit::Uncovered => None,
    });
    Ok(scopes.collect())
}

async fn insert(transaction: &DatabaseTransaction, unit: &WorkUnit) -> Result<(), StoreError> {
    let (provider, account, region) = unit.words();
    let row = row::ActiveModel {
        provider: Set(provider.to_owned()),
        account: Set(account.to_owned()),
        region: Set(region.to_owned()),
        lease_epoch: Set(0),
        lease_until_unix_ms: Set(0),
        ..row::ActiveModel::default()
    };
    row::Entity::insert(row)
        .on_conflict_do_nothing()
        .exec_without_returning(transaction)
        .await
        .doing("write a scope")?;
    Ok(())
}

fn state(row: row::Model, now: Timestamp) -> Result<Option<WorkUnitState>, StoreError> {
    let Some(unit) = WorkUnit::from_words(&row.provider, &row.account, &row.region) else { return Ok(None) };
    let until = from_unix_ms(row.lease_until_unix_ms)?;
    let time = |unix_ms: Option<i64>| unix_ms.map(from_unix_ms).transpose();
    Ok(Some(WorkUnitState {
        unit,
        held: row.lease_owner.filter(|_| until > now).map(|by| Held { by, until }),
        epoch: row.lease_epoch,
        swept_for: time(row.swept_for_unix_ms)?,
        started_at: time(row.started_unix_ms)?,
        finished_at: time(row.finished_unix_ms)?,
        complete: row.complete,
        last_complete_at: time(row.last_complete_unix_ms)?,
        listed: row.listed,
        failed: row.failed,
    }))
}

#[cfg(test)]
mod tests;
