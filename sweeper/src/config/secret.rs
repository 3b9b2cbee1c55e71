//! A text that is never printed.

use serde::{Deserialize, Serialize, Serializer};
use std::fmt;

/// A token or password. Neither `Debug` nor `Serialize` shows it; [`Secret::expose`] does, so that a reader of the code sees where.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Wraps a text.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the one place that sends it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("…")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_debug_nor_json_shows_a_secret() {
        let secret = Secret::new("xoxb-1234");
        assert_eq!(format!("{secret:?}"), "Secret(…)");
        assert_eq!(serde_json::json!({ "token": secret }).to_string(), r#"{"token":"…"}"#);
    }
}
