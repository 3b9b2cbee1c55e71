//! What is stamped on a heartbeat, and what ends the loop. That it delivers is proven with a real sweeper, in the scenario `outage`.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use crate::config::IdentityChoice;
use std::sync::mpsc;

#[test]
fn a_heartbeat_says_what_waits_what_was_lost_and_what_the_agent_itself_sent() {
    let directory = tempfile::tempdir().unwrap();
    let node = "host:0123456789abcdef0123456789abcdef".parse().unwrap();
    let boot = heartbeat::BootId(uuid::Uuid::from_u128(1));
    let limits = Limits { max_bytes: 2 * 4096, max_age: Duration::from_secs(3600) };
    let queue = Queue::new(Spool::open(directory.path(), &node, boot, limits).unwrap());
    queue.push(wire::Heartbeat::default());
    queue.spool().raise_minimum(0).unwrap();
    for _ in 0..5 {
        queue.push(wire::Heartbeat::default());
    }
    let mut heartbeat = wire::Heartbeat {
        counters: Some(wire::HostCounters::default()),
        coverage: Some(wire::Coverage::default()),
        ..wire::Heartbeat::default()
    };
    stamp(&mut heartbeat, &queue, &Meter::default());
    let agent = heartbeat.agent.unwrap();
    assert_eq!((agent.spooled_heartbeats, agent.spool_dropped_heartbeats), (Some(2), Some(3)));
    let drops = heartbeat.coverage.unwrap().drops;
    let drop = |name: &str, count| wire::Drop { name: name.to_owned(), count };
    assert_eq!(drops, [drop("spool_full", 3), drop("spool_unjoined", 1)]);
    let counters = heartbeat.counters.unwrap();
    assert!(counters.own_network_sent_bytes.is_some() && counters.own_network_received_bytes.is_some());
}

#[test]
fn plain_http_is_only_quiet_on_loopback() {
    for (url, loopback) in [
        ("http://127.0.0.1:8090", true),
        ("http://localhost:8090", true),
        ("http://[::1]:8090", true),
        ("http://10.0.2.2:8090", false),
        ("http://sweeper.example.com", false),
    ] {
        assert_eq!(is_loopback(url), loopback, "{url}");
    }
}

/// Samples that a test makes.
struct Made {
    next: Box<dyn FnMut() + Send>,
    is_paused: bool,
}

impl HeartbeatSource for Made {
    fn next(&mut self) -> anyhow::Result<wire::Heartbeat> {
        (self.next)();
        Ok(wire::Heartbeat::default())
    }

    fn is_paused(&self) -> bool {
        self.is_paused
    }
}

/// Ten intervals a second, and a sweeper that is not there.
async fn run_with(source: Made, stop: CancellationToken) -> anyhow::Result<Option<Made>> {
    let directory = tempfile::tempdir().unwrap();
    let surroundings = Surroundings { variables: std::collections::BTreeMap::new(), root: true };
    let mut config = Config::default_in(&surroundings);
    config.sweeper_url = Some("http://127.0.0.1:9".to_owned());
    config.state_dir = directory.path().to_owned();
    config.identity = IdentityChoice::Host;
    config.interval = Duration::from_millis(100);
    run(&config, &surroundings, config.rules(), source, stop).await
}

#[tokio::test]
async fn a_source_that_has_paused_ends_the_run_and_is_given_back() {
    let source = Made { next: Box::new(|| {}), is_paused: true };
    assert!(run_with(source, CancellationToken::new()).await.unwrap().is_some());
}

#[tokio::test]
async fn a_sample_that_hangs_does_not_keep_the_agent_from_ending() {
    let (has_begun, begun) = mpsc::channel();
    // It hangs until the end of the test, or the test's own threads would never end.
    let (_test_lives, ends) = mpsc::channel::<()>();
    let next = move || {
        let _ = has_begun.send(());
        let _ = ends.recv();
    };
    let stop = CancellationToken::new();
    let running = tokio::spawn(run_with(Made { next: Box::new(next), is_paused: false }, stop.clone()));
    tokio::task::spawn_blocking(move || begun.recv()).await.unwrap().unwrap();
    stop.cancel();
    let ended = tokio::time::timeout(LAST_SAMPLE + LAST_SENDING + Duration::from_secs(4), running).await;
    assert!(ended.unwrap().unwrap().unwrap().is_none());
}
