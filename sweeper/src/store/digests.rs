//! Digests as rows: up to when each list was told, a mail for each reader, and who reads what.
//!
//! A list's digest is written by whoever moves its mark first, in the same transaction; a mail is sent by whoever claims it. Both are by the database's clock.

mod claim;
mod readers;

pub use claim::DigestMail;
pub use readers::Reader;

use super::{Doing as _, Store, StoreError, corrupt, database_now, from_unix_ms, to_unix_ms};
use jiff::Timestamp;
use notifier::digest::Digest;
use sea_orm::{
    ActiveValue::Set, ColumnTrait as _, ConnectionTrait, EntityTrait as _, QueryFilter as _, QueryOrder as _,
    QuerySelect as _, sea_query::Expr,
};

#[expect(unreachable_pub, reason = "the derives of sea-orm demand public types")]
mod list {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "digest_lists")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub list: String,
        pub told_unix_ms: i64,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

#[expect(unreachable_pub, reason = "the derives of sea-orm demand public types")]
mod row {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "digests")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub list: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub due_unix_ms: i64,
        #[sea_orm(primary_key, auto_increment = false)]
        pub address: String,
        pub recipient: String,
        pub content: String,
        pub state: String,
        pub attempts: i32,
        pub created_unix_ms: i64,
        pub next_attempt_unix_ms: i64,
        pub claimed_until_unix_ms: i64,
        pub sent_unix_ms: Option<i64>,
        pub last_error: Option<String>,
        pub receipt: Option<String>,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// In which state a mail is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MailState {
    /// Waiting for its first or next attempt.
    Pending,
    /// A server has taken it.
    Sent,
    /// Discarded: refused for good, or for too long.
    Failed,
    /// Its reader wanted no more of them meanwhile.
    Withdrawn,
}

impl MailState {
    const ALL: [Self; 4] = [Self::Pending, Self::Sent, Self::Failed, Self::Withdrawn];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Sent => "sent",
            Self::Failed => "failed",
            Self::Withdrawn => "withdrawn",
        }
    }
}

/// A mail of a list as `sweeper digest` shows it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct SentDigest {
    /// When it was due.
    pub due_at: Timestamp,
    /// To whom.
    pub address: String,
    /// Whether it was sent.
    pub state: MailState,
    /// So often it was tried.
    pub attempts: u32,
    /// When it is tried next, if it waits.
    pub next_attempt_at: Option<Timestamp>,
    /// When a server took it.
    pub sent_at: Option<Timestamp>,
    /// Why the last attempt failed.
    pub last_error: Option<String>,
    /// The mail's Message-ID.
    pub receipt: Option<String>,
}

/// Who is to get a digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipient {
    /// The bare address.
    pub address: String,
    /// The same as it is configured, perhaps with a name.
    pub recipient: String,
    /// SHA-256 of the token in this reader's link, if there are links.
    pub token_sha256: Option<String>,
}

/// The digest of a list that is to be written.
#[derive(Debug)]
pub struct NewDigest<'a> {
    /// Its list.
    pub list: &'a str,
    /// When the one before was due: whoever finds another one there writes nothing.
    pub told: Timestamp,
    /// When it was due.
    pub due: Timestamp,
    /// What it says.
    pub content: &'a Digest,
    /// To whom.
    pub to: &'a [Recipient],
}

