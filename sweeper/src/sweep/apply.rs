//! Turns judgements into changes of findings, and writes them with their messages in one transaction.
//!
//! That transaction begins with the lease: it notes the share as swept, under the lock of its row, if the lease is still
//! ours. What is open, and which resources are this share's, is read behind that lock: another share's sweep may have
//! opened a finding here, or a scope may have been found, since this one was read.

use super::{
    Context, Counts, FindingLine, Judged, MachineLine, Moment, Overview, Report, ScopeLine, Share, SweepError,
    is_running,
    outside::is_blind,
    report,
    subject::{Coverage, Subject},
};
use crate::{
    findings::{
        Change, Class, Detection, Evidence, Finding, FindingId, Machine, Status, Work, next, notice, window_end,
    },
    inventory::{Inventory, Listing, Outcome as Listed},
    store::{Finished, FinishedSweep, Lease, StoreError, findings, history, outbox, scopes, sweeps},
    verdict::{Case, Decision, Verdict, last_work, words},
};
use heartbeat::NodeId;
use jiff::Timestamp;
use recommender::rules::stop;
use sea_orm::DatabaseTransaction;
use std::{collections::HashMap, time::Duration};

/// What this sweep does to the findings.
#[derive(Default)]
struct Outcome {
    counts: Counts,
    opened: Vec<Finding>,
    /// Confirmed, unconfirmed or closed, with the moment at which each was last confirmed before.
    updated: Vec<(Finding, Timestamp)>,
    blind_spots: Vec<MachineLine>,
    unknown: Vec<MachineLine>,
}

pub(super) async fn apply(
    context: &Context,
    lease: &Lease,
    moment: Moment,
    inventory: &Inventory,
    mut judged: Vec<Judged>,
) -> Result<Report, SweepError> {
    let Moment { tick, now } = moment;
    let Lease { share, .. } = lease;
    let lines = scope_lines(inventory);
    let transaction = context.store.begin_leased(context.config.sweep.lease).await?;
    if !scopes::finish(&transaction, lease, &finished(tick, inventory, &lines)).await? {
        roll_back(transaction).await?;
        return Err(SweepError::LeaseLost { share: share.clone() });
    }
    let known = scopes::known(&transaction).await?;
    judged.retain(|judged| Share::home(&judged.subject.id, &known) == *share);
    let still_open = async || -> Result<Vec<Finding>, StoreError> {
        let mut open = findings::open_in(&transaction, share.key_prefix().as_deref()).await?;
        open.retain(|finding| Share::home(&finding.resource, &known) == *share);
        Ok(open)
    };
    let open = still_open().await?.into_iter();
    let mut open = open.map(|finding| ((finding.class, finding.resource.clone()), finding)).collect();
    let overview = Overview::of(inventory, &judged);
    let mut outcome = Outcome::default();
    for judged in judged {
        judge_one(context, now, judged, &mut open, &mut outcome);
    }

    let mut opened = Vec::new();
    for (finding, was_confirmed_at) in &outcome.updated {
        // Closed ones first: a replacement takes the place of the one that it replaces.
        if !findings::update(&transaction, finding, *was_confirmed_at).await? {
            roll_back(transaction).await?;
            return Err(SweepError::Overtaken { share: share.clone(), finding: finding.id.clone() });
        }
    }
    for finding in &outcome.opened {
        if findings::open(&transaction, finding).await? {
            tell(context, &transaction, finding, now).await?;
            opened.push(finding.id.0.clone());
        }
    }
    let report = Report {
        sweep: uuid::Uuid::new_v4().to_string(),
        started_at: now,
        finished_at: Timestamp::now(),
        complete: inventory.is_complete(),
        scopes: lines,
        not_asked: Vec::new(),
        counts: outcome.counts,
        overview,
        findings: still_open().await?.iter().map(FindingLine::from).collect(),
        opened,
        closed: closed(&outcome.updated),
        blind_spots: {
            MachineLine::sort(&mut outcome.blind_spots);
            outcome.blind_spots
        },
        unknown: outcome.unknown,
    };
    let finished = FinishedSweep {
        id: report.sweep.clone(),
        started_at: report.started_at,
        finished_at: report.finished_at,
        complete: report.complete,
        report: serde_json::to_string(&report.abridged()).map_err(SweepError::Report)?,
        scope: Some(share.to_string()),
        swept_for: Some(tick),
    };
    sweeps::put(&transaction, &finished).await?;
    let scope = match share {
        Share::Scope(scope) => Some(scope),
        Share::Uncovered => None,
    };
    history::record(&transaction, scope, inventory, now).await?;
    transaction.commit().await.map_err(|source| StoreError::Database { doing: "commit a sweep", source })?;
    Ok(report)
}

