//! Secrets among the settings: they are read, never written.

use secrecy::SecretString;
use serde::Serializer;

/// Shows that a secret is set and nothing of it.
pub(super) fn hidden<S: Serializer>(secret: &Option<SecretString>, serializer: S) -> Result<S::Ok, S::Error> {
    match secret {
        Some(_) => serializer.serialize_str("…"),
        None => serializer.serialize_none(),
    }
}
