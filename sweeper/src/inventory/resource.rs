//! The keys of machines, as resources and as nodes.

use heartbeat::NodeId;
use model::{Provider, ResourceKey, ResourceKind};

use super::Scope;

impl Scope {
    /// The key of a resource in this scope.
    #[must_use]
    pub fn key(&self, kind: ResourceKind, id: impl Into<String>) -> ResourceKey {
        let Self { provider, account, region } = self.clone();
        ResourceKey { provider, account, location: region, kind, id: id.into() }
    }
}

/// The key of the machine that a node runs on. Both have the same text.
#[must_use]
pub fn key_of(node: &NodeId) -> ResourceKey {
    let (provider, account, location, id) = match node {
        NodeId::Aws { account, region, instance } => (Provider::Aws, account, region, instance),
        NodeId::Gcp { project, zone, instance } => (Provider::Gcp, project, zone, instance),
        NodeId::Host { hash } => return ResourceKey::host(hash),
    };
    let (account, location, id) = (account.clone(), location.clone(), id.clone());
    ResourceKey { provider, account, location, kind: ResourceKind::Instance, id }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_node() -> impl Strategy<Value = NodeId> {
        let text = prop_oneof![
            "aws:[0-9]{12}:[a-z]{2}-[a-z]{4,9}-[1-9]:i-[0-9a-f]{1,17}",
            "gcp:([a-z]{1,9}\\.com:)?[a-z][a-z0-9-]{0,29}:[a-z]{2}-[a-z]{4}[1-9]-[a-f]:[0-9]{1,20}",
            "host:[0-9a-f]{32}",
        ];
        text.prop_map(|text| text.parse().expect("a node id"))
    }

    proptest! {
        #[test]
        fn a_machine_has_the_same_text_as_resource_and_as_node(node in any_node()) {
            let key = key_of(&node);
            prop_assert_eq!(key.to_string(), node.to_string());
            prop_assert_eq!(node.to_string().parse(), Ok(key));
        }
    }
}
