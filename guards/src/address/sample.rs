//! An address that nothing speaks for keeping.

use std::collections::BTreeMap;

use model::address::{AddressFacts, Told};

pub(crate) fn facts(change: impl FnOnce(&mut AddressFacts)) -> AddressFacts {
    let mut facts = AddressFacts {
        region: "eu-central-1".to_owned(),
        allocation_id: Some("eipalloc-0123456789abcdef0".to_owned()),
        address: Some("203.0.113.8".to_owned()),
        name: Some("old-gateway".to_owned()),
        tags: Some(BTreeMap::from([("owner".to_owned(), "ada".to_owned())])),
        tied_to: None,
        service: None,
        pool: Some("amazon".to_owned()),
        border_group: None,
        reverse_name: Told::Nothing,
        offered_to: Told::Nothing,
    };
    change(&mut facts);
    facts
}
