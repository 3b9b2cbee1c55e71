//! `sweeper actions` and `kill-switch`: what was carried out, how far each action is, and what stops all of them.

use super::{
    FAILED, Output, Printed,
    nodes::operator,
    open_existing, open_of_any_version, screen,
    screen::{bare_table, trim_lines},
};
use crate::{
    config::Config,
    store::{Action, Direction, Doer, Store},
    verdict::words,
};
use guards::action::State;
use jiff::Timestamp;
use model::{ResourceKind, plan::ContentHash};
use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

/// So many are listed for people.
const SHOWN: u64 = 50;
const SHOWN_ROWS: usize = 50;
/// Where nobody has taken an action up for so long, something is said.
const NOT_TAKEN_UP: Duration = Duration::from_secs(10);
/// How often it is looked how far an action is.
const LOOK: Duration = Duration::from_millis(300);

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Question {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    printed: Printed,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Say that somebody has looked at what came undone in an account: actions are carried out there again
    #[command(after_help = "Example:\n  sweeper actions review 123456789012")]
    Review {
        /// Twelve digits
        account: String,
    },
}

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Switching {
    #[command(subcommand)]
    command: Option<Switch>,
    #[command(flatten)]
    printed: Printed,
}

#[derive(Debug, clap::Subcommand)]
enum Switch {
    /// From now on nothing is carried out, whoever has approved it
    On(Because),
    /// What is approved is carried out again
    Off(Because),
}

#[derive(Debug, clap::Args)]
struct Because {
    /// Why; kept in the audit log
    #[arg(long, value_name = "TEXT")]
    because: Option<String>,
}

pub(super) async fn run(config: &Config, question: Question) -> anyhow::Result<ExitCode> {
    match question.command {
        None => list(config, question.printed.output).await,
        Some(Command::Review { account }) => {
            let by = Doer { who: operator(), way: "command" };
            let reviewed = open_existing(config).await?.review_relapses(&account, &by).await?;
            if reviewed == 0 {
                screen::error(&format!(
                    "nothing has come undone in {} that nobody has looked at",
                    screen::plain(&account)
                ));
                return Ok(ExitCode::from(FAILED));
            }
            screen::print(&format!("Actions are carried out in {} again.", screen::plain(&account)));
            Ok(ExitCode::SUCCESS)
        }
    }
}

