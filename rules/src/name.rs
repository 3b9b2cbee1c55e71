//! Names of programs in rules: as they are, or with one `*` at the end.

use crate::read::Text;
use crate::{RulesError, read::Section};
use serde::Serialize;

/// A name, or the beginning of names.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct NamePattern(String);

impl NamePattern {
    /// As the rules have it, with the `*` if there is one.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a name fits.
    #[must_use]
    pub fn fits(&self, name: &str) -> bool {
        match self.0.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => name == self.0,
        }
    }

    /// Whether some name that begins like this fits.
    #[must_use]
    pub fn may_fit(&self, beginning: &str) -> bool {
        match self.0.strip_suffix('*') {
            Some(start) => start.starts_with(beginning) || beginning.starts_with(start),
            None => self.0.starts_with(beginning),
        }
    }

    fn read(text: &Text<'_>) -> Result<Self, RulesError> {
        let start = text.value.strip_suffix('*').unwrap_or(text.value);
        if start.is_empty() || start.contains(['*', '/']) {
            return Err(text.refuse(
                &format!("{} is no name of programs", text.shown()),
                "write a name without folders, with at most one * and that at its end",
            ));
        }
        Ok(Self(text.value.to_owned()))
    }
}

/// The names in a list of a section.
pub(crate) fn list(section: &Section<'_>, key: &str, most: usize) -> Result<Vec<NamePattern>, RulesError> {
    section.list(key, most)?.iter().map(NamePattern::read).collect()
}
