//! What can be said about a finding. Plain data and pure functions: no I/O, no clock.
//!
//! [`FindingNotice`] is what the sweeper stores in its outbox (as JSON) and hands to every channel.
//! Its texts are *untrusted*: names and tags come from whoever may create a machine. What the channels
//! lay out is made of it in `view`.

use jiff::{SignedDuration, Timestamp};
use model::{HourlyRate, Usd, plan::ContentHash};
use serde::{Deserialize, Serialize};

use crate::{
    states::words,
    text::{clean, fit},
};

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

/// What people are asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// The plan.
    pub plan: ContentHash,
    /// What a yes would do, in a word or two: `Stop it`.
    pub label: String,
    /// Why nobody can say yes, and what to set for that, in one sentence; none if somebody may, or nobody knows. No and not now can be said all the same.
    #[serde(default)]
    pub nobody_may: Option<String>,
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
    /// Whether it has come undone since by somebody else's hand, which is what this tells.
    #[serde(default)]
    pub has_relapsed: bool,
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
    /// What people are asked, as long as an answer counts. Only a channel that knows who answers asks it.
    #[serde(default)]
    pub ask: Option<Ask>,
    /// What people have said of the plan, and what came of that, a line each.
    #[serde(default)]
    pub answers: Vec<String>,
    /// What came of it, where the notice goes on telling of the finding.
    #[serde(default)]
    pub came_of_it: Option<Outcome>,
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
            ask: None,
            answers: Vec::new(),
            came_of_it: None,
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
    lasting(SignedDuration::from_secs(until.as_second().saturating_sub(since.as_second())))
}

/// The same of a length of time.
pub(crate) fn lasting(time: SignedDuration) -> String {
    let minutes = time.as_secs() / 60;
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
