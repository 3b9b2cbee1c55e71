//! Claims: which sweeper sends a mail now, and what became of it.

use super::{MailState, claimable_unix_ms, row};
use crate::store::{Doing as _, Store, StoreError, corrupt, from_unix_ms, to_unix_ms};
use jiff::Timestamp;
use notifier::{Receipt, digest::Digest};
use sea_orm::{
    ColumnTrait as _, EntityTrait as _, ExprTrait as _, QueryFilter as _, QueryOrder as _, Select, UpdateMany,
    sea_query::Expr,
};

/// A mail that this sweeper has claimed, so that nobody else sends it meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DigestMail {
    /// Of which list.
    pub list: String,
    /// When it was due.
    pub due: Timestamp,
    /// The bare address of its reader.
    pub address: String,
    /// The same as it was configured, perhaps with a name.
    pub recipient: String,
    /// What it says.
    pub digest: Digest,
    /// How often it was tried before.
    pub attempts: u32,
    /// When it was written.
    pub created_at: Timestamp,
}

impl DigestMail {
    /// The same for each attempt at the same mail.
    #[must_use]
    pub fn key(&self) -> String {
        format!("digest/{}/{}/{}", self.list, self.due.as_millisecond(), self.address)
    }
}

fn pending() -> Select<row::Entity> {
    row::Entity::find().filter(row::Column::State.eq(MailState::Pending.as_str()))
}

/// Changes the row of a mail, and ends its claim.
fn of(mail: &DigestMail) -> UpdateMany<row::Entity> {
    row::Entity::update_many()
        .col_expr(row::Column::ClaimedUntilUnixMs, Expr::value(0_i64))
        .filter(row::Column::List.eq(&mail.list))
        .filter(row::Column::DueUnixMs.eq(to_unix_ms(mail.due)))
        .filter(row::Column::Address.eq(&mail.address))
}

fn once_more() -> Expr {
    Expr::col(row::Column::Attempts).add(1_i32)
}

impl Store {
    /// Claims the mail that has been due for longest until `until`: a sweeper that dies with a claim leaves it to others after that. `None` if nothing is due that nobody has claimed.
    ///
    /// # Errors
    /// If the database does not answer or holds a digest of another version.
    pub async fn claim_digest(&self, now: Timestamp, until: Timestamp) -> Result<Option<DigestMail>, StoreError> {
        let now_ms = to_unix_ms(now);
        loop {
            let due = pending()
                .filter(row::Column::NextAttemptUnixMs.lte(now_ms))
                .filter(row::Column::ClaimedUntilUnixMs.lte(now_ms))
                .order_by_asc(row::Column::NextAttemptUnixMs)
                .order_by_asc(row::Column::Address);
            let Some(first) = due.one(self.connection()).await.doing("look for a digest that is due")? else {
                return Ok(None);
            };
            let claimed = row::Entity::update_many()
                .col_expr(row::Column::ClaimedUntilUnixMs, Expr::value(to_unix_ms(until)))
                .filter(row::Column::List.eq(&first.list))
                .filter(row::Column::DueUnixMs.eq(first.due_unix_ms))
                .filter(row::Column::Address.eq(&first.address))
                .filter(row::Column::State.eq(MailState::Pending.as_str()))
                .filter(row::Column::ClaimedUntilUnixMs.eq(first.claimed_until_unix_ms))
                .filter(row::Column::NextAttemptUnixMs.eq(first.next_attempt_unix_ms))
                .exec(self.connection())
                .await
                .doing("claim a digest")?;
            // Otherwise another sweeper was faster, and the next one may be free.
            if claimed.rows_affected == 1 {
                return mail(first).map(Some);
            }
        }
    }

    /// When the next mail that waits can be claimed.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn next_digest_due(&self) -> Result<Option<Timestamp>, StoreError> {
        let first = pending().order_by_asc(row::Column::NextAttemptUnixMs).one(self.connection()).await;
        let first = first.doing("look for the next digest")?;
        first.as_ref().map(|row| from_unix_ms(claimable_unix_ms(row))).transpose()
    }

    /// Notes that a mail was sent.
    ///
    /// # Errors
    /// If the database does not answer; the mail may then be sent once more, under the same `Message-ID`.
    pub async fn digest_sent(&self, mail: &DigestMail, receipt: &Receipt, now: Timestamp) -> Result<(), StoreError> {
        let sent = of(mail)
            .col_expr(row::Column::State, Expr::value(MailState::Sent.as_str()))
            .col_expr(row::Column::Attempts, once_more())
            .col_expr(row::Column::SentUnixMs, Expr::value(to_unix_ms(now)))
            .col_expr(row::Column::LastError, Expr::value(Option::<String>::None))
            .col_expr(row::Column::Receipt, Expr::value(receipt.reference.clone()));
        self.note_digest(sent).await
    }

    /// Notes that an attempt failed: to be tried again then, or never.
    ///
    /// # Errors
    /// If the database does not answer; the mail is then tried again when the claim ends.
    pub async fn digest_failed(
        &self,
        mail: &DigestMail,
        why: &str,
        next_attempt: Option<Timestamp>,
    ) -> Result<(), StoreError> {
        let state = if next_attempt.is_some() { MailState::Pending } else { MailState::Failed };
        let failed = of(mail)
            .col_expr(row::Column::State, Expr::value(state.as_str()))
            .col_expr(row::Column::Attempts, once_more())
            .col_expr(row::Column::NextAttemptUnixMs, Expr::value(next_attempt.map_or(0, to_unix_ms)))
            .col_expr(row::Column::LastError, Expr::value(why));
        self.note_digest(failed).await
    }

    /// Notes that a mail's reader has left its list.
    ///
    /// # Errors
    /// If the database does not answer; the mail is then looked at again when the claim ends.
    pub async fn digest_withdrawn(&self, mail: &DigestMail, why: &str) -> Result<(), StoreError> {
        let withdrawn = of(mail)
            .col_expr(row::Column::State, Expr::value(MailState::Withdrawn.as_str()))
            .col_expr(row::Column::LastError, Expr::value(why));
        self.note_digest(withdrawn).await
    }

    async fn note_digest(&self, change: UpdateMany<row::Entity>) -> Result<(), StoreError> {
        change.exec(self.connection()).await.doing("write what became of a digest")?;
        Ok(())
    }
}

fn mail(row: row::Model) -> Result<DigestMail, StoreError> {
    let digest = serde_json::from_str(&row.content);
    Ok(DigestMail {
        digest: digest.map_err(|error| corrupt(format!("a digest of {}", row.list), error))?,
        due: from_unix_ms(row.due_unix_ms)?,
        attempts: row.attempts.unsigned_abs(),
        created_at: from_unix_ms(row.created_unix_ms)?,
        list: row.list,
        address: row.address,
        recipient: row.recipient,
    })
}
