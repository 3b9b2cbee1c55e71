//! Turns judgements into changes of findings, and writes them with their messages in one transaction.
//!
//! That transaction begins with the lease: it notes the work unit as swept, under the lock of its row, if the lease is still
//! ours. What is open, and which resources are this work unit's, is read behind that lock: another work unit's sweep may have
//! opened a finding here, or a scope may have been found, since this one was read.

mod never;
mod planner;
mod tell;

use super::{
    Context, Counts, FindingLine, MachineLine, NoReport, Overview, Report, ScopeLine, SweepError, bills::Bills, report,
};
use crate::{
    detectors::{Answer, Class, Detection, On, detect},
    exemptions::Exemptions,
    findings::{self, Finding, Status},
    inventory::{Inventory, Listing, Outcome as Listed, owner},
    reconcile::{Planning, Seen, Step, reconcile},
    snapshot::{Coverage, Known, Machine, Snapshot, Subject},
    store::{
        self, Finished, FinishedSweep, Lease, StoreError, actions, events, evidence, exemptions, history, plans,
        scopes, sweeps,
    },
    verdict::words,
    work_unit::WorkUnit,
};
use jiff::Timestamp;
use model::{ResourceKey, Verdict};
use planner::{Jobs, May, Planner};
use sea_orm::DatabaseTransaction;
use std::collections::HashMap;

/// What this sweep says of machines.
#[derive(Default)]
struct Counted {
    counts: Counts,
    blind_spots: Vec<MachineLine>,
    waiting: Vec<MachineLine>,
    unknown: Vec<MachineLine>,
}

pub(super) async fn apply(
    context: &Context,
    lease: &Lease,
    tick: Timestamp,
    mut snapshot: Snapshot,
) -> Result<Report, SweepError> {
    let Lease { unit, .. } = lease;
    let now = snapshot.at;
    let lines = scope_lines(&snapshot.inventory);
    let transaction = context.store.begin_leased(context.config.sweep.lease).await?;
    if !scopes::finish(&transaction, lease, &finished(tick, &snapshot.inventory, &lines)).await? {
        roll_back(transaction).await?;
        return Err(SweepError::LeaseLost { unit: unit.clone() });
    }
    let known = scopes::known(&transaction).await?;
    snapshot.machines.retain(|machine| WorkUnit::home(&machine.subject.id, &known) == *unit);
    snapshot.leftovers.retain(|leftover| WorkUnit::home(&leftover.id, &known) == *unit);
    snapshot.groups.retain(|group| WorkUnit::home(&group.id, &known) == *unit);
    snapshot.batch.retain(|resource| WorkUnit::home(&resource.id, &known) == *unit);
    snapshot.work.retain(|work| WorkUnit::home(&work.id, &known) == *unit);
    let still_open = async || -> Result<Vec<Finding>, StoreError> {
        let mut open = store::findings::open_in(&transaction, Some(unit)).await?;
        open.retain(|finding| WorkUnit::home(&finding.resource, &known) == *unit);
        Ok(open)
    };
    let mut open = still_open().await?;
    forget_plans_that_are_over(&transaction, &mut open).await?;
    let open = open.into_iter();
    let open = open.map(|finding| ((finding.class, finding.resource.clone()), finding)).collect();
    let left_alone = exemptions::holding(&transaction).await?;
    let bills = Bills::of(&snapshot.inventory, &snapshot.prices);
    let mut overview = Overview::of(&snapshot, &bills);
    let Counted { counts, mut blind_spots, mut waiting, unknown } = Counted::of(&snapshot);
    overview.count_unseen(&blind_spots);

    let (mut opened, mut closed) = (Vec::new(), Vec::new());
    let told = tell::Known::of(context, &left_alone, &snapshot.inventory);
    // An end is written before what takes its place, and each step before the next is decided: thousands of them hold a whole window each.
    for Step { finding, was_confirmed_at, record } in decide(context, &snapshot, &bills, &left_alone, open) {
        match was_confirmed_at {
            Some(at) if !store::findings::update(&transaction, &finding, at).await? => {
                roll_back(transaction).await?;
                return Err(SweepError::Overtaken { unit: unit.clone(), finding: finding.id });
            }
            Some(_) => {}
            // Somebody else has opened one meanwhile.
            None if !store::findings::open(&transaction, &finding).await? => continue,
            None => opened.push(finding.id.0.clone()),
        }
        if matches!(finding.status, Status::Closed { .. }) {
            closed.push(finding.id.0.clone());
        }
        if let Some(record) = record {
            evidence::append(&transaction, &record).await?;
            if let Some(plan) = finding.plan.as_ref().filter(|plan| record.plan.as_ref() == Some(plan.content_hash())) {
                plans::append(&transaction, plan, record.at).await?;
            }
            let event = record.event();
            tell::enqueue(&told, &transaction, &finding, &event).await?;
            events::append(&transaction, &event).await?;
        }
    }
    // On PostgreSQL a plan that was withdrawn meanwhile has just been written again, with what people said of it before.
    exemptions::catch_up(&transaction, &left_alone).await?;
    // The history is as large again.
    let Snapshot { inventory, machines, .. } = snapshot;
    drop(machines);
    let report = Report {
        sweep: uuid::Uuid::new_v4().to_string(),
        started_at: now,
        finished_at: Timestamp::now(),
        complete: inventory.is_complete(),
        scopes: lines,
        not_asked: Vec::new(),
        counts,
        overview,
        findings: still_open().await?.iter().map(FindingLine::from).collect(),
        opened,
        closed,
        blind_spots: {
            MachineLine::sort(&mut blind_spots);
            blind_spots
        },
        waiting: {
            MachineLine::sort(&mut waiting);
            waiting
        },
        unknown,
    };
    let finished = FinishedSweep {
        id: report.sweep.clone(),
        started_at: report.started_at,
        finished_at: report.finished_at,
        complete: report.complete,
        report: serde_json::to_string(&report.abridged()).map_err(SweepError::Report)?,
        scope: Some(unit.to_string()),
        swept_for: Some(tick),
    };
    sweeps::put(&transaction, &finished).await?;
    let scope = match unit {
        WorkUnit::Scope(scope) => Some(scope),
        WorkUnit::Uncovered => None,
    };
    history::record(&transaction, scope, &inventory, now).await?;
    transaction.commit().await.map_err(|source| StoreError::Database { doing: "commit a sweep", source })?;
    Ok(report)
}

