//! Why a file is refused: where, what, and what to do.

/// One fault of a rules file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {what}; {remedy}")]
pub struct RulesError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong. What it cites of the file is cut at 64 characters and has no control characters.
    pub what: String,
    /// What to do about it.
    pub remedy: String,
}

/// Text of a stranger as it may be shown: cut at 64 characters, control characters escaped.
#[must_use]
pub fn shown(text: &str) -> String {
    let mut short: String = text.chars().take(64).flat_map(escaped).collect();
    if text.chars().nth(64).is_some() {
        short.push('…');
    }
    format!("`{short}`")
}

/// A character as it may be shown.
pub(crate) fn escaped(c: char) -> impl Iterator<Item = char> {
    let escape = c.is_control().then(|| c.escape_default());
    let plain = (!c.is_control()).then_some(c);
    escape.into_iter().flatten().chain(plain)
}
