//! The evidence of a finding, shown to whoever presses the button for it and to nobody else: it changes nothing.

use crate::{site::Site, slack::ADA};
use lab::slack::buttons;
use serde_json::{Value, json};

lab::on_both_databases! {
    the_evidence_is_shown_to_whoever_asks_for_it_alone,
}

impl Site {
    /// Presses *Show proof*; returns what whoever pressed is told.
    async fn proves(&self, message: &Value, user: &str, mut how: Value) -> Value {
        let before = self.slack.replies().len();
        how["replies_at"] = json!(self.slack.answers_at());
        assert_eq!(self.press(message, "proof", user, how).await, 200);
        let told = self.replied(before + 1).await;
        assert_eq!(told["user"], user, "{told:#}");
        told
    }
}

async fn the_evidence_is_shown_to_whoever_asks_for_it_alone(url: String) {
    let site = Site::start(&url).await;
    let (opening, asked) = (site.hears("align-7 has been idle").await, site.asks().await);
    let finding = asked["metadata"]["event_payload"]["finding_id"].as_str().unwrap().to_owned();
    assert_eq!(buttons(&opening).len(), 1, "of a finding without a plan nothing else is asked: {opening:#}");
    // Nobody here is enrolled, and a guest of the workspace sees the message, too.
    site.slack.people(&json!({ "U0GUEST1": { "is_restricted": true } }));
    for (message, user) in [(&opening, ADA), (&asked, "U0EVE123"), (&asked, "U0GUEST1")] {
        let told = site.proves(message, user, json!({})).await;
        let words = told.to_string();
        for part in ["align-7 has been idle for", "Why we say so", &finding, "m5.large"] {
            assert!(words.contains(part), "`{part}` is not in {told:#}");
        }
        assert!(buttons(&told).is_empty(), "{told:#}");
    }
    site.slack.people(&json!({ "U0EVE123": { "deleted": true }, "U0BOT123": { "is_bot": true } }));
    for (user, how, words) in [
        ("U0EVE123", json!({}), "the account is deactivated"),
        ("U0BOT123", json!({}), "the account is a program's"),
        (ADA, json!({ "team": "T0OTHER1" }), "people of another workspace"),
    ] {
        let told = site.proves(&asked, user, how).await;
        assert!(told["text"].as_str().unwrap().contains(words), "{told:#}");
        assert!(!told.to_string().contains("align-7"), "{told:#}");
    }
    let told = site.proves(&asked, ADA, json!({ "value": "f-000000000000" })).await;
    assert!(told["text"].as_str().unwrap().starts_with("There is no such finding"), "{told:#}");
    // What is no id is nobody's, and an address that is not Slack's is told nothing.
    let told = site.slack.replies().len();
    for how in [json!({ "value": "<!channel> %" }), json!({ "value": "" }), json!({})] {
        assert_eq!(site.press(&asked, "proof", ADA, how).await, 200);
    }
    assert_eq!((site.slack.whispers(), site.slack.updates()), (Vec::new(), Vec::new()));
    assert_eq!(site.slack.replies().len(), told);
    assert_eq!(site.sweeper.json(&["plans"]).await[0]["answers"], json!([]));
    let log = site.sweeper.json(&["audit"]).await;
    assert!(log.as_array().unwrap().iter().all(|entry| entry["way"] != "slack"), "{log:#}");
}
