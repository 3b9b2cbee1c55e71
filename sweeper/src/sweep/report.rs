//! What a sweep tells: the same data for the table, for JSON and for the database.

use super::Overview;
use crate::{
    findings::Finding,
    inventory::{Kind, LaunchedBy, Usage},
    pricing::Cost,
    store::Held,
    work_unit::WorkUnit,
};
use jiff::Timestamp;
use model::{Provider, ResourceKey};
use serde::{Deserialize, Serialize};

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
    /// Who was not asked, because nobody gave credentials for it and none are demanded. Only in the report of a sweep on demand; empty in
    /// what is kept of each work unit.
    pub not_asked: Vec<NotAsked>,
    /// How many machines are what.
    pub counts: Counts,
    /// What runs and what it costs, and what is left lying about.
    pub overview: Overview,
    /// All open findings after this sweep.
    pub findings: Vec<FindingLine>,
    /// Ids of the findings that this sweep opened.
    pub opened: Vec<String>,
    /// Ids of the findings that this sweep closed.
    pub closed: Vec<String>,
    /// Machines that run, or may run, and that no agent reports from; dearest first.
    pub blind_spots: Vec<MachineLine>,
    /// Machines that wait: nothing of them is above a threshold, and something outside will wake them; dearest first.
    pub waiting: Vec<MachineLine>,
    /// Other machines on which there is no verdict yet.
    pub unknown: Vec<MachineLine>,
}

/// A provider that nobody gave credentials for. What there is at it is not known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NotAsked {
    /// For example `aws`.
    pub provider: String,
    /// What was looked for, and what to do about it.
    pub why: String,
}

/// One kind of resource in one part of the inventory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
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
    /// Work on them waits for something outside.
    pub waiting: usize,
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
    /// Type of the instance; none for what is no machine.
    pub instance_type: Option<String>,
    /// What it is: the type of an instance, or `100 GiB gp3`.
    pub described: Option<String>,
    /// The verdict on a machine when it was last confirmed; none for what is no machine.
    pub verdict: Option<String>,
    /// Since when it lasts.
    pub since: Timestamp,
    /// When it was last confirmed.
    pub confirmed_at: Timestamp,
    /// So far the evidence reaches that last confirmed it: what it costs after that is nobody's guess.
    pub confirmed_until: Timestamp,
    /// On-demand list price, in micro-dollars per hour; `None` is not known.
    pub cost_micro_usd_per_hour: Option<i64>,
    /// The same for people.
    pub cost_per_hour: Option<String>,
    /// Why the price is not known.
    pub cost_unknown_because: Option<String>,
    /// What decided, in words.
    pub why: String,
    /// Hash of its plan, if there is one.
    pub plan: Option<String>,
    /// Who started the machine or submitted the job, as far as the provider's trail was read.
    pub launched_by: Option<LaunchedBy>,
    /// What ended last on an idle machine, in words: what was last seen at work, and the run that ended last.
    pub last_work: Vec<String>,
}

/// Why no agent reports from a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoReport {
    /// None has joined.
    NoAgent,
    /// The one that joined is not heard.
    Silent,
    /// The one that joined sends, and what it sends is refused.
    Refused,
}

/// One machine without a finding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MachineLine {
    /// The resource key.
    pub resource: String,
    /// What people call it.
    pub name: Option<String>,
    /// Who owns it, by its tags.
    #[serde(default)]
    pub owner: Option<String>,
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
    /// How busy its provider saw it from outside: weak evidence, which nobody acts on.
    pub usage: Option<Usage>,
    /// Who started it, as far as the provider's trail was read.
    pub launched_by: Option<LaunchedBy>,
    /// Why no agent reports from it; none where one does, and in what an older version kept.
    #[serde(default)]
    pub no_report: Option<NoReport>,
}

impl MachineLine {
    /// Whose bill it is on; none for what no provider bills.
    pub(super) fn account(&self) -> Option<String> {
        let key: ResourceKey = self.resource.parse().ok()?;
        (key.provider != Provider::OnPrem).then_some(key.account)
    }

    /// Dearest first; what has no known price comes last, and equals by key.
    pub(super) fn sort(lines: &mut [Self]) {
        lines.sort_by(|a, b| {
            b.cost_micro_usd_per_hour.cmp(&a.cost_micro_usd_per_hour).then_with(|| a.resource.cmp(&b.resource))
        });
    }
}

/// What a digest needs of a report that was kept: what runs, and which machines nobody sees.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct KeptReport {
    /// What runs and what it costs.
    pub overview: Overview,
    /// The dearest machines that no agent reports from; the overview counts all.
    pub blind_spots: Vec<MachineLine>,
}

/// Machines without a finding that a kept report names, of each kind; its counts tell of all. 50,000 of them are 16 MB for each sweep.
const KEPT: usize = 100;

impl Report {
    /// What is kept of it.
    pub(super) fn abridged(&self) -> Self {
        let first = |lines: &[MachineLine]| lines.iter().take(KEPT).cloned().collect();
        Self {
            sweep: self.sweep.clone(),
            scopes: self.scopes.clone(),
            not_asked: self.not_asked.clone(),
            overview: self.overview.clone(),
            findings: self.findings.clone(),
            opened: self.opened.clone(),
            closed: self.closed.clone(),
            blind_spots: first(&self.blind_spots),
            waiting: first(&self.waiting),
            unknown: first(&self.unknown),
            ..*self
        }
    }