/// What a plan came to is in its action. If its finding still holds another plan is made, which nobody has approved.
async fn forget_plans_that_are_over(transaction: &DatabaseTransaction, open: &mut [Finding]) -> Result<(), StoreError> {
    let hash = |finding: &Finding| finding.plan.as_ref().map(|plan| plan.content_hash().to_string());
    let hashes: Vec<String> = open.iter().filter_map(hash).collect();
    let over = actions::over(transaction, &hashes).await?;
    for finding in open.iter_mut() {
        if hash(finding).is_some_and(|hash| over.contains(&hash)) {
            finding.plan = None;
        }
    }
    Ok(())
}

async fn roll_back(transaction: DatabaseTransaction) -> Result<(), StoreError> {
    transaction.rollback().await.map_err(|source| StoreError::Database { doing: "roll back a sweep", source })
}

/// What the work unit's row says of this sweep.
fn finished(tick: Timestamp, inventory: &Inventory, lines: &[ScopeLine]) -> Finished {
    // What there is none of is said by leaving it out.
    let listed = |line: &ScopeLine| match (line.listed?, line.kind.as_deref()?) {
        (0, _) => None,
        (count, kind) => Some(format!("{count} × {kind}")),
    };
    let join = |words: Vec<String>| (!words.is_empty()).then(|| words.join("; "));
    Finished {
        swept_for: tick,
        complete: inventory.is_complete(),
        listed: join(lines.iter().filter_map(listed).collect()),
        failed: join(lines.iter().filter_map(|line| line.failed.clone()).collect()),
    }
}

/// Decides what becomes of each finding: step by step, as they are asked for.
fn decide(
    context: &Context,
    snapshot: &Snapshot,
    bills: &Bills<'_>,
    left_alone: &Exemptions,
    mut open: HashMap<(Class, ResourceKey), Finding>,
) -> impl Iterator<Item = Step> {
    let sweeps = context.config.sweep.plan_after_sweeps.max(1);
    // Of those alone may a machine be ended.
    let groups = snapshot.inventory.autoscaling_groups.iter().filter(|_| context.config.act.end_members);
    let may = May {
        groups: groups.map(|group| (&group.id, group)).collect(),
        jobs: context.config.act.terminate_jobs.then(|| Jobs {
            inventory: &snapshot.inventory,
            known: Known::of(&snapshot.inventory),
            submitted_by: &snapshot.submitted_by,
        }),
    };
    detect(snapshot).flat_map(move |detection| {
        let Detection { class, on, .. } = detection;
        let id = on.resource();
        let existing = open.remove(&(class, id.clone()));
        let yields = class.yields_to().iter().any(|other| open.contains_key(&(*other, id.clone())));
        // Where nothing was found and nothing is, there is nothing to reconcile.
        let is_found = matches!(detection.answer, Answer::Confirmed { .. }) && !yields;
        if existing.is_none() && !is_found {
            return Vec::new();
        }
        let shown = match on {
            On::Machine(machine) => shown(machine),
            _ => None,
        };
        let seen = |planning| {
            reconcile(snapshot.at, existing, &Seen { detection: &detection, machine: shown.as_ref(), planning })
        };
        let planner = match Planner::of(class, on, (bills, &may), snapshot.at) {
            Ok(planner) => planner,
            Err(why) => return seen(Planning::Never(why)),
        };
        let line = |on: &ResourceKey| left_alone.of(on).map(|one| (one.line(), on.clone()));
        match line(id).or_else(|| planner.is_in().iter().find_map(line)) {
            Some((why, on)) if on == *id => seen(Planning::Never(&why)),
            Some((why, on)) => seen(Planning::Never(&format!("{why} (of {on}, which it is in)"))),
            None => seen(Planning::After { sweeps, plan: &|finding| planner.plan(finding) }),
        }
    })
}

