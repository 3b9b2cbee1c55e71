//! Answers that refuse: whose word they are, and what they cost.

use super::*;
use secrecy::ExposeSecret as _;

#[tokio::test]
async fn a_token_that_is_void_is_exchanged_anew() {
    let mut lab = Lab::joined().await;
    lab.push(2);
    lab.sweeper.lock().unwrap().token = "revoked".to_owned();
    assert!(matches!(lab.exporter.step().await, Step::Wait(_)));
    lab.drain().await;
    assert_eq!(lab.arrived(), once_each(1..=2));
    assert_eq!(lab.sweeper.lock().unwrap().joins, 2);
}

#[tokio::test]
async fn a_refused_token_is_kept_until_another_join_has_succeeded() {
    let mut lab = Lab::joined().await.restarted("no longer valid");
    lab.push(2);
    // The sweeper has another database, in which this node's key is not bound.
    lab.sweeper.lock().unwrap().bound = None;
    let token = std::mem::replace(&mut lab.sweeper.lock().unwrap().token, "of another database".to_owned());
    for _refused in ["token", "join", "token", "join"] {
        assert!(matches!(lab.exporter.step().await, Step::Wait(_)));
    }
    assert_eq!(lab.exporter.troubles.len(), 2, "each is said once: {:?}", lab.exporter.troubles);
    let kept = lab.exporter.state.token(&node_id()).map(|kept| kept.secret.expose_secret().to_owned());
    assert_eq!(kept, Some(token.clone()));
    lab.sweeper.lock().unwrap().token = token;
    lab.drain().await;
    assert_eq!(lab.arrived(), once_each(1..=2));
    assert_eq!(lab.sweeper.lock().unwrap().joins, 1);
}

#[tokio::test]
async fn a_proxy_that_refuses_costs_neither_the_token_nor_a_heartbeat() {
    let mut lab = Lab::joined().await;
    lab.push(2);
    for status in [401, 413] {
        lab.reply(Reply::Status(status, None));
        assert!(matches!(lab.exporter.step().await, Step::Wait(_)), "{status}");
    }
    lab.drain().await;
    assert_eq!(lab.arrived(), once_each(1..=2));
    assert_eq!((lab.queue.stats().rejected, lab.sweeper.lock().unwrap().joins), (0, 1));
}

#[tokio::test]
async fn only_the_heartbeat_that_is_refused_for_good_is_set_aside() {
    let mut lab = Lab::joined().await;
    lab.push(9);
    lab.sweeper.lock().unwrap().poison = Some(6);
    lab.drain().await;
    let missing_one = once_each((1..=9).filter(|sequence| *sequence != 6));
    assert_eq!(lab.arrived(), missing_one);
    assert_eq!(lab.queue.stats().rejected, 1);
    lab.push(1);
    lab.drain().await;
    let contiguous = lab.sweeper.lock().unwrap().contiguous;
    assert_eq!(contiguous, 10, "the next envelope declares the hole, so the sweeper does not wait for it");
}

#[tokio::test]
async fn a_batch_that_is_too_large_is_halved_until_it_fits() {
    let mut lab = Lab::joined().await;
    lab.push(7);
    lab.drain().await;
    lab.push(8);
    lab.reply(Reply::Status(413, Some("too_large")));
    lab.reply(Reply::Status(413, None));
    lab.drain().await;
    assert_eq!(lab.arrived(), once_each(1..=15));
    let envelopes = lab.sweeper.lock().unwrap().envelopes.iter().map(Vec::len).collect::<Vec<_>>();
    assert_eq!(envelopes, [1, 2, 4, 2, 4, 2]);
}

#[tokio::test]
async fn a_wrong_join_token_is_waited_out() {
    let lab = Lab::new().await;
    let other = tempfile::tempdir().unwrap();
    let (_, mut stranger) = exporter(other.path(), &lab.url, "wrong");
    assert!(matches!(stranger.step().await, Step::Wait(_)));
    assert_eq!(lab.sweeper.lock().unwrap().joins, 0);
}

#[tokio::test]
async fn a_sweeper_that_refuses_everything_does_not_get_the_whole_spool_at_once() {
    let mut lab = Lab::joined().await;
    lab.push(6);
    for (refusal, waits) in [(1, false), (2, false), (3, true), (4, true)] {
        lab.reply(Reply::Status(422, Some("invalid")));
        assert_eq!(matches!(lab.exporter.step().await, Step::Wait(_)), waits, "{refusal}");
    }
    lab.drain().await;
    assert_eq!(lab.arrived(), once_each(1..=2));
    assert_eq!(lab.queue.stats().rejected, 4);
    lab.push(1);
    lab.reply(Reply::Status(422, Some("invalid")));
    assert_eq!(lab.exporter.step().await, Step::Progress, "what was stored in between begins the count anew");
}
