//! What can be said about a finding. Plain data and pure functions: no I/O, no clock.
//!
//! [`FindingNotice`] is what the sweeper stores in its outbox (as JSON) and hands to every channel.
//! Its texts are *untrusted*: names and tags come from whoever may create a machine. `View` is the
//! same notice made safe and put in order, in words that need no knowledge of this product; the
//! channels only lay it out. What is not known is said to be not known, with the reason; it is
//! never left out and never zero.

use std::fmt;

use jiff::Timestamp;
use model::{HourlyRate, Usd};
use serde::{Deserialize, Serialize};
use url::Url;

use crate::{
    states::words,
    text::{clean, fit},
};

/// Evidence lines that a message shows; the rest is one command away.
const EVIDENCE_SHOWN: usize = 12;
/// Longest single value, in UTF-16 units: an EC2 tag value may have 256.
const VALUE_LIMIT: usize = 300;
/// What is true of every message that is about no action.
pub(crate) const NOTHING_CHANGED: &str = "Nothing has been changed. Cloud Sweeper acts only after a person says yes.";

/// How waste ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The machine does work again, or runs no more.
    Resolved,
    /// Work was seen in between: another finding takes its place.
    Interrupted,
    /// The machine is no more.
    Gone,
}

/// When waste ended, how, and by what it is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// When a sweep saw it.
    pub at: Timestamp,
    /// How.
    pub how: Ending,
    /// What refuted it, in one sentence.
    pub because: String,
}

/// What became of an action that people wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was carried out.
    Done,
    /// Nothing was done.
    Voided,
    /// It was tried, and did not come about as far as anybody can see.
    Failed,
}

/// What was done about a finding in people's names, or was not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acted {
    /// When it ended.
    pub at: Timestamp,
    /// How.
    pub outcome: Outcome,
    /// In one sentence.
    pub because: String,
    /// Who approved it, or wanted it undone.
    pub asked_by: Vec<String>,
    /// What undoes it, as `sweeper undo` takes it; none for what needs no undoing, or is one itself.
    #[serde(default)]
    pub undo: Option<String>,
}

/// One finding, in words, as the outbox stores it. Optional fields that are absent in stored JSON
/// read as absent, so a notice written by an older version can still be sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindingNotice {
    /// What `sweeper explain` takes.
    pub finding_id: String,
    /// One sentence a person at 2 a.m. understands; see [`headline`].
    pub headline: String,
    /// The resource key, for example `aws:123456789012:eu-central-1:i-0abc`.
    pub resource: String,
    /// What people call it (the `Name` tag, or a host name).
    #[serde(default)]
    pub resource_name: Option<String>,
    /// What it is, for example `EC2 instance, m5.2xlarge`.
    #[serde(default)]
    pub resource_kind: Option<String>,
    /// Where it is, for example `AWS account 123456789012, eu-central-1`.
    #[serde(default)]
    pub place: Option<String>,
    /// Who is billed for it, for example `AWS account 123456789012`.
    #[serde(default)]
    pub account: Option<String>,
    /// Who owns it, by its tags.
    #[serde(default)]
    pub owner: Option<String>,
    /// The verdict's word: `idle`, `unknown`, …; of what is no machine the state that it is in: `unattached`, `blocked`, ….
    pub verdict: String,
    /// What [`headline`] calls it, where that is not the verdict: `quiet`.
    #[serde(default)]
    pub state: Option<String>,
    /// How sure and why, in one sentence: coverage, and the signal that decided.
    #[serde(default)]
    pub certainty: Option<String>,
    /// Since when the verdict holds.
    pub since: Timestamp,
    /// When the verdict was last confirmed: the end of the window it was judged on.
    pub as_of: Timestamp,
    /// The evidence, a line each.
    #[serde(default)]
    pub evidence: Vec<String>,
    /// For example `$0.384/h`.
    #[serde(default)]
    pub cost_per_hour: Option<String>,
    /// The same as a number, for sums.
    #[serde(default)]
    pub rate: Option<HourlyRate>,
    /// For example `$1.02`.
    #[serde(default)]
    pub cost_so_far: Option<String>,
    /// The same as a number, for sums.
    #[serde(default)]
    pub spent: Option<Usd>,
    /// What stopping would save after everything that keeps billing, for example `$0.371/h ($270.83 per month)`.
    #[serde(default)]
    pub net_saving: Option<String>,
    /// What it would save an hour, as a number, for sums.
    #[serde(default)]
    pub saving: Option<HourlyRate>,
    /// Why a price is missing above.
    #[serde(default)]
    pub unknown_price_reason: Option<String>,
    /// What would still be billed after stopping, a line each.
    #[serde(default)]
    pub keeps_billing: Vec<String>,
    /// What would be done if a person said yes.
    #[serde(default, alias = "proposal_summary")]
    pub plan_summary: Option<String>,
    /// A page that shows the evidence. It grants nothing to whoever opens it.
    #[serde(default)]
    pub page_url: Option<String>,
    /// That it is over, in a notice that takes the place of an earlier one.
    #[serde(default)]
    pub ended: Option<Ended>,
    /// What was done about it, in a notice of that.
    #[serde(default)]
    pub acted: Option<Acted>,
}

