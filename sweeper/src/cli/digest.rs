//! `sweeper digest`: the summaries that are sent by mail, and what one would say now.

mod readers;

use super::{
    Output, Printed, open_existing, screen,
    screen::{bare_table, trim_lines},
};
use crate::{
    config::{Config, DigestList},
    digest::{Calendar, Facts, Span, day_before, make, week_before},
    store::{MailState, SentDigest},
    verdict::words,
};
use jiff::Timestamp;
use notifier::digest::{Digest, Every};
use std::process::ExitCode;

/// Mails of a list that are asked for: more than a list has readers.
const MOST: u64 = 1_000;

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Question {
    /// Print the digest of now, and send nothing
    #[arg(long)]
    preview: bool,
    /// Only this list [default: of a preview the first one, or one about everyone if none is configured]
    #[arg(long, value_name = "NAME")]
    list: Option<String>,
    /// For people, for programs, or as a browser shows the mail
    #[arg(long, short, value_enum, default_value_t = Form::Text)]
    output: Form,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List who gets which digests, and who wanted no more of them
    #[command(
        after_help = "Example:\n  sweeper digest subscribers --output json | jq '.[] | select(.left_at != null)'"
    )]
    Subscribers(Printed),
    /// Send a list's digests to an address again that wanted no more of them
    #[command(after_help = "Example:\n  sweeper digest subscribe everyone ann@example.com")]
    Subscribe(Named),
    /// Send no more digests of a list to an address, as the link in its mails does
    #[command(after_help = "Example:\n  sweeper digest unsubscribe everyone ann@example.com")]
    Unsubscribe(Named),
}

/// A reader of a list.
#[derive(Debug, clap::Args)]
struct Named {
    /// The list's name, as `sweeper digest` shows it
    list: String,
    /// The address, as `sweeper digest subscribers` shows it
    address: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Form {
    /// For people
    #[value(alias = "table")]
    Text,
    /// For programs
    Json,
    /// For a browser
    Html,
}

pub(super) async fn run(config: &Config, question: Question) -> anyhow::Result<ExitCode> {
    match question.command {
        Some(Command::Subscribers(printed)) => return readers::list(config, printed.output).await,
        Some(Command::Subscribe(Named { list, address })) => return readers::set(config, &list, &address, true).await,
        Some(Command::Unsubscribe(Named { list, address })) => {
            return readers::set(config, &list, &address, false).await;
        }
        None => {}
    }
    let wanted = question.list.as_deref();
    if let Some(name) = wanted.filter(|name| config.digest.list(name).is_none()) {
        let known: Vec<&str> = config.digest.lists.iter().map(|list| list.name.as_str()).collect();
        let known =
            if known.is_empty() { "none is configured".to_owned() } else { format!("there are {}", known.join(", ")) };
        anyhow::bail!("there is no list `{name}` in `digest.lists`; {known}");
    }
    if question.preview {
        let list = wanted.map_or_else(|| config.digest.lists.first(), |name| config.digest.list(name));
        let everyone = || DigestList { name: "everyone".to_owned(), ..DigestList::default() };
        return preview(config, &list.cloned().unwrap_or_else(everyone), question.output).await;
    }
    list(config, wanted, question.output).await
}

async fn preview(config: &Config, list: &DigestList, form: Form) -> anyhow::Result<ExitCode> {
    let digest = digest_of_now(config, list).await?;
    match form {
        Form::Json => screen::json(&digest)?,
        // Cleaned by what lays it out; as it is sent.
        Form::Text => screen::print(&notifier::email::preview(&digest)?.text),
        Form::Html => screen::print(&notifier::email::preview(&digest)?.html),
    }
    Ok(ExitCode::SUCCESS)
}

async fn digest_of_now(config: &Config, list: &DigestList) -> anyhow::Result<Digest> {
    let store = open_existing(config).await?;
    let now = store.now().await?;
    let from = match list.every {
        Every::Day => day_before(now),
        Every::Week => week_before(now),
    };
    let facts = Facts::read(&store, week_before(now)).await?;
    Ok(make(&facts, list, &Calendar::of(list)?, Span { from, until: now }))
}

/// One list, as it is shown.
#[derive(serde::Serialize)]
struct Line<'a> {
    name: &'a str,
    owner: Option<&'a str>,
    account: Option<&'a str>,
    every: Every,
    timezone: &'a str,
    next_at: Option<Timestamp>,
    to: &'a [String],
    /// The mails of the last digest that was written.
    last: Vec<SentDigest>,
}

async fn list(config: &Config, wanted: Option<&str>, form: Form) -> anyhow::Result<ExitCode> {
    let store = open_existing(config).await?;
    let now = store.now().await?;
    let mut lines = Vec::new();
    for list in config.digest.lists.iter().filter(|list| wanted.is_none_or(|name| name == list.name)) {
        let mut last = store.sent_digests(&list.name, MOST).await?;
        let due_at = last.first().map(|mail| mail.due_at);
        last.retain(|mail| Some(mail.due_at) == due_at);
        lines.push(Line {
            name: &list.name,
            owner: list.owner.as_deref(),
            account: list.account.as_deref(),
            every: list.every,
            timezone: &list.timezone,
            next_at: Calendar::of(list)?.next_after(now),
            to: &list.to,
            last,
        });
    }
    match form {
        Form::Html => anyhow::bail!("only a preview is shown as HTML: `sweeper digest --preview --output html`"),
        Form::Json => screen::json(&lines)?,
        Form::Text if lines.is_empty() => {
            screen::print(
                "No digest is configured (`digest.lists`); `sweeper digest --preview` shows what one would say.",
            );
        }
        Form::Text => {
            let mut table = bare_table(["LIST", "ABOUT", "NEXT", "TO", "LAST"]);
            for line in &lines {
                let about = match (line.owner, line.account) {
                    (Some(owner), _) => format!("machines of {owner}"),
                    (None, Some(account)) => format!("account {account}"),
                    (None, None) => "everyone's machines".to_owned(),
                };
                let next = line.next_at.map_or_else(|| "never".to_owned(), |at| words::time(at.as_millisecond()));
                table.add_row([
                    line.name.to_owned(),
                    screen::plain(&about),
                    next,
                    screen::plain(&line.to.join(", ")),
                    last(&line.last),
                ]);
            }
            screen::print(&trim_lines(&table.to_string()));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// `2026-11-23 08:00 UTC: 2 sent, 1 waits: connection refused`.
fn last(mails: &[SentDigest]) -> String {
    let Some(first) = mails.first() else { return "none was sent yet".to_owned() };
    let count = |state: MailState, word: &str| {
        let count = mails.iter().filter(|mail| mail.state == state).count();
        (count > 0).then(|| format!("{count} {word}"))
    };
    let counts = [
        count(MailState::Sent, "sent"),
        count(MailState::Pending, "to be tried again"),
        count(MailState::Failed, "discarded"),
        count(MailState::Withdrawn, "not wanted any more"),
    ];
    let counts = counts.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let is_stuck = |mail: &&SentDigest| matches!(mail.state, MailState::Pending | MailState::Failed);
    let why = mails.iter().filter(is_stuck).find_map(|mail| mail.last_error.as_deref());
    let why = why.map_or_else(String::new, |why| format!(": {}", screen::plain(why)));
    format!("{}: {counts}{why}", words::time(first.due_at.as_millisecond()))
}
