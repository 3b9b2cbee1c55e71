//! Carries one action from state to state.

use super::{ActError, Deadline, Executor, LEASE, ec2::Called, facts::Decided, provider, undo, words::Words};
use crate::{
    inventory::FailureKind,
    store::{
        Action, Direction,
        actions::{self, Told, Until},
        moment::{self, Known},
    },
};
use guards::action::{Event, State};
use jiff::{SignedDuration, Timestamp};
use model::{
    Provider, ResourceKey, ResourceKind,
    plan::{Action as Call, Plan},
};
use sea_orm::DatabaseTransaction;
use std::{future::Future, time::Duration};

/// An action that is not called within so long of its claim is not called at all: whoever approved it has turned to something else by then.
const CALLED_WITHIN: SignedDuration = SignedDuration::from_mins(15);
/// The same where a snapshot has to be whole before; the plan ends no later.
const COPIED_WITHIN: SignedDuration = SignedDuration::from_hours(24);
/// Between two tries of what failed for now.
const AGAIN: Duration = Duration::from_secs(5);
/// An answer is fresh for so long.
pub(super) const FRESH: Duration = Duration::from_secs(5);
/// The second dry run says otherwise than the first.
pub(super) const WOULD_NOT: &str = "EC2 would not do it any more, by its own dry run";

/// The same of a machine, whoever has it.
pub(super) fn would_not(on: &ResourceKey) -> String {
    match on.provider {
        Provider::Gcp => "Google Cloud would not do it any more, by what it says of the right to it".to_owned(),
        Provider::Aws | Provider::OnPrem => WOULD_NOT.to_owned(),
    }
}

impl Executor {
    /// Carries an action as far as it goes now.
    pub(super) async fn carry_out(&self, mut action: Action) {
        let (plan, on) = (action.plan.to_string(), action.resource.to_string());
        tracing::info!(plan, resource = on, state = action.state.as_str(), "carrying on an action");
        match self.carry(&mut action).await {
            Ok(()) => {
                let outcome = action.outcome.as_deref().unwrap_or_default();
                tracing::info!(plan, resource = on, state = action.state.as_str(), outcome, "an action has ended");
            }
            Err(why @ (ActError::Stopping | ActError::TakenOver)) => tracing::info!(plan, resource = on, "{why}"),
            Err(why) => {
                let why = crate::chain(&why);
                tracing::error!(
                    plan,
                    resource = on,
                    state = action.state.as_str(),
                    error = why,
                    "an action is not carried on now; it is taken up again"
                );
                if let Err(error) = self.store.note_action(&action, &why).await {
                    tracing::warn!(plan, error = %crate::chain(&error), "what an action waits for cannot be noted");
                }
            }
        }
    }

    /// Each step is on the heap: the calls that it may make would take more of the stack than a thread has, all together.
    async fn carry(&self, action: &mut Action) -> Result<(), ActError> {
        loop {
            match action.state {
                State::Claimed => Box::pin(self.dry_run(action)).await?,
                State::DryRun => match (action.direction, action.resource.kind) {
                    (Direction::Do, ResourceKind::Address) => Box::pin(self.release(action)).await?,
                    (Direction::Do, ResourceKind::Volume) => Box::pin(self.delete_volume(action)).await?,
                    (Direction::Do, ResourceKind::BatchJob) => Box::pin(self.terminate_job(action)).await?,
                    (Direction::Do, _) => Box::pin(self.ask_and_act(action)).await?,
                    (Direction::Undo, _) => Box::pin(self.undo(action)).await?,
                },
                // Within the two above alone: whoever finds such a row takes it over first, which makes it another one.
                State::Asking => return Err(ActError::TakenOver),
                State::Calling => {
                    self.tell(action, Event::Lost, Told::that("nobody knows whether the call left")).await?;
                }
                State::Awaiting | State::Reconciling => Box::pin(self.watch(action)).await?,
                State::Done | State::Voided | State::Failed => return Ok(()),
            }
        }
    }

