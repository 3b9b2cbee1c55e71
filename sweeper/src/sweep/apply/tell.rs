//! Writes the messages by which people are told of what a sweep changes, in its transaction.

use super::{Context, SweepError};
use crate::{
    approvals,
    exemptions::Exemptions,
    findings::{Finding, audience, end_notice, notice, plan_notice},
    inventory::Inventory,
    outbox::{can_update, destination},
    reconcile::{Event, EventId, EventKind},
    routes,
    store::{
        self, SLACK, StoreError, exemptions, history,
        outbox::{self, Before, Destination},
    },
};
use guards::policy::Policy;
use jiff::{SignedDuration, Timestamp};
use model::ResourceKey;
use notifier::message::{Ending, FindingNotice};
use sea_orm::DatabaseTransaction;
use std::collections::{BTreeMap, HashMap};

/// Whatever opens anew so soon continues the thread of before, and a plan that is made anew so soon is no news.
const COOL_DOWN: SignedDuration = SignedDuration::from_hours(24);

/// What a sweep knows beyond a finding when it tells of it.
pub(super) struct Known<'a> {
    context: &'a Context,
    left_alone: &'a Exemptions,
    /// None if it cannot be read: then nobody knows who may approve what.
    policy: Option<Policy>,
    /// Of all that it listed; of nothing where nobody asks for tags.
    tags: HashMap<&'a ResourceKey, &'a BTreeMap<String, String>>,
}

impl<'a> Known<'a> {
    pub(super) fn of(context: &'a Context, left_alone: &'a Exemptions, inventory: &'a Inventory) -> Self {
        let has_teams = !context.config.slack.teams.is_empty();
        let policy = match context.config.approvals.policy() {
            Ok((policy, _)) => Some(policy),
            Err(error) => {
                tracing::warn!(error = %crate::chain(&error), "the policy cannot be read, so that nobody may approve anything");
                None
            }
        };
        Self { context, left_alone, policy, tags: if has_teams { inventory.tags() } else { HashMap::new() } }
    }

    /// Says in a notice that asks about a plan if nobody can approve that.
    async fn asked(
        &self,
        transaction: &DatabaseTransaction,
        finding: &Finding,
        notice: &mut FindingNotice,
    ) -> Result<(), StoreError> {
        if let (Some(plan), Some(policy), Some(ask)) = (&finding.plan, &self.policy, &mut notice.ask) {
            let tags_before = history::tags_before(transaction, &finding.id, &finding.resource).await?;
            let config = &self.context.config.approvals;
            ask.nobody_may = approvals::nobody_may(config, policy, plan, tags_before.as_ref());
        }
        Ok(())
    }

    /// What a message on this channel answers, and where it goes. A plan is told where its finding was. What opens anew is told to whoever may decide
    /// now, in the thread of before if that is theirs.
    async fn place(
        &self,
        transaction: &DatabaseTransaction,
        finding: &Finding,
        event: &Event,
        (channel, before): (&str, Option<Before>),
    ) -> Result<(Option<Before>, Destination), StoreError> {
        match before {
            Some(before) if event.kind == EventKind::Planned => {
                let destination = before.destination();
                Ok((Some(before), destination))
            }
            before if channel == SLACK => {
                let listed = self.tags.get(&routes::tagged(&finding.resource)).copied();
                let teams = &self.context.config.slack.teams;
                let destination = destination(transaction, teams, finding, listed, event.at).await?;
                Ok((before.filter(|before| before.is_in(destination.channel.as_deref())), destination))
            }
            before => Ok((before, Destination::default())),
        }
    }
}

/// Writes the messages that an event is told by, if it is told, or the updates by which messages show that a finding has ended.
pub(super) async fn enqueue(
    known: &Known<'_>,
    transaction: &DatabaseTransaction,
    finding: &Finding,
    event: &Event,
) -> Result<(), SweepError> {
    let Known { context, left_alone, .. } = known;
    let recently = event.at.checked_sub(COOL_DOWN).unwrap_or(Timestamp::MIN);
    let is_silenced = left_alone.silences(finding.class, &finding.resource);
    let (mut notice, before) = match event.kind {
        EventKind::Opened | EventKind::Planned if is_silenced => return Ok(()),
        EventKind::Opened => (notice(finding), store::findings::closed_since(transaction, finding, recently).await?),
        EventKind::Planned if !told_a_plan(transaction, finding, recently).await? => {
            (plan_notice(finding), Some(finding.id.clone()))
        }
        EventKind::Planned | EventKind::Changed => return Ok(()),
        EventKind::Interrupted => return end(context, transaction, finding, event, Ending::Interrupted).await,
        EventKind::Resolved => return end(context, transaction, finding, event, Ending::Resolved).await,
        EventKind::Gone => return end(context, transaction, finding, event, Ending::Gone).await,
    };
    known.asked(transaction, finding, &mut notice).await?;
    let audience = format!("{}|{}", event.kind.as_str(), audience(finding));
    for channel in &context.channels {
        let before = match &before {
            Some(finding) => outbox::answered_by_later(transaction, &EventId(finding.0.clone()), channel).await?,
            None => None,
        };
        let (before, destination) = known.place(transaction, finding, event, (*channel, before)).await?;
        let message = outbox::NewMessage {
            event: &event.id,
            channel,
            notice: &notice,
            answers: before.map(|before| before.event),
            destination,
            audience: Some(audience.clone()),
            created_at: event.at,
            gather: context.config.outbox.gather,
        };
        outbox::put(transaction, message).await?;
    }
    Ok(())
}

/// Whether people were told of a plan so lately that another one is no news. What they were told before they wanted it left alone is told again behind that.
async fn told_a_plan(
    transaction: &DatabaseTransaction,
    finding: &Finding,
    recently: Timestamp,
) -> Result<bool, StoreError> {
    let last_said = exemptions::last_said(transaction, finding).await?;
    outbox::told_a_plan(transaction, &finding.id, last_said.map_or(recently, |said| said.max(recently))).await
}

/// What was not told yet of a finding that has ended is not told any more; where its opening was, that is changed.
async fn end(
    context: &Context,
    transaction: &DatabaseTransaction,
    finding: &Finding,
    event: &Event,
    how: Ending,
) -> Result<(), SweepError> {
    outbox::withdraw(transaction, &finding.id).await?;
    let notice = end_notice(finding, how);
    for channel in context.channels.iter().copied().filter(|channel| can_update(channel)) {
        let message = outbox::NewMessage {
            event: &event.id,
            channel,
            notice: &notice,
            answers: None,
            destination: Destination::default(),
            audience: None,
            created_at: event.at,
            gather: context.config.outbox.gather,
        };
        outbox::put_updates(transaction, &finding.id, message).await?;
    }
    Ok(())
}
