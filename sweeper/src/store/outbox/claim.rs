//! Claims: what one sweeper tells by one message, so that nobody else tells it meanwhile.
//!
//! The message that has been due for longest is claimed with those of the same audience, destination and thread that are due as well, at most [`MAX_BUNDLE`]. Which
//! they were is kept (`bundle`): if the sweeper dies after sending and before noting it, the same set is claimed again as a whole and sent under the same key,
//! by which it is known for a repetition. Claims are made one after the other, under a lock, so that no two sweepers divide a set between them.

use super::{
    PENDING, notice, row,
    thread::{Answered, answered},
    updates,
};
use crate::{
    reconcile::EventId,
    store::{Doing as _, Store, StoreError, from_unix_ms, to_unix_ms},
};
use jiff::{SignedDuration, Timestamp};
use notifier::message::FindingNotice;
use sea_orm::{
    ColumnTrait as _, ConnectionTrait, DatabaseTransaction, DbBackend, EntityTrait as _, QueryFilter as _,
    QueryOrder as _, QuerySelect as _, Select, sea_query::Expr,
};
use sha2::{Digest as _, Sha256};
use std::time::Duration;

/// Most messages that are told as one. What one attempt decides it decides for all of them: a crash repeats so many at most, and a server that takes no bundle is
/// sent so many one by one, four minutes of Slack's pace. Of 300 machines two bundles are no more to read than one.
pub const MAX_BUNDLE: usize = 200;
/// Names the lock of all claims among PostgreSQL's advisory locks ("outbox" in ASCII).
const CLAIM_LOCK: i64 = 0x6f75_7462_6f78;
/// PostgreSQL ends a claim of a sweeper that is silent for so long in its midst.
const LONGEST_CLAIM: Duration = Duration::from_secs(10);
/// What answers a message that waits is looked at again after so long at the earliest.
const SOONEST_AGAIN: SignedDuration = SignedDuration::from_secs(5);

/// What this sweeper has claimed, so that nobody else sends it meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// By which channel.
    pub channel: String,
    /// What is told by one message: at least one.
    pub messages: Vec<Due>,
    /// What names all of them, if there are several.
    pub bundle: Option<String>,
    /// The thread that it belongs in, by what names the message that began it.
    pub thread: Option<String>,
    /// Where on the channel, if not where all goes.
    pub destination: Option<String>,
    /// Where it should have gone, and was not taken.
    pub diverted_from: Option<String>,
}

/// One message that is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    /// Of which event.
    pub event_id: EventId,
    /// What to say.
    pub notice: FindingNotice,
    /// How often it was tried before.
    pub attempts: u32,
    /// When it was written.
    pub created_at: Timestamp,
}

impl Due {
    pub(super) fn of(row: row::Model) -> Result<Self, StoreError> {
        Ok(Self {
            notice: notice(&row)?,
            event_id: EventId(row.event_id),
            attempts: row.attempts.unsigned_abs(),
            created_at: from_unix_ms(row.created_unix_ms)?,
        })
    }
}

impl Claimed {
    /// The same for each attempt at the same message.
    #[must_use]
    pub fn key(&self) -> String {
        let event = self.messages.first().map_or("", |message| message.event_id.0.as_str());
        format!("{}/{}", self.bundle.as_deref().unwrap_or(event), self.channel)
    }

    /// How often it was tried before.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.messages.iter().map(|message| message.attempts).max().unwrap_or_default()
    }

    /// When the newest of it was written.
    #[must_use]
    pub fn created_at(&self) -> Timestamp {
        self.messages.iter().map(|message| message.created_at).max().unwrap_or(Timestamp::MIN)
    }

    pub(super) fn events(&self) -> impl Iterator<Item = &str> {
        self.messages.iter().map(|message| message.event_id.0.as_str())
    }
}

