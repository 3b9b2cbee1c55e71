//! A text that is never printed: tokens and passwords.

use std::fmt;

/// A token or password. `Debug` shows that one is there and nothing else; there is no `Display`
/// and no `Serialize`.
#[derive(Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Wraps a text; surrounding white space (a secret file's final newline) is not part of it.
    #[must_use]
    pub fn new(value: impl AsRef<str>) -> Self {
        Self(value.as_ref().trim().to_owned())
    }

    /// The text itself, for the one call that needs it.
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

#[cfg(test)]
mod tests {
    use super::Secret;

    #[test]
    fn debug_shows_no_part_of_the_secret() {
        let shown = format!("{:?}", Secret::new("xoxb-12345\n"));
        assert_eq!(shown, "Secret(…)");
        assert_eq!(Secret::new("xoxb-12345\n").expose(), "xoxb-12345");
    }
}
