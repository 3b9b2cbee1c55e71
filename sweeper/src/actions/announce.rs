//! Tells people what became of what they wanted, in the transaction that writes it: nothing is done that nobody hears of.

use super::{ActError, Executor};
use crate::{
    findings::{Finding, capitalised, notice},
    reconcile::EventId,
    store::{
        Action, Direction, StoreError,
        actions::{Told, Until},
        findings, outbox,
    },
};
use guards::action::State;
use notifier::message::{Acted, FindingNotice, Outcome};
use sea_orm::DatabaseTransaction;
use std::time::Duration;

/// Names that a headline has room for.
const NAMED: usize = 3;

impl Executor {
    /// Writes a message on each channel, as an answer to that of the finding's opening.
    pub(super) async fn announce(
        &self,
        transaction: &DatabaseTransaction,
        action: &Action,
        told: &Told,
    ) -> Result<(), ActError> {
        let finding = match findings::by_id(transaction, &action.finding).await {
            Ok(Some(finding)) => finding,
            Ok(None) => return Ok(()),
            // What became of the action is written all the same.
            Err(error @ StoreError::Corrupt { .. }) => {
                tracing::error!(plan = %action.plan, %error, "what became of an action is told to nobody");
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        let Some(notice) = acted_notice(&finding, action, told) else { return Ok(()) };
        let event = EventId::of_action(&action.finding, &action.plan, action.direction.as_str(), action.attempt);
        let opening = EventId(action.finding.0.clone());
        for channel in &self.channels {
            let message = outbox::NewMessage {
                event: &event,
                channel,
                notice: &notice,
                answers: outbox::answered_by_later(transaction, &opening, channel).await?,
                audience: None,
                created_at: action.changed_at,
                gather: Duration::ZERO,
            };
            outbox::put(transaction, message).await?;
        }
        Ok(())
    }
}

/// What there is to say of an action that is over.
fn acted_notice(finding: &Finding, action: &Action, told: &Told) -> Option<FindingNotice> {
    let outcome = match action.state {
        State::Done => Outcome::Done,
        State::Voided => Outcome::Voided,
        State::Failed => Outcome::Failed,
        _ => return None,
    };
    let mut notice = notice(finding);
    let what = finding.name().unwrap_or(&notice.resource);
    notice.headline = headline(what, action.direction, outcome, &action.asked_by);
    match told.until_off {
        None => {}
        Some(Until::Ran) => notice.headline.push_str(", and something ran on it until it was off"),
        Some(Until::Worked) => notice.headline.push_str(", work had begun on it, and it is started again"),
    }
    (notice.plan_summary, notice.ask, notice.keeps_billing) = (None, None, Vec::new());
    let because = action.outcome.clone().unwrap_or_else(|| "nobody wrote down why".to_owned());
    let undo = outcome == Outcome::Done && action.direction == Direction::Do && told.until_off != Some(Until::Worked);
    notice.acted = Some(Acted {
        at: action.changed_at,
        outcome,
        because: capitalised(&because),
        asked_by: action.asked_by.clone(),
        undo: undo.then(|| action.plan.short().to_owned()),
    });
    Some(notice)
}

fn headline(what: &str, direction: Direction, outcome: Outcome, asked_by: &[String]) -> String {
    let names = names(asked_by);
    match (direction, outcome) {
        (Direction::Undo, Outcome::Done) if asked_by.is_empty() => {
            format!("{what} was started again, because work had begun on it before it was off")
        }
        (Direction::Undo, Outcome::Voided) if asked_by.is_empty() => {
            format!("{what} was not started again, though work had begun on it before it was off")
        }
        (Direction::Undo, Outcome::Failed) if asked_by.is_empty() => {
            format!("Starting {what} again failed, though work had begun on it before it was off")
        }
        (Direction::Do, Outcome::Done) => format!("{what} was stopped, as {names} approved"),
        (Direction::Do, Outcome::Voided) => format!("{what} was not stopped, though {names} approved it"),
        (Direction::Do, Outcome::Failed) => format!("Stopping {what} failed, which {names} approved"),
        (Direction::Undo, Outcome::Done) => format!("{what} was started again, as {names} wanted"),
        (Direction::Undo, Outcome::Voided) => format!("{what} was not started again, though {names} wanted it"),
        (Direction::Undo, Outcome::Failed) => format!("Starting {what} again failed, which {names} wanted"),
    }
}

/// `ada`, `ada and grace`, `ada, grace, joan and 2 more`.
fn names(all: &[String]) -> String {
    let (named, more) = all.split_at(all.len().min(NAMED));
    match (named, more.len()) {
        ([], _) => "nobody".to_owned(),
        ([one], 0) => one.clone(),
        ([first @ .., last], 0) => format!("{} and {last}", first.join(", ")),
        (named, more) => format!("{} and {more} more", named.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::{headline, names};
    use crate::store::Direction;
    use notifier::message::Outcome;

    #[test]
    fn people_are_named_and_the_others_counted() {
        let of = |text: &str| names(&text.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(of(""), "nobody");
        assert_eq!(of("ada"), "ada");
        assert_eq!(of("ada grace joan"), "ada, grace and joan");
        assert_eq!(of("ada grace joan kay rosa"), "ada, grace, joan and 2 more");
    }

    #[test]
    fn what_was_not_done_is_never_said_to_be() {
        for direction in [Direction::Do, Direction::Undo] {
            let said = |outcome| headline("align-7", direction, outcome, &["ada".to_owned()]);
            assert!(!said(Outcome::Done).contains(" not ") && said(Outcome::Voided).contains(" was not "));
            assert!(said(Outcome::Failed).contains(" failed"));
        }
        let of_itself = |outcome| headline("align-7", Direction::Undo, outcome, &[]);
        assert!(!of_itself(Outcome::Done).contains(" not ") && of_itself(Outcome::Voided).contains(" was not "));
        assert!(of_itself(Outcome::Failed).contains(" failed"));
    }
}
