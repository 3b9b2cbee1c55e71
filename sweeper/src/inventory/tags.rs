//! What tags say of who a resource belongs to, and what people call it.

use std::collections::BTreeMap;

/// Tags that name an owner, in the order in which they are believed; compared without case.
const OWNER_TAGS: [&str; 5] = ["owner", "created-by", "createdby", "user", "team"];

/// Who owns a resource of these tags, by the first of those that name an owner.
#[must_use]
pub fn owner(tags: &BTreeMap<String, String>) -> Option<String> {
    OWNER_TAGS.iter().find_map(|wanted| {
        let (_, value) =
            tags.iter().find(|(key, value)| key.eq_ignore_ascii_case(wanted) && !value.trim().is_empty())?;
        Some(value.clone())
    })
}

/// What people call a resource of these tags.
pub(crate) fn name(tags: &BTreeMap<String, String>) -> Option<String> {
    tags.get("Name").filter(|name| !name.trim().is_empty()).cloned()
}
