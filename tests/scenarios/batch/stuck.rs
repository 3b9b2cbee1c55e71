//! A job that Batch says to run and whose processes do nothing is found once, with its cost; its neighbour, which works, is left alone, and so is a job that
//! may wait for something.

use heartbeat::{BootId, NodeId, wire};
use jiff::{SignedDuration, Timestamp};
use lab::{
    aws::{
        ACCOUNT, Fault, Instance, Moto,
        estate::{REGION, environment, job, on, queue, registered, running, runtime_id},
    },
    sample,
    sweeper::Sweeper,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use sweeper::store::{Store, TokenHash};

lab::on_both_databases! {
    a_job_without_progress_is_found_once_with_its_cost_until_it_goes_on,
}

/// Half-minutes of heartbeats: 40 minutes.
const BEATS: u64 = 80;

const HOUR_NS: u64 = 3_600_000_000_000;

/// What the containers of three jobs did, up to half-minute `now` of the boot.
fn beat(sequence: u64, end: Timestamp, change: &impl Fn(u64, &mut wire::WorkloadActivity)) -> wire::Heartbeat {
    let mut beat = sample::heartbeat(sequence, end);
    let interval = beat.interval.as_mut().unwrap();
    // It has been up for four hours.
    (interval.start_boottime_ns, interval.end_boottime_ns) =
        (interval.start_boottime_ns + 4 * HOUR_NS, interval.end_boottime_ns + 4 * HOUR_NS);
    interval.observed_since_unix_ms = interval.end_unix_ms - i64::try_from(sequence).unwrap() * sample::INTERVAL_MS;
    beat.workloads = ["stuck", "works", "asks"]
        .map(|name| {
            let id = format!("{name}/{}", runtime_id(name));
            let mut row = wire::WorkloadActivity {
                key: format!("/ecs/{id}"),
                class: wire::Class::Workload.into(),
                name: Some(wire::WorkloadName { kind: "ecs".into(), id, container: None }),
                top_command: "bwa".into(),
                live_processes: 1,
                live_threads: 4,
                cpu_ns: Some(9_000_000_000 + if name == "works" { sequence * 20_000_000_000 } else { 0 }),
                forks: Some(4),
                execs: Some(2),
                exits: Some(3),
                voluntary_switches: Some(900),
                involuntary_switches: Some(30),
                states: Some(wire::TaskStates { sleeping: 4, ..wire::TaskStates::default() }),
                not_run_ns: Some(3 * HOUR_NS),
                peers: Some(u32::from(name == "asks")),
                ..wire::WorkloadActivity::default()
            };
            change(sequence, &mut row);
            row
        })
        .into();
    beat
}

/// Heartbeats of the machine from half-minute `from` on, the last of which ends now.
async fn report(
    store: &Store,
    node: &NodeId,
    beats: std::ops::RangeInclusive<u64>,
    change: impl Fn(u64, &mut wire::WorkloadActivity),
) {
    let (boot, now) = (BootId(uuid::Uuid::from_u128(7)), Timestamp::now());
    store.join_node(&sample::join(node, boot), &TokenHash::of(&node.to_string()), now).await.unwrap();
    let last = *beats.end();
    let heartbeats = beats.map(|sequence| {
        let ago = SignedDuration::from_secs(30).checked_mul(i32::try_from(last - sequence).unwrap()).unwrap();
        beat(sequence, now - ago, &change)
    });
    let envelope = wire::Envelope {
        heartbeats: heartbeats.collect(),
        oldest_retained_sequence: 1,
        ..sample::envelope(node, boot, &[], now)
    };
    store.store_heartbeats(&sample::checked(&envelope), now).await.unwrap();
}

fn found(report: &Value) -> BTreeMap<String, Value> {
    let findings = report["findings"].as_array().unwrap().iter();
    let stuck = findings.filter(|finding| finding["class"] == "stuck_job");
    stuck.map(|finding| (finding["resource"].as_str().unwrap().to_owned(), finding.clone())).collect()
}

async fn a_job_without_progress_is_found_once_with_its_cost_until_it_goes_on(url: String) {
    let folder = tempfile::tempdir().unwrap();
    let moto = Moto::start(&folder.path().join("aws")).await;
    let day_ago = Some(Timestamp::now() - SignedDuration::from_hours(24));
    let machine = |name| Instance { launched_at: day_ago, ..Instance::named("m5.large", name) };
    let machines = moto.run(REGION, &[machine("alone"), machine("shared")]).await;
    let [alone, shared] = [0, 1].map(|index| machines[index].as_str());
    let config = format!("[store]\nurl = \"{url}\"\n[aws]\nregions = [\"{REGION}\"]\n");
    let environment_of_moto = moto.environment();
    let environment_of_moto: Vec<_> =
        environment_of_moto.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    let sweeper = Sweeper::prepare(&folder.path().join("sweeper"), &config, &environment_of_moto);
    let task = |name: &str, on: &str| running("busy", name, Some(on), &[("main", &runtime_id(name))]);
    let estate = |status: &str| {
        json!({
            "environments": [environment("busy", "MANAGED", "ECS", "EC2")],
            "queues": [queue("busy", "busy")],
            "jobs": [
                job("stuck", "busy", status, on("busy", "stuck", "m1")),
                job("works", "busy", "RUNNING", on("busy", "works", "m2")),
                job("asks", "busy", "RUNNING", on("busy", "asks", "m2")),
            ],
            "container_instances": [registered("busy", "m1", alone), registered("busy", "m2", shared)],
            "tasks": [task("stuck", "m1"), task("works", "m2"), task("asks", "m2")],
        })
    };
    moto.batch(REGION, estate("RUNNING")).await;
    assert_eq!(sweeper.sweep().await.0, 0, "it makes the tables");
    let store = Store::connect(&url).await.unwrap();
    let node = |id: &str| -> NodeId { format!("aws:{ACCOUNT}:{REGION}:{id}").parse().unwrap() };
    let nothing = |_: u64, _: &mut wire::WorkloadActivity| {};
    for id in [alone, shared] {
        report(&store, &node(id), 1..=BEATS, nothing).await;
    }
    let (code, told) = sweeper.sweep().await;
    assert_eq!(code, 0, "{told:#}");
    let key = format!("aws:{ACCOUNT}:{REGION}:job/stuck");
    let all = found(&told);
    assert_eq!(all.keys().collect::<Vec<_>>(), [&key]);
    let finding = &all[&key];
    assert_eq!(finding["cost_micro_usd_per_hour"], 96_000, "it has its machine for itself");
    let why = finding["why"].as_str().unwrap();
    assert!(why.starts_with("no task of it has run for 30 min: 1 process (4 threads), asleep;"), "{why}");
    assert!(why.ends_with("those that live have not run for 3 h"), "{why}");
    let table = String::from_utf8(sweeper.run(&["findings"]).await.stdout).unwrap();
    assert!(table.contains("Stuck: jobs, runs and tasks that make no progress"), "{table}");
    let id = finding["id"].as_str().unwrap().to_owned();
    let text = String::from_utf8(sweeper.run(&["explain", &id]).await.stdout).unwrap();
    for part in [
        "align-stuck has made no progress for 30 min",
        "what      align:3",
        "Why stuck",
        "decided again from the kept evidence just now: the same",
        "no plan ends a job of AWS Batch where `act.terminate_jobs` is off",
    ] {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }

    // What cannot be read, or is not told any more, ends nothing, and its cost runs on no further.
    let until = |report: &Value| found(report)[&key]["confirmed_until"].clone();
    for (service, action) in [("batch", "ListJobs"), ("ecs", "DescribeTasks")] {
        let code = Some("AccessDeniedException".to_owned());
        let fault = Fault { service: Some(service.into()), action: Some(action.into()), code, ..Fault::default() };
        moto.fail(&[fault]).await;
        report(&store, &node(alone), BEATS + 1..=BEATS + 1, nothing).await;
        let (code, unread) = sweeper.sweep().await;
        assert_eq!((code, until(&unread)), (3, until(&told)), "{action}");
    }
    moto.fail(&[]).await;

    // One switch is progress.
    let moves = |_: u64, row: &mut wire::WorkloadActivity| row.voluntary_switches = Some(901);
    report(&store, &node(alone), BEATS + 2..=BEATS + 2, moves).await;
    let (_, went_on) = sweeper.sweep().await;
    assert_eq!(found(&went_on), BTreeMap::new());
    let closed = sweeper.json(&["findings", "--closed"]).await;
    let closed = closed.as_array().unwrap().iter().find(|finding| finding["class"] == "stuck_job").unwrap();
    assert_eq!(closed["status"]["because"], "it made progress: context switches");
    let (decisions, plans) = sweeper.replays().await;
    assert!(decisions >= 2 && plans == 0, "{decisions}");
}
