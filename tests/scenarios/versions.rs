//! Databases that sweepers of before have left behind (`tests/data/versions`, kept by `make keep-version`): this version brings each of them up to date, and still says of it what that
//! version said.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use lab::{binaries::checkout, sweeper::Sweeper};
use serde_json::Value;
use std::{fs, path::Path};
use sweeper::store::{Schema, Store};

/// What was said then is said now, at this place of the answer; more may be said besides.
fn holds(then: &Value, now: &Value, place: &str) {
    match (then, now) {
        (Value::Object(then), Value::Object(now)) => {
            for (key, then) in then {
                holds(then, now.get(key).unwrap_or(&Value::Null), &format!("{place}.{key}"));
            }
        }
        (Value::Array(then), Value::Array(now)) if then.len() == now.len() => {
            for (at, (then, now)) in then.iter().zip(now).enumerate() {
                holds(then, now, &format!("{place}[{at}]"));
            }
        }
        _ => assert_eq!(then, now, "{place}"),
    }
}

#[test]
fn more_may_be_said_and_nothing_less_or_else() {
    let then: Value = serde_json::json!([{ "id": "f-1", "since": null }]);
    holds(&then, &serde_json::json!([{ "id": "f-1", "owner": "ada" }]), "");
    for other in [
        serde_json::json!([{ "id": "f-2" }]),
        serde_json::json!([{ "since": null }]),
        serde_json::json!([]),
        serde_json::json!([{ "id": "f-1" }, { "id": "f-2" }]),
    ] {
        let held = std::panic::catch_unwind(|| holds(&then, &other, ""));
        assert!(held.is_err(), "{other}");
    }
}

async fn is_carried_over(kept: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sweeper.db");
    fs::write(&file, zstd::decode_all(fs::File::open(kept.join("sweeper.db.zst")).unwrap()).unwrap()).unwrap();
    let url = format!("sqlite://{}?mode=rw", file.display());
    let answers: Value = serde_json::from_slice(&fs::read(kept.join("answers.json")).unwrap()).unwrap();

    let config = format!("[store]\nurl = \"{url}\"\n[sweep]\nschedule = \"0 0 0 1 1 *\"\n[aws]\nenabled = \"no\"\n");
    // As `serve` does at its start, but without what it does then: what is asked first is what was kept.
    let store = Store::connect(&url).await.unwrap();
    store.migrate().await.unwrap();
    assert_eq!(store.schema().await.unwrap(), Schema::Current);
    let sweeper = Sweeper::prepare(&folder.path().join("sweeper"), &config, &[]);
    let all = answers.as_object().unwrap().iter().filter(|(command, _)| *command != "kept");
    assert!(all.clone().count() > 5, "{answers:#}");
    for (command, then) in all {
        let words: Vec<&str> = command.split(' ').collect();
        holds(then, &sweeper.json(&words).await, command);
    }
    let verified = sweeper.run(&["audit", "verify"]).await;
    assert!(verified.status.success(), "{verified:?}");
    let (decisions, _) = sweeper.replays().await;
    assert!(decisions > 0, "nothing was found there");
    // It can be served from.
    let mut sweeper = Sweeper::start(&folder.path().join("sweeper"), &config, &[]).await;
    let (code, report) = sweeper.sweep().await;
    assert_eq!(code, 0, "{report:#}");
    sweeper.stop().await;
}

#[tokio::test]
async fn what_a_version_of_before_left_behind_is_carried_over() {
    let all = checkout().join("tests/data/versions");
    let mut kept: Vec<_> = fs::read_dir(all).unwrap().map(|entry| entry.unwrap().path()).collect();
    kept.sort();
    assert!(!kept.is_empty(), "no version was kept");
    for kept in kept {
        is_carried_over(&kept).await;
    }
}
