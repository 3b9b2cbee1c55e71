//! A yes to one of several plans in one message: to that plan, and to no other.

use crate::{
    site::{ANYBODY, SWITCHED_ON, Site},
    slack::{ADA, GRACE},
};
use lab::slack::{Hears, buttons, has_buttons};
use serde_json::{Value, json};
use std::collections::BTreeSet;

lab::on_both_databases! {
    each_plan_of_a_bundle_is_decided_alone_and_the_message_is_the_record,
    whoever_may_not_decide_about_one_plan_of_a_bundle_does_not_by_another,
    what_was_decided_before_a_bundle_is_sent_is_not_asked,
}

const OTHERS: [&str; 2] = ["align-8 <!channel>", "align-9"];

/// The plans that a message asks about.
fn asked_about(message: &Value) -> BTreeSet<String> {
    let yes = buttons(message).into_iter().filter(|button| button["action_id"] == "approve");
    yes.map(|button| button["value"].as_str().unwrap().to_owned()).collect()
}

impl Site {
    async fn of_three(url: &str, policy: &str) -> Self {
        Self::start_among(url, policy, SWITCHED_ON, Hears::Requests, &OTHERS).await
    }

    /// The plan for the machine that people call so.
    async fn plan_of(&self, name: &str) -> String {
        let findings = self.sweeper.json(&["findings"]).await;
        let is_its = |finding: &&Value| finding.to_string().contains(name);
        let finding = findings.as_array().unwrap().iter().find(is_its).unwrap_or_else(|| panic!("{findings:#}"));
        let plans = self.sweeper.json(&["plans"]).await;
        let of = |plan: &&Value| plan["finding"] == finding["id"];
        let plan = plans.as_array().unwrap().iter().find(of).unwrap_or_else(|| panic!("{plans:#}"));
        plan["plan"].as_str().unwrap().to_owned()
    }

    async fn answers_to(&self, plan: &str) -> Value {
        let plans = self.sweeper.json(&["plans"]).await;
        let plan = plans.as_array().unwrap().iter().find(|one| one["plan"] == plan).cloned();
        plan.unwrap_or_else(|| panic!("{plans:#}"))["answers"].clone()
    }
}

async fn each_plan_of_a_bundle_is_decided_alone_and_the_message_is_the_record(url: String) {
    let site = Site::of_three(&url, ANYBODY).await;
    site.links("ada", ADA).await;
    site.links("grace", GRACE).await;
    let opening = site.hears("3 idle machines of ada").await;
    let asked = site.asks().await;
    assert_eq!(asked["thread_ts"], opening["ts"]);
    let (seven, eight, nine) =
        (site.plan_of("align-7").await, site.plan_of("align-8").await, site.plan_of("align-9").await);
    let all = BTreeSet::from([seven.clone(), eight.clone(), nine.clone()]);
    assert_eq!(asked_about(&asked), all, "{asked:#}");
    assert_eq!(buttons(&asked).len(), 12, "each has four: {asked:#}");
    // Two approvers at once, about the same plan and about another one.
    let (one, two, three) = tokio::join!(
        site.press(&asked, "approve", ADA, json!({ "plan": seven })),
        site.press(&asked, "approve", GRACE, json!({ "plan": seven })),
        site.press(&asked, "not_now", GRACE, json!({ "plan": eight, "option": "For a week" })),
    );
    assert_eq!([one, two, three], [200; 3]);
    assert_eq!(site.ended(&seven).await["state"], "done");
    assert_eq!((site.state().await.as_str(), site.called("StopInstances").await.len()), ("stopped", 1));
    assert_eq!(site.answers_to(&nine).await, json!([]));
    let is_whole = |record: &Value| {
        let words = record.to_string();
        ["looked at once more and stopped, ", "ada said yes", "grace said yes", "grace said not before "]
            .iter()
            .all(|part| words.contains(part))
    };
    let record = lab::wait::until("the record", crate::site::TIMEOUT, || async {
        let mut updates = site.slack.updates().into_iter().rev();
        updates.find(|update| update["ts"] == asked["ts"]).filter(is_whole)
    })
    .await;
    assert_eq!(asked_about(&record), BTreeSet::from([nine.clone()]), "what is decided is not asked: {record:#}");
    assert!(!record.to_string().contains("Nothing has been changed"), "{record:#}");
    let told = site.hears("align-7 was stopped, as ").await;
    assert_eq!(told["thread_ts"], opening["ts"], "{told:#}");
    // Once the finding is over its line is struck through, and still says what people said.
    site.sweeper.sweep().await;
    let record = site.shows(&asked, "\"strike\":true").await;
    assert!(is_whole(&record), "{record:#}");
    // The same press once more counts for nothing.
    let whispers = site.slack.whispers().len();
    assert_eq!(site.press(&asked, "approve", ADA, json!({ "plan": seven })).await, 200);
    let again = site.whispered(whispers + 1).await;
    assert!(again["text"].as_str().unwrap().starts_with("That does not count: "), "{again:#}");
    assert_eq!(site.called("StopInstances").await.len(), 1);
}

