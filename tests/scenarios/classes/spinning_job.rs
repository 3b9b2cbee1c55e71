//! A task that does nothing but compute is listed as suspicious once it has for two hours, and until it does anything else; one that allocates meanwhile never is.

use heartbeat::wire;
use jiff::Timestamp;
use lab::sample;
use serde_json::Value;

use crate::site::{Site, observed_since_the_first, of_class};

lab::on_both_databases! {
    a_task_that_only_computes_is_listed_until_it_does_something_else,
}

/// Half-minutes of heartbeats: two hours and ten minutes.
const BEATS: u64 = 260;

/// A heartbeat of a machine on which two tasks have a CPU each; one of them also touches new memory.
fn beat(sequence: u64, end: Timestamp, writes: u64) -> wire::Heartbeat {
    let mut beat = sample::heartbeat(sequence, end);
    observed_since_the_first(&mut beat);
    let workload = sample::heartbeat(1, end).workloads.remove(0);
    let activity = |key: &str, minor_faults| wire::WorkloadActivity {
        key: key.into(),
        cpu_ns: Some(sequence * 30_000_000_000),
        forks: Some(0),
        execs: Some(1),
        exits: Some(0),
        voluntary_switches: Some(4),
        involuntary_switches: Some(sequence * 40),
        minor_faults: Some(minor_faults),
        major_faults: Some(0),
        read_calls: Some(9),
        write_calls: Some(writes),
        disk_read_bytes: Some(0),
        disk_written_bytes: Some(0),
        network_received_bytes: Some(0),
        network_sent_bytes: Some(0),
        states: Some(wire::TaskStates { running: 1, ..wire::TaskStates::default() }),
        ..workload.clone()
    };
    let run = |id: &str, minor_faults: u64| wire::Run {
        id: id.into(),
        engine: "snakemake".into(),
        pipeline: format!("rna-{id}"),
        workload: "/user.slice/session-1.scope".into(),
        started_boottime_ns: 1,
        activity: Some(activity(id, minor_faults)),
        tasks: vec![wire::Task {
            id: 3,
            name: "fit".into(),
            started_boottime_ns: 2,
            activity: Some(activity("fit", minor_faults)),
            ..wire::Task::default()
        }],
        tasks_started: 1,
        ..wire::Run::default()
    };
    beat.runs = vec![run("loops", 700), run("allocates", 700 + sequence)];
    beat
}

async fn a_task_that_only_computes_is_listed_until_it_does_something_else(url: String) {
    let site = Site::new(&url).await;
    let sweeper = &site.sweeper;
    site.report(1..=BEATS, |sequence, end| beat(sequence, end, 5)).await;
    let (_, told) = sweeper.sweep().await;
    let found = of_class(&told, "spinning_job");
    let [finding] = found.as_slice() else { panic!("{told:#}") };
    assert_eq!(finding["resource"], site.workload("loops/3"));
    let why = finding["why"].as_str().unwrap();
    assert!(why.starts_with("it has used 2 h of CPU time in 2 h and done nothing else: "), "{why}");
    let text = String::from_utf8(sweeper.run(&["explain", finding["id"].as_str().unwrap()]).await.stdout).unwrap();
    for part in [
        "fit has done nothing but compute for 2 h",
        "Why suspicious",
        "it loops or it computes, and nobody can tell from outside",
        "decided again from the kept evidence just now: the same",
    ] {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
    let table = String::from_utf8(sweeper.run(&["findings"]).await.stdout).unwrap();
    assert!(table.contains("Suspicious: jobs and tasks that do nothing but compute, which may be a loop"), "{table}");

    site.report(BEATS + 1..=BEATS + 1, |sequence, end| beat(sequence, end, 6)).await;
    let (_, wrote) = sweeper.sweep().await;
    assert_eq!(of_class(&wrote, "spinning_job"), Vec::<Value>::new());
    let closed = sweeper.json(&["findings", "--closed"]).await;
    let closed = closed.as_array().unwrap().iter().find(|finding| finding["class"] == "spinning_job").unwrap();
    assert_eq!(closed["status"]["because"], "it does more than compute: read and write calls");
    let (decisions, plans) = sweeper.replays().await;
    assert!(decisions >= 2 && plans == 0, "{decisions}");
}
