//! The audit log as rows: appended one after the other, never changed.

use super::{Doing as _, Store, StoreError, corrupt, database_now};
use crate::audit::{Deed, Entry, Kept, hash};
use sea_orm::{
    ActiveValue::Set,
    ColumnTrait as _, ConnectionTrait, EntityTrait as _, QueryFilter as _, QueryOrder as _, QuerySelect as _,
    sea_query::{Expr, ExprTrait as _},
};
use std::collections::BTreeMap;

#[expect(unreachable_pub, reason = "the derives of sea-orm demand public types")]
mod row {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "audit")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub sequence: i64,
        pub entry: String,
        pub hash: String,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// The last entry: one row, whose lock makes all that append wait for each other.
#[expect(unreachable_pub, reason = "the derives of sea-orm demand public types")]
mod head {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "audit_head")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: i32,
        pub sequence: i64,
        pub hash: String,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// The head's only row.
const HEAD: i32 = 1;
/// So many entries are read at once.
const PAGE: u64 = 1_000;

/// Who does something, and by which way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doer {
    /// An approver's name, or the user of the command and the host.
    pub who: String,
    /// `shell`, `command`, `slack`.
    pub way: &'static str,
}

/// What is to be written.
#[derive(Clone, Debug)]
pub(crate) struct NewEntry<'a> {
    pub(crate) by: &'a Doer,
    pub(crate) did: Deed,
    pub(crate) on: &'a str,
    pub(crate) detail: BTreeMap<String, String>,
}

/// From then on until the transaction ends, nobody else appends.
pub(crate) async fn lock(transaction: &impl ConnectionTrait) -> Result<(), StoreError> {
    advance(transaction, 0).await
}

/// Changed before it is read: that takes its lock, on PostgreSQL, too.
async fn advance(transaction: &impl ConnectionTrait, by: i64) -> Result<(), StoreError> {
    head::Entity::update_many()
        .col_expr(head::Column::Sequence, Expr::col(head::Column::Sequence).add(by))
        .filter(head::Column::Id.eq(HEAD))
        .exec(transaction)
        .await
        .doing("lock the audit log")?;
    Ok(())
}

/// Appends one entry, in the transaction that does what it tells. From then on until that ends, nobody else appends.
pub(crate) async fn append(transaction: &impl ConnectionTrait, new: NewEntry<'_>) -> Result<(), StoreError> {
    advance(transaction, 1).await?;
    let last = head::Entity::find_by_id(HEAD).one(transaction).await.doing("read the audit log's end")?;
    let last = last.ok_or_else(|| corrupt("the audit log", "its end is not known"))?;
    let entry = Entry {
        sequence: last.sequence.unsigned_abs(),
        at: database_now(transaction).await?,
        who: new.by.who.clone(),
        way: new.by.way.to_owned(),
        did: new.did,
        on: new.on.to_owned(),
        detail: new.detail,
        before: last.hash,
    };
    let text = serde_json::to_string(&entry).map_err(|error| corrupt("an entry of the audit log", error))?;
    let hash = hash(&text);
    head::Entity::update_many()
        .col_expr(head::Column::Hash, Expr::value(hash.clone()))
        .filter(head::Column::Id.eq(HEAD))
        .exec(transaction)
        .await
        .doing("write the audit log's end")?;
    let row = row::ActiveModel { sequence: Set(last.sequence), entry: Set(text), hash: Set(hash) };
    row::Entity::insert(row).exec_without_returning(transaction).await.doing("write the audit log")?;
    Ok(())
}

impl Store {
    /// Entries of the audit log from this one on, oldest first; a page of them.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn audit(&self, from: u64) -> Result<Vec<Kept>, StoreError> {
        let rows = row::Entity::find()
            .filter(row::Column::Sequence.gte(i64::try_from(from).unwrap_or(i64::MAX)))
            .order_by_asc(row::Column::Sequence)
            .limit(PAGE)
            .all(self.connection())
            .await
            .doing("read the audit log")?;
        let kept = |row: row::Model| Kept { sequence: row.sequence.unsigned_abs(), text: row.entry, hash: row.hash };
        Ok(rows.into_iter().map(kept).collect())
    }

    /// How many entries there should be, and the hash of the last one, as the log's own end says.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn audit_head(&self) -> Result<(u64, String), StoreError> {
        let last = head::Entity::find_by_id(HEAD).one(self.connection()).await.doing("read the audit log's end")?;
        let last = last.ok_or_else(|| corrupt("the audit log", "its end is not known"))?;
        Ok((last.sequence.unsigned_abs(), last.hash))
    }
}
