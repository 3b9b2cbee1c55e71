//! What reaches a terminal: no control characters of strangers (a process may call itself anything), colours only where
//! they are seen.

use std::io::Write as _;

/// The text with every control character made visible.
#[must_use]
pub fn escaped(text: &str) -> String {
    let visible = |c: char| if c.is_control() { c.escape_unicode().to_string() } else { c.to_string() };
    text.chars().map(visible).collect()
}

/// JSON whose control characters beyond ASCII, which JSON itself lets through, are escaped too.
#[must_use]
pub fn escaped_json(json: &str) -> String {
    let escape = |c: char| match c {
        '\n' => "\n".to_owned(),
        c if c.is_control() => format!("\\u{:04x}", u32::from(c)),
        c => c.to_string(),
    };
    json.chars().map(escape).collect()
}

/// Writes to standard output.
///
/// # Errors
/// If nobody reads it.
pub fn say(text: &str) -> std::io::Result<()> {
    let mut out = anstream::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()
}

/// Writes an error to standard error.
///
/// # Errors
/// If nobody reads it.
pub fn say_error(line: &str) -> std::io::Result<()> {
    writeln!(anstream::stderr().lock(), "\u{1b}[1;31merror:\u{1b}[0m {line}")
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn no_control_character_gets_through() {
        let hostile = "a\u{1b}[2Jb\r\n\u{9b}c\u{7f}";
        assert!(!escaped(hostile).chars().any(char::is_control));
        let json = escaped_json(&serde_json::to_string_pretty(&[hostile]).unwrap());
        assert!(!json.chars().any(|c| c.is_control() && c != '\n'));
        assert_eq!(serde_json::from_str::<Vec<String>>(&json).unwrap(), [hostile]);
    }
}
