//! `sweeper findings`.

use super::{Output, open_existing, screen, sweep};
use crate::{config::Config, findings::Status, sweep::FindingLine, verdict::words};
use std::process::ExitCode;

/// Closed findings that are listed.
const CLOSED: u64 = 50;

pub(super) async fn list(config: &Config, closed: bool, output: Output) -> anyhow::Result<ExitCode> {
    let store = open_existing(config).await?;
    let found = if closed { store.closed_findings(CLOSED).await? } else { store.open_findings().await? };
    match output {
        Output::Json => screen::json(&found)?,
        Output::Table if found.is_empty() => {
            screen::print(if closed { "No closed findings." } else { "No open findings." });
        }
        Output::Table if closed => {
            for finding in &found {
                let Status::Closed { at, because } = &finding.status else { continue };
                screen::print(&format!(
                    "{}  {}  {} to {}: {}",
                    finding.id,
                    screen::plain(finding.name().unwrap_or(&finding.resource.to_string())),
                    words::time(finding.since.as_millisecond()),
                    words::time(at.as_millisecond()),
                    screen::plain(because)
                ));
            }
        }
        Output::Table => {
            let lines: Vec<_> = found.iter().map(FindingLine::from).collect();
            for (heading, lines) in sweep::groups(&lines) {
                if let Some(heading) = heading {
                    screen::print(heading);
                }
                screen::print(&sweep::findings(&lines));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
