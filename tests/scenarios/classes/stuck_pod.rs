//! A pod of a Kubernetes job of which nothing runs is told once, and until it is shown no more; one that works, and one of a service, are not.

use heartbeat::wire;
use jiff::Timestamp;
use lab::sample;
use serde_json::Value;

use crate::site::{Site, observed_since_the_first, of_class};

lab::on_both_databases! {
    a_pod_of_a_job_that_gets_nowhere_is_told_until_it_ends,
}

/// Half-minutes of heartbeats: 40 minutes.
const BEATS: u64 = 80;

/// The row of a pod's container, which has done so much.
fn pod(name: &str, owner: &str, done: u64) -> wire::WorkloadActivity {
    let told = wire::Container {
        name: "main".into(),
        pod: name.into(),
        namespace: "omics".into(),
        owner: owner.into(),
        image: "bwa:1".into(),
    };
    let done = Some(done);
    wire::WorkloadActivity {
        class: wire::Class::Workload.into(),
        key: format!("/kubepods.slice/{name}"),
        name: Some(wire::WorkloadName { kind: "kubernetes".into(), id: name.into(), container: Some(told) }),
        top_command: "bwa".into(),
        live_processes: 1,
        live_threads: 1,
        cpu_ns: done,
        disk_read_bytes: Some(0),
        disk_written_bytes: Some(0),
        network_received_bytes: Some(0),
        network_sent_bytes: Some(0),
        forks: Some(1),
        execs: Some(1),
        exits: Some(0),
        voluntary_switches: done,
        involuntary_switches: Some(0),
        oom_kills: Some(0),
        peers: Some(0),
        ..wire::WorkloadActivity::default()
    }
}

/// A heartbeat of a node with a stuck pod, a pod that works, and a service that does nothing.
fn beat(sequence: u64, end: Timestamp, is_over: bool) -> wire::Heartbeat {
    let mut beat = sample::quiet(sequence, end);
    observed_since_the_first(&mut beat);
    beat.workloads.push(pod("count-2", "Job/count", sequence * 1_000));
    beat.workloads.push(pod("web-3", "ReplicaSet/web", 7));
    if !is_over {
        beat.workloads.push(pod("align-1", "Job/align", 7));
    }
    beat
}

async fn a_pod_of_a_job_that_gets_nowhere_is_told_until_it_ends(url: String) {
    let site = Site::new(&url).await;
    let sweeper = &site.sweeper;
    let report = async |beats, is_over| {
        site.report(beats, |sequence, end| beat(sequence, end, is_over)).await;
    };
    report(1..=BEATS, false).await;
    let (_, told) = sweeper.sweep().await;
    assert_eq!(told["counts"]["waiting"], 1, "for its pods: {told:#}");
    let found = of_class(&told, "stuck_job");
    let [finding] = found.as_slice() else { panic!("{told:#}") };
    assert_eq!(finding["resource"], site.workload("pod/omics/align-1"));
    assert_eq!([&finding["name"], &finding["described"]], ["align-1", "pod of Job/align in namespace omics"]);
    let why = finding["why"].as_str().unwrap();
    assert!(why.starts_with("no task of it has run for 30 min: 1 process (1 thread)"), "{why}");
    let text = String::from_utf8(sweeper.run(&["explain", finding["id"].as_str().unwrap()]).await.stdout).unwrap();
    for part in [
        "align-1 has made no progress for 30 min",
        "Why stuck",
        "decided again from the kept evidence just now: the same",
    ] {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }

    report(BEATS + 1..=BEATS + 1, true).await;
    let (_, over) = sweeper.sweep().await;
    assert_eq!(of_class(&over, "stuck_job"), Vec::<Value>::new());
    let closed = sweeper.json(&["findings", "--closed"]).await;
    assert_eq!(closed[0]["status"]["because"], "its machine's agent shows it no more");
    let (decisions, plans) = sweeper.replays().await;
    assert!(decisions >= 2 && plans == 0, "{decisions}");
}
