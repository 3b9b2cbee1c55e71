//! What tags say of what people call a resource.

use std::collections::BTreeMap;

/// What people call a resource of these tags.
pub(crate) fn name(tags: &BTreeMap<String, String>) -> Option<String> {
    tags.get("Name").filter(|name| !name.trim().is_empty()).cloned()
}
