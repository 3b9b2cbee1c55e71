//! What ran on a machine between its agent's answer and its end: the one time in which work can begin that nobody looks at before the call.
//!
//! It is told, with the command that starts the machine again. The sweeper does not start it by itself: what a shutdown does to end a machine's services looks like
//! work, too, and nobody here can tell the two apart.

use super::{ActError, Executor, carry::FRESH};
use crate::{
    store::Action,
    sweep::judge_node,
    verdict::{Case, last_work, words},
};
use jiff::Timestamp;

impl Executor {
    /// The last work that was reported of the machine since its call was written down, in words; none if there was none.
    pub(super) async fn ran_after(&self, action: &Action) -> Result<Option<String>, ActError> {
        let Some(called_at) = action.called_at else { return Ok(None) };
        let Some(node) = self.store.known(&action.plan).await?.node else { return Ok(None) };
        // Clocks of sweepers differ. What arrived shortly before the call is the answer, which was judged idle.
        let since = called_at.checked_sub(FRESH).unwrap_or(Timestamp::MIN);
        let Some(first) = self.store.first_end_received_since(&node.node_id, since).await? else { return Ok(None) };
        let (case, _, _) = judge_node(&self.store, &self.config, &node, Timestamp::now()).await?;
        let later: Vec<_> = case.observations.iter().filter(|one| one.end_unix_ms >= first).cloned().collect();
        let case = Case { observations: later, ..case };
        Ok(last_work(&case).map(|work| words::decision(&work, &case)))
    }
}
