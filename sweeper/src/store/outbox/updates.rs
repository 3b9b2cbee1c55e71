//! Updates: that a finding has ended, shown in the messages that told its opening or a plan; and what people said of a plan.
//!
//! An update is a row of the end's event. It waits until the opening has been sent, and is withdrawn if that never was. Of updates of one message all that are
//! due are made by one call, which shows everything that has ended, and one sweeper at a time makes them: an older state never comes after a newer one.

use super::{
    Claimed, Destination, Due, FAILED, NewMessage, PENDING, SENT,
    answers::{newest, of, with_answers},
    claim,
    claim::{Found, due},
    find, find_all, insert, notice, of_finding, row, updates_of,
};
use crate::{
    findings::FindingId,
    reconcile::{ACTED, EventId},
    store::{Doing as _, Store, StoreError, database_now, to_unix_ms},
};
use jiff::{SignedDuration, Timestamp};
use notifier::message::FindingNotice;
use sea_orm::{
    ColumnTrait as _, ConnectionTrait, DatabaseTransaction, EntityTrait as _, QueryFilter as _, QueryOrder as _,
    QuerySelect as _, sea_query::Expr,
};
use std::collections::HashMap;

/// Why what is not told of an ended finding is not.
const ENDED_FIRST: &str = "its finding ended before it was told";
/// Why an update has nothing to show itself in.
const NOT_TOLD: &str = "there is no message to update: the opening was not told, or nobody kept what names its message";
/// An update that another one is in the way of is looked at again after so long.
const AGAIN: SignedDuration = SignedDuration::from_secs(2);

/// Updates of one message that this sweeper has claimed, with all that the message is to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedUpdate {
    /// The updates.
    pub claimed: Claimed,
    /// What names the message.
    pub posted: String,
    /// The key under which it was sent.
    pub key: String,
    /// Whether it told that something was found; else that there are plans.
    pub is_opening: bool,
    /// What the message tells, at least one.
    pub told: Vec<Told>,
    /// Where the message should have stood, and was not taken.
    pub diverted_from: Option<String>,
}

/// A finding that a message tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// Its opening, or its plan, with what people said of it so far.
    pub notice: FindingNotice,
    /// Its end.
    pub end: Option<FindingNotice>,
}

/// Withdraws what was to be told of a finding that has ended: nobody needs to learn of it now, but of what was done about it. What a sweeper has claimed may be with a server already; it
/// is left to that sweeper.
pub(crate) async fn withdraw(transaction: &impl ConnectionTrait, finding: &FindingId) -> Result<(), StoreError> {
    let now = to_unix_ms(database_now(transaction).await?);
    row::Entity::update_many()
        .col_expr(row::Column::State, Expr::value(FAILED))
        .col_expr(row::Column::WithdrawnUnixMs, Expr::value(now))
        .col_expr(row::Column::LastError, Expr::value(ENDED_FIRST))
        .filter(of_finding(finding))
        .filter(row::Column::EventId.not_like(format!("{finding}{ACTED}%")))
        .filter(row::Column::State.eq(PENDING))
        .filter(row::Column::ClaimedUntilUnixMs.lte(now))
        .exec(transaction)
        .await
        .doing("withdraw messages")?;
    Ok(())
}

/// Puts updates of the messages of a channel that told the opening of a finding, or a plan, into the outbox, as far as there are or may be any soon.
pub(crate) async fn put_updates(
    transaction: &impl ConnectionTrait,
    finding: &FindingId,
    end: NewMessage<'_>,
) -> Result<(), StoreError> {
    let channel = updates_of(end.channel);
    for told in find_all(transaction, finding, end.channel).await? {
        let may_be_there = told.state == PENDING || (told.state == SENT && told.receipt.is_some());
        let is_opening = told.event_id == finding.0;
        if !may_be_there || !(is_opening || notice(&told).is_ok_and(|notice| notice.ask.is_some())) {
            continue;
        }
        let event = if is_opening { end.event.clone() } else { EventId(format!("{}/{}", end.event, of(&told))) };
        let destination = Destination::default();
        let message =
            NewMessage { event: &event, channel: &channel, answers: None, audience: None, destination, ..end };
        insert(transaction, message, Some(&EventId(told.event_id.clone()))).await?;
    }
    Ok(())
}

