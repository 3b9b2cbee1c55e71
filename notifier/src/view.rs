//! A notice made safe and put in order, in words that need no knowledge of this product; the channels only lay it out. Pure.
//!
//! What is not known is said to be not known, with the reason; it is never left out and never zero.

use std::fmt;

use jiff::Timestamp;
use url::Url;

use crate::{
    message::{Ask, FindingNotice, Outcome, headline, how_long},
    text::{clean, fit},
};

/// Evidence lines that a message shows; the rest is one command away.
const EVIDENCE_SHOWN: usize = 12;
/// Longest single value, in UTF-16 units: an EC2 tag value may have 256.
const VALUE_LIMIT: usize = 300;
/// Longest label of a button; what Slack's dialog takes.
const LABEL_LIMIT: usize = 30;
/// What is true of every message that is about no action.
pub(crate) const NOTHING_CHANGED: &str = "Nothing has been changed. Cloud Sweeper acts only after a person says yes.";
/// What is true of every message, whatever has been changed.
pub(crate) const ONLY_AFTER_A_YES: &str = "Cloud Sweeper acts only after a person says yes.";

/// How a message is marked at a glance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Severity {
    /// Money is spent for nothing.
    Waste,
    /// Nothing is known: a blind spot, not an accusation.
    Blind,
    /// Something is broken.
    Broken,
    /// It was so, and is over.
    Over,
    /// What people wanted is done.
    Done,
    /// What people wanted was not done.
    Voided,
    /// What people wanted was tried in vain.
    Failed,
}

/// A label and what there is to say under it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fact {
    pub(crate) label: &'static str,
    pub(crate) value: Value,
}

/// What stands under a label. `Display` is the form for plain text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    /// One clean line.
    Line(String),
    /// A moment: a channel that knows its reader's time zone may use it.
    At(Timestamp),
    /// A moment and how long ago it was, likewise.
    Since { at: Timestamp, lasted: String },
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(text) => f.write_str(text),
            Self::At(at) => f.write_str(&moment(*at)),
            Self::Since { at, lasted } => write!(f, "{} ({lasted})", moment(*at)),
        }
    }
}

/// A moment for those whose time zone is not known.
pub(crate) fn moment(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M UTC").to_string()
}

/// A notice made safe and put in order. Every text is one clean line of bounded length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) severity: Severity,
    pub(crate) headline: String,
    pub(crate) facts: Vec<Fact>,
    pub(crate) certainty: Option<String>,
    /// What ended it, or became of what people wanted, with its heading: in place of what shows it.
    pub(crate) instead: Option<(&'static str, String)>,
    pub(crate) evidence: Vec<String>,
    pub(crate) evidence_left_out: usize,
    pub(crate) plan: Option<String>,
    /// What people are asked, and have said.
    pub(crate) ask: Option<Ask>,
    pub(crate) answers: Vec<String>,
    /// Whether these tell what came of it, too.
    pub(crate) is_over: bool,
    /// Whether its evidence is that of now.
    pub(crate) is_open: bool,
    pub(crate) keeps_billing: Vec<String>,
    /// What the command is good for.
    pub(crate) lead: &'static str,
    /// A command that can be pasted into a shell as it is.
    pub(crate) command: String,
    /// What has been changed, and by whose word.
    pub(crate) changed: &'static str,
    pub(crate) page: Option<Url>,
    pub(crate) finding_id: String,
    pub(crate) resource: String,
}

