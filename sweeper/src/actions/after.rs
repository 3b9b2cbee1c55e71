//! What ran on a machine between its agent's answer and its end: the one time in which work can begin that nobody sees before the call.
//!
//! It is told. Where it cannot have been what a shutdown does to end a machine's services, the machine is started again, in nobody's name; where it may have been that, people are
//! told the command that starts it.

use super::{ActError, Executor};
use crate::{
    store::Action,
    sweep::judge_node,
    verdict::{Case, is_no_shutdown, last_work, words},
};
use jiff::Timestamp;

/// A wall clock that is slewed moves the begin of an interval by less than this against the end of the one before, and no answer is so short.
const SLEWED_MS: i64 = 500;

/// What ran on a machine until it was off.
pub(super) struct Ran {
    /// The last of it, in words.
    pub(super) what: String,
    /// A shutdown does nothing like it.
    pub(super) is_work: bool,
}

impl Executor {
    /// The work that was reported of the machine since its agent's answer ended, which was judged idle; none if there was none.
    pub(super) async fn ran_after(&self, action: &Action) -> Result<Option<Ran>, ActError> {
        let Some(called_at) = action.called_at else { return Ok(None) };
        let Some(node) = self.store.known(&action.plan).await?.node else { return Ok(None) };
        // What is reported later may be of long before: an agent that could not send for a while sends the newest first.
        let Some(answered) = self.store.answered_until(&node.node_id, called_at).await? else {
            return Err(ActError::NoAnswer);
        };
        let (case, _, _) = judge_node(&self.store, &self.config, &node, Timestamp::now()).await?;
        let later: Vec<_> =
            case.observations.iter().filter(|one| one.start_unix_ms >= answered - SLEWED_MS).cloned().collect();
        let case = Case { observations: later, ..case };
        Ok(last_work(&case).map(|work| Ran { what: words::decision(&work, &case), is_work: is_no_shutdown(&case) }))
    }
}
