//! The outbox as rows: one per event and channel, for good.

use super::{Doing as _, Store, StoreError, corrupt, from_unix_ms, to_unix_ms};
use crate::reconcile::EventId;
use jiff::Timestamp;
use notifier::message::FindingNotice;
use sea_orm::{
    ActiveValue::Set, ColumnTrait as _, ConnectionTrait, EntityTrait as _, PaginatorTrait as _, QueryFilter as _,
    QueryOrder as _, QuerySelect as _, QueryTrait as _, sea_query::Expr,
};

#[expect(unreachable_pub, reason = "the derives of sea-orm demand public types")]
mod row {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "outbox")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false, column_name = "finding_id")]
        pub event_id: String,
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
        pub receipt: Option<String>,
        pub answers: Option<String>,
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
    /// Of which event.
    pub event_id: EventId,
    /// By which channel.
    pub channel: String,
    /// What to say.
    pub notice: FindingNotice,
    /// The event whose message on the same channel this one answers.
    pub answers: Option<EventId>,
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

/// Where a message of this channel about a finding's later events belongs: the first message of its thread. None if nothing was ever said of it there.
pub(crate) async fn thread(
    transaction: &impl ConnectionTrait,
    opening: &EventId,
    channel: &str,
) -> Result<Option<EventId>, StoreError> {
    let first = find(transaction, opening, channel).await?;
    Ok(first.map(|row| EventId(row.answers.unwrap_or(row.event_id))))
}

async fn find(
    connection: &impl ConnectionTrait,
    event: &EventId,
    channel: &str,
) -> Result<Option<row::Model>, StoreError> {
    let row = row::Entity::find_by_id((event.0.clone(), channel.to_owned()));
    row.one(connection).await.doing("look up a message")
}

/// Puts a message into the outbox unless the event has one for this channel already.
pub(crate) async fn put(
    transaction: &impl ConnectionTrait,
    event: &EventId,
    channel: &str,
    notice: &FindingNotice,
    answers: Option<EventId>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let row = row::ActiveModel {
        event_id: Set(event.0.clone()),
        channel: Set(channel.to_owned()),
        notice: Set(serde_json::to_string(notice).map_err(|error| corrupt("a notice", error))?),
        state: Set(PENDING.to_owned()),
        attempts: Set(0),
        created_unix_ms: Set(to_unix_ms(now)),
        next_attempt_unix_ms: Set(to_unix_ms(now)),
        claimed_until_unix_ms: Set(0),
        sent_unix_ms: Set(None),
        last_error: Set(None),
        receipt: Set(None),
        answers: Set(answers.map(|event| event.0)),
    };
    row::Entity::insert(row)
        .on_conflict_do_nothing()
        .exec_without_returning(transaction)
        .await
        .doing("write a message")?;
    Ok(())
}

/// What has become of the message that another one answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answered {
    /// It waits itself, until then at least.
    Waits(Timestamp),
    /// It was sent, and this names it on its channel.
    Sent(String),
    /// It never will be, or nobody kept what names it.
    Unnamed,
}

/// In which state a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum MessageState {
    /// Waiting for its first or next attempt.
    Pending,
    /// A server has taken it.
    Sent,
    /// Discarded: refused for good, or for too long.
    Failed,
}

impl MessageState {
    /// The word for it, everywhere.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => PENDING,
            Self::Sent => SENT,
            Self::Failed => FAILED,
        }
    }
}

/// A message as `sweeper messages` lists it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Message {
    /// Of which event.
    pub event: EventId,
    /// By which channel.
    pub channel: String,
    /// Of which finding.
    pub finding: String,
    /// What it says first.
    pub headline: String,
    /// Whether it was sent.
    pub state: MessageState,
    /// So often it was tried.
    pub attempts: u32,
    /// When it was written.
    pub created_at: Timestamp,
    /// When it is tried next, if it waits.
    pub next_attempt_at: Option<Timestamp>,
    /// When a server took it.
    pub sent_at: Option<Timestamp>,
    /// Why the last attempt failed.
    pub last_error: Option<String>,
    /// What names it on its channel: Slack's `CHANNEL/TS`, or the mail's Message-ID.
    pub receipt: Option<String>,
    /// The event whose message it answers.
    pub answers: Option<EventId>,
}

