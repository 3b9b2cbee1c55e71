//! Shows what people said of a plan, or of what it is about, in the messages that ask them.

use super::{Destination, NewMessage, SLACK, find_all, insert, notice, row, updates_of};
use crate::{findings::FindingId, reconcile::EventId, store::StoreError};
use jiff::Timestamp;
use model::plan::ContentHash;
use notifier::message::{FindingNotice, Outcome};
use sea_orm::DatabaseTransaction;
use std::{collections::BTreeSet, time::Duration};

/// What a message shows of what people said.
#[derive(Debug)]
pub(crate) struct Shown<'a> {
    /// All that was said, a line each.
    pub(crate) lines: Vec<String>,
    /// Whether anybody is asked still.
    pub(crate) is_asked_still: bool,
    /// What came of it.
    pub(crate) outcome: Option<Outcome>,
    /// Tells what was said last from all else that was said of the same plan.
    pub(crate) by: &'a str,
    /// When that was.
    pub(crate) at: Timestamp,
}

/// Puts an update of each message that asks about a plan into the outbox, with all that was said of it so far. Where nothing more can be said nobody is asked any more.
pub(crate) async fn show_answers(
    transaction: &DatabaseTransaction,
    finding: &FindingId,
    plan: &ContentHash,
    shown: Shown<'_>,
) -> Result<(), StoreError> {
    for row in find_all(transaction, finding, SLACK).await? {
        // What cannot be read is shown as it was: nobody's answer fails because of it.
        let Ok(mut notice) = notice(&row) else { continue };
        let asks = notice.ask.as_ref().is_some_and(|ask| ask.plan == *plan);
        if !asks {
            continue;
        }
        notice.answers.clone_from(&shown.lines);
        notice.came_of_it = shown.outcome;
        if !shown.is_asked_still {
            notice.ask = None;
        }
        let event = EventId(format!("{finding}/said/{}/{}/{}", plan.short(), shown.by, of(&row)));
        let message = NewMessage {
            event: &event,
            channel: &updates_of(SLACK),
            notice: &notice,
            answers: None,
            destination: Destination::default(),
            audience: None,
            created_at: shown.at,
            gather: Duration::ZERO,
        };
        insert(transaction, message, Some(&EventId(row.event_id))).await?;
    }
    Ok(())
}

/// The plans that messages about a finding ask about.
pub(crate) async fn asked_about(
    transaction: &DatabaseTransaction,
    finding: &FindingId,
) -> Result<BTreeSet<ContentHash>, StoreError> {
    let rows = find_all(transaction, finding, SLACK).await?;
    Ok(rows.iter().filter_map(|row| notice(row).ok()?.ask.map(|ask| ask.plan)).collect())
}

/// A notice as it was told first, with what a later one shows of what people said.
pub(super) fn with_answers(told: FindingNotice, later: &FindingNotice) -> FindingNotice {
    FindingNotice { ask: later.ask.clone(), answers: later.answers.clone(), came_of_it: later.came_of_it, ..told }
}

/// What is to be shown of a finding, of all that was to be shown of it so far: its end for good, and what was said last.
pub(super) fn newest(before: Option<FindingNotice>, later: FindingNotice) -> FindingNotice {
    match before {
        Some(before) if before.ended.is_some() && later.ended.is_some() => before,
        Some(before) if before.ended.is_some() => {
            FindingNotice { answers: later.answers, came_of_it: later.came_of_it, ..before }
        }
        Some(before) if later.ended.is_some() => {
            FindingNotice { answers: before.answers, came_of_it: before.came_of_it, ..later }
        }
        _ => later,
    }
}

/// What tells the messages of a finding apart.
pub(super) fn of(row: &row::Model) -> &str {
    row.event_id.rsplit('/').next().unwrap_or_default()
}
