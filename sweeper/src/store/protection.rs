//! What protects machines, as it was last read: kept, since the provider tells it of one machine a call.

use super::{Doing as _, Store, StoreError, from_unix_ms, place::place, to_unix_ms};
use crate::inventory::{KeptProtection, Protection, Scope};
use jiff::Timestamp;
use sea_orm::{
    ActiveValue::Set, ColumnTrait as _, DatabaseTransaction, EntityTrait as _, QueryFilter as _, sea_query::OnConflict,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Rows of one statement. SQLite takes 32,766 values in one, and a row has eight.
const ROWS: usize = 1_000;

#[expect(unreachable_pub, reason = "the derives of sea-orm demand public types")]
mod row {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "protection_answers")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub provider: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub account: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub region: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub instance: String,
        pub queued_unix_ms: i64,
        pub read_unix_ms: Option<i64>,
        pub stop_protected: Option<bool>,
        pub termination_protected: Option<bool>,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// What says of which scope a row is.
const PLACE: [row::Column; 3] = [row::Column::Provider, row::Column::Account, row::Column::Region];

impl Store {
    /// What is kept of a scope, by instance id.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn protection(&self, scope: &Scope) -> Result<HashMap<String, KeptProtection>, StoreError> {
        let rows = row::Entity::find().filter(place(PLACE, scope.words())).all(self.connection()).await;
        let rows = rows.doing("read what protects machines")?;
        rows.into_iter().map(|row| Ok((row.instance.clone(), kept(&row)?))).collect()
    }

    /// Keeps what was answered about machines of a scope at this moment, in the place of what was answered before. Those of which nothing could
    /// be `read` keep what they had. All of them go to the end of the queue.
    ///
    /// # Errors
    /// If the database does not answer; nothing of it is kept then.
    pub async fn put_protection(
        &self,
        scope: &Scope,
        answered: &BTreeMap<String, Protection>,
        failed: &BTreeSet<String>,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let transaction = self.begin_write().await?;
        let row = |(instance, protection): (&String, &Protection)| row::ActiveModel {
            read_unix_ms: Set(Some(to_unix_ms(at))),
            stop_protected: Set(protection.stop),
            termination_protected: Set(protection.termination),
            ..queued(scope, instance, at)
        };
        let replace = OnConflict::columns(key())
            .update_columns([
                row::Column::QueuedUnixMs,
                row::Column::ReadUnixMs,
                row::Column::StopProtected,
                row::Column::TerminationProtected,
            ])
            .to_owned();
        insert(&transaction, answered.iter().map(row).collect(), replace).await?;
        let row = |instance: &String| queued(scope, instance, at);
        let replace = OnConflict::columns(key()).update_column(row::Column::QueuedUnixMs).to_owned();
        insert(&transaction, failed.iter().map(row).collect(), replace).await?;
        transaction.commit().await.doing("commit what protects machines")
    }

    /// Gives machines that have none yet a place at the end of the queue, and forgets those that are `gone`.
    ///
    /// # Errors
    /// If the database does not answer; nothing of it is kept then.
    pub async fn queue_protection(
        &self,
        scope: &Scope,
        new: &BTreeSet<String>,
        gone: &BTreeSet<String>,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let transaction = self.begin_write().await?;
        let gone: Vec<&String> = gone.iter().collect();
        for gone in gone.chunks(ROWS) {
            row::Entity::delete_many()
                .filter(place(PLACE, scope.words()))
                .filter(row::Column::Instance.is_in(gone.iter().copied()))
                .exec(&transaction)
                .await
                .doing("forget what protected machines")?;
        }
        let rows = new.iter().map(|instance| queued(scope, instance, at)).collect();
        insert(&transaction, rows, OnConflict::columns(key()).do_nothing().to_owned()).await?;
        transaction.commit().await.doing("commit which machines are to be asked about")
    }
}

async fn insert(
    transaction: &DatabaseTransaction,
    rows: Vec<row::ActiveModel>,
    replace: OnConflict,
) -> Result<(), StoreError> {
    for rows in rows.chunks(ROWS) {
        row::Entity::insert_many(rows.iter().cloned())
            .on_conflict(replace.clone())
            .exec_without_returning(transaction)
            .await
            .doing("keep what protects machines")?;
    }
    Ok(())
}

fn key() -> Vec<row::Column> {
    [PLACE.as_slice(), &[row::Column::Instance]].concat()
}

/// A machine without an answer.
fn queued(scope: &Scope, instance: &str, at: Timestamp) -> row::ActiveModel {
    row::ActiveModel {
        provider: Set(scope.provider.as_str().to_owned()),
        account: Set(scope.account.clone()),
        region: Set(scope.region.clone()),
        instance: Set(instance.to_owned()),
        queued_unix_ms: Set(to_unix_ms(at)),
        read_unix_ms: Set(None),
        stop_protected: Set(None),
        termination_protected: Set(None),
    }
}

fn kept(row: &row::Model) -> Result<KeptProtection, StoreError> {
    let protection = Protection { stop: row.stop_protected, termination: row.termination_protected };
    let answer = row.read_unix_ms.map(|read| Ok::<_, StoreError>((from_unix_ms(read)?, protection)));
    Ok(KeptProtection { queued_at: from_unix_ms(row.queued_unix_ms)?, answer: answer.transpose()? })
}
