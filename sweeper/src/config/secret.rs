//! Secrets among the settings: they are read, never written.

pub use notifier::Secret;
use serde::Serializer;

/// Shows that a secret is set and nothing of it.
pub(super) fn hidden<S: Serializer>(secret: &Option<Secret>, serializer: S) -> Result<S::Ok, S::Error> {
    match secret {
        Some(_) => serializer.serialize_str("…"),
        None => serializer.serialize_none(),
    }
}
