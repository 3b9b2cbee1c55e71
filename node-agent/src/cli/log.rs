//! The log: one line per event, whatever an event says.
//!
//! Errors and reasons may hold names that strangers chose. Values are escaped by the formatter where they are quoted; what
//! is not is escaped here, line breaks within an event included, so that no name can write a line of its own or speak
//! to the terminal that shows it. Colours of the formatter itself pass.

use crate::config::ConfigError;
use heartbeat::text::{is_hidden, visible_bytes};
use std::io::{self, IsTerminal as _, Write};
use tracing_subscriber::{EnvFilter, fmt::MakeWriter};

/// Starts writing events that pass the filter to standard error.
///
/// # Errors
/// If the filter is none.
pub fn start(filter: &str) -> Result<(), ConfigError> {
    let filter = EnvFilter::try_new(filter).map_err(|error| ConfigError::Value {
        origin: "configuration".to_owned(),
        key: "log".to_owned(),
        reason: error.to_string(),
    })?;
    let colours = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(ToStandardError)
        .with_ansi(colours)
        // A line that cannot be written (a full disk) would be complained about by `eprintln!`, which then panics.
        .log_internal_errors(false)
        .init();
    Ok(())
}

struct ToStandardError;

impl MakeWriter<'_> for ToStandardError {
    type Writer = Lines<io::Stderr>;

    fn make_writer(&self) -> Self::Writer {
        Lines(io::stderr())
    }
}

/// Takes one event per write, as the formatter gives them.
struct Lines<W>(W);

impl<W: Write> Write for Lines<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        self.0.write_all(harmless(event).as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// One line, with nothing hidden in it but colours.
fn harmless(event: &[u8]) -> String {
    let text = String::from_utf8_lossy(event);
    let line = text.strip_suffix('\n').unwrap_or(&text);
    let mut out = String::with_capacity(text.len());
    let mut rest = line;
    while let Some(at) = rest.find(is_hidden) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = colour(rest).unwrap_or_else(|| rest.chars().next().map_or(1, char::len_utf8));
        let (hidden, behind) = rest.split_at(length);
        if length > 1 && hidden.starts_with('\u{1b}') {
            out.push_str(hidden);
        } else {
            out.push_str(&visible_bytes(hidden.as_bytes()));
        }
        rest = behind;
    }
    out.push_str(rest);
    out.push('\n');
    out
}

/// Length of the colour sequence that the text begins with: `ESC [ digits and semicolons m`.
fn colour(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\u{1b}[")?;
    let end = parameters.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    parameters[end..].starts_with('m').then_some(end + 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line_and_only_colours_pass() {
        for (event, shown) in [
            ("plain\n", "plain\n"),
            ("\u{1b}[2mdim\u{1b}[0m ü\n", "\u{1b}[2mdim\u{1b}[0m ü\n"),
            ("a\nINFO forged\n", "a\\u{a}INFO forged\n"),
            ("\u{1b}[2Jcleared \u{1b}]0;title\u{7} \u{202e}\n", "\\u{1b}[2Jcleared \\u{1b}]0;title\\u{7} \\u{202e}\n"),
            ("\u{1b}", "\\u{1b}\n"),
        ] {
            assert_eq!(harmless(event.as_bytes()), shown);
        }
    }

    #[test]
    fn what_is_written_is_taken_whole() -> io::Result<()> {
        let mut lines = Lines(Vec::new());
        lines.write_all("two\u{9b}\n".as_bytes())?;
        lines.flush()?;
        assert_eq!(lines.0, b"two\\u{9b}\n");
        Ok(())
    }
}
