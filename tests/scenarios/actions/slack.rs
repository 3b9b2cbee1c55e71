//! A yes by a button of Slack: as good as one in the shell where Slack vouches for whoever gives it, and nothing at all elsewhere.

use crate::site::{ANYBODY, SWITCHED_ON, Site, TIMEOUT};
use lab::{
    slack::{Hears, Slack, has_buttons},
    wait,
};
use serde_json::{Value, json};

lab::on_both_databases! {
    a_tap_stops_the_machine_and_the_message_is_the_record,
    a_tap_in_a_teams_channel_is_worth_what_it_is_elsewhere_and_all_is_told_there,
    whoever_may_not_hears_so_alone_and_nothing_is_done,
    two_people_must_and_two_ways_are_not_two_people,
    a_no_by_the_button_of_a_version_before_ends_the_plan,
}

pub(crate) const ADA: &str = "U0ADA1";
pub(crate) const GRACE: &str = "U0GRACE1";

impl Site {
    /// The message that asks about the plan.
    pub(crate) async fn asks(&self) -> Value {
        self.hears("\"action_id\":\"approve\"").await
    }

    /// Enrols somebody, with an account of Slack.
    pub(crate) async fn links(&self, name: &str, user: &str) -> std::path::PathBuf {
        let token = self.enrol(name).await;
        let linked = self.run(&["approvers", "link", name, &format!("{}/{user}", Slack::TEAM)]).await;
        assert_eq!(linked.code, 0, "{linked:?}");
        token
    }

    /// Presses a button as `user`; `how` is what is not as usual. Returns the answer's status.
    pub(crate) async fn press(&self, message: &Value, button: &str, user: &str, how: Value) -> u16 {
        let mut press = json!({ "secret": Slack::SECRET, "message": message, "action_id": button, "user": user });
        press.as_object_mut().unwrap().extend(how.as_object().unwrap().clone());
        Slack::press(&format!("{}/v1/slack/interactions", self.sweeper.url()), &press).await
    }

    /// What was said to somebody alone, once it is so much.
    pub(crate) async fn whispered(&self, count: usize) -> Value {
        let all = wait::until(&format!("{count} whispers"), TIMEOUT, || async {
            let all = self.slack.whispers();
            (all.len() >= count).then_some(all)
        })
        .await;
        assert_eq!(all.len(), count, "{all:#?}");
        all[count - 1].clone()
    }

    /// A message as it was last updated, once that shows this text.
    pub(crate) async fn shows(&self, message: &Value, text: &str) -> Value {
        wait::until(&format!("an update that shows: {text}"), TIMEOUT, || async {
            let updates = self.slack.updates();
            let last = updates.into_iter().rev().find(|update| update["ts"] == message["ts"])?;
            last.to_string().contains(text).then_some(last)
        })
        .await
    }
}

async fn a_tap_in_a_teams_channel_is_worth_what_it_is_elsewhere_and_all_is_told_there(url: String) {
    let teams = "[{ name = \"ada\", channel = \"#genomics\", owners = [\"Ada\"] }]";
    let site = Site::start_routed(&url, ANYBODY, SWITCHED_ON, Hears::Requests, &[], teams).await;
    site.links("ada", ADA).await;
    let (plan, asked) = (site.plan().await, site.asks().await);
    // Whoever reads a team's channel has no right by that.
    assert_eq!(site.press(&asked, "approve", GRACE, json!({})).await, 200);
    let told = site.whispered(1).await;
    assert_eq!([&told["user"], &told["channel"]], [&json!(GRACE), &json!("C0LABGENOMICS")]);
    assert!(told["text"].as_str().unwrap().starts_with("That does not count"), "{told:#}");
    assert_eq!(site.press(&asked, "approve", ADA, json!({})).await, 200);
    assert_eq!(site.ended(&plan).await["state"], "done");
    let outcome = site.hears("was stopped, as ada approved").await;
    let shown = site.shows(&asked, "looked at once more and stopped").await;
    for message in [&asked, &outcome, &shown] {
        assert!(["#genomics", "C0LABGENOMICS"].iter().any(|channel| message["channel"] == *channel), "{message:#}");
    }
    let began = asked["thread_ts"].as_str().or(asked["ts"].as_str());
    assert_eq!(outcome["thread_ts"].as_str(), began);
}

async fn a_tap_stops_the_machine_and_the_message_is_the_record(url: String) {
    let site = Site::start(&url).await;
    site.links("ada", ADA).await;
    let (plan, asked) = (site.plan().await, site.asks().await);
    assert_eq!(site.press(&asked, "approve", ADA, json!({})).await, 200);
    let told = site.whispered(1).await;
    assert_eq!([&told["user"], &told["channel"]], [&json!(ADA), &json!("C0LABWASTE")]);
    assert!(told["text"].as_str().unwrap().starts_with("You said yes. It is looked at once more"), "{told:#}");
    let ended = site.ended(&plan).await;
    assert_eq!((&ended["state"], &ended["asked_by"]), (&json!("done"), &json!(["ada"])), "{ended:#}");
    assert_eq!((site.state().await.as_str(), site.called("StopInstances").await.len()), ("stopped", 1));
    let record = site.shows(&asked, "ada said yes").await;
    assert!(!has_buttons(&record), "nobody is asked any more: {record:#}");
    let record = site.shows(&asked, "looked at once more and stopped, ").await;
    for part in ["ada said yes", "What people said, and what came of it", "because people said yes to exactly this"] {
        assert!(record.to_string().contains(part), "`{part}` is not in {record:#}");
    }
    site.hears("align-7 was stopped, as ada approved").await;
    let log = site.sweeper.json(&["audit"]).await;
    let approved = log.as_array().unwrap().iter().find(|entry| entry["did"] == "approved").unwrap();
    assert_eq!([&approved["who"], &approved["way"]], ["ada", "slack"], "{approved:#}");
    // The same press once more, as whoever has recorded it would send it: five minutes long it is signed well.
    assert_eq!(site.press(&asked, "approve", ADA, json!({})).await, 200);
    let again = site.whispered(2).await;
    assert!(again["text"].as_str().unwrap().starts_with("That does not count:"), "{again:#}");
    site.sweeper.sweep().await;
    assert_eq!(site.called("StopInstances").await.len(), 1);
}

