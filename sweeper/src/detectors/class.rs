//! The classes of waste.

use serde::{Deserialize, Serialize};

/// A class of waste.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// An idle node, by its own agent.
    IdleNode,
    /// An instance without an agent that its provider saw do nothing. Weak evidence, never a proposal.
    QuietInstance,
    /// A volume that is attached to nothing.
    UnattachedVolume,
    /// A public address that is tied to nothing.
    UnusedAddress,
    /// An instance that is stopped, and whose volumes and addresses are billed on.
    StoppedInstance,
}

impl Class {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::IdleNode, Self::QuietInstance, Self::UnattachedVolume, Self::UnusedAddress, Self::StoppedInstance];

    /// The class that says more of the same resource: while a finding of it is open, none of this class opens.
    #[must_use]
    pub fn yields_to(self) -> Option<Self> {
        match self {
            Self::IdleNode | Self::UnattachedVolume | Self::UnusedAddress | Self::StoppedInstance => None,
            // What its agent proved before it fell silent stands.
            Self::QuietInstance => Some(Self::IdleNode),
        }
    }

    /// Whether it is found on what is billed though nobody uses it, and not on machines that run.
    #[must_use]
    pub fn is_left_over(self) -> bool {
        match self {
            Self::IdleNode | Self::QuietInstance => false,
            Self::UnattachedVolume | Self::UnusedAddress | Self::StoppedInstance => true,
        }
    }

    /// The word for it, everywhere.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::IdleNode => "idle_node",
            Self::QuietInstance => "quiet_instance",
            Self::UnattachedVolume => "unattached_volume",
            Self::UnusedAddress => "unused_address",
            Self::StoppedInstance => "stopped_instance",
        }
    }

    /// The class of that name. A sweeper of the version before calls an idle node `idle_instance` where an inventory covers it.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        let word = if word == "idle_instance" { Self::IdleNode.as_str() } else { word };
        Self::ALL.into_iter().find(|class| class.as_str() == word)
    }
}
