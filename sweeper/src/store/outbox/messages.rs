//! What `sweeper messages` lists, and a new start for what was discarded.

use super::{FAILED, PENDING, SENT, UPDATE, notice, row};
use crate::{
    reconcile::EventId,
    store::{Doing as _, Store, StoreError, corrupt, findings, from_unix_ms, to_unix_ms},
};
use jiff::Timestamp;
use sea_orm::{
    ActiveValue::Set, ColumnTrait as _, Condition, EntityTrait as _, QueryFilter as _, QueryOrder as _,
    QuerySelect as _, QueryTrait as _,
};

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
    /// Not told, because nobody needed it any more: its finding ended first, or the message that it would change is gone.
    Withdrawn,
}

impl MessageState {
    /// The rows in it. What is withdrawn has the state of what was discarded, because a sweeper of the version before knows no other one.
    pub(super) fn condition(self) -> Condition {
        let state = |state: &str| Condition::all().add(row::Column::State.eq(state));
        match self {
            Self::Pending => state(PENDING),
            Self::Sent => state(SENT),
            Self::Failed => state(FAILED).add(row::Column::WithdrawnUnixMs.is_null()),
            Self::Withdrawn => state(FAILED).add(row::Column::WithdrawnUnixMs.is_not_null()),
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
    /// The event whose message it changes.
    pub updates: Option<EventId>,
    /// What names all that is told by the same message, if it is more than this.
    pub bundle: Option<String>,
    /// Where on its channel it goes; none is where all goes that is not routed.
    pub destination: Option<String>,
    /// Why there, in one sentence.
    pub routed_because: Option<String>,
    /// Where it should have gone, and was not taken.
    pub diverted_from: Option<String>,
}

fn message(row: row::Model) -> Result<Message, StoreError> {
    let notice = notice(&row)?;
    let state = match row.state.as_str() {
        PENDING => MessageState::Pending,
        SENT => MessageState::Sent,
        FAILED if row.withdrawn_unix_ms.is_some() => MessageState::Withdrawn,
        FAILED => MessageState::Failed,
        other => return Err(corrupt(format!("the message of {}", row.event_id), format!("state `{other}`"))),
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
        updates: row.updates.map(EventId),
        bundle: row.bundle,
        destination: row.destination,
        routed_because: row.routed_because,
        diverted_from: row.diverted_from,
        event: EventId(row.event_id),
        channel: row.channel.strip_suffix(UPDATE).unwrap_or(&row.channel).to_owned(),
    })
}

impl Store {
    /// The messages that were written last, in one state or in any, newest first.
    ///
    /// # Errors
    /// If the database does not answer or holds a notice of another version.
    pub async fn messages(&self, state: Option<MessageState>, most: u64) -> Result<Vec<Message>, StoreError> {
        let rows = row::Entity::find()
            .apply_if(state, |messages, state| messages.filter(state.condition()))
            .order_by_desc(row::Column::CreatedUnixMs)
            .order_by_asc(row::Column::EventId)
            .order_by_asc(row::Column::Channel)
            .limit(most)
            .all(self.connection())
            .await
            .doing("list the messages")?;
        rows.into_iter().map(message).collect()
    }

    /// Has discarded messages tried again from `now` on, as if they had been written then: those of these events, withdrawn ones as well; or without any, all
    /// updates, all of actions and all whose findings are open. What was a bundle gathers anew. Says how many, and how many were left because their findings have ended.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn retry_messages(&self, events: &[EventId], now: Timestamp) -> Result<(u64, u64), StoreError> {
        let named = || events.iter().map(|event| event.0.clone()).collect();
        let (wanted, ended) = if events.is_empty() { self.discarded_by_finding().await? } else { (named(), 0) };
        let mut requeued = 0;
        // SQLite takes 32,766 parameters.
        for some in wanted.chunks(1_000) {
            let updated = row::Entity::update_many()
                .set(row::ActiveModel {
                    state: Set(PENDING.to_owned()),
                    attempts: Set(0),
                    created_unix_ms: Set(to_unix_ms(now)),
                    next_attempt_unix_ms: Set(to_unix_ms(now)),
                    claimed_until_unix_ms: Set(0),
                    bundle: Set(None),
                    withdrawn_unix_ms: Set(None),
                    ..Default::default()
                })
                .filter(row::Column::State.eq(FAILED))
                .filter(row::Column::EventId.is_in(some.iter().map(String::as_str)))
                .exec(self.connection())
                .await
                .doing("requeue messages")?;
            requeued += updated.rows_affected;
        }
        Ok((requeued, ended))
    }

    /// The events whose messages were discarded and whose findings are open, and those of updates and actions; and how many messages are about others.
    async fn discarded_by_finding(&self) -> Result<(Vec<String>, u64), StoreError> {
        let discarded: Vec<(String, Option<String>)> = row::Entity::find()
            .select_only()
            .column(row::Column::EventId)
            .column(row::Column::Updates)
            .filter(MessageState::Failed.condition())
            .into_tuple()
            .all(self.connection())
            .await
            .doing("list the messages that were discarded")?;
        let is_wanted =
            |(event, updates): &(String, Option<String>)| updates.is_some() || EventId(event.clone()).is_of_action();
        let (always, others): (Vec<_>, Vec<_>) = discarded.into_iter().partition(is_wanted);
        let event = |(event, _): (String, Option<String>)| event;
        let events: Vec<String> = others.into_iter().map(event).collect();
        let finding = |event: &String| event.split('/').next().unwrap_or_default().to_owned();
        let open = findings::open_among(self.connection(), events.iter().map(finding).collect()).await?;
        let (mut wanted, others): (Vec<_>, Vec<_>) =
            events.into_iter().partition(|event| open.contains(&finding(event)));
        wanted.extend(always.into_iter().map(event));
        Ok((wanted, u64::try_from(others.len()).unwrap_or(u64::MAX)))
    }
}
