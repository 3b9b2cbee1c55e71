//! The agent's package: unconfigured it is installed and does not run; configured it reports to a sweeper; an upgrade while the sweeper is away loses nothing of what was
//! measured and leaves a gap that a window outlives; removal ends it, and purging (`.deb`) takes what it knew.

use crate::{
    machine::{Format, Machine, STARTS_WITHIN, Version},
    step,
};
use heartbeat::wire::Heartbeat;
use jiff::{SignedDuration, Timestamp};
use lab::{debian::HOST, sweeper::Sweeper, wait};
use std::{path::Path, time::Duration};
use sweeper::store::Store;

const INTERVAL: Duration = Duration::from_secs(10);
const AGENT: &str = "node-agent";

const SWEEPER_CONFIG: &str = r#"
[aws]
enabled = "no"
[pricing]
source = "none"
[sweep]
schedule = "0 0 0 1 1 *"
"#;

struct Site {
    machine: Machine,
    store: Store,
}

impl Site {
    /// Every heartbeat of the one node, oldest first; none before it has joined.
    async fn heartbeats(&self) -> Vec<Heartbeat> {
        let mut nodes = self.store.nodes().await.unwrap();
        let Some(node) = nodes.pop() else { return Vec::new() };
        assert!(nodes.is_empty(), "a second node: {nodes:?}");
        let from = Timestamp::now() - SignedDuration::from_hours(1);
        let rows = self.store.heartbeats(&node.node_id, from, Timestamp::MAX).await.unwrap();
        rows.into_iter().map(|row| row.heartbeat).collect()
    }

    async fn more_than(&self, count: usize) -> Vec<Heartbeat> {
        wait::until("more heartbeats", STARTS_WITHIN, || async {
            Some(self.heartbeats().await).filter(|all| all.len() > count)
        })
        .await
    }

    /// What it keeps, to compare: its key.
    async fn key(&mut self) -> String {
        self.machine.run("sha256sum </var/lib/node-agent/node-key").await
    }
}

/// When an interval began and ended, in nanoseconds since boot.
fn span(heartbeat: &Heartbeat) -> (u64, u64) {
    let interval = heartbeat.interval.unwrap();
    (interval.start_boottime_ns, interval.end_boottime_ns)
}

/// The agent's configuration, as a line of shell commands: where the sweeper is, and the join secret, which `secret` prints.
pub(crate) fn configure(url: &str, secret: &str) -> String {
    let lines = format!("sweeper_url = \"{url}\"\\ninterval = \"{}s\"\\n", INTERVAL.as_secs());
    format!("printf '{lines}' >/etc/cloud-sweeper/node-agent.toml; umask 077; {secret} >/etc/cloud-sweeper/join-token")
}

async fn installed_unconfigured(machine: &mut Machine) {
    step("installs the old version, without a configuration");
    machine.install(AGENT, Version::Old).await;
    let untouched = machine.format.untouched();
    machine.assert_state(AGENT, &["ActiveState=inactive", "Result=success", "NRestarts=0", untouched]).await;
    machine.assert_state(AGENT, &["ConditionResult=no"]).await;
    machine.assert_nothing_failed().await;
    machine.run("test -x /usr/bin/node-agent-gpu && test -f /usr/share/man/man1/node-agent-doctor.1.gz").await;
    machine.assert_unchanged(AGENT).await;
    machine.run("id node-agent").await;

    step("has a join secret and no sweeper's address: it says so once, and stays off");
    machine.run("echo none >/etc/cloud-sweeper/join-token").await;
    machine.run("systemctl start node-agent; sleep 15").await;
    machine.assert_state(AGENT, &["ActiveState=failed", "Result=exit-code", "NRestarts=0"]).await;
    let said = machine.run("journalctl --no-pager --unit node-agent").await;
    assert!(said.contains("sweeper_url"), "{said}");
}