async fn roll_back(transaction: DatabaseTransaction) -> Result<(), StoreError> {
    transaction.rollback().await.map_err(|source| StoreError::Database { doing: "roll back a sweep", source })
}

/// What the share's row says of this sweep.
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

async fn tell(
    context: &Context,
    transaction: &DatabaseTransaction,
    finding: &Finding,
    now: Timestamp,
) -> Result<(), SweepError> {
    let notice = notice(finding);
    for channel in &context.channels {
        outbox::put(transaction, &finding.id, channel, &notice, now).await?;
    }
    Ok(())
}

fn judge_one(
    context: &Context,
    now: Timestamp,
    judged: Judged,
    open: &mut HashMap<(Class, NodeId), Finding>,
    outcome: &mut Outcome,
) {
    quiet::judge(context, now, &judged, open, outcome);
    let class = Class::IdleNode;
    let existing = open.remove(&(class, judged.subject.id.clone()));
    let mut detection = gone(context, now, &judged).unwrap_or_else(|| detection(&judged));
    count(&judged, outcome);
    // Nobody asked the provider this time (credentials that were there before may be missing for a moment). What it said before is neither
    // confirmed nor forgotten; only work on the node can end the finding.
    let was_listed = existing.as_ref().is_some_and(|finding| finding.evidence.machine.is_some());
    let is_asked_about = judged.subject.instance.is_some() || judged.subject.coverage != Coverage::NotAsked;
    if was_listed && !is_asked_about && matches!(detection, Detection::Confirmed { .. }) {
        detection = Detection::NotKnown;
    }
    let window = existing.as_ref().map(|finding| (finding.since, window_end(finding)));
    match (next(window, &detection), existing) {
        (Change::Open { since }, _) => outcome.opened.push(opened(context, now, class, since, judged)),
        (Change::Confirm { since }, Some(finding)) => {
            let before = finding.confirmed_at;
            outcome.updated.push((confirmed(context, now, since, judged, finding), before));
        }
        (Change::Replace { since, because }, Some(finding)) => {
            outcome.updated.push(close(finding, now, because));
            outcome.opened.push(opened(context, now, class, since, judged));
        }
        // Nobody may act on a plan that rests on what is not known any more.
        (Change::Unconfirmed, Some(finding)) if finding.confirmed_sweeps > 0 || finding.proposal.is_some() => {
            let before = finding.confirmed_at;
            let not_proposed = Some("no longer confirmed".to_owned());
            outcome.updated.push((Finding { confirmed_sweeps: 0, proposal: None, not_proposed, ..finding }, before));
        }
        (Change::Close { because }, Some(finding)) => outcome.updated.push(close(finding, now, because)),
        _ => {}
    }
}

/// What follows for every class from whether the machine is there and runs; none if that speaks against no class.
fn presence(judged: &Judged) -> Option<Detection> {
    let Subject { instance, coverage, .. } = &judged.subject;
    match (instance, coverage) {
        (Some(instance), _) => match is_running(instance) {
            Some(true) => None,
            Some(false) => Some(Detection::Refuted { because: format!("the instance is {}", instance.state) }),
            None => Some(Detection::NotKnown),
        },
        (None, Coverage::Complete) => {
            Some(Detection::Refuted { because: "the provider lists the instance no more".to_owned() })
        }
        (None, Coverage::Failed) => Some(Detection::NotKnown),
        (None, Coverage::NotAsked) => None,
    }
}

