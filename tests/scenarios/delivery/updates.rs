//! A Slack message that told of a finding shows that it has ended; nobody is told anew.

use super::fleet::{Fleet, heading};
use jiff::SignedDuration;
use lab::slack;
use serde_json::Value;
use std::time::Duration;
use sweeper::store::MessageState;

lab::on_both_databases! {
    the_message_of_a_finding_that_ends_is_updated,
    in_a_bundle_what_has_ended_is_struck_through_and_the_rest_stays,
    what_ends_before_it_was_told_is_not_told,
    an_update_waits_for_its_message,
    an_update_that_slack_does_not_take_yet_is_tried_again,
    an_update_of_a_message_that_is_gone_is_dropped,
}

async fn the_message_of_a_finding_that_ends_is_updated(url: String) {
    let mut fleet = Fleet::new(&url, 3).await;
    // Alone: the others come later.
    fleet.sweep().await;
    fleet.execute("UPDATE outbox SET audience = NULL").await;
    fleet.deliver().await;
    fleet.work([2]).await;
    assert_eq!(fleet.sweep().await.closed.len(), 1);
    let of_old = "UPDATE outbox SET attempts = 0 WHERE state = 'pending' AND channel IN ('slack', 'email')";
    assert_eq!(fleet.execute(of_old).await, 0, "a sweeper of the version before finds nothing that it would post");
    assert_eq!(fleet.deliver().await.sent, 1);
    let updates = fleet.slack.updates();
    let [update] = updates.as_slice() else { panic!("{updates:?}") };
    let posts = fleet.slack.messages();
    let opening = posts.iter().find(|post| heading(post).contains("machine-2")).expect("an opening");
    assert_eq!(update["ts"], opening["ts"]);
    assert!(heading(update).starts_with("✅ machine-2 is no longer idle: it was idle for "), "{update}");
    for part in ["*Ended*", "What ended it", "CPU time of workloads", "*Spent in that time*"] {
        assert!(update.to_string().contains(part), "`{part}` is not in {update}");
    }
    assert_eq!((posts.len(), fleet.smtp.delivered().len()), (3, 3), "nobody is told anew");
    let messages = fleet.messages("slack", None).await;
    let end = messages.iter().find(|message| message.updates.is_some()).expect("an update");
    assert_eq!((end.state, &end.receipt.is_some()), (MessageState::Sent, &true));
    assert_eq!(end.updates.as_ref().map(|event| event.0.clone()), Some(end.finding.clone()));
}

/// The lines of a bundle: what is struck through, and what is not.
fn lines(message: &Value) -> (Vec<String>, Vec<String>) {
    let blocks = message["blocks"].as_array().expect("blocks").iter();
    let lists = blocks.filter(|block| block["type"] == "rich_text");
    let lines = lists.flat_map(|block| block["elements"][0]["elements"].as_array().expect("lines").clone());
    let (over, left): (Vec<_>, Vec<_>) = lines.partition(|line| line["elements"][0]["style"]["strike"] == true);
    let name = |line: Value| line["elements"][0]["text"].as_str().expect("a name").to_owned();
    (over.into_iter().map(name).collect(), left.into_iter().map(name).collect())
}

async fn in_a_bundle_what_has_ended_is_struck_through_and_the_rest_stays(url: String) {
    let mut fleet = Fleet::new(&url, 4).await;
    fleet.sweep().await;
    fleet.deliver().await;
    let (over, left) = lines(&fleet.slack.messages()[0]);
    assert_eq!((over.len(), left.len(), &left[..2]), (0, 4, ["machine-3", "machine-2"].map(String::from).as_slice()));
    fleet.work([3]).await;
    fleet.sweep().await;
    fleet.deliver().await;
    let update = fleet.slack.updates().remove(0);
    assert_eq!(update["ts"], fleet.slack.messages()[0]["ts"]);
    let (over, left) = lines(&update);
    assert_eq!((over, left.len()), (vec!["machine-3".to_owned()], 3));
    let wanted =
        "💤 3 of 4 idle machines without an owner tag (on premises) are left: $0.02/h, and 2 without a known price";
    assert_eq!(heading(&update), wanted);

    // All that ends by one sweep is shown by one update.
    fleet.work([0, 1, 2]).await;
    fleet.sweep().await;
    assert_eq!(fleet.deliver().await.sent, 3);
    let updates = fleet.slack.updates();
    assert_eq!((updates.len(), lines(&updates[1]).0.len()), (2, 4));
    assert_eq!(heading(&updates[1]), "✅ None of 4 idle machines without an owner tag (on premises) is left");
    assert_eq!((fleet.slack.messages().len(), fleet.smtp.delivered().len()), (1, 1));
}

