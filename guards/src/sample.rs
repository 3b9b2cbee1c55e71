//! A machine that nothing speaks for keeping.

use std::collections::BTreeMap;

use jiff::Timestamp;
use model::machine::{AutoScaling, Ec2Facts, InstanceStore, Lifecycle, Protection, Root, Scheduler};

pub(crate) const LAUNCHED: Timestamp = Timestamp::constant(1_790_000_000, 0);

/// What a test changes.
pub(crate) struct Facts(pub(crate) Ec2Facts);

impl Facts {
    pub(crate) fn tag(&mut self, key: &str, value: &str) {
        self.0.tags.get_or_insert_default().insert(key.to_owned(), value.to_owned());
    }
}

/// A plain machine on demand, with this change.
pub(crate) fn facts(change: impl FnOnce(&mut Facts)) -> Ec2Facts {
    let mut facts = Facts(Ec2Facts {
        account: "123456789012".to_owned(),
        region: "eu-central-1".to_owned(),
        instance_id: "i-0123456789abcdef0".to_owned(),
        name: Some("align-7".to_owned()),
        instance_type: Some("m5.large".to_owned()),
        state: Some("running".to_owned()),
        launched_at: Some(LAUNCHED),
        lifecycle: Lifecycle::OnDemand,
        capacity_reservation: None,
        root: Root::Ebs,
        instance_store: InstanceStore::Absent,
        hibernates: None,
        volumes: Vec::new(),
        public_ipv4: Vec::new(),
        tags: Some(BTreeMap::new()),
        autoscaling: AutoScaling::NotListed,
        scheduler: Scheduler::NotListed,
        operator: None,
        protection: Protection::Off,
    });
    change(&mut facts);
    facts.0
}
