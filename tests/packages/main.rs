//! The agent's `.deb` on a whole Debian 12 in a micro-VM, from its installation to its removal: `make packages-test`.
//!
//! `packages-test OLD.deb NEW.deb`. Unconfigured it is installed and does not run; configured it reports to a sweeper; an upgrade while the sweeper is away loses
//! nothing of what was measured and leaves a gap that a window outlives; removal ends it, and purging takes what it knew.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stderr, reason = "what is done is read while it goes on: it takes minutes")]

use heartbeat::wire::Heartbeat;
use jiff::{SignedDuration, Timestamp};
use lab::{
    debian::{Added, Debian, HOST},
    sweeper::Sweeper,
    wait,
};
use std::{path::Path, time::Duration};
use sweeper::store::Store;

const INTERVAL: Duration = Duration::from_secs(10);
/// To load its programs takes the agent of an emulated machine seconds, and a minute where this host is busy.
const STARTS_WITHIN: Duration = Duration::from_secs(180);
/// `systemctl show` of what says whether a service runs, has failed, or goes round in circles.
const STATE: &str = "systemctl show node-agent --property=ActiveState,Result,NRestarts,UnitFileState,ConditionResult";

const SWEEPER_CONFIG: &str = r#"
[aws]
enabled = "no"
[pricing]
source = "none"
[sweep]
schedule = "0 0 0 1 1 *"
"#;

struct Site {
    machine: Debian,
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

    /// Each as NAME=VALUE.
    async fn assert_state(&mut self, expected: &[&str]) {
        let said = self.machine.run(STATE).await;
        for line in expected {
            if !said.lines().any(|one| one == *line) {
                let journal = self.machine.run("journalctl --no-pager --lines 40 --unit node-agent").await;
                panic!("{line} expected:\n{said}\n{journal}");
            }
        }
    }

    /// What it keeps, to compare: its key, and how many heartbeats wait.
    async fn key(&mut self) -> String {
        self.machine.run("sha256sum </var/lib/node-agent/node-key").await
    }
}

/// When an interval began and ended, in nanoseconds since boot.
fn span(heartbeat: &Heartbeat) -> (u64, u64) {
    let interval = heartbeat.interval.unwrap();
    (interval.start_boottime_ns, interval.end_boottime_ns)
}

fn step(what: &str) {
    eprintln!("{} {what}", Timestamp::now().strftime("%T"));
}

async fn installed_unconfigured(site: &mut Site) {
    step("installs the old version, without a configuration");
    site.machine.run("dpkg --install /root/old.deb").await;
    site.assert_state(&["ActiveState=inactive", "Result=success", "NRestarts=0", "UnitFileState=enabled"]).await;
    site.assert_state(&["ConditionResult=no"]).await;
    assert_eq!(site.machine.run("systemctl --failed --no-legend").await, "");
    site.machine.run("test -x /usr/bin/node-agent-gpu && test -f /usr/share/man/man1/node-agent-doctor.1.gz").await;
    site.machine.run("dpkg --verify node-agent && id node-agent").await;

    step("has a join secret and no sweeper's address: it says so once, and stays off");
    site.machine.run("echo none >/etc/cloud-sweeper/join-token").await;
    site.machine.run("systemctl start node-agent; sleep 15").await;
    site.assert_state(&["ActiveState=failed", "Result=exit-code", "NRestarts=0"]).await;
    let said = site.machine.run("journalctl --no-pager --unit node-agent").await;
    assert!(said.contains("sweeper_url"), "{said}");
}

async fn reports(site: &mut Site, sweeper: &Sweeper) {
    step("is configured and started");
    let (url, token) = (format!("http://{HOST}:{}", sweeper.port()), sweeper.join_token());
    let config = format!("printf 'sweeper_url = \"{url}\"\\ninterval = \"{}s\"\\n'", INTERVAL.as_secs());
    site.machine.run(&format!("{config} >/etc/cloud-sweeper/node-agent.toml")).await;
    site.machine.run(&format!("umask 077; echo {token} >/etc/cloud-sweeper/join-token")).await;
    site.machine.run("systemctl reset-failed node-agent; systemctl start node-agent").await;
    let all = site.more_than(1).await;
    let source = all.last().unwrap().coverage.as_ref().unwrap().source();
    assert_eq!(source, heartbeat::wire::Source::Ebpf, "it counts by its programs");
    site.assert_state(&["ActiveState=active", "NRestarts=0", "ConditionResult=yes"]).await;
}

async fn upgraded(site: &mut Site, sweeper: &mut Sweeper) {
    step("is upgraded while the sweeper is away");
    let key = site.key().await;
    let process = site.machine.run("systemctl show node-agent --property=MainPID").await;
    sweeper.stop().await;
    let before = site.heartbeats().await;
    // Two that nobody takes: they are on disk when the new version comes. It has joined, and its secret is gone.
    site.machine.run(&format!("sleep {}; rm /etc/cloud-sweeper/join-token", 2 * INTERVAL.as_secs() + 2)).await;
    site.machine.run("dpkg --install /root/new.deb").await;
    site.assert_state(&["ActiveState=active", "UnitFileState=enabled"]).await;
    assert_ne!(site.machine.run("systemctl show node-agent --property=MainPID").await, process, "it was restarted");
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

async fn removed(site: &mut Site) {
    step("is removed, and purged");
    site.machine.run("dpkg --remove node-agent").await;
    site.assert_state(&["ActiveState=inactive"]).await;
    site.machine
        .run("test ! -e /usr/bin/node-agent && ! pidof node-agent && test -s /var/lib/node-agent/node-key")
        .await;
    assert_eq!(site.machine.run("systemctl --failed --no-legend").await, "");
    site.machine.run("dpkg --purge node-agent").await;
    let left = "find / -xdev -path /proc -prune -o -path /sys -prune -o -name '*node-agent*' -print";
    let left =
        site.machine.run(&format!("{left} | grep -v -e ^/var/log -e ^/var/lib/dpkg -e ^/var/cache | sort")).await;
    // What the operator wrote stays.
    assert_eq!(left, "/etc/cloud-sweeper/node-agent.toml");
}

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [old, new] = arguments.as_slice() else { panic!("usage: packages-test OLD.deb NEW.deb") };
    let folder = tempfile::tempdir().unwrap();
    let mut sweeper = Sweeper::start(&folder.path().join("sweeper"), SWEEPER_CONFIG, &[]).await;
    let database = format!("sqlite://{}/data/sweeper.db?mode=rw", sweeper.folder().display());
    let store = Store::connect(&database).await.unwrap();
    let added = Added::default().with_copy("/root/old.deb", Path::new(old)).with_copy("/root/new.deb", Path::new(new));
    step("starts a Debian 12");
    let machine = Debian::boot_bare(&folder.path().join("machine"), &added, &[]).await;
    let mut site = Site { machine, store };
    installed_unconfigured(&mut site).await;
    reports(&mut site, &sweeper).await;
    upgraded(&mut site, &mut sweeper).await;
    removed(&mut site).await;
    step("done");
}
