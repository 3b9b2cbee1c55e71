//! `sweeper recommendations`.

use super::{FAILED, Output, inventory::moment, open_existing, screen};
use crate::{
    config::Config,
    recommendations::{self, Answer, Question, Recommended, Refused, Settings},
    verdict::words,
};
use clap::Args;
use jiff::Timestamp;
use model::Usd;
use screen::{BOLD, DIM, plain};
use std::{fmt::Write as _, process::ExitCode};

/// What stands below the help.
pub(super) const EXAMPLES: &str = "\
Examples:
  sweeper recommendations                      which machines would do as a cheaper type, what saves most first
  sweeper recommendations i-0123456789abcdef0  the same of one machine, or every reason why nothing is recommended
  sweeper recommendations --output json | jq '.recommendations[] | {resource, what, list_micro_usd_per_month}'

Nothing is asked of a provider, and nothing is done: a change of type cannot be approved here yet. docs/recommendations.md has the rules.";

/// What to recommend for.
#[derive(Debug, Args)]
pub(super) struct Asked {
    /// Key of one machine, the end of it behind a colon, or its name
    resource: Option<String>,
    /// As of a moment such as 2026-11-17T09:00:00Z, or a day (its begin in UTC) [default: now]
    #[arg(long, value_parser = moment)]
    at: Option<Timestamp>,
    /// For people or for programs
    #[arg(long, short, value_enum, default_value_t = Output::Table)]
    output: Output,
}

pub(super) async fn show(config: &Config, asked: Asked) -> anyhow::Result<ExitCode> {
    let Asked { resource, at, output } = asked;
    let store = open_existing(config).await?;
    let question = Question { resource, at };
    let answer = recommendations::recommend(&store, &Settings::of(config), &question).await?;
    let is_nothing = answer.recommendations.is_empty() && answer.not_recommended.is_empty();
    if let (Some(resource), true) = (&question.resource, is_nothing) {
        screen::error(&format!("no list has a machine `{resource}`; `sweeper inventory --kind instance` lists them"));
        return Ok(ExitCode::from(FAILED));
    }
    match output {
        Output::Json => screen::json(&answer)?,
        Output::Table => screen::print(&text(&answer, question.resource.is_some())),
    }
    Ok(ExitCode::SUCCESS)
}

fn text(answer: &Answer, is_of_one: bool) -> String {
    let mut out = String::new();
    if answer.recommendations.len() > 1 {
        let saved = Usd::from_micros(answer.saving_micro_usd_per_month).in_cents();
        let _ = writeln!(
            out,
            "{BOLD}{saved} a month{BOLD:#} at list prices, if all of it is done. What to do first comes first.\n"
        );
    }
    for one in &answer.recommendations {
        recommended(&mut out, one);
    }
    if is_of_one {
        answer.not_recommended.iter().for_each(|one| refused(&mut out, one));
    } else {
        others(&mut out, answer);
    }
    if !answer.recommendations.is_empty() {
        let _ = writeln!(
            out,
            "{DIM}A change of type cannot be approved here yet: it is done by hand, and each machine is stopped for it.{DIM:#}"
        );
    }
    out
}

/// `align-1 (aws:123456789012:us-east-1:i-…), of lena`
fn title(name: Option<&str>, resource: &str, owner: Option<&str>) -> String {
    let mut title = match name {
        Some(name) => format!("{BOLD}{}{BOLD:#} ({})", plain(name), plain(resource)),
        None => format!("{BOLD}{}{BOLD:#}", plain(resource)),
    };
    if let Some(owner) = owner {
        let _ = write!(title, ", of {}", plain(owner));
    }
    title
}

fn recommended(out: &mut String, one: &Recommended) {
    let _ = writeln!(out, "{}. {}", one.rank, title(one.name.as_deref(), &one.resource, one.owner.as_deref()));
    let saves = one.list_micro_usd_per_month.map(|micros| {
        let list = Usd::from_micros(micros).in_cents();
        let bill = one.effective_micro_usd_per_month.map(|micros| Usd::from_micros(micros).in_cents());
        format!(
            ", saves {list} a month at list prices{}",
            bill.map_or_else(String::new, |bill| format!(", {bill} by the bill"))
        )
    });
    let _ = writeln!(out, "   {BOLD}{}{BOLD:#}{}", plain(&one.what), saves.unwrap_or_default());
    let level = serde_json::to_value(one.confidence).ok();
    let level = level.as_ref().and_then(|level| level.as_str()).unwrap_or_default();
    let _ = writeln!(out, "   Confidence: {level}");
    let mut lines = |heading: &str, lines: &[String]| {
        for (n, line) in lines.iter().enumerate() {
            let heading = if n == 0 { heading } else { "" };
            let _ = writeln!(out, "   {DIM}{heading:<16}{DIM:#}{}", plain(line));
        }
    };
    lines("not higher, as", &one.doubts);
    lines("because", &one.evidence);
    lines("may go wrong", &one.risks);
    lines("to undo it", std::slice::from_ref(&one.undo));
    out.push('\n');
}

