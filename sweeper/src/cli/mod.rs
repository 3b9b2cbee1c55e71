//! The command line: reads arguments and configuration, calls one module, prints. No decisions are taken here.

mod actions;
mod approvers;
mod audit;
mod command;
mod costs;
mod database;
mod digest;
mod doctor;
mod exemptions;
mod explain;
mod findings;
mod inventory;
mod jobs;
mod messages;
mod node;
mod nodes;
mod plan;
mod plans;
mod policy;
mod prices;
mod progress;
mod recommendations;
mod replay;
mod routes;
mod rules;
mod savings;
mod scopes;
mod screen;
mod serve;
mod sweep;
mod verdicts;
mod who;

use crate::{
    config::{self, Config},
    outbox::Channels,
};
use clap::{Args, Parser, ValueEnum};
use command::Command;
use database::{make_data_dir, migrate, open, open_existing, open_of_any_version};
use std::{io::IsTerminal as _, path::PathBuf, process::ExitCode};
use tracing_subscriber::EnvFilter;

/// Used if it exists and no other file is named.
const DEFAULT_FILE: &str = "/etc/cloud-sweeper/sweeper.toml";

/// Something failed.
const FAILED: u8 = 1;
/// The configuration is wrong. clap ends with the same code on wrong arguments.
const MISUSED: u8 = 2;
/// The sweep ended, and a part of what it was to read could not be read.
const INCOMPLETE: u8 = 3;

/// Finds machines that do no useful work, proves it from the kernel's own counters, and says what they cost.
#[derive(Debug, Parser)]
#[command(
    version,
    propagate_version = true,
    after_help = "\
Examples:
  sweeper doctor                     are credentials, rights, database and channels as they must be?
  sweeper serve                      receive heartbeats, sweep on schedule, tell people
  sweeper sweep                      one sweep now, as a table
  sweeper sweep --output json | jq   the same for programs
  sweeper scopes                     what is swept, and how it went
  sweeper findings                   what is open
  sweeper explain f-3f9a             the evidence of one finding, in words
  sweeper replay                     decide again from the kept evidence, and compare
  sweeper messages --state failed    what people were not told, and why
  sweeper inventory --at 2026-11-17  what there was that day
  sweeper jobs --status RUNNABLE     the AWS Batch jobs that wait, and for what
  sweeper nodes                      which machines report, and how each proved which one it is
  sweeper plans                      what would be done, and who said what of it
  sweeper approve 5d0f66e03c15       a yes to exactly one plan
  sweeper actions                    what was carried out, and how it ended
  sweeper costs --by tool            what machines cost, and for what
  sweeper recommendations            which machines would do as a cheaper type

Exit codes:
  0  done
  1  something failed; the last line says what
  2  wrong arguments, configuration or rules file
  3  the sweep ended, but a part of the inventory could not be read (its report names it)

Settings come from a TOML file and from SWEEPER_SECTION__KEY variables; sweeper.example.toml documents every key.
SWEEPER_LOG sets what is logged (`info`, `debug`, `sweeper=debug,warn`, …)."
)]
pub struct Cli {
    /// Configuration file [default: /etc/cloud-sweeper/sweeper.toml, if it exists]
    #[arg(long, short, global = true, env = "SWEEPER_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Copy, Debug, Args)]
struct Printed {
    /// For people or for programs
    #[arg(long, short, value_enum, default_value_t = Output::Table)]
    output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people
    Table,
    /// For programs
    Json,
}

/// Runs the command and says how it ended.
pub async fn main(cli: Cli) -> ExitCode {
    start_logging(matches!(cli.command, Command::Serve));
    let file = cli.config.or_else(|| Some(PathBuf::from(DEFAULT_FILE)).filter(|file| file.is_file()));
    let config = match Config::load(file.as_deref(), config::environment()) {
        Ok(config) => config,
        Err(error) => {
            screen::error(&crate::chain(&error));
            return ExitCode::from(MISUSED);
        }
    };
    if matches!(cli.command, Command::Serve) {
        config.warnings(file.as_deref()).iter().for_each(|warning| tracing::warn!("{warning}"));
    }
    let done = match cli.command {
        Command::Serve => serve::serve(config).await,
        Command::Sweep(printed) => sweep::sweep(config, printed.output).await,
        Command::Scopes(printed) => scopes::list(&config, printed.output).await,
        Command::Findings { closed, printed } => findings::list(&config, closed, printed.output).await,
        Command::Explain { finding, printed } => explain::explain(&config, &finding, printed.output).await,
        Command::Replay { verdicts: true, against, printed, .. } => {
            verdicts::verdicts(&config, against.as_deref(), printed.output).await
        }
        Command::Replay { findings, printed, .. } => replay::replay(&config, &findings, printed.output).await,
        Command::Inventory { question, printed } => inventory::show(&config, question, printed.output).await,
        Command::Jobs { question, printed } => jobs::list(&config, &question, printed.output).await,
        Command::Messages(question) => messages::run(&config, question).await,
        Command::Routes(question) => routes::run(&config, &question).await,
        Command::Nodes(question) => nodes::run(&config, question).await,
        Command::Plans(printed) => plans::list(&config, printed.output).await,
        Command::Approve(said) => plans::approve(&config, &said).await,
        Command::Deny(said) => plans::deny(&config, &said).await,
        Command::Snooze(word) => exemptions::snooze(&config, &word).await,
        Command::Exempt(word) => exemptions::exempt(&config, &word).await,
        Command::Exemptions(question) => exemptions::run(&config, question).await,
        Command::Actions(question) => actions::run(&config, question).await,
        Command::Undo(undone) => plans::undo(&config, &undone).await,
        Command::Savings(printed) => savings::show(&config, printed.output).await,
        Command::KillSwitch(switching) => actions::kill_switch(&config, switching).await,
        Command::Approvers(question) => approvers::run(&config, question).await,
        Command::Policy(command) => policy::run(&config, &command).await,
        Command::Costs(asked) => costs::show(&config, asked).await,
        Command::Recommendations(asked) => recommendations::show(&config, asked).await,
        Command::Prices(question) => prices::run(&config, question).await,
        Command::Doctor(question) => doctor::run(&config, file.as_deref(), question).await,
        Command::Digest(question) => digest::run(&config, question).await,
        Command::Audit(question) => audit::run(&config, question).await,
        Command::Rules(command) => rules::run(&command),
    };
    done.unwrap_or_else(|error| {
        screen::error(&crate::chain(error.as_ref()));
        ExitCode::from(FAILED)
    })
}

/// Logs go to standard error, so that standard output holds nothing but what was asked for. The service says what it
/// does; a command for people only what is wrong.
fn start_logging(service: bool) {
    // That no credentials are found is told by the report of `sweeper sweep`; of a service nobody reads one, so the SDK's warnings stay.
    let default = match service {
        true => "info,sea_orm_migration=warn,tokio_cron_scheduler=warn",
        false => "warn,aws_config=error",
    };
    let filter = EnvFilter::try_from_env("SWEEPER_LOG").unwrap_or_else(|_| EnvFilter::new(default));
    let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(colours)
        .with_target(false)
        // A line that cannot be written (a full disk) would be complained about by `eprintln!`, which then panics.
        .log_internal_errors(false)
        .init();
}

fn channels(config: &Config) -> anyhow::Result<Channels> {
    // rustls is told once per process which cryptography to use; a second call finds it set.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    Ok(Channels::new(config)?)
}
