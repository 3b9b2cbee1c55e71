//! Looks whether what was called has come about.

use super::{
    ActError, Executor,
    after::Ran,
    compute_engine::is_capacity,
    job,
    member::LEAVING,
    provider::{self, Asked, gone},
    undo,
    words::Words,
};
use crate::{
    inventory::aws,
    store::{
        Action, Direction,
        actions::{Told, Until},
    },
};
use guards::action::{Event, State};
use jiff::SignedDuration;
use model::{
    ResourceKind,
    plan::{Action as Call, ActionClass, Plan},
};
use std::time::Duration;

/// So often a machine is read until it is where it was to be.
const WATCH: Duration = Duration::from_secs(3);
/// After a lost answer a machine that has not begun to change for so long was not reached: longer than any call may leave late and take effect.
const NOT_REACHED: SignedDuration = SignedDuration::from_mins(2);

impl Executor {
    /// Looks until the machine is where it was to be, or the time for that is over.
    pub(super) async fn watch(&self, action: &mut Action) -> Result<(), ActError> {
        let Some((plan, call)) = self.planned(action).await? else {
            return self.tell(action, Event::TimedOut, Told::that("this version does not know such a plan")).await;
        };
        let (wanted, most_s) = call.ends_in();
        let it = Words::of(action.resource.kind, action.class).it;
        let since = action.called_at.unwrap_or(action.changed_at);
        let asked = self.sessions.asked(&action.resource).await?;
        loop {
            let now = self.store.now().await?;
            let waited = now.duration_since(since);
            let state = match self.held(action, self.read_state(&asked, action, &plan, call)).await {
                Err(ActError::Provider { what, why }) => Err(format!("{what}: {why}")),
                read => Ok(read?),
            };
            let is_lost = action.state == State::Reconciling;
            match state {
                Ok(Some(state)) if state == wanted => {
                    // Of a job the reason that Batch gives names the plan.
                    let is_known = action.resource.kind == ResourceKind::BatchJob;
                    let whether = if is_lost && !is_known { "; whether by this call, nobody knows" } else { "" };
                    let outcome = format!("{it} is {wanted}{whether}");
                    return self.tell(action, Event::Ended, self.with_what_ran(action, outcome).await).await;
                }
                Ok(None) => {
                    return self.tell(action, Event::TimedOut, Told::that(gone(action))).await;
                }
                // It goes nowhere from there.
                Ok(Some(state)) if action.resource.kind == ResourceKind::BatchJob && job::has_ended(&state) => {
                    let told = format!("{it} has ended otherwise: it is {state}");
                    return self.tell(action, Event::TimedOut, Told::that(told)).await;
                }
                // It has not begun to change.
                Ok(Some(state)) if is_lost && !is_on_its_way(&state) && waited >= NOT_REACHED => {
                    let told =
                        format!("the call has not reached {}: {it} is {state}", provider::called(&action.resource));
                    return self.tell(action, Event::TimedOut, Told::that(told)).await;
                }
                Ok(Some(state)) if waited >= SignedDuration::from_secs(i64::from(most_s)) => {
                    let later = match (action.direction, call.class()) {
                        (Direction::Do, ActionClass::Reversible) => {
                            "; should it get there later, undoing this starts it again"
                        }
                        (Direction::Do, ActionClass::Destructive) | (Direction::Undo, _) => "",
                    };
                    let minutes = most_s / 60;
                    let told = format!("{it} is {state}, and not {wanted}, after {minutes} minutes{later}");
                    return self.tell(action, Event::TimedOut, Told::that(told)).await;
                }
                Ok(Some(_)) => {
                    if let Some(told) = self.ended_with(&asked, action).await? {
                        return self.tell(action, Event::TimedOut, told).await;
                    }
                }
                Err(why) => tracing::warn!(plan = %action.plan, why, "whether an action has ended cannot be seen"),
            }
            self.wait(action, WATCH).await?;
        }
    }
}

