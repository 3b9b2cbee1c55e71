//! The same through the real binary: what a person is shown of jobs.

use std::path::Path;

use heartbeat::{BootId, NodeId, wire};
use jiff::Timestamp;
use lab::{
    aws::{
        ACCOUNT, Moto,
        estate::{REGION, runtime_id},
    },
    sample,
    sweeper::Sweeper,
};
use serde_json::{Value, json};
use sweeper::store::{Store, TokenHash};

use super::{estate::furnish, fault};

/// A sweeper that has never swept, and its database.
async fn site(folder: &Path, moto: &Moto) -> (Sweeper, Store) {
    let config = format!(
        "[aws]\nenabled = \"yes\"\nregions = [\"{REGION}\"]\n[pricing]\nsource = \"none\"\n[sweep]\nschedule = \"0 0 0 1 1 *\"\n"
    );
    let environment = moto.environment();
    let environment: Vec<_> = environment.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    let mut sweeper = Sweeper::start(&folder.join("sweeper"), &config, &environment).await;
    sweeper.stop().await;
    let url = format!("sqlite://{}?mode=rwc", folder.join("sweeper/data/sweeper.db").display());
    (sweeper, Store::connect(&url).await.unwrap())
}

/// A node that reports one container of a task.
async fn report(store: &Store, node: &NodeId, task: &str, container: &str) {
    let (boot, now) = (BootId(uuid::Uuid::from_u128(7)), Timestamp::now());
    store.join_node(&sample::join(node, boot), &TokenHash::of("token"), now).await.unwrap();
    let mut heartbeat = sample::heartbeat(1, now);
    heartbeat.workloads[0].name =
        Some(wire::WorkloadName { kind: "ecs".into(), id: format!("{task}/{container}"), container: None });
    let envelope = wire::Envelope {
        heartbeats: vec![heartbeat],
        oldest_retained_sequence: 1,
        ..sample::envelope(node, boot, &[], now)
    };
    store.store_heartbeats(&sample::checked(&envelope), now).await.unwrap();
}

#[tokio::test]
async fn a_person_sees_each_job_down_to_its_node_and_container_and_what_could_not_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let moto = Moto::start(&folder.path().join("aws")).await;
    let ids = furnish(&moto).await;
    let (sweeper, store) = site(folder.path(), &moto).await;
    let node: NodeId = format!("aws:{ACCOUNT}:{REGION}:{}", ids[0]).parse().unwrap();
    report(&store, &node, "t0", &runtime_id("a0")).await;

    let swept = sweeper.run(&["sweep"]).await;
    let table = String::from_utf8_lossy(&swept.stdout);
    assert_eq!(swept.status.code(), Some(0), "{table}{}", String::from_utf8_lossy(&swept.stderr));
    let line = "4 Batch compute environments, 4 Batch job queues, 16 Batch jobs, 3 ECS container instances, 5 ECS tasks, 1 machine type;";
    assert!(table.contains(line), "{table}");

    let answer = sweeper.json(&["jobs"]).await;
    assert_eq!(answer["not_known"], json!([]));
    let of = |answer: &Value, id: &str| {
        let jobs = answer["jobs"].as_array().unwrap();
        jobs.iter().find(|chain| chain["job"]["id"].as_str().unwrap().ends_with(&format!("job/{id}"))).unwrap().clone()
    };
    let plain = of(&answer, "plain")["placements"][0].clone();
    assert_eq!(plain["machine"], json!({"kind": "instance", "id": node}));
    assert_eq!(plain["node"], json!(node));
    assert_eq!(plain["containers"][0]["workload"], json!({"kind": "ecs", "id": format!("t0/{}", runtime_id("a0"))}));
    assert_eq!(of(&answer, "array:1")["placements"][0]["node"], Value::Null, "no agent reports there");
    assert_eq!(of(&answer, "failed")["job"]["attempts"][1]["number"], 2);

    let shown = sweeper.run(&["jobs", "--status", "runnable", "--queue", "high"]).await;
    let shown = String::from_utf8_lossy(&shown.stdout);
    assert!(shown.contains("stuck") && shown.contains("MISCONFIGURATION") && shown.contains("array:2"), "{shown}");
    assert!(!shown.contains("plain"), "{shown}");
    let shown = sweeper.run(&["jobs", "--status", "RUNNING"]).await;
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    let row = shown.lines().find(|line| line.trim_start().starts_with("plain ")).unwrap();
    assert!(row.contains(&ids[0]) && row.contains(&runtime_id("a0")[..12]) && row.contains(&node.to_string()), "{row}");
    assert!(
        shown.contains("not known: ECS does not know its container instance") && shown.contains("Fargate"),
        "{shown}"
    );

    let again = sweeper.run(&["sweep"]).await;
    assert_eq!(again.status.code(), Some(0));
    let past = sweeper.json(&["inventory", "job/plain"]).await;
    assert_eq!(past["resources"].as_array().unwrap().len(), 1, "nothing has changed: {past:#}");

    moto.fail(&[fault("DescribeTasks", "AccessDeniedException")]).await;
    assert_eq!(sweeper.run(&["sweep"]).await.status.code(), Some(3));
    let blind = sweeper.json(&["jobs"]).await;
    assert_eq!(blind["jobs"].as_array().unwrap().len(), 16, "Batch was read");
    assert_eq!(blind["not_known"][0]["kind"], "ecs_task");
    let machine = of(&blind, "plain")["placements"][0]["machine"].clone();
    assert!(machine["why"].as_str().unwrap().contains("ecs:DescribeTasks"), "{machine}");

    moto.fail(&[fault("ListJobs", "AccessDeniedException")]).await;
    assert_eq!(sweeper.run(&["sweep"]).await.status.code(), Some(3));
    let shown = sweeper.run(&["jobs"]).await;
    let shown = String::from_utf8_lossy(&shown.stdout);
    assert!(
        shown.contains("batch_job: batch:ListJobs: denied") && shown.contains("plain"),
        "what was there stays: {shown}"
    );
    let listed = sweeper.json(&["inventory", "--kind", "batch_job"]).await;
    assert_eq!(listed["resources"].as_array().unwrap().len(), 16, "and is not gone");
}