/// What a finding shows of a machine.
fn shown(machine: &Machine) -> Option<findings::Machine> {
    let instance = machine.subject.instance.as_ref()?;
    Some(findings::Machine { launched_by: machine.provider.launched_by.clone(), ..findings::Machine::of(instance) })
}

impl Counted {
    fn of(snapshot: &Snapshot) -> Self {
        let mut counted = Self::default();
        snapshot.machines.iter().for_each(|machine| count(machine, &mut counted));
        counted
    }
}

fn count(machine: &Machine, counted: &mut Counted) {
    let Subject { instance, coverage, node, .. } = &machine.subject;
    match (instance, coverage) {
        (Some(instance), _) if instance.state.runs() == Some(false) => {
            counted.counts.not_running += 1;
            return;
        }
        // Listed by nobody any more: not a machine.
        (None, Coverage::Complete) => return,
        (None, _) if node.is_none() => return,
        _ => {}
    }
    match machine.judgement.verdict {
        Verdict::Active => counted.counts.active += 1,
        Verdict::Waiting => {
            counted.counts.waiting += 1;
            counted.waiting.push(line(machine));
        }
        Verdict::Idle => counted.counts.idle += 1,
        // The engine does not give the other one yet.
        Verdict::Stuck | Verdict::Unknown => {
            counted.counts.unknown += 1;
            let lines = if machine.is_blind() { &mut counted.blind_spots } else { &mut counted.unknown };
            lines.push(line(machine));
        }
    }
}

/// What decided, and of a machine whose agent is not heard, why that is, as far as it is known.
fn why(machine: &Machine) -> String {
    let decided = words::decision(&machine.judgement, &machine.inputs.case);
    match machine.subject.node.as_ref().and_then(|node| node.refused.as_ref()) {
        Some((at, because)) if machine.is_blind() => {
            let at = words::time(at.as_millisecond());
            format!("its agent's heartbeats are refused, last at {at}: {because}")
        }
        _ => decided,
    }
}

fn no_report(machine: &Machine) -> Option<NoReport> {
    let reason = match machine.subject.node.as_ref() {
        None => NoReport::NoAgent,
        Some(node) if node.refused.is_some() => NoReport::Refused,
        Some(_) => NoReport::Silent,
    };
    machine.is_blind().then_some(reason)
}

fn line(machine: &Machine) -> MachineLine {
    let (cost_micro_usd_per_hour, cost_per_hour, cost_unknown_because) = report::cost(&machine.cost);
    MachineLine {
        resource: machine.subject.id.to_string(),
        name: machine.subject.name(),
        owner: machine.subject.instance.as_ref().and_then(|instance| owner(&instance.tags)),
        instance_type: machine.subject.instance.as_ref().and_then(|instance| instance.instance_type.clone()),
        verdict: machine.judgement.verdict.as_str().to_owned(),
        why: why(machine),
        cost_micro_usd_per_hour,
        cost_per_hour,
        cost_unknown_because,
        usage: machine.provider.usage.clone(),
        launched_by: machine.provider.launched_by.clone(),
        no_report: no_report(machine),
    }
}

fn scope_lines(inventory: &Inventory) -> Vec<ScopeLine> {
    let line = |listing: &Listing| {
        let (listed, failed) = match &listing.outcome {
            Listed::Complete { listed } => (Some(*listed), None),
            Listed::Failed { what, why } => (None, Some(format!("{what}: {why}"))),
        };
        ScopeLine {
            provider: listing.provider.to_string(),
            account: listing.account.clone(),
            region: listing.region.clone(),
            kind: listing.kind.map(|kind| kind.as_str().to_owned()),
            listed,
            failed,
        }
    };
    inventory.listings.iter().map(line).collect()
}

#[cfg(test)]
mod tests;
