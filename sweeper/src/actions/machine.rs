//! Stops a machine, or ends it in its group: asks its node whether somebody works there, and acts on its answer.

mod facts;

use super::{
    ActError, Executor,
    carry::would_not,
    ec2::{self, Called, Clients},
    facts::Facts,
    provider::{Acting, Asked, gone},
};
use crate::{
    api,
    store::{ANSWERED_WITHIN, Action, Answered, actions::Told},
};
use facts::Now;
use guards::{
    Refusal,
    action::{Event, State},
};
use heartbeat::NodeId;
use jiff::Timestamp;
use model::plan::{Action as Call, Plan};
use std::time::Duration;

/// So often it is asked whether a node's answer has come.
const LISTEN: Duration = Duration::from_millis(250);
/// What is asked in the place of a second dry run is not answered.
const NOT_HEARD: &str = "Auto Scaling does not hear the role that acts any more";
/// What was done is written on the machine under these.
const TAGS: [&str; 4] = [
    "cloud-sweeper:stopped-by",
    "cloud-sweeper:stopped-at",
    "cloud-sweeper:stopped-because",
    "cloud-sweeper:stopped-by-plan",
];

impl Executor {
    /// Reads what takes its time, asks the node, and acts on its answer.
    pub(super) async fn ask_and_act(&self, action: &mut Action) -> Result<(), ActError> {
        let known = self.store.known(&action.plan).await?;
        let (Some(finding), Some(node)) = (&known.finding, &known.node) else {
            let why = if known.finding.is_none() { Refusal::PlanWithdrawn } else { Refusal::NoLiveSample };
            return self.refuse(action, why.to_string()).await;
        };
        let read = async {
            let asked = self.sessions.asked(&action.resource).await?;
            let machine = asked.machine(&action.resource).await?;
            let surroundings = match &machine {
                Some(machine) => Some(self.surroundings(&asked, machine, &action.resource, node).await?),
                None => None,
            };
            Ok((asked, surroundings))
        };
        let (asked, Some(surroundings)) = self.held(action, read).await? else {
            return self.refuse(action, gone(action)).await;
        };
        let client = match self.sessions.acts(&self.config, &action.resource, &action.asked_by).await {
            Ok(client) => client,
            Err(why) => return self.refuse(action, why.to_string()).await,
        };
        let Some((question, answered)) = self.asked(action, &node.node_id).await? else {
            return self.refuse(action, Refusal::NoLiveSample.to_string()).await;
        };
        let deadline = self.while_fresh(answered.received_at).await?;
        let Some((plan, call)) = self.planned(action).await? else { return Err(ActError::TakenOver) };
        // The second dry run opens the way that the call takes: it need not be waited for between the last check of the deadline and the call's leaving.
        let of_group = async {
            match &asked {
                Asked::Aws(accounts) => self.group(accounts, &action.resource, plan.group()).await,
                Asked::Google(_) => Ok(None),
            }
        };
        let (machine, group, dry_run) = futures::join!(
            Box::pin(asked.machine(&action.resource)),
            Box::pin(of_group),
            Box::pin(client.dry_run(call, &action.resource))
        );
        let Some(machine) = machine? else {
            return self.refuse(action, gone(action)).await;
        };
        let group = group?;
        if group.is_none() && call == Call::EndMember {
            return self.refuse(action, "its Auto Scaling group is there no more").await;
        }
        if !matches!(dry_run, Called::Accepted { .. }) {
            let why = if call.has_dry_run() { would_not(&action.resource) } else { NOT_HEARD.to_owned() };
            return self.refuse(action, why).await;
        }
        // It may be disputed, or another one, by now.
        let Some(node) = self.store.node(&node.node_id).await? else {
            return self.refuse(action, Refusal::NoLiveSample.to_string()).await;
        };
        let live = self.live(&action.plan, &node, finding, (&question, &answered)).await?;
        let policy = self.policy()?;
        let facts = Facts {
            policy: &policy,
            alike: surroundings.machines,
            is_own: surroundings.is_own,
            is_switched_on: self.is_switched_on(&action.resource, call),
        };
        let now = Now { machine: &machine, group, surroundings: &surroundings, live };
        self.decide(action, |known| now.decide(&facts, known)).await?;
        if action.state != State::Calling {
            return Ok(());
        }
        let called = Box::pin(client.call(call, action, deadline)).await;
        self.called(action, called).await?;
        // On a machine of Google's nothing is written: labels are set all at once, which is more right than a note is worth. Who ended a machine its group's activities and CloudTrail say:
        // nobody finds it any more.
        if let (State::Awaiting, Acting::Ec2(client)) = (action.state, &client)
            && call != Call::EndMember
        {
            self.write_on_machine(client, action, &plan).await;
        }
        Ok(())
    }

    /// Asks the agent of a node a question of this action's own: that, and the answer to it; none if none comes.
    pub(super) async fn asked(
        &self,
        action: &mut Action,
        node: &NodeId,
    ) -> Result<Option<(String, Answered)>, ActError> {
        let question = api::question().map_err(|_| ActError::Random)?;
        let asked_at = self.store.ask(node, &question).await?;
        self.tell(action, Event::Asked, Told::default()).await?;
        let answered = self.answer(action, node, &question, asked_at).await?;
        Ok(answered.map(|answered| (question, answered)))
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

    /// Who, when, why and by which plan, for whoever finds the machine stopped. Without it the machine is stopped all the same.
    async fn write_on_machine(&self, client: &Clients, action: &Action, plan: &Plan) {
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
