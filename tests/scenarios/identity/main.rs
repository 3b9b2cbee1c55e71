//! Who speaks for a node: real agents and a real sweeper, a thief with a join secret, machines that were away or made anew.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod clouds;
mod tls;

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use heartbeat::{
    api::{CHALLENGE_PATH, JOIN_PATH, Problem, SIGNATURE_HEADER},
    attestation::signed_text,
};
use jiff::Timestamp;
use lab::{
    agent::Agent,
    aws::{self, Moto},
    ec2_signature::Signer,
    gce::Gce,
    imds::{Identity, Imds, Session},
    process::Running,
    quiet,
    sweeper::Sweeper,
    wait,
};
use serde_json::{Value, json};
use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Command, Output},
    sync::Arc,
    time::Duration,
};
use sweeper::store::{Store, TokenHash};

const TIMEOUT: Duration = Duration::from_secs(90);
const SITE: &str = "[aws]\nenabled = \"no\"\n[pricing]\nsource = \"none\"\n[sweep]\nschedule = \"0 0 0 1 1 *\"\n";

async fn open(sweeper: &Sweeper) -> Store {
    Store::connect(&format!("sqlite://{}/data/sweeper.db?mode=rw", sweeper.folder().display())).await.unwrap()
}

fn start(folder: &Path, sweeper: &Sweeper, secret: &str) -> Agent {
    let config = format!("sweeper_url = \"{}\"\n{secret}\nidentity = \"host\"\ninterval = \"300ms\"\n", sweeper.url());
    Agent::start(folder, &config, &[])
}

async fn stored(store: &Store) -> usize {
    let Some(node) = store.nodes().await.unwrap().pop() else { return 0 };
    store.heartbeats(&node.node_id, Timestamp::UNIX_EPOCH, Timestamp::MAX).await.unwrap().len()
}

async fn until_more_are_stored(what: &str, store: &Store) {
    let before = stored(store).await;
    wait::until(what, TIMEOUT, || async { (stored(store).await >= before + 2).then_some(()) }).await;
}

async fn the_node(sweeper: &Sweeper) -> Value {
    let nodes = sweeper.json(&["nodes"]).await;
    assert_eq!(nodes.as_array().unwrap().len(), 1, "{nodes}");
    nodes[0].clone()
}

/// Why the sweeper has no verdict on its one node.
/// What the last entry of the audit log says was done.
async fn last_deed(sweeper: &Sweeper) -> Value {
    sweeper.json(&["audit"]).await.as_array().unwrap().last().unwrap()["did"].clone()
}

