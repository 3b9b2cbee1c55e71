//! An outage: the sweeper is away for ten intervals and the agent is killed in between; no heartbeat is missing afterwards,
//! and none is stored twice. What was measured last arrives first.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use heartbeat::{NodeId, wire};
use jiff::Timestamp;
use lab::{agent::Agent, relay::Relay, sweeper::Sweeper, wait};
use std::{
    collections::BTreeMap,
    fs,
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};
use sweeper::{
    store::Store,
    verdict::{Case, Policy},
};

/// Long enough for a busy machine to keep it, short enough for a test.
const INTERVAL: Duration = Duration::from_millis(500);
const TIMEOUT: Duration = Duration::from_secs(60);

/// The heartbeats that wait in the agent's spool, by the names of their files.
fn spooled(agent: &Agent) -> Vec<u64> {
    let boots = folders(&agent.folder().join("state/spool")).into_iter().flat_map(|node| folders(&node));
    let names = boots.flat_map(|boot| fs::read_dir(boot).into_iter().flatten());
    let names = names.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut sequences: Vec<u64> = names.filter_map(|name| name.strip_suffix(".heartbeat")?.parse().ok()).collect();
    sequences.sort_unstable();
    sequences
}

fn folders(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| path.is_dir()).collect()
}

async fn until_spooled(agent: &Agent, count: usize) -> Vec<u64> {
    wait::until(&format!("{count} heartbeats in the spool"), TIMEOUT, || async {
        let sequences = spooled(agent);
        (sequences.len() >= count).then_some(sequences)
    })
    .await
}

async fn open(sweeper: &Sweeper) -> Store {
    Store::connect(&format!("sqlite://{}/data/sweeper.db?mode=rw", sweeper.folder().display())).await.unwrap()
}

async fn stored(store: &Store) -> Vec<(NodeId, String, wire::Heartbeat)> {
    let mut all = Vec::new();
    for node in store.nodes().await.unwrap() {
        let rows = store.heartbeats(&node.node_id, Timestamp::UNIX_EPOCH, Timestamp::MAX).await.unwrap();
        all.extend(rows.into_iter().map(|row| (node.node_id.clone(), row.boot_id.to_string(), row.heartbeat)));
    }
    all
}

