//! A disk that fills up under the agent: it goes on in memory, says so, and returns to the disk when there is room again. Where its log
//! cannot be written either, it goes on without.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use heartbeat::wire;
use jiff::Timestamp;
use lab::{agent::Agent, process::Running, sweeper::Sweeper, tmpfs::Tmpfs, wait};
use std::{fs, path::Path, process::Command, time::Duration};
use sweeper::store::Store;

const INTERVAL: Duration = Duration::from_millis(300);
const TIMEOUT: Duration = Duration::from_secs(60);

async fn stored(store: &Store) -> Vec<wire::Heartbeat> {
    let mut all = Vec::new();
    for node in store.nodes().await.unwrap() {
        let rows = store.heartbeats(&node.node_id, Timestamp::UNIX_EPOCH, Timestamp::MAX).await.unwrap();
        all.extend(rows.into_iter().map(|row| row.heartbeat));
    }
    all
}

/// State and reason of the capability `spool`.
fn spool(heartbeat: &wire::Heartbeat) -> (wire::CapabilityStatus, String) {
    let capabilities = &heartbeat.coverage.as_ref().unwrap().capabilities;
    let capability = capabilities.iter().find(|capability| capability.name == "spool").unwrap();
    (capability.status(), capability.reason.clone())
}

async fn until(store: &Store, what: &str, condition: impl Fn(&[wire::Heartbeat]) -> bool) -> Vec<wire::Heartbeat> {
    wait::until(what, TIMEOUT, || async {
        let all = stored(store).await;
        condition(&all).then_some(all)
    })
    .await
}

fn records(folder: &Path) -> usize {
    let mut open = vec![folder.to_owned()];
    let mut count = 0;
    while let Some(path) = open.pop() {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            let path = entry.path();
            count += usize::from(path.extension().is_some_and(|kind| kind == "heartbeat"));
            if path.is_dir() {
                open.push(path);
            }
        }
    }
    count
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_costs_no_heartbeat_and_is_named() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("agent");
    let state = folder.join("state");
    let disk = Tmpfs::mount(&state, 512 * 1024);
    let mut sweeper = Sweeper::start(&scratch.path().join("sweeper"), "", &[]).await;
    let config = format!(
        "sweeper_url = \"{}\"\njoin_token = \"{}\"\ninterval = \"{}ms\"\nidentity = \"host\"\nlog = \"node_agent=debug\"\n",
        sweeper.url(),
        sweeper.join_token(),
        INTERVAL.as_millis()
    );
    let mut agent = Agent::start(&folder, &config, &[]);
    let database = format!("sqlite://{}/data/sweeper.db?mode=rw", sweeper.folder().display());
    let store = Store::connect(&database).await.unwrap();
    until(&store, "heartbeats with a disk", |all| all.len() >= 2).await;

    // The disk is full: heartbeats arrive all the same, and say why.
    let all = until(&store, "heartbeats that say it", |all| {
        // A heartbeat that is sent gives its block back: that one is taken as well.
        disk.fill();
        all.iter().filter(|one| spool(one).0 == wire::CapabilityStatus::Broken).count() >= 3
    })
    .await;
    assert_eq!(spool(&all[0]), (wire::CapabilityStatus::Ok, String::new()));
    let (_, reason) = spool(all.last().unwrap());
    assert!(reason.contains("No space left on device") && reason.contains("wait in memory"), "{reason}");

    // The sweeper goes as well: what is measured now waits in memory alone, and goes to the disk once there is room.
    sweeper.stop().await;
    agent.process().line_with("the sweeper does not take heartbeats", TIMEOUT).await;
    let waiting = "heartbeats that wait in memory";
    wait::until(waiting, TIMEOUT, || async { (agent.log().matches("still does not take").count() >= 3).then_some(()) })
        .await;
    assert_eq!(records(&state), 0, "a full disk took something");
    disk.make_room();
    wait::until("what waited in memory on the disk", TIMEOUT, || async { (records(&state) >= 3).then_some(()) }).await;

    sweeper.start_again().await;
    let before = stored(&store).await.len();
    let all = until(&store, "everything, and two more with a disk", |all| {
        let healthy = all.iter().rev().take_while(|one| spool(one).0 == wire::CapabilityStatus::Ok).count();
        all.len() > before && healthy >= 2 && all.iter().map(|one| one.sequence).max() == u64::try_from(all.len()).ok()
    })
    .await;
    agent.stop().await;
    let mut sequences = all.iter().map(|one| one.sequence).collect::<Vec<_>>();
    sequences.sort_unstable();
    assert!(sequences.into_iter().eq(1..=u64::try_from(all.len()).unwrap()), "each once, none missing");
    let log = agent.log();
    let warnings = log.lines().filter(|line| line.contains("WARN") && line.contains("the disk takes no heartbeats"));
    assert_eq!(warnings.count(), 1, "said once:\n{log}");
}