impl Store {
    /// Claims the update of a message of this channel that has been due for longest, with all others of the same message that are due, until `until`. `None` if
    /// nothing is due that nobody else has claimed.
    ///
    /// # Errors
    /// If the database does not answer or holds a notice of another version.
    pub async fn claim_update(
        &self,
        channel: &str,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Option<ClaimedUpdate>, StoreError> {
        if to_unix_ms(now) < self.paused_until_unix_ms(channel).await? {
            return Ok(None);
        }
        while self.is_due(&updates_of(channel), now).await? {
            let transaction = self.begin_claim().await?;
            let found = claim_first(&transaction, channel, now, until).await?;
            transaction.commit().await.doing("commit a claim")?;
            match found {
                Found::Nothing => break,
                Found::PutAside => {}
                Found::Claimed(claimed) => return Ok(Some(claimed)),
            }
        }
        Ok(None)
    }
}

async fn claim_first(
    transaction: &DatabaseTransaction,
    channel: &str,
    now: Timestamp,
    until: Timestamp,
) -> Result<Found<ClaimedUpdate>, StoreError> {
    let (updates, now_ms) = (updates_of(channel), to_unix_ms(now));
    let Some(head) = claim::first(transaction, &updates, now).await? else { return Ok(Found::Nothing) };
    let opening = match &head.updates {
        Some(opening) => find(transaction, &EventId(opening.clone()), channel).await?,
        None => None,
    };
    let postpone = |to: i64| change(&updates, &head.event_id).col_expr(row::Column::NextAttemptUnixMs, Expr::value(to));
    let soon = to_unix_ms(now.checked_add(AGAIN).unwrap_or(Timestamp::MAX));
    let opening = match opening {
        Some(opening) if opening.state == PENDING => {
            // Who has claimed it needs a second of the claim's length, as a rule.
            postpone(opening.next_attempt_unix_ms.max(soon)).exec(transaction).await.doing("postpone an update")?;
            return Ok(Found::PutAside);
        }
        opening => opening.filter(|opening| opening.state == SENT),
    };
    let Some((opening, posted)) = opening.and_then(|opening| opening.receipt.clone().map(|posted| (opening, posted)))
    else {
        change(&updates, &head.event_id)
            .col_expr(row::Column::State, Expr::value(FAILED))
            .col_expr(row::Column::WithdrawnUnixMs, Expr::value(now_ms))
            .col_expr(row::Column::LastError, Expr::value(NOT_TOLD))
            .exec(transaction)
            .await
            .doing("withdraw an update")?;
        return Ok(Found::PutAside);
    };
    let openings = told_by(transaction, &opening, &posted).await?;
    let of_these = row::Column::Updates.is_in(openings.iter().map(|opening| opening.event_id.as_str()));
    let ends = updates_among(transaction, &updates, of_these.clone()).await?;
    if ends.iter().any(|end| end.state == PENDING && end.claimed_until_unix_ms > now_ms) {
        row::Entity::update_many()
            .col_expr(row::Column::NextAttemptUnixMs, Expr::value(soon))
            .filter(row::Column::Channel.eq(&updates))
            .filter(of_these)
            .filter(row::Column::NextAttemptUnixMs.lte(now_ms))
            .exec(transaction)
            .await
            .doing("postpone updates")?;
        return Ok(Found::PutAside);
    }
    let due = due(&updates, now_ms).filter(of_these).lock_exclusive().all(transaction);
    let due = due.await.doing("look for updates of the same message")?;
    row::Entity::update_many()
        .col_expr(row::Column::ClaimedUntilUnixMs, Expr::value(to_unix_ms(until)))
        .filter(row::Column::Channel.eq(&updates))
        .filter(row::Column::EventId.is_in(due.iter().map(|row| row.event_id.as_str())))
        .exec(transaction)
        .await
        .doing("claim updates")?;
    let mut shown = shown(&ends)?;
    let told = openings.iter().map(|opening| {
        let told = notice(opening)?;
        Ok(match shown.remove(&opening.event_id) {
            Some(end) if end.ended.is_some() => Told { notice: with_answers(told, &end), end: Some(end) },
            Some(said) => Told { notice: with_answers(told, &said), end: None },
            None => Told { notice: told, end: None },
        })
    });
    let key = format!("{}/{channel}", opening.bundle.as_ref().unwrap_or(&opening.event_id));
    let told = told.collect::<Result<_, StoreError>>()?;
    let messages = due.into_iter().map(Due::of).collect::<Result<_, _>>()?;
    // It stands where its message does.
    let (bundle, thread, destination, nowhere_else) = (None, None, None, None);
    let claimed = Claimed { channel: updates, messages, bundle, thread, destination, diverted_from: nowhere_else };
    let (diverted_from, is_opening) = (opening.diverted_from, EventId(opening.event_id).is_opening());
    Ok(Found::Claimed(ClaimedUpdate { claimed, posted, key, is_opening, told, diverted_from }))
}

async fn updates_among(
    transaction: &DatabaseTransaction,
    updates: &str,
    which: Expr,
) -> Result<Vec<row::Model>, StoreError> {
    row::Entity::find()
        .filter(row::Column::Channel.eq(updates))
        .filter(which)
        .order_by_asc(row::Column::CreatedUnixMs)
        .order_by_asc(row::Column::EventId)
        .all(transaction)
        .await
        .doing("look which findings of a message have ended")
}

/// What is to be shown in the messages of these events, of all their updates in order.
fn shown(updates: &[row::Model]) -> Result<HashMap<String, FindingNotice>, StoreError> {
    let mut shown: HashMap<String, FindingNotice> = HashMap::new();
    for update in updates {
        let Some(of) = update.updates.clone() else { continue };
        let before = shown.remove(&of);
        shown.insert(of, newest(before, notice(update)?));
    }
    Ok(shown)
}

/// Puts into messages that are about to be sent what people have said since they were written: nobody is asked about what is decided.
pub(super) async fn catch_up(
    transaction: &DatabaseTransaction,
    channel: &str,
    messages: &mut [Due],
) -> Result<(), StoreError> {
    if !messages.iter().any(|message| message.notice.ask.is_some()) {
        return Ok(());
    }
    let which = row::Column::Updates.is_in(messages.iter().map(|message| message.event_id.0.as_str()));
    let shown = shown(&updates_among(transaction, &updates_of(channel), which).await?)?;
    for message in messages {
        if let Some(later) = shown.get(&message.event_id.0) {
            message.notice = with_answers(message.notice.clone(), later);
        }
    }
    Ok(())
}

/// The openings that a message told: this one, and those of its bundle. What a sweeper of the version before told of a bundle has a message of its own.
async fn told_by(
    transaction: &DatabaseTransaction,
    opening: &row::Model,
    posted: &str,
) -> Result<Vec<row::Model>, StoreError> {
    let Some(bundle) = &opening.bundle else { return Ok(vec![opening.clone()]) };
    row::Entity::find()
        .filter(row::Column::Channel.eq(&opening.channel))
        .filter(row::Column::Bundle.eq(bundle))
        .filter(row::Column::Receipt.eq(posted))
        .order_by_asc(row::Column::EventId)
        .all(transaction)
        .await
        .doing("look what a message told")
}

fn change(channel: &str, event: &str) -> sea_orm::UpdateMany<row::Entity> {
    row::Entity::update_many().filter(row::Column::Channel.eq(channel)).filter(row::Column::EventId.eq(event))
}
