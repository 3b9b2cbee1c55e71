//! Shows what people said of a plan, or of what it is about, in the messages that ask them.

use super::{NewMessage, SLACK, find_all, insert, notice, row, updates_of};
use crate::{findings::FindingId, reconcile::EventId, store::StoreError};
use jiff::Timestamp;
use model::plan::ContentHash;
use sea_orm::DatabaseTransaction;
use std::{collections::BTreeSet, time::Duration};

/// What a message shows of what people said.
#[derive(Debug)]
pub(crate) struct Shown<'a> {
    /// All that was said, a line each.
    pub(crate) lines: Vec<String>,
    /// Whether anybody is asked still.
    pub(crate) is_asked_still: bool,
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
        // Of several findings a message asks nothing.
        if !asks || row.bundle.is_some() {
            continue;
        }
        notice.answers.clone_from(&shown.lines);
        if !shown.is_asked_still {
            notice.ask = None;
        }
        let event = EventId(format!("{finding}/said/{}/{}/{}", plan.short(), shown.by, of(&row)));
        let message = NewMessage {
            event: &event,
            channel: &updates_of(SLACK),
            notice: &notice,
            answers: None,
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

/// What tells the messages of a finding apart.
pub(super) fn of(row: &row::Model) -> &str {
    row.event_id.rsplit('/').next().unwrap_or_default()
}
