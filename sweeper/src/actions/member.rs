//! What is read of a machine's Auto Scaling group, right before the machine is ended there and until it is.

use super::{
    ActError, Executor,
    provider::{Asked, scope},
};
use crate::inventory::{
    InstanceState,
    aws::{self, Accounts},
};
use model::{ResourceKey, group::GroupFacts, plan::Plan};

/// The word for a machine that its group has begun to end, and EC2 has not yet: it may wait for what has to be done before.
pub(super) const LEAVING: &str = "leaving its group";

impl Executor {
    /// A group as Auto Scaling has it now, with the replacement of its machines that may be under way; none where none is asked for, or there is none.
    pub(super) async fn group(
        &self,
        accounts: &Accounts,
        on: &ResourceKey,
        name: Option<&str>,
    ) -> Result<Option<GroupFacts>, ActError> {
        let Some(name) = name else { return Ok(None) };
        let scope = scope(on)?;
        let (group, refresh) = futures::join!(
            Box::pin(aws::group(accounts, &scope, name)),
            Box::pin(aws::refresh(accounts, &scope, name))
        );
        let group = group.map_err(|why| ActError::Provider { what: "reading its Auto Scaling group", why })?;
        Ok(group.map(|group| group.end_facts(refresh)))
    }

    /// Where a machine is that is ended in its group, in EC2's word, or that it is leaving the group; one that EC2 does not know any more has ended.
    pub(super) async fn member_state(&self, asked: &Asked, on: &ResourceKey, plan: &Plan) -> Result<String, ActError> {
        let state = asked.state(on).await?.unwrap_or(InstanceState::Terminated);
        let runs = state == InstanceState::Running;
        let (Asked::Aws(accounts), Some(name)) = (asked, plan.group().filter(|_| runs)) else {
            return Ok(state.to_string());
        };
        let group = aws::group(accounts, &scope(on)?, name).await;
        let group = group.map_err(|why| ActError::Provider { what: "reading its Auto Scaling group", why })?;
        let of_member = group.and_then(|group| {
            let member = group.members?.into_iter().find(|member| member.instance_id == on.id)?;
            member.lifecycle_state
        });
        let is_leaving = of_member.is_some_and(|state| state.starts_with("Terminating"));
        Ok(if is_leaving { LEAVING.to_owned() } else { state.to_string() })
    }
}
