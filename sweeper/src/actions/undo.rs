//! Undoes an action: nobody works on a machine that is stopped, so that no node is asked.

use super::{ActError, Deadline, Executor, carry::FRESH, provider::gone};
use crate::store::{
    Action, Direction, Doer,
    actions::{self, Told},
};
use guards::{
    act::{Undoing, Wanted, may_undo},
    action::{Event, State},
};
use sea_orm::DatabaseTransaction;
use std::time::Duration;

/// Wait before the second try where its provider has no room for a machine; each one after it is twice as long.
const FIRST_WAIT: Duration = Duration::from_secs(15);
/// Shorter than the time that a try may take.
const LONGEST_WAIT: Duration = Duration::from_mins(10);
/// Ten hours, by then.
const MOST_TRIES: u32 = 65;

/// After how long a machine is tried to be started once more; none if it is not. Nothing but an undo is.
pub(super) fn again(direction: Direction, attempt: u32) -> Option<Duration> {
    let doubled = FIRST_WAIT.saturating_mul(1 << attempt.saturating_sub(1).min(10));
    (direction == Direction::Undo && attempt < MOST_TRIES).then(|| doubled.min(LONGEST_WAIT))
}

/// `30 s`, `4 min`.
pub(super) fn in_words(wait: Duration) -> String {
    let seconds = wait.as_secs();
    if seconds < 60 { format!("{seconds} s") } else { format!("{} min", seconds / 60) }
}

impl Executor {
    /// Has a machine started again on which work had begun before it was off, in the transaction that says that it is: nobody need be there for it.
    pub(super) async fn start_again(&self, transaction: &DatabaseTransaction, action: &Action) -> Result<(), ActError> {
        let by = Doer { who: self.holder.clone(), way: "service" };
        Ok(actions::undo_for_work(transaction, &action.plan, &by).await?)
    }

    /// Has a failed try followed by another one, in the transaction that says that it is.
    pub(super) async fn try_again(
        &self,
        transaction: &DatabaseTransaction,
        action: &Action,
        wait: Duration,
    ) -> Result<(), ActError> {
        Ok(actions::undo_again(transaction, action, wait).await?)
    }

    pub(super) async fn undo(&self, action: &mut Action) -> Result<(), ActError> {
        let asked = self.sessions.asked(&action.resource).await?;
        let Some(state) = asked.state(&action.resource).await? else {
            return self.refuse(action, gone(action)).await;
        };
        let client = match self.sessions.acts(&self.config, &action.resource, &action.asked_by).await {
            Ok(client) => client,
            Err(why) => return self.refuse(action, why.to_string()).await,
        };
        self.tell(action, Event::Asked, Told::default()).await?;
        let deadline = Deadline::after(FRESH);
        let before = self.store.actions_on(&action.plan).await?;
        let done = before.iter().find(|one| one.direction == Direction::Do && one.may_have_been_done());
        let transaction = self.store.begin_deciding().await?;
        let enrolled = self.store.approvers().await?;
        let wanted = match action.asked_by.first() {
            Some(who) if enrolled.iter().any(|one| one.name == *who) => Wanted::By(who),
            // As the same transaction noted that wanted it.
            None if done.is_some_and(|done| done.relapsed.is_some()) => Wanted::ForWork,
            _ => Wanted::Unknown,
        };
        let undoing = Undoing { state: state.word(), was_done: done.is_some(), wanted };
        let refused = may_undo(&undoing).err();
        let event = if refused.is_some() { Event::Refused } else { Event::MayAct };
        let told = Told { outcome: refused.map(|refused| refused.to_string()), ..Told::default() };
        self.commit(transaction, action, event, &told).await?;
        if action.state != State::Calling {
            return Ok(());
        }
        let Some((_, call)) = self.planned(action).await? else { return Err(ActError::TakenOver) };
        let called = client.call(call, action, deadline).await;
        self.called(action, called).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_tried_to_be_started_for_ten_hours_and_none_is_stopped_twice() {
        let waits: Vec<_> = (1..).map_while(|attempt| again(Direction::Undo, attempt)).collect();
        assert_eq!(waits[..3], [15, 30, 60].map(Duration::from_secs));
        assert!(waits.iter().all(|wait| *wait <= Duration::from_mins(10)));
        let hours = waits.iter().sum::<Duration>().as_secs() / 360;
        assert!((95..=105).contains(&hours), "{hours} tenths of an hour");
        assert!((0..100).all(|attempt| again(Direction::Do, attempt).is_none()));
        assert_eq!(
            waits.iter().take(5).map(|wait| in_words(*wait)).collect::<Vec<_>>(),
            ["15 s", "30 s", "1 min", "2 min", "4 min"]
        );
    }
}
