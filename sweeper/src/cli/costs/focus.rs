//! `sweeper costs focus`.

use super::{
    super::{FAILED, inventory::moment, open_existing, screen},
    cell, hours,
};
use crate::{
    attribution::{
        Question, Settings,
        focus::{self, COLUMNS, Charge},
    },
    config::Config,
};
use clap::Args;
use costs::By;
use jiff::Timestamp;
use std::{
    io::{self, ErrorKind},
    process::ExitCode,
};

pub(super) const HELP: &str = "\
Examples:
  sweeper costs focus >charges.csv                                      the last seven days
  sweeper costs focus --from 2026-11-01 --to 2026-12-01 >november.csv   a month

Charges are at list prices, before discounts and credits, and come to the bill of `sweeper costs` exactly. Time whose cost is not known has no row; how much that is stands on the error output. docs/costs.md tells of each column.";

/// Which charges.
#[derive(Debug, Args)]
pub(super) struct Asked {
    /// A moment such as 2026-11-17T09:00:00Z, or a day (its begin in UTC) [default: 7 days before the end]
    #[arg(long, value_parser = moment)]
    from: Option<Timestamp>,
    /// Likewise; it is not in it [default: the begin of this hour]
    #[arg(long, value_parser = moment)]
    to: Option<Timestamp>,
}

pub(super) async fn print(config: &Config, asked: &Asked) -> anyhow::Result<ExitCode> {
    let store = open_existing(config).await?;
    // What is told of it is by machine and day in any case.
    let by: By = "instance,day".parse()?;
    let question = match Question::new(by, asked.from, asked.to, store.now().await?) {
        Ok(question) => question,
        Err(why) => {
            screen::error(&why);
            return Ok(ExitCode::from(FAILED));
        }
    };
    let mut out = csv::Writer::from_writer(io::BufWriter::new(io::stdout().lock()));
    let mut written = out.write_record(COLUMNS.iter().map(|(name, _)| *name));
    let told = focus::charges(&store, &Settings::of(config), &question, |charge| {
        if written.is_ok() {
            written = out.write_record(COLUMNS.iter().map(|column| shown(column, charge)));
        }
    })
    .await?;
    let written = written.map_err(io::Error::from).and_then(|()| out.flush());
    match written {
        // Whoever reads it has seen enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(ExitCode::SUCCESS),
        written => written?,
    }
    if told.not_known_seconds > 0 {
        let machine_hours = hours(told.not_known_seconds);
        screen::note(&format!("{machine_hours} machine hours have no row, because their cost is not known:"));
        for (why, seconds) in &told.not_known {
            screen::note(&format!("  {} h: {why}", hours(*seconds)));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What a column says, so that no spreadsheet takes it for a formula. Amounts begin with a digit, and tags with a brace.
fn shown((_, of): &(&str, fn(&Charge<'_>) -> String), charge: &Charge<'_>) -> String {
    cell(&of(charge)).into_owned()
}
