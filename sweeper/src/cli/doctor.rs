//! `sweeper doctor`.

use super::{FAILED, Output, Printed, screen};
use crate::{
    config::Config,
    doctor::{self, Check, Status},
};
use screen::{BOLD, DIM, ERROR, OK, WARN};
use serde::Serialize;
use std::{fmt::Write as _, path::Path, process::ExitCode};

#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct Question {
    /// Also post one test message to the Slack channel and send one test mail to the recipients of alerts
    #[arg(long)]
    send_test: bool,
    #[command(flatten)]
    printed: Printed,
}

#[derive(Serialize)]
struct Report<'a> {
    version: &'static str,
    /// Whether nothing is broken.
    ok: bool,
    checks: &'a [Check],
}

/// Prints each part as soon as it is done; ends with 1 if anything is broken.
pub(super) async fn run(config: &Config, file: Option<&Path>, question: Question) -> anyhow::Result<ExitCode> {
    // rustls is told once per process which cryptography to use; a second call finds it set.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let output = question.printed.output;
    let told = |checks: &[Check]| {
        if output == Output::Table && !checks.is_empty() {
            screen::print(&part(checks));
        }
    };
    let checks = tokio::select! {
        checks = doctor::examine(config, file, question.send_test, told) => checks,
        _ = tokio::signal::ctrl_c() => {
            screen::error("interrupted; nothing was changed, and a test may have been sent where one was asked for");
            return Ok(ExitCode::from(FAILED));
        }
    };
    let count = |status| checks.iter().filter(|check| check.status == status).count();
    let (broken, warnings) = (count(Status::Broken), count(Status::Warning));
    match output {
        Output::Json => screen::json(&Report { version: env!("CARGO_PKG_VERSION"), ok: broken == 0, checks: &checks })?,
        Output::Table if broken + warnings == 0 => screen::print("\nNothing is wrong with what was checked."),
        Output::Table => screen::print(&format!("\n{broken} broken, {warnings} to look at.")),
    }
    Ok(if broken == 0 { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

/// The checks of one part, below its name where that changes.
fn part(checks: &[Check]) -> String {
    let width = checks.iter().map(|check| screen::plain(&check.name).chars().count()).max().unwrap_or_default();
    let mut text = String::new();
    let mut last = None;
    for check in checks {
        if last != Some(check.part) {
            let _ = writeln!(text, "\n{BOLD}{}{BOLD:#}", check.part.words());
            last = Some(check.part);
        }
        let (word, style) = match check.status {
            Status::Ok => ("ok", OK),
            Status::NotChecked => ("-", DIM),
            Status::Warning => ("look", WARN),
            Status::Broken => ("BROKEN", ERROR),
        };
        let name = screen::plain(&check.name);
        let _ = writeln!(text, "  {name:width$}  {style}{word:6}{style:#}  {}", screen::plain(&check.found));
        if !check.remedy.is_empty() {
            let _ = writeln!(text, "  {:width$}          {DIM}{}{DIM:#}", "", screen::plain(&check.remedy));
        }
    }
    text
}
