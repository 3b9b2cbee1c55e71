//! The outbox as rows: one per event and channel, for good.
//!
//! A row is the record of what was to be told, and what became of it. Which rows are told by one message is decided when they are claimed.

mod answers;
mod claim;
mod destination;
mod messages;
mod outcome;
mod thread;
mod updates;

pub(crate) use answers::{Shown, asked_about, show_answers};
pub use claim::{Claimed, Due, MAX_BUNDLE};
pub(crate) use destination::{Before, Destination};
pub use messages::{Message, MessageState};
pub use updates::{ClaimedUpdate, Told};
pub(crate) use updates::{put_updates, withdraw};

use super::{Doing as _, Store, StoreError, corrupt, database_now, from_unix_ms, to_unix_ms};
use crate::{findings::FindingId, reconcile::EventId};
use jiff::{SignedDuration, Timestamp};
use notifier::message::FindingNotice;
use sea_orm::{
    ActiveValue::Set, ColumnTrait as _, Condition, ConnectionTrait, EntityTrait as _, PaginatorTrait as _,
    QueryFilter as _, QueryOrder as _,
};
use std::time::Duration;

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
        pub audience: Option<String>,
        pub bundle: Option<String>,
        pub updates: Option<String>,
        pub withdrawn_unix_ms: Option<i64>,
        pub destination: Option<String>,
        pub routed_because: Option<String>,
        pub diverted_from: Option<String>,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// Name of the Slack channel in the outbox.
pub const SLACK: &str = "slack";
const PENDING: &str = "pending";
const SENT: &str = "sent";
const FAILED: &str = "failed";
/// Follows a channel's name in rows that change its messages. A sweeper of the version before claims no such channel.
const UPDATE: &str = "_update";

/// The setting that says until when a channel is paused.
fn paused(channel: &str) -> String {
    format!("paused_until_unix_ms/{channel}")
}

/// Where the updates of a channel's messages stand.
fn updates_of(channel: &str) -> String {
    format!("{channel}{UPDATE}")
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
    /// Not told, because nobody needed it any more.
    pub withdrawn: u64,
}

/// What a later message of this channel about a finding answers: that of its opening. None if nothing was said of it there.
pub(crate) async fn answered_by_later(
    transaction: &impl ConnectionTrait,
    opening: &EventId,
    channel: &str,
) -> Result<Option<Before>, StoreError> {
    let first = find(transaction, opening, channel).await?;
    Ok(first.map(Before::of))
}

/// Whether people were told of a plan for this finding since then that is not over: by a message of its own, or by that of the opening.
pub(crate) async fn told_a_plan(
    transaction: &impl ConnectionTrait,
    finding: &FindingId,
    since: Timestamp,
) -> Result<bool, StoreError> {
    let rows = row::Entity::find()
        .filter(of_finding(finding))
        .filter(row::Column::Updates.is_null())
        .filter(row::Column::CreatedUnixMs.gte(to_unix_ms(since)))
        .all(transaction)
        .await
        .doing("look what was said of a finding")?;
    let notices = rows.iter().map(notice).collect::<Result<Vec<_>, _>>()?;
    let asked = notices.iter().filter_map(|notice| notice.ask.as_ref().map(|ask| ask.plan.to_string()));
    let over = super::actions::over(transaction, &asked.collect::<Vec<_>>()).await?;
    // Whoever approved one that came to nothing may approve the next.
    let holds = |notice: &FindingNotice| notice.ask.as_ref().is_none_or(|ask| !over.contains(ask.plan.as_str()));
    Ok(notices.iter().any(|notice| notice.plan_summary.is_some() && holds(notice)))
}

fn of_finding(finding: &FindingId) -> Condition {
    Condition::any()
        .add(row::Column::EventId.eq(&finding.0))
        .add(row::Column::EventId.starts_with(format!("{finding}/")))
}

