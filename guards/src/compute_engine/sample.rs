//! A machine of Google Cloud that nothing speaks for keeping.

use std::collections::BTreeMap;

use jiff::Timestamp;
use model::{
    address::Told,
    machine::{ComputeEngineFacts, Lifecycle},
};

pub(crate) const STARTED: Timestamp = Timestamp::constant(1_790_000_000, 0);

/// A plain machine, with this change.
pub(crate) fn facts(change: impl FnOnce(&mut ComputeEngineFacts)) -> ComputeEngineFacts {
    let mut facts = ComputeEngineFacts {
        project: "omics-prod-1".to_owned(),
        zone: "europe-west3-a".to_owned(),
        number: "1000".to_owned(),
        name: Some("align-7".to_owned()),
        machine_type: Some("n2-standard-8".to_owned()),
        state: Some("running".to_owned()),
        started_at: Some(STARTED),
        lifecycle: Lifecycle::OnDemand,
        ends_by: None,
        reservation: None,
        is_on_own_host: false,
        local_ssds: 0,
        needs_key: false,
        deletion_protection: Some(false),
        resource_policies: Vec::new(),
        labels: Some(BTreeMap::from([("owner".to_owned(), "ada".to_owned())])),
        created_by: None,
        disks: vec!["align-7".to_owned()],
        public_ipv4: Vec::new(),
        groups: Told::Nothing,
    };
    change(&mut facts);
    facts
}

/// With this label besides.
pub(crate) fn labelled(key: &str, value: &str) -> ComputeEngineFacts {
    facts(|facts| drop(facts.labels.get_or_insert_default().insert(key.to_owned(), value.to_owned())))
}
