//! Whether a machine is there and runs, as far as its provider and its agent say.

use super::Detection;
use crate::{inventory::InstanceState, verdict::words};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// How much the inventory knows of the place where a resource would be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Coverage {
    /// The inventory of that account and region is complete: what it lacks is not there.
    Complete,
    /// It was asked for and failed: nothing can be said.
    Failed,
    /// Nobody asked: on premises, or an account that the sweeper does not read.
    NotAsked,
}

/// What is known of a machine's being there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Presence {
    /// The state in which the provider lists it; none if it does not list it.
    pub listed: Option<InstanceState>,
    /// Whether the provider would list it.
    pub coverage: Coverage,
    /// When its agent was last heard, if it has one.
    pub last_heard: Option<Timestamp>,
    /// A host that no inventory covers is gone when nothing has been heard of it for so long, in seconds.
    pub gone_after_s: u64,
}

impl Presence {
    /// Whether a provider was asked about it at all.
    #[must_use]
    pub fn was_asked(&self) -> bool {
        self.listed.is_some() || self.coverage != Coverage::NotAsked
    }

    /// Whether the provider was asked and did not say whether the machine runs.
    #[must_use]
    pub fn is_unread(&self) -> bool {
        match &self.listed {
            Some(state) => state.runs().is_none(),
            None => self.coverage == Coverage::Failed,
        }
    }

    /// What refutes every class of waste; none if nothing of it does.
    pub(super) fn refutes(&self, now_unix_ms: i64) -> Option<Detection> {
        match (&self.listed, self.coverage) {
            (Some(state), _) => (state.runs() == Some(false))
                .then(|| Detection::Refuted { because: format!("the instance is {state}") }),
            (None, Coverage::Complete) => {
                Some(Detection::Gone { because: "the provider lists the instance no more".to_owned() })
            }
            (None, Coverage::Failed) => None,
            // Whether one that an inventory covers is there, its provider says.
            (None, Coverage::NotAsked) => self.silence(now_unix_ms),
        }
    }

    fn silence(&self, now_unix_ms: i64) -> Option<Detection> {
        let last_ms = self.last_heard?.as_millisecond();
        let silent_s = u64::try_from(now_unix_ms.saturating_sub(last_ms) / 1_000).ok()?;
        (silent_s >= self.gone_after_s).then(|| Detection::Gone {
            because: format!("nothing has been heard of the host since {}", words::time(last_ms)),
        })
    }
}
