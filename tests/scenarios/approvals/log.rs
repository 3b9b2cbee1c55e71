//! The audit log: nothing in it can be changed, removed or moved unseen.

use super::{ANYBODY, Site};
use serde_json::{Value, json};

lab::on_both_databases! {
    what_is_changed_in_the_log_is_found_and_named,
}

async fn what_is_changed_in_the_log_is_found_and_named(url: String) {
    let site = Site::start(&url, ANYBODY).await;
    let (hash, ada) = (site.hash().await, site.enrol("ada").await);
    site.answer("approve", &hash, &ada).await;
    site.enrol("grace").await;
    let log = site.sweeper.json(&["audit"]).await;
    let told: Vec<_> = log
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| [&entry["who"], &entry["way"], &entry["did"], &entry["on"]])
        .collect();
    assert_eq!(told.len(), 5, "{log:#}");
    assert_eq!(told[2].map(|one| one.as_str().unwrap()), ["ada", "shell", "approved", &hash]);
    assert_eq!([told[0][1], told[0][2], told[0][3]], ["command", "enrolled", "ada"]);
    let listed = site.run(&["audit", "--from", "3"]).await.said;
    assert!(listed.starts_with("3  ") && listed.contains(&format!("ada by shell: approved {hash}")), "{listed}");

    let whole = site.sweeper.json(&["audit", "verify"]).await;
    assert_eq!([&whole["whole"], &whole["entries"]], [&json!(true), &json!(5)]);
    let head = whole["head"].as_str().unwrap().to_owned();
    let broken = async |statement: &str, back: &str, told: Option<&str>, words: &str| {
        site.change(statement).await;
        let verify = ["audit", "verify", "--output", "json"]
            .into_iter()
            .chain(told.into_iter().flat_map(|head| ["--head", head]));
        let ended = site.run(&verify.collect::<Vec<_>>()).await;
        let answer: Value = serde_json::from_str(&ended.said).unwrap();
        let why = answer["why"].as_str().unwrap_or_default();
        assert!(ended.code == 1 && answer["whole"] == false && why.contains(words), "{statement}: {ended:?}");
        site.change(back).await;
        let mended = site.sweeper.json(&["audit", "verify"]).await;
        assert_eq!(mended, whole, "after {back}");
    };
    let replace =
        |from: &str, to: &str| format!("UPDATE audit SET entry = REPLACE(entry, '{from}', '{to}') WHERE sequence = 3");
    broken(&replace("\"ada\"", "\"eve\""), &replace("\"eve\"", "\"ada\""), None, "entry 3 has been changed").await;
    let aside = "CREATE TABLE aside AS SELECT * FROM audit WHERE sequence = 2; DELETE FROM audit WHERE sequence = 2";
    let back = "INSERT INTO audit SELECT * FROM aside; DROP TABLE aside";
    broken(aside, back, None, "entry 2 is not where it was: entry 3 follows").await;
    let swap = "UPDATE audit SET sequence = 99 WHERE sequence = 1; UPDATE audit SET sequence = 1 WHERE sequence = 2; \
                UPDATE audit SET sequence = 2 WHERE sequence = 99";
    broken(swap, swap, None, "entry 1 has been changed: it was written at another place").await;
    // Who cuts the tail, and makes the log's own end fit, is found by a hash that was written down elsewhere.
    let cut = "CREATE TABLE aside AS SELECT * FROM audit WHERE sequence > 3; DELETE FROM audit WHERE sequence > 3";
    broken(cut, back, None, "entries have been cut off at the end").await;
    let fit = format!("{cut}; UPDATE audit_head SET sequence = 3, hash = (SELECT hash FROM audit WHERE sequence = 3)");
    let unfit = format!("{back}; UPDATE audit_head SET sequence = 5, hash = '{head}'");
    broken(&fit, &unfit, Some(&head), &format!("no entry has the hash {head}")).await;
}
