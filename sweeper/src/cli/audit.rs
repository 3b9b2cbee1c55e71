//! `sweeper audit`: who did what, and whether the log is whole.

use super::{FAILED, Output, Printed, open_existing, screen};
use crate::{
    audit::{Broken, Entry, Kept, Link, Whole},
    config::Config,
    store::Store,
    verdict::words,
};
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Question {
    /// From this entry on
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    from: u64,
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    printed: Printed,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Say whether every entry is in its place and as it was written; if not, exit with 1 and name the first that is not
    #[command(after_help = "\
Examples:
  sweeper audit verify
  sweeper audit verify --head 9f2c…           whether what was there when this hash was written down is there still

Whoever can change the whole table can write a new chain: so write the hash that this prints down elsewhere, now and then.")]
    Verify {
        /// Hash of the last entry at some time, as this command printed it then
        #[arg(long, value_name = "HASH")]
        head: Option<String>,
        #[command(flatten)]
        printed: Printed,
    },
}

pub(super) async fn run(config: &Config, question: Question) -> anyhow::Result<ExitCode> {
    let store = open_existing(config).await?;
    match question.command {
        None => list(&store, question.from, question.printed.output).await,
        Some(Command::Verify { head, printed }) => verify(&store, head.as_deref(), printed.output).await,
    }
}

async fn list(store: &Store, from: u64, output: Output) -> anyhow::Result<ExitCode> {
    let (mut entries, mut next): (Vec<Kept>, u64) = (Vec::new(), from);
    loop {
        let page = store.audit(next).await?;
        let Some(last) = page.last() else { break };
        next = last.sequence.saturating_add(1);
        entries.extend(page);
    }
    let read: Vec<Entry> =
        entries.iter().map(|kept| serde_json::from_str(&kept.text)).collect::<Result<_, _>>().map_err(|error| {
            anyhow::anyhow!("an entry of the audit log cannot be read: {error}; `sweeper audit verify` says which")
        })?;
    match output {
        Output::Json => screen::json(&read)?,
        Output::Table if read.is_empty() => screen::print("No entries."),
        Output::Table => {
            for Entry { sequence, at, who, way, did, on, detail, .. } in &read {
                let detail = detail.iter().map(|(name, value)| format!(", {name}: {value}")).collect::<String>();
                let line = format!(
                    "{sequence}  {}  {who} by {way}: {} {on}{detail}",
                    words::time(at.as_millisecond()),
                    did.as_str()
                );
                screen::print(&screen::plain(&line));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn verify(store: &Store, told: Option<&str>, output: Output) -> anyhow::Result<ExitCode> {
    let checked = check(store, told).await?;
    match (output, &checked) {
        (Output::Json, Ok(whole)) => {
            screen::json(&serde_json::json!({ "whole": true, "entries": whole.entries, "head": whole.head }))?;
        }
        (Output::Json, Err(why)) => screen::json(&serde_json::json!({ "whole": false, "why": why.to_string() }))?,
        (Output::Table, Ok(whole)) => {
            let entries = words::count(usize::try_from(whole.entries).unwrap_or(usize::MAX), "entry", "entries");
            screen::print(&format!("The audit log is whole: {entries}, the last one's hash is {}", whole.head));
        }
        (Output::Table, Err(why)) => screen::error(&format!("the audit log is not whole: {why}")),
    }
    Ok(if checked.is_ok() { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

/// A page of entries is in memory at a time.
async fn check(store: &Store, told: Option<&str>) -> anyhow::Result<Result<Whole, Broken>> {
    // Read first: what is written meanwhile is behind it.
    let (entries, head) = store.audit_head().await?;
    let mut link = Link::first(told);
    loop {
        let page = store.audit(link.next()).await?;
        if page.is_empty() {
            break;
        }
        for kept in page {
            if let Err(why) = link.add(&kept) {
                return Ok(Err(why));
            }
        }
    }
    Ok(link.whole().and_then(|whole| {
        let is_there = whole.entries > entries || (whole.entries == entries && whole.head == head);
        if is_there { Ok(whole) } else { Err(Broken::Cut { head }) }
    }))
}
