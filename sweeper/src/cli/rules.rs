//! `sweeper rules`: whether a file would be served.

use super::{MISUSED, Output, screen};
use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Say whether a file would be served, and taken by agents of this version; if not, exit with 2 and say line and reason
    Check {
        /// The rules file
        file: PathBuf,
        #[command(flatten)]
        printed: super::Printed,
    },
}

pub(super) fn run(command: &Command) -> anyhow::Result<ExitCode> {
    let Command::Check { file, printed } = command;
    check(file, printed.output)
}

fn check(file: &Path, output: Output) -> anyhow::Result<ExitCode> {
    let checked = crate::rules::read(file);
    let code = if checked.is_ok() { ExitCode::SUCCESS } else { ExitCode::from(MISUSED) };
    let report = match &checked {
        Ok(served) => serde_json::json!({ "accepted": true, "version": served.version, "sha256": served.sha256 }),
        Err(crate::rules::RulesStoreError::Refused { source, .. }) => serde_json::json!({
            "accepted": false,
            "line": source.line,
            "column": source.column,
            "reason": source.what,
            "remedy": source.remedy,
        }),
        Err(error) => serde_json::json!({ "accepted": false, "reason": crate::chain(error) }),
    };
    match (output, &checked) {
        (Output::Json, _) => screen::json(&report)?,
        (Output::Table, Ok(served)) => {
            let line = format!("{}: accepted, version {}", file.display(), served.version);
            screen::print(&screen::plain(&line));
        }
        (Output::Table, Err(error)) => screen::error(&crate::chain(error)),
    }
    Ok(code)
}
