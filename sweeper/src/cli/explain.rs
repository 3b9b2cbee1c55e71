//! `sweeper explain`.

use super::{FAILED, Output, open_existing, plan, replay, screen};
use crate::{
    config::Config,
    detectors::Class,
    findings::{Evidence, Finding, MachineEvidence, Status, charge},
    pricing::Cost,
    reconcile::{Change, Record},
    snapshot::Inputs,
    store::{Store, StoreError},
    verdict::{Case, Decision, Judgement, NodeFacts, words},
};
use jiff::Timestamp;
use model::ResourceKind;
use screen::{BOLD, DIM, WARN, plain};
use serde::Serialize;
use std::{fmt::Write as _, process::ExitCode};

/// What `--output json` shows.
#[derive(Serialize)]
struct Explanation<'a> {
    finding: &'a Finding,
    /// All that the last record rests on which says that it is so; none where nothing readable was kept.
    evidence: Option<Confirmed<'a>>,
    /// What was decided about it, oldest first, and what this version decides from the same evidence.
    decisions: Vec<replay::Decision>,
    /// All of it was decided again just now, with the same result.
    replays: bool,
}

/// What a record rests on.
#[derive(Serialize)]
struct Confirmed<'a> {
    at: Timestamp,
    #[serde(flatten)]
    inputs: &'a Inputs,
}

pub(super) async fn explain(config: &Config, id: &str, output: Output) -> anyhow::Result<ExitCode> {
    let store = open_existing(config).await?;
    let Some(finding) = finding(&store, id).await? else { return Ok(ExitCode::from(FAILED)) };
    let (records, is_readable) = match store.evidence(&finding.id).await {
        // What is known of the finding is shown all the same; that its evidence says the same again is not known.
        Err(error @ StoreError::Corrupt { .. }) => {
            screen::error(&crate::chain(&error));
            (Vec::new(), false)
        }
        records => (records?, true),
    };
    let decisions: Vec<_> = records.iter().map(replay::Decision::of).collect();
    let confirming = |record: &&Record| matches!(record.change, Change::Open { .. } | Change::Confirm { .. });
    let last = records.iter().rfind(confirming);
    let evidence = last.map(|Record { at, inputs, .. }| Confirmed { at: *at, inputs });
    let replays = is_readable && evidence.is_some() && decisions.iter().all(replay::Decision::is_same);
    match output {
        Output::Json => screen::json(&Explanation { finding: &finding, evidence, decisions, replays })?,
        Output::Table => screen::print(&text(&finding, &records, replays)),
    }
    Ok(ExitCode::SUCCESS)
}

/// The finding whose id begins like this; none, with an error on the screen, if there is none or more than one.
pub(super) async fn finding(store: &Store, id: &str) -> anyhow::Result<Option<Finding>> {
    let mut found = store.findings_by_prefix(id).await?;
    if let [first, second, ..] = found.as_slice() {
        screen::error(&format!("`{id}` is not unique: {} and {} begin like this", first.id, second.id));
        return Ok(None);
    }
    if found.is_empty() {
        screen::error(&format!("there is no finding `{id}`; `sweeper findings` lists the open ones"));
    }
    Ok(found.pop())
}

fn text(finding: &Finding, records: &[Record], replays: bool) -> String {
    let mut out = String::new();
    head(&mut out, finding);
    why(&mut out, finding, replays);
    present(&mut out, finding);
    decisions(&mut out, records);
    of_plan(&mut out, finding);
    out
}

/// Decisions that are shown; a finding that comes and goes for a month has hundreds.
const DECISIONS: usize = 10;

fn decisions(out: &mut String, records: &[Record]) {
    if records.is_empty() {
        return;
    }
    heading(out, "What was decided, and kept with its evidence");
    let skipped = records.len().saturating_sub(DECISIONS);
    if skipped > 0 {
        let earlier = words::count(skipped, "earlier one", "earlier ones");
        let _ = writeln!(out, "  {DIM}and {earlier} (--output json){DIM:#}");
    }
    for record in &records[skipped..] {
        let time = words::time(record.at.as_millisecond());
        let _ = writeln!(out, "  {time}  {:<11}  {}", record.event.as_str(), plain(&record.change.in_words()));
    }
}

pub(super) fn heading(out: &mut String, text: &str) {
    let _ = writeln!(out, "\n{BOLD}{text}{BOLD:#}");
}

pub(super) fn list(out: &mut String, lines: &[String]) {
    for line in lines {
        let _ = writeln!(out, "  {line}");
    }
}

