//! The classes of waste.

use serde::{Deserialize, Serialize};

/// A class of waste.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// An idle node: if and only if the verdict on the node is `idle`, and the provider, where one's inventory covers it, says that the instance is
    /// running. Instances without an agent are not covered here: they are blind spots of the sweep's report.
    IdleNode,
    /// A quiet instance: see [`super::QuietCase`]. Weak evidence, never a proposal; of an instance that an agent reports from it is
    /// never said.
    QuietInstance,
}

impl Class {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::IdleNode, Self::QuietInstance];

    /// The word for it, everywhere.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::IdleNode => "idle_node",
            Self::QuietInstance => "quiet_instance",
        }
    }

    /// The class of that name. A sweeper of the version before calls an idle node `idle_instance` where an inventory covers it.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        let word = if word == "idle_instance" { Self::IdleNode.as_str() } else { word };
        Self::ALL.into_iter().find(|class| class.as_str() == word)
    }
}
