//! Which resource is meant.

use std::fmt;

use heartbeat::NodeId;

use super::{Instance, Kind, Provider, Scope};

/// The resource key of whatever a provider bills for. Its text form is that of a [`NodeId`]: `aws:ACCOUNT:REGION:ID`.
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
    /// In the provider's words: `vol-…`, `snap-…`, `eipalloc-…`, `i-…`, the name of a group.
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

/// All ids but a group's name show their kind, so that two resources never have one text: a group may be called `i-1`.
impl fmt::Display for ResourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { provider, account, region, kind, id } = self;
        let shown = if *kind == Kind::AutoScalingGroup { "group/" } else { "" };
        write!(f, "{provider}:{account}:{region}:{shown}{id}")
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
        let NodeId::Aws { account, region, instance } = &self.id else { return None };
        Some(ResourceId {
            provider: Provider::Aws,
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
    }

    #[test]
    fn no_two_resources_have_the_same_text() {
        let scope = Scope { provider: Provider::Aws, account: "123456789012".into(), region: "eu-central-1".into() };
        let of = |kind| ResourceId::new(&scope, kind, "i-1").to_string();
        assert_eq!(of(Kind::Instance), "aws:123456789012:eu-central-1:i-1");
        assert_eq!(of(Kind::AutoScalingGroup), "aws:123456789012:eu-central-1:group/i-1");
    }
}