fn message(row: row::Model) -> Result<Message, StoreError> {
    let unreadable = |reason: String| corrupt(format!("the message of {}", row.event_id), reason);
    let notice: FindingNotice = serde_json::from_str(&row.notice).map_err(|error| unreadable(error.to_string()))?;
    let state = match row.state.as_str() {
        PENDING => MessageState::Pending,
        SENT => MessageState::Sent,
        FAILED => MessageState::Failed,
        other => return Err(unreadable(format!("state `{other}`"))),
    };
    let next = row.next_attempt_unix_ms.max(row.claimed_until_unix_ms);
    Ok(Message {
        finding: notice.finding_id,
        headline: notice.headline,
        state,
        attempts: row.attempts.unsigned_abs(),
        created_at: from_unix_ms(row.created_unix_ms)?,
        next_attempt_at: (state == MessageState::Pending).then(|| from_unix_ms(next)).transpose()?,
        sent_at: row.sent_unix_ms.map(from_unix_ms).transpose()?,
        last_error: row.last_error,
        receipt: row.receipt,
        answers: row.answers.map(EventId),
        event: EventId(row.event_id),
        channel: row.channel,
    })
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
                .order_by_asc(row::Column::EventId)
                .one(self.connection())
                .await
                .doing("look for a message that is due")?;
            let Some(message) = due else { return Ok(None) };
            // Of several sweepers that saw the same row one wins; the others look for another one.
            let won = row::Entity::update_many()
                .col_expr(row::Column::ClaimedUntilUnixMs, Expr::value(to_unix_ms(until)))
                .filter(row::Column::EventId.eq(&message.event_id))
                .filter(row::Column::Channel.eq(channel))
                .filter(row::Column::State.eq(PENDING))
                .filter(row::Column::ClaimedUntilUnixMs.eq(message.claimed_until_unix_ms))
                .exec(self.connection())
                .await
                .doing("claim a message")?;
            if won.rows_affected == 1 {
                let notice = serde_json::from_str(&message.notice)
                    .map_err(|error| corrupt(format!("the notice of {}", message.event_id), error))?;
                return Ok(Some(Claimed {
                    event_id: EventId(message.event_id),
                    answers: message.answers.map(EventId),
                    channel: message.channel,
                    notice,
                    attempts: message.attempts.unsigned_abs(),
                    created_at: from_unix_ms(message.created_unix_ms)?,
                }));
            }
        }
    }

    /// Notes that a message has been delivered, and what names it on its channel.
    ///
    /// # Errors
    /// If the database does not answer; the message may then be sent once more.
    pub async fn message_sent(&self, message: &Claimed, receipt: &str, now: Timestamp) -> Result<(), StoreError> {
        let update = row::ActiveModel {
            receipt: Set(Some(receipt.to_owned())),
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

    /// What has become of the message of this event on this channel, which another one answers.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn answered(&self, event: &EventId, channel: &str) -> Result<Answered, StoreError> {
        Ok(match find(self.connection(), event, channel).await? {
            Some(row) if row.state == PENDING => {
                Answered::Waits(from_unix_ms(row.next_attempt_unix_ms.max(row.claimed_until_unix_ms))?)
            }
            Some(row::Model { receipt: Some(receipt), .. }) => Answered::Sent(receipt),
            _ => Answered::Unnamed,
        })
    }

    /// Leaves a claimed message until then, without having tried it.
    ///
    /// # Errors
    /// If the database does not answer; the message is then left until its claim ends.
    pub async fn postpone_message(&self, message: &Claimed, until: Timestamp) -> Result<(), StoreError> {
        let update = row::ActiveModel {
            next_attempt_unix_ms: Set(to_unix_ms(until)),
            claimed_until_unix_ms: Set(0),
            ..Default::default()
        };
        self.update_message(message, update).await
    }

    /// Sends nothing on a channel before then: its server asked for it.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn pause_channel(&self, channel: &str, until: Timestamp) -> Result<(), StoreError> {
        row::Entity::update_many()
            .col_expr(row::Column::NextAttemptUnixMs, Expr::value(to_unix_ms(until)))
            .filter(row::Column::Channel.eq(channel))
            .filter(row::Column::State.eq(PENDING))
            .filter(row::Column::NextAttemptUnixMs.lt(to_unix_ms(until)))
            .exec(self.connection())
            .await
            .doing("pause a channel")?;
        Ok(())
    }

    /// The messages that were written last, in one state or in any, newest first.
    ///
    /// # Errors
    /// If the database does not answer or holds a notice of another version.
    pub async fn messages(&self, state: Option<MessageState>, most: u64) -> Result<Vec<Message>, StoreError> {
        let rows = row::Entity::find()
            .apply_if(state, |messages, state| messages.filter(row::Column::State.eq(state.as_str())))
            .order_by_desc(row::Column::CreatedUnixMs)
            .order_by_asc(row::Column::EventId)
            .order_by_asc(row::Column::Channel)
            .limit(most)
            .all(self.connection())
            .await
            .doing("list the messages")?;
        rows.into_iter().map(message).collect()
    }

    /// Has discarded messages tried again from `now` on, as if they had been written then: those of these events, or all without any. Returns how many.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn retry_messages(&self, events: &[EventId], now: Timestamp) -> Result<u64, StoreError> {
        let events = Some(events).filter(|events| !events.is_empty());
        let requeued = row::Entity::update_many()
            .set(row::ActiveModel {
                state: Set(PENDING.to_owned()),
                attempts: Set(0),
                created_unix_ms: Set(to_unix_ms(now)),
                next_attempt_unix_ms: Set(to_unix_ms(now)),
                claimed_until_unix_ms: Set(0),
                ..Default::default()
            })
            .filter(row::Column::State.eq(FAILED))
            .apply_if(events, |messages, events| {
                messages.filter(row::Column::EventId.is_in(events.iter().map(|event| event.0.clone())))
            })
            .exec(self.connection())
            .await
            .doing("requeue messages")?;
        Ok(requeued.rows_affected)
    }

    async fn update_message(&self, message: &Claimed, update: row::ActiveModel) -> Result<(), StoreError> {
        row::Entity::update_many()
            .set(update)
            .filter(row::Column::EventId.eq(&message.event_id.0))
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