    /// What a plan's action calls; of several the first, since each plan has one so far.
    pub(super) async fn planned(&self, action: &Action) -> Result<Option<(Plan, Call)>, ActError> {
        let Some(plan) = self.store.sealed_plan(&action.plan).await? else { return Ok(None) };
        let calls = match action.direction {
            Direction::Do => &plan.content().actions,
            Direction::Undo => &plan.content().reversal,
        };
        let [call] = calls.as_slice() else { return Ok(None) };
        Ok(Some((plan.clone(), *call)))
    }

    /// Writes what happened to an action, and tells people if it is over.
    pub(super) async fn tell(&self, action: &mut Action, event: Event, told: Told) -> Result<(), ActError> {
        self.commit(self.store.begin_write().await?, action, event, &told).await
    }

    pub(super) async fn refuse(&self, action: &mut Action, why: impl Into<String>) -> Result<(), ActError> {
        self.tell(action, Event::Refused, Told::that(why)).await
    }

    /// Waits, and holds the action meanwhile.
    pub(super) async fn wait(&self, action: &Action, length: Duration) -> Result<(), ActError> {
        self.held(action, async {
            tokio::time::sleep(length).await;
            Ok(())
        })
        .await
    }

    /// Does what takes its time, and holds the action meanwhile.
    pub(super) async fn held<T>(
        &self,
        action: &Action,
        work: impl Future<Output = Result<T, ActError>>,
    ) -> Result<T, ActError> {
        tokio::pin!(work);
        loop {
            if !self.store.hold_action(action, LEASE).await? {
                return Err(ActError::TakenOver);
            }
            tokio::select! {
                done = &mut work => return done,
                () = self.stop.cancelled() => return Err(ActError::Stopping),
                () = tokio::time::sleep(LEASE / 3) => {}
            }
        }
    }

    /// Until when a call may leave that rests on an answer which came then, by the database's clock.
    pub(super) async fn while_fresh(&self, received_at: Timestamp) -> Result<Deadline, ActError> {
        let age = async { Ok::<_, ActError>(self.store.now().await?.duration_since(received_at)) };
        Deadline::of_age(FRESH, age).await
    }

    /// Whether an action has been tried for long enough; then it is over.
    pub(super) async fn is_too_late(&self, action: &mut Action) -> Result<bool, ActError> {
        // A snapshot takes its time.
        let (within, words) = match action.resource.kind {
            ResourceKind::Volume => (COPIED_WITHIN, "a day"),
            _ => (CALLED_WITHIN, "15 minutes"),
        };
        if self.store.now().await?.duration_since(action.claimed_at) < within {
            return Ok(false);
        }
        let why = action.outcome.clone().unwrap_or_else(|| "no sweeper served".to_owned());
        self.refuse(action, format!("it could not be carried out within {words}: {why}")).await?;
        Ok(true)
    }

    /// Waits before the next try of what failed for now; false if it has been tried for long enough, and then the action is over.
    async fn may_try_again(&self, action: &mut Action, why: &str) -> Result<bool, ActError> {
        tracing::warn!(plan = %action.plan, why, "an action waits");
        self.store.note_action(action, why).await?;
        action.outcome = Some(why.to_owned());
        if self.is_too_late(action).await? {
            return Ok(false);
        }
        self.wait(action, AGAIN).await?;
        Ok(true)
    }

    /// Why nobody may act where a resource is; none if somebody may.
    fn nobody_acts(&self, on: &ResourceKey) -> Option<String> {
        let (act, account) = (&self.config.act, &on.account);
        match on.provider {
            Provider::Gcp if act.project(account).is_none() => {
                Some(format!("nobody acts in project {account}; name who does in `act.projects`"))
            }
            Provider::Aws | Provider::OnPrem if act.role(account).is_none() => {
                Some(format!("no role acts in account {account}; name one in `act.roles`"))
            }
            Provider::Gcp | Provider::Aws | Provider::OnPrem => None,
        }
    }