/// Puts a notice into words.
pub(crate) fn view_of(notice: &FindingNotice) -> View {
    let line = |text: &str| fit(&clean(text), VALUE_LIMIT);
    let told = |text: &Option<String>| text.as_deref().map(line).filter(|text| !text.is_empty());
    let finding_id = word(&notice.finding_id);
    let mut facts = Vec::new();
    let mut fact = |label, value| facts.push(Fact { label, value });
    let what = [told(&notice.resource_name), told(&notice.resource_kind)];
    let what: Vec<_> = what.into_iter().flatten().collect();
    if !what.is_empty() {
        fact("What", Value::Line(what.join(", ")));
    }
    if let Some(place) = told(&notice.place) {
        fact("Where", Value::Line(place));
    }
    let lasted = how_long(notice.since, notice.as_of);
    fact("Since", Value::Since { at: notice.since, lasted });
    if let Some(ended) = &notice.ended {
        fact("Ended", Value::At(ended.at));
    }
    if let Some(acted) = &notice.acted {
        let names: Vec<_> = acted.asked_by.iter().map(|name| line(name)).filter(|name| !name.is_empty()).collect();
        let names = if names.is_empty() {
            "nobody: the sweeper did so by itself".to_owned()
        } else {
            fit(&names.join(", "), VALUE_LIMIT)
        };
        fact("In the name of", Value::Line(names));
        fact("At", Value::At(acted.at));
    }
    let owner = told(&notice.owner).unwrap_or_else(|| "no owner tag".to_owned());
    fact("Owner", Value::Line(owner));
    // The reason stands where the first figure is missing, and only there.
    let mut reason = told(&notice.unknown_price_reason);
    let mut money = |label, text: &Option<String>| {
        let unknown = || match reason.take() {
            Some(reason) => format!("not known: {reason}"),
            None => "not known".to_owned(),
        };
        fact(label, Value::Line(told(text).unwrap_or_else(unknown)));
    };
    let is_past = notice.ended.is_some() || notice.acted.is_some();
    money(if is_past { "Cost" } else { "Costs" }, &notice.cost_per_hour);
    money(if is_past { "Spent in that time" } else { "Spent since then" }, &notice.cost_so_far);
    if notice.plan_summary.is_some() || notice.net_saving.is_some() {
        money("Stopping saves, net", &notice.net_saving);
    }
    let lines = |texts: &[String]| -> Vec<String> {
        texts.iter().map(|text| line(text)).filter(|text| !text.is_empty()).collect()
    };
    let mut evidence = lines(&notice.evidence);
    let evidence_left_out = evidence.len().saturating_sub(EVIDENCE_SHOWN);
    evidence.truncate(EVIDENCE_SHOWN);
    let answers = last(lines(&notice.answers), EVIDENCE_SHOWN);
    let mut keeps_billing = lines(&notice.keeps_billing);
    keeps_billing.truncate(EVIDENCE_SHOWN);
    let ask = ask(notice);
    let undo = notice.acted.as_ref().and_then(|acted| acted.undo.as_deref());
    let undo = undo.map(|plan| format!("sweeper undo {}", word(plan)));
    View {
        severity: severity(notice),
        headline: said_headline(notice),
        facts,
        certainty: told(&notice.certainty),
        instead: match (&notice.acted, &notice.ended) {
            (Some(acted), _) => Some(("What came of it", line(&acted.because))),
            (None, Some(ended)) => Some(("What ended it", line(&ended.because))),
            (None, None) => None,
        },
        evidence,
        evidence_left_out,
        plan: told(&notice.plan_summary).map(|plan| planned(plan, ask.as_ref())),
        ask,
        answers,
        is_over: notice.came_of_it.is_some(),
        is_open: !is_past,
        keeps_billing,
        lead: if undo.is_some() { "Undo it" } else { "See the evidence" },
        command: undo.unwrap_or_else(|| format!("sweeper explain {finding_id}")),
        changed: changed(notice),
        page: notice.page_url.as_deref().and_then(page),
        finding_id,
        resource: line(&notice.resource),
    }
}

/// What could be done, and that nobody may say so.
fn planned(plan: String, ask: Option<&Ask>) -> String {
    match ask.and_then(|ask| ask.nobody_may.as_ref()) {
        Some(why) => format!("{plan}. Nobody may approve that: {why}"),
        None => plan,
    }
}

/// The last of several: what was said last counts.
pub(crate) fn last(mut lines: Vec<String>, most: usize) -> Vec<String> {
    lines.split_off(lines.len().saturating_sub(most))
}

/// What is asked: nothing once it is over.
pub(crate) fn ask(notice: &FindingNotice) -> Option<Ask> {
    let ask = notice.ask.as_ref().filter(|_| notice.ended.is_none() && notice.acted.is_none())?;
    let label = fit(&clean(&ask.label), LABEL_LIMIT);
    let nobody_may = ask.nobody_may.as_ref().map(|why| fit(&clean(why), VALUE_LIMIT));
    (!label.is_empty()).then(|| Ask { plan: ask.plan.clone(), label, nobody_may })
}

/// The given headline, or one made from what is there: a message is never without.
fn said_headline(notice: &FindingNotice) -> String {
    let given = fit(&clean(&notice.headline), 140);
    if !given.is_empty() {
        return given;
    }
    let what = notice.resource_name.as_deref().unwrap_or(&notice.resource);
    let cost = notice.cost_per_hour.as_deref();
    fit(&headline(what, &notice.verdict, notice.since, notice.as_of, cost), 140)
}

/// What has been changed, and by whose word. Of what has ended nobody knows here who ended it.
fn changed(notice: &FindingNotice) -> &'static str {
    if notice.acted.as_ref().is_some_and(|acted| acted.has_relapsed) {
        return "Somebody else has changed this, not Cloud Sweeper.";
    }
    match (notice.acted.as_ref().map(|acted| acted.outcome).or(notice.came_of_it), &notice.ended) {
        (Some(Outcome::Done), _) => "This was changed because people said yes to exactly this.",
        (Some(Outcome::Failed), _) => "Whether anything was changed is not certain: see for yourself.",
        (None, Some(_)) => ONLY_AFTER_A_YES,
        (Some(Outcome::Voided) | None, _) => NOTHING_CHANGED,
    }
}

pub(crate) fn severity(notice: &FindingNotice) -> Severity {
    if let Some(acted) = &notice.acted {
        return match acted.outcome {
            Outcome::Done if acted.has_relapsed => Severity::Voided,
            Outcome::Done => Severity::Done,
            Outcome::Voided => Severity::Voided,
            Outcome::Failed => Severity::Failed,
        };
    }
    match notice.verdict.as_str() {
        _ if notice.ended.is_some() => Severity::Over,
        "unknown" => Severity::Blind,
        "stuck" => Severity::Broken,
        _ => Severity::Waste,
    }
}

/// Only what a shell takes as one plain word.
pub(crate) fn word(text: &str) -> String {
    let plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '/');
    text.chars().filter(plain).take(128).collect()
}

/// A web address, or nothing: no other scheme is ever made clickable.
fn page(text: &str) -> Option<Url> {
    let url = Url::parse(text.trim()).ok()?;
    let web = matches!(url.scheme(), "http" | "https") && url.has_host();
    (web && url.as_str().len() <= 2_000).then_some(url)
}