async fn whoever_may_not_decide_about_one_plan_of_a_bundle_does_not_by_another(url: String) {
    let policy = "[[rule]]\nname = \"grace alone\"\napprovers = [\"grace\"]\n";
    let site = Site::of_three(&url, policy).await;
    site.links("ada", ADA).await;
    site.links("grace", GRACE).await;
    let asked = site.asks().await;
    let seven = site.plan_of("align-7").await;
    let refused = async |user: &str, how: Value, words: &str| {
        let before = site.slack.whispers().len();
        assert_eq!(site.press(&asked, "approve", user, how).await, 200);
        let told = site.whispered(before + 1).await;
        let text = told["text"].as_str().unwrap();
        assert!(told["user"] == user && text.starts_with("That does not count: ") && text.contains(words), "{told:#}");
    };
    refused(ADA, json!({ "plan": seven }), "the rule `grace alone`").await;
    refused("U0EVE123", json!({ "plan": seven }), "nobody has said whose account").await;
    refused(GRACE, json!({ "plan": seven, "team": "T0OTHER1" }), "people of another workspace").await;
    refused(GRACE, json!({ "plan": seven, "value": "5d".repeat(32) }), "there is no such plan").await;
    refused(GRACE, json!({ "plan": seven, "value": "<!channel>" }), "there is no such plan").await;
    // Another plan takes the place of the one that the message has.
    site.tag("CreateTags", "cloud-sweeper:exempt", "Monday's benchmark").await;
    site.sweeper.sweep().await;
    site.tag("DeleteTags", "cloud-sweeper:exempt", "Monday's benchmark").await;
    site.sweeper.sweep().await;
    assert_ne!(site.plan_of("align-7").await, seven);
    refused(GRACE, json!({ "plan": seven }), "").await;
    site.searched_twice().await;
    let actions = site.sweeper.json(&["actions"]).await;
    assert!(actions.as_array().unwrap().iter().all(|action| action["direction"] == "undo"), "{actions:#}");
    for name in ["align-7", "align-8", "align-9"] {
        assert_eq!(site.answers_to(&site.plan_of(name).await).await, json!([]));
    }
    assert_eq!(site.slack.updates(), Vec::<Value>::new());
    assert_eq!(site.state().await, "running");
}

async fn what_was_decided_before_a_bundle_is_sent_is_not_asked(url: String) {
    let mut site = Site::of_three(&url, ANYBODY).await;
    let token = site.enrol("ada").await;
    let asked = site.asks().await;
    let (seven, eight) = (site.plan_of("align-7").await, site.plan_of("align-8").await);
    // As if Slack had not taken it yet.
    site.sweeper.stop().await;
    site.change(
        "UPDATE outbox SET state = 'pending', receipt = NULL, attempts = 0, next_attempt_unix_ms = 0, bundle = NULL \
         WHERE channel = 'slack' AND notice LIKE '%\"ask\":{%'",
    )
    .await;
    let denied = site.run(&["deny", &seven, "--token-file", token.to_str().unwrap()]).await;
    assert_eq!(denied.code, 0, "{denied:?}");
    site.sweeper.start_again().await;
    let anew = lab::wait::until("the message", crate::site::TIMEOUT, || async {
        let mut messages = site.slack.messages().into_iter();
        messages.find(|message| message["ts"] != asked["ts"] && has_buttons(message))
    })
    .await;
    let about = asked_about(&anew);
    assert!(about.len() == 2 && about.contains(&eight) && !about.contains(&seven), "{anew:#}");
    assert!(anew.to_string().contains("ada said no"), "{anew:#}");
}
