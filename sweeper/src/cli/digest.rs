//! `sweeper digest`: the summaries that are sent by mail, and what one would say now.

use super::{open_existing, screen, screen::bare_table, screen::trim_lines};
use crate::{
    config::{Config, DigestList},
    digest::{Calendar, Facts, Span, day_before, make, week_before},
    verdict::words,
};
use jiff::Timestamp;
use notifier::digest::{Digest, Every};
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
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
}

async fn list(config: &Config, wanted: Option<&str>, form: Form) -> anyhow::Result<ExitCode> {
    let now = open_existing(config).await?.now().await?;
    let mut lines = Vec::new();
    for list in config.digest.lists.iter().filter(|list| wanted.is_none_or(|name| name == list.name)) {
        lines.push(Line {
            name: &list.name,
            owner: list.owner.as_deref(),
            account: list.account.as_deref(),
            every: list.every,
            timezone: &list.timezone,
            next_at: Calendar::of(list)?.next_after(now),
            to: &list.to,
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
            let mut table = bare_table(["LIST", "ABOUT", "NEXT", "TO"]);
            for line in &lines {
                let about = match (line.owner, line.account) {
                    (Some(owner), _) => format!("machines of {owner}"),
                    (None, Some(account)) => format!("account {account}"),
                    (None, None) => "everyone's machines".to_owned(),
                };
                let next = line.next_at.map_or_else(|| "never".to_owned(), |at| words::time(at.as_millisecond()));
                table.add_row([line.name.to_owned(), screen::plain(&about), next, screen::plain(&line.to.join(", "))]);
            }
            screen::print(&trim_lines(&table.to_string()));
        }
    }
    Ok(ExitCode::SUCCESS)
}
