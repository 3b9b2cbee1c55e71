//! What the *stop* rule looks at of a machine of Google Cloud, and what it looks at of any.

use super::{Instance, Lifecycle, Tenancy};
use model::{
    address::Told,
    machine::{self, ComputeEngineFacts},
};

impl Instance {
    /// None for a machine that Google has not described. Which groups have it as a member is asked right before the call.
    pub(super) fn compute_engine_facts(&self) -> Option<ComputeEngineFacts> {
        let google = self.google.as_ref()?;
        Some(ComputeEngineFacts {
            project: self.id.account.clone(),
            zone: self.id.location.clone(),
            number: self.id.id.clone(),
            name: self.name.clone(),
            machine_type: self.instance_type.clone(),
            state: self.state.word().map(str::to_owned),
            started_at: self.launched_at,
            lifecycle: (&self.lifecycle).into(),
            ends_by: google.ends_by.clone(),
            reservation: google.reservation.clone(),
            is_on_own_host: self.tenancy == Tenancy::Host,
            local_ssds: google.local_ssds,
            needs_key: google.needs_key,
            deletion_protection: google.deletion_protection,
            resource_policies: google.resource_policies.clone(),
            labels: Some(self.tags.clone()),
            created_by: google.created_by.clone(),
            disks: self.volumes.iter().map(|volume| volume.id.clone()).collect(),
            public_ipv4: self.public_addresses(),
            groups: Told::Unknown { why: "it is asked right before the call".to_owned() },
        })
    }

    pub(super) fn public_addresses(&self) -> Vec<machine::PublicIpv4> {
        let of = |ip: &super::PublicIpv4| machine::PublicIpv4 { address: ip.address.clone(), elastic: ip.elastic };
        self.public_ipv4.iter().map(of).collect()
    }
}

impl From<&Lifecycle> for machine::Lifecycle {
    fn from(bought: &Lifecycle) -> Self {
        match bought {
            Lifecycle::OnDemand => Self::OnDemand,
            Lifecycle::Spot => Self::Spot,
            Lifecycle::CapacityBlock => Self::CapacityBlock,
            Lifecycle::Other(word) => Self::Other(word.clone()),
        }
    }
}
