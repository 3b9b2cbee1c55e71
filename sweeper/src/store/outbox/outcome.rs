//! What became of a claim, noted on each of its rows.

use super::{Claimed, FAILED, PENDING, SENT, row};
use crate::store::{Doing as _, Store, StoreError, to_unix_ms};
use jiff::Timestamp;
use notifier::Receipt;
use sea_orm::{ColumnTrait as _, EntityTrait as _, ExprTrait as _, QueryFilter as _, UpdateMany, sea_query::Expr};
use std::time::Duration;

/// Changes the rows of a claim, and ends it.
fn of(claimed: &Claimed) -> UpdateMany<row::Entity> {
    row::Entity::update_many()
        .col_expr(row::Column::ClaimedUntilUnixMs, Expr::value(0_i64))
        .filter(row::Column::Channel.eq(&claimed.channel))
        .filter(row::Column::EventId.is_in(claimed.events()))
}

fn once_more() -> Expr {
    Expr::col(row::Column::Attempts).add(1_i32)
}

impl Store {
    async fn note(&self, change: UpdateMany<row::Entity>) -> Result<(), StoreError> {
        change.exec(self.connection()).await.doing("write what became of a message")?;
        Ok(())
    }

    /// Notes that a message has been delivered, and what names it on its channel. One that stands in no thread begins one.
    ///
    /// # Errors
    /// If the database does not answer; the message may then be sent once more.
    pub async fn message_sent(&self, claimed: &Claimed, receipt: &Receipt, now: Timestamp) -> Result<(), StoreError> {
        let mut sent = of(claimed)
            .col_expr(row::Column::State, Expr::value(SENT))
            .col_expr(row::Column::Attempts, once_more())
            .col_expr(row::Column::SentUnixMs, Expr::value(to_unix_ms(now)))
            .col_expr(row::Column::LastError, Expr::value(Option::<String>::None))
            .col_expr(row::Column::Receipt, Expr::value(receipt.reference.clone()));
        if !receipt.in_thread {
            sent = sent.col_expr(row::Column::Answers, Expr::value(Option::<String>::None));
        }
        self.note(sent).await
    }

    /// Notes that an attempt failed: to be tried again then, or never.
    ///
    /// # Errors
    /// If the database does not answer; the message is then tried again when the claim ends.
    pub async fn message_failed(
        &self,
        claimed: &Claimed,
        why: &str,
        next_attempt: Option<Timestamp>,
    ) -> Result<(), StoreError> {
        let state = if next_attempt.is_some() { PENDING } else { FAILED };
        let failed = of(claimed)
            .col_expr(row::Column::State, Expr::value(state))
            .col_expr(row::Column::Attempts, once_more())
            .col_expr(row::Column::NextAttemptUnixMs, Expr::value(next_attempt.map_or(0, to_unix_ms)))
            .col_expr(row::Column::LastError, Expr::value(why));
        self.note(failed).await
    }

    /// Notes that a bundle is not taken as such: from now on each of its messages is told by itself.
    ///
    /// # Errors
    /// If the database does not answer; the bundle is then tried again when the claim ends.
    pub async fn take_bundle_apart(&self, claimed: &Claimed, why: &str) -> Result<(), StoreError> {
        let apart = of(claimed)
            .col_expr(row::Column::Attempts, once_more())
            .col_expr(row::Column::Audience, Expr::value(Option::<String>::None))
            .col_expr(row::Column::Bundle, Expr::value(Option::<String>::None))
            .col_expr(row::Column::LastError, Expr::value(why));
        self.note(apart).await
    }

    /// Notes that a message is not needed any more.
    ///
    /// # Errors
    /// If the database does not answer; it is then tried again when the claim ends.
    pub async fn message_withdrawn(&self, claimed: &Claimed, why: &str, now: Timestamp) -> Result<(), StoreError> {
        let withdrawn = of(claimed)
            .col_expr(row::Column::State, Expr::value(FAILED))
            .col_expr(row::Column::WithdrawnUnixMs, Expr::value(to_unix_ms(now)))
            .col_expr(row::Column::LastError, Expr::value(why));
        self.note(withdrawn).await
    }

    /// Ends the gathering of what was written within `gather`: all that was to be swept has been.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn end_gathering(&self, gather: Duration) -> Result<(), StoreError> {
        let now = self.now().await?;
        let gathered = row::Entity::update_many()
            .col_expr(row::Column::NextAttemptUnixMs, Expr::value(to_unix_ms(now)))
            .filter(row::Column::State.eq(PENDING))
            .filter(row::Column::Attempts.eq(0))
            .filter(row::Column::NextAttemptUnixMs.gt(to_unix_ms(now)))
            .filter(row::Column::NextAttemptUnixMs.lte(to_unix_ms(super::after(now, gather))));
        self.note(gathered).await
    }
}
