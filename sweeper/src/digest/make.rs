//! Makes the digest of one list of what was read for all. Pure.
//!
//! What is not priced is counted in each sum and never taken for zero. A finding costs as far as its evidence reaches, from since it lasts.

use super::{Calendar, Facts};
use crate::{
    approvals::Answer,
    config::DigestList,
    findings::{Finding, Status, notice},
    savings::Ending,
    sweep::{MachineLine, RunRate},
};
use jiff::Timestamp;
use model::{HourlyRate, Provider, ResourceKey, Sum, Usd, plan::Saving};
use notifier::digest::{AuditHead, Class, Day, Digest, Ended, Listed, Machines, Open, Period, Saved, Unseen, Waiting};
use std::collections::BTreeMap;

/// What a list keeps of each kind: more than a mail shows.
const KEPT: usize = 50;
/// So many days are drawn, also of a digest that comes each day.
const DAYS: u64 = 7;

/// The time that a digest is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its begin.
    pub from: Timestamp,
    /// Its end, which is no part of it.
    pub until: Timestamp,
}

impl Span {
    fn has(self, moment: Timestamp) -> bool {
        (self.from..self.until).contains(&moment)
    }
}

/// Whose machines a list is about.
#[derive(Clone, Copy, Debug)]
enum Whose<'a> {
    Everyone,
    Owner(&'a str),
    Account(&'a str),
}

impl<'a> Whose<'a> {
    fn of(list: &'a DigestList) -> Self {
        match (&list.owner, &list.account) {
            (Some(owner), _) => Self::Owner(owner.trim()),
            (None, Some(account)) => Self::Account(account),
            (None, None) => Self::Everyone,
        }
    }

    /// Owners are compared as bundles of messages do.
    fn has(self, owner: Option<&str>, account: Option<&str>) -> bool {
        match self {
            Self::Everyone => true,
            Self::Owner(name) => owner.is_some_and(|owner| owner.trim().to_lowercase() == name.to_lowercase()),
            Self::Account(name) => account == Some(name),
        }
    }

    fn has_finding(self, finding: &Finding) -> bool {
        self.has(finding.evidence.owner(), account(&finding.resource))
    }

    fn name(self) -> Option<String> {
        match self {
            Self::Everyone => None,
            Self::Owner(owner) => Some(owner.to_owned()),
            Self::Account(account) => Some(format!("account {account}")),
        }
    }
}

fn account(resource: &ResourceKey) -> Option<&str> {
    (resource.provider != Provider::OnPrem).then_some(resource.account.as_str())
}

/// The digest of a list about a time.
#[must_use]
pub fn make(facts: &Facts, list: &DigestList, calendar: &Calendar, span: Span) -> Digest {
    let whose = Whose::of(list);
    let mut open: Vec<&Finding> = facts.open.iter().filter(|finding| whose.has_finding(finding)).collect();
    // Dearest first; what has no known price comes last.
    open.sort_by(|a, b| b.cost.rate().cmp(&a.cost.rate()).then_with(|| a.id.cmp(&b.id)));
    let closed: Vec<&Finding> = facts.closed.iter().filter(|finding| whose.has_finding(finding)).collect();
    let all = || open.iter().chain(&closed).copied();
    let found: Vec<&Finding> = all().filter(|finding| span.has(finding.opened_at)).collect();
    let ended: Vec<&Finding> =
        closed.iter().copied().filter(|finding| closed_at(finding).is_some_and(|at| span.has(at))).collect();
    let day = |(date, from, until)| {
        let costs = all().filter_map(|finding| cost_within(finding, Span { from, until }));
        Day { date, cost: Sum::of(costs) }
    };
    Digest {
        list: list.name.clone(),
        owner: whose.name(),
        every: list.every,
        period: Period {
            from: calendar.local(span.from),
            until: calendar.local(span.until),
            as_of: calendar.local(facts.now),
            zone: list.timezone.clone(),
        },
        running: running(facts, whose),
        open: Listed {
            first: open.iter().take(KEPT).map(|finding| line(finding)).collect(),
            count: open.len(),
            sum: rates(&open),
        },
        classes: classes(&open),
        days: calendar.days_up_to(span.until, DAYS).into_iter().map(day).collect(),
        found: Machines { count: found.len(), per_hour: rates(&found) },
        ended: Ended { count: ended.len(), spent: Sum::of(ended.iter().map(|finding| spent(finding))) },
        saved: saved(facts, whose, span),
        waiting: waiting(facts, &open),
        unseen: unseen(facts, whose),
        unread: unread(facts, whose),
        audit: AuditHead { entries: facts.audit.0, hash: facts.audit.1.clone() },
    }
}

fn closed_at(finding: &Finding) -> Option<Timestamp> {
    match finding.status {
        Status::Closed { at, .. } => Some(at),
        Status::Open => None,
    }
}

fn rates(findings: &[&Finding]) -> Sum {
    Sum::of(findings.iter().map(|finding| finding.cost.rate().map(HourlyRate::per_hour)))
}

fn spent(finding: &Finding) -> Option<Usd> {
    finding.cost.rate().map(|rate| rate.over(finding.confirmed_until.duration_since(finding.since)))
}

/// What a finding cost within a time, as far as its evidence reaches; none if it did not last then.
fn cost_within(finding: &Finding, span: Span) -> Option<Option<Usd>> {
    let (from, until) = (span.from.max(finding.since), span.until.min(finding.confirmed_until));
    (from < until).then(|| finding.cost.rate().map(|rate| rate.over(until.duration_since(from))))
}

fn classes(open: &[&Finding]) -> Vec<Class> {
    let mut by_class: BTreeMap<&str, Vec<&Finding>> = BTreeMap::new();
    for finding in open {
        by_class.entry(finding.class.as_str()).or_default().push(finding);
    }
    let class = |(name, findings): (&str, Vec<&Finding>)| Class {
        name: name.replace('_', " "),
        count: findings.len(),
        per_hour: rates(&findings),
    };
    let mut classes: Vec<Class> = by_class.into_iter().map(class).collect();
    classes.sort_by_key(|class| std::cmp::Reverse((class.per_hour.known, class.count)));
    classes
}

fn line(finding: &Finding) -> Open {
    let told = notice(finding);
    Open {
        name: told.resource_name.unwrap_or(told.resource),
        finding_id: told.finding_id,
        kind: told.resource_kind,
        place: told.place,
        owner: told.owner,
        lasts: told.as_of.duration_since(told.since),
        rate: told.rate,
        spent: told.spent,
    }
}

/// The plans that are good still, that nobody has said no to, and that nothing came of yet.
fn waiting(facts: &Facts, open: &[&Finding]) -> Listed<Waiting> {
    let mut waiting = Vec::new();
    for finding in open {
        let Some(plan) = finding.plan.as_ref().filter(|plan| facts.now < plan.valid_until()) else { continue };
        let hash = plan.content_hash();
        let said = facts.answers.get(hash.as_str()).map_or(&[][..], Vec::as_slice);
        if facts.acted.contains(hash.as_str()) || said.iter().any(|given| given.answer == Answer::Deny) {
            continue;
        }
        let saves = match &plan.content().net_saving {
            Saving::Known { per_hour, .. } => Some(*per_hour),
            Saving::Unknown { .. } => None,
        };
        waiting.push(Waiting {
            plan: hash.short().to_owned(),
            finding_id: finding.id.0.clone(),
            title: plan.content().title.clone(),
            name: finding.name().map_or_else(|| finding.resource.to_string(), str::to_owned),
            saves,
            approvals: said.len(),
        });
    }
    waiting.sort_by(|a, b| b.saves.cmp(&a.saves).then_with(|| a.plan.cmp(&b.plan)));
    let sum = Sum::of(waiting.iter().map(|plan| plan.saves.map(HourlyRate::per_hour)));
    let count = waiting.len();
    waiting.truncate(KEPT);
    Listed { first: waiting, count, sum }
}

fn saved(facts: &Facts, whose: Whose<'_>, span: Span) -> Saved {
    let is_its = |(saved, owner): &&(crate::savings::Saved, Option<String>)| {
        whose.has(owner.as_deref(), account(&saved.resource))
    };
    let of: Vec<_> = facts.saved.iter().filter(is_its).map(|(saved, _)| saved).collect();
    let lasting = of.iter().filter(|saved| saved.stopped.ending == Ending::Lasts);
    Saved {
        in_period: Sum::of(of.iter().map(|saved| saved.within(span.from, span.until))),
        so_far: Sum::of(of.iter().map(|saved| saved.saved)),
        per_month: Sum::of(lasting.map(|saved| saved.per_hour.map(HourlyRate::per_month))),
    }
}

/// The sum of these rates.
fn machines<'a>(rates: impl Iterator<Item = &'a RunRate>) -> Machines {
    let none = Machines { count: 0, per_hour: Sum::of(std::iter::empty()) };
    rates.fold(none, |all, rate| Machines {
        count: all.count + rate.machines,
        per_hour: Sum {
            known: all.per_hour.known.saturating_add(rate.per_hour().per_hour()),
            count: all.per_hour.count + rate.priced,
            unknown: all.per_hour.unknown + rate.machines.saturating_sub(rate.priced),
        },
    })
}

