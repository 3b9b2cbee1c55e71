//! What somebody says is to be left alone in the shell.

use super::{ANYBODY, REGION, Site, refused};
use lab::aws::ACCOUNT;
use serde_json::json;
use std::path::Path;

lab::on_both_databases! {
    what_is_to_be_left_alone_is_said_by_a_person_of_one_thing,
}

impl Site {
    /// Somebody says something with their token.
    async fn says(&self, arguments: &[&str], token: &Path) -> super::Ended {
        self.run(&[arguments, &["--token-file", token.to_str().unwrap()]].concat()).await
    }
}

async fn what_is_to_be_left_alone_is_said_by_a_person_of_one_thing(url: String) {
    let site = Site::start(&url, ANYBODY).await;
    let ada = site.enrol("ada").await;
    let plan = site.plan().await;
    let (finding, hash) = (plan["finding"].as_str().unwrap(), plan["plan"].as_str().unwrap());
    refused(&site.run(&["exempt", finding, "--because", "a pet"]).await, "who are you?");
    let length = ["snooze", finding, "--for"];
    for (length, words) in [("400d", "more than a year from now"), ("0s", "name a time that is to come")] {
        refused(&site.says(&["snooze", finding, "--for", length], &ada).await, words);
    }
    refused(&site.says(&["snooze", finding, "--until", "2026-01-01"], &ada).await, "2026-01-01T00:00:00Z is over");
    refused(&site.says(&["snooze", "f-000000000000", "--for", "1h"], &ada).await, "f-000000000000");
    refused(&site.says(&["snooze", "aws:nothing", "--for", "1h"], &ada).await, "is not the key of a resource");
    for misused in
        [&length[..2], &["exempt", finding][..], &["snooze", finding, "--for", "1h", "--until", "2027-01-01"][..]]
    {
        assert_eq!(site.says(misused, &ada).await.code, 2, "{misused:?}");
    }
    assert_eq!(site.hash().await, hash, "nothing of that was said");

    // By the plan, by the finding and by the resource.
    let key = format!("aws:{ACCOUNT}:{REGION}:{}", site.machine);
    for (what, class) in [(&hash[..12], json!("idle_node")), (finding, json!("idle_node")), (&key, json!(null))] {
        let said = site.says(&["exempt", what, "--because", "a pet"], &ada).await;
        assert!(
            said.code == 0 && said.said.starts_with(&format!("{key} is left alone until somebody lifts it")),
            "{said:?}"
        );
        refused(&site.says(&["exempt", what, "--because", "a pet"], &ada).await, "you have said so already (x-");
        assert_eq!(site.sweeper.json(&["plans"]).await, json!([]));
        let all = site.sweeper.json(&["exemptions"]).await;
        assert_eq!([&all[0]["class"], &all[0]["resource"]], [&class, &json!(key)], "{all:#}");
        let id = all[0]["id"].as_str().unwrap();
        let listed = site.run(&["exemptions"]).await.said;
        assert!(listed.contains(id) && listed.contains("for good") && listed.contains("a pet"), "{listed}");
        assert_eq!(site.says(&["exemptions", "lift", id], &ada).await.code, 0);
        assert_eq!(site.run(&["exemptions"]).await.said, "Nothing is left alone.\n");
        site.sweeper.sweep().await;
        assert_ne!(site.hash().await, hash, "another plan");
    }
    // Who mistypes a key hears of it.
    let said = site.says(&["exempt", &format!("{key}0"), "--because", "a pet"], &ada).await;
    assert!(said.code == 0 && said.error.contains(&format!("no sweep has ever seen {key}0")), "{said:?}");
    // Of a snooze and an exemption the one that holds longest is told.
    let hash = site.hash().await;
    assert_eq!(site.says(&["exempt", &hash, "--because", "a pet"], &ada).await.code, 0);
    let grace = site.enrol("grace").await;
    assert_eq!(site.says(&["snooze", finding, "--for", "1h"], &grace).await.code, 0);
    site.sweeper.sweep().await;
    let why = site.sweeper.json(&["findings"]).await[0]["no_plan_because"].clone();
    assert!(why.as_str().unwrap().starts_with("ada said never"), "{why}");
    // It comes too late for what has been called.
    site.change(&format!(
        "INSERT INTO actions (plan_hash, direction, attempt, finding_id, resource, account, class, asked_by, state, epoch, holder, \
         held_until_unix_ms, claimed_unix_ms, changed_unix_ms) VALUES \
         ('{hash}', 'do', 1, 'f-1', '{key}', '{ACCOUNT}', 'reversible', 'ada', 'awaiting', 1, '', 0, 0, 0)"
    ))
    .await;
    let said = site.says(&["snooze", &key, "--for", "1m"], &grace).await;
    assert!(said.code == 0 && said.said.contains(&format!("`sweeper undo {}` undoes it", &hash[..12])), "{said:?}");
    assert_eq!(site.run(&["replay"]).await.code, 0, "what was decided of the finding is decided alike");
    assert_eq!(site.run(&["audit", "verify"]).await.code, 0);
}
