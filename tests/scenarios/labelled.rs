//! Machines of which it is known what they do are told apart: what is idle is found within its window and five minutes, and what works or waits never is.
//! All of them are `make bench-truth`; here are some of each kind, at once.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stderr, reason = "the table is read while it grows: it takes minutes")]

use lab::labelled::{self, Scenario, Site, Truth, measure};
use std::{fs, sync::Arc};
use tokio::task::JoinSet;

/// Half of them idle, half not, and a worker of AWS Batch.
const NAMES: [&str; 7] = [
    "a computation that ended",
    "two processes that wait for each other",
    "an agent that was killed and came back",
    "a trickle of forty bytes a second",
    "a loop of a shell's that sleeps between its jobs",
    "a nightly job of a crontab",
    "a worker that AWS Batch does not end",
];

#[test]
fn every_scenario_is_there_once_and_half_of_them_are_a_whole_debian() {
    let all = labelled::all();
    let mut names: Vec<String> = all.iter().map(Scenario::hostname).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), all.len(), "{names:?}");
    assert!(all.len() >= 40 && names.iter().all(|name| name.len() <= 60), "{names:?}");
    let debian = all.iter().filter(|one| one.machine == labelled::Machine::Debian).count();
    assert!(2 * debian >= all.len(), "{debian} of {}", all.len());
    let of = |truth: Truth| all.iter().filter(|one| one.truth == truth).count();
    assert!(of(Truth::Idle) >= 15 && of(Truth::Works) >= 8 && of(Truth::Waits) >= 8 && of(Truth::StuckTask) >= 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_machines_are_found_in_time_and_no_other_is() {
    let folder = tempfile::tempdir().unwrap();
    let site = async |are_workers| {
        let folder = folder.path().join(if are_workers { "workers" } else { "hosts" });
        fs::create_dir(&folder).unwrap();
        Arc::new(Site::start(&folder, false, are_workers).await)
    };
    let sites = [site(false).await, site(true).await];
    let all = labelled::all();
    let mut running = JoinSet::new();
    for name in NAMES {
        let scenario = *all.iter().find(|one| one.name == name).unwrap_or_else(|| panic!("no scenario {name}"));
        let site = Arc::clone(&sites[usize::from(scenario.batch.is_some())]);
        let folder = folder.path().join(scenario.hostname());
        fs::create_dir(&folder).unwrap();
        running.spawn(async move { measure(&scenario, &site, &folder).await });
    }
    let mut faults = Vec::new();
    while let Some(done) = running.join_next().await {
        let measured = done.unwrap();
        eprintln!("{}", measured.line());
        let is_missed = measured.scenario.truth == Truth::Idle && !measured.is_in_time();
        if is_missed || !measured.wrong().is_empty() {
            faults.push(measured.line());
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let [hosts, workers] = [sites[0].replays().await, sites[1].replays().await];
    assert!(hosts >= 3 && workers >= 1, "{hosts} and {workers} decisions");
}
