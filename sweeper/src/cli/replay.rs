//! `sweeper replay`.

use super::{FAILED, Output, explain, open_existing, screen};
use crate::{
    config::Config,
    findings::FindingId,
    reconcile::{Change, EventKind, Record, Replayed},
    store::{Store, StoreError},
    verdict::words,
};
use jiff::Timestamp;
use model::plan::ContentHash;
use screen::{WARN, plain};
use serde::Serialize;
use std::process::ExitCode;

/// One decision, made again.
#[derive(Serialize)]
pub(super) struct Decision {
    finding: FindingId,
    /// From 1.
    number: u32,
    at: Timestamp,
    event: EventKind,
    /// The class that was detected, and the version of its detector.
    detector: &'static str,
    detector_version: i32,
    /// What was decided then.
    decided: Change,
    plan: Option<ContentHash>,
    /// What this version decides from the same evidence.
    replayed: Replayed,
}

impl Decision {
    pub(super) fn of(record: &Record) -> Self {
        Self {
            finding: record.finding.clone(),
            number: record.number,
            at: record.at,
            event: record.event,
            detector: record.class.as_str(),
            detector_version: record.version,
            decided: record.change.clone(),
            plan: record.plan.clone(),
            replayed: record.replay(),
        }
    }

    pub(super) fn is_same(&self) -> bool {
        self.replayed.is_same
    }
}

/// What `--output json` shows.
#[derive(Default, Serialize)]
struct Replay {
    findings: usize,
    decisions: Vec<Decision>,
    /// So many decisions are not what this version decides.
    different: usize,
    /// So many others it decides alike, and says why in other words.
    in_other_words: usize,
    /// Findings of a version that kept no evidence of its decisions.
    without_evidence: Vec<FindingId>,
    /// Findings whose evidence this version cannot read, and why.
    unreadable: Vec<(FindingId, String)>,
}

pub(super) async fn replay(config: &Config, ids: &[String], output: Output) -> anyhow::Result<ExitCode> {
    let store = open_existing(config).await?;
    let Some(findings) = wanted(&store, ids).await? else { return Ok(ExitCode::from(FAILED)) };
    let mut replay = Replay { findings: findings.len(), ..Replay::default() };
    for finding in findings {
        // One finding at a time is in memory: its evidence may have megabytes.
        let records = match store.evidence(&finding).await {
            Err(error @ StoreError::Corrupt { .. }) => {
                replay.unreadable.push((finding, crate::chain(&error)));
                continue;
            }
            records => records?,
        };
        if records.is_empty() {
            replay.without_evidence.push(finding);
        }
        replay.decisions.extend(records.iter().map(Decision::of));
    }
    replay.different = replay.decisions.iter().filter(|decision| !decision.is_same()).count();
    let in_other_words = |decision: &&Decision| decision.is_same() && !decision.replayed.is_same_in_words;
    replay.in_other_words = replay.decisions.iter().filter(in_other_words).count();
    match output {
        Output::Json => screen::json(&replay)?,
        Output::Table => print(&replay),
    }
    Ok(if replay.different == 0 && replay.unreadable.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

/// The findings of these beginnings of ids, or all; none, with an error on the screen, if one of them is not there.
async fn wanted(store: &Store, ids: &[String]) -> anyhow::Result<Option<Vec<FindingId>>> {
    if ids.is_empty() {
        return Ok(Some(store.finding_ids().await?));
    }
    let mut findings = Vec::new();
    for id in ids {
        let Some(finding) = explain::finding(store, id).await? else { return Ok(None) };
        findings.push(finding.id);
    }
    Ok(Some(findings))
}

fn print(replay: &Replay) {
    for decision in replay.decisions.iter().filter(|decision| !decision.is_same()) {
        let Decision { finding, number, at, decided, plan, replayed, .. } = decision;
        screen::print(&format!(
            "{WARN}{finding} {number}, {}{WARN:#}\n  decided then: {}\n  this version: {}",
            words::time(at.as_millisecond()),
            plain(&in_words(decided, plan.as_ref())),
            plain(&in_words(&replayed.change, replayed.plan.as_ref()))
        ));
    }
    let decisions = words::count(replay.decisions.len(), "decision", "decisions");
    let findings = words::count(replay.findings, "finding", "findings");
    let result = match (replay.decisions.len(), replay.different) {
        (0, _) => "nothing to replay".to_owned(),
        (_, 0) => "this version decides each as it was decided".to_owned(),
        (_, different) => format!("this version decides {different} otherwise"),
    };
    screen::print(&format!("{decisions} about {findings}: {result}."));
    if replay.in_other_words > 0 {
        screen::print(&format!("Of these, {} in other words.", replay.in_other_words));
    }
    for (finding, why) in &replay.unreadable {
        screen::print(&format!("{WARN}{finding}{WARN:#}: {}", plain(why)));
    }
    if !replay.without_evidence.is_empty() {
        let ids: Vec<_> = replay.without_evidence.iter().map(|id| id.0.as_str()).collect();
        screen::print(&format!("No evidence is kept of {}: a version before this one decided there.", ids.join(", ")));
    }
}

fn in_words(change: &Change, plan: Option<&ContentHash>) -> String {
    let decided = change.in_words();
    plan.map_or_else(|| decided.clone(), |hash| format!("{decided}; plan {hash}"))
}
