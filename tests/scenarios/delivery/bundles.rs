//! What is due at the same time for one owner is told by one message, and nothing is lost by that.

use super::{
    REGION, Stage,
    fleet::{Fleet, heading},
};
use jiff::SignedDuration;
use lab::{
    aws::{ACCOUNT, Instance, Moto},
    quiet, slack, smtp, wait,
};
use serde_json::Value;
use std::{collections::BTreeSet, time::Duration};
use sweeper::store::{MAX_BUNDLE, MessageState};

lab::on_both_databases! {
    what_answers_a_message_under_way_waits_for_seconds,
    three_hundred_openings_make_a_handful_of_messages,
    a_bundle_that_was_sent_and_not_noted_is_sent_again_as_the_same,
    a_bundle_that_is_not_taken_as_such_is_told_one_by_one,
    a_bundle_that_a_channel_does_not_take_is_discarded_and_tried_again_as_a_whole,
    what_a_paused_channel_kept_waiting_is_told_by_one_message,
    two_replicas_that_deliver_at_once_tell_nothing_twice,
    names_in_a_bundle_are_only_ever_text,
    what_the_version_before_wrote_is_told_by_itself,
}

async fn three_hundred_openings_make_a_handful_of_messages(url: String) {
    let mut fleet = Fleet::new(&url, 300).await;
    assert_eq!(fleet.sweep().await.opened.len(), 300);
    assert_eq!(fleet.deliver_due().await.unwrap().sent, 0, "they wait for each other first");
    assert_eq!(fleet.deliver().await.sent, 600);
    assert_eq!((fleet.slack.messages().len(), fleet.smtp.delivered().len()), (2, 2));
    let headings = fleet.headings();
    for count in [MAX_BUNDLE, 300 - MAX_BUNDLE] {
        let wanted = format!("💤 {count} idle machines without an owner tag (on premises): $");
        assert!(headings.iter().any(|heading| heading.starts_with(&wanted)), "{wanted}: {headings:?}");
    }
    let unknown = headings.iter().filter(|heading| heading.contains("without a known price")).count();
    assert!((1..=2).contains(&unknown), "two have no price: {headings:?}");
    let dearest = fleet.slack.messages().iter().filter(|message| message.to_string().contains("machine-299")).count();
    assert_eq!(dearest, 1);
    for channel in ["slack", "email"] {
        let sent = fleet.messages(channel, Some(MessageState::Sent)).await;
        let receipts: BTreeSet<_> = sent.iter().map(|message| message.receipt.clone().unwrap()).collect();
        let bundles: BTreeSet<_> = sent.iter().map(|message| message.bundle.clone().unwrap()).collect();
        assert_eq!((sent.len(), receipts.len(), bundles.len()), (300, 2, 2));
    }
    let counts = fleet.store().outbox_counts().await.unwrap();
    assert_eq!((counts.pending, counts.sent, counts.failed), (0, 600, 0));
}

async fn a_bundle_that_was_sent_and_not_noted_is_sent_again_as_the_same(url: String) {
    let mut fleet = Fleet::new(&url, 3).await;
    fleet.sweep().await;
    fleet.slack.fail_next(&[slack::Fault::Stall(Duration::from_secs(8))]);
    let dies = async {
        wait::until("all mails and a claim", Duration::from_secs(30), || async {
            let mailed = fleet.messages("email", Some(MessageState::Sent)).await.len() == 3;
            let claimed = fleet.messages("slack", None).await.iter().all(|message| message.bundle.is_some());
            (mailed && claimed).then_some(())
        })
        .await;
        fleet.execute("ALTER TABLE outbox RENAME TO elsewhere").await;
    };
    fleet.store().end_gathering(fleet.context.config.outbox.gather).await.unwrap();
    let (delivered, ()) = tokio::join!(fleet.deliver_due(), dies);
    delivered.unwrap_err();
    assert_eq!(fleet.slack.messages().len(), 1, "it was sent");
    fleet.execute("ALTER TABLE elsewhere RENAME TO outbox").await;
    assert!(fleet.messages("slack", None).await.iter().all(|message| message.receipt.is_none()), "and not noted");

    // Its claim runs out, and somebody else has come meanwhile.
    fleet.execute("UPDATE outbox SET claimed_until_unix_ms = 0").await;
    fleet.join(7, "machine-7").await;
    fleet.sweep().await;
    fleet.deliver().await;
    let posts = fleet.slack.messages();
    let key = |at: usize| posts[at]["metadata"]["event_payload"]["idempotency_key"].clone();
    assert_eq!((posts.len(), key(0)), (3, key(1)), "the same set under the same key");
    assert_eq!(heading(&posts[0]), heading(&posts[1]));
    assert!(heading(&posts[2]).contains("machine-7"), "{}", posts[2]);
    assert_eq!(fleet.messages("slack", Some(MessageState::Sent)).await.len(), 4);
}

