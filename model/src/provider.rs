//! Who answers for a resource.

use std::fmt;

/// Who answers for a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Provider {
    /// Amazon Web Services.
    Aws,
    /// Google Cloud.
    Gcp,
    /// No provider: the machine is somebody's own, and its agent alone speaks for it.
    OnPrem,
}

impl Provider {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Aws, Self::Gcp, Self::OnPrem];

    /// The word for it, everywhere.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Aws => "aws",
            Self::Gcp => "gcp",
            Self::OnPrem => "onprem",
        }
    }

    /// Whether it can be asked what it bills for.
    #[must_use]
    pub const fn is_cloud(self) -> bool {
        !matches!(self, Self::OnPrem)
    }

    /// The provider of that word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|provider| provider.as_str() == word)
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
