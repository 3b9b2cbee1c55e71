//! A volume that nothing speaks for keeping.

use std::collections::BTreeMap;

use jiff::Timestamp;
use model::{address::Told, volume::VolumeFacts};

pub(crate) const CREATED: Timestamp = Timestamp::constant(1_770_000_000, 0);

pub(crate) fn facts(change: impl FnOnce(&mut VolumeFacts)) -> VolumeFacts {
    let mut facts = VolumeFacts {
        region: "eu-central-1".to_owned(),
        volume_id: "vol-0123456789abcdef0".to_owned(),
        name: Some("scratch".to_owned()),
        tags: Some(BTreeMap::from([("owner".to_owned(), "ada".to_owned())])),
        state: Some("available".to_owned()),
        attached_to: Told::Nothing,
        service: None,
        on_outpost: false,
        zone: Some("eu-central-1a".to_owned()),
        volume_type: Some("gp3".to_owned()),
        size_gib: Some(100),
        iops: Some(3_000),
        throughput_mib_per_s: Some(125),
        created_at: Some(CREATED),
    };
    change(&mut facts);
    facts
}
