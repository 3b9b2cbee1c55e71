//! `sweeper routes`: in which channel of Slack what is told, and why there.

use super::{
    FAILED, Output, Printed, exemptions, explain, inventory, open_existing, screen,
    screen::{bare_table, trim_lines},
};
use crate::{
    config::{Config, SlackTeam},
    findings::Finding,
    inventory::{Launched, LaunchedBy, Scope},
    routes::{self, Facts, Route},
    store::{SLACK, Store, outbox},
};
use guards::policy::Hours;
use jiff::Timestamp;
use model::{ResourceKey, ResourceKind};
use serde::Serialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    process::ExitCode,
};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sweeper routes                               the teams, and where each is told now
  sweeper routes i-0123456789abcdef0           where a finding about this machine would be told now
  sweeper routes f-3f9a --at 2026-11-28T09:00:00Z
                                               the same of a finding, on Saturday morning
  sweeper routes f-3f9a --output json | jq '{told_in, team, because}'

`slack.teams` says whose findings are told where (docs/operations.md). Nothing is sent by this.")]
pub(super) struct Question {
    /// A finding's id, or as much of its beginning as is unique; or the key of a resource, or the end of it behind a colon [default: list the teams]
    #[arg(value_name = "WHAT")]
    what: Option<String>,
    /// At this moment, or the begin of a day in UTC [default: now]
    #[arg(long, value_name = "TIME", value_parser = inventory::moment)]
    at: Option<Timestamp>,
    #[command(flatten)]
    printed: Printed,
}

pub(super) async fn run(config: &Config, question: &Question) -> anyhow::Result<ExitCode> {
    let at = question.at.unwrap_or_else(Timestamp::now);
    match &question.what {
        None => list(config, at, question.printed.output),
        Some(what) => answer(config, what, at, question.printed.output).await,
    }
}

/// A team, and its channel at a moment.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    team: &'a SlackTeam,
    told_in: &'a str,
}

fn list(config: &Config, at: Timestamp, output: Output) -> anyhow::Result<ExitCode> {
    let teams = &config.slack.teams;
    let for_all = config.slack.channel.as_deref();
    let lines: Vec<Line<'_>> = teams.iter().map(|team| Line { team, told_in: team.channel_at(at) }).collect();
    match output {
        Output::Json => screen::json(&serde_json::json!({ "at": at, "teams": lines, "for_all": for_all }))?,
        Output::Table => {
            let mut table = bare_table(["TEAM", "ASKS FOR", "TOLD IN", "HOURS"]);
            for Line { team, told_in } in &lines {
                let hours = team.hours.as_ref().map_or_else(|| "always".to_owned(), |hours| in_words(team, hours));
                table.add_row([&team.name, &asks_for(team), *told_in, &hours].map(screen::plain));
            }
            if !lines.is_empty() {
                screen::print(&trim_lines(&table.to_string()));
            }
            screen::print(&screen::plain(&match for_all {
                Some(channel) if lines.is_empty() => {
                    format!("There are no teams (slack.teams): all is told in {channel}.")
                }
                Some(channel) => format!("What is no team's is told in {channel}."),
                None => NOT_ON.to_owned(),
            }));
        }
    }
    Ok(ExitCode::SUCCESS)
}

const NOT_ON: &str = "Slack is not switched on (slack.channel): nothing is told there.";

fn asks_for(team: &SlackTeam) -> String {
    let tags = team.tags.iter().map(|(key, value)| format!("tag {key}={value}"));
    let one_of = |what: &str, list: &[String]| (!list.is_empty()).then(|| format!("{what} {}", list.join(" or ")));
    let lists = [("owner", &team.owners), ("launcher", &team.launchers), ("account", &team.accounts)];
    let all: Vec<String> = tags.chain(lists.iter().filter_map(|(what, list)| one_of(what, list))).collect();
    if all.is_empty() { "nothing".to_owned() } else { all.join(", ") }
}

fn in_words(team: &SlackTeam, hours: &Hours) -> String {
    let days: Vec<&str> = hours.days.iter().map(|day| day.as_str()).collect();
    let (from, to) = (hours.from.strftime("%H:%M"), hours.to.strftime("%H:%M"));
    let outside = team.channel_outside_hours.as_deref().unwrap_or_default();
    let zone = hours.zone.iana_name().unwrap_or_default();
    format!("{} {from} to {to} {zone} in {}, else in {outside}", days.join(" "), team.channel)
}

/// What `--output json` shows of one question.
#[derive(Serialize)]
struct Told<'a> {
    resource: String,
    finding: Option<&'a str>,
    at: Timestamp,
    /// Where it would be told; none if Slack is not switched on.
    told_in: Option<&'a str>,
    team: Option<&'a str>,
    because: &'a str,
    tags: Option<&'a BTreeMap<String, String>>,
    owner: Option<&'a str>,
    launched_by: Option<&'a LaunchedBy>,
    /// Where its opening was told or will be, and so what answers it is.
    answers_go_to: Option<&'a str>,
    /// Whether its opening was told; false while that is to be sent, and none if it never is.
    is_told: Option<bool>,
}