impl Store {
    /// When the last digest of a list was due that was dealt with; none if the list is new here.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn digest_told(&self, name: &str) -> Result<Option<Timestamp>, StoreError> {
        let row = list::Entity::find_by_id(name).one(self.connection()).await.doing("look up a list of digests")?;
        row.map(|row| from_unix_ms(row.told_unix_ms)).transpose()
    }

    /// Begins a list that is new here: what was due before is nobody's.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn begin_digests(&self, name: &str, told: Timestamp) -> Result<(), StoreError> {
        let row = list::ActiveModel { list: Set(name.to_owned()), told_unix_ms: Set(to_unix_ms(told)) };
        list::Entity::insert(row)
            .on_conflict_do_nothing()
            .exec_without_returning(self.connection())
            .await
            .doing("begin a list of digests")?;
        Ok(())
    }

    /// Writes a mail for each reader who has not left the list. False if another sweeper has dealt with this digest meanwhile.
    ///
    /// # Errors
    /// If the database does not answer; nothing is written then.
    pub async fn write_digest(&self, new: &NewDigest<'_>) -> Result<bool, StoreError> {
        let content = serde_json::to_string(new.content).map_err(|error| corrupt("a digest", error))?;
        let transaction = self.begin_write().await?;
        let moved = list::Entity::update_many()
            .col_expr(list::Column::ToldUnixMs, Expr::value(to_unix_ms(new.due)))
            .filter(list::Column::List.eq(new.list))
            .filter(list::Column::ToldUnixMs.eq(to_unix_ms(new.told)))
            .exec(&transaction)
            .await
            .doing("note that a digest is written")?;
        if moved.rows_affected != 1 {
            transaction.rollback().await.doing("leave a digest to another sweeper")?;
            return Ok(false);
        }
        let now = database_now(&transaction).await?;
        for to in new.to {
            if readers::note(&transaction, new.list, to).await? {
                write(&transaction, new, to, &content, now).await?;
            }
        }
        transaction.commit().await.doing("commit a digest")?;
        Ok(true)
    }

    /// The last mails of a list, the latest first.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn sent_digests(&self, name: &str, most: u64) -> Result<Vec<SentDigest>, StoreError> {
        let rows = row::Entity::find()
            .filter(row::Column::List.eq(name))
            .order_by_desc(row::Column::DueUnixMs)
            .order_by_asc(row::Column::Address)
            .limit(most)
            .all(self.connection())
            .await
            .doing("list the digests")?;
        rows.into_iter().map(sent).collect()
    }

    /// Deletes the mails that were due before a moment, but for those that wait.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn delete_digests_before(&self, moment: Timestamp) -> Result<u64, StoreError> {
        let deleted = row::Entity::delete_many()
            .filter(row::Column::DueUnixMs.lt(to_unix_ms(moment)))
            .filter(row::Column::State.ne(MailState::Pending.as_str()))
            .exec(self.connection())
            .await
            .doing("delete old digests")?;
        Ok(deleted.rows_affected)
    }
}

async fn write(
    transaction: &impl ConnectionTrait,
    new: &NewDigest<'_>,
    to: &Recipient,
    content: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    let row = row::ActiveModel {
        list: Set(new.list.to_owned()),
        due_unix_ms: Set(to_unix_ms(new.due)),
        address: Set(to.address.clone()),
        recipient: Set(to.recipient.clone()),
        content: Set(content.to_owned()),
        state: Set(MailState::Pending.as_str().to_owned()),
        attempts: Set(0),
        created_unix_ms: Set(to_unix_ms(now)),
        next_attempt_unix_ms: Set(to_unix_ms(now)),
        claimed_until_unix_ms: Set(0),
        sent_unix_ms: Set(None),
        last_error: Set(None),
        receipt: Set(None),
    };
    row::Entity::insert(row)
        .on_conflict_do_nothing()
        .exec_without_returning(transaction)
        .await
        .doing("write a digest")?;
    Ok(())
}

/// When a mail that waits can be claimed.
fn claimable_unix_ms(row: &row::Model) -> i64 {
    row.next_attempt_unix_ms.max(row.claimed_until_unix_ms)
}

fn sent(row: row::Model) -> Result<SentDigest, StoreError> {
    let state = MailState::ALL.into_iter().find(|state| state.as_str() == row.state);
    let state = state.ok_or_else(|| corrupt(format!("a digest of {}", row.list), format!("state `{}`", row.state)))?;
    let next = claimable_unix_ms(&row);
    Ok(SentDigest {
        due_at: from_unix_ms(row.due_unix_ms)?,
        address: row.address,
        state,
        attempts: row.attempts.unsigned_abs(),
        next_attempt_at: (state == MailState::Pending).then(|| from_unix_ms(next)).transpose()?,
        sent_at: row.sent_unix_ms.map(from_unix_ms).transpose()?,
        last_error: row.last_error,
        receipt: row.receipt,
    })
}
