//! A machine that AWS Batch started, that does nothing, and that Batch should have ended is found once, with its cost, until it works; one that its environment keeps for
//! longer, and one on which a job only sleeps, are left alone.

use jiff::{SignedDuration, Timestamp};
use lab::{
    aws::{
        ACCOUNT, Instance, Moto,
        estate::{REGION, environment, job, minutes_ago, on, queue, registered, running},
    },
    sample,
    sweeper::Sweeper,
};
use serde_json::{Value, json};
use sweeper::store::Store;

lab::on_both_databases! {
    a_worker_that_batch_should_have_ended_is_found_until_it_works,
}

/// Half-minutes of heartbeats: an hour.
const BEATS: u64 = 120;

fn found(report: &Value) -> Vec<(&str, &str)> {
    let findings = report["findings"].as_array().unwrap().iter();
    findings.map(|one| (one["class"].as_str().unwrap(), one["resource"].as_str().unwrap())).collect()
}

async fn a_worker_that_batch_should_have_ended_is_found_until_it_works(url: String) {
    let folder = tempfile::tempdir().unwrap();
    let moto = Moto::start(&folder.path().join("aws")).await;
    let worker = || Instance {
        launched_at: Some(Timestamp::now() - SignedDuration::from_hours(24)),
        tags: [("AWSBatchServiceTag".to_owned(), "batch".to_owned())].into(),
        ..Instance::named("m5.large", "")
    };
    let machines = moto.run(REGION, &[worker(), worker(), worker()]).await;
    let mut slow = environment("long", "MANAGED", "ECS", "EC2");
    slow["computeResources"]["scalingPolicy"]["minScaleDownDelayMinutes"] = 60.into();
    let estate = json!({
        "environments": [environment("idle", "MANAGED", "ECS", "EC2"), slow, environment("busy", "MANAGED", "ECS", "EC2")],
        "queues": [queue("idle", "idle"), queue("long", "long"), queue("busy", "busy")],
        "jobs": [job("sleeps", "busy", "RUNNING", on("busy", "t3", "m3"))],
        "container_instances": [
            registered("idle", "m1", &machines[0]), registered("long", "m2", &machines[1]), registered("busy", "m3", &machines[2]),
        ],
        "tasks": [running("busy", "t3", Some("m3"), &[])],
    });
    moto.batch(REGION, estate).await;
    let config = format!("[store]\nurl = \"{url}\"\n[aws]\nregions = [\"{REGION}\"]\n");
    let environment_of_moto = moto.environment();
    let environment_of_moto: Vec<_> =
        environment_of_moto.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    let sweeper = Sweeper::prepare(&folder.path().join("sweeper"), &config, &environment_of_moto);
    sweeper.sweep().await;
    let store = Store::connect(&url).await.unwrap();
    let keys = [0, 1, 2].map(|index: usize| format!("aws:{ACCOUNT}:{REGION}:{}", machines[index]));
    for key in &keys {
        sample::report(&store, &key.parse().unwrap(), sample::boot(1), 1..=BEATS, sample::quiet).await;
    }

    let (_, told) = sweeper.sweep().await;
    assert_eq!(told["counts"]["idle"], 3, "{told:#}");
    assert_eq!(found(&told), [("idle_worker", keys[0].as_str())], "{told:#}");
    let finding = &told["findings"][0];
    assert_eq!([&finding["cost_micro_usd_per_hour"], &finding["plan"]], [&json!(96_000), &Value::Null]);
    let text = String::from_utf8(sweeper.run(&["explain", finding["id"].as_str().unwrap()]).await.stdout).unwrap();
    for part in [
        "sample has been idle, and not ended by AWS Batch, for 59 min 30 s",
        "no plan changes AWS Batch yet",
        "decided again from the kept evidence just now: the same",
    ] {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }

    // What it slept for comes, and its machine has nothing to do any more, as its agent has said all along.
    moto.batch(REGION, json!({"jobs": [job("sleeps", "busy", "SUCCEEDED", json!({"stoppedAt": minutes_ago(0)}))]}))
        .await;
    let (_, over) = sweeper.sweep().await;
    let mut both = found(&over);
    both.sort_unstable();
    let mut expected = [("idle_worker", keys[0].as_str()), ("idle_worker", keys[2].as_str())];
    expected.sort_unstable();
    assert_eq!(both, expected, "{over:#}");

    let key = keys[0].parse().unwrap();
    sample::report(&store, &key, sample::boot(1), BEATS + 1..=BEATS + 1, sample::worked).await;
    let (_, worked) = sweeper.sweep().await;
    assert_eq!(found(&worked), [("idle_worker", keys[2].as_str())], "{worked:#}");
    let closed = sweeper.json(&["findings", "--closed"]).await;
    let because = closed[0]["status"]["because"].as_str().unwrap();
    assert!(because.starts_with("CPU time of workloads"), "{because}");
    let (decisions, plans) = sweeper.replays().await;
    assert!(decisions >= 2 && plans == 0, "{decisions}");
}
