//! `sweeper digest subscribers`, `subscribe` and `unsubscribe`: who gets which digests.

use super::{Output, bare_table, open_existing, screen, trim_lines, words};
use crate::{config::Config, store::Store};
use jiff::Timestamp;
use std::process::ExitCode;

/// A reader of a list.
#[derive(serde::Serialize)]
struct Line {
    list: String,
    address: String,
    /// Whether the configuration names them.
    is_configured: bool,
    /// Since when they want no more of it; none if they get it.
    left_at: Option<Timestamp>,
}

/// Everybody whom the configuration names, and everybody who has left.
async fn lines(config: &Config, store: &Store) -> anyhow::Result<Vec<Line>> {
    let known = store.digest_readers().await?;
    let mut lines = Vec::new();
    for list in &config.digest.lists {
        for recipient in &list.to {
            let address = notifier::email::address(recipient)?;
            let reader = known.iter().find(|reader| reader.list == list.name && reader.address == address);
            let left_at = reader.and_then(|reader| reader.left_at);
            lines.push(Line { list: list.name.clone(), address, is_configured: true, left_at });
        }
    }
    for reader in known.into_iter().filter(|reader| reader.left_at.is_some()) {
        if !lines.iter().any(|line| line.list == reader.list && line.address == reader.address) {
            let (list, address, left_at) = (reader.list, reader.address, reader.left_at);
            lines.push(Line { list, address, is_configured: false, left_at });
        }
    }
    Ok(lines)
}

pub(super) async fn list(config: &Config, output: Output) -> anyhow::Result<ExitCode> {
    let lines = lines(config, &open_existing(config).await?).await?;
    match output {
        Output::Json => screen::json(&lines)?,
        Output::Table if lines.is_empty() => screen::print("No digest is configured (`digest.lists`)."),
        Output::Table => {
            let mut table = bare_table(["LIST", "ADDRESS", "GETS IT"]);
            for line in &lines {
                let gets = match (line.left_at, line.is_configured) {
                    (Some(at), true) => format!("no, unsubscribed {}", words::time(at.as_millisecond())),
                    (Some(at), false) => {
                        format!("no, unsubscribed {} and not configured", words::time(at.as_millisecond()))
                    }
                    (None, _) => "yes".to_owned(),
                };
                table.add_row([screen::plain(&line.list), screen::plain(&line.address), gets]);
            }
            screen::print(&trim_lines(&table.to_string()));
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn set(config: &Config, list: &str, address: &str, gets: bool) -> anyhow::Result<ExitCode> {
    let store = open_existing(config).await?;
    let lines = lines(config, &store).await?;
    let Some(line) = lines.iter().find(|line| line.list == list && line.address == address) else {
        anyhow::bail!("no reader of `{list}` has the address `{address}`; `sweeper digest subscribers` lists all");
    };
    let left_at = if gets { None } else { Some(store.now().await?) };
    store.set_digest_left(list, address, left_at).await?;
    screen::print(&match (gets, line.is_configured) {
        (true, true) => format!("{address} gets the digests of {list} from the next one on."),
        (true, false) => {
            format!("{address} has not unsubscribed from {list} any more, but `digest.lists` does not name it.")
        }
        (false, _) => format!("{address} gets no more digests of {list}."),
    });
    Ok(ExitCode::SUCCESS)
}