/// `command` with its standard error on a disk that is always full.
fn with_a_full_log(command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec \"$@\" 2>/dev/full", "sh"]).arg(command.get_program()).args(command.get_args());
    for (key, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(key, value),
            None => shell.env_remove(key),
        };
    }
    shell
}

#[tokio::test]
async fn a_log_that_cannot_be_written_ends_neither_agent_nor_sweeper() {
    let scratch = tempfile::tempdir().unwrap();
    let mut sweeper = Sweeper::start(&scratch.path().join("sweeper"), "", &[]).await;
    let config = format!(
        "sweeper_url = \"{}\"\njoin_token = \"{}\"\ninterval = \"{}ms\"\nidentity = \"host\"\nlog = \"debug\"\n",
        sweeper.url(),
        sweeper.join_token(),
        INTERVAL.as_millis()
    );
    let agent = Agent::prepare(&scratch.path().join("agent"), &config, &[]);
    let mut command = with_a_full_log(agent.command().arg("run"));
    let mut running = Running::start("agent-without-log", &mut command, scratch.path());
    let database = format!("sqlite://{}/data/sweeper.db?mode=rw", sweeper.folder().display());
    let store = Store::connect(&database).await.unwrap();
    wait::until("three intervals", TIMEOUT, || {
        let ended = running.ended();
        assert!(ended.is_none(), "it ended: {ended:?}");
        async { (stored(&store).await.len() >= 3).then_some(()) }
    })
    .await;
    assert!(running.terminate(TIMEOUT).await.success());

    sweeper.stop().await;
    let mut command = with_a_full_log(sweeper.command().arg("serve"));
    let mut running = Running::start("sweeper-without-log", &mut command, scratch.path());
    let url = format!("{}/readyz", sweeper.url());
    wait::until("the sweeper to be ready", TIMEOUT, || {
        let ended = running.ended();
        assert!(ended.is_none(), "it ended: {ended:?}");
        let answer = reqwest::get(url.clone());
        async { answer.await.ok().filter(|answer| answer.status().is_success()) }
    })
    .await;
    assert!(running.terminate(TIMEOUT).await.success());
}

/// With a state from better days (a lock, a token, a file that is no record), and with none at all.
#[tokio::test]
async fn an_agent_starts_on_a_read_only_disk_and_reports() {
    let scratch = tempfile::tempdir().unwrap();
    let sweeper = Sweeper::start(&scratch.path().join("sweeper"), "", &[]).await;
    let database = format!("sqlite://{}/data/sweeper.db?mode=rw", sweeper.folder().display());
    let store = Store::connect(&database).await.unwrap();
    let config = format!(
        "sweeper_url = \"{}\"\njoin_token = \"{}\"\ninterval = \"{}ms\"\nidentity = \"host\"\n",
        sweeper.url(),
        sweeper.join_token(),
        INTERVAL.as_millis()
    );
    for had_a_state in [true, false] {
        let folder = scratch.path().join(format!("agent-{had_a_state}"));
        let state = folder.join("state");
        let disk = Tmpfs::mount(&state, 512 * 1024);
        let mut agent = Agent::prepare(&folder, &config, &[]);
        if had_a_state {
            let before = stored(&store).await.len();
            agent.start_again();
            until(&store, "a heartbeat", |all| all.len() > before).await;
            agent.stop().await;
            for boot in
                fs::read_dir(fs::read_dir(state.join("spool")).unwrap().next().unwrap().unwrap().path()).unwrap()
            {
                fs::write(boot.unwrap().path().join("half.new"), "half").unwrap();
            }
        }
        disk.make_read_only();
        if !had_a_state {
            // Its key lay in the other folder: this is another machine under the same name.
            for node in store.nodes().await.unwrap() {
                let revoked = sweeper.run(&["nodes", "revoke", &node.node_id.to_string()]).await;
                assert!(revoked.status.success(), "{revoked:?}");
            }
        }
        let before = stored(&store).await.len();
        agent.start_again();
        let all = until(&store, "two heartbeats without a disk", |all| all.len() >= before + 2).await;
        assert!(all.iter().any(|one| spool(one).1.contains("Read-only file system")), "it says why");
        agent.stop().await;
    }
}