async fn what_ends_before_it_was_told_is_not_told(url: String) {
    let mut fleet = Fleet::new(&url, 2).await;
    fleet.sweep().await;
    fleet.work([0]).await;
    assert_eq!(fleet.sweep().await.closed.len(), 1);
    fleet.deliver().await;
    let headings = fleet.headings();
    assert!(headings.len() == 1 && headings[0].contains("machine-1 has been idle"), "{headings:?}");
    assert_eq!((fleet.smtp.delivered().len(), fleet.slack.updates().len()), (1, 0));
    let withdrawn = fleet.messages("slack", Some(MessageState::Withdrawn)).await;
    let [withdrawn] = withdrawn.as_slice() else { panic!("{withdrawn:?}") };
    assert_eq!(withdrawn.last_error.as_deref(), Some("its finding ended before it was told"));
    let counts = fleet.store().outbox_counts().await.unwrap();
    assert_eq!((counts.pending, counts.sent, counts.failed, counts.withdrawn), (0, 2, 0, 2));
    // A person who wants it all the same names it.
    let now = fleet.store().now().await.unwrap();
    assert_eq!(fleet.store().retry_messages(&[], now).await.unwrap(), (0, 0));
    assert_eq!(fleet.store().retry_messages(std::slice::from_ref(&withdrawn.event), now).await.unwrap(), (2, 0));
    assert_eq!(fleet.deliver().await.sent, 2);
}

async fn an_update_waits_for_its_message(url: String) {
    let mut fleet = Fleet::new(&url, 1).await;
    fleet.sweep().await;
    let gather = fleet.context.config.outbox.gather;
    fleet.store().end_gathering(gather).await.unwrap();
    // Another replica is about to send the opening when its finding ends.
    let now = fleet.store().now().await.unwrap();
    let until = now + SignedDuration::from_mins(10);
    assert!(fleet.store().claim_message("slack", now, until).await.unwrap().is_some());
    fleet.work([0]).await;
    fleet.sweep().await;
    fleet.deliver().await;
    assert_eq!((fleet.slack.messages().len(), fleet.slack.updates().len()), (0, 0));
    assert_eq!(fleet.messages("slack", Some(MessageState::Pending)).await.len(), 2);

    // It died.
    fleet.execute("UPDATE outbox SET claimed_until_unix_ms = 0").await;
    fleet.deliver().await;
    assert_eq!((fleet.slack.messages().len(), fleet.slack.updates().len()), (1, 1));
    let requests = fleet.slack.requests();
    let paths: Vec<_> = requests.iter().map(|request| request["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["/api/chat.postMessage", "/api/chat.update"]);
}

async fn an_update_that_slack_does_not_take_yet_is_tried_again(url: String) {
    let mut fleet = Fleet::new(&url, 1).await;
    fleet.sweep().await;
    fleet.deliver().await;
    fleet.work([0]).await;
    fleet.sweep().await;
    fleet.slack.fail_next(&[slack::Fault::Status(503), slack::Fault::RateLimited(2)]);
    assert_eq!(fleet.deliver().await.retried, 2);
    lab::wait::until("the update", Duration::from_secs(30), || async {
        fleet.deliver_due().await.unwrap();
        (fleet.slack.updates().len() == 1).then_some(())
    })
    .await;
    let requests = fleet.slack.requests();
    let at = |request: usize| requests[request]["at"].as_f64().unwrap();
    assert_eq!(requests.len(), 4);
    assert!(at(3) - at(2) >= 2.0, "Slack is asked no sooner than it wishes");
}

async fn an_update_of_a_message_that_is_gone_is_dropped(url: String) {
    let mut fleet = Fleet::new(&url, 1).await;
    fleet.sweep().await;
    fleet.deliver().await;
    fleet.work([0]).await;
    fleet.sweep().await;
    for (code, state) in [
        ("message_not_found", MessageState::Withdrawn),
        ("edit_window_closed", MessageState::Withdrawn),
        ("cant_update_message", MessageState::Withdrawn),
        ("token_revoked", MessageState::Failed),
    ] {
        fleet.slack.fail_next(&[slack::Fault::Error(code)]);
        fleet.deliver().await;
        let messages = fleet.messages("slack", Some(state)).await;
        let [update] = messages.as_slice() else { panic!("{code}: {messages:?}") };
        assert!(update.last_error.as_deref().unwrap().contains(code), "{update:?}");
        let now = fleet.store().now().await.unwrap();
        // What failed is tried again with all others, what is gone by its name alone.
        let requeued = u64::from(state == MessageState::Failed);
        assert_eq!(fleet.store().retry_messages(&[], now).await.unwrap(), (requeued, 0));
        fleet.store().retry_messages(std::slice::from_ref(&update.event), now).await.unwrap();
    }
    fleet.deliver().await;
    assert_eq!(fleet.slack.updates().len(), 1);
}
