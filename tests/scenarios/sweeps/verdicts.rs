//! Every node is judged anew through the heartbeats that are kept, and what another configuration says otherwise is shown before it is used.

use lab::{sample, sweeper::Sweeper};
use serde_json::Value;
use std::{fs, path::Path};
use sweeper::store::Store;

lab::on_both_databases! {
    another_configuration_shows_which_machines_it_would_call_idle_before_it_is_used,
}

/// Half-minutes of heartbeats: two hours.
const BEATS: u64 = 240;

fn prepared(folder: &Path, url: &str, idle_after: &str) -> Sweeper {
    let config =
        format!("[store]\nurl = \"{url}\"\n[aws]\nenabled = \"no\"\n[verdict]\nidle_after = \"{idle_after}\"\n");
    Sweeper::prepare(&folder.join(idle_after), &config, &[])
}

fn of<'a>(verdicts: &'a Value, node: &str) -> Vec<&'a str> {
    let moments = verdicts["nodes"][node].as_object().unwrap();
    moments.values().map(|one| one["verdict"].as_str().unwrap()).collect()
}

async fn another_configuration_shows_which_machines_it_would_call_idle_before_it_is_used(url: String) {
    let folder = tempfile::tempdir().unwrap();
    let usual = prepared(folder.path(), &url, "30m");
    usual.sweep().await;
    let store = Store::connect(&url).await.unwrap();
    let [quiet, busy] = [7, 8].map(sample::node);
    sample::report(&store, &quiet, sample::boot(1), 1..=BEATS, sample::quiet).await;
    let works = |number, end| sample::used(number, end, number * 9_000_000_000);
    sample::report(&store, &busy, sample::boot(2), 1..=BEATS, works).await;

    let verdicts = usual.json(&["replay", "--verdicts"]).await;
    let of_quiet = of(&verdicts, &quiet.to_string());
    // Two hours have seven or eight quarters in them, and the first heartbeat of all shows nothing.
    assert!((7..=9).contains(&of_quiet.len()), "{verdicts:#}");
    let first_idle = of_quiet.iter().position(|verdict| *verdict == "idle").unwrap();
    assert!((2..=3).contains(&first_idle), "{of_quiet:?}");
    assert!(of_quiet[..first_idle].iter().all(|verdict| *verdict == "unknown"), "{of_quiet:?}");
    assert!(of_quiet[first_idle..].iter().all(|verdict| *verdict == "idle"), "{of_quiet:?}");
    assert!(of(&verdicts, &busy.to_string())[1..].iter().all(|verdict| *verdict == "active"), "{verdicts:#}");
    let file = folder.path().join("verdicts.json");
    fs::write(&file, serde_json::to_vec(&verdicts).unwrap()).unwrap();
    let against = ["replay", "--verdicts", "--against", file.to_str().unwrap()];

    let same = usual.run(&against).await;
    let text = String::from_utf8(same.stdout).unwrap();
    assert!(same.status.success() && text.contains(" compared: each is the same."), "{text}");

    let eager = prepared(folder.path(), &url, "15m");
    let differs = eager.run(&against).await;
    let text = String::from_utf8(differs.stdout).unwrap();
    assert_eq!(differs.status.code(), Some(1), "{text}");
    for part in [
        format!("{quiet}, "),
        "  before: unknown, ".into(),
        "  now:    idle, ".into(),
        "are idle now and were not".into(),
    ] {
        assert!(text.contains(&part), "`{part}` is not in:\n{text}");
    }
    assert!(!text.contains(&busy.to_string()), "it is judged alike:\n{text}");

    fs::write(&file, "{\"decisions\": []}").unwrap();
    let wrong = usual.run(&against).await;
    let errors = String::from_utf8(wrong.stderr).unwrap();
    assert_eq!(wrong.status.code(), Some(1), "{errors}");
    assert!(errors.contains("is not what `sweeper replay --verdicts --output json` writes"), "{errors}");
}
