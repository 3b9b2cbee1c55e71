//! `sweeper sweep`.

mod headings;
mod overview;

use super::{FAILED, INCOMPLETE, Output, channels, make_data_dir, migrate, open, progress::Bar, screen};
use crate::{
    config::Config,
    inventory::Kind,
    outbox,
    snapshot::Seen,
    sweep::{self, Context, Counts, FindingLine, MachineLine, NotAsked, Report, ScopeLine},
    verdict::words,
};
use comfy_table::CellAlignment;
pub(super) use headings::groups;
use headings::{BARELY, BATCH, HOURS, LEFT, QUIET, SILENT, STUCK, heading_of};
use jiff::Timestamp;
use overview::{next_step, overview};
use screen::{BOLD, DIM, WARN, bare_table, plain, trim_lines};
use std::{fmt::Write as _, process::ExitCode};

pub(super) async fn sweep(config: Config, output: Output) -> anyhow::Result<ExitCode> {
    make_data_dir(&config.data_dir)?;
    let channels = channels(&config)?;
    let store = open(&config).await?;
    migrate(&store).await?;
    let context = Context { store, config, channels: channels.names(), price_lists: sweep::PriceLists::default() };
    let bar = Bar::new();
    let owner = sweep::owner();
    let report = tokio::select! {
        report = sweep::run_as(&context, &owner, Timestamp::now(), &bar) => report,
        // A scope is written in one transaction, so that an interrupted sweep leaves no half of one behind.
        _ = tokio::signal::ctrl_c() => {
            bar.end();
            context.store.release_leases(&owner).await?;
            screen::error("interrupted; scopes that were swept by then are written, the others are as before");
            return Ok(ExitCode::from(FAILED));
        }
    };
    bar.end();
    let report = report?;
    match output {
        Output::Json => screen::json(&report)?,
        Output::Table => screen::print(&table(&report)),
    }
    // A sweep may run where no `serve` does, from cron say: what is due is tried once, and stays in the outbox if it fails.
    // All that this sweep finds has come together by now.
    context.store.end_gathering(context.config.outbox.gather).await?;
    outbox::deliver_due(&context.store, &channels, &context.config.outbox).await?;
    Ok(if report.complete { ExitCode::SUCCESS } else { ExitCode::from(INCOMPLETE) })
}

/// The report for people.
fn table(report: &Report) -> String {
    let mut out = String::new();
    for scope in report.scopes.iter().filter(|scope| scope.failed.is_some()) {
        let place =
            [Some(scope.provider.as_str()), scope.account.as_deref(), scope.region.as_deref(), scope.kind.as_deref()];
        let place = place.into_iter().flatten().collect::<Vec<_>>().join(" ");
        let failed = scope.failed.as_deref().unwrap_or_default();
        let _ = writeln!(out, "{WARN}not read:{WARN:#} {}: {}", plain(&place), plain(failed));
    }
    if report.scopes.is_empty() && report.counts == Counts::default() {
        let _ = writeln!(
            out,
            "{BOLD}There is nothing to look at yet.{BOLD:#} No agent has joined, and no cloud was asked.\n\
             Start an agent (node-agent run), or name an account (AWS_PROFILE=… sweeper sweep) or a project (gcp.projects)."
        );
        not_asked(&mut out, report);
        return out;
    }
    let groups = groups(&report.findings);
    if groups.iter().all(|(heading, _)| heading.is_some()) {
        let _ = writeln!(out, "{BOLD}No idle machines found.{BOLD:#}");
    }
    for (heading, lines) in &groups {
        if let Some(heading) = heading {
            let _ = writeln!(out, "\n{BOLD}{heading}{BOLD:#}");
        }
        // Machines are all shown, however many: they are what the sweep is for.
        let shown = if *heading == Some(LEFT) { &lines[..lines.len().min(SHOWN)] } else { &lines[..] };
        let _ = writeln!(out, "{}", findings(shown));
        if lines.len() > shown.len() {
            let _ = writeln!(out, "{DIM}and {} more: sweeper findings{DIM:#}", lines.len() - shown.len());
        }
        if !lines.iter().all(is_quiet) {
            let _ = writeln!(out, "{}", total(lines));
        }
    }
    overview(&mut out, &report.overview, &report.scopes);
    section(&mut out, "Blind spots: no agent reports from them", &report.blind_spots);
    next_step(&mut out, &report.blind_spots);
    section(&mut out, "Waiting: quiet, and something outside will wake them", &report.waiting);
    section(&mut out, "No verdict yet", &report.unknown);
    let counts = report.counts;
    let _ = writeln!(
        out,
        "\n{DIM}{} active, {} waiting, {} idle, {} unknown, {} not running.{}{DIM:#}",
        counts.active,
        counts.waiting,
        counts.idle,
        counts.unknown,
        counts.not_running,
        if report.findings.is_empty() { "" } else { " The evidence: sweeper explain FINDING" }
    );
    if let Some(listed) = listed(&report.scopes) {
        let _ = writeln!(out, "{DIM}{}{DIM:#}", plain(&listed));
    }
    not_asked(&mut out, report);
    out
}

