//! `sweeper inventory`.

use super::{FAILED, Output, open_existing, screen};
use crate::{
    config::Config,
    inventory::Kind,
    store::{Span, Version},
    verdict::words,
};
use clap::Args;
use jiff::{SignedDuration, Timestamp, civil};
use screen::{BOLD, DIM, WARN, plain};
use serde::Serialize;
use serde_json::Value;
use std::{fmt::Write as _, process::ExitCode};

/// What no sweep has read for so long, because its region is named no more or nobody sweeps, may have changed since.
const FORGOTTEN: SignedDuration = SignedDuration::from_hours(24);

/// What to show of the inventory.
#[derive(Debug, Args)]
pub(super) struct Question {
    /// Key of one resource, or the end of it behind a colon: all that it has been
    resource: Option<String>,
    /// A moment in the past: 2026-11-17T09:00:00Z, or a day (its begin in UTC)
    #[arg(long, value_parser = moment)]
    at: Option<Timestamp>,
    /// Only this kind
    #[arg(long, value_parser = kind)]
    kind: Option<Kind>,
}

pub(super) fn moment(text: &str) -> Result<Timestamp, String> {
    let day = || text.parse::<civil::Date>().ok()?.to_zoned(jiff::tz::TimeZone::UTC).ok().map(|day| day.timestamp());
    let moment = text.parse().ok().or_else(day);
    moment.ok_or_else(|| "neither a moment such as 2026-11-17T09:00:00Z nor a day such as 2026-11-17".to_owned())
}

fn kind(word: &str) -> Result<Kind, String> {
    let known = || Kind::ALL.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join(", ");
    Kind::from_word(word).ok_or_else(|| format!("not a kind; there are: {}", known()))
}

/// What `--output json` shows.
#[derive(Serialize)]
struct Answer {
    at: Timestamp,
    /// Places and kinds that could not be listed then, or that nobody has listed since.
    not_known: Vec<NotKnown>,
    resources: Vec<Line>,
}

#[derive(Serialize)]
pub(super) struct NotKnown {
    provider: String,
    account: String,
    region: String,
    kind: String,
    since: Timestamp,
    why: String,
}

#[derive(Serialize)]
struct Line {
    kind: String,
    resource: String,
    from: Timestamp,
    until: Option<Timestamp>,
    facts: Value,
}

impl From<Version> for Line {
    fn from(version: Version) -> Self {
        let Version { kind, resource, from, until, record } = version;
        Self { kind, resource, from, until, facts: record }
    }
}

impl NotKnown {
    pub(super) fn of(span: Span, at: Timestamp) -> Option<Self> {
        let Span { provider, account, region, kind, from, until, failed } = span;
        let (since, why) = match failed {
            Some(why) => (from, why),
            None if at.duration_since(until) > FORGOTTEN => (until, "no sweep has read it since".to_owned()),
            None => return None,
        };
        Some(Self { provider, account, region, kind, since, why })
    }
}