/// A host that no inventory covers and that has been silent for too long. Whether one that an inventory covers is there, its provider says.
fn gone(context: &Context, now: Timestamp, judged: &Judged) -> Option<Detection> {
    let Subject { instance: None, coverage: Coverage::NotAsked, node: Some(node), .. } = &judged.subject else {
        return None;
    };
    let last = node.last_seen_at?;
    let silent = Duration::try_from(now.duration_since(last)).ok()?;
    (silent >= context.config.verdict.gone_after).then(|| {
        let last = words::time(last.as_millisecond());
        Detection::Refuted { because: format!("nothing has been heard of the host since {last}") }
    })
}

/// What this sweep saw of the subject's class of waste.
fn detection(judged: &Judged) -> Detection {
    if let Some(detection) = presence(judged) {
        return detection;
    }
    let since = judged.judgement.since_unix_ms.and_then(|ms| Timestamp::from_millisecond(ms).ok());
    match (judged.judgement.verdict, since) {
        (Verdict::Idle, Some(since)) => Detection::Confirmed { since, work: work(&judged.case) },
        (Verdict::Active, _) => Detection::Refuted { because: words::decision(&judged.judgement, &judged.case) },
        (Verdict::Idle | Verdict::Unknown, _) => Detection::NotKnown,
    }
}

/// The last work that the node's evidence shows.
fn work(case: &Case) -> Option<Work> {
    let judgement = last_work(case)?;
    let Decision::Above { observation, .. } = &judgement.decision else { return None };
    let until = Timestamp::from_millisecond(observation.end_unix_ms).ok()?;
    Some(Work { until, what: words::decision(&judgement, case) })
}

fn count(judged: &Judged, outcome: &mut Outcome) {
    let Subject { instance, coverage, node, .. } = &judged.subject;
    match (instance, coverage) {
        (Some(instance), _) if is_running(instance) == Some(false) => {
            outcome.counts.not_running += 1;
            return;
        }
        // Listed by nobody any more: not a machine.
        (None, Coverage::Complete) => return,
        (None, _) if node.is_none() => return,
        _ => {}
    }
    match judged.judgement.verdict {
        Verdict::Active => outcome.counts.active += 1,
        Verdict::Idle => outcome.counts.idle += 1,
        Verdict::Unknown => {
            outcome.counts.unknown += 1;
            let lines = if is_blind(judged) { &mut outcome.blind_spots } else { &mut outcome.unknown };
            lines.push(line(judged));
        }
    }
}

/// What decided, and of a machine whose agent is not heard, why that is, as far as it is known.
fn why(judged: &Judged) -> String {
    let decided = words::decision(&judged.judgement, &judged.case);
    match judged.subject.node.as_ref().and_then(|node| node.refused.as_ref()) {
        Some((at, because)) if is_blind(judged) => {
            let at = words::time(at.as_millisecond());
            format!("its agent's heartbeats are refused, last at {at}: {because}")
        }
        _ => decided,
    }
}

fn line(judged: &Judged) -> MachineLine {
    let (cost_micro_usd_per_hour, cost_per_hour, cost_unknown_because) = report::cost(&judged.cost);
    MachineLine {
        resource: judged.subject.id.to_string(),
        name: judged.subject.name(),
        instance_type: judged.subject.instance.as_ref().and_then(|instance| instance.instance_type.clone()),
        verdict: judged.judgement.verdict.as_str().to_owned(),
        why: why(judged),
        cost_micro_usd_per_hour,
        cost_per_hour,
        cost_unknown_because,
        usage: judged.outside.usage.clone(),
        launched_by: judged.outside.launched_by.clone(),
    }
}

fn opened(context: &Context, now: Timestamp, class: Class, since: Timestamp, judged: Judged) -> Finding {
    let resource = judged.subject.id.clone();
    let fresh = Finding {
        id: FindingId::new(class, &resource, now),
        class,
        resource,
        status: Status::Open,
        since,
        opened_at: now,
        confirmed_at: now,
        confirmed_sweeps: 0,
        cost: judged.cost.clone(),
        evidence: evidence(&judged),
        proposal: None,
        not_proposed: None,
    };
    confirmed(context, now, since, judged, fresh)
}