fn head(out: &mut String, finding: &Finding) {
    let status = match &finding.status {
        Status::Open => format!("open, last confirmed at {}", words::time(finding.confirmed_at.as_millisecond())),
        Status::Closed { at, because } => format!("closed at {}: {}", words::time(at.as_millisecond()), plain(because)),
    };
    let until = finding.confirmed_until;
    let lasted = until.duration_since(finding.since);
    let span = words::span(i64::try_from(lasted.as_millis()).unwrap_or(i64::MAX));
    let name = finding.name().map_or_else(String::new, |name| format!("{} ", plain(name)));
    let state = match finding.class {
        Class::IdleNode => "has been idle for",
        Class::QuietInstance => "has looked unused from outside for",
        Class::IdleGpu => "works or waits, and none of its GPUs has worked for",
        Class::BarelyUsed => "has been barely used for",
        Class::QuietHours => "has been quiet in the same hours of each week for",
        Class::UnattachedVolume => "has been attached to nothing for",
        Class::UnusedAddress => "has been tied to nothing for",
        Class::OrphanedSnapshot => "has outlived its volume, and is needed by no image, for",
        Class::StoppedInstance => "has been stopped for",
        Class::SilentAgent => "runs, and its agent has been silent for",
        Class::UnregisteredWorker => "has run without joining its cluster for",
        Class::AbandonedWorker => "has run without its compute environment for",
        Class::IdleWorker => "has been idle, and not ended by AWS Batch, for",
        Class::IdleGroup => "has had nothing but idle machines for",
        Class::RelaunchingGroup if finding.resource.kind == ResourceKind::LaunchTemplate => {
            "has been used to start machines that nobody used for"
        }
        Class::RelaunchingGroup => "has started machines that nobody used for",
        Class::BlockedQueue => "has been blocked for",
        Class::HeldCapacity => "has kept machines ready for no job for",
        Class::LostJob => "has been without its containers for",
        Class::StartingJob => "has been starting for",
        Class::StragglingJob => "has run behind all others of its array for",
        Class::OrphanedJob => "has outlived the job that submitted it for",
        Class::StuckJob => "has made no progress for",
        Class::SpinningJob => "has done nothing but compute for",
        Class::FailingRun => "has had nothing but failed tasks for",
        Class::OrphanedTask => "has outlived its run for",
    };
    let name = if name.is_empty() && finding.evidence.of_machine().is_none() {
        format!("{} ", plain(&finding.resource.to_string()))
    } else {
        name
    };
    let _ = writeln!(out, "{BOLD}{name}{state} {span}{BOLD:#}");
    let mut fact = |label: &str, value: String| {
        let _ = writeln!(out, "  {label:<10}{value}");
    };
    fact("finding", format!("{} ({}), {status}", finding.id, finding.class.as_str()));
    fact("resource", plain(&finding.resource.to_string()));
    if let Some(arn) = finding.resource.arn() {
        fact("ARN", plain(&arn));
    }
    if let Some(link) = finding.resource.self_link() {
        fact("self-link", plain(&link));
    }
    let owner = |owner: Option<&str>| owner.map_or_else(|| "no owner tag".to_owned(), plain);
    if let Some(machine) = finding.evidence.machine() {
        fact("type", plain(machine.instance_type.as_deref().unwrap_or("not known")));
        fact("owner", owner(machine.owner.as_deref()));
        let started = machine.launched_at.map(Timestamp::as_millisecond);
        fact("started", started.map_or_else(|| "not known".to_owned(), words::time));
        if let Some(by) = &machine.launched_by {
            fact("launched", format!("by {}", plain(&by.to_string())));
        }
    }
    if let Some(thing) = finding.evidence.thing() {
        fact("what", plain(thing.what.as_deref().unwrap_or("not known")));
        fact("owner", owner(thing.owner.as_deref()));
        if let Some(by) = finding.evidence.launched_by() {
            fact("submitted", format!("by {}", plain(&by.to_string())));
        }
        if let Some(created_at) = thing.created_at {
            fact("made", words::time(created_at.as_millisecond()));
        }
    }
    fact("since", words::time(finding.since.as_millisecond()));
    fact(
        "costs",
        match &finding.cost {
            Cost::Known { per_hour, as_of } => {
                let dated = as_of.map_or_else(String::new, |as_of| {
                    format!(" (price of {}; it cannot be read today)", words::time(as_of.as_millisecond()))
                });
                format!(
                    "{per_hour} on demand, {} a month; {} since then{dated}",
                    per_hour.per_month().in_cents(),
                    per_hour.over(lasted).in_cents()
                )
            }
            Cost::Unknown { why } => format!("not known: {}", plain(why)),
        },
    );
}

