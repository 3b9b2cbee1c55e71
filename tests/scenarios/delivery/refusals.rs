//! What one of Slack's channels refuses by a code that nobody knows here, or does not take for days, is told in the channel for all.

use super::{fleet::Fleet, routes::teams};
use jiff::Timestamp;
use lab::slack::Fault;
use serde_json::json;
use std::time::Duration;
use sweeper::store::{Message, MessageState};

lab::on_both_databases! {
    what_a_channel_refuses_by_an_unknown_code_is_told_in_the_one_for_all_at_once,
    what_a_channel_never_took_is_told_in_the_one_for_all_in_the_end,
}

const SAYS: &str = "Meant for #genomics, which did not take it";

async fn one(url: &str) -> Fleet {
    let mut fleet = Fleet::of(url, 0, Timestamp::now(), teams).await;
    fleet.join_tagged(1, Some(json!({ "team": "genomics" }))).await;
    fleet.sweep().await;
    fleet
}

impl Fleet {
    /// So long passes for what waits, and it is due.
    async fn waits(&self, hours: i64) {
        let ms = hours * 3_600_000;
        let sql = format!(
            "UPDATE outbox SET created_unix_ms = created_unix_ms - {ms}, next_attempt_unix_ms = 0 WHERE state = 'pending'"
        );
        self.execute(&sql).await;
    }

    async fn in_slack(&self) -> Message {
        let mut all = self.messages("slack", None).await;
        assert_eq!(all.len(), 1, "{all:?}");
        all.remove(0)
    }
}

async fn what_a_channel_refuses_by_an_unknown_code_is_told_in_the_one_for_all_at_once(url: String) {
    let mut fleet = one(&url).await;
    fleet.slack.fail_next(&[Fault::Error("a_code_of_tomorrow")]);
    fleet.deliver().await;
    let post = fleet.slack.messages().pop().expect("a message");
    assert!(post["channel"] == "#waste" && post.to_string().contains(SAYS), "{post}");
    let told = fleet.in_slack().await;
    assert_eq!((told.state, told.diverted_from.as_deref()), (MessageState::Sent, Some("#genomics")));
    assert!(told.routed_because.as_deref().expect("a reason").contains("a_code_of_tomorrow"), "{told:?}");
    // Where there is no other channel it is tried again: what is new may pass.
    fleet.join_tagged(2, Some(json!({ "team": "nobody's" }))).await;
    fleet.sweep().await;
    fleet.slack.fail_next(&[Fault::Error("a_code_of_tomorrow")]);
    fleet.deliver().await;
    assert_eq!(fleet.slack.messages().len(), 2, "it passed");
}

async fn what_a_channel_never_took_is_told_in_the_one_for_all_in_the_end(url: String) {
    let mut fleet = one(&url).await;
    // So that one round is one attempt.
    fleet.reconfigure(|config| {
        (config.outbox.base_delay, config.outbox.max_delay) = (Duration::from_secs(3_600), Duration::from_secs(3_600));
    });
    let away = Fault::Error("service_unavailable");
    fleet.slack.fail_next(&[away]);
    fleet.deliver().await;
    let waits = fleet.in_slack().await;
    assert_eq!((waits.state, waits.destination.as_deref()), (MessageState::Pending, Some("#genomics")), "{waits:?}");
    fleet.waits(72).await;
    // The channel for all is away, too; what is diverted has as long again.
    fleet.slack.fail_next(&[away, away]);
    fleet.deliver().await;
    let waits = fleet.in_slack().await;
    assert_eq!((waits.state, waits.diverted_from.as_deref()), (MessageState::Pending, Some("#genomics")), "{waits:?}");
    fleet.waits(1).await;
    fleet.deliver().await;
    let post = fleet.slack.messages().pop().expect("a message");
    assert!(post["channel"] == "#waste" && post.to_string().contains(SAYS), "{post}");
    // Behind that it is over, and said to be.
    fleet.join_tagged(2, Some(json!({ "team": "genomics" }))).await;
    fleet.sweep().await;
    fleet.waits(200).await;
    fleet.slack.fail_next(&[away, away]);
    fleet.deliver().await;
    let failed = fleet.messages("slack", Some(MessageState::Failed)).await;
    assert_eq!(failed.len(), 1, "{failed:?}");
    assert!(failed[0].last_error.as_deref().expect("an error").contains("service_unavailable"), "{failed:?}");
}