fn not_asked(out: &mut String, report: &Report) {
    for NotAsked { provider, why } in &report.not_asked {
        let _ = writeln!(out, "{DIM}not asked: {}: {}{DIM:#}", plain(provider), plain(why));
    }
}

/// What the providers listed of each kind, everywhere together: `Listed: 12 instances, 30 or more volumes; no snapshots.` None if no
/// kind was asked for.
fn listed(scopes: &[ScopeLine]) -> Option<String> {
    let mut kinds: Vec<(&str, Option<usize>, bool)> = Vec::new();
    for scope in scopes {
        let Some(kind) = scope.kind.as_deref() else { continue };
        let at = kinds.iter().position(|known| known.0 == kind).unwrap_or_else(|| {
            kinds.push((kind, None, true));
            kinds.len() - 1
        });
        let (_, sum, everywhere) = &mut kinds[at];
        match scope.listed {
            Some(count) => *sum = Some(sum.unwrap_or(0).saturating_add(count)),
            None => *everywhere = false,
        }
    }
    let (mut some, mut none) = (Vec::new(), Vec::new());
    for (kind, sum, everywhere) in kinds {
        let (one, many) = Kind::from_word(kind).map_or((kind, kind), |kind| kind.names());
        match sum {
            None => some.push(format!("{many} not known")),
            Some(sum) if !everywhere => some.push(format!("{sum} or more {many}")),
            Some(0) => none.push(many),
            Some(1) => some.push(format!("1 {one}")),
            Some(sum) => some.push(format!("{sum} {many}")),
        }
    }
    let none = (!none.is_empty()).then(|| format!("no {}", none.join(", ")));
    let some = (!some.is_empty()).then(|| some.join(", "));
    let said: Vec<String> = [some, none].into_iter().flatten().collect();
    (!said.is_empty()).then(|| format!("Listed: {}.", said.join("; ")))
}

fn is_quiet(finding: &FindingLine) -> bool {
    heading_of(finding) == Some(QUIET)
}

/// A table of findings of one group. Time and cost end where the evidence does.
pub(super) fn findings(findings: &[FindingLine]) -> String {
    let lasts = match findings.first().and_then(heading_of) {
        Some(QUIET) => "QUIET FOR",
        Some(SILENT) => "SILENT FOR",
        Some(BATCH | STUCK | BARELY | HOURS) => "FOR",
        Some(_) => "UNUSED FOR",
        None => "IDLE FOR",
    };
    let mut table = bare_table(["FINDING", lasts, "COSTS", "SO FAR", "NAME", "TYPE", "RESOURCE"]);
    for finding in findings {
        let lasted = finding.confirmed_until.duration_since(finding.since);
        let so_far = finding.cost_micro_usd_per_hour.map(model::HourlyRate::from_micros);
        table.add_row([
            plain(&finding.id),
            words::span(i64::try_from(lasted.as_millis()).unwrap_or(i64::MAX)),
            finding.cost_per_hour.clone().unwrap_or_else(|| "not known".to_owned()),
            so_far.map_or_else(|| "not known".to_owned(), |rate| rate.over(lasted).in_cents()),
            plain(finding.name.as_deref().unwrap_or("-")),
            plain(finding.described.as_deref().unwrap_or("-")),
            plain(&finding.resource),
        ]);
    }
    for column in [1, 2, 3] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    trim_lines(&table.to_string())
}

