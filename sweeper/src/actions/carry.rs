//! Carries one action from state to state.

use super::{
    ActError, Deadline, Executor, LEASE,
    ec2::{self, Called},
    facts::Facts,
    undo,
};
use crate::{
    api,
    inventory::FailureKind,
    store::{
        ANSWERED_WITHIN, Action, Answered, Direction,
        actions::{self, Told, Until},
        moment,
    },
};
use guards::{
    Refusal,
    action::{Event, State},
};
use heartbeat::NodeId;
use jiff::{SignedDuration, Timestamp};
use model::plan::{Action as Call, Plan};
use sea_orm::DatabaseTransaction;
use std::{future::Future, time::Duration};

/// An action that is not called within so long of its claim is not called at all: whoever approved it has turned to something else by then.
const CALLED_WITHIN: SignedDuration = SignedDuration::from_mins(15);
/// Between two tries of what failed for now.
const AGAIN: Duration = Duration::from_secs(5);
/// So often it is asked whether a node's answer has come.
const LISTEN: Duration = Duration::from_millis(250);
/// An answer is fresh for so long.
pub(super) const FRESH: Duration = Duration::from_secs(5);
/// What was done is written on the machine under these.
const TAGS: [&str; 4] = [
    "cloud-sweeper:stopped-by",
    "cloud-sweeper:stopped-at",
    "cloud-sweeper:stopped-because",
    "cloud-sweeper:stopped-by-plan",
];

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

    async fn carry(&self, action: &mut Action) -> Result<(), ActError> {
        loop {
            match action.state {
                State::Claimed => self.dry_run(action).await?,
                State::DryRun => match action.direction {
                    Direction::Do => self.ask_and_act(action).await?,
                    Direction::Undo => self.undo(action).await?,
                },
                // Within the two above alone: whoever finds such a row takes it over first, which makes it another one.
                State::Asking => return Err(ActError::TakenOver),
                State::Calling => {
                    self.tell(action, Event::Lost, Told::that("nobody knows whether the call left")).await?;
                }
                State::Awaiting | State::Reconciling => self.watch(action).await?,
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

    /// Whether an action has been tried for long enough; then it is over.
    async fn is_too_late(&self, action: &mut Action) -> Result<bool, ActError> {
        if self.store.now().await?.duration_since(action.claimed_at) < CALLED_WITHIN {
            return Ok(false);
        }
        let why = action.outcome.clone().unwrap_or_else(|| "no sweeper served".to_owned());
        self.refuse(action, format!("it could not be carried out within 15 minutes: {why}")).await?;
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

    async fn dry_run(&self, action: &mut Action) -> Result<(), ActError> {
        if self.is_too_late(action).await? {
            return Ok(());
        }
        let Some((_, call)) = self.planned(action).await? else {
            return self.refuse(action, "this version does not know how to carry out such a plan").await;
        };
        let account = &action.resource.account;
        if self.config.act.role(account).is_none() {
            let why = format!("a dry run: no role acts in account {account}; name one in `act.roles`");
            return self.refuse(action, why).await;
        }
        loop {
            let why = match self.sessions.acting(&self.config, &action.resource, &action.asked_by).await {
                Ok(client) => match ec2::dry_run(&client, call, &action.resource.id).await {
                    Called::Accepted { .. } => {
                        return self.tell(action, Event::DryRunAccepted, Told::default()).await;
                    }
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

    /// Reads what takes its time, asks the node, and acts on its answer.
    async fn ask_and_act(&self, action: &mut Action) -> Result<(), ActError> {
        let known = self.store.known(&action.plan).await?;
        let (Some(finding), Some(node)) = (&known.finding, &known.node) else {
            let why = if known.finding.is_none() { Refusal::PlanWithdrawn } else { Refusal::NoLiveSample };
            return self.refuse(action, why.to_string()).await;
        };
        let read = async {
            let accounts = self.sessions.account(&action.resource).await?;
            let machine = self.machine(&accounts, &action.resource).await?;
            let surroundings = match &machine {
                Some(machine) => Some(self.surroundings(&accounts, machine, node).await?),
                None => None,
            };
            Ok((accounts, surroundings))
        };
        let (accounts, Some(surroundings)) = self.held(action, read).await? else {
            return self.refuse(action, "EC2 does not know the machine any more").await;
        };
        let client = match self.sessions.acting(&self.config, &action.resource, &action.asked_by).await {
            Ok(client) => client,
            Err(why) => return self.refuse(action, why.to_string()).await,
        };
        let question = api::question().map_err(|_| ActError::Random)?;
        let asked_at = self.store.ask(&node.node_id, &question).await?;
        self.tell(action, Event::Asked, Told::default()).await?;
        let Some(answered) = self.answer(action, &node.node_id, &question, asked_at).await? else {
            return self.refuse(action, Refusal::NoLiveSample.to_string()).await;
        };
        let age = self.store.now().await?.duration_since(answered.received_at);
        let age = Duration::try_from(age).unwrap_or_default();
        let deadline = Deadline::after(FRESH.saturating_sub(age));
        let Some((plan, call)) = self.planned(action).await? else { return Err(ActError::TakenOver) };
        // The second dry run opens the way that the call takes: it need not be waited for between the last check of the deadline and the call's leaving.
        let (machine, dry_run) =
            futures::join!(self.machine(&accounts, &action.resource), ec2::dry_run(&client, call, &action.resource.id));
        let Some(machine) = machine? else {
            return self.refuse(action, "EC2 does not know the machine any more").await;
        };
        if !matches!(dry_run, Called::Accepted { .. }) {
            return self.refuse(action, "EC2 would not do it any more, by its own dry run").await;
        }
        // It may be disputed, or another one, by now.
        let Some(node) = self.store.node(&node.node_id).await? else {
            return self.refuse(action, Refusal::NoLiveSample.to_string()).await;
        };
        let live = self.live(&action.plan, &node, finding, (&question, &answered)).await?;
        let policy = self.policy()?;
        let on = &action.resource;
        let is_switched_on = self.config.act.is_switched_on(&on.account, &on.location);
        let facts = Facts { policy: &policy, machine: &machine, surroundings: &surroundings, live, is_switched_on };
        // The database may have been restored since.
        self.witness.check(&self.store, &self.holder).await?;
        let transaction = self.store.begin_deciding().await?;
        let known = moment::known(&transaction, &action.plan).await?;
        let decided = facts.decide(&known);
        let (event, told) = match decided {
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
        self.commit(transaction, action, event, &told).await?;
        if action.state != State::Calling {
            return Ok(());
        }
        let called = ec2::call(&client, call, &action.resource.id, deadline).await;
        self.called(action, called).await?;
        if action.state == State::Awaiting {
            self.write_on_machine(&client, action, &plan).await;
        }
        Ok(())
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

    /// What the node answers, if it does.
    async fn answer(
        &self,
        action: &Action,
        node: &NodeId,
        question: &str,
        asked_at: Timestamp,
    ) -> Result<Option<Answered>, ActError> {
        let listening = async {
            loop {
                if let Some(answered) = self.store.answer_to(node, question, asked_at).await? {
                    return Ok(answered);
                }
                tokio::time::sleep(LISTEN).await;
            }
        };
        let answered = tokio::time::timeout(ANSWERED_WITHIN, self.held(action, listening)).await;
        answered.map_or(Ok(None), |answered| answered.map(Some))
    }

    pub(super) async fn called(&self, action: &mut Action, called: Called) -> Result<(), ActError> {
        match called {
            Called::Accepted { request_id } => {
                self.tell(action, Event::Accepted, Told { request_id, ..Told::default() }).await
            }
            Called::Rejected { why, request_id, for_now } => {
                let again = if for_now { undo::again(action.direction, action.attempt) } else { None };
                let next = again.map(|wait| format!("; it is tried again in {}", undo::in_words(wait)));
                let outcome = format!("EC2 refused it: {why}{}", next.unwrap_or_default());
                let told = Told { request_id, again, ..Told::that(outcome) };
                self.tell(action, Event::Rejected, told).await
            }
            Called::Lost { why } => self.tell(action, Event::Lost, Told::that(format!("no answer came: {why}"))).await,
            Called::NotSent => {
                let told =
                    Told::that("the call did not leave within 5 s of the node's answer, so it does not leave at all");
                self.tell(action, Event::NotSent, told).await
            }
        }
    }

    /// Who, when, why and by which plan, for whoever finds the machine stopped. Without it the machine is stopped all the same.
    async fn write_on_machine(&self, client: &aws_sdk_ec2::Client, action: &Action, plan: &Plan) {
        let at = action.called_at.unwrap_or(action.changed_at);
        let values = [action.asked_by.join(","), at.to_string(), plan.content().title.clone(), action.plan.to_string()];
        // EC2 takes 256 characters.
        let cut = values.map(|value| value.chars().take(256).collect::<String>());
        let tags: Vec<(&str, String)> = TAGS.into_iter().zip(cut).collect();
        if let Err(why) = ec2::tag(client, &action.resource.id, &tags).await {
            tracing::warn!(plan = %action.plan, %why, "what was done could not be written on the machine");
        }
    }
}
