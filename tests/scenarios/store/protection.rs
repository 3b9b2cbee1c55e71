//! What is kept of the protection of machines.

use super::open;
use jiff::{SignedDuration, Timestamp};
use model::Provider;
use std::collections::{BTreeMap, BTreeSet};
use sweeper::inventory::{KeptProtection, Protection, Scope};

lab::on_both_databases! {
    what_was_answered_stays_until_it_is_answered_anew_and_a_failure_only_moves_to_the_end_of_the_queue,
}

async fn what_was_answered_stays_until_it_is_answered_anew_and_a_failure_only_moves_to_the_end_of_the_queue(
    url: String,
) {
    let store = open(&url).await;
    let scope = |region: &str| Scope { provider: Provider::Aws, account: "123456789012".into(), region: region.into() };
    let at = |second| Timestamp::constant(1_790_000_000, 0) + SignedDuration::from_secs(second);
    let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<BTreeSet<String>>();
    let (here, none) = (scope("a"), BTreeSet::new());
    let open = Protection { stop: Some(false), termination: Some(false) };
    let half = Protection { stop: None, termination: Some(true) };
    let kept = |queued, answer: Option<(i64, Protection)>| KeptProtection {
        queued_at: at(queued),
        answer: answer.map(|(read, protection)| (at(read), protection)),
    };

    let many: Vec<String> = (0..1_500).map(|n| format!("i-{n:04}")).collect();
    store.queue_protection(&here, &many.iter().cloned().collect(), &none, at(1)).await.unwrap();
    let first: BTreeMap<String, Protection> = [("i-0001".to_owned(), open), ("i-0002".to_owned(), half)].into();
    store.put_protection(&here, &first, &names(&["i-0003"]), at(2)).await.unwrap();
    store.queue_protection(&here, &names(&["i-0001", "i-0004"]), &none, at(3)).await.unwrap();
    let read = store.protection(&here).await.unwrap();
    assert_eq!(read.len(), 1_500);
    assert_eq!(read["i-0001"], kept(2, Some((2, open))), "it has its place");
    assert_eq!(read["i-0002"], kept(2, Some((2, half))));
    assert_eq!((read["i-0003"], read["i-0004"]), (kept(2, None), kept(1, None)));
    assert!(store.protection(&scope("b")).await.unwrap().is_empty(), "another scope");

    let again = [("i-0002".to_owned(), open)].into();
    store.put_protection(&here, &again, &names(&["i-0001"]), at(9)).await.unwrap();
    let read = store.protection(&here).await.unwrap();
    assert_eq!((read["i-0001"], read["i-0002"]), (kept(9, Some((2, open))), kept(9, Some((9, open)))));

    let gone = many[1_000..].iter().cloned().collect();
    store.queue_protection(&here, &none, &gone, at(9)).await.unwrap();
    assert_eq!(store.protection(&here).await.unwrap().len(), 1_000);
    assert_eq!(store.delete_protection_before(at(9)).await.unwrap(), 998);
    assert_eq!(store.protection(&here).await.unwrap().len(), 2);
}
