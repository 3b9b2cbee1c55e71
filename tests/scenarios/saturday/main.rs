//! The Saturday tap: a real machine under the real agent goes idle, its owner is asked in Slack and says yes there, the machine is asked once more, stopped by EC2's
//! API, and off; the message says so, the savings show it, and *undo* switches it on again. And where it has begun to work in between, it is left alone. By requests of Slack's and over
//! Socket Mode, by one person and by two.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod machine;
mod site;

use lab::{
    postgres::Postgres,
    slack::{Hears, has_buttons},
};
use serde_json::{Value, json};
use site::{ADA, GRACE, Site};

// Each over one of the databases: `actions` has every step of it over both.

#[tokio::test]
async fn an_owner_stops_a_forgotten_machine_by_a_tap_and_starts_it_again() {
    let server = Postgres::shared().await;
    let url = server.database().await;
    let site = Site::start(&url, 2, Hears::Sockets).await;
    let asked = site.asked("").await;
    let plan = site.plan().await;
    assert!(site.machine.is_on() && site.machine.boots() == 1);
    // Two people must say so.
    site.press(&asked, ADA).await;
    assert!(site.whispered(1).await.contains("More people must"), "{:#?}", site.slack.whispers());
    assert!(site.called("StopInstances").await.is_empty());
    site.press(&asked, GRACE).await;
    assert!(site.whispered(2).await.starts_with("You said yes."), "{:#?}", site.slack.whispers());

    let ended = site.ended(&plan).await;
    let expected = (&json!("done"), &json!(["ada", "grace"]));
    assert_eq!((&ended["state"], &ended["asked_by"]), expected, "{ended:#}\n{}", site.cpu_times().await);
    site.until("the machine to be off", || async { (!site.machine.is_on()).then_some(()) }).await;
    assert_eq!((site.state().await.as_str(), site.called("StopInstances").await.len()), ("stopped", 1));
    let told = site.hears("align-7 was stopped, as ada and grace approved").await;
    assert_eq!(told["thread_ts"], asked["thread_ts"], "where people heard of it: {told:#}");
    let record = site.updated(&asked, "grace said yes").await;
    assert!(!has_buttons(&record), "nobody is asked any more: {record:#}");
    site.sweeper.sweep().await;
    let savings = site.sweeper.json(&["savings"]).await;
    let one = &savings["actions"][0];
    assert_eq!([&one["plan"], &one["ending"]], [&json!(plan), &json!("lasts")], "{savings:#}");

    let before = site.heartbeats().await;
    let undone = site.run(&["undo", &plan, "--token-file", site.token("ada").to_str().unwrap(), "--wait"]).await;
    assert!(undone.contains("done: the machine is running"), "{undone}");
    site.hears("align-7 was started again, as ada wanted").await;
    site.until("the machine to be on", || async { (site.machine.is_on() && site.machine.boots() == 2).then_some(()) })
        .await;
    site.until("its agent to report again", || async { (site.heartbeats().await > before + 1).then_some(()) }).await;
    let node = site.node().await;
    assert_eq!((&node["attested"], &node["disputed_since"]), (&json!(true), &Value::Null), "{node:#}");
    let savings = site.sweeper.json(&["savings"]).await;
    assert_eq!(savings["actions"][0]["ending"], "undone", "{savings:#}");
    site.audit_holds().await;
}

#[tokio::test]
async fn work_that_began_after_the_alert_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}?mode=rwc", folder.path().join("sweeper.db").display());
    let site = Site::start(&url, 1, Hears::Requests).await;
    let asked = site.asked("").await;
    let plan = site.plan().await;
    site.machine.works();
    site.press(&asked, ADA).await;
    assert!(
        site.whispered(1).await.starts_with("You said yes. It is looked at once more"),
        "{:#?}",
        site.slack.whispers()
    );
    let ended = site.ended(&plan).await;
    assert_eq!(ended["state"], "voided", "{ended:#}");
    let told = site.hears("align-7 was not stopped, though ada approved it").await;
    assert_eq!(told["thread_ts"], asked["thread_ts"], "where people heard of it: {told:#}");
    let text = told.to_string();
    assert!(text.contains("Nothing has been changed") && text.contains("CPU"), "{text}");
    assert!(site.called("StopInstances").await.is_empty() && site.machine.is_on());

    // It ends, and the machine is forgotten again: it is another finding, with another plan, which one of them is enough for.
    site.swept_until("the finding to be over", async || {
        (site.sweeper.json(&["findings"]).await == json!([])).then_some(())
    })
    .await;
    site.machine.rests();
    let again = site.asked(asked["ts"].as_str().unwrap()).await;
    let next = site.plan().await;
    assert_ne!(next, plan);
    site.press(&again, ADA).await;
    let ended = site.ended(&next).await;
    assert_eq!(ended["state"], "done", "{ended:#}\n{}", site.cpu_times().await);
    site.until("the machine to be off", || async { (!site.machine.is_on()).then_some(()) }).await;
    assert_eq!((site.called("StopInstances").await.len(), site.machine.boots()), (1, 1));
    site.audit_holds().await;
}
