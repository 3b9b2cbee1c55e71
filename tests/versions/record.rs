//! Keeps a database of this version for the upgrades of later ones: `make keep-version NAME=0.1.0`.
//!
//! `record-version FOLDER`: a sweeper over a third-party EC2 server finds an idle machine, somebody approves its stop, it is stopped and started again, and Slack is told of it all; then FOLDER gets
//! the SQLite database (`sweeper.db.zst`), and what this version's commands say about it (`answers.json`). The scenario `versions` holds every later version to that.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[expect(dead_code, reason = "scenarios need more of it")]
#[path = "../scenarios/actions/site.rs"]
mod site;

use sea_orm::ConnectionTrait as _;
use serde_json::{Value, json};
use site::{ANYBODY, SWITCHED_ON, Site, TIMEOUT};
use std::{fs, path::PathBuf};

/// What is asked, with answers that do not hang on when they are asked for.
const COMMANDS: [&str; 7] = ["audit", "actions", "replay", "messages", "approvers", "exemptions", "nodes"];

#[tokio::main]
async fn main() {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [folder] = arguments.as_slice() else { panic!("usage: record-version FOLDER") };
    fs::create_dir(folder).expect("a folder that is not there yet");
    let data = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}?mode=rwc", data.path().join("sweeper.db").display());
    let mut site = Site::start_with(&url, ANYBODY, SWITCHED_ON).await;
    let (plan, ada) = (site.plan().await, site.enrol("ada").await);
    site.approve(&plan, &ada).await;
    assert_eq!(site.ended(&plan).await["state"], "done");
    site.sweeper.sweep().await;
    let undone = site.run(&["undo", &plan, "--token-file", ada.to_str().unwrap(), "--wait"]).await;
    assert_eq!(undone.code, 0, "{undone:?}");
    lab::wait::until("the last message", TIMEOUT, || async {
        (site.store.outbox_counts().await.unwrap().pending == 0).then_some(())
    })
    .await;
    lab::rollups::make_all(&site.store).await;
    site.sweeper.stop().await;

    let mut answers = serde_json::Map::new();
    for command in COMMANDS {
        let words: Vec<&str> = command.split(' ').collect();
        answers.insert(command.to_owned(), site.sweeper.json(&words).await);
    }
    answers.insert("kept".to_owned(), json!({ "schema": last_step(&site).await }));
    let copy = data.path().join("copy.db");
    site.change(&format!("VACUUM INTO '{}'", copy.display())).await;
    let packed = zstd::encode_all(fs::File::open(&copy).unwrap(), 19).unwrap();
    fs::write(folder.join("sweeper.db.zst"), packed).unwrap();
    let text = serde_json::to_string_pretty(&Value::Object(answers)).unwrap();
    fs::write(folder.join("answers.json"), text + "\n").unwrap();
}

async fn last_step(site: &Site) -> String {
    let connection = site.store.connection();
    let last = "SELECT MAX(version) AS step FROM seaql_migrations";
    let last = sea_orm::Statement::from_string(connection.get_database_backend(), last);
    connection.query_one_raw(last).await.unwrap().unwrap().try_get("", "step").unwrap()
}
