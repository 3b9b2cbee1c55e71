//! Boots a scenario's machine, leaves it as the label says, and takes down what a real sweeper says of it and when.

use super::{Sample, Scenario, Site, machines::Started, sample::samples};
use heartbeat::wire;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{fmt::Write as _, path::Path, sync::Arc, time::Duration};
use sweeper::inventory::key_of;
use tokio::{task::JoinSet, time::Instant};

/// So much longer than the answer may take a machine is watched.
const MARGIN: Duration = Duration::from_secs(30);

/// What was first said of a machine, if anything was found on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// The finding's class.
    pub class: String,
    /// How long after the machine was left; none if before.
    pub after: Option<Duration>,
}

/// A scenario with all that came of it.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The scenario.
    pub scenario: Scenario,
    /// The first finding of each class on its machine.
    pub found: Vec<Found>,
    /// While it worked, before it was left.
    pub worked: Vec<Sample>,
    /// After it was left.
    pub left: Vec<Sample>,
    /// How long it was watched after it was left.
    pub watched: Duration,
    /// What was said of it at last: its verdict and why.
    pub said: String,
    /// What was said of it while it was watched, as long as it was not idle: how long after it was left, and why. It is not kept.
    pub history: Vec<(Duration, String)>,
}

/// What came of a scenario, as it is kept in a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Kept {
    name: String,
    found: Vec<Found>,
    worked: Vec<Sample>,
    left: Vec<Sample>,
    watched: Duration,
    said: String,
}

impl Kept {
    /// Of which scenario.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// With the scenario that has this name; none if there is none any more.
    #[must_use]
    pub fn measured(self) -> Option<Measured> {
        let scenario = super::all().into_iter().find(|scenario| scenario.name == self.name)?;
        let Self { name: _, found, worked, left, watched, said } = self;
        Some(Measured { scenario, found, worked, left, watched, said, history: Vec::new() })
    }
}

impl Measured {
    /// The same, to be kept in a file.
    #[must_use]
    pub fn kept(&self) -> Kept {
        let Self { scenario, found, worked, left, watched, said, history: _ } = self.clone();
        Kept { name: scenario.name.to_owned(), found, worked, left, watched, said }
    }

    /// When it was found to be what the label says; none if it was not.
    #[must_use]
    pub fn answered(&self) -> Option<Duration> {
        let class = self.scenario.class()?;
        self.found.iter().find(|found| found.class == class).and_then(|found| found.after)
    }

    /// What was found that is not so.
    #[must_use]
    pub fn wrong(&self) -> Vec<&Found> {
        let is_right = |found: &Found| self.scenario.class() == Some(found.class.as_str()) && found.after.is_some();
        let is_wrong = |found: &&Found| !is_right(found);
        self.found.iter().filter(is_wrong).collect()
    }

    /// Whether it was answered in time.
    #[must_use]
    pub fn is_in_time(&self) -> bool {
        self.answered().is_some_and(|after| after <= self.scenario.within())
    }

    /// One line of a table.
    #[must_use]
    pub fn line(&self) -> String {
        let mut line = format!("{} | {}", self.scenario.name, self.scenario.truth.as_str());
        for found in &self.found {
            let after = found
                .after
                .map_or_else(|| "before it was left".to_owned(), |after| format!("after {} s", after.as_secs()));
            write!(line, " | {} {after}", found.class).expect("a string can be written");
        }
        let lists = self.scenario.class().is_some();
        let verdict = match (self.wrong().is_empty(), lists, self.is_in_time()) {
            (false, ..) => "WRONG",
            (true, true, false) => "MISSED",
            _ => "ok",
        };
        write!(line, " | {} | {verdict}", self.said).expect("a string can be written");
        for (after, why) in self.history.iter().filter(|_| verdict == "MISSED") {
            write!(line, "\n    {} s after it was left: {why}", after.as_secs()).expect("a string can be written");
        }
        line
    }
}

/// Plays one scenario, with its files in `folder`.
///
/// # Panics
///
/// When a part of the laboratory is missing, or the machine ends.
pub async fn measure(scenario: &Scenario, site: &Site, folder: &Path) -> Measured {
    let hostname = scenario.hostname();
    let mut machine = Started::boot(scenario, site, folder).await;
    let Some(node) = site.joined(&hostname).await else {
        panic!("{hostname} has not sent three heartbeats in time; its console:\n{}", machine.console());
    };
    let key = key_of(&node);
    let mut partners = JoinSet::new();
    let (worked_ns, left_ns) = machine.leave(scenario, site, &node, &mut partners).await;
    let left = Instant::now();
    let mut found: Vec<Found> = Vec::new();
    let mut reports = site.reports();
    // What the sweep before it was left found is taken down as such.
    let mut is_first = true;
    // For whoever has to find out why it was missed.
    let mut history: Vec<(Duration, String)> = Vec::new();
    let end = scenario.within() + MARGIN;
    loop {
        if !is_first {
            reports.changed().await.expect("the sweeper goes on");
        }
        let report = Arc::clone(&reports.borrow_and_update());
        let findings = report["findings"].as_array().into_iter().flatten();
        for finding in findings.filter(|finding| is_of(finding, &key.id) || machine.is_of_its_job(finding)) {
            let class = finding["class"].as_str().unwrap_or_default();
            if !found.iter().any(|found| found.class == class) {
                let after = (!is_first).then(|| left.elapsed());
                found.push(Found { class: class.to_owned(), after });
            }
        }
        if let Some(why) = why_not(&report, &key.id)
            && history.last().is_none_or(|(_, before)| *before != why)
        {
            history.push((left.elapsed(), why));
        }
        is_first = false;
        assert!(machine.is_running(), "{}: the machine has ended", scenario.name);
        assert!(partners.try_join_next().is_none(), "{}: who takes part has ended", scenario.name);
        let is_answered = scenario.class().is_some() && !found.is_empty();
        if is_answered || left.elapsed() > end {
            break;
        }
    }
    let said = site.said_of(&node).await;
    machine.holds(scenario).await;
    partners.shutdown().await;
    drop(machine);
    let heartbeats = site.heartbeats(&node).await;
    let sources = heartbeats.iter().filter_map(|(_, one)| one.coverage.as_ref());
    let others: Vec<_> = sources.filter(|coverage| coverage.source() != wire::Source::Ebpf).collect();
    assert!(others.is_empty(), "{}: the agent's programs did not run: {:#?}", scenario.name, others.first());
    Measured {
        scenario: *scenario,
        found,
        worked: worked_ns.map_or_else(Vec::new, |from| samples(&heartbeats, from, left_ns)),
        left: samples(&heartbeats, left_ns, u64::MAX),
        watched: left.elapsed(),
        said,
        history,
    }
}

/// What a report says of a machine that is not idle.
fn why_not(report: &Value, id: &str) -> Option<String> {
    let lists = ["unknown", "waiting", "blind_spots"].into_iter().filter_map(|list| report[list].as_array());
    let line = lists.flatten().find(|line| is_of(line, id))?;
    Some(format!("{}: {}", line["verdict"].as_str()?, line["why"].as_str()?))
}

/// Whether a finding is of that machine, or of something on it.
fn is_of(finding: &Value, id: &str) -> bool {
    finding["resource"].as_str().is_some_and(|resource| resource.contains(id))
}
