//! Whoever asks a node what it does now is answered within its interval, by a sample that the schedule knows nothing of; who is not there is told to be so.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use heartbeat::wire;
use jiff::Timestamp;
use lab::{agent::Agent, sweeper::Sweeper, wait};
use std::time::{Duration, Instant};
use sweeper::store::Store;

lab::on_both_databases! {
    a_node_that_is_asked_measures_at_once,
}

/// Long, so that a sample of the schedule cannot be taken for an answer.
const INTERVAL: Duration = Duration::from_secs(10);
const TIMEOUT: Duration = Duration::from_secs(60);

async fn heartbeats(store: &Store) -> Vec<wire::Heartbeat> {
    let mut all = Vec::new();
    for node in store.nodes().await.unwrap() {
        let rows = store.heartbeats(&node.node_id, Timestamp::UNIX_EPOCH, Timestamp::MAX).await.unwrap();
        all.extend(rows.into_iter().map(|row| row.heartbeat));
    }
    all
}

fn length(heartbeat: &wire::Heartbeat) -> Duration {
    let interval = heartbeat.interval.unwrap();
    Duration::from_nanos(interval.end_boottime_ns - interval.start_boottime_ns)
}

async fn a_node_that_is_asked_measures_at_once(url: String) {
    let folder = tempfile::tempdir().unwrap();
    let config = format!("[store]\nurl = \"{url}\"\n[aws]\nenabled = \"no\"\n");
    let sweeper = Sweeper::start(&folder.path().join("sweeper"), &config, &[]).await;
    let config = format!(
        "sweeper_url = \"{}\"\njoin_token = \"{}\"\ninterval = \"{}s\"\nidentity = \"host\"\n",
        sweeper.url(),
        sweeper.join_token(),
        INTERVAL.as_secs()
    );
    let mut agent = Agent::start(&folder.path().join("agent"), &config, &[]);
    let store = Store::connect(&url).await.unwrap();
    wait::until("two heartbeats", TIMEOUT, || async { (heartbeats(&store).await.len() >= 2).then_some(()) }).await;
    let node = store.nodes().await.unwrap().remove(0).node_id.to_string();

    let asked = Instant::now();
    let told = sweeper.json(&["nodes", &node, "--now"]).await;
    let waited = asked.elapsed();
    // With the next acknowledgement the agent learns of it.
    assert!(waited < INTERVAL + Duration::from_secs(10), "{waited:?}: {told:#}");
    let all = heartbeats(&store).await;
    let answers: Vec<_> = all.iter().filter(|one| !one.answers.is_empty()).collect();
    let [answer] = answers.as_slice() else { panic!("{} answers", answers.len()) };
    assert!(heartbeat::api::is_question(&answer.answers), "{}", answer.answers);
    // Long enough to be judged by, and no sample of the schedule; a sample is taken some milliseconds after its tick.
    let shortest = Duration::from_millis(1_900);
    assert!((shortest..INTERVAL / 2).contains(&length(answer)), "{:?} after the one before", length(answer));
    let newest = all.iter().map(|one| one.interval.unwrap().end_unix_ms).max().unwrap();
    let end = answer.interval.unwrap().end_unix_ms;
    assert_eq!(end, newest, "it is judged by what was measured last");
    let judged: Timestamp = told["judged_at"].as_str().unwrap().parse().unwrap();
    let age = judged.as_millisecond() - end;
    assert!((0..5_000).contains(&age), "{age} ms old");

    // The schedule goes on, and nothing is measured twice: each heartbeat begins where the one before it ended. The question is offered on, and not heeded again.
    let count = all.len();
    wait::until("two heartbeats more", TIMEOUT, || async {
        (heartbeats(&store).await.len() >= count + 2).then_some(())
    })
    .await;
    let mut all = heartbeats(&store).await;
    all.sort_by_key(|one| one.sequence);
    assert_eq!(all.iter().filter(|one| !one.answers.is_empty()).count(), 1);
    for pair in all.windows(2) {
        let [before, after] = [&pair[0], &pair[1]].map(|one| one.interval.unwrap());
        assert_eq!(after.start_boottime_ns, before.end_boottime_ns, "{} and {}", pair[0].sequence, pair[1].sequence);
        let is_in_turn = pair[1].answers.is_empty();
        assert!(!is_in_turn || length(&pair[1]) >= INTERVAL / 2 - Duration::from_millis(500), "{:?}", length(&pair[1]));
    }

    // Nobody is there to answer.
    agent.stop().await;
    let none = sweeper.run(&["nodes", "host:nobody", "--now"]).await;
    assert_eq!(none.status.code(), Some(1));
    let text = String::from_utf8(none.stderr).unwrap();
    assert!(text.contains("no node `host:nobody` has joined"), "{text}");
}
