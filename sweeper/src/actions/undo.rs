//! Undoes an action: nobody works on a machine that is stopped, so that no node is asked.

use super::{ActError, Deadline, Executor, carry::FRESH, ec2};
use crate::store::{Action, Direction, actions::Told};
use guards::{
    act::{Undoing, may_undo},
    action::{Event, State},
};

impl Executor {
    pub(super) async fn undo(&self, action: &mut Action) -> Result<(), ActError> {
        let accounts = self.sessions.account(&action.resource).await?;
        let Some(state) = self.state(&accounts, &action.resource).await? else {
            return self.refuse(action, "EC2 does not know the machine any more").await;
        };
        let client = match self.sessions.acting(&self.config, &action.resource, &action.asked_by).await {
            Ok(client) => client,
            Err(why) => return self.refuse(action, why.to_string()).await,
        };
        self.tell(action, Event::Asked, Told::default()).await?;
        let deadline = Deadline::after(FRESH);
        let was_done = self
            .store
            .actions_on(&action.plan)
            .await?
            .iter()
            .any(|one| one.direction == Direction::Do && one.state == State::Done);
        let transaction = self.store.begin_deciding().await?;
        let enrolled = self.store.approvers().await?;
        let asked_by = action.asked_by.first().filter(|who| enrolled.iter().any(|one| one.name == **who));
        let undoing = Undoing { state: state.word(), was_done, asked_by: asked_by.map(String::as_str) };
        let refused = may_undo(&undoing).err();
        let event = if refused.is_some() { Event::Refused } else { Event::MayAct };
        let told = Told { outcome: refused.map(|refused| refused.to_string()), ..Told::default() };
        self.commit(transaction, action, event, &told).await?;
        if action.state != State::Calling {
            return Ok(());
        }
        let Some((_, call)) = self.planned(action).await? else { return Err(ActError::TakenOver) };
        let called = ec2::call(&client, call, &action.resource.id, deadline).await;
        self.called(action, called).await
    }
}
