//! What ran on a machine between its agent's answer and its end: the one time in which work can begin that nobody sees before the call.
//!
//! It is told. Where it cannot have been what a shutdown does to end a machine's services, the machine is started again, in nobody's name; where it may have been that, people are
//! told the command that starts it.

use super::{ActError, Executor, carry::FRESH};
use crate::{
    store::Action,
    sweep::judge_node,
    verdict::{Case, is_no_shutdown, last_work, words},
};
use jiff::Timestamp;

/// What ran on a machine until it was off.
pub(super) struct Ran {
    /// The last of it, in words.
    pub(super) what: String,
    /// A shutdown does nothing like it.
    pub(super) is_work: bool,
}

impl Executor {
    /// The work that was reported of the machine since its call was written down; none if there was none.
    pub(super) async fn ran_after(&self, action: &Action) -> Result<Option<Ran>, ActError> {
        let Some(called_at) = action.called_at else { return Ok(None) };
        let Some(node) = self.store.known(&action.plan).await?.node else { return Ok(None) };
        // Clocks of sweepers differ. What arrived shortly before the call is the answer, which was judged idle.
        let since = called_at.checked_sub(FRESH).unwrap_or(Timestamp::MIN);
        let Some(first) = self.store.first_end_received_since(&node.node_id, since).await? else { return Ok(None) };
        let (case, _, _) = judge_node(&self.store, &self.config, &node, Timestamp::now()).await?;
        let later: Vec<_> = case.observations.iter().filter(|one| one.end_unix_ms >= first).cloned().collect();
        let case = Case { observations: later, ..case };
        Ok(last_work(&case).map(|work| Ran { what: words::decision(&work, &case), is_work: is_no_shutdown(&case) }))
    }
}