async fn reports(site: &mut Site, sweeper: &Sweeper) {
    step("is configured and started");
    let configured = configure(&format!("http://{HOST}:{}", sweeper.port()), &format!("echo {}", sweeper.join_token()));
    site.machine.run(&configured).await;
    site.machine.run("systemctl reset-failed node-agent; systemctl enable --quiet --now node-agent").await;
    let all = site.more_than(1).await;
    let source = all.last().unwrap().coverage.as_ref().unwrap().source();
    assert_eq!(source, heartbeat::wire::Source::Ebpf, "it counts by its programs");
    site.machine.assert_state(AGENT, &["ActiveState=active", "NRestarts=0", "ConditionResult=yes"]).await;
}

async fn upgraded(site: &mut Site, sweeper: &mut Sweeper) {
    step("is upgraded while the sweeper is away");
    let key = site.key().await;
    let process = site.machine.process(AGENT).await;
    sweeper.stop().await;
    let before = site.heartbeats().await;
    // Two that nobody takes: they are on disk when the new version comes. It has joined, and its secret is gone.
    site.machine.run(&format!("sleep {}; rm /etc/cloud-sweeper/join-token", 2 * INTERVAL.as_secs() + 2)).await;
    site.machine.upgrade(AGENT).await;
    site.machine.assert_state(AGENT, &["ActiveState=active", "UnitFileState=enabled"]).await;
    assert_ne!(site.machine.process(AGENT).await, process, "it was restarted");
    assert_eq!(site.key().await, key, "it is the same node");
    // In microseconds since boot: before it no new process measured, behind it no old one.
    let at = site.machine.run("systemctl show node-agent --property=ActiveEnterTimestampMonotonic --value").await;
    let at = at.parse::<u64>().unwrap() * 1000;
    sweeper.start_again().await;
    // The newest are sent first. All are there once those that waited are, one of the new process, and just one gap is left, that of the restart.
    let last_before = span(before.last().unwrap()).1;
    let (all, waited, gaps) = wait::until("all that was measured around the restart", STARTS_WITHIN, || async {
        let all = site.heartbeats().await;
        let waited = all.iter().filter(|one| span(one).0 >= last_before && span(one).1 <= at).count();
        let gaps = all.windows(2).map(|pair| span(&pair[1]).0 - span(&pair[0]).1).filter(|gap| *gap > 0);
        let gaps: Vec<u64> = gaps.collect();
        let is_whole = all.last().is_some_and(|last| span(last).0 > at) && gaps.len() == 1;
        (is_whole && waited >= 2).then_some((all, waited, gaps))
    })
    .await;
    let longest = Duration::from_nanos(gaps.first().copied().unwrap_or(0));
    step(&format!(
        "{} heartbeats, {waited} of them kept on disk over the upgrade; nothing is missing but {longest:?}",
        all.len()
    ));
    // What a window outlives: docs/architecture.md.
    assert!(longest <= 2 * INTERVAL, "{longest:?}");
}

async fn removed(machine: &mut Machine) {
    step("is removed");
    machine.remove(AGENT).await;
    machine.assert_state(AGENT, &["ActiveState=inactive"]).await;
    machine.run("test ! -e /usr/bin/node-agent && ! pidof node-agent && test -s /var/lib/node-agent/node-key").await;
    machine.assert_nothing_failed().await;
    if machine.format == Format::Deb {
        step("is purged");
        machine.run("dpkg --purge node-agent").await;
        // What the operator wrote stays.
        assert_eq!(machine.left_of(AGENT).await, "/etc/cloud-sweeper/node-agent.toml");
    }
}

/// Tries the package of this format.
pub(crate) async fn try_package(format: Format, versions: [&Path; 2]) {
    let folder = tempfile::tempdir().unwrap();
    let mut sweeper = Sweeper::start(&folder.path().join("sweeper"), SWEEPER_CONFIG, &[]).await;
    let database = format!("sqlite://{}/data/sweeper.db?mode=rw", sweeper.folder().display());
    let store = Store::connect(&database).await.unwrap();
    let mut machine = Machine::boot(&folder.path().join("machine"), format, &[AGENT], versions, &[]).await;
    installed_unconfigured(&mut machine).await;
    let mut site = Site { machine, store };
    reports(&mut site, &sweeper).await;
    upgraded(&mut site, &mut sweeper).await;
    removed(&mut site.machine).await;
}
