//! What reaches a terminal: nothing hidden of strangers (a process may call itself anything), colours only where they are
//! seen.

pub use heartbeat::text::{visible as escaped, visible_json as escaped_json};
use std::io::Write as _;

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