async fn until_stored(store: &Store, count: usize) {
    wait::until(&format!("{count} stored heartbeats"), TIMEOUT, || async {
        (stored(store).await.len() >= count).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sweeper_that_was_away_and_an_agent_that_was_killed_lose_and_double_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let mut sweeper = Sweeper::start(&scratch.path().join("sweeper"), "", &[]).await;
    let relay = Relay::start(sweeper.port()).await;
    let config = format!(
        "sweeper_url = \"{}\"\njoin_token = \"{}\"\ninterval = \"{}ms\"\nidentity = \"host\"\n",
        relay.url(),
        sweeper.join_token(),
        INTERVAL.as_millis()
    );
    let mut agent = Agent::start(&scratch.path().join("agent"), &config, &[]);
    until_stored(&open(&sweeper).await, 3).await;

    // The sweeper goes. Five intervals later the agent is killed, and started again, still without a sweeper.
    sweeper.stop().await;
    let before_the_kill = until_spooled(&agent, 5).await;
    agent.kill();
    let left = spooled(&agent);
    assert!(left.starts_with(&before_the_kill), "kill -9 took something: {before_the_kill:?}, {left:?}");
    agent.start_again();
    let after_ten = until_spooled(&agent, left.len().max(5) + 5).await;
    assert!(after_ten.starts_with(&left), "the restart took something: {left:?}, {after_ten:?}");
    let last_before_the_return = *after_ten.last().unwrap();

    // Both are there again: the spool empties, and heartbeats go on.
    let envelopes_before = relay.envelopes().len();
    sweeper.start_again().await;
    let store = open(&sweeper).await;
    until_stored(&store, usize::try_from(last_before_the_return).unwrap() + 2).await;
    agent.stop().await;
    // On a busy machine the last ones may still wait for the next start: they are not lost either.
    let waiting = spooled(&agent);
    sweeper.stop().await;

    let stored = stored(&store).await;
    let first = stored.first().unwrap();
    assert!(stored.iter().all(|one| (&one.0, &one.1) == (&first.0, &first.1)), "one node, one boot");
    let mut times: BTreeMap<u64, u32> = BTreeMap::new();
    for (_, _, heartbeat) in &stored {
        *times.entry(heartbeat.sequence).or_default() += 1;
    }
    assert!(times.values().all(|count| *count == 1), "stored twice: {times:?}");
    let count = u64::try_from(stored.len()).unwrap();
    assert_eq!(times.keys().copied().collect::<Vec<_>>(), (1..=count).collect::<Vec<_>>(), "something is missing");
    assert!(count > last_before_the_return);
    let next = waiting.iter().copied().filter(|sequence| *sequence > count).collect::<Vec<_>>();
    assert!(next.iter().zip(count + 1..).all(|(found, due)| *found == due), "a gap after {count}: {waiting:?}");

    // The first request after the outage carried the present alone; the past followed, from the newest to the oldest.
    let sequences =
        |envelope: &heartbeat::envelope::Checked| envelope.heartbeats.iter().map(|one| one.sequence).collect();
    let envelopes: Vec<Vec<u64>> = relay.envelopes()[envelopes_before..].iter().map(sequences).collect();
    assert!(matches!(envelopes[0].as_slice(), [one] if *one >= last_before_the_return), "{envelopes:?}");
    let backlog = envelopes.iter().flat_map(|envelope| envelope.iter().rev());
    let backlog = backlog.copied().filter(|sequence| *sequence <= last_before_the_return).collect::<Vec<_>>();
    assert!(backlog.is_sorted_by(|a, b| a > b), "each once, from the newest to the oldest: {envelopes:?}");

    // What the sequences say, the kernel's clock says too: within one process of the agent, interval follows interval.
    let intervals = stored.iter().map(|(_, _, heartbeat)| heartbeat.interval.unwrap()).collect::<Vec<_>>();
    let mut processes = 1;
    for pair in intervals.windows(2) {
        if pair[0].counters_since_boottime_ns == pair[1].counters_since_boottime_ns {
            assert_eq!(pair[1].start_boottime_ns, pair[0].end_boottime_ns);
        } else {
            assert!(pair[1].start_boottime_ns >= pair[0].end_boottime_ns, "no time is counted twice");
            processes += 1;
        }
    }
    assert_eq!(processes, 2, "before and after the kill");
}

/// The window that a verdict rests on is not broken by a restart, and what the host did meanwhile is not overlooked.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_is_killed_and_started_again_leaves_one_gap_which_the_hosts_own_counters_tell_of() {
    let scratch = tempfile::tempdir().unwrap();
    let sweeper = Sweeper::start(&scratch.path().join("sweeper"), "", &[]).await;
    // Twice as long is the longest gap: what is left of an interval, a second of CPU time and loading the programs again, which together take some four
    // seconds, and twelve beside a compiler.
    let config = format!(
        "sweeper_url = \"http://127.0.0.1:{}\"\njoin_token = \"{}\"\ninterval = \"10s\"\nidentity = \"host\"\nsource = \"ebpf\"\n",
        sweeper.port(),
        sweeper.join_token(),
    );
    let mut agent = Agent::start(&scratch.path().join("agent"), &config, &[]);
    let store = open(&sweeper).await;
    until_stored(&store, 2).await;
    let before_the_kill = stored(&store).await.len();
    agent.kill();
    // The limit ends it when it has used a second of CPU time.
    let spin = Command::new("bash").args(["-c", "ulimit -t 1; while :; do :; done"]).status().unwrap();
    assert_eq!(spin.signal(), Some(9), "{spin}");
    agent.start_again();
    until_stored(&store, before_the_kill + 2).await;
    agent.stop().await;

    let heartbeats: Vec<_> =
        stored(&store).await.into_iter().map(|(_, boot, it)| (boot.parse().unwrap(), it)).collect();
    let intervals = heartbeats.iter().map(|(_, heartbeat)| heartbeat.interval.unwrap()).collect::<Vec<_>>();
    let cpus = heartbeats[0].1.host.as_ref().unwrap().cpus;
    let case = Case::new(intervals.last().unwrap().end_unix_ms, Policy::default(), heartbeats);
    assert_eq!(case.observations.len(), intervals.len() - 1, "every two heartbeats can be compared");
    let (restarts, others): (Vec<_>, Vec<_>) = case.observations.iter().partition(|one| one.restart_gap_ms.is_some());
    let [restart] = restarts.as_slice() else { panic!("one restart: {restarts:?}") };
    let changes =
        intervals.windows(2).find(|pair| pair[0].counters_since_boottime_ns != pair[1].counters_since_boottime_ns);
    let [last, first] = changes.unwrap() else { unreachable!("a pair") };
    let gap_ns = first.counters_since_boottime_ns - last.end_boottime_ns;
    assert_eq!(restart.restart_gap_ms, Some(i64::try_from(gap_ns / 1_000_000).unwrap()));
    assert!(others.len() >= 2, "before and after: {others:?}");

    let span_ns = u64::try_from(restart.end_unix_ms - restart.start_unix_ms).unwrap() * 1_000_000;
    // The host's counter is kept by ticks.
    let told = restart.unattributed_cpu_ns.unwrap();
    assert!((950_000_000..=span_ns * u64::from(cpus)).contains(&told), "{told} ns without an owner");
}