async fn list(config: &Config, output: Output) -> anyhow::Result<ExitCode> {
    let most = if output == Output::Json { u64::MAX >> 1 } else { SHOWN + 1 };
    let actions = open_existing(config).await?.actions(most).await?;
    match output {
        Output::Json => screen::json(&actions)?,
        Output::Table if actions.is_empty() => screen::print("Nothing was carried out yet."),
        Output::Table => {
            let mut table = bare_table(["PLAN", "WHAT", "STATE", "SINCE", "ASKED BY", "OUTCOME"]);
            for action in actions.iter().take(SHOWN_ROWS) {
                table.add_row([
                    action.plan.short().to_owned(),
                    format!("{} {}", what(action), screen::plain(&action.resource.to_string())),
                    action.state.as_str().to_owned(),
                    words::time(action.changed_at.as_millisecond()),
                    screen::plain(&action.asked_by.join(", ")),
                    screen::plain(&outcome(action)),
                ]);
            }
            screen::print(&trim_lines(&table.to_string()));
            if actions.len() > SHOWN_ROWS {
                screen::print("These are the latest; `--output json` has all of them.");
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn what(action: &Action) -> &'static str {
    match action.direction {
        Direction::Do => "do",
        Direction::Undo => "undo",
    }
}

fn outcome(action: &Action) -> String {
    let outcome = action.outcome.clone().unwrap_or_else(|| "-".to_owned());
    match &action.relapsed {
        Some((_, because)) if !action.is_reviewed => {
            format!(
                "{outcome}; {because}: nothing more is done in {} until `sweeper actions review`",
                action.resource.account
            )
        }
        Some((_, because)) => format!("{outcome}; {because}"),
        None => outcome,
    }
}

/// Waits until an action has ended, telling of each state; exits with 0 if it was carried out.
pub(super) async fn wait(store: &Store, plan: &ContentHash, direction: Direction) -> anyhow::Result<ExitCode> {
    let (mut told, mut begin): (Option<State>, Option<Instant>) = (None, Some(Instant::now()));
    loop {
        let actions = store.actions_on(plan).await?;
        if let Some(action) = actions.iter().rfind(|action| action.direction == direction) {
            if told != Some(action.state) {
                told = Some(action.state);
                screen::print(&screen::plain(&line(action)));
            }
            if action.state.is_final() {
                return Ok(if action.state == State::Done { ExitCode::SUCCESS } else { ExitCode::from(FAILED) });
            }
        }
        if told.is_none() && begin.is_some_and(|begin| begin.elapsed() >= NOT_TAKEN_UP) {
            begin = None;
            screen::print(
                "nobody has taken it up yet: `sweeper serve` must run, and its last sweep must have confirmed the finding; Ctrl-C ends the waiting and nothing else",
            );
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn line(action: &Action) -> String {
    let at = words::time(action.changed_at.as_millisecond());
    let word = match action.state {
        State::Claimed => "taken up",
        State::DryRun if action.resource.kind == ResourceKind::Volume => {
            "EC2 would do it, and a snapshot is made first"
        }
        State::DryRun if action.resource.kind == ResourceKind::BatchJob => "AWS Batch hears who acts",
        State::DryRun => "EC2 would do it",
        State::Asking if action.resource.kind == ResourceKind::Address => "the address is read once more",
        State::Asking if action.resource.kind == ResourceKind::Volume => {
            "the volume and its snapshot are read once more"
        }
        State::Asking if action.resource.kind == ResourceKind::BatchJob => {
            "the agent on its machine is asked whether anything of it has run"
        }
        State::Asking => "the machine is asked whether somebody works there",
        State::Calling => "the call leaves",
        State::Awaiting if action.resource.kind == ResourceKind::BatchJob => "AWS Batch does it",
        State::Awaiting => "EC2 does it",
        State::Reconciling if action.resource.kind == ResourceKind::BatchJob => {
            "no answer came; AWS Batch is asked what is true"
        }
        State::Reconciling => "no answer came; EC2 is asked what is true",
        State::Done => "done",
        State::Voided => "nothing was done",
        State::Failed => "failed",
    };
    match &action.outcome {
        Some(outcome) => format!("{at}  {word}: {outcome}"),
        None => format!("{at}  {word}"),
    }
}

pub(super) async fn kill_switch(config: &Config, switching: Switching) -> anyhow::Result<ExitCode> {
    let (is_on, because) = match switching.command {
        None => return show(config, switching.printed.output).await,
        Some(Switch::On(Because { because })) => (true, because),
        Some(Switch::Off(Because { because })) => (false, because),
    };
    let by = Doer { who: operator(), way: "command" };
    open_of_any_version(config).await?.set_kill_switch(is_on, because.as_deref(), &by).await?;
    screen::print(if is_on {
        "The kill switch is on: nothing is carried out. A call that has left goes on; `sweeper actions` lists what is under way."
    } else {
        "The kill switch is off: what is approved is carried out where `act.scopes` says so."
    });
    Ok(ExitCode::SUCCESS)
}

async fn show(config: &Config, output: Output) -> anyhow::Result<ExitCode> {
    let switch = open_of_any_version(config).await?.kill_switch().await?;
    match output {
        Output::Json => screen::json(&switch)?,
        Output::Table => {
            let state = if switch.is_on { "on: nothing is carried out" } else { "off" };
            let set = if switch.at > Timestamp::UNIX_EPOCH {
                format!(", set by {} at {}", switch.who, words::time(switch.at.as_millisecond()))
            } else {
                String::new()
            };
            let because = switch.because.map_or_else(String::new, |because| format!(": {because}"));
            screen::print(&screen::plain(&format!("The kill switch is {state}{set}{because}")));
        }
    }
    Ok(ExitCode::SUCCESS)
}
