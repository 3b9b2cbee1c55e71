//! A task that lives after its run is told once, though it works, and until it ends.

use heartbeat::wire;
use jiff::Timestamp;
use lab::sample;
use serde_json::Value;

use crate::site::{Site, observed_since_the_first, of_class};

lab::on_both_databases! {
    a_task_that_outlives_its_run_is_told_once_until_it_ends,
}

/// Half-minutes of heartbeats: 50 minutes.
const BEATS: u64 = 100;
/// The run ends with this one, so 45 minutes before the last.
const ENDS: u64 = 10;

/// A heartbeat of a machine with two runs, of which one ends, and a task of it does not. Neither does a step that a script left behind: a server.
fn beat(sequence: u64, end: Timestamp, is_over: bool) -> wire::Heartbeat {
    let mut beat = sample::heartbeat(sequence, end);
    observed_since_the_first(&mut beat);
    let interval = beat.interval.as_ref().unwrap();
    let beat_ns = 1_000_000 * u64::try_from(sample::INTERVAL_MS).unwrap();
    let ended_ns = interval.end_boottime_ns.checked_sub(beat_ns * sequence.saturating_sub(ENDS));
    let workload = sample::heartbeat(1, end).workloads.remove(0);
    let activity = |key: &str| wire::WorkloadActivity {
        key: key.into(),
        cpu_ns: Some(sequence * 3_000_000_000),
        ..workload.clone()
    };
    let run = |id: &str, engine: &str, ends: bool| wire::Run {
        id: id.into(),
        engine: engine.into(),
        pipeline: format!("rna-{id}"),
        workload: "/user.slice/session-1.scope".into(),
        started_boottime_ns: 1,
        ended_boottime_ns: ended_ns.filter(|_| ends && sequence >= ENDS),
        wait_status: (ends && sequence >= ENDS).then_some(9),
        activity: Some(activity(id)),
        tasks: vec![wire::Task {
            id: 3,
            name: "fit".into(),
            started_boottime_ns: 2,
            activity: Some(activity("fit")),
            ..wire::Task::default()
        }],
        tasks_started: 1,
        ..wire::Run::default()
    };
    beat.runs = vec![run("lives", "snakemake", false), run("serves", "script", true)];
    if !is_over {
        beat.runs.push(run("ends", "snakemake", true));
    }
    beat
}

async fn a_task_that_outlives_its_run_is_told_once_until_it_ends(url: String) {
    let site = Site::new(&url).await;
    let sweeper = &site.sweeper;
    let report = async |beats, is_over| {
        site.report(beats, |sequence, end| beat(sequence, end, is_over)).await;
    };
    report(1..=BEATS, false).await;
    let (_, told) = sweeper.sweep().await;
    let found = of_class(&told, "orphaned_task");
    let [finding] = found.as_slice() else { panic!("{told:#}") };
    assert_eq!(finding["resource"], site.workload("ends/3"));
    assert_eq!(
        [&finding["name"], &finding["described"]],
        ["fit", "task of the snakemake run rna-ends, which has ended"]
    );
    let why = finding["why"].as_str().unwrap();
    assert!(why.starts_with("its run ended at ") && why.contains(" with signal 9, and "), "{why}");
    assert!(why.ends_with("used 3 min of CPU time in the last 30 min"), "{why}");
    let id = finding["id"].as_str().unwrap();
    let text = String::from_utf8(sweeper.run(&["explain", id]).await.stdout).unwrap();
    for part in [
        "fit has outlived its run for 45 min",
        "Why left behind",
        "no price is split over that yet",
        "decided again from the kept evidence just now: the same",
    ] {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
    let (_, again) = sweeper.sweep().await;
    assert_eq!(of_class(&again, "orphaned_task").len(), 1, "it is the same finding");
    assert_eq!(of_class(&again, "orphaned_task")[0]["id"], finding["id"]);

    report(BEATS + 1..=BEATS + 1, true).await;
    let (_, over) = sweeper.sweep().await;
    assert_eq!(of_class(&over, "orphaned_task"), Vec::<Value>::new());
    let closed = sweeper.json(&["findings", "--closed"]).await;
    let closed = closed.as_array().unwrap().iter().find(|finding| finding["class"] == "orphaned_task").unwrap();
    assert_eq!(closed["status"]["because"], "its machine's agent shows it no more");
    let (decisions, plans) = sweeper.replays().await;
    assert!(decisions >= 2 && plans == 0, "{decisions}");
}
