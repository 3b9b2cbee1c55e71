//! What came of a plan, shown in the messages that asked about it: each is the record of who decided, what the last check said, and how it ended.

use super::words::Words;
use crate::{
    approvals,
    store::{Action, Direction, StoreError, actions, approvals::given, database_now, outbox},
    verdict::words,
};
use guards::action::State;
use notifier::message::Outcome;
use sea_orm::DatabaseTransaction;

/// Puts into the outbox what has become of a plan so far, by the action that was last written.
pub(super) async fn show(transaction: &DatabaseTransaction, last: &Action) -> Result<(), StoreError> {
    let all = actions::of_plan(transaction, &last.plan).await?;
    let said = given(transaction, &last.plan).await?;
    let lines = said.iter().map(approvals::line).chain(all.iter().flat_map(lines)).collect();
    // What came to nothing changes nothing of what was done before.
    let outcome =
        all.iter().filter_map(outcome).reduce(|before, next| if next == Outcome::Voided { before } else { next });
    let by = match &last.relapsed {
        Some(_) => "relapsed".to_owned(),
        None => format!("{}-{}", last.direction.as_str(), last.attempt),
    };
    let shown = outbox::Shown { lines, is_asked_still: false, outcome, by: &by, at: database_now(transaction).await? };
    outbox::show_answers(transaction, &last.finding, &last.plan, shown).await
}

fn outcome(action: &Action) -> Option<Outcome> {
    match action.state {
        State::Done => Some(Outcome::Done),
        State::Voided => Some(Outcome::Voided),
        State::Failed => Some(Outcome::Failed),
        _ => None,
    }
}

/// An action that is over in a line, and that it has come undone in another.
fn lines(action: &Action) -> Vec<String> {
    let Some(outcome) = outcome(action) else { return Vec::new() };
    let Words { done, doing, .. } = Words::of(action.resource.kind, action.class);
    let what = match (action.direction, outcome) {
        (Direction::Do, Outcome::Done) => format!("looked at once more and {done}"),
        (Direction::Do, Outcome::Voided) => format!("looked at once more and not {done}"),
        (Direction::Do, Outcome::Failed) => format!("{doing} it failed"),
        (Direction::Undo, Outcome::Done) => "started again".to_owned(),
        (Direction::Undo, Outcome::Voided) => "not started again".to_owned(),
        (Direction::Undo, Outcome::Failed) => "starting it again failed".to_owned(),
    };
    let time = words::time(action.changed_at.as_millisecond());
    let because = action.outcome.as_ref().map_or_else(String::new, |because| format!(": {because}"));
    let relapsed = action
        .relapsed
        .as_ref()
        .map(|(at, because)| format!("counts as a relapse since {}: {because}", words::time(at.as_millisecond())));
    [Some(format!("{what}, {time}{because}")), relapsed].into_iter().flatten().collect()
}