async fn a_bundle_that_is_not_taken_as_such_is_told_one_by_one(url: String) {
    let mut fleet = Fleet::new(&url, 3).await;
    fleet.sweep().await;
    fleet.slack.fail_next(&[slack::Fault::Error("msg_too_long")]);
    fleet.smtp.fail_next(&[smtp::Fault::Reply("552 5.3.4 message too big")]);
    let delivered = fleet.deliver().await;
    assert_eq!((delivered.sent, delivered.retried, delivered.failed), (6, 6, 0));
    assert_eq!((fleet.slack.messages().len(), fleet.smtp.delivered().len()), (3, 3));
    for name in ["machine-0", "machine-1", "machine-2"] {
        let told = fleet.headings().iter().filter(|heading| heading.contains(name)).count();
        assert_eq!(told, 1, "{name}: {:?}", fleet.headings());
    }
    let sent = fleet.messages("slack", Some(MessageState::Sent)).await;
    assert!(sent.iter().all(|message| message.attempts == 2 && message.bundle.is_none()), "{sent:?}");
}

async fn a_bundle_that_a_channel_does_not_take_is_discarded_and_tried_again_as_a_whole(url: String) {
    let mut fleet = Fleet::new(&url, 3).await;
    fleet.sweep().await;
    fleet.slack.fail_next(&[slack::Fault::Error("is_archived")]);
    assert_eq!(fleet.deliver().await.failed, 3);
    assert_eq!((fleet.slack.requests().len(), fleet.messages("slack", Some(MessageState::Failed)).await.len()), (1, 3));
    let now = fleet.store().now().await.unwrap();
    assert_eq!(fleet.store().retry_messages(&[], now).await.unwrap(), (3, 0));
    assert_eq!(fleet.deliver().await.sent, 3);
    assert_eq!(fleet.slack.messages().len(), 1);
}

async fn what_a_paused_channel_kept_waiting_is_told_by_one_message(url: String) {
    let mut fleet = Fleet::new(&url, 1).await;
    fleet.sweep().await;
    fleet.slack.fail_next(&[slack::Fault::RateLimited(2)]);
    assert_eq!(fleet.deliver().await.retried, 1);
    for number in 1..4 {
        fleet.join(number, &format!("machine-{number}")).await;
    }
    fleet.sweep().await;
    wait::until("the end of the pause", Duration::from_secs(30), || async {
        (fleet.deliver().await.sent > 0 && !fleet.slack.messages().is_empty()).then_some(())
    })
    .await;
    let headings = fleet.headings();
    assert!(headings.len() == 1 && headings[0].starts_with("💤 4 idle machines"), "{headings:?}");
}

async fn two_replicas_that_deliver_at_once_tell_nothing_twice(url: String) {
    let mut fleet = Fleet::new(&url, 30).await;
    fleet.sweep().await;
    fleet.store().end_gathering(fleet.context.config.outbox.gather).await.unwrap();
    let (one, two, three) = tokio::join!(fleet.deliver_due(), fleet.deliver_as_another(), fleet.deliver_as_another());
    assert_eq!(one.unwrap().sent + two.sent + three.sent, 60);
    assert_eq!((fleet.slack.messages().len(), fleet.smtp.delivered().len()), (1, 1));
}

async fn names_in_a_bundle_are_only_ever_text(url: String) {
    let mut fleet = Fleet::new(&url, 0).await;
    for (number, name) in (0..).zip(["<!channel> *x*", "<script>&`</li>", "\u{202e}gnp.exe\r\nBcc: evil@example.org"]) {
        fleet.join(number, name).await;
    }
    fleet.sweep().await;
    fleet.deliver().await;
    let said = fleet.slack.messages().remove(0).to_string();
    assert!(said.contains("<!channel> *x*") && said.contains("rich_text"), "literal text: {said}");
    assert!(!said.contains('\u{202e}'), "{said}");
    let mail = String::from_utf8_lossy(&fleet.smtp.delivered().remove(0)).into_owned();
    assert!(!mail.lines().any(|line| line.starts_with("Bcc:")) && !mail.contains("<script>&`</li></strong>"), "{mail}");
}

async fn what_the_version_before_wrote_is_told_by_itself(url: String) {
    let mut fleet = Fleet::new(&url, 3).await;
    fleet.sweep().await;
    // It leaves the new columns alone, and its messages are due at once.
    fleet.execute("UPDATE outbox SET audience = NULL, next_attempt_unix_ms = 0").await;
    assert_eq!(fleet.deliver_due().await.unwrap().sent, 6);
    assert_eq!((fleet.slack.messages().len(), fleet.smtp.delivered().len()), (3, 3));
}

