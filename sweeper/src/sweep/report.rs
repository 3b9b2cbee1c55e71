//! What a sweep tells: the same data for the table, for JSON and for the database.

use crate::{
    findings::{Cost, Finding},
    verdict::words,
};
use jiff::Timestamp;
use serde::Serialize;

/// The result of one sweep.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// A UUID.
    pub sweep: String,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub finished_at: Timestamp,
    /// False if a part of what was asked for could not be read: see `scopes`.
    pub complete: bool,
    /// What was asked, and how it went.
    pub scopes: Vec<ScopeLine>,
    /// How many machines are what.
    pub counts: Counts,
    /// All open findings after this sweep.
    pub findings: Vec<FindingLine>,
    /// Ids of the findings that this sweep opened.
    pub opened: Vec<String>,
    /// Ids of the findings that this sweep closed.
    pub closed: Vec<String>,
    /// Machines that run, or may run, and that no agent reports from.
    pub blind_spots: Vec<MachineLine>,
    /// Other machines on which there is no verdict yet.
    pub unknown: Vec<MachineLine>,
}

/// One kind of resource in one part of the inventory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ScopeLine {
    /// For example `aws`.
    pub provider: String,
    /// Account, if it could be learnt.
    pub account: Option<String>,
    /// Region, if one was asked.
    pub region: Option<String>,
    /// What was listed there; none if it failed before anything was.
    pub kind: Option<String>,
    /// So many of them, in any state, if they could be listed.
    pub listed: Option<usize>,
    /// What failed and why, if it could not.
    pub failed: Option<String>,
}

/// How many machines are what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Work runs on them.
    pub active: usize,
    /// Nothing runs on them.
    pub idle: usize,
    /// Nobody knows.
    pub unknown: usize,
    /// The provider says that they do not run.
    pub not_running: usize,
}

/// One open finding.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FindingLine {
    /// What `sweeper explain` takes.
    pub id: String,
    /// Which waste.
    pub class: String,
    /// The resource key.
    pub resource: String,
    /// What people call it.
    pub name: Option<String>,
    /// Type of the instance.
    pub instance_type: Option<String>,
    /// The verdict when it was last confirmed.
    pub verdict: String,
    /// Since when it lasts.
    pub since: Timestamp,
    /// When it was last confirmed.
    pub confirmed_at: Timestamp,
    /// On-demand list price, in micro-dollars per hour; `None` is not known.
    pub cost_micro_usd_per_hour: Option<i64>,
    /// The same for people.
    pub cost_per_hour: Option<String>,
    /// Why the price is not known.
    pub cost_unknown_because: Option<String>,
    /// What decided, in words.
    pub why: String,
    /// Hash of the proposed plan, if there is one.
    pub proposal: Option<String>,
}

/// One machine without a finding.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MachineLine {
    /// The resource key.
    pub resource: String,
    /// What people call it.
    pub name: Option<String>,
    /// Type of the instance.
    pub instance_type: Option<String>,
    /// The verdict.
    pub verdict: String,
    /// What decided, in words.
    pub why: String,
    /// On-demand list price, in micro-dollars per hour; `None` is not known.
    pub cost_micro_usd_per_hour: Option<i64>,
    /// The same for people.
    pub cost_per_hour: Option<String>,
    /// Why the price is not known.
    pub cost_unknown_because: Option<String>,
}

/// A cost in the three forms of a line: micro-dollars, text, reason.
pub(super) fn cost(cost: &Cost) -> (Option<i64>, Option<String>, Option<String>) {
    match cost {
        Cost::Known { per_hour } => (Some(per_hour.per_hour().micros()), Some(per_hour.to_string()), None),
        Cost::Unknown { why } => (None, None, Some(why.clone())),
    }
}

impl From<&Finding> for FindingLine {
    fn from(finding: &Finding) -> Self {
        let (cost_micro_usd_per_hour, cost_per_hour, cost_unknown_because) = cost(&finding.cost);
        let evidence = &finding.evidence;
        Self {
            id: finding.id.0.clone(),
            class: finding.class.as_str().to_owned(),
            resource: finding.resource.to_string(),
            name: finding.name().map(str::to_owned),
            instance_type: evidence.machine.as_ref().and_then(|machine| machine.instance_type.clone()),
            verdict: evidence.judgement.verdict.as_str().to_owned(),
            since: finding.since,
            confirmed_at: finding.confirmed_at,
            cost_micro_usd_per_hour,
            cost_per_hour,
            cost_unknown_because,
            why: words::decision(&evidence.judgement, &evidence.case),
            proposal: finding.proposal.as_ref().map(|proposal| proposal.content_hash().to_string()),
        }
    }
}