fn refused(out: &mut String, one: &Refused) {
    let _ =
        writeln!(out, "{}: nothing is recommended", title(one.name.as_deref(), &one.resource, one.owner.as_deref()));
    for reason in &one.reasons {
        let _ = writeln!(out, "   {}", plain(reason));
    }
    for considered in &one.considered {
        let _ = writeln!(out, "   {DIM}{:<16}{DIM:#}{}", plain(&considered.machine_type), plain(&considered.why_not));
    }
}

fn others(out: &mut String, answer: &Answer) {
    let others = answer.not_recommended.len();
    let (one, many) = match answer.recommendations.is_empty() {
        true => ("machine", "machines"),
        false => ("other machine", "other machines"),
    };
    if answer.recommendations.is_empty() {
        let _ = writeln!(out, "Nothing is recommended.");
    }
    if others > 0 {
        let others = words::count(others, one, many);
        let _ = writeln!(out, "Of {others} nothing is recommended; `sweeper recommendations RESOURCE` says why.");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recommender::recommendation::{Change, Level};

    fn answer() -> Answer {
        let change = Change::Rightsize { from: "m5.xlarge".to_owned(), to: "m5.large".to_owned() };
        let one = |rank, name: &str| Recommended {
            rank,
            resource: format!("aws:123456789012:us-east-1:i-{rank}"),
            name: Some(name.to_owned()),
            owner: Some("lena".to_owned()),
            change: change.clone(),
            what: "m5.xlarge → m5.large".to_owned(),
            list_micro_usd_per_month: Some(70_080_000),
            effective_micro_usd_per_month: None,
            confidence: Level::Medium,
            doubts: vec!["only 9 days were observed: what comes once a month may not be among them".to_owned()],
            observed: None,
            evidence: vec!["memory in use: 3.0 GiB in the fullest second".to_owned()],
            risks: vec!["the machine is stopped for some minutes".to_owned()],
            undo: "stop the machine, make it a m5.xlarge again, start it".to_owned(),
            catalogue_read_at: None,
        };
        let refused = Refused {
            resource: "aws:123456789012:us-east-1:i-9".to_owned(),
            name: None,
            owner: None,
            reasons: vec!["memory in use was not measured".to_owned()],
            considered: Vec::new(),
        };
        Answer {
            at: "2026-11-27T10:00:00Z".parse().expect("a time"),
            saving_micro_usd_per_month: 140_160_000,
            is_action: false,
            recommendations: vec![one(1, "align-1"), one(2, "a\u{1b}[2J")],
            not_recommended: vec![refused],
        }
    }

    fn shown(answer: &Answer, is_of_one: bool) -> String {
        anstream::adapter::strip_str(&text(answer, is_of_one)).to_string()
    }

    #[test]
    fn a_person_reads_what_to_do_first_why_what_it_is_worth_and_how_to_undo_it() {
        let text = shown(&answer(), false);
        let first = "\
$140.16 a month at list prices, if all of it is done. What to do first comes first.

1. align-1 (aws:123456789012:us-east-1:i-1), of lena
   m5.xlarge → m5.large, saves $70.08 a month at list prices
   Confidence: medium
   not higher, as  only 9 days were observed: what comes once a month may not be among them
   because         memory in use: 3.0 GiB in the fullest second
   may go wrong    the machine is stopped for some minutes
   to undo it      stop the machine, make it a m5.xlarge again, start it
";
        assert!(text.starts_with(first), "{text}");
        assert!(text.contains("2. a\\u{1b}[2J (aws"), "no name acts on a terminal: {text}");
        assert!(
            text.contains("Of 1 other machine nothing is recommended; `sweeper recommendations RESOURCE`"),
            "{text}"
        );
        assert!(text.contains("cannot be approved here yet"), "{text}");
    }

    #[test]
    fn of_one_machine_every_reason_is_told() {
        let mut answer = answer();
        answer.recommendations.clear();
        let text = shown(&answer, true);
        assert_eq!(text, "aws:123456789012:us-east-1:i-9: nothing is recommended\n   memory in use was not measured\n");
        let text = shown(&answer, false);
        assert!(text.starts_with("Nothing is recommended.\nOf 1 machine nothing is recommended; "), "{text}");
    }
}
