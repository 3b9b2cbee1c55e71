//! A public address as its provider describes it.

use model::{
    ResourceKey,
    address::{AddressFacts, Told},
};
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::GoogleAddress;

/// What EC2 says of one Elastic IP address. A fact that EC2 left out is `None`; for what an address is tied to that is its
/// only way to say *to nothing*.
/// <https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_Address.html>
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Address {
    /// The resource key; it ends in `eipalloc-…` or, for an address from before networks were the customer's own, in the
    /// address itself.
    pub id: ResourceKey,
    /// `eipalloc-…`
    pub allocation_id: Option<String>,
    /// Dotted.
    pub public_ipv4: Option<String>,
    /// `eipassoc-…`: there if and only if it is tied to something.
    pub association_id: Option<String>,
    /// The machine that it is tied to.
    pub instance_id: Option<String>,
    /// The network interface that it is tied to; those of load balancers and gateways belong to no machine.
    pub network_interface_id: Option<String>,
    /// The account of that network interface, or the word of a service.
    pub network_interface_owner: Option<String>,
    /// The service that manages it, such as `alb` or `rds`: only that service may release it.
    pub service_managed: Option<String>,
    /// `amazon`, or the customer's own range of addresses, which AWS does not bill.
    pub pool: Option<String>,
    /// The zone that it can be used in alone, such as `us-west-2-lax-1`, which has prices of its own; none for a whole region.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub border_group: Option<String>,
    /// All tags; EC2 returns them with the address or not the address at all.
    pub tags: BTreeMap<String, String>,
    /// What only Google says of an address; none for one of EC2's. Where it is there, it alone tells whether the address is tied to
    /// something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub google: Option<Box<GoogleAddress>>,
}

impl Address {
    /// What the rule and the guards of releases look at; none for an address of another provider than EC2.
    #[must_use]
    pub fn release_facts(&self, reverse_name: Told, offered_to: Told) -> Option<AddressFacts> {
        if self.google.is_some() {
            return None;
        }
        Some(AddressFacts {
            region: self.id.location.clone(),
            allocation_id: self.allocation_id.clone(),
            address: self.public_ipv4.clone(),
            name: super::tags::name(&self.tags),
            tags: Some(self.tags.clone()),
            tied_to: self.user().cloned(),
            service: self.service_managed.clone(),
            pool: self.pool.clone(),
            border_group: self.border_group.clone(),
            reverse_name,
            offered_to,
        })
    }
}