async fn whoever_may_not_hears_so_alone_and_nothing_is_done(url: String) {
    let policy = "[[rule]]\nname = \"grace alone\"\napprovers = [\"grace\"]\n";
    let site = Site::start_with(&url, policy, SWITCHED_ON).await;
    site.links("ada", ADA).await;
    site.links("grace", GRACE).await;
    let asked = site.asks().await;
    let people = |grace: Value| site.slack.people(&json!({ GRACE: grace }));
    let mut whispers = 0;
    for (who, how, grace, words) in [
        ("U0EVE123", json!({}), json!({}), "nobody has said whose account T0LAB1/U0EVE123 is"),
        (GRACE, json!({ "team": "T0OTHER1" }), json!({}), "people of another workspace decide about nothing here"),
        (GRACE, json!({}), json!({ "is_restricted": true }), "guests decide about nothing"),
        (GRACE, json!({}), json!({ "is_bot": true }), "the account is a program's"),
        (GRACE, json!({}), json!({ "deleted": true }), "the account is deactivated"),
        (GRACE, json!({}), json!({ "is_stranger": true }), "people of another workspace"),
        (GRACE, json!({}), json!("error"), "Slack did not say whether you are a member"),
        (GRACE, json!({ "value": "5d".repeat(32) }), json!({}), "there is no such plan"),
        (GRACE, json!({ "value": "../../etc/passwd" }), json!({}), "there is no such plan"),
        (ADA, json!({}), json!({}), "the rule `grace alone`"),
    ] {
        people(grace);
        assert_eq!(site.press(&asked, "approve", who, how).await, 200, "{words}");
        whispers += 1;
        let told = site.whispered(whispers).await;
        let text = told["text"].as_str().unwrap();
        assert!(told["user"] == who && text.starts_with("That does not count: ") && text.contains(words), "{told:#}");
    }
    people(json!({}));
    let old = jiff::Timestamp::now().as_second() - 301;
    for how in [json!({ "secret": "0".repeat(32) }), json!({ "at": old }), json!({ "signature": "v0=00" })] {
        assert_eq!(site.press(&asked, "approve", GRACE, how.clone()).await, 401, "{how}");
    }
    assert_eq!(site.sweeper.json(&["plans"]).await[0]["answers"], json!([]));
    assert_eq!(site.sweeper.json(&["actions"]).await, json!([]));
    assert_eq!((site.slack.whispers().len(), site.slack.updates().len()), (whispers, 0));
    // Who was taken off the list is nobody's any more.
    assert_eq!(site.run(&["approvers", "remove", "grace"]).await.code, 0);
    assert_eq!(site.press(&asked, "approve", GRACE, json!({})).await, 200);
    let told = site.whispered(whispers + 1).await;
    assert!(told["text"].as_str().unwrap().contains("nobody has said whose account"), "{told:#}");
    assert_eq!(site.state().await, "running");
}

async fn two_people_must_and_two_ways_are_not_two_people(url: String) {
    let policy = "[[rule]]\nname = \"two\"\napprovers = [\"*\"]\nneeds = 2\n";
    let site = Site::start_with(&url, policy, SWITCHED_ON).await;
    let token = site.links("ada", ADA).await;
    site.links("grace", GRACE).await;
    let (plan, asked) = (site.plan().await, site.asks().await);
    assert_eq!(site.press(&asked, "approve", ADA, json!({})).await, 200);
    assert!(site.whispered(1).await["text"].as_str().unwrap().contains("More people must"));
    let one = site.shows(&asked, "ada said yes").await;
    assert!(has_buttons(&one), "grace is asked still: {one:#}");
    let again = site.run(&["approve", &plan, "--token-file", token.to_str().unwrap()]).await;
    assert!(again.code == 1 && again.error.contains("you have said so already"), "{again:?}");
    site.searched_twice().await;
    assert_eq!(site.dry_runs().await, 0, "one is not enough");
    assert_eq!(site.press(&asked, "approve", GRACE, json!({})).await, 200);
    assert_eq!(site.ended(&plan).await["state"], "done");
    assert!(!has_buttons(&site.shows(&asked, "grace said yes").await));
    site.hears("align-7 was stopped, as ada and grace approved").await;
}

async fn a_no_by_the_button_of_a_version_before_ends_the_plan(url: String) {
    let site = Site::start(&url).await;
    let token = site.links("ada", ADA).await;
    let (plan, asked) = (site.plan().await, site.asks().await);
    let button =
        json!({ "type": "button", "action_id": "deny", "text": { "type": "plain_text", "text": "No" }, "value": plan });
    assert_eq!(site.press(&asked, "deny", ADA, json!({ "button": button })).await, 200);
    assert!(!has_buttons(&site.shows(&asked, "ada said no").await));
    let refused = site.run(&["approve", &plan, "--token-file", token.to_str().unwrap()]).await;
    assert!(refused.code == 1 && refused.error.contains("ada has said no to it"), "{refused:?}");
    assert_eq!(site.called("StopInstances").await.len(), 0);
}