fn evidence(judged: &Judged) -> Evidence {
    Evidence {
        case: judged.case.clone(),
        judgement: judged.judgement.clone(),
        machine: judged
            .subject
            .instance
            .as_ref()
            .map(|instance| Machine { launched_by: judged.outside.launched_by.clone(), ..Machine::of(instance) }),
        outside: None,
    }
}

fn confirmed(context: &Context, now: Timestamp, since: Timestamp, judged: Judged, finding: Finding) -> Finding {
    let mut finding = Finding {
        since,
        confirmed_at: now,
        confirmed_sweeps: finding.confirmed_sweeps.saturating_add(1),
        cost: judged.cost.clone(),
        evidence: evidence(&judged),
        ..finding
    };
    let needed = context.config.sweep.proposal_after_sweeps.max(1);
    if finding.confirmed_sweeps < needed {
        (finding.proposal, finding.not_proposed) =
            (None, Some(format!("confirmed by {} of {needed} sweeps in a row", finding.confirmed_sweeps)));
        return finding;
    }
    // A plan is immutable. It is made anew when it has expired, or when what it rests on has changed.
    match propose(&finding, &judged, now) {
        Ok(new) => {
            let keep = finding.proposal.take().filter(|old| same_but_for_expiry(old, &new, now));
            (finding.proposal, finding.not_proposed) = (Some(keep.unwrap_or(new)), None);
        }
        Err(why) => (finding.proposal, finding.not_proposed) = (None, Some(why.to_string())),
    }
    finding
}

/// What the *stop* rule looks at; none for a machine without an instance that it knows.
fn stop_facts(judged: &Judged) -> Option<stop::Machine> {
    let Subject { instance, groups_are_known, schedulers, .. } = &judged.subject;
    instance.as_ref()?.stop_facts(*groups_are_known, schedulers, judged.outside.protection)
}

fn propose(
    finding: &Finding,
    judged: &Judged,
    now: Timestamp,
) -> Result<recommender::proposal::Proposal, stop::NotProposed> {
    stop::propose(&stop::StopInput {
        finding: finding.id.0.clone(),
        resource: finding.resource.to_string(),
        verdict: match judged.judgement.verdict {
            Verdict::Active => stop::Verdict::Active,
            Verdict::Idle => stop::Verdict::Idle,
            Verdict::Unknown => stop::Verdict::Unknown,
        },
        machine: stop_facts(judged).unwrap_or_else(|| match judged.subject.id {
            NodeId::Gcp { .. } => stop::Machine::NotKnown("Google Cloud".to_owned()),
            NodeId::Aws { .. } | NodeId::Host { .. } => stop::Machine::OnPrem,
        }),
        price: match finding.cost.rate() {
            Some(rate) => stop::Price::OnDemand(rate),
            None => stop::Price::Unknown(report::cost(&finding.cost).2.unwrap_or_default()),
        },
        now,
    })
}

fn same_but_for_expiry(
    old: &recommender::proposal::Proposal,
    new: &recommender::proposal::Proposal,
    now: Timestamp,
) -> bool {
    let mut old_plan = old.plan().clone();
    let valid = old_plan.expires_at > now;
    old_plan.expires_at = new.plan().expires_at;
    valid && old_plan == *new.plan()
}

fn close(finding: Finding, now: Timestamp, because: String) -> (Finding, Timestamp) {
    let before = finding.confirmed_at;
    (Finding { status: Status::Closed { at: now, because }, proposal: None, ..finding }, before)
}

fn closed(updated: &[(Finding, Timestamp)]) -> Vec<String> {
    let is_closed = |finding: &Finding| matches!(finding.status, Status::Closed { .. });
    updated.iter().filter(|(finding, _)| is_closed(finding)).map(|(finding, _)| finding.id.0.clone()).collect()
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

mod quiet;
#[cfg(test)]
mod tests;
