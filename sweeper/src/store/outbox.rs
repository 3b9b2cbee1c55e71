//! The outbox as rows: one per finding and channel, for good.

use super::{Doing as _, Store, StoreError, corrupt, from_unix_ms, to_unix_ms};
use crate::findings::FindingId;
use jiff::Timestamp;
use notifier::message::FindingNotice;
use sea_orm::{
    ActiveValue::Set, ColumnTrait as _, ConnectionTrait, EntityTrait as _, PaginatorTrait as _, QueryFilter as _,
    QueryOrder as _, sea_query::Expr,
};

#[expect(unreachable_pub, reason = "the derives of sea-orm demand public types")]
mod row {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "outbox")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub finding_id: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub channel: String,
        pub notice: String,
        pub state: String,
        pub attempts: i32,
        pub created_unix_ms: i64,
        pub next_attempt_unix_ms: i64,
        pub claimed_until_unix_ms: i64,
        pub sent_unix_ms: Option<i64>,
        pub last_error: Option<String>,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

const PENDING: &str = "pending";
const SENT: &str = "sent";
const FAILED: &str = "failed";

/// A message that this sweeper has claimed, so that nobody else sends it meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// Of which finding.
    pub finding_id: FindingId,
    /// By which channel.
    pub channel: String,
    /// What to say.
    pub notice: FindingNotice,
    /// How often it was tried before.
    pub attempts: u32,
    /// When it was written.
    pub created_at: Timestamp,
}

/// How many messages are in which state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct OutboxCounts {
    /// Waiting for their first or next attempt.
    pub pending: u64,
    /// Delivered.
    pub sent: u64,
    /// Discarded, after a refusal for good or too many attempts.
    pub failed: u64,
}

/// Puts a message into the outbox unless the finding has one for this channel already.
pub(crate) async fn put(
    transaction: &impl ConnectionTrait,
    finding_id: &FindingId,
    channel: &str,
    notice: &FindingNotice,
    now: Timestamp,
) -> Result<(), StoreError> {
    let row = row::ActiveModel {
        finding_id: Set(finding_id.0.clone()),
        channel: Set(channel.to_owned()),
        notice: Set(serde_json::to_string(notice).map_err(|error| corrupt("a notice", error))?),
        state: Set(PENDING.to_owned()),
        attempts: Set(0),
        created_unix_ms: Set(to_unix_ms(now)),
        next_attempt_unix_ms: Set(to_unix_ms(now)),
        claimed_until_unix_ms: Set(0),
        sent_unix_ms: Set(None),
        last_error: Set(None),
    };
    row::Entity::insert(row)
        .on_conflict_do_nothing()
        .exec_without_returning(transaction)
        .await
        .doing("write a message")?;
    Ok(())
}

impl Store {
    /// Claims the message of this channel that has been due for longest, until `until`: a sweeper that dies with a claim
    /// leaves the message to others after that. `None` if nothing is due that nobody else has claimed.
    ///
    /// # Errors
    /// If the database does not answer or holds a notice of another version.
    pub async fn claim_message(
        &self,
        channel: &str,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Option<Claimed>, StoreError> {
        let now_ms = to_unix_ms(now);
        loop {
            let due = row::Entity::find()
                .filter(row::Column::State.eq(PENDING))
                .filter(row::Column::Channel.eq(channel))
                .filter(row::Column::NextAttemptUnixMs.lte(now_ms))
                .filter(row::Column::ClaimedUntilUnixMs.lte(now_ms))
                .order_by_asc(row::Column::NextAttemptUnixMs)
                .order_by_asc(row::Column::FindingId)
                .one(self.connection())
                .await
                .doing("look for a message that is due")?;
            let Some(message) = due else { return Ok(None) };
            // Of several sweepers that saw the same row one wins; the others look for another one.
            let won = row::Entity::update_many()
                .col_expr(row::Column::ClaimedUntilUnixMs, Expr::value(to_unix_ms(until)))
                .filter(row::Column::FindingId.eq(&message.finding_id))
                .filter(row::Column::Channel.eq(channel))
                .filter(row::Column::State.eq(PENDING))
                .filter(row::Column::ClaimedUntilUnixMs.eq(message.claimed_until_unix_ms))
                .exec(self.connection())
                .await
                .doing("claim a message")?;
            if won.rows_affected == 1 {
                let notice = serde_json::from_str(&message.notice)
                    .map_err(|error| corrupt(format!("the notice of {}", message.finding_id), error))?;
                return Ok(Some(Claimed {
                    finding_id: FindingId(message.finding_id),
                    channel: message.channel,
                    notice,
                    attempts: message.attempts.unsigned_abs(),
                    created_at: from_unix_ms(message.created_unix_ms)?,
                }));
            }
        }
    }

    /// Notes that a message has been delivered.
    ///
    /// # Errors
    /// If the database does not answer; the message may then be sent once more.
    pub async fn message_sent(&self, message: &Claimed, now: Timestamp) -> Result<(), StoreError> {
        let update = row::ActiveModel {
            state: Set(SENT.to_owned()),
            attempts: Set(attempts(message)),
            sent_unix_ms: Set(Some(to_unix_ms(now))),
            claimed_until_unix_ms: Set(0),
            last_error: Set(None),
            ..Default::default()
        };
        self.update_message(message, update).await
    }

    /// Notes that an attempt failed: to be tried again then, or never.
    ///
    /// # Errors
    /// If the database does not answer; the message is then tried again when the claim ends.
    pub async fn message_failed(
        &self,
        message: &Claimed,
        why: &str,
        next_attempt: Option<Timestamp>,
    ) -> Result<(), StoreError> {
        let update = row::ActiveModel {
            state: Set(if next_attempt.is_some() { PENDING } else { FAILED }.to_owned()),
            attempts: Set(attempts(message)),
            next_attempt_unix_ms: Set(next_attempt.map_or(0, to_unix_ms)),
            claimed_until_unix_ms: Set(0),
            last_error: Set(Some(why.to_owned())),
            ..Default::default()
        };
        self.update_message(message, update).await
    }

    async fn update_message(&self, message: &Claimed, update: row::ActiveModel) -> Result<(), StoreError> {
        row::Entity::update_many()
            .set(update)
            .filter(row::Column::FindingId.eq(&message.finding_id.0))
            .filter(row::Column::Channel.eq(&message.channel))
            .exec(self.connection())
            .await
            .doing("write what became of a message")?;
        Ok(())
    }

    /// When the next pending message of these channels can be claimed.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn next_message_due(&self, channels: &[&str]) -> Result<Option<Timestamp>, StoreError> {
        let first = row::Entity::find()
            .filter(row::Column::State.eq(PENDING))
            .filter(row::Column::Channel.is_in(channels.iter().copied()))
            .order_by_asc(row::Column::NextAttemptUnixMs)
            .one(self.connection())
            .await
            .doing("look for the next message")?;
        first.map(|row| from_unix_ms(row.next_attempt_unix_ms.max(row.claimed_until_unix_ms))).transpose()
    }

    /// How many messages are in which state.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn outbox_counts(&self) -> Result<OutboxCounts, StoreError> {
        let count = async |state: &str| {
            let rows = row::Entity::find().filter(row::Column::State.eq(state));
            rows.count(self.connection()).await.doing("count the messages")
        };
        Ok(OutboxCounts { pending: count(PENDING).await?, sent: count(SENT).await?, failed: count(FAILED).await? })
    }
}

fn attempts(message: &Claimed) -> i32 {
    i32::try_from(message.attempts.saturating_add(1)).unwrap_or(i32::MAX)
}