fn why(out: &mut String, finding: &Finding, replays: bool) {
    match &finding.evidence {
        Evidence::Machine(machine) => {
            let MachineEvidence { case, judgement, metrics, hours, .. } = machine.as_ref();
            let hours = hours.as_ref().filter(|_| finding.class == Class::BarelyUsed);
            let what = match (metrics, hours) {
                (Some(_), _) => "quiet",
                (None, Some(_)) => "barely used",
                (None, None) => judgement.verdict.as_str(),
            };
            heading(out, &format!("Why {what}"));
            list(out, &[finding.why()]);
            if let Some(hours) = hours {
                list(out, &hours.thresholds());
            }
            if let Some(metrics) = metrics {
                list(out, &metrics.thresholds());
            }
            evidence(out, case, judgement);
            list(out, &finding.evidence.last_work());
            list(out, finding.evidence.regular_work().as_slice());
        }
        Evidence::Leftover(_) => {
            heading(out, "Why left over");
            list(out, &[finding.why()]);
        }
        Evidence::Group(_) => {
            heading(out, if finding.class == Class::RelaunchingGroup { "Why waste" } else { "Why idle" });
            list(out, &[plain(&finding.why())]);
        }
        Evidence::Work(_) => {
            let what = match finding.class {
                Class::FailingRun => "Why failing",
                Class::OrphanedTask => "Why left behind",
                Class::SpinningJob => "Why suspicious",
                _ => "Why stuck",
            };
            heading(out, what);
            list(out, &[plain(&finding.why())]);
        }
        Evidence::Batch(_) => {
            heading(out, "Why waste");
            list(out, &[plain(&finding.why())]);
        }
    }
    if replays {
        let _ = writeln!(out, "  {DIM}decided again from the kept evidence just now: the same{DIM:#}");
    } else {
        let _ = writeln!(
            out,
            "  {WARN}this version decides otherwise from the kept evidence, or cannot read it (`sweeper replay {}` says which); the next sweep decides{WARN:#}",
            finding.id
        );
    }
}

/// The counters that decided, and who measured them.
pub(super) fn evidence(out: &mut String, case: &Case, judgement: &Judgement) {
    let window = match &judgement.decision {
        Decision::AllQuiet { total, .. } => Some(total),
        Decision::Above { observation, .. } => Some(observation),
        Decision::Waiting { .. } | Decision::Unknown(_) => None,
    };
    if let Some(window) = window {
        let _ = writeln!(
            out,
            "  from {} to {}, in sum:",
            words::time(window.start_unix_ms),
            words::time(window.end_unix_ms)
        );
        for line in words::counters(window, case) {
            let _ = writeln!(out, "    {line}");
        }
    }
    if let Some(node) = &case.node {
        let _ = writeln!(
            out,
            "  measured by agent {} ({}) on kernel {}, {}, booted at {}",
            plain(&node.agent_version),
            plain(&node.source),
            plain(&node.kernel_release),
            words::count(node.cpus, "CPU", "CPUs"),
            words::time(node.booted_unix_ms)
        );
        if let Some(identity) = node.identity {
            let _ = writeln!(out, "  {}", identity.attestation);
        }
        if !node.rules_version.is_empty() {
            let _ = writeln!(out, "  work told from housekeeping by rules {}", plain(&node.rules_version));
        }
    }
}

fn present(out: &mut String, finding: &Finding) {
    let machine = finding.evidence.of_machine().filter(|machine| machine.metrics.is_none());
    let Some(node) = machine.and_then(|machine| machine.case.node.as_ref()) else { return };
    heading(out, "Workloads that were there, below every threshold");
    workloads(out, node);
}

/// Whose processes live there, busiest first.
pub(super) fn workloads(out: &mut String, node: &NodeFacts) {
    if node.workloads.is_empty() {
        list(out, &["none: only housekeeping, kernel threads and the agent".to_owned()]);
    }
    for workload in &node.workloads {
        let cpu = workload.cpu_ns.map_or_else(|| "not measured".to_owned(), words::cpu);
        let _ = writeln!(
            out,
            "  {}{}: {}, {cpu} of CPU time since the agent started",
            plain(&workload.key),
            words::who(&workload.container, &workload.top_command),
            words::count(workload.live_processes, "process", "processes")
        );
    }
    if node.more_workloads > 0 {
        let _ = writeln!(out, "  and {} more", node.more_workloads);
    }
}

fn of_plan(out: &mut String, finding: &Finding) {
    let Some(plan) = &finding.plan else {
        heading(out, "No plan");
        list(out, &[plain(finding.no_plan_because.as_deref().unwrap_or("the finding is closed"))]);
        return;
    };
    let content = plan.content();
    heading(out, &format!("Plan: {}", plain(&content.title)));
    for (number, step) in plan::steps(content).iter().enumerate() {
        let _ = writeln!(out, "  {}. {step}", number + 1);
    }
    let _ = writeln!(out, "  rolled back by");
    for step in plan::reversal(content) {
        let _ = writeln!(out, "    {step}");
    }
    let _ = writeln!(out, "  lost");
    for loss in plan::losses(content) {
        let _ = writeln!(out, "    {loss}");
    }
    let _ = writeln!(out, "  goes on to be billed");
    for (kept, price) in plan.charges() {
        let _ = writeln!(out, "    {}", plain(&charge(kept, price)));
    }
    if content.keeps_billing.is_empty() {
        let _ = writeln!(out, "    nothing");
    }
    let _ = writeln!(out, "  net saving\n    {}", plan::saving(content));
    let _ = writeln!(
        out,
        "  {DIM}valid until {}, content hash {}; nothing happens without a person's approval{DIM:#}",
        words::time(plan.valid_until().as_millisecond()),
        plan.content_hash()
    );
}