impl FindingNotice {
    /// A notice with the fields that every finding has; set the others as far as they are known.
    #[must_use]
    pub fn new(
        finding_id: impl Into<String>,
        headline: impl Into<String>,
        resource: impl Into<String>,
        verdict: impl Into<String>,
        since: Timestamp,
        as_of: Timestamp,
    ) -> Self {
        Self {
            finding_id: finding_id.into(),
            headline: headline.into(),
            resource: resource.into(),
            resource_name: None,
            resource_kind: None,
            place: None,
            account: None,
            owner: None,
            verdict: verdict.into(),
            state: None,
            certainty: None,
            since,
            as_of,
            evidence: Vec::new(),
            cost_per_hour: None,
            rate: None,
            cost_so_far: None,
            spent: None,
            net_saving: None,
            saving: None,
            unknown_price_reason: None,
            keeps_billing: Vec::new(),
            plan_summary: None,
            page_url: None,
            ended: None,
            acted: None,
        }
    }
}

/// A headline in the form *what, state, how long, at what cost*: `training-7 has been idle for
/// 2 h 40 min, at $0.384/h`. `what` is the name people use, or the resource key.
#[must_use]
pub fn headline(what: &str, verdict: &str, since: Timestamp, as_of: Timestamp, cost_per_hour: Option<&str>) -> String {
    let what = fit(&clean(what), 80);
    let (state, _) = words(verdict);
    let cost = cost_per_hour.map_or_else(String::new, |cost| format!(", at {}", clean(cost)));
    format!("{what} {state} for {}{cost}", how_long(since, as_of))
}

/// A headline for what is over: `training-7 is no longer idle: it was idle for 2 h 40 min, which cost $1.23`. `what` and
/// `state` are those of [`headline`].
#[must_use]
pub fn end_headline(
    what: &str,
    state: &str,
    how: Ending,
    since: Timestamp,
    until: Timestamp,
    spent: Option<&str>,
) -> String {
    let what = fit(&clean(what), 60);
    let (_, state) = words(state);
    let lead = match how {
        Ending::Resolved => format!("is no longer {state}"),
        Ending::Interrupted => "has worked in between".to_owned(),
        Ending::Gone => "is there no more".to_owned(),
    };
    let cost =
        spent.map_or_else(|| "at a cost that is not known".to_owned(), |spent| format!("which cost {}", clean(spent)));
    format!("{what} {lead}: it was {state} for {}, {cost}", how_long(since, until))
}

/// A span in the two largest units that matter: `3 d 4 h`, `2 h 40 min`, `under a minute`.
#[must_use]
pub fn how_long(since: Timestamp, until: Timestamp) -> String {
    let minutes = until.as_second().saturating_sub(since.as_second()) / 60;
    let (days, hours, mins) = (minutes / 1_440, minutes / 60 % 24, minutes % 60);
    match (days, hours, mins) {
        (..=0, ..=0, ..=0) => "under a minute".to_owned(),
        (0, 0, m) => format!("{m} min"),
        (0, h, 0) => format!("{h} h"),
        (0, h, m) => format!("{h} h {m} min"),
        (1, 0, _) => "1 day".to_owned(),
        (d, 0, _) => format!("{d} days"),
        (d, h, _) => format!("{d} d {h} h"),
    }
}

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
        let names = if names.is_empty() { "not known".to_owned() } else { fit(&names.join(", "), VALUE_LIMIT) };
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
    let mut keeps_billing = lines(&notice.keeps_billing);
    keeps_billing.truncate(EVIDENCE_SHOWN);
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
        plan: told(&notice.plan_summary),
        keeps_billing,
        lead: if undo.is_some() { "Undo it" } else { "See the evidence" },
        command: undo.unwrap_or_else(|| format!("sweeper explain {finding_id}")),
        changed: changed(notice),
        page: notice.page_url.as_deref().and_then(page),
        finding_id,
        resource: line(&notice.resource),
    }
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
    match (notice.acted.as_ref().map(|acted| acted.outcome), &notice.ended) {
        (Some(Outcome::Done), _) => "This was changed because people said yes to exactly this.",
        (Some(Outcome::Failed), _) => "Whether anything was changed is not certain: have a look.",
        (None, Some(_)) => "Cloud Sweeper acts only after a person says yes.",
        (Some(Outcome::Voided) | None, _) => NOTHING_CHANGED,
    }
}

pub(crate) fn severity(notice: &FindingNotice) -> Severity {
    if let Some(acted) = &notice.acted {
        return match acted.outcome {
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
