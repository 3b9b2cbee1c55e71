//! `sweeper savings`: what was saved by what people approved, and how often it was wrong.

use super::{
    Output, open_existing, screen,
    screen::{bare_table, trim_lines},
};
use crate::{
    config::Config,
    savings::{Saved, Savings, until},
    verdict::words,
};
use std::process::ExitCode;

pub(super) async fn show(config: &Config, output: Output) -> anyhow::Result<ExitCode> {
    let savings = Savings::read(&open_existing(config).await?).await?;
    match output {
        Output::Json => screen::json(&savings)?,
        Output::Table => {
            if !savings.actions.is_empty() {
                screen::print(&trim_lines(&table(&savings.actions)));
            }
            for line in savings.in_words() {
                screen::print(&line);
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn table(saved: &[Saved]) -> String {
    let mut table = bare_table(["PLAN", "WHAT", "SINCE", "UNTIL", "SAVES", "SO FAR", "APPROVED BY"]);
    let or_unknown = |amount: Option<String>| amount.unwrap_or_else(|| "not known".to_owned());
    for one in saved {
        table.add_row([
            one.plan.short().to_owned(),
            screen::plain(&one.title),
            words::time(one.stopped.since.as_millisecond()),
            until(one.stopped),
            or_unknown(one.per_hour.map(|rate| rate.to_string())),
            or_unknown(one.saved.map(model::Usd::in_cents)),
            screen::plain(&one.approved_by.join(", ")),
        ]);
    }
    table.to_string()
}