/// The machines that providers list as running; none if no sweep of a provider's scope has told.
fn running(facts: &Facts, whose: Whose<'_>) -> Option<Machines> {
    let scopes = facts.swept.iter().filter(|swept| swept.account.is_some());
    let told: Vec<_> = scopes.filter_map(|swept| Some((swept, swept.report.as_ref()?))).collect();
    let its = told.iter().flat_map(|(swept, report)| match whose {
        Whose::Owner(_) => {
            let parts = report.overview.by_owner.iter().filter(|part| whose.has(part.name.as_deref(), None));
            parts.map(|part| &part.rate).collect::<Vec<_>>()
        }
        Whose::Everyone | Whose::Account(_) if whose.has(None, swept.account.as_deref()) => {
            vec![&report.overview.running]
        }
        Whose::Everyone | Whose::Account(_) => Vec::new(),
    });
    (!told.is_empty()).then(|| machines(its))
}

/// The machines that no agent reports from; none if no sweep has counted them, or one of them did not.
fn unseen(facts: &Facts, whose: Whose<'_>) -> Option<Listed<Unseen>> {
    let told: Vec<_> = facts.swept.iter().filter_map(|swept| swept.report.as_ref()).collect();
    let counted: Option<Vec<_>> = told.iter().map(|report| report.overview.unseen.as_ref()).collect();
    let counted = counted.filter(|counted| !counted.is_empty())?;
    let its = counted.into_iter().flatten().filter(|one| whose.has(one.owner.as_deref(), one.account.as_deref()));
    let all = machines(its.map(|one| &one.rate));
    let is_its = |machine: &&MachineLine| {
        let key = machine.resource.parse::<ResourceKey>().ok();
        whose.has(machine.owner.as_deref(), key.as_ref().and_then(account))
    };
    let mut first: Vec<&MachineLine> = told.iter().flat_map(|report| &report.blind_spots).filter(is_its).collect();
    first.sort_by(|a, b| {
        b.cost_micro_usd_per_hour.cmp(&a.cost_micro_usd_per_hour).then_with(|| a.resource.cmp(&b.resource))
    });
    let line = |machine: &MachineLine| Unseen {
        name: machine.name.clone().unwrap_or_else(|| machine.resource.clone()),
        kind: machine.instance_type.clone(),
        rate: machine.cost_micro_usd_per_hour.map(HourlyRate::from_micros),
        why: machine.why.clone(),
    };
    Some(Listed { first: first.into_iter().take(KEPT).map(line).collect(), count: all.count, sum: all.per_hour })
}

/// The scopes that were not read as a whole: whose machines are there nobody knows.
fn unread(facts: &Facts, whose: Whose<'_>) -> Vec<String> {
    let may_have = |account: Option<&str>| match whose {
        Whose::Everyone | Whose::Owner(_) => true,
        Whose::Account(name) => account == Some(name),
    };
    let unread = facts.swept.iter().filter(|swept| !swept.is_complete && may_have(swept.account.as_deref()));
    unread.map(|swept| swept.scope.clone()).collect()
}

#[cfg(test)]
mod tests;
