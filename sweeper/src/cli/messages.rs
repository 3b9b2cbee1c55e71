//! `sweeper messages`: what people are told of findings, whether it arrived, and a new start for what was discarded.

use super::{
    Output, Printed, open_existing, screen,
    screen::{bare_table, trim_lines},
};
use crate::{
    config::Config,
    reconcile::EventId,
    store::{Message, MessageState},
    verdict::words,
};
use jiff::Timestamp;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Question {
    /// Only those in this state
    #[arg(long)]
    state: Option<MessageState>,
    /// So many at most, the latest first
    #[arg(long, value_name = "COUNT", default_value_t = 50)]
    most: u64,
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    printed: Printed,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Try discarded messages again, as if they were new: those of the events that are named, or all of open findings
    #[command(after_help = "\
Examples:
  sweeper messages retry                       every discarded message about a finding that is still open
  sweeper messages retry f-3f9a1c22b7d0/2      those of one event, as the list names it

Nothing is sent by this command itself: `sweeper serve` does, within seconds.")]
    Retry {
        /// Events, as `sweeper messages` lists them
        #[arg(value_name = "EVENT")]
        events: Vec<String>,
        #[command(flatten)]
        printed: Printed,
    },
}

pub(super) async fn run(config: &Config, question: Question) -> anyhow::Result<ExitCode> {
    match question.command {
        None => list(config, &question).await,
        Some(Command::Retry { events, printed }) => retry(config, events, printed.output).await,
    }
}

async fn list(config: &Config, question: &Question) -> anyhow::Result<ExitCode> {
    let messages = open_existing(config).await?.messages(question.state, question.most).await?;
    match question.printed.output {
        Output::Json => screen::json(&messages)?,
        Output::Table if messages.is_empty() => screen::print("No messages."),
        Output::Table => {
            let mut table = bare_table(["WRITTEN", "EVENT", "CHANNEL", "STATE", "SAYS"]);
            for message in &messages {
                table.add_row([
                    words::time(message.created_at.as_millisecond()),
                    screen::plain(&message.event.0),
                    screen::plain(&message.destination.as_ref().map_or_else(
                        || message.channel.clone(),
                        |destination| format!("{} {destination}", message.channel),
                    )),
                    status(message),
                    screen::plain(&message.headline),
                ]);
            }
            screen::print(&trim_lines(&table.to_string()));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether it arrived, and if not, why and what follows.
fn status(message: &Message) -> String {
    let time = |at: Option<Timestamp>| at.map_or_else(String::new, |at| words::time(at.as_millisecond()));
    let why = message.last_error.as_deref().map_or_else(String::new, |why| format!(": {}", screen::plain(why)));
    let instead = instead(message);
    match message.state {
        MessageState::Sent if message.updates.is_some() => format!("updated at {}", time(message.sent_at)),
        MessageState::Sent => match &message.bundle {
            Some(bundle) => format!("sent at {} in bundle {bundle}{instead}", time(message.sent_at)),
            None => format!("sent at {}{instead}", time(message.sent_at)),
        },
        MessageState::Pending if message.attempts == 0 => "waits".to_owned(),
        MessageState::Pending => {
            format!("tried {} ×, next at {}{why}", message.attempts, time(message.next_attempt_at))
        }
        MessageState::Failed => format!("discarded after {} ×{why}", message.attempts),
        MessageState::Withdrawn => format!("not needed{why}"),
    }
}

/// That it went to the channel for all, and why.
fn instead(message: &Message) -> String {
    let why = message.routed_because.as_deref().unwrap_or_default();
    let instead = message.diverted_from.as_ref().map(|meant| format!(", not in {meant}: {why}"));
    instead.map_or_else(String::new, |instead| screen::plain(&instead))
}

async fn retry(config: &Config, events: Vec<String>, output: Output) -> anyhow::Result<ExitCode> {
    let store = open_existing(config).await?;
    let events: Vec<_> = events.into_iter().map(EventId).collect();
    let (requeued, ended) = store.retry_messages(&events, Timestamp::now()).await?;
    match output {
        Output::Json => screen::json(&serde_json::json!({ "requeued": requeued, "ended": ended }))?,
        Output::Table => {
            let count = |count| words::count(count, "message", "messages");
            screen::print(&format!("{} will be tried again.", count(requeued)));
            if ended > 0 {
                screen::print(&format!(
                    "{} left: their findings have ended. Name their events to send them all the same.",
                    count(ended)
                ));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
