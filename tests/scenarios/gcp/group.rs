//! A managed instance group of which each machine is idle is found, once it is known which machines are its own, and until it keeps none.

use heartbeat::NodeId;
use lab::{
    gcp::{Google, PROJECT},
    sample,
    sweeper::Sweeper,
};
use serde_json::{Value, json};
use sweeper::store::Store;

use super::estate::{HERE, THERE, machine};

const REGION: &str = "regions/europe-west3";
/// Half-minutes of heartbeats: an hour.
const BEATS: u64 = 120;

fn groups(report: &Value) -> Vec<Value> {
    let findings = report["findings"].as_array().unwrap().iter();
    findings.filter(|finding| finding["class"] == "idle_group").cloned().collect()
}

#[tokio::test]
async fn a_managed_group_whose_machines_are_all_idle_is_found_until_it_keeps_none() {
    let folder = tempfile::tempdir().unwrap();
    let google = Google::start(&folder.path().join("google")).await;
    let member = |place: &str, number: u64, of: &str| {
        let mut member = machine(place, number, "RUNNING");
        let path = format!("projects/42/{of}/instanceGroupManagers/workers");
        member["metadata"] = json!({"items": [{"key": "created-by", "value": path}]});
        member
    };
    // Another group of the same name, in a zone of that region, and a stopped machine that the group has let go.
    let mut let_go = member(HERE, 4_000, REGION);
    let_go["status"] = "TERMINATED".into();
    let here = [member(HERE, 1_000, REGION), member(HERE, 3_000, HERE), let_go];
    google.resources(PROJECT, "instances", HERE, &here).await;
    google.resources(PROJECT, "instances", THERE, &[member(THERE, 2_000, REGION)]).await;
    let keeps = async |place: &str, machines: u32| {
        let group = json!({"id": "9", "name": "workers", "targetSize": machines, "status": {"isStable": true}});
        google.resources(PROJECT, "instanceGroupManagers", place, &[group]).await;
    };
    keeps(REGION, 3).await;
    keeps(HERE, 1).await;
    let url = format!("sqlite://{}?mode=rwc", folder.path().join("store.db").display());
    let config = format!("[store]\nurl = \"{url}\"\n[aws]\nenabled = \"no\"\n{}", google.config(&[PROJECT]));
    let environment = google.environment(folder.path());
    let environment: Vec<(&str, &str)> = environment.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    let sweeper = Sweeper::prepare(&folder.path().join("sweeper"), &config, &environment);
    sweeper.sweep().await;
    let store = Store::connect(&url).await.unwrap();
    for machine in ["europe-west3-a:1000", "europe-west3-b:2000"] {
        let node: NodeId = format!("gcp:{PROJECT}:{machine}").parse().unwrap();
        sample::report(&store, &node, sample::boot(1), 1..=BEATS, sample::quiet).await;
    }
    let (_, told) = sweeper.sweep().await;
    assert_eq!(told["counts"]["idle"], 2, "{told:#}");
    assert_eq!(groups(&told), Vec::<Value>::new(), "a third one may be anywhere");

    keeps(REGION, 2).await;
    let (_, told) = sweeper.sweep().await;
    let found = groups(&told);
    let [finding] = found.as_slice() else { panic!("{told:#}") };
    assert_eq!(finding["resource"], format!("gcp:{PROJECT}:europe-west3:group/workers"));
    assert_eq!(finding["cost_unknown_because"], "each of its machines is a finding of its own");
    let table = String::from_utf8(sweeper.run(&["sweep"]).await.stdout).unwrap();
    assert!(table.contains("Idle groups: each of their machines is idle, and is replaced when it ends"), "{table}");

    keeps(REGION, 0).await;
    let (_, told) = sweeper.sweep().await;
    assert_eq!(groups(&told), Vec::<Value>::new());
    let closed = sweeper.json(&["findings", "--closed"]).await;
    let closed = closed.as_array().unwrap().iter().find(|one| one["class"] == "idle_group").unwrap();
    assert_eq!(closed["status"]["because"], "it keeps no machine up");
}
