//! What tells that the database is not the one of before, and what stops until a person has looked.

use crate::site::{ANYBODY, SWITCHED_ON, Site, TIMEOUT};
use lab::wait;
use serde_json::Value;
use std::fs;

lab::on_both_databases! {
    what_was_seen_of_the_log_and_is_damaged_counts_as_a_restored_backup,
    what_was_seen_of_the_log_and_cannot_be_read_stops_everything,
    a_pause_in_which_nobody_served_is_written_down,
    who_is_which_machine_is_in_the_log,
}

async fn what_was_seen_of_the_log_and_is_damaged_counts_as_a_restored_backup(url: String) {
    let two = format!("{ANYBODY}needs = 2\n");
    let mut site = Site::start_with(&url, &two, SWITCHED_ON).await;
    let (plan, ada) = (site.plan().await, site.enrol("ada").await);
    site.approve(&plan, &ada).await;
    site.is_seen().await;
    site.sweeper.stop().await;
    // As a machine leaves it whose power failed.
    fs::write(site.seen(), "").unwrap();
    site.sweeper.start_again().await;
    let switch = wait::until("the kill switch", TIMEOUT, || async {
        let switch = site.sweeper.json(&["kill-switch"]).await;
        (switch["is_on"] == true).then_some(switch)
    })
    .await;
    assert!(switch["because"].as_str().unwrap().contains("does not say what was seen"), "{switch:#}");
    assert_eq!(site.run(&["kill-switch", "off"]).await.code, 0);
    fs::write(site.folder.path().join("policy.toml"), ANYBODY).unwrap();
    let ended = site.ended(&plan).await;
    assert!(ended["state"] == "voided" && ended["outcome"].to_string().contains("approve it again"), "{ended:#}");
    assert_eq!((site.called("StopInstances").await.len(), site.state().await.as_str()), (0, "running"));
    // Once is enough.
    site.sweeper.stop().await;
    site.sweeper.start_again().await;
    site.searched_twice().await;
    assert_eq!(site.sweeper.json(&["kill-switch"]).await["is_on"], false);
}

async fn what_was_seen_of_the_log_and_cannot_be_read_stops_everything(url: String) {
    let mut site = Site::start(&url).await;
    let (plan, ada) = (site.plan().await, site.enrol("ada").await);
    site.is_seen().await;
    site.sweeper.stop().await;
    fs::remove_file(site.seen()).unwrap();
    fs::create_dir(site.seen()).unwrap();
    site.sweeper.start_again().await;
    wait::until("a word of it", TIMEOUT, || async {
        site.sweeper.log().contains("what was seen of the audit log cannot be read").then_some(())
    })
    .await;
    site.approve(&plan, &ada).await;
    site.sweeper.stop().await;
    assert_eq!(site.sweeper.json(&["actions"]).await, Value::Array(Vec::new()));
    assert_eq!(site.sweeper.json(&["kill-switch"]).await["is_on"], false, "nobody has set it");
    fs::remove_dir(site.seen()).unwrap();
    site.sweeper.start_again().await;
    assert_eq!(site.ended(&plan).await["state"], "done");
}

async fn a_pause_in_which_nobody_served_is_written_down(url: String) {
    let two = format!("{ANYBODY}needs = 2\n");
    let mut site = Site::start_with(&url, &two, SWITCHED_ON).await;
    let (plan, ada) = (site.plan().await, site.enrol("ada").await);
    site.approve(&plan, &ada).await;
    site.is_seen().await;
    assert!(site.paused().await.is_empty(), "before the first start there is nothing to void");
    site.sweeper.stop().await;
    site.change("UPDATE continuity SET seen_unix_ms = seen_unix_ms - 660000").await;
    site.sweeper.start_again().await;
    let paused = wait::until("an entry", TIMEOUT, || async { site.paused().await.first().cloned() }).await;
    let seconds: u64 = paused["detail"]["seconds"].as_str().unwrap().parse().unwrap();
    assert!((660..720).contains(&seconds), "{paused:#}");
    fs::write(site.folder.path().join("policy.toml"), ANYBODY).unwrap();
    let ended = site.ended(&plan).await;
    let told = ended["outcome"].as_str().unwrap();
    assert!(ended["state"] == "voided" && told.contains("no sweeper served for ten minutes"), "{ended:#}");
    assert_eq!(site.paused().await.len(), 1, "once");
    assert_eq!(site.run(&["audit", "verify"]).await.code, 0);
}

async fn who_is_which_machine_is_in_the_log(url: String) {
    let site = Site::start(&url).await;
    let node = site.node();
    let token = site.run(&["nodes", "token", "--node", &node]).await;
    assert_eq!(token.code, 0, "{token:?}");
    site.change("UPDATE nodes SET disputed_unix_ms = 1, disputed_because = 'a test'").await;
    assert_eq!(site.run(&["nodes", "settle", &node]).await.code, 0);
    assert_eq!(site.run(&["nodes", "settle", &node]).await.code, 1, "it is settled");
    assert_eq!(site.run(&["nodes", "revoke", &node]).await.code, 0);
    let log = site.sweeper.json(&["audit"]).await;
    let told = log.as_array().unwrap().iter().filter(|entry| entry["on"] == node.as_str());
    let did: Vec<&str> = told.map(|entry| entry["did"].as_str().unwrap()).collect();
    assert_eq!(did, ["join_token_made", "node_settled", "node_revoked"], "{log:#}");
    let shown = site.run(&["audit"]).await.said;
    assert!(shown.contains("revoked the node") && !shown.contains(token.said.trim()), "{shown}");
    assert_eq!(site.run(&["audit", "verify"]).await.code, 0);
}

impl Site {
    /// Where the sweeper keeps what it has seen of the audit log.
    fn seen(&self) -> std::path::PathBuf {
        self.sweeper.folder().join("data/audit-head")
    }

    /// Waits until the sweeper has seen all of the log.
    async fn is_seen(&mut self) {
        let last = format!("\"sequence\":{},", self.count("SELECT COUNT(*) AS told FROM audit").await);
        // It looks when it starts, and then each half minute.
        self.sweeper.stop().await;
        self.sweeper.start_again().await;
        wait::until("the log to be seen", TIMEOUT, || async {
            fs::read_to_string(self.seen()).ok().filter(|seen| seen.contains(&last))
        })
        .await;
    }

    async fn paused(&self) -> Vec<Value> {
        let log = self.sweeper.json(&["audit"]).await;
        log.as_array().unwrap().iter().filter(|entry| entry["did"] == "paused").cloned().collect()
    }

    fn node(&self) -> String {
        format!("aws:{}:{}:{}", lab::aws::ACCOUNT, crate::site::REGION, self.machine)
    }
}
