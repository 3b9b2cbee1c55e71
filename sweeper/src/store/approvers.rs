//! Who may decide about plans, as rows: people by name, and what each of them is known by.

use super::{
    Doing as _, Store, StoreError, TokenHash,
    audit::{self, Doer, NewEntry},
    clock, database_now, from_unix_ms,
    identity::after,
    to_unix_ms,
};
use crate::audit::Deed;
use jiff::Timestamp;
use sea_orm::{
    ActiveValue::Set,
    ColumnTrait as _, ConnectionTrait, DatabaseTransaction, EntityTrait as _, QueryFilter as _, QueryOrder as _,
    sea_query::{Expr, ExprTrait as _, OnConflict},
};
use serde::Serialize;
use std::{collections::BTreeMap, time::Duration};

#[expect(unreachable_pub, reason = "the derives of sea-orm demand public types")]
mod row {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "approvers")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub name: String,
        pub enrolled_unix_ms: i64,
        pub removed_unix_ms: Option<i64>,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

#[expect(unreachable_pub, reason = "the derives of sea-orm demand public types")]
mod account {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "approver_accounts")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub account: String,
        pub approver: String,
        pub linked_unix_ms: i64,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

#[expect(unreachable_pub, reason = "the derives of sea-orm demand public types")]
mod token {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "approver_tokens")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub token_sha256: String,
        pub approver: String,
        pub made_unix_ms: i64,
        pub expires_unix_ms: i64,
        pub used_unix_ms: Option<i64>,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// Somebody who may decide about plans, as far as the policy lets them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Approver {
    /// What the policy and the audit log call them.
    pub name: String,
    /// Since when.
    pub enrolled_at: Timestamp,
    /// Accounts of Slack, `TEAM/USER`, that are theirs.
    pub accounts: Vec<String>,
    /// Their tokens.
    pub tokens: Vec<ApproverToken>,
}

/// A token of theirs; what it is nobody knows but they.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ApproverToken {
    /// When it was made.
    pub made_at: Timestamp,
    /// It is good until then.
    pub expires_at: Timestamp,
    /// When it was last shown.
    pub used_at: Option<Timestamp>,
}

/// Why somebody is not enrolled or linked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotEnrolled {
    /// There is somebody of that name.
    #[error("{0} is enrolled already")]
    Already(String),
    /// There is nobody of that name.
    #[error("nobody of the name {0} is enrolled; `sweeper approvers` lists who is")]
    Unknown(String),
    /// That account is somebody else's: two ways must not count as two people.
    #[error("the Slack account {account} is {owner}'s")]
    AccountTaken {
        /// Which.
        account: String,
        /// Whose.
        owner: String,
    },
}