/// What one search for something to send came to.
pub(super) enum Found<T> {
    Nothing,
    /// The first one has to wait, or is not needed: it is due no more.
    PutAside,
    Claimed(T),
}

/// The messages of a channel that are due and that nobody has claimed, the first one first.
pub(super) fn due(channel: &str, now_ms: i64) -> Select<row::Entity> {
    row::Entity::find()
        .filter(row::Column::State.eq(PENDING))
        .filter(row::Column::Channel.eq(channel))
        .filter(row::Column::NextAttemptUnixMs.lte(now_ms))
        .filter(row::Column::ClaimedUntilUnixMs.lte(now_ms))
        .order_by_asc(row::Column::NextAttemptUnixMs)
        .order_by_asc(row::Column::EventId)
}

/// The first of them, locked: a sweeper of the version before claims without our lock.
pub(super) async fn first(
    connection: &impl ConnectionTrait,
    channel: &str,
    now: Timestamp,
) -> Result<Option<row::Model>, StoreError> {
    let due = due(channel, to_unix_ms(now)).lock_exclusive();
    due.one(connection).await.doing("look for a message that is due")
}

impl Store {
    /// Claims the message of this channel that has been due for longest, with what is told together with it, until `until`: a sweeper that dies with a claim
    /// leaves it to others after that. `None` if nothing is due that nobody else has claimed.
    ///
    /// # Errors
    /// If the database does not answer or holds a notice of another version.
    pub async fn claim_message(
        &self,
        channel: &str,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Option<Claimed>, StoreError> {
        if to_unix_ms(now) < self.paused_until_unix_ms(channel).await? {
            return Ok(None);
        }
        while self.is_due(channel, now).await? {
            let transaction = self.begin_claim().await?;
            let found = claim(&transaction, channel, now, until).await?;
            transaction.commit().await.doing("commit a claim")?;
            match found {
                Found::Nothing => break,
                Found::PutAside => {}
                Found::Claimed(claimed) => return Ok(Some(claimed)),
            }
        }
        Ok(None)
    }

    /// Whether there is anything to claim, as seen without a lock.
    pub(super) async fn is_due(&self, channel: &str, now: Timestamp) -> Result<bool, StoreError> {
        let first = due(channel, to_unix_ms(now)).one(self.connection());
        Ok(first.await.doing("look for a message that is due")?.is_some())
    }

    /// Begins a transaction in which this sweeper alone claims.
    pub(super) async fn begin_claim(&self) -> Result<DatabaseTransaction, StoreError> {
        let transaction = self.begin_leased(LONGEST_CLAIM).await?;
        if transaction.get_database_backend() == DbBackend::Postgres {
            let lock = format!("SELECT pg_advisory_xact_lock({CLAIM_LOCK})");
            transaction.execute_unprepared(&lock).await.doing("wait for the claims of others")?;
        }
        Ok(transaction)
    }
}

async fn claim(
    transaction: &DatabaseTransaction,
    channel: &str,
    now: Timestamp,
    until: Timestamp,
) -> Result<Found<Claimed>, StoreError> {
    let Some(head) = first(transaction, channel, now).await? else { return Ok(Found::Nothing) };
    let thread = match &head.answers {
        None => Answered::Unnamed,
        Some(event) => {
            let mut answered = answered(transaction, vec![event.clone()], channel).await?;
            answered.remove(event).unwrap_or(Answered::Unnamed)
        }
    };
    let mut rows = match (&head.bundle, &head.audience) {
        // A set that was claimed before.
        (Some(bundle), _) => {
            let same = due(channel, to_unix_ms(now)).filter(row::Column::Bundle.eq(bundle)).lock_exclusive();
            same.all(transaction).await.doing("look for the rest of a bundle")?
        }
        (None, Some(audience)) if !matches!(thread, Answered::Waits(_)) => {
            let mut rows = company(transaction, &head, audience, &thread, now).await?;
            rows.push(head.clone());
            rows
        }
        (None, _) => vec![head.clone()],
    };
    if let Answered::Waits(answered_at) = thread {
        // What it answers is said first.
        let soonest = now.checked_add(SOONEST_AGAIN).unwrap_or(Timestamp::MAX);
        postpone(transaction, channel, &rows, answered_at.max(soonest)).await?;
        return Ok(Found::PutAside);
    }
    rows.sort_by(|a, b| a.event_id.cmp(&b.event_id));
    let (destination, diverted_from) = (head.destination.clone(), head.diverted_from.clone());
    let bundle = head.bundle.or_else(|| (rows.len() > 1).then(|| name(&rows)));
    row::Entity::update_many()
        .col_expr(row::Column::ClaimedUntilUnixMs, Expr::value(to_unix_ms(until)))
        .col_expr(row::Column::Bundle, Expr::value(bundle.clone()))
        .filter(row::Column::Channel.eq(channel))
        .filter(row::Column::EventId.is_in(rows.iter().map(|row| row.event_id.as_str())))
        .exec(transaction)
        .await
        .doing("claim messages")?;
    let mut messages: Vec<Due> = rows.into_iter().map(Due::of).collect::<Result<_, _>>()?;
    updates::catch_up(transaction, channel, &mut messages).await?;
    let thread = match thread {
        Answered::Sent(receipt) => Some(receipt),
        Answered::Waits(_) | Answered::Unnamed => None,
    };
    let channel = channel.to_owned();
    Ok(Found::Claimed(Claimed { channel, messages, bundle, thread, destination, diverted_from }))
}

/// What is told together with a message: due as well, of the same audience, for the same destination, and in the same thread, if it is in one.
async fn company(
    transaction: &DatabaseTransaction,
    head: &row::Model,
    audience: &str,
    thread: &Answered,
    now: Timestamp,
) -> Result<Vec<row::Model>, StoreError> {
    let same = |column: row::Column, value: &Option<String>| match value {
        Some(value) => column.eq(value),
        None => column.is_null(),
    };
    let others = due(&head.channel, to_unix_ms(now))
        .filter(row::Column::Audience.eq(audience))
        .filter(same(row::Column::Destination, &head.destination))
        .filter(same(row::Column::DivertedFrom, &head.diverted_from))
        .filter(row::Column::Bundle.is_null())
        .filter(row::Column::EventId.ne(&head.event_id))
        .limit(u64::try_from(MAX_BUNDLE - 1).unwrap_or(u64::MAX))
        .lock_exclusive()
        .all(transaction)
        .await
        .doing("look for what is told together")?;
    let answers = others.iter().filter_map(|row| row.answers.clone()).collect();
    let answered = answered(transaction, answers, &head.channel).await?;
    let thread_of = |row: &row::Model| row.answers.as_ref().and_then(|event| answered.get(event));
    Ok(others.into_iter().filter(|row| thread_of(row).unwrap_or(&Answered::Unnamed) == thread).collect())
}

async fn postpone(
    transaction: &DatabaseTransaction,
    channel: &str,
    rows: &[row::Model],
    until: Timestamp,
) -> Result<(), StoreError> {
    row::Entity::update_many()
        .col_expr(row::Column::NextAttemptUnixMs, Expr::value(to_unix_ms(until)))
        .filter(row::Column::Channel.eq(channel))
        .filter(row::Column::EventId.is_in(rows.iter().map(|row| row.event_id.as_str())))
        .exec(transaction)
        .await
        .doing("postpone a message")?;
    Ok(())
}

/// Names a set of messages: `b-` and twelve hexadecimal digits, the same for the same set.
fn name(rows: &[row::Model]) -> String {
    let events: Vec<&str> = rows.iter().map(|row| row.event_id.as_str()).collect();
    let digest = hex::encode(Sha256::digest(events.join("\n")));
    format!("b-{}", digest.get(..12).unwrap_or(&digest))
}