    async fn dry_run(&self, action: &mut Action) -> Result<(), ActError> {
        if self.is_too_late(action).await? {
            return Ok(());
        }
        let Some((_, call)) = self.planned(action).await? else {
            return self.refuse(action, "this version does not know how to carry out such a plan").await;
        };
        if let Some(nobody) = self.nobody_acts(&action.resource) {
            return self.refuse(action, format!("a dry run: {nobody}")).await;
        }
        loop {
            let why = match self.sessions.acts(&self.config, &action.resource, &action.asked_by).await {
                Ok(client) => match Box::pin(client.dry_run(call, &action.resource)).await {
                    Called::Accepted { .. } => {
                        return self.tell(action, Event::DryRunAccepted, Told::default()).await;
                    }
                    // Too many asked at once.
                    Called::Rejected { why, for_now: true, .. } => why,
                    Called::Rejected { why, request_id, .. } => {
                        let told = Told { request_id, ..Told::that(format!("its dry run was refused: {why}")) };
                        return self.tell(action, Event::Rejected, told).await;
                    }
                    Called::Lost { why } => why,
                    Called::NotSent => "the dry run did not leave".to_owned(),
                },
                Err(why) if matches!(why.kind, FailureKind::Denied | FailureKind::Credentials) => {
                    return self.tell(action, Event::Rejected, Told::that(why.to_string())).await;
                }
                Err(why) => why.to_string(),
            };
            if !self.may_try_again(action, &why).await? {
                return Ok(());
            }
        }
    }

    /// Decides by everything that is known, and writes what was decided in the transaction that it was known in.
    pub(super) async fn decide(
        &self,
        action: &mut Action,
        decide: impl FnOnce(&Known) -> Option<Decided>,
    ) -> Result<(), ActError> {
        // The database may have been restored since.
        self.witness.check(&self.store, &self.holder).await?;
        let transaction = self.store.begin_deciding().await?;
        let known = moment::known(&transaction, &action.plan).await?;
        let (event, told) = match decide(&known) {
            None => (Event::Refused, Told::that("what it rests on cannot be read")),
            Some(decided) => {
                let event = if decided.refused.is_some() { Event::Refused } else { Event::MayAct };
                let outcome = decided.refused.as_ref().map(|refused| match decided.is_rehearsed {
                    true => format!("a dry run: nothing stands in the way but that {refused}"),
                    false => refused.to_string(),
                });
                (event, Told { outcome, rests_on: Some(decided.rests_on), ..Told::default() })
            }
        };
        self.commit(transaction, action, event, &told).await
    }

    pub(super) async fn commit(
        &self,
        transaction: DatabaseTransaction,
        action: &mut Action,
        event: Event,
        told: &Told,
    ) -> Result<(), ActError> {
        if !actions::tell(&transaction, action, event, told, LEASE).await? {
            return Err(ActError::TakenOver);
        }
        // Of tries that fail for the same want the first is told, and the last.
        if action.state.is_final() && (told.again.is_none() || action.attempt == 1) {
            self.announce(&transaction, action, told).await?;
        }
        if action.state == State::Done && told.until_off == Some(Until::Worked) {
            self.start_again(&transaction, action).await?;
        }
        if let Some(wait) = told.again.filter(|_| action.state == State::Failed) {
            self.try_again(&transaction, action, wait).await?;
        }
        transaction.commit().await.map_err(|source| crate::store::StoreError::Database {
            doing: "commit what happened to an action",
            source,
        })?;
        Ok(())
    }

    pub(super) async fn called(&self, action: &mut Action, called: Called) -> Result<(), ActError> {
        match called {
            Called::Accepted { request_id } => {
                self.tell(action, Event::Accepted, Told { request_id, ..Told::default() }).await
            }
            Called::Rejected { why, request_id, for_now } => {
                let again = if for_now { undo::again(action.direction, action.attempt) } else { None };
                let next = again.map(|wait| format!("; it is tried again in {}", undo::in_words(wait)));
                let outcome =
                    format!("{} refused it: {why}{}", provider::called(&action.resource), next.unwrap_or_default());
                let told = Told { request_id, again, ..Told::that(outcome) };
                self.tell(action, Event::Rejected, told).await
            }
            Called::Lost { why } => self.tell(action, Event::Lost, Told::that(format!("no answer came: {why}"))).await,
            Called::NotSent => {
                let of = Words::of(action.resource.kind, action.class).last_said;
                let told =
                    Told::that(format!("the call did not leave within 5 s of {of}, so it does not leave at all"));
                self.tell(action, Event::NotSent, told).await
            }
        }
    }
}