#[tokio::test]
async fn machines_of_one_owner_are_told_together_and_so_are_their_plans() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let moto = Moto::start(folder.path()).await;
    let environment = moto.environment();
    let environment: Vec<(&str, &str)> =
        environment.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    let stage = Stage::with(&format!("enabled = \"yes\"\nregions = [\"{REGION}\"]"), 2, &environment).await;
    stage.sweep().await;
    let mut ids = Vec::new();
    for (name, owner) in [("ada-1", Some("ada")), ("ada-2", Some("Ada ")), ("bob-1", Some("bob")), ("none-1", None)] {
        let mut instance = Instance::named("m5.large", name);
        instance.tags.extend(owner.map(|owner| ("Owner".to_owned(), owner.to_owned())));
        let id = moto.run(REGION, &[instance]).await.remove(0);
        quiet::report_as(&stage.sweeper, &format!("aws:{ACCOUNT}:{REGION}:{id}"), name, |_| {}).await;
        ids.push(id);
    }
    stage.sweep().await;
    stage.delivered(3).await;
    let mut posts = stage.slack.messages();
    // Whichever of the two ways of writing her name comes first.
    let says = |message: &Value, part: &str| heading(message).to_lowercase().contains(part);
    let both = posts.iter().find(|post| says(post, "2 idle machines of ada")).expect("a bundle").clone();
    for (name, is_there) in [("ada-1", true), ("ada-2", true), ("bob-1", false), ("none-1", false)] {
        assert_eq!(both.to_string().contains(name), is_there, "{name}: {both}");
    }

    stage.sweep().await;
    stage.delivered(6).await;
    posts = stage.slack.messages();
    let plans: Vec<_> = posts.iter().filter(|post| post["thread_ts"] == both["ts"]).collect();
    let [plans] = plans.as_slice() else { panic!("one reply to a bundle: {plans:?}") };
    let said = plans.to_string();
    assert!(says(plans, "plans would end the waste on 2 machines of ada"), "{said}");
    for part in ["ada-1", "ada-2", "Stop the idle m5.large instance"] {
        assert!(said.contains(part), "`{part}` is not in {said}");
    }
    let messages = stage.sweeper.json(&["messages"]).await;
    let told = messages.as_array().expect("a list").iter().filter(|message| message["state"] == "sent").count();
    assert_eq!(told, 16, "four openings and four plans on each channel: {messages:#}");

    // Bob's machine is terminated, and one of Ada's.
    let terminated = Instance { state: Some("terminated".into()), ..Instance::default() };
    for id in [&ids[0], &ids[2]] {
        moto.change_in(ACCOUNT, REGION, id, &terminated).await;
    }
    stage.sweep().await;
    // Of the openings, and of what told the plans.
    let updates = wait::until("four updates", Duration::from_secs(60), || async {
        Some(stage.slack.updates()).filter(|updates| updates.len() == 4)
    })
    .await;
    let of_plans: Vec<_> = updates.iter().filter(|update| update["ts"] == plans["ts"]).collect();
    let [of_plans] = of_plans.as_slice() else { panic!("one update of the plans: {of_plans:?}") };
    assert!(says(of_plans, "plans would end the waste on 2 machines of ada"), "{of_plans}");
    let over: Vec<_> = of_plans.to_string().split("\"strike\":true").map(str::to_owned).collect();
    assert!(over.len() > 1, "ada-1 is struck through: {of_plans}");
    for said in ["bob-1 is no longer idle: it was idle for 1 h", "1 of 2 idle machines of ada is left"] {
        assert!(updates.iter().any(|update| says(update, said)), "`{said}` is not in {updates:?}");
    }
    stage.delivered(6).await;
    let table = stage.sweeper.run(&["messages"]).await;
    let table = String::from_utf8_lossy(&table.stdout).into_owned();
    for part in [" in bundle b-", "updated at ", "bob-1 is no longer idle"] {
        assert!(table.contains(part), "`{part}` is not in:\n{table}");
    }
}

async fn what_answers_a_message_under_way_waits_for_seconds(url: String) {
    let mut fleet = Fleet::new(&url, 2).await;
    fleet.sweep().await;
    let store = fleet.store();
    store.end_gathering(fleet.context.config.outbox.gather).await.unwrap();
    fleet.execute("UPDATE outbox SET audience = NULL").await;
    // Another replica sends one of them; its claim holds for longer than that takes.
    let now = store.now().await.unwrap();
    let until = now + SignedDuration::from_mins(10);
    let claimed = store.claim_message("slack", now, until).await.unwrap().unwrap();
    let under_way = &claimed.messages[0].event_id.0;
    let answers = format!("UPDATE outbox SET answers = '{under_way}' WHERE finding_id <> '{under_way}'");
    assert_eq!(fleet.execute(&answers).await, 2);
    assert_eq!(store.claim_message("slack", now, until).await.unwrap(), None, "what it answers is said first");
    let sent = format!(
        "UPDATE outbox SET state = 'sent', claimed_until_unix_ms = 0 WHERE finding_id = '{under_way}' AND channel = 'slack'"
    );
    assert_eq!(fleet.execute(&sent).await, 1);
    let later = now + SignedDuration::from_secs(6);
    let reply = store.claim_message("slack", later, until).await.unwrap().unwrap();
    assert_ne!(&reply.messages[0].event_id.0, under_way);
}
