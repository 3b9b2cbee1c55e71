//! A machine that runs and whose agent is heard no more is told once, with its cost, and until the agent is heard again or the machine runs no more.

use heartbeat::{BootId, NodeId, wire};
use jiff::{SignedDuration, Timestamp};
use lab::{
    aws::{ACCOUNT, Instance, Moto},
    sample,
    sweeper::Sweeper,
};
use serde_json::{Value, json};
use sweeper::store::{Store, TokenHash};

lab::on_both_databases! {
    a_silent_agent_is_told_once_until_it_is_heard_or_its_machine_runs_no_more,
}

const REGION: &str = "us-east-1";

/// One heartbeat of the machine's agent, received at this moment.
async fn heard(store: &Store, node: &NodeId, sequence: u64, at: Timestamp) {
    let boot = BootId(uuid::Uuid::from_u128(7));
    store.join_node(&sample::join(node, boot), &TokenHash::of(&node.to_string()), at).await.unwrap();
    let envelope = wire::Envelope {
        heartbeats: vec![sample::heartbeat(sequence, at)],
        oldest_retained_sequence: 1,
        ..sample::envelope(node, boot, &[], at)
    };
    store.store_heartbeats(&sample::checked(&envelope), at).await.unwrap();
}

fn silent(report: &Value) -> Vec<(&str, &Value)> {
    let findings = report["findings"].as_array().unwrap().iter();
    let of_class = findings.filter(|finding| finding["class"] == "silent_agent");
    of_class.map(|finding| (finding["resource"].as_str().unwrap(), finding)).collect()
}

async fn a_silent_agent_is_told_once_until_it_is_heard_or_its_machine_runs_no_more(url: String) {
    let folder = tempfile::tempdir().unwrap();
    let moto = Moto::start(&folder.path().join("aws")).await;
    let now = Timestamp::now();
    let ago = |minutes| now - SignedDuration::from_mins(minutes);
    let machine = |name, minutes| Instance { launched_at: Some(ago(minutes)), ..Instance::named("m5.large", name) };
    // One whose agent fell silent 90 minutes ago, one that was started anew since then, one that never had an agent.
    let machines = [machine("silent", 600), machine("restarted", 20), machine("blind", 600)];
    let machines = moto.run(REGION, &machines).await;
    let node = |id: &str| -> NodeId { format!("aws:{ACCOUNT}:{REGION}:{id}").parse().unwrap() };
    let (first, second) = (node(&machines[0]), node(&machines[1]));
    let config = format!("[store]\nurl = \"{url}\"\n[aws]\nregions = [\"{REGION}\"]\n");
    let environment = moto.environment();
    let environment: Vec<_> = environment.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    let sweeper = Sweeper::prepare(&folder.path().join("sweeper"), &config, &environment);
    // It makes the tables.
    assert_eq!(sweeper.sweep().await.0, 0);
    let store = Store::connect(&url).await.unwrap();
    heard(&store, &first, 1, ago(90)).await;
    heard(&store, &second, 1, ago(90)).await;

    let (_, report) = sweeper.sweep().await;
    let found = silent(&report);
    let [(resource, finding)] = found.as_slice() else { panic!("{report:#}") };
    assert_eq!((*resource, &finding["cost_micro_usd_per_hour"]), (first.to_string().as_str(), &json!(96_000)));
    let since: Timestamp = finding["since"].as_str().unwrap().parse().unwrap();
    assert!(since.duration_since(ago(90)).abs() < SignedDuration::from_secs(1), "{since}");
    assert!(finding["why"].as_str().unwrap().starts_with("its agent has not been heard since"), "{finding:#}");
    let id = finding["id"].as_str().unwrap().to_owned();
    let table = String::from_utf8(sweeper.run(&["sweep"]).await.stdout).unwrap();
    for part in ["Silent: they run, and their agent is heard no more", "SILENT FOR", "No idle machines found."] {
        assert!(table.contains(part), "`{part}` is not in:\n{table}");
    }
    let text = String::from_utf8(sweeper.run(&["explain", &id]).await.stdout).unwrap();
    for part in ["silent runs, and its agent has been silent for 1 h 30 min", "start the agent again"] {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }

    heard(&store, &first, 2, Timestamp::now()).await;
    let (_, report) = sweeper.sweep().await;
    assert_eq!(silent(&report), []);
    let closed = sweeper.json(&["findings", "--closed"]).await;
    let because = closed[0]["status"]["because"].as_str().unwrap();
    assert!(because.starts_with("its agent was heard at"), "{because}");
    let (decisions, plans) = sweeper.replays().await;
    assert!(decisions >= 2 && plans == 0, "{decisions}");
}
