//! A run whose tasks fail one after the other is told once, and until one of them succeeds or the run ends.

use heartbeat::wire;
use jiff::Timestamp;
use lab::sample;
use serde_json::Value;

use crate::site::{Site, observed_since_the_first, of_class};

lab::on_both_databases! {
    a_run_that_only_fails_is_told_once_until_a_task_succeeds,
}

/// Half-minutes of heartbeats: 40 minutes.
const BEATS: u64 = 80;

/// A heartbeat of a machine with two runs: of one a task fails every five minutes and of the other every second one. `succeeded` tasks of the first did not.
fn beat(sequence: u64, end: Timestamp, succeeded: u64) -> wire::Heartbeat {
    let mut beat = sample::heartbeat(sequence, end);
    observed_since_the_first(&mut beat);
    let interval = beat.interval.as_ref().unwrap();
    let ended_boottime_ns = Some(interval.end_boottime_ns);
    let run = |id: &str, ended: u64, failed: u64| wire::Run {
        id: id.into(),
        engine: "snakemake".into(),
        pipeline: format!("rna-{id}"),
        workload: "/user.slice/session-1.scope".into(),
        started_boottime_ns: 1,
        activity: Some(wire::WorkloadActivity { key: id.into(), ..sample::heartbeat(1, end).workloads.remove(0) }),
        tasks: vec![wire::Task {
            id: 3,
            name: "align".into(),
            started_boottime_ns: 2,
            ended_boottime_ns,
            wait_status: Some(137 * 256),
            ..wire::Task::default()
        }],
        tasks_started: ended + 1,
        tasks_ended: ended,
        tasks_failed: failed,
        ..wire::Run::default()
    };
    let tries = sequence / 10;
    beat.runs = vec![run("fails", tries + succeeded, tries), run("works", 2 * tries, tries)];
    beat
}

async fn a_run_that_only_fails_is_told_once_until_a_task_succeeds(url: String) {
    let site = Site::new(&url).await;
    let sweeper = &site.sweeper;
    let report = async |beats, succeeded| {
        site.report(beats, |sequence, end| beat(sequence, end, succeeded)).await;
    };
    report(1..=BEATS, 0).await;
    let (_, told) = sweeper.sweep().await;
    let found = of_class(&told, "failing_run");
    let [finding] = found.as_slice() else { panic!("{told:#}") };
    assert_eq!(finding["resource"], site.workload("fails"));
    assert_eq!([&finding["name"], &finding["described"]], ["rna-fails", "snakemake run"]);
    let why = finding["why"].as_str().unwrap();
    assert_eq!(
        why,
        "6 tasks of it failed within 30 min, and none succeeded; the last one was align, which ended with exit code 137"
    );
    let id = finding["id"].as_str().unwrap();
    let text = String::from_utf8(sweeper.run(&["explain", id]).await.stdout).unwrap();
    for part in [
        "rna-fails has had nothing but failed tasks for 30 min",
        "Why failing",
        "no price is split over that yet",
        "decided again from the kept evidence just now: the same",
    ] {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }

    report(BEATS + 1..=BEATS + 1, 1).await;
    let (_, went_on) = sweeper.sweep().await;
    assert_eq!(of_class(&went_on, "failing_run"), Vec::<Value>::new());
    let closed = sweeper.json(&["findings", "--closed"]).await;
    let closed = closed.as_array().unwrap().iter().find(|finding| finding["class"] == "failing_run").unwrap();
    assert_eq!(closed["status"]["because"], "1 task succeeded");
    let (decisions, plans) = sweeper.replays().await;
    assert!(decisions >= 2 && plans == 0, "{decisions}");
}
