//! Tells people what became of what they wanted, in the transaction that writes it: nothing is done that nobody hears of.

use super::{ActError, Executor, record, relapse::REPLACED, words::Words};
use crate::{
    findings::{Finding, capitalised, notice},
    outbox::destination,
    reconcile::EventId,
    store::{
        Action, Direction, SLACK, StoreError,
        actions::{Told, Until},
        database_now, findings, outbox, plans,
    },
};
use guards::action::State;
use jiff::Timestamp;
use model::Provider;
use notifier::message::{Acted, FindingNotice, Outcome, how_long};
use sea_orm::DatabaseTransaction;
use std::time::Duration;

/// Names that a headline has room for.
const NAMED: usize = 3;

/// What is said of a finding, and as of when.
#[derive(Clone, Copy)]
struct Said<'a> {
    finding: &'a Finding,
    notice: &'a FindingNotice,
    at: Timestamp,
}

impl Executor {
    /// Writes a message on each channel, as an answer to that of the finding's opening.
    pub(super) async fn announce(
        &self,
        transaction: &DatabaseTransaction,
        action: &Action,
        told: &Told,
    ) -> Result<(), ActError> {
        let Some(finding) = told_of(transaction, action).await? else { return Ok(()) };
        // Of a plan that cannot be read nobody knows what undoes it.
        let plan = plans::by_hash(transaction, &action.plan).await?;
        let can_be_undone = plan.is_some_and(|plan| !plan.content().reversal.is_empty());
        let Some(notice) = acted_notice(&finding, action, told, can_be_undone) else { return Ok(()) };
        let said = Said { finding: &finding, notice: &notice, at: action.changed_at };
        self.on_each_channel(transaction, action, action.direction.as_str(), said).await
    }

    /// Writes a message that what was done has come undone by somebody else's hand, as an answer to the same.
    pub(super) async fn announce_relapse(
        &self,
        transaction: &DatabaseTransaction,
        action: &Action,
        at: Timestamp,
    ) -> Result<(), ActError> {
        let Some(finding) = told_of(transaction, action).await? else { return Ok(()) };
        let notice = relapse_notice(&finding, action, at);
        let said = Said { finding: &finding, notice: &notice, at: database_now(transaction).await? };
        self.on_each_channel(transaction, action, "relapsed", said).await
    }

    /// Writes a message on each channel that answers that of the finding's opening, and shows the same in those that asked about the plan.
    async fn on_each_channel(
        &self,
        transaction: &DatabaseTransaction,
        action: &Action,
        what: &str,
        Said { finding, notice, at }: Said<'_>,
    ) -> Result<(), ActError> {
        let event = EventId::of_action(&action.finding, &action.plan, what, action.attempt);
        let opening = EventId(action.finding.0.clone());
        for channel in &self.channels {
            let before = outbox::answered_by_later(transaction, &opening, channel).await?;
            let destination = match &before {
                Some(before) => before.destination(),
                None if *channel == SLACK => {
                    destination(transaction, &self.config.slack.teams, finding, None, at).await?
                }
                None => outbox::Destination::default(),
            };
            let message = outbox::NewMessage {
                event: &event,
                channel,
                notice,
                answers: before.map(|before| before.event),
                destination,
                audience: None,
                created_at: at,
                gather: Duration::ZERO,
            };
            outbox::put(transaction, message).await?;
        }
        match record::show(transaction, action).await {
            Err(error @ StoreError::Corrupt { .. }) => {
                tracing::error!(plan = %action.plan, %error, "what became of an action is not shown where people were asked about it");
                Ok(())
            }
            shown => Ok(shown?),
        }
    }
}

/// The finding that an action was to end; none if there is none that can be read: what became of the action is written all the same.
async fn told_of(transaction: &DatabaseTransaction, action: &Action) -> Result<Option<Finding>, ActError> {
    match findings::by_id(transaction, &action.finding).await {
        Err(error @ StoreError::Corrupt { .. }) => {
            tracing::error!(plan = %action.plan, %error, "what became of an action is told to nobody");
            Ok(None)
        }
        found => Ok(found?),
    }
}