impl Store {
    /// Lets somebody decide about plans.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn enrol(&self, name: &str, by: &Doer) -> Result<Result<(), NotEnrolled>, StoreError> {
        let transaction = self.begin_write().await?;
        let now = to_unix_ms(database_now(&transaction).await?);
        let new =
            row::ActiveModel { name: Set(name.to_owned()), enrolled_unix_ms: Set(now), removed_unix_ms: Set(None) };
        let inserted = row::Entity::insert(new)
            .on_conflict(OnConflict::new().do_nothing().to_owned())
            .exec_without_returning(&transaction)
            .await
            .doing("enrol an approver")?;
        if inserted == 0 {
            // Whoever was removed begins anew: what they approved before does not count.
            let again = row::Entity::update_many()
                .col_expr(row::Column::EnrolledUnixMs, Expr::value(now))
                .col_expr(row::Column::RemovedUnixMs, Expr::value(None::<i64>))
                .filter(row::Column::Name.eq(name))
                .filter(row::Column::RemovedUnixMs.is_not_null())
                .exec(&transaction)
                .await
                .doing("enrol an approver again")?;
            if again.rows_affected == 0 {
                return Ok(Err(NotEnrolled::Already(name.to_owned())));
            }
        }
        let entry = NewEntry { by, did: Deed::Enrolled, on: name, detail: BTreeMap::new() };
        audit::append(&transaction, entry).await?;
        transaction.commit().await.doing("commit an approver")?;
        Ok(Ok(()))
    }

    /// Ties an account of Slack, `TEAM/USER`, to somebody who is enrolled.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn link_account(
        &self,
        name: &str,
        of_slack: &str,
        by: &Doer,
    ) -> Result<Result<(), NotEnrolled>, StoreError> {
        let transaction = self.begin_write().await?;
        if enrolled(&transaction, name).await?.is_none() {
            return Ok(Err(NotEnrolled::Unknown(name.to_owned())));
        }
        let new = account::ActiveModel {
            account: Set(of_slack.to_owned()),
            approver: Set(name.to_owned()),
            linked_unix_ms: Set(to_unix_ms(database_now(&transaction).await?)),
        };
        let inserted = account::Entity::insert(new)
            .on_conflict(OnConflict::new().do_nothing().to_owned())
            .exec_without_returning(&transaction)
            .await
            .doing("link an account")?;
        if inserted == 0 {
            let owner = account::Entity::find_by_id(of_slack).one(&transaction).await.doing("look up an account")?;
            let owner = owner.map(|row| row.approver).unwrap_or_default();
            return Ok(Err(NotEnrolled::AccountTaken { account: of_slack.to_owned(), owner }));
        }
        let detail = BTreeMap::from([("account".to_owned(), of_slack.to_owned())]);
        audit::append(&transaction, NewEntry { by, did: Deed::Linked, on: name, detail }).await?;
        transaction.commit().await.doing("commit an account")?;
        Ok(Ok(()))
    }

    /// Keeps a token of somebody who is enrolled. Returns its end.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn keep_approver_token(
        &self,
        name: &str,
        hash: &TokenHash,
        lifetime: Duration,
        by: &Doer,
    ) -> Result<Result<Timestamp, NotEnrolled>, StoreError> {
        let transaction = self.begin_write().await?;
        if enrolled(&transaction, name).await?.is_none() {
            return Ok(Err(NotEnrolled::Unknown(name.to_owned())));
        }
        let now = database_now(&transaction).await?;
        let end = after(now, lifetime);
        let new = token::ActiveModel {
            token_sha256: Set(hash.as_str().to_owned()),
            approver: Set(name.to_owned()),
            made_unix_ms: Set(to_unix_ms(now)),
            expires_unix_ms: Set(to_unix_ms(end)),
            used_unix_ms: Set(None),
        };
        token::Entity::insert(new).exec_without_returning(&transaction).await.doing("keep an approver's token")?;
        let detail = BTreeMap::from([("expires_at".to_owned(), end.to_string())]);
        audit::append(&transaction, NewEntry { by, did: Deed::TokenMade, on: name, detail }).await?;
        transaction.commit().await.doing("commit an approver's token")?;
        Ok(Ok(end))
    }

    /// Takes somebody off the list, with all accounts and tokens.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn remove_approver(&self, name: &str, by: &Doer) -> Result<Result<(), NotEnrolled>, StoreError> {
        let transaction = self.begin_write().await?;
        let now = to_unix_ms(database_now(&transaction).await?);
        let removed = row::Entity::update_many()
            .col_expr(row::Column::RemovedUnixMs, Expr::value(now))
            .filter(row::Column::Name.eq(name))
            .filter(row::Column::RemovedUnixMs.is_null())
            .exec(&transaction)
            .await
            .doing("remove an approver")?;
        if removed.rows_affected == 0 {
            return Ok(Err(NotEnrolled::Unknown(name.to_owned())));
        }
        let accounts = account::Entity::delete_many().filter(account::Column::Approver.eq(name));
        accounts.exec(&transaction).await.doing("remove an approver's accounts")?;
        let tokens = token::Entity::delete_many().filter(token::Column::Approver.eq(name));
        tokens.exec(&transaction).await.doing("remove an approver's tokens")?;
        let entry = NewEntry { by, did: Deed::Removed, on: name, detail: BTreeMap::new() };
        audit::append(&transaction, entry).await?;
        transaction.commit().await.doing("commit an approver's removal")?;
        Ok(Ok(()))
    }

    /// Whose token this is, if it is good; notes that it was shown.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn approver_by_token(&self, hash: &TokenHash) -> Result<Option<String>, StoreError> {
        let now = || Expr::cust(clock(self.connection().get_database_backend()));
        let used = token::Entity::update_many()
            .col_expr(token::Column::UsedUnixMs, now())
            .filter(token::Column::TokenSha256.eq(hash.as_str()))
            .filter(Expr::col(token::Column::ExpiresUnixMs).gt(now()))
            .exec(self.connection())
            .await
            .doing("look up an approver's token")?;
        if used.rows_affected == 0 {
            return Ok(None);
        }
        let token = token::Entity::find_by_id(hash.as_str()).one(self.connection()).await;
        Ok(token.doing("look up an approver's token")?.map(|row| row.approver))
    }

    /// Whose account of Slack, `TEAM/USER`, this is; none if nobody's who is enrolled.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn approver_by_account(&self, of_slack: &str) -> Result<Option<String>, StoreError> {
        let linked = account::Entity::find_by_id(of_slack).one(self.connection()).await;
        Ok(linked.doing("look up whose account it is")?.map(|row| row.approver))
    }

    /// Everybody who is enrolled, by name.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn approvers(&self) -> Result<Vec<Approver>, StoreError> {
        let connection = self.connection();
        let rows = row::Entity::find()
            .filter(row::Column::RemovedUnixMs.is_null())
            .order_by_asc(row::Column::Name)
            .all(connection)
            .await
            .doing("read the approvers")?;
        let accounts = account::Entity::find().order_by_asc(account::Column::Account).all(connection).await;
        let accounts = accounts.doing("read the approvers' accounts")?;
        let tokens = token::Entity::find().order_by_asc(token::Column::MadeUnixMs).all(connection).await;
        let tokens = tokens.doing("read the approvers' tokens")?;
        let of = |row: row::Model| {
            let accounts = accounts.iter().filter(|one| one.approver == row.name).map(|one| one.account.clone());
            let tokens = tokens.iter().filter(|one| one.approver == row.name).map(|one| {
                Ok(ApproverToken {
                    made_at: from_unix_ms(one.made_unix_ms)?,
                    expires_at: from_unix_ms(one.expires_unix_ms)?,
                    used_at: one.used_unix_ms.map(from_unix_ms).transpose()?,
                })
            });
            Ok(Approver {
                enrolled_at: from_unix_ms(row.enrolled_unix_ms)?,
                accounts: accounts.collect(),
                tokens: tokens.collect::<Result<_, StoreError>>()?,
                name: row.name,
            })
        };
        rows.into_iter().map(of).collect()
    }
}

/// Since when somebody is enrolled; none if they are not.
pub(super) async fn enrolled(transaction: &DatabaseTransaction, name: &str) -> Result<Option<i64>, StoreError> {
    let row = row::Entity::find_by_id(name)
        .filter(row::Column::RemovedUnixMs.is_null())
        .one(transaction)
        .await
        .doing("look up an approver")?;
    Ok(row.map(|row| row.enrolled_unix_ms))
}

/// Since when each of those who are enrolled is.
pub(super) async fn all_enrolled(connection: &impl ConnectionTrait) -> Result<BTreeMap<String, i64>, StoreError> {
    let rows = row::Entity::find().filter(row::Column::RemovedUnixMs.is_null()).all(connection).await;
    Ok(rows.doing("read the approvers")?.into_iter().map(|row| (row.name, row.enrolled_unix_ms)).collect())
}
