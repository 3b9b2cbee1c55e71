//! `sweeper prices`.

use super::{FAILED, Output, Printed, open_existing, screen};
use crate::{
    config::Config,
    priced::{self, Answer, Comparison, NotPriced, Priced},
    verdict::words,
};
use clap::{Args, Subcommand};
use jiff::Timestamp;
use model::HourlyRate;
use screen::{BOLD, DIM, WARN, plain};
use std::{fmt::Write as _, process::ExitCode};

/// What stands below the help.
pub(super) const EXAMPLES: &str = "\
Examples:
  sweeper prices                               what each kind of running machine costs an hour, and which rows say so
  sweeper prices m5.large                      of one type, with what it cost before
  sweeper prices i-0123456789abcdef0           of one machine, or why its price is not known
  sweeper prices check                         ask the price list now, and show what it says otherwise; nothing is changed
  sweeper prices refresh                       the same, and keep it
  sweeper prices --output json | jq '.not_known'

Without `check` and `refresh` nobody is asked: it shows what sweeps have read. Where prices come from `pricing` in the configuration says (docs/costs.md).";

/// Which prices to show.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Question {
    /// Key of one machine, the end of it behind a colon, its name, or a type of machines
    machine: Option<String>,
    #[command(flatten)]
    printed: Printed,
    #[command(subcommand)]
    ask: Option<Ask>,
}

#[derive(Clone, Copy, Debug, Subcommand)]
enum Ask {
    /// Ask the price list now and compare; ends with 1 if it says anything otherwise
    #[command(
        after_help = "Example:\n  sweeper prices check --output json | jq '.prices[] | select(.usd_kept != .usd_now)'"
    )]
    Check(Printed),
    /// Ask the price list now, and keep what it says; ends with 1 if a price that was known could not be read
    #[command(after_help = "Example:\n  sweeper prices refresh")]
    Refresh(Printed),
}