pub(super) async fn show(config: &Config, question: Question, output: Output) -> anyhow::Result<ExitCode> {
    let store = open_existing(config).await?;
    let at = question.at.unwrap_or_else(Timestamp::now);
    let versions = match &question.resource {
        None => store.resources_at(at, question.kind).await?,
        Some(resource) => {
            let mut all = store.resource_history(resource).await?;
            all.retain(|version| question.kind.is_none_or(|kind| kind.as_str() == version.kind));
            if question.at.is_some() {
                all.retain(|version| version.from <= at && version.until.is_none_or(|until| at < until));
            }
            all
        }
    };
    if let Some(resource) = question.resource.as_ref().filter(|_| versions.is_empty()) {
        screen::error(&format!(
            "no complete listing has shown `{resource}`{}; `sweeper inventory` lists what there is",
            question.at.map_or_else(String::new, |at| format!(" at {}", words::time(at.as_millisecond())))
        ));
        return Ok(ExitCode::from(FAILED));
    }
    let spans = store.listings_at(at).await?;
    let wanted = |span: &Span| question.kind.is_none_or(|kind| kind.as_str() == span.kind);
    let not_known = spans.into_iter().filter(wanted).filter_map(|span| NotKnown::of(span, at)).collect();
    let answer = Answer { at, not_known, resources: versions.into_iter().map(Line::from).collect() };
    match output {
        Output::Json => screen::json(&answer)?,
        Output::Table if question.resource.is_some() => screen::print(&history(&answer)),
        Output::Table => screen::print(&list(&answer)),
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn warnings(not_known: &[NotKnown]) -> String {
    let mut out = String::new();
    for one in not_known {
        let place = format!("{} {} {} {}", one.provider, one.account, one.region, one.kind);
        let since = words::time(one.since.as_millisecond());
        let _ = writeln!(out, "{WARN}not read since {since}:{WARN:#} {}: {}", plain(&place), plain(&one.why));
    }
    out
}

/// The first of these facts that is known, as text; `-` if none is.
fn fact(facts: &Value, pointers: &[&str]) -> String {
    let known = pointers.iter().filter_map(|pointer| facts.pointer(pointer)).find(|fact| !fact.is_null());
    match known {
        None => "-".to_owned(),
        Some(Value::String(text)) => plain(text),
        Some(other) => plain(&other.to_string()),
    }
}

fn list(answer: &Answer) -> String {
    let mut out = warnings(&answer.not_known);
    if answer.resources.is_empty() {
        let at = words::time(answer.at.as_millisecond());
        let _ = writeln!(out, "Nothing had been listed at {at}. `sweeper sweep` reads the inventory.");
        return out;
    }
    let mut table = screen::bare_table(["KIND", "STATE", "TYPE", "UNCHANGED SINCE", "NAME", "RESOURCE"]);
    for line in &answer.resources {
        table.add_row([
            plain(&line.kind),
            fact(&line.facts, &["/state", "/status"]),
            fact(&line.facts, &["/instance_type", "/volume_type", "/storage_tier", "/resource_type", "/launch_type"]),
            words::time(line.from.as_millisecond()),
            fact(&line.facts, &["/name", "/tags/Name"]),
            plain(&line.resource),
        ]);
    }
    out.push_str(&screen::trim_lines(&table.to_string()));
    out
}

/// All that a resource has been: the first version whole, of each later one what is different.
fn history(answer: &Answer) -> String {
    let mut out = warnings(&answer.not_known);
    let mut before: Option<&Line> = None;
    for line in &answer.resources {
        let until = line.until.map_or_else(|| "now".to_owned(), |until| words::time(until.as_millisecond()));
        let from = words::time(line.from.as_millisecond());
        let _ = writeln!(
            out,
            "{BOLD}{} {}{BOLD:#} {DIM}{from} to {until}{DIM:#}",
            plain(&line.kind),
            plain(&line.resource)
        );
        let same = before.filter(|before| before.resource == line.resource && before.kind == line.kind);
        for (name, value) in line.facts.as_object().into_iter().flatten() {
            let was = same.map(|same| &same.facts[name]);
            match was {
                None if !value.is_null() => {
                    let _ = writeln!(out, "  {name}: {}", plain(&value.to_string()));
                }
                Some(was) if was != value => {
                    let _ = writeln!(out, "  {name}: {} -> {}", plain(&was.to_string()), plain(&value.to_string()));
                }
                _ => {}
            }
        }
        before = Some(line);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_a_time_or_the_begin_of_a_day() {
        assert_eq!(moment("2026-11-17"), Ok("2026-11-17T00:00:00Z".parse().expect("a time")));
        assert_eq!(moment("2026-11-17T09:30:00+01:00"), Ok("2026-11-17T08:30:00Z".parse().expect("a time")));
        assert!(moment("last Tuesday").is_err());
    }

    #[test]
    fn what_nobody_has_read_for_a_day_is_not_known() {
        let at = |hour: i64| Timestamp::from_second(hour * 3_600).expect("a time");
        let not_known = |failed: Option<&str>, now: Timestamp| {
            let span = Span {
                provider: "aws".into(),
                account: "1".into(),
                region: "r".into(),
                kind: "instance".into(),
                from: at(1),
                until: at(10),
                failed: failed.map(str::to_owned),
            };
            NotKnown::of(span, now).map(|one| one.since)
        };
        assert_eq!(not_known(None, at(5)), None, "a moment of the past");
        assert_eq!(not_known(None, at(34)), None);
        assert_eq!(not_known(None, at(35)), Some(at(10)));
        assert_eq!(not_known(Some("denied"), at(11)), Some(at(1)));
    }

    #[test]
    fn later_versions_show_what_is_different() {
        let line = |from: i64, until: Option<i64>, state: &str| Line {
            kind: "instance".into(),
            resource: "aws:1:r:i-1".into(),
            from: Timestamp::from_second(from).expect("a time"),
            until: until.map(|until| Timestamp::from_second(until).expect("a time")),
            facts: serde_json::json!({ "state": state, "name": "a\u{1b}", "owner": null }),
        };
        let resources = vec![line(0, Some(60), "running"), line(60, None, "stopped")];
        let text = history(&Answer { at: Timestamp::UNIX_EPOCH, not_known: Vec::new(), resources });
        assert_eq!(text.matches("name").count(), 1, "{text}");
        assert!(text.contains("state: \"running\" -> \"stopped\"") && !text.contains("owner"), "{text}");
    }
}
