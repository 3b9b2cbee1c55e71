//! How the work of a sweep is shared out: each resource belongs to exactly one work unit, and a work unit is swept by one replica
//! at a time.

use crate::inventory::Scope;
use model::{Provider, ResourceKey};
use std::{collections::BTreeSet, fmt};

/// What is claimed, swept and written as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WorkUnit {
    /// One scope of an inventory, with the nodes that run there.
    Scope(Scope),
    /// All nodes that no known scope covers: on premises, or in an account that nobody reads.
    Uncovered,
}

impl WorkUnit {
    /// In the place of a provider's word where no provider is asked.
    pub const NO_PROVIDER: &'static str = "none";

    /// Where a resource belongs, if these are all scopes that are known.
    #[must_use]
    pub fn home(key: &ResourceKey, known: &BTreeSet<Scope>) -> Self {
        let region = match key.provider {
            Provider::Aws => key.location.as_str(),
            Provider::Gcp => Scope::EVERYWHERE,
            Provider::OnPrem => return Self::Uncovered,
        };
        let scope = Scope { provider: key.provider, account: key.account.clone(), region: region.to_owned() };
        if known.contains(&scope) { Self::Scope(scope) } else { Self::Uncovered }
    }

    /// What the keys of all its resources begin with; `None` if they have nothing in common.
    #[must_use]
    pub fn key_prefix(&self) -> Option<String> {
        match self {
            Self::Scope(Scope { provider: Provider::Gcp, account, region }) if region == Scope::EVERYWHERE => {
                Some(format!("{}:{account}:", Provider::Gcp))
            }
            Self::Scope(Scope { provider, account, region }) => Some(format!("{provider}:{account}:{region}:")),
            Self::Uncovered => None,
        }
    }

    /// Provider, account and region as words; the last two are empty where nobody is asked.
    #[must_use]
    pub fn words(&self) -> (&'static str, &str, &str) {
        match self {
            Self::Scope(scope) => scope.words(),
            Self::Uncovered => (Self::NO_PROVIDER, "", ""),
        }
    }

    /// The work unit of these words; `None` if the provider is one of a later version.
    #[must_use]
    pub fn from_words(provider: &str, account: &str, region: &str) -> Option<Self> {
        if provider == Self::NO_PROVIDER {
            return Some(Self::Uncovered);
        }
        let provider = Provider::from_word(provider).filter(|provider| provider.is_cloud())?;
        Some(Self::Scope(Scope { provider, account: account.to_owned(), region: region.to_owned() }))
    }
}

impl fmt::Display for WorkUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scope(scope) => write!(f, "{} {} {}", scope.provider, scope.account, scope.region),
            Self::Uncovered => f.write_str("nodes that no scope covers"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(region: &str) -> Scope {
        Scope { provider: Provider::Aws, account: "123456789012".into(), region: region.into() }
    }

    #[test]
    fn a_resource_belongs_to_its_scope_if_that_is_known_and_else_to_the_rest() {
        let project =
            |name: &str| Scope { provider: Provider::Gcp, account: name.into(), region: Scope::EVERYWHERE.into() };
        let known = BTreeSet::from([scope("eu-central-1"), project("omics"), project("example.com:omics")]);
        for (id, home) in [
            ("aws:123456789012:eu-central-1:i-1", WorkUnit::Scope(scope("eu-central-1"))),
            ("aws:123456789012:us-east-1:i-1", WorkUnit::Uncovered),
            ("aws:999999999999:eu-central-1:i-1", WorkUnit::Uncovered),
            ("gcp:project:europe-west3-a:1", WorkUnit::Uncovered),
            ("gcp:omics:europe-west3-a:1", WorkUnit::Scope(project("omics"))),
            ("gcp:example.com:omics:us-east1-b:1", WorkUnit::Scope(project("example.com:omics"))),
            ("host:0123456789abcdef0123456789abcdef", WorkUnit::Uncovered),
        ] {
            let id: ResourceKey = id.parse().expect("a key");
            assert_eq!(WorkUnit::home(&id, &known), home, "{id}");
            let prefix = home.key_prefix();
            assert!(prefix.is_none_or(|prefix| id.to_string().starts_with(&prefix)), "{id}");
        }
    }

    #[test]
    fn a_work_unit_comes_back_from_its_words_and_one_of_a_later_version_is_left_alone() {
        for unit in [WorkUnit::Scope(scope("us-east-1")), WorkUnit::Uncovered] {
            let (provider, account, region) = unit.words();
            assert_eq!(WorkUnit::from_words(provider, account, region).as_ref(), Some(&unit));
        }
        assert_eq!(WorkUnit::from_words("azure", "1", "westeurope"), None);
        assert_eq!(WorkUnit::from_words("onprem", "1", "here"), None, "nobody can be asked there");
    }
}