/// That somebody else has started again what was stopped, or launched another one in its place. Who that was, no sweep sees.
fn relapse_notice(finding: &Finding, action: &Action, at: Timestamp) -> FindingNotice {
    let mut notice = notice(finding);
    let what = finding.name().unwrap_or(&notice.resource);
    let (stopped_at, account) = (action.called_at.unwrap_or(action.changed_at), &action.resource.account);
    let replaced = action.relapsed.as_ref().filter(|(_, because)| because.starts_with(REPLACED));
    let (log, start, launch) = match action.resource.provider {
        Provider::Gcp => ("Cloud Audit Logs have", "compute.instances.start", "compute.instances.insert"),
        Provider::Aws | Provider::OnPrem => ("CloudTrail has", "StartInstances", "RunInstances"),
    };
    let (happened, how) = match replaced {
        None => (
            "runs again",
            format!(
                "Somebody else has started it again; who, the sweeper does not see ({log} it as {start}). What it saved counts up to then, and as a relapse"
            ),
        ),
        Some((_, because)) => {
            ("was replaced", format!("{}; {log} who did ({launch}). It counts as a relapse", capitalised(because)))
        }
    };
    let (after, done) = (how_long(stopped_at, at), Words::of(action.resource.kind, action.class).done);
    notice.headline =
        format!("{what} {happened}, {after} after it was {done}, as {} approved", names(&action.asked_by));
    (notice.plan_summary, notice.ask, notice.keeps_billing) = (None, None, Vec::new());
    let because = format!(
        "{how}: nothing more of that class is done in {account} until somebody has looked (sweeper actions review {account})"
    );
    let asked_by = action.asked_by.clone();
    notice.acted = Some(Acted { at, outcome: Outcome::Done, because, asked_by, undo: None, has_relapsed: true });
    notice
}

/// What there is to say of an action that is over.
fn acted_notice(finding: &Finding, action: &Action, told: &Told, can_be_undone: bool) -> Option<FindingNotice> {
    let outcome = match action.state {
        State::Done => Outcome::Done,
        State::Voided => Outcome::Voided,
        State::Failed => Outcome::Failed,
        _ => return None,
    };
    let mut notice = notice(finding);
    let what = finding.name().unwrap_or(&notice.resource);
    let words = Words::of(action.resource.kind, action.class);
    notice.headline = headline(what, words, action.direction, outcome, &action.asked_by);
    match told.until_off {
        None => {}
        Some(Until::Ran) => notice.headline.push_str(", and something ran on it until it was off"),
        Some(Until::Worked) => notice.headline.push_str(", work had begun on it, and it is started again"),
    }
    (notice.plan_summary, notice.ask, notice.keeps_billing) = (None, None, Vec::new());
    let because = action.outcome.clone().unwrap_or_else(|| "nobody wrote down why".to_owned());
    let undo = outcome == Outcome::Done
        && action.direction == Direction::Do
        && can_be_undone
        && told.until_off != Some(Until::Worked);
    notice.acted = Some(Acted {
        at: action.changed_at,
        outcome,
        because: capitalised(&because),
        asked_by: action.asked_by.clone(),
        undo: undo.then(|| action.plan.short().to_owned()),
        has_relapsed: false,
    });
    Some(notice)
}

fn headline(what: &str, words: Words, direction: Direction, outcome: Outcome, asked_by: &[String]) -> String {
    let (names, Words { done, doing, .. }) = (names(asked_by), words);
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
        (Direction::Do, Outcome::Done) => format!("{what} was {done}, as {names} approved"),
        (Direction::Do, Outcome::Voided) => format!("{what} was not {done}, though {names} approved it"),
        (Direction::Do, Outcome::Failed) => format!("{} {what} failed, which {names} approved", capitalised(doing)),
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
    use crate::actions::words::Words;
    use crate::store::Direction;
    use model::{ResourceKind, plan::ActionClass};
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
        let all = [
            (ResourceKind::Instance, ActionClass::Reversible, Direction::Do),
            (ResourceKind::Instance, ActionClass::Reversible, Direction::Undo),
            (ResourceKind::Instance, ActionClass::Destructive, Direction::Do),
            (ResourceKind::Address, ActionClass::Destructive, Direction::Do),
        ];
        for (kind, class, direction) in all {
            let said = |outcome| headline("align-7", Words::of(kind, class), direction, outcome, &["ada".to_owned()]);
            assert!(!said(Outcome::Done).contains(" not ") && said(Outcome::Voided).contains(" was not "));
            assert!(said(Outcome::Failed).contains(" failed"));
        }
        let words = Words::of(ResourceKind::Instance, ActionClass::Reversible);
        let of_itself = |outcome| headline("align-7", words, Direction::Undo, outcome, &[]);
        let ended = Words::of(ResourceKind::Instance, ActionClass::Destructive);
        let said = headline("align-7", ended, Direction::Do, Outcome::Done, &["ada".to_owned()]);
        assert_eq!(said, "align-7 was ended, as ada approved");
        assert!(!of_itself(Outcome::Done).contains(" not ") && of_itself(Outcome::Voided).contains(" was not "));
        assert!(of_itself(Outcome::Failed).contains(" failed"));
    }
}
