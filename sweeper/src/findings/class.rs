//! The classes of waste.

use serde::{Deserialize, Serialize};

/// A class of waste.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// An idle instance: if and only if the provider says that the instance is running and the verdict on its node is
    /// `idle`. Instances without an agent are not covered here: they are blind spots of the sweep's report.
    IdleInstance,
    /// An idle node: if and only if the verdict on the node is `idle` and no provider's inventory covers it (on
    /// premises, or an account that the sweeper may not read).
    IdleNode,
    /// A quiet instance: see [`super::QuietCase`]. Weak evidence, never a proposal; of an instance that an agent reports from it is
    /// never said.
    QuietInstance,
}

impl Class {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::IdleInstance, Self::IdleNode, Self::QuietInstance];

    /// The word for it, everywhere.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::IdleInstance => "idle_instance",
            Self::IdleNode => "idle_node",
            Self::QuietInstance => "quiet_instance",
        }
    }

    /// The class of that name.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.as_str() == word)
    }
}