/// What is asked about.
enum What {
    Finding(Box<Finding>),
    Resource(ResourceKey),
}

async fn answer(config: &Config, what: &str, at: Timestamp, output: Output) -> anyhow::Result<ExitCode> {
    let store = open_existing(config).await?;
    let Some(what) = named(&store, what).await? else { return Ok(ExitCode::from(FAILED)) };
    let resource = match &what {
        What::Finding(finding) => &finding.resource,
        What::Resource(resource) => resource,
    };
    let tags = store.tags_last(&routes::tagged(resource)).await?;
    let launched_by;
    let facts = match &what {
        What::Finding(finding) => Facts::of(finding, tags.as_ref()),
        What::Resource(resource) => {
            launched_by = launched(&store, resource).await?;
            Facts { resource, tags: tags.as_ref(), owner: None, launched_by: launched_by.as_ref() }
        }
    };
    let Route { team, channel, because } = routes::route(&config.slack.teams, &facts, at);
    let for_all = config.slack.channel.as_deref();
    let (finding, before) = match &what {
        What::Finding(finding) => (Some(finding.id.0.as_str()), before(&store, finding).await?),
        What::Resource(_) => (None, None),
    };
    let told = Told {
        resource: resource.to_string(),
        finding,
        at,
        told_in: for_all.map(|for_all| channel.as_deref().unwrap_or(for_all)),
        team: team.as_deref(),
        because: &because,
        tags: facts.tags,
        owner: facts.owner,
        launched_by: facts.launched_by,
        is_told: before.as_ref().and_then(|before| before.is_sent),
        answers_go_to: before.as_ref().and_then(|before| before.channel().or(for_all)),
    };
    match output {
        Output::Json => screen::json(&told)?,
        Output::Table => screen::print(&in_sentences(&told)),
    }
    Ok(ExitCode::SUCCESS)
}

fn in_sentences(told: &Told<'_>) -> String {
    let Some(channel) = told.told_in else { return NOT_ON.to_owned() };
    let for_all = if told.team.is_none() { ", the channel for all" } else { "" };
    let mut lines = vec![format!("A finding about {} is told in {channel}{for_all}: {}.", told.resource, told.because)];
    if let (Some(finding), Some(there)) = (told.finding, told.answers_go_to) {
        let told = match told.is_told {
            Some(true) => "was told",
            Some(false) => "will be told",
            None => "was to be told",
        };
        lines.push(format!("What answers {finding} goes to {there}, where that one {told}."));
    }
    lines.iter().map(|line| screen::plain(line)).collect::<Vec<_>>().join("\n")
}

/// What a person names; none, with an error on the screen, if there is no such thing, or more than one.
async fn named(store: &Store, text: &str) -> anyhow::Result<Option<What>> {
    if text.starts_with("f-") {
        return Ok(explain::finding(store, text).await?.map(|finding| What::Finding(Box::new(finding))));
    }
    if let Ok(resource) = text.parse::<ResourceKey>() {
        exemptions::complain_unless_known(store, &resource).await?;
        return Ok(Some(What::Resource(resource)));
    }
    let found: BTreeSet<String> =
        store.resource_history(text).await?.into_iter().map(|version| version.resource).collect();
    let keys: Vec<&str> = found.iter().map(String::as_str).collect();
    match keys.as_slice() {
        [one] => Ok(Some(What::Resource(one.parse()?))),
        [] => {
            screen::error(&format!(
                "`{text}` is neither a finding nor a resource that a sweep has seen (`sweeper inventory`)"
            ));
            Ok(None)
        }
        several => {
            screen::error(&format!("`{text}` is not unique: {}", several.join(", ")));
            Ok(None)
        }
    }
}

/// Who started a machine or submitted a job, as far as the trail was read.
async fn launched(store: &Store, resource: &ResourceKey) -> anyhow::Result<Option<LaunchedBy>> {
    let what = match resource.kind {
        ResourceKind::Instance => Launched::Machine,
        ResourceKind::BatchJob => Launched::Job,
        _ => return Ok(None),
    };
    let ResourceKey { provider, account, location, id, .. } = resource;
    let scope = Scope { provider: *provider, account: account.clone(), region: location.clone() };
    Ok(store.launches(&scope, what).await?.0.remove(id))
}

/// The message that told the opening of a finding, if one did.
async fn before(store: &Store, finding: &Finding) -> anyhow::Result<Option<outbox::Before>> {
    let opening = crate::reconcile::EventId(finding.id.0.clone());
    Ok(outbox::answered_by_later(store.connection(), &opening, SLACK).await?)
}
