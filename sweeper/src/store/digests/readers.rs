//! Who reads which list, by which token in a link, and who has left it.

use super::Recipient;
use crate::store::{Doing as _, Store, StoreError, TokenHash, from_unix_ms, to_unix_ms};
use jiff::Timestamp;
use sea_orm::{
    ActiveValue::Set,
    ColumnTrait as _, ConnectionTrait, EntityTrait as _, QueryFilter as _, QueryOrder as _,
    sea_query::{Expr, OnConflict},
};

#[expect(unreachable_pub, reason = "the derives of sea-orm demand public types")]
mod row {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "digest_readers")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub list: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub address: String,
        pub token_sha256: Option<String>,
        pub left_unix_ms: Option<i64>,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// A reader of a list, as the database knows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reader {
    /// Of which list.
    pub list: String,
    /// The bare address.
    pub address: String,
    /// Since when they want no more of it; none if they get it.
    pub left_at: Option<Timestamp>,
}

fn reader(row: row::Model) -> Result<Reader, StoreError> {
    let left_at = row.left_unix_ms.map(from_unix_ms).transpose()?;
    Ok(Reader { list: row.list, address: row.address, left_at })
}

/// Notes by which token a reader's link is known. False if they have left the list.
pub(super) async fn note(transaction: &impl ConnectionTrait, list: &str, to: &Recipient) -> Result<bool, StoreError> {
    let new = row::ActiveModel {
        list: Set(list.to_owned()),
        address: Set(to.address.clone()),
        token_sha256: Set(to.token_sha256.clone()),
        left_unix_ms: Set(None),
    };
    let mut insert = row::Entity::insert(new);
    let key = OnConflict::columns([row::Column::List, row::Column::Address]);
    insert = insert.on_conflict(match to.token_sha256 {
        Some(_) => key.clone().update_column(row::Column::TokenSha256).to_owned(),
        // A link that was sent before goes on to work.
        None => key.clone().do_nothing().to_owned(),
    });
    insert.exec_without_returning(transaction).await.doing("note who reads a list")?;
    let row = row::Entity::find_by_id((list.to_owned(), to.address.clone())).one(transaction).await;
    Ok(row.doing("look up a reader")?.is_none_or(|row| row.left_unix_ms.is_none()))
}

impl Store {
    /// All readers that are known, by list and address.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn digest_readers(&self) -> Result<Vec<Reader>, StoreError> {
        let rows = row::Entity::find()
            .order_by_asc(row::Column::List)
            .order_by_asc(row::Column::Address)
            .all(self.connection())
            .await
            .doing("list who reads digests")?;
        rows.into_iter().map(reader).collect()
    }

    /// The reader of a list at an address, if one is known.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn digest_reader(&self, list: &str, address: &str) -> Result<Option<Reader>, StoreError> {
        let row = row::Entity::find_by_id((list.to_owned(), address.to_owned())).one(self.connection()).await;
        row.doing("look up a reader")?.map(reader).transpose()
    }

    /// Whose link a token is in; none if in nobody's. It is looked up by its hash, so the time that takes tells nothing about it.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn digest_reader_of(&self, token: &TokenHash) -> Result<Option<Reader>, StoreError> {
        let row = row::Entity::find().filter(row::Column::TokenSha256.eq(token.as_str())).one(self.connection()).await;
        row.doing("look up a reader")?.map(reader).transpose()
    }

    /// Sends a reader no more digests of a list from then on, or again if none is given. One who left before stays as they were.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn set_digest_left(
        &self,
        list: &str,
        address: &str,
        left_at: Option<Timestamp>,
    ) -> Result<(), StoreError> {
        let left = left_at.map(to_unix_ms);
        let new = row::ActiveModel {
            list: Set(list.to_owned()),
            address: Set(address.to_owned()),
            token_sha256: Set(None),
            left_unix_ms: Set(left),
        };
        let key = OnConflict::columns([row::Column::List, row::Column::Address]).do_nothing().to_owned();
        row::Entity::insert(new)
            .on_conflict(key)
            .exec_without_returning(self.connection())
            .await
            .doing("note who reads a list")?;
        let mut change = row::Entity::update_many()
            .col_expr(row::Column::LeftUnixMs, Expr::value(left))
            .filter(row::Column::List.eq(list))
            .filter(row::Column::Address.eq(address));
        if left.is_some() {
            change = change.filter(row::Column::LeftUnixMs.is_null());
        }
        change.exec(self.connection()).await.doing("note who reads a list")?;
        Ok(())
    }
}