impl Executor {
    /// Where a resource is, in the words of [`model::plan::Action::ends_in`].
    async fn read_state(
        &self,
        asked: &Asked,
        action: &Action,
        plan: &Plan,
        call: Call,
    ) -> Result<Option<String>, ActError> {
        let on = &action.resource;
        match (asked, on.kind) {
            (Asked::Aws(_), ResourceKind::Instance) if call == Call::EndMember => {
                self.member_state(asked, on, plan).await.map(Some)
            }
            (Asked::Aws(accounts), ResourceKind::Address) => self.address_state(accounts, on).await.map(Some),
            (Asked::Aws(accounts), ResourceKind::BatchJob) => self.job_state(accounts, action).await,
            (Asked::Aws(accounts), ResourceKind::Volume) => self.volume_state(accounts, on).await.map(Some),
            _ => Ok(asked.state(on).await?.map(|state| state.to_string())),
        }
    }

    /// What a call came to that was taken and could not be carried out; none while it goes on, or if it went well. Of what cannot be read another try is made.
    async fn ended_with(&self, asked: &Asked, action: &Action) -> Result<Option<Told>, ActError> {
        let (code, why) = match self.held(action, asked.ended_with(action)).await {
            Ok(Some(ended)) => ended,
            Ok(None) => return Ok(None),
            Err(ActError::Provider { what, why }) => {
                tracing::warn!(plan = %action.plan, %why, what, "whether a call was carried out cannot be seen");
                return Ok(None);
            }
            Err(other) => return Err(other),
        };
        let again = if is_capacity(&code) { undo::again(action.direction, action.attempt) } else { None };
        let next = again.map(|wait| format!("; it is tried again in {}", undo::in_words(wait))).unwrap_or_default();
        let by = provider::called(&action.resource);
        Ok(Some(Told { again, ..Told::that(format!("{by} could not carry it out: {code}: {why}{next}")) }))
    }

    /// How an action ended, with what ran on a machine that was stopped until it was off.
    async fn with_what_ran(&self, action: &Action, outcome: String) -> Told {
        if action.resource.kind == ResourceKind::Volume {
            return Told::that(format!(
                "{outcome}; its snapshot stays, with the tag `{}`, and a volume that is made of it has another id",
                aws::PLAN_TAG
            ));
        }
        if action.resource.kind == ResourceKind::BatchJob {
            return Told::that(format!("{outcome}, and AWS Batch does not try it again"));
        }
        if action.direction == Direction::Undo || action.resource.kind != ResourceKind::Instance {
            return Told::that(outcome);
        }
        match self.ran_after(action).await {
            Ok(None) => Told::that(outcome),
            Ok(Some(Ran { what, is_work })) => {
                if action.class == ActionClass::Destructive {
                    let told = format!(
                        "{outcome}. After its agent had answered that nothing ran, and before it was off: {what}. Nothing brings that back"
                    );
                    return Told { until_off: Some(Until::Ran), ..Told::that(told) };
                }
                // Where nobody knows whether the call left, somebody else may have stopped it, and wants it so.
                let (next, ran) = match is_work && action.state != State::Reconciling {
                    true => ("It is started again", Until::Worked),
                    false => ("If that was more than its own shutdown, start it again", Until::Ran),
                };
                let outcome = format!(
                    "{outcome}. After its agent had answered that nothing ran, and before it was off: {what}. {next}"
                );
                Told { until_off: Some(ran), ..Told::that(outcome) }
            }
            Err(error) => {
                tracing::warn!(plan = %action.plan, error = %crate::chain(&error), "what ran on a machine until it was off cannot be read");
                Told::that(format!("{outcome}; what ran on it until it was off cannot be read"))
            }
        }
    }
}

fn is_on_its_way(state: &str) -> bool {
    // The last is Google's, of a machine that shuts down in good order first.
    matches!(state, "stopping" | "pending" | "deleting" | "shutting-down" | LEAVING | job::TERMINATING | "PENDING_STOP")
}
