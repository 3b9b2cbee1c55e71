//! Writing to a terminal: colours only there, and nothing that a machine's name could do to it.

use anstyle::{AnsiColor, Style};
use comfy_table::{ContentArrangement, Row, Table, presets};
use std::io::Write as _;

pub(super) const BOLD: Style = Style::new().bold();
pub(super) const DIM: Style = Style::new().dimmed();
pub(super) const WARN: Style = AnsiColor::Yellow.on_default();
pub(super) const OK: Style = AnsiColor::Green.on_default();
pub(super) const ERROR: Style = AnsiColor::Red.on_default().bold();

/// Makes a name harmless: see [`heartbeat::text`].
pub(super) fn plain(text: &str) -> String {
    heartbeat::text::visible(text).into_owned()
}

/// Prints to standard output. A reader that went away (`| head`) is no error.
pub(super) fn print(text: &str) {
    let _ = writeln!(anstream::stdout(), "{}", text.trim_end());
}

/// The one line that an error gets.
pub(super) fn error(text: &str) {
    let _ = writeln!(anstream::stderr(), "{ERROR}error:{ERROR:#} {}", plain(text));
}

/// A line beside what is printed for programs.
pub(super) fn note(text: &str) {
    let _ = writeln!(anstream::stderr(), "{}", plain(text));
}

/// Prints a value as JSON; what would act on a terminal is escaped as JSON does it.
pub(super) fn json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    print(&heartbeat::text::visible_json(&serde_json::to_string_pretty(value)?));
    Ok(())
}

/// An empty table without lines.
pub(super) fn bare_table(header: impl Into<Row>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header);
    table
}

/// Tables pad their last column, which looks wrong in a terminal that is narrower.
pub(super) fn trim_lines(text: &str) -> String {
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn a_name_cannot_write_to_the_terminal() {
        assert_eq!(plain("web-1 ü 機"), "web-1 ü 機");
        assert_eq!(plain("a\u{1b}[2Jb\n"), "a\\u{1b}[2Jb\\u{a}");
        assert_eq!(plain("\u{202e}txt.exe"), "\\u{202e}txt.exe");
    }
}
