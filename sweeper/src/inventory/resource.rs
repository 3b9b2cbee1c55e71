//! Which resource is meant.

use std::{fmt, str::FromStr};

use heartbeat::NodeId;

use super::{Instance, Kind, Provider, Scope};

/// The resource key of whatever a provider bills for. Its text form is that of a [`NodeId`]: `aws:ACCOUNT:REGION:ID`,
/// `gcp:PROJECT:ZONE:ID` (a region or `global` for what is in no zone).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ResourceId {
    /// Whose record it is.
    pub provider: Provider,
    /// Account.
    pub account: String,
    /// Region.
    pub region: String,
    /// Ids are unique among one kind only.
    pub kind: Kind,
    /// In the provider's words: `vol-…`, `snap-…`, `eipalloc-…`, `i-…`, the name of a group; of Google the number of a machine and
    /// the name of all else.
    pub id: String,
}

impl ResourceId {
    /// The key of a resource in a scope.
    #[must_use]
    pub fn new(scope: &Scope, kind: Kind, id: impl Into<String>) -> Self {
        let Scope { provider, account, region } = scope.clone();
        Self { provider, account, region, kind, id: id.into() }
    }
}

/// What stands before an id that does not show its kind by itself, so that two resources never have one text: a group may be
/// called `i-1`.
const SHOWN: [(Provider, Kind, &str); 9] = [
    (Provider::Aws, Kind::AutoScalingGroup, "group/"),
    (Provider::Aws, Kind::BatchComputeEnvironment, "environment/"),
    (Provider::Aws, Kind::BatchJobQueue, "queue/"),
    (Provider::Aws, Kind::BatchJob, "job/"),
    (Provider::Aws, Kind::EcsContainerInstance, "container-instance/"),
    (Provider::Aws, Kind::EcsTask, "task/"),
    (Provider::Gcp, Kind::AutoScalingGroup, "group/"),
    (Provider::Gcp, Kind::Volume, "disk/"),
    (Provider::Gcp, Kind::Address, "address/"),
];

impl fmt::Display for ResourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { provider, account, region, kind, id } = self;
        let shown =
            SHOWN.iter().find(|(of, shown, _)| of == provider && shown == kind).map_or("", |(.., prefix)| prefix);
        write!(f, "{provider}:{account}:{region}:{shown}{id}")
    }
}

/// A text that is no key of a resource, or one whose kind it does not show.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` does not name a resource and its kind")]
pub struct NotAKey(String);

/// Reads back the keys whose text shows their kind: those of groups, of Batch, of ECS, and of disks and addresses of Google Cloud.
impl FromStr for ResourceId {
    type Err = NotAKey;

    fn from_str(text: &str) -> Result<Self, NotAKey> {
        let parse = || {
            let mut parts = text.splitn(4, ':');
            let provider = Provider::from_word(parts.next()?)?;
            let (account, region, id) = (parts.next()?, parts.next()?, parts.next()?);
            let (kind, id) = SHOWN
                .iter()
                .filter(|(of, ..)| *of == provider)
                .find_map(|(_, kind, prefix)| Some((*kind, id.strip_prefix(prefix)?)))?;
            Some(Self { provider, account: account.to_owned(), region: region.to_owned(), kind, id: id.to_owned() })
        };
        parse().ok_or_else(|| NotAKey(text.to_owned()))
    }
}

impl<'de> serde::Deserialize<'de> for ResourceId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl serde::Serialize for ResourceId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Instance {
    /// The key that it has among all that is billed; none for a machine whose provider is not listed.
    #[must_use]
    pub fn resource(&self) -> Option<ResourceId> {
        let (provider, account, region, instance) = match &self.id {
            NodeId::Aws { account, region, instance } => (Provider::Aws, account, region, instance),
            NodeId::Gcp { project, zone, instance } => (Provider::Gcp, project, zone, instance),
            NodeId::Host { .. } => return None,
        };
        Some(ResourceId {
            provider,
            account: account.clone(),
            region: region.clone(),
            kind: Kind::Instance,
            id: instance.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inventory::sample;

    #[test]
    fn an_instance_has_the_same_text_as_resource_and_as_node() {
        let instance = sample::instance();
        let resource = instance.resource().expect("an EC2 instance");
        assert_eq!(resource.to_string(), instance.id.to_string());
        let id = "gcp:example.com:omics:europe-west3-a:42".parse().expect("a node id");
        let google = Instance { id, ..instance };
        assert_eq!(google.resource().expect("a Google instance").to_string(), google.id.to_string());
    }

    #[test]
    fn no_two_resources_have_the_same_text() {
        let scope = Scope { provider: Provider::Aws, account: "123456789012".into(), region: "eu-central-1".into() };
        let of = |kind| ResourceId::new(&scope, kind, "i-1").to_string();
        assert_eq!(of(Kind::Instance), "aws:123456789012:eu-central-1:i-1");
        assert_eq!(of(Kind::AutoScalingGroup), "aws:123456789012:eu-central-1:group/i-1");
        // A provider gives ids that begin with their kind to those that have no prefix here.
        for provider in Provider::ALL {
            let shown = SHOWN.iter().filter(|(of, ..)| *of == provider).map(|(_, kind, _)| *kind);
            let kinds: Vec<Kind> = [Kind::Instance].into_iter().chain(shown).collect();
            let scope = Scope { provider, account: "omics".into(), region: "europe-west3-a".into() };
            let texts = kinds.iter().map(|kind| ResourceId::new(&scope, *kind, "42").to_string());
            assert_eq!(texts.collect::<std::collections::BTreeSet<_>>().len(), kinds.len(), "{provider}");
        }
    }

    #[test]
    fn a_key_that_shows_its_kind_is_read_back() {
        for (provider, kind, _) in SHOWN {
            let scope = Scope { provider, account: "123456789012".into(), region: "eu-central-1".into() };
            let key = ResourceId::new(&scope, kind, "5f0c#1:2/3");
            assert_eq!(key.to_string().parse(), Ok(key));
        }
        for text in ["", "aws:1:r", "aws:1:r:i-1", "aws:1:r:disk/1", "mars:1:r:job/1"] {
            assert_eq!(text.parse::<ResourceId>(), Err(NotAKey(text.to_owned())));
        }
    }
}