/// What all findings cost together, as far as their prices are known.
fn total(findings: &[FindingLine]) -> String {
    let known: Vec<i64> = findings.iter().filter_map(|finding| finding.cost_micro_usd_per_hour).collect();
    let unknown = findings.len() - known.len();
    let rate = model::HourlyRate::from_micros(known.iter().fold(0, |sum, rate| sum.saturating_add(*rate)));
    let mut text = match known.len() {
        0 => String::new(),
        _ => format!("{BOLD}Together {rate}, {} a month if nobody acts.{BOLD:#}", rate.per_month().in_cents()),
    };
    if unknown > 0 {
        let _ = write!(text, " {WARN}{unknown} without a known price, not counted in.{WARN:#}");
    }
    text.trim_start().to_owned()
}

/// More lines would push the findings off the screen; JSON has them all.
const SHOWN: usize = 20;

fn section(out: &mut String, title: &str, machines: &[MachineLine]) {
    if machines.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{BOLD}{title}{BOLD:#}");
    let mut table = bare_table(["NAME", "TYPE", "COSTS", "RESOURCE", "WHY"]);
    for machine in machines.iter().take(SHOWN) {
        table.add_row([
            plain(machine.name.as_deref().unwrap_or("-")),
            plain(machine.instance_type.as_deref().unwrap_or("-")),
            machine.cost_per_hour.clone().unwrap_or_else(|| "not known".to_owned()),
            plain(&machine.resource),
            plain(&why(machine)),
        ]);
    }
    let _ = writeln!(out, "{}", trim_lines(&table.to_string()));
    if machines.len() > SHOWN {
        let _ = writeln!(out, "{DIM}and {} more: sweeper sweep --output json{DIM:#}", machines.len() - SHOWN);
    }
}

/// Why there is no verdict, and what the provider tells.
fn why(machine: &MachineLine) -> String {
    // The heading says it of all of them.
    let said = Some(machine.why.clone()).filter(|why| why != words::NO_AGENT);
    let seen = machine.usage.as_ref().map(|usage| Seen::from(usage).in_words());
    let launched = machine.launched_by.as_ref().map(|by| format!("launched by {by}"));
    let all: Vec<String> = [said, seen, launched].into_iter().flatten().collect();
    if all.is_empty() { "-".to_owned() } else { all.join("; ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detectors::Class;
    use crate::sweep::{AtMost, Left, Overview, Part, Reason, RunRate, WhyNot};

    fn line(kind: Option<&str>, listed: Option<usize>) -> ScopeLine {
        ScopeLine {
            provider: "aws".into(),
            account: None,
            region: None,
            kind: kind.map(str::to_owned),
            listed,
            failed: None,
        }
    }

    #[test]
    fn what_runs_is_said_with_its_price_its_owners_and_why_prices_are_missing_once() {
        let rate =
            |machines, priced, dollars: i64| RunRate { machines, priced, micro_usd_per_hour: dollars * 1_000_000 };
        let part = |name: Option<&str>, rate| Part { name: name.map(str::to_owned), rate };
        let shown = Overview {
            running: rate(12, 10, 4),
            by_region: vec![part(Some("aws 1 a"), rate(9, 9, 3)), part(Some("aws 1 b"), rate(3, 1, 1))],
            by_owner: vec![part(None, rate(11, 10, 4)), part(Some("\u{1b}[2J"), rate(1, 0, 0))],
            unpriced: vec![Reason { why: "a Spot instance does not cost the on-demand price".into(), machines: 2 }],
            unattached_volumes: Left { count: 3, gib: 600, priced: 2, micro_usd_per_month: 48_000_000 },
            unused_addresses: Left { count: 1, ..Left::default() },
            unpriced_left: vec![WhyNot { why: "the provider did not say its size".into(), resources: 2 }],
            snapshots: AtMost { count: 3, bounded: 2, micro_usd_per_month: 5_000_000 },
            unseen: None,
        };
        let mut out = String::new();
        overview(&mut out, &shown, &[]);
        let text = anstream::adapter::strip_str(&out).to_string();
        for line in [
            "12 machines run: $4.00/h, $2920.00 a month at list prices, besides 2 without a known price",
            "  aws 1 a                  9    $3.00/h",
            "  without an owner's tag  11    $4.00/h",
            "  owner \\u{1b}[2J          1  not known",
            "no price of 2 machines: a Spot instance does not cost the on-demand price",
            "Left lying about: 3 volumes attached to nothing (600 GiB, $48.00 a month besides 1 without a known price), \
             1 address tied to nothing (price not known).",
            "no price of 2 of them: the provider did not say its size",
            "3 snapshots: what they cost is not known, since EC2 does not say how many bytes of each are stored. At most $5.00 a \
             month for 2 of them, as if each were a full copy.",
        ] {
            assert!(text.contains(line), "`{line}` is not in:\n{text}");
        }
        assert!(!text.contains('\u{1b}'), "{text:?}");
        let mut none = String::new();
        overview(&mut none, &Overview::default(), &[]);
        assert_eq!(none, "");
        let failed = ScopeLine { failed: Some("denied".into()), ..line(Some("volume"), None) };
        let mut partial = String::new();
        overview(&mut partial, &shown, &[failed]);
        assert!(partial.contains("3 or more volumes attached") && partial.contains(" 1 address tied"), "{partial}");
    }

    #[test]
    fn time_and_cost_end_where_the_evidence_does() {
        let at = |hours| Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_hours(hours);
        let line = FindingLine {
            id: "f-1".into(),
            class: Class::IdleNode.as_str().into(),
            resource: "host:1".into(),
            name: None,
            instance_type: None,
            described: None,
            verdict: Some("idle".into()),
            since: at(1),
            confirmed_at: at(4),
            confirmed_until: at(3),
            cost_micro_usd_per_hour: Some(250_000),
            cost_per_hour: Some("$0.25/h".into()),
            cost_unknown_because: None,
            why: String::new(),
            plan: None,
            launched_by: None,
            last_work: Vec::new(),
        };
        let left = FindingLine { class: Class::UnusedAddress.as_str().into(), ..line.clone() };
        let headings: Vec<_> = groups(&[left.clone(), line.clone()]).into_iter().map(|(heading, _)| heading).collect();
        assert_eq!(headings, [None, Some(LEFT)], "what is idle comes first");
        assert!(findings(&[left]).contains("UNUSED FOR"));
        let table = findings(&[line]);
        assert_eq!(table.lines().count(), 2, "{table}");
        assert!(table.contains(" 2 h ") && table.contains(" $0.50 "), "{table}");
    }

    #[test]
    fn what_was_listed_is_said_of_each_kind_and_what_was_not_is_no_zero() {
        let scopes = [
            line(Some("instance"), Some(1)),
            line(Some("volume"), Some(4)),
            line(Some("address"), None),
            line(Some("auto_scaling_group"), Some(0)),
            line(Some("ecs_task"), Some(0)),
            line(Some("launch"), None),
            line(Some("instance"), Some(11)),
            line(Some("volume"), None),
        ];
        assert_eq!(
            listed(&scopes).as_deref(),
            Some(
                "Listed: 12 instances, 4 or more volumes, addresses not known, machines' launches not known; \
                 no Auto Scaling groups, ECS tasks."
            )
        );
        assert_eq!(listed(&scopes[..1]).as_deref(), Some("Listed: 1 instance."));
        assert_eq!(listed(&scopes[3..4]).as_deref(), Some("Listed: no Auto Scaling groups."));
        assert_eq!(listed(&[line(None, None)]), None, "it failed before anything was listed");
    }
}