pub(super) async fn run(config: &Config, question: Question) -> anyhow::Result<ExitCode> {
    let store = open_existing(config).await?;
    let (keep, output) = match question.ask {
        None => {
            let answer = priced::priced(&store, config, question.machine.as_deref()).await?;
            return show(&answer, question.machine.as_deref(), question.printed.output);
        }
        Some(Ask::Check(printed)) => (false, printed.output),
        Some(Ask::Refresh(printed)) => (true, printed.output),
    };
    let comparison = priced::compare(&store, config, keep).await?;
    match output {
        Output::Json => screen::json(&comparison)?,
        Output::Table => screen::print(&compared(&comparison)),
    }
    let is_bad = |one: &priced::Compared| match keep {
        true => one.usd_kept.is_some() && one.usd_now.is_none(),
        false => one.is_other(),
    };
    Ok(if comparison.prices.iter().any(is_bad) { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}

fn show(answer: &Answer, wanted: Option<&str>, output: Output) -> anyhow::Result<ExitCode> {
    if let Some(wanted) = wanted.filter(|_| answer.prices.is_empty() && answer.not_known.is_empty()) {
        screen::error(&format!(
            "no machine that runs is `{wanted}` or of that type; `sweeper inventory --kind instance` lists all"
        ));
        return Ok(ExitCode::from(FAILED));
    }
    match output {
        Output::Json => screen::json(answer)?,
        Output::Table if wanted.is_some() => screen::print(&in_full(answer)),
        Output::Table => screen::print(&table(answer)),
    }
    Ok(ExitCode::SUCCESS)
}

fn per_hour(micros: i64) -> String {
    HourlyRate::from_micros(micros).to_string()
}

fn at(time: Timestamp) -> String {
    words::time(time.as_millisecond())
}

fn machines(keys: &[String]) -> String {
    words::count(keys.len().try_into().unwrap_or(u64::MAX), "machine", "machines")
}

fn table(answer: &Answer) -> String {
    let mut out = String::new();
    if answer.prices.is_empty() && answer.not_known.is_empty() {
        let _ = writeln!(out, "No machine is known that runs. `sweeper sweep` reads the inventory and the prices.");
    }
    if !answer.prices.is_empty() {
        let mut table = screen::bare_table(["PER HOUR", "MACHINES", "OF", "SINCE", "LAST READ", "ROWS OF THE LIST"]);
        for one in &answer.prices {
            table.add_row([
                per_hour(one.micro_usd_per_hour),
                one.machines.len().to_string(),
                plain(&one.of),
                at(one.since),
                at(one.read_at),
                one.source_rows.as_deref().map_or_else(|| "-".to_owned(), plain),
            ]);
        }
        let _ = writeln!(out, "{}", screen::trim_lines(&table.to_string()));
    }
    not_known(&mut out, &answer.not_known);
    let overdue = answer.overdue();
    if overdue > 0 {
        let _ = writeln!(
            out,
            "{WARN}{overdue} of these prices were not read within the last day;{WARN:#} `sweeper prices check` says why."
        );
    }
    if !answer.per_unit.is_empty() {
        let mut table = screen::bare_table(["PER UNIT", "OF", "SINCE", "LAST READ"]);
        for one in &answer.per_unit {
            table.add_row([format!("${}", one.usd), plain(&one.of), at(one.since), at(one.read_at)]);
        }
        let _ = writeln!(out, "\n{}", screen::trim_lines(&table.to_string()));
    }
    out
}

fn not_known(out: &mut String, reasons: &[NotPriced]) {
    for one in reasons {
        let _ = writeln!(out, "{WARN}not known{WARN:#} of {}: {}", machines(&one.machines), plain(&one.why));
    }
}

/// One kind of machine after the other, with all that is known of its price.
fn in_full(answer: &Answer) -> String {
    let mut out = String::new();
    for Priced { of, machines: keys, micro_usd_per_hour, since, read_at, source_rows, before } in &answer.prices {
        let _ = writeln!(out, "{BOLD}{}{BOLD:#} {}; {}", per_hour(*micro_usd_per_hour), plain(of), machines(keys));
        let mut line = |heading: &str, text: &str| {
            let _ = writeln!(out, "  {DIM}{heading:<10}{DIM:#}{text}");
        };
        line("since", &at(*since));
        line("last read", &at(*read_at));
        if let Some(rows) = source_rows {
            line("rows", &plain(rows));
        }
        for before in before.iter().rev() {
            line("before", &format!("{} since {}", per_hour(before.micro_usd_per_hour), at(before.since)));
        }
    }
    not_known(&mut out, &answer.not_known);
    out
}

fn compared(comparison: &Comparison) -> String {
    let mut out = String::new();
    let (other, same): (Vec<_>, Vec<_>) = comparison.prices.iter().partition(|one| one.is_other());
    if !other.is_empty() {
        let mut table = screen::bare_table(["KEPT", "NOW", "OF", "WHY"]);
        for one in &other {
            let shown = |usd: Option<&String>| usd.map_or_else(|| "not known".to_owned(), |usd| format!("${usd}"));
            table.add_row([
                shown(one.usd_kept.as_ref()),
                shown(one.usd_now.as_ref()),
                plain(&one.of),
                one.why_not_known.as_deref().map_or_else(|| "-".to_owned(), plain),
            ]);
        }
        let _ = writeln!(out, "{}", screen::trim_lines(&table.to_string()));
    }
    let (known, unknown): (Vec<_>, Vec<_>) = same.into_iter().partition(|one| one.usd_now.is_some());
    let prices = |count: usize| words::count(count.try_into().unwrap_or(u64::MAX), "price", "prices");
    let _ = writeln!(out, "{} the same as kept, {} otherwise.", prices(known.len()), other.len());
    for one in &unknown {
        let why = one.why_not_known.as_deref().unwrap_or_default();
        let _ = writeln!(out, "{WARN}not known{WARN:#} as before: {}: {}", plain(&one.of), plain(why));
    }
    if comparison.spot_machines > 0 {
        let spot = words::count(comparison.spot_machines.try_into().unwrap_or(u64::MAX), "machine", "machines");
        let _ = writeln!(out, "{DIM}Spot prices, here of {spot}, are asked for by each sweep and not compared.{DIM:#}");
    }
    out
}
