//! The outbox as rows: one per event and channel, for good.

mod messages;

pub use messages::{Message, MessageState};

use super::{Doing as _, Store, StoreError, corrupt, database_now, from_unix_ms, to_unix_ms};
use crate::{findings::FindingId, reconcile::EventId};
use jiff::Timestamp;
use notifier::{Receipt, message::FindingNotice};
use sea_orm::{
    ActiveValue::Set, ColumnTrait as _, Condition, ConnectionTrait, EntityTrait as _, PaginatorTrait as _,
    QueryFilter as _, QueryOrder as _, sea_query::Expr,
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
/// Links of a thread that are followed up.
const MAX_THREAD: usize = 100;

/// The setting that says until when a channel is paused.
fn paused(channel: &str) -> String {
    format!("paused_until_unix_ms/{channel}")
}

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

/// What a later message of this channel about a finding answers: that of its opening. None if nothing was said of it there.
pub(crate) async fn answered_by_later(
    transaction: &impl ConnectionTrait,
    opening: &EventId,
    channel: &str,
) -> Result<Option<EventId>, StoreError> {
    let first = find(transaction, opening, channel).await?;
    Ok(first.map(|row| EventId(row.event_id)))
}

/// Whether people were told of a plan for this finding since then: by a message of its own, or by that of the opening.
pub(crate) async fn told_a_plan(
    transaction: &impl ConnectionTrait,
    finding: &FindingId,
    since: Timestamp,
) -> Result<bool, StoreError> {
    let of_finding = Condition::any()
        .add(row::Column::EventId.eq(&finding.0))
        .add(row::Column::EventId.starts_with(format!("{finding}/")));
    let rows = row::Entity::find()
        .filter(of_finding)
        .filter(row::Column::CreatedUnixMs.gte(to_unix_ms(since)))
        .all(transaction)
        .await
        .doing("look what was said of a finding")?;
    let notices = rows.iter().map(notice).collect::<Result<Vec<_>, _>>()?;
    Ok(notices.iter().any(|notice| notice.proposal_summary.is_some()))
}

fn notice(row: &row::Model) -> Result<FindingNotice, StoreError> {
    serde_json::from_str(&row.notice).map_err(|error| corrupt(format!("the notice of {}", row.event_id), error))
}

async fn find(
    connection: &impl ConnectionTrait,
    event: &EventId,
    channel: &str,
) -> Result<Option<row::Model>, StoreError> {
    let row = row::Entity::find_by_id((event.0.clone(), channel.to_owned()));
    row.one(connection).await.doing("look up a message")
}

/// Puts a message into the outbox, due at once, unless the event has one for this channel already. When it is due, and who has claimed it until when, is by the
/// database's clock: whoever sends it need not agree with whoever wrote it on what time it is.
pub(crate) async fn put(
    transaction: &impl ConnectionTrait,
    event: &EventId,
    channel: &str,
    notice: &FindingNotice,
    answers: Option<EventId>,
    created_at: Timestamp,
) -> Result<(), StoreError> {
    let now = database_now(transaction).await?;
    let row = row::ActiveModel {
        event_id: Set(event.0.clone()),
        channel: Set(channel.to_owned()),
        notice: Set(serde_json::to_string(notice).map_err(|error| corrupt("a notice", error))?),
        state: Set(PENDING.to_owned()),
        attempts: Set(0),
        created_unix_ms: Set(to_unix_ms(created_at)),
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
    /// It was sent, and this names the thread that it stands in.
    Sent(String),
    /// It never will be, or nobody kept what names it.
    Unnamed,
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
        if now_ms < self.paused_until_unix_ms(channel).await? {
            return Ok(None);
        }
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
                return Ok(Some(Claimed {
                    notice: notice(&message)?,
                    event_id: EventId(message.event_id),
                    answers: message.answers.map(EventId),
                    channel: message.channel,
                    attempts: message.attempts.unsigned_abs(),
                    created_at: from_unix_ms(message.created_unix_ms)?,
                }));
            }
        }
    }

    /// Notes that a message has been delivered, and what names it on its channel. One that stands in no thread begins one.
    ///
    /// # Errors
    /// If the database does not answer; the message may then be sent once more.
    pub async fn message_sent(&self, message: &Claimed, receipt: &Receipt, now: Timestamp) -> Result<(), StoreError> {
        let answers = message.answers.as_ref().filter(|_| receipt.in_thread);
        let update = row::ActiveModel {
            state: Set(SENT.to_owned()),
            attempts: Set(attempts(message)),
            sent_unix_ms: Set(Some(to_unix_ms(now))),
            claimed_until_unix_ms: Set(0),
            last_error: Set(None),
            receipt: Set(receipt.reference.clone()),
            answers: Set(answers.map(|event| event.0.clone())),
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
        let Some(mut row) = find(self.connection(), event, channel).await? else { return Ok(Answered::Unnamed) };
        if row.state == PENDING {
            let until = row.next_attempt_unix_ms.max(row.claimed_until_unix_ms);
            return Ok(Answered::Waits(from_unix_ms(until)?));
        }
        // Up to the message that began the thread: each link was in it when it was sent. A finding that comes and goes for a day makes a few.
        for _ in 0..MAX_THREAD {
            let Some(above) = row.answers.take() else { break };
            match find(self.connection(), &EventId(above), channel).await? {
                Some(above) if above.receipt.is_some() => row = above,
                _ => break,
            }
        }
        Ok(row.receipt.map_or(Answered::Unnamed, Answered::Sent))
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
        self.put_setting(&paused(channel), &to_unix_ms(until).to_string()).await
    }

    /// Until when nothing is sent on a channel, in milliseconds since 1970; 0 if that is not so.
    async fn paused_until_unix_ms(&self, channel: &str) -> Result<i64, StoreError> {
        let until = self.setting(&paused(channel)).await?;
        Ok(until.and_then(|until| until.parse().ok()).unwrap_or(0))
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
        let mut next = None;
        for channel in channels {
            let first = row::Entity::find()
                .filter(row::Column::State.eq(PENDING))
                .filter(row::Column::Channel.eq(*channel))
                .order_by_asc(row::Column::NextAttemptUnixMs)
                .one(self.connection())
                .await
                .doing("look for the next message")?;
            let Some(row) = first else { continue };
            let paused = self.paused_until_unix_ms(channel).await?;
            let due = row.next_attempt_unix_ms.max(row.claimed_until_unix_ms).max(paused);
            next = Some(next.map_or(due, |next: i64| next.min(due)));
        }
        next.map(from_unix_ms).transpose()
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
