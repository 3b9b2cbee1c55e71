//! Shows what people said of a plan in the messages that ask them.

use super::{NewMessage, SLACK, find_all, insert, notice, row, updates_of};
use crate::{approvals, findings::FindingId, reconcile::EventId, store::StoreError};
use jiff::Timestamp;
use model::plan::ContentHash;
use sea_orm::DatabaseTransaction;
use std::time::Duration;

/// Puts an update of each message that asks about a plan into the outbox, with all that was said of it so far. Where nothing more can be said nobody is asked any more.
pub(crate) async fn show_answers(
    transaction: &DatabaseTransaction,
    finding: &FindingId,
    plan: &ContentHash,
    said: &[approvals::Given],
    is_asked_still: bool,
    now: Timestamp,
) -> Result<(), StoreError> {
    let lines: Vec<String> = said.iter().map(approvals::line).collect();
    for row in find_all(transaction, finding, SLACK).await? {
        // What cannot be read is shown as it was: nobody's answer fails because of it.
        let Ok(mut notice) = notice(&row) else { continue };
        let asks = notice.ask.as_ref().is_some_and(|ask| ask.plan == *plan);
        // Of several findings a message asks nothing.
        if !asks || row.bundle.is_some() {
            continue;
        }
        notice.answers.clone_from(&lines);
        if !is_asked_still {
            notice.ask = None;
        }
        let event = EventId(format!("{finding}/said/{}/{}/{}", plan.short(), said.len(), of(&row)));
        let message = NewMessage {
            event: &event,
            channel: &updates_of(SLACK),
            notice: &notice,
            answers: None,
            audience: None,
            created_at: now,
            gather: Duration::ZERO,
        };
        insert(transaction, message, Some(&EventId(row.event_id))).await?;
    }
    Ok(())
}

/// What tells the messages of a finding apart.
pub(super) fn of(row: &row::Model) -> &str {
    row.event_id.rsplit('/').next().unwrap_or_default()
}