    /// The report of a sweep of everything: that of all work units together, and who sweeps those that were not to be had.
    pub(super) fn union(now: Timestamp, units: Vec<Self>, held: &[(WorkUnit, Held)], open: &[Finding]) -> Self {
        let mut union = Self {
            sweep: uuid::Uuid::new_v4().to_string(),
            started_at: now,
            finished_at: Timestamp::now(),
            complete: held.is_empty() && units.iter().all(|unit| unit.complete),
            not_asked: Vec::new(),
            scopes: held.iter().map(|(unit, held)| ScopeLine::held(unit, held)).collect(),
            counts: Counts::default(),
            overview: Overview::union(units.iter()),
            findings: open.iter().map(FindingLine::from).collect(),
            opened: Vec::new(),
            closed: Vec::new(),
            blind_spots: Vec::new(),
            waiting: Vec::new(),
            unknown: Vec::new(),
        };
        for unit in units {
            union.counts.active += unit.counts.active;
            union.counts.waiting += unit.counts.waiting;
            union.counts.idle += unit.counts.idle;
            union.counts.unknown += unit.counts.unknown;
            union.counts.not_running += unit.counts.not_running;
            union.scopes.extend(unit.scopes);
            union.opened.extend(unit.opened);
            union.closed.extend(unit.closed);
            union.blind_spots.extend(unit.blind_spots);
            union.waiting.extend(unit.waiting);
            union.unknown.extend(unit.unknown);
        }
        // What failed for a whole provider is in the report of each of its scopes.
        // By place, and machines first.
        union.scopes.sort_by_cached_key(|line| {
            let kind = line.kind.as_deref().and_then(Kind::from_word);
            (line.provider.clone(), line.account.clone(), line.region.clone(), kind, line.clone())
        });
        union.scopes.dedup();
        MachineLine::sort(&mut union.blind_spots);
        MachineLine::sort(&mut union.waiting);
        union.unknown.sort_by(|a, b| a.resource.cmp(&b.resource));
        union
    }
}

impl ScopeLine {
    fn held(unit: &WorkUnit, held: &Held) -> Self {
        let (provider, account, region) = unit.words();
        let known = |word: &str| Some(word.to_owned()).filter(|word| !word.is_empty());
        Self {
            provider: provider.to_owned(),
            account: known(account),
            region: known(region),
            kind: None,
            listed: None,
            failed: Some(format!(
                "{} is sweeping it, until {} or longer; sweep again then (`sweeper scopes` shows how it gets on)",
                held.by, held.until
            )),
        }
    }
}

/// A cost in the three forms of a line: micro-dollars, text, reason.
pub(super) fn cost(cost: &Cost) -> (Option<i64>, Option<String>, Option<String>) {
    match cost {
        Cost::Known { per_hour, .. } => (Some(per_hour.per_hour().micros()), Some(per_hour.to_string()), None),
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
            instance_type: evidence.machine().and_then(|machine| machine.instance_type.clone()),
            described: evidence.described().map(str::to_owned),
            verdict: evidence.of_machine().map(|machine| machine.judgement.verdict.as_str().to_owned()),
            since: finding.since,
            confirmed_at: finding.confirmed_at,
            confirmed_until: finding.confirmed_until,
            cost_micro_usd_per_hour,
            cost_per_hour,
            cost_unknown_because,
            why: finding.why(),
            plan: finding.plan.as_ref().map(|plan| plan.content_hash().to_string()),
            launched_by: evidence.launched_by().cloned(),
            last_work: evidence.last_work(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inventory::Scope;

    fn unit(region: &str, failed: Option<&str>) -> Report {
        let line = ScopeLine {
            provider: "aws".into(),
            account: failed.is_none().then(|| "123456789012".into()),
            region: failed.is_none().then(|| region.to_owned()),
            kind: failed.is_none().then(|| "instance".into()),
            listed: failed.is_none().then_some(1),
            failed: failed.map(str::to_owned),
        };
        Report {
            complete: failed.is_none(),
            scopes: vec![line],
            counts: Counts { active: 1, waiting: 5, idle: 2, unknown: 3, not_running: 4 },
            opened: vec![format!("f-{region}")],
            ..Report::union(Timestamp::UNIX_EPOCH, Vec::new(), &[], &[])
        }
    }

    #[test]
    fn all_work_units_together_read_like_one_sweep() {
        let union = Report::union(Timestamp::UNIX_EPOCH, vec![unit("b", None), unit("a", None)], &[], &[]);
        assert!(union.complete);
        assert_eq!(union.scopes.iter().map(|line| line.region.as_deref()).collect::<Vec<_>>(), [Some("a"), Some("b")]);
        assert_eq!(union.counts, Counts { active: 2, waiting: 10, idle: 4, unknown: 6, not_running: 8 });
        assert_eq!(union.opened, ["f-b", "f-a"]);
    }

    #[test]
    fn a_failure_of_the_whole_provider_is_told_once() {
        let units = vec![unit("a", Some("no credentials")), unit("b", Some("no credentials"))];
        let union = Report::union(Timestamp::UNIX_EPOCH, units, &[], &[]);
        assert!(!union.complete);
        assert_eq!(union.scopes.len(), 1);
    }

    #[test]
    fn a_scope_that_somebody_else_sweeps_is_named_with_its_sweeper() {
        let scope = Scope { provider: Provider::Aws, account: "123456789012".into(), region: "a".into() };
        let held = (WorkUnit::Scope(scope), Held { by: "web-1/7/00".into(), until: Timestamp::UNIX_EPOCH });
        let union = Report::union(Timestamp::UNIX_EPOCH, vec![unit("b", None)], &[held], &[]);
        assert!(!union.complete);
        let failed = union.scopes[0].failed.as_deref().expect("a reason");
        assert!(failed.starts_with("web-1/7/00 is sweeping it"), "{failed}");
    }
}
