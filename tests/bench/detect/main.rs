//! How long detectors take over a large snapshot, on one core: `make bench-detect`.
//!
//! A scope on paper: instances with an agent each, nine of ten of which work, in Auto Scaling groups of ten, which are wholly idle or wholly at work; volumes, one in ten attached to nothing; jobs of AWS Batch in an array, all but one of
//! which are over; as many tasks of runs, one in ten of which is stuck. Each round judges all nodes, by their states and those that may be idle by their windows, puts the snapshot together, and asks every
//! detector; the figures are medians. What was found is compared with what was put in, so that nothing is fast by looking at nothing.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a bench prints")]

#[path = "../fleet/made_up.rs"]
#[expect(dead_code, reason = "the fleet's own bench also asks for tokens and envelopes")]
mod made_up;
mod scope;

use clap::Parser;
use jiff::Timestamp;
use scope::{Given, Scope};
use serde_json::json;
use std::{
    collections::BTreeMap,
    path::PathBuf,
    time::{Duration, Instant},
};
use sweeper::detectors::{Answer, detect};

#[derive(Debug, Parser)]
#[command(
    name = "bench-detect",
    about = "How long detectors take over a large snapshot, on one core",
    after_help = "Examples:\n  make bench-detect\n  make bench-detect ARGS=\"--instances 5000 --jobs 1000\""
)]
struct Arguments {
    /// So many instances, each with an agent, and so many volumes.
    #[arg(long, default_value_t = 50_000)]
    instances: usize,
    /// So many jobs, and tasks of runs.
    #[arg(long, default_value_t = 10_000)]
    jobs: usize,
    /// How often each is measured.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Where every single figure goes, as JSON.
    #[arg(long, default_value = "target/bench-detect.json")]
    raw: PathBuf,
}

/// One round: judging all nodes, putting the snapshot together, detecting; and what was confirmed, by class.
fn round(scope: &Scope, now: Timestamp) -> ([Duration; 3], BTreeMap<&'static str, usize>) {
    let began = Instant::now();
    let judged = scope.judge(now);
    let judging = began.elapsed();
    let began = Instant::now();
    let snapshot = scope.snapshot(judged, now);
    let putting = began.elapsed();
    let (began, mut confirmed) = (Instant::now(), BTreeMap::new());
    for detection in detect(&snapshot) {
        if matches!(detection.answer, Answer::Confirmed { .. }) {
            *confirmed.entry(detection.class.as_str()).or_insert(0) += 1;
        }
    }
    ([judging, putting, began.elapsed()], confirmed)
}

fn median(mut all: Vec<Duration>) -> Duration {
    all.sort_unstable();
    all[all.len() / 2]
}

fn main() {
    let Arguments { instances, jobs, rounds, raw } = Arguments::parse();
    eprintln!("making {instances} instances, as many volumes, {jobs} jobs");
    let now = Timestamp::now();
    let (scope, given) = Scope::new(instances, jobs, now);
    let mut all = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..rounds.max(1) {
        let (spans, confirmed) = round(&scope, now);
        assert_eq!(confirmed, given.expected(), "what was put in is found");
        all.iter_mut().zip(spans).for_each(|(all, span)| all.push(span));
    }
    let figures = json!({
        "instances": instances, "volumes": instances, "jobs": jobs,
        "all_s": all.clone().map(|all| all.iter().map(Duration::as_secs_f64).collect::<Vec<_>>()),
    });
    std::fs::write(&raw, format!("{figures:#}\n")).unwrap_or_else(|error| panic!("{}: {error}", raw.display()));
    let [judging, putting, detecting] = all.map(median);
    println!("judging all nodes: {:.3} s", judging.as_secs_f64());
    println!("putting the snapshot together: {:.3} s", putting.as_secs_f64());
    println!("detecting: {:.3} s", detecting.as_secs_f64());
    let Given { idle, unattached, straggling, idle_groups, stuck } = given;
    println!(
        "found as put in: {idle} idle nodes, {idle_groups} idle groups, {unattached} unattached volumes, {straggling} straggling jobs, {stuck} stuck tasks"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_scope_is_detected_as_it_was_put_together() {
        let now = Timestamp::now();
        let (scope, given) = Scope::new(200, 50, now);
        let (_, confirmed) = round(&scope, now);
        assert_eq!(confirmed, given.expected());
        assert_eq!((given.idle, given.unattached, given.straggling), (20, 20, 1));
        assert_eq!((given.idle_groups, given.stuck), (2, 5));
    }
}