/// The messages about a finding on a channel, in no order.
async fn find_all(
    connection: &impl ConnectionTrait,
    finding: &FindingId,
    channel: &str,
) -> Result<Vec<row::Model>, StoreError> {
    let rows = row::Entity::find().filter(of_finding(finding)).filter(row::Column::Channel.eq(channel));
    rows.all(connection).await.doing("look up what is said of a finding")
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

/// A message that is to be written.
#[derive(Debug)]
pub(crate) struct NewMessage<'a> {
    /// Of which event.
    pub(crate) event: &'a EventId,
    /// By which channel.
    pub(crate) channel: &'a str,
    /// What to say.
    pub(crate) notice: &'a FindingNotice,
    /// The event whose message on the channel it answers.
    pub(crate) answers: Option<EventId>,
    /// Where on that channel.
    pub(crate) destination: Destination,
    /// With what it may be told by one message: what has the same word here, and the same destination. Alone if there is none.
    pub(crate) audience: Option<String>,
    /// When the event was.
    pub(crate) created_at: Timestamp,
    /// For so long it waits for company.
    pub(crate) gather: Duration,
}

/// Puts a message into the outbox unless the event has one for this channel already. When it is due, and who has claimed it until when, is by the
/// database's clock: whoever sends it need not agree with whoever wrote it on what time it is.
pub(crate) async fn put(transaction: &impl ConnectionTrait, message: NewMessage<'_>) -> Result<(), StoreError> {
    insert(transaction, message, None).await
}

async fn insert(
    transaction: &impl ConnectionTrait,
    message: NewMessage<'_>,
    updates: Option<&EventId>,
) -> Result<(), StoreError> {
    let due = after(database_now(transaction).await?, message.gather);
    let audience = message.audience.map(|audience| message.destination.within(audience));
    let row = row::ActiveModel {
        event_id: Set(message.event.0.clone()),
        channel: Set(message.channel.to_owned()),
        notice: Set(serde_json::to_string(message.notice).map_err(|error| corrupt("a notice", error))?),
        state: Set(PENDING.to_owned()),
        attempts: Set(0),
        created_unix_ms: Set(to_unix_ms(message.created_at)),
        next_attempt_unix_ms: Set(to_unix_ms(due)),
        claimed_until_unix_ms: Set(0),
        sent_unix_ms: Set(None),
        last_error: Set(None),
        receipt: Set(None),
        answers: Set(message.answers.map(|event| event.0)),
        audience: Set(audience),
        bundle: Set(None),
        updates: Set(updates.map(|event| event.0.clone())),
        withdrawn_unix_ms: Set(None),
        destination: Set(message.destination.channel),
        routed_because: Set(message.destination.because),
        diverted_from: Set(message.destination.diverted_from),
    };
    row::Entity::insert(row)
        .on_conflict_do_nothing()
        .exec_without_returning(transaction)
        .await
        .doing("write a message")?;
    Ok(())
}

fn after(time: Timestamp, wait: Duration) -> Timestamp {
    let wait = SignedDuration::try_from(wait).unwrap_or(SignedDuration::MAX);
    time.checked_add(wait).unwrap_or(Timestamp::MAX)
}

impl Store {
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

    /// When the next pending message or update of these channels can be claimed.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn next_message_due(&self, channels: &[&str]) -> Result<Option<Timestamp>, StoreError> {
        let mut next = None;
        for channel in channels {
            let first = row::Entity::find()
                .filter(row::Column::State.eq(PENDING))
                .filter(row::Column::Channel.is_in([(*channel).to_owned(), updates_of(channel)]))
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
        let count = async |state: MessageState| {
            let rows = row::Entity::find().filter(state.condition());
            rows.count(self.connection()).await.doing("count the messages")
        };
        Ok(OutboxCounts {
            pending: count(MessageState::Pending).await?,
            sent: count(MessageState::Sent).await?,
            failed: count(MessageState::Failed).await?,
            withdrawn: count(MessageState::Withdrawn).await?,
        })
    }
}
