//! `sweeper snooze`, `exempt` and `exemptions`: what is left alone, for now or for good.

use super::{
    FAILED, Output, Printed, explain, inventory, open_existing, plans, screen,
    screen::{bare_table, trim_lines},
};
use crate::{
    config::{Config, duration},
    exemptions::Exemption,
    store::{Alone, Store},
    verdict::words,
};
use heartbeat::NodeId;
use jiff::{SignedDuration, Timestamp};
use model::ResourceKey;
use std::{path::PathBuf, process::ExitCode, time::Duration};

/// What is to be left alone, and whose word it is.
#[derive(Debug, clap::Args)]
struct Word {
    /// A finding's id, a plan's content hash, each as much of its beginning as is unique, or the key of a resource
    #[arg(value_name = "WHAT")]
    what: String,
    /// File that holds your token, as `sweeper approvers token` printed it [default: the variable SWEEPER_APPROVER_TOKEN]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("end").required(true))]
pub(super) struct Snooze {
    #[command(flatten)]
    word: Word,
    /// For so long from now: `8h`, `3d`
    #[arg(long = "for", value_name = "DURATION", group = "end", value_parser = duration::parse)]
    length: Option<Duration>,
    /// Until then: a moment such as 2026-11-17T09:00:00Z, or the begin of a day in UTC such as 2026-11-17
    #[arg(long, value_name = "TIME", group = "end", value_parser = inventory::moment)]
    until: Option<Timestamp>,
    /// Why; kept with it, and shown to everybody who is asked
    #[arg(long, value_name = "TEXT")]
    because: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct Exempt {
    #[command(flatten)]
    word: Word,
    /// Why; kept with it, and shown to everybody who is asked
    #[arg(long, value_name = "TEXT")]
    because: String,
}

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Question {
    #[command(subcommand)]
    command: Option<Command>,
    /// Those that have ended or were lifted, too
    #[arg(long)]
    ended: bool,
    #[command(flatten)]
    printed: Printed,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// End one before its time: what still is found there is planned, and told, again
    #[command(after_help = "Example:\n  sweeper exemptions lift x-5d0f66e03c15 --token-file token")]
    Lift {
        /// As `sweeper exemptions` lists them
        #[arg(value_name = "ID")]
        id: String,
        /// File that holds your token, as `sweeper approvers token` printed it [default: the variable SWEEPER_APPROVER_TOKEN]
        #[arg(long, value_name = "FILE")]
        token_file: Option<PathBuf>,
    },
}

pub(super) async fn snooze(config: &Config, snooze: &Snooze) -> anyhow::Result<ExitCode> {
    let store = open_existing(config).await?;
    let until = match (snooze.until, snooze.length) {
        (Some(until), _) => until,
        (None, length) => store.now().await?.checked_add(SignedDuration::try_from(length.unwrap_or_default())?)?,
    };
    leave_alone(&store, &snooze.word, Some(until), snooze.because.as_deref()).await
}

pub(super) async fn exempt(config: &Config, exempt: &Exempt) -> anyhow::Result<ExitCode> {
    leave_alone(&open_existing(config).await?, &exempt.word, None, Some(&exempt.because)).await
}

async fn leave_alone(
    store: &Store,
    word: &Word,
    until: Option<Timestamp>,
    because: Option<&str>,
) -> anyhow::Result<ExitCode> {
    let Some(by) = plans::who(store, word.token_file.as_deref()).await? else { return Ok(ExitCode::from(FAILED)) };
    let Some(what) = what(store, &word.what).await? else { return Ok(ExitCode::from(FAILED)) };
    match store.exempt(&what, until, because, &by).await? {
        Ok(left) => {
            screen::print(&screen::plain(&(said(&left.exemption) + &left.too_late())));
            Ok(ExitCode::SUCCESS)
        }
        Err(why) => {
            screen::error(&why.to_string());
            Ok(ExitCode::from(FAILED))
        }
    }
}

fn said(exemption: &Exemption) -> String {
    let Exemption { id, resource, until, .. } = exemption;
    let until = until.map_or_else(
        || "until somebody lifts it".to_owned(),
        |until| format!("until {}", words::time(until.as_millisecond())),
    );
    format!("{resource} is left alone {until}: `sweeper exemptions lift {id}` ends that.")
}

/// What a person names; none, with an error on the screen, if there is no such thing, or more than one.
async fn what(store: &Store, text: &str) -> anyhow::Result<Option<Alone>> {
    if text.contains(':') {
        return Ok(match text.parse::<ResourceKey>() {
            Ok(resource) => {
                complain_unless_known(store, &resource).await?;
                Some(Alone::Resource(resource))
            }
            Err(why) => {
                screen::error(&format!("`{}` is not the key of a resource: {why}", screen::plain(text)));
                None
            }
        });
    }
    let finding = match text.starts_with("f-") {
        true => explain::finding(store, text).await?,
        false => match plans::plan(store, text).await? {
            Some(plan) => explain::finding(store, &plan.content().finding).await?,
            None => None,
        },
    };
    Ok(finding.map(|finding| Alone::Finding(Box::new(finding))))
}

/// Says so on the screen if nobody has ever seen a resource.
pub(super) async fn complain_unless_known(store: &Store, resource: &ResourceKey) -> anyhow::Result<()> {
    if !is_known(store, resource).await? {
        let key = screen::plain(&resource.to_string());
        screen::error(&format!("no sweep has ever seen {key}: see whether the key is right (`sweeper inventory`)"));
    }
    Ok(())
}

/// Whether anybody has ever seen a resource; who mistypes a key would think it safe.
async fn is_known(store: &Store, resource: &ResourceKey) -> anyhow::Result<bool> {
    let key = resource.to_string();
    let node = match key.parse::<NodeId>() {
        Ok(node) => store.node(&node).await?,
        Err(_) => None,
    };
    Ok(node.is_some() || store.last_version(&key).await?.is_some())
}

pub(super) async fn run(config: &Config, question: Question) -> anyhow::Result<ExitCode> {
    match question.command {
        None => list(config, question.ended, question.printed.output).await,
        Some(Command::Lift { id, token_file }) => {
            let store = open_existing(config).await?;
            let Some(by) = plans::who(&store, token_file.as_deref()).await? else {
                return Ok(ExitCode::from(FAILED));
            };
            match store.lift_exemption(&id, &by).await? {
                Ok(Exemption { resource, .. }) => {
                    screen::print(&screen::plain(&format!("{resource} is not left alone any more.")));
                    Ok(ExitCode::SUCCESS)
                }
                Err(why) => {
                    screen::error(&screen::plain(&why.to_string()));
                    Ok(ExitCode::from(FAILED))
                }
            }
        }
    }
}

async fn list(config: &Config, ended: bool, output: Output) -> anyhow::Result<ExitCode> {
    let store = open_existing(config).await?;
    let exemptions = store.exemptions(ended).await?;
    match output {
        Output::Json => screen::json(&exemptions)?,
        Output::Table if exemptions.is_empty() => screen::print("Nothing is left alone."),
        Output::Table => {
            let time = |at: Timestamp| words::time(at.as_millisecond());
            let mut table = bare_table(["ID", "WHAT", "FOUND AS", "BY", "UNTIL", "WHY"]);
            for one in &exemptions {
                let until = match (&one.lifted, one.until) {
                    (Some(lifted), _) => format!("lifted by {}, {}", screen::plain(&lifted.by), time(lifted.at)),
                    (None, Some(until)) => time(until),
                    (None, None) => "for good".to_owned(),
                };
                table.add_row([
                    one.id.clone(),
                    screen::plain(&one.resource.to_string()),
                    one.class.map_or_else(|| "anything".to_owned(), |class| class.as_str().to_owned()),
                    screen::plain(&one.approver),
                    until,
                    screen::plain(one.because.as_deref().unwrap_or_default()),
                ]);
            }
            screen::print(&trim_lines(&table.to_string()));
        }
    }
    Ok(ExitCode::SUCCESS)
}