async fn why_unknown(sweeper: &Sweeper) -> String {
    let (_, report) = sweeper.sweep().await;
    report["unknown"].to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stolen_fleet_token_takes_over_no_node_and_is_told() {
    let scratch = tempfile::tempdir().unwrap();
    let sweeper = Sweeper::start(&scratch.path().join("sweeper"), SITE, &[]).await;
    let store = open(&sweeper).await;
    let made = sweeper.json(&["nodes", "token", "--expires", "10m"]).await;
    let token = made["join_token"].as_str().unwrap();
    assert!(
        !fs::read(sweeper.folder().join("data/sweeper.db"))
            .unwrap()
            .windows(token.len())
            .any(|part| part == token.as_bytes())
    );
    let mut agent = start(&scratch.path().join("agent"), &sweeper, &format!("join_token = \"{token}\""));
    until_more_are_stored("heartbeats of the first agent", &store).await;
    let node = the_node(&sweeper).await;
    assert_eq!((&node["attestation"], &node["attested"]), (&"join_token".into(), &true.into()), "{node}");
    assert!(node["key"].is_string() && node["disputed_since"].is_null(), "{node}");

    // The same machine id, the fleet token, and a key of its own: what a thief has who read the host's files but the agent's.
    let mut thief =
        start(&scratch.path().join("thief"), &sweeper, &format!("join_token = \"{}\"", sweeper.join_token()));
    wait::until("the thief to be refused", TIMEOUT, || async { thief.log().contains("key_mismatch").then_some(()) })
        .await;
    let disputed = the_node(&sweeper).await;
    assert!(disputed["disputed_since"].is_string() && disputed["key"] == node["key"], "{disputed}");
    assert!(sweeper.metrics().await.lines().any(|line| line == "nodes_disputed 1"));
    assert!(sweeper.log().contains("node disputed"), "{}", sweeper.log());
    until_more_are_stored("heartbeats of the node's own agent, still", &store).await;
    let why = why_unknown(&sweeper).await;
    assert!(why.contains("it is disputed since"), "{why}");
    let table = sweeper.run(&["nodes"]).await;
    let table = String::from_utf8(table.stdout).unwrap();
    assert!(table.contains("disputed since") && table.contains("with another key ("), "{table}");
    thief.stop().await;

    let id = node["node"].as_str().unwrap();
    let settled = sweeper.run(&["nodes", "settle", id]).await;
    assert!(settled.status.success(), "{settled:?}");
    assert_eq!(last_deed(&sweeper).await, "node_settled");
    assert!(the_node(&sweeper).await["disputed_since"].is_null());
    let why = why_unknown(&sweeper).await;
    assert!(!why.contains("disputed"), "{why}");
    until_more_are_stored("heartbeats after the dispute", &store).await;
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_works_says_what_decides_it() {
    let scratch = tempfile::tempdir().unwrap();
    let sweeper = Sweeper::start(&scratch.path().join("sweeper"), SITE, &[]).await;
    let mut burner = Running::start("burner", Command::new("sh").args(["-c", "while :; do :; done"]), scratch.path());
    let mut agent =
        start(&scratch.path().join("agent"), &sweeper, &format!("join_token = \"{}\"", sweeper.join_token()));
    let host = rustix::system::uname();
    let host = host.nodename().to_string_lossy().into_owned();
    let node = wait::until("a verdict on this very host", TIMEOUT, || async {
        if the_nodes(&sweeper).await == 0 {
            return None;
        }
        let node = sweeper.json(&["nodes", &host]).await;
        (node["verdict"] == "active").then_some(node)
    })
    .await;
    assert_eq!(node["deciding_row"]["signal"], "workload_cpu", "{node:#}");
    assert!(node["why"].as_str().unwrap().starts_with("CPU time of workloads above its threshold"), "{node:#}");
    assert!(node["since"].is_string() && node["not_measured"].is_array() && node["case"].is_null(), "{node:#}");
    let table = String::from_utf8(sweeper.run(&["nodes", &host]).await.stdout).unwrap();
    for part in ["is active", "heard ", "not attested (fleet_token), key ", "Why active", "Workloads that live there"] {
        assert!(table.contains(part), "`{part}` is not in:\n{table}");
    }
    assert!(burner.ended().is_none());
    agent.stop().await;
}

async fn the_nodes(sweeper: &Sweeper) -> usize {
    sweeper.json(&["nodes"]).await.as_array().unwrap().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_was_away_comes_back_by_its_key_and_a_revoked_one_by_a_join_secret() {
    let scratch = tempfile::tempdir().unwrap();
    let site = format!("{SITE}[identity]\nnode_token_lifetime = \"10s\"\n");
    let sweeper = Sweeper::start(&scratch.path().join("sweeper"), &site, &[]).await;
    let store = open(&sweeper).await;
    let secret = scratch.path().join("join-token");
    fs::write(&secret, sweeper.join_token()).unwrap();
    let folder = scratch.path().join("agent");
    let mut agent = start(&folder, &sweeper, &format!("join_token_file = \"{}\"", secret.display()));
    until_more_are_stored("heartbeats of the first token", &store).await;
    fs::remove_file(&secret).unwrap();

    // Its token is renewed before it expires, by the key alone.
    wait::until("a renewal", TIMEOUT, || async { (sweeper.log().matches("node joined").count() >= 2).then_some(()) })
        .await;
    until_more_are_stored("heartbeats of the second token", &store).await;
    assert!(!sweeper.log().contains("request refused"), "{}", sweeper.log());
    assert_eq!(the_node(&sweeper).await["attestation"], "fleet_token");

    // It is away until its token has expired.
    agent.stop().await;
    let kept: Value = serde_json::from_slice(&fs::read(folder.join("state/node-token")).unwrap()).unwrap();
    let kept = TokenHash::of(kept["node_token"].as_str().unwrap());
    assert!(store.node_by_token(&kept).await.unwrap().is_some());
    wait::until("the token's end", TIMEOUT, || async {
        store.node_by_token(&kept).await.unwrap().is_none().then_some(())
    })
    .await;
    agent.start_again();
    until_more_are_stored("heartbeats after the absence", &store).await;
    assert!(!sweeper.log().contains("request refused"), "it did not even try the expired token: {}", sweeper.log());

    // Revoked, it is let in by a join secret alone, and not before.
    let node = the_node(&sweeper).await;
    let id = node["node"].as_str().unwrap();
    let revoked = sweeper.run(&["nodes", "revoke", id]).await;
    assert!(revoked.status.success(), "{revoked:?}");
    assert_eq!(last_deed(&sweeper).await, "node_revoked");
    wait::until("the agent to be refused", TIMEOUT, || async {
        sweeper.log().contains("join_secret_required").then_some(())
    })
    .await;
    let free = the_node(&sweeper).await;
    assert!(free["revoked_at"].is_string() && free["key"].is_null() && free["attestation"] == "none", "{free}");
    let made = sweeper.json(&["nodes", "token", "--node", id]).await;
    fs::write(&secret, made["join_token"].as_str().unwrap()).unwrap();
    until_more_are_stored("heartbeats after the revocation", &store).await;
    let again = the_node(&sweeper).await;
    assert!(again["key"] == node["key"] && again["attestation"] == "join_token", "{again}");
    agent.stop().await;
    let nobody = sweeper.run(&["nodes", "revoke", "host:00000000000000000000000000000000"]).await;
    assert_eq!(nobody.status.code(), Some(1), "{nobody:?}");
}

#[tokio::test]
async fn a_finding_says_how_its_node_is_attested() {
    let scratch = tempfile::tempdir().unwrap();
    let sweeper = Sweeper::start(scratch.path(), SITE, &[]).await;
    quiet::report(&sweeper, "quiet-1").await;
    let (_, report) = sweeper.sweep().await;
    let id = report["findings"][0]["id"].as_str().unwrap_or_else(|| panic!("{report}"));
    let explained = sweeper.run(&["explain", id]).await;
    let text = String::from_utf8(explained.stdout).unwrap();
    assert!(text.contains("not attested (it joined by the fleet token)"), "{text}");
    assert_eq!(
        sweeper.json(&["explain", id]).await["finding"]["evidence"]["case"]["node"]["identity"],
        serde_json::json!({ "attestation": "fleet_token" })
    );
}
