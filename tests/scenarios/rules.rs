//! Rules that change under a running agent: a new version is taken over without a restart and sorts the very next samples, a
//! bad one is refused with line and reason and the one before stays, on the sweeper and on the agent alike.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use heartbeat::wire::{self, CapabilityStatus, Class};
use jiff::Timestamp;
use lab::{agent::Agent, process::Running, sweeper::Sweeper, wait};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};
use sweeper::store::Store;

const TIMEOUT: Duration = Duration::from_secs(90);
/// What the rules of the scenario learn to know, by its executable file's name: a program of the distribution's.
const UPKEEP: &str = "sleep";
const UNIT: &str = "lab-upkeep.service";

const FIRST: &str = "version = \"lab-1\"\nbase = \"built-in\"\n";
const SECOND: &str = r#"version = "lab-2"
base = "built-in"
[housekeeping]
names = ["sleep"]
[[attribution]]
kind = "lab"
level = "unit"
path = "lab-rules-{id:number}/lab-upkeep.service"
id = "{id}"
"#;
const BAD: &str = "version = \"lab-3\"\nbase = \"built-in\"\n[housekeeping]\nnames = [\"chronyd\", \"bash\"]\n";

/// A cgroup of the v2 tree with one process in it.
struct Upkeep {
    folder: PathBuf,
    process: Option<Running>,
}

impl Upkeep {
    fn start(scratch: &Path) -> Self {
        let mounts = fs::read_to_string("/proc/mounts").unwrap();
        let mount = mounts.lines().find(|line| line.split(' ').nth(2) == Some("cgroup2")).unwrap();
        let folder = Path::new(mount.split(' ').nth(1).unwrap()).join(format!("lab-rules-{}", std::process::id()));
        let unit = folder.join(UNIT);
        fs::create_dir_all(&unit).unwrap();
        let process = Running::start(UPKEEP, Command::new(UPKEEP).arg("600"), scratch);
        fs::write(unit.join("cgroup.procs"), process.pid().as_raw_nonzero().to_string()).unwrap();
        Self { folder, process: Some(process) }
    }

    fn key(&self) -> String {
        format!("/{}/{UNIT}", self.folder.file_name().unwrap().to_str().unwrap())
    }
}

impl Drop for Upkeep {
    fn drop(&mut self) {
        drop(self.process.take());
        // Empty now; the kernel may need a moment to see it, and what stays is an empty folder.
        let _ = fs::remove_dir(self.folder.join(UNIT)).and_then(|()| fs::remove_dir(&self.folder));
    }
}

async fn heartbeats(store: &Store) -> Vec<wire::Heartbeat> {
    let mut all = Vec::new();
    for node in store.nodes().await.unwrap() {
        let rows = store.heartbeats(&node.node_id, Timestamp::UNIX_EPOCH, Timestamp::MAX).await.unwrap();
        all.extend(rows.into_iter().map(|row| row.heartbeat));
    }
    all.sort_by_key(|heartbeat| heartbeat.sequence);
    all
}

fn version(heartbeat: &wire::Heartbeat) -> &str {
    heartbeat.host.as_ref().map_or("", |host| host.rules_version.as_str())
}

fn rules_capability(heartbeat: &wire::Heartbeat) -> (CapabilityStatus, String) {
    let capabilities = &heartbeat.coverage.as_ref().unwrap().capabilities;
    let capability = capabilities.iter().find(|capability| capability.name == "rules").unwrap();
    (capability.status(), capability.reason.clone())
}

/// The row of a workload: its class, and the kind and id of its name.
fn row(heartbeat: &wire::Heartbeat, key: &str) -> Option<(Class, String)> {
    let row = heartbeat.workloads.iter().find(|row| row.key == key && row.live_processes > 0)?;
    let name = row.name.as_ref().map(|name| format!("{} {}", name.kind, name.id));
    Some((row.class(), name.unwrap_or_default()))
}

/// Waits for a heartbeat behind `after` that is as it should be.
async fn until(store: &Store, what: &str, after: u64, is: impl Fn(&wire::Heartbeat) -> bool) -> wire::Heartbeat {
    wait::until(what, TIMEOUT, || async {
        heartbeats(store).await.into_iter().find(|heartbeat| heartbeat.sequence > after && is(heartbeat))
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn new_rules_are_taken_over_while_running_and_bad_ones_are_refused_by_line() {
    let scratch = tempfile::tempdir().unwrap();
    let rules = scratch.path().join("rules.toml");
    fs::write(&rules, FIRST).unwrap();
    let config = format!("[ingest]\nrules_file = \"{}\"\n", rules.display());
    let sweeper = Sweeper::start(&scratch.path().join("sweeper"), &config, &[]).await;
    let upkeep = Upkeep::start(scratch.path());
    let own = format!(
        "sweeper_url = \"{}\"\njoin_token = \"{}\"\ninterval = \"500ms\"\nidentity = \"host\"\n",
        sweeper.url(),
        sweeper.join_token(),
    );
    let mut agent = Agent::start(&scratch.path().join("agent"), &own, &[]);
    let store =
        Store::connect(&format!("sqlite://{}/data/sweeper.db?mode=rw", sweeper.folder().display())).await.unwrap();

    // It begins with what is built in, and hears of the first version by its first acknowledgement.
    let key = upkeep.key();
    let work = Some((Class::Workload, format!("systemd {UNIT}")));
    let first = until(&store, "the first rules", 0, |one| version(one) == "lab-1" && row(one, &key) == work).await;

    // A new version makes housekeeping of it and calls it otherwise, without a restart.
    fs::write(&rules, SECOND).unwrap();
    let second = until(&store, "the second rules", first.sequence, |one| version(one) == "lab-2").await;
    let id = std::process::id();
    assert_eq!(row(&second, &key), Some((Class::Housekeeping, format!("lab {id}"))));
    assert_eq!(rules_capability(&second), (CapabilityStatus::Ok, String::new()));
    assert_eq!(agent.log().matches("measuring from here on").count(), 1, "the agent went on");

    // No heartbeat mixes two sets; where the rows were sorted anew, the counters began anew.
    let all = heartbeats(&store).await;
    for one in all.iter().filter(|one| row(one, &key).is_some()) {
        let expected = if version(one) == "lab-2" { Class::Housekeeping } else { Class::Workload };
        assert_eq!(row(one, &key).unwrap().0, expected, "{}", version(one));
    }
    let since = |one: &wire::Heartbeat| one.interval.unwrap().counters_since_boottime_ns;
    let last_before = all.iter().rfind(|one| one.sequence < second.sequence).unwrap();
    assert_eq!(since(&second), last_before.interval.unwrap().end_boottime_ns);
    assert_eq!(since(last_before), since(&first));
    for pair in all.windows(2).filter(|pair| since(&pair[0]) == since(&pair[1])) {
        let cpu = |one: &wire::Heartbeat| one.workloads.iter().map(|row| row.cpu_ns.unwrap_or(0)).sum::<u64>();
        assert!(cpu(&pair[1]) >= cpu(&pair[0]), "a counter ran backwards");
    }

    // A bad file: the sweeper says line and reason, counts it, and goes on serving the one before.
    fs::write(&rules, BAD).unwrap();
    wait::until("the sweeper's refusal", TIMEOUT, || async {
        sweeper.metrics().await.contains("rules_refused_total 1").then_some(())
    })
    .await;
    let log = sweeper.log();
    let refusal = log.lines().find(|line| line.contains("these rules stay in force")).unwrap();
    assert!(refusal.contains("line 4, column 21: `bash` runs what others wrote"), "{refusal}");
    let checked = sweeper.run(&["rules", "check", rules.to_str().unwrap()]).await;
    assert_eq!(checked.status.code(), Some(2));
    let last = heartbeats(&store).await.last().unwrap().sequence;
    let after = until(&store, "a heartbeat after the refusal", last + 1, |_| true).await;
    assert_eq!((version(&after), row(&after, &key).unwrap().0), ("lab-2", Class::Housekeeping));

    // The next start finds what was taken over; a local file wins over it, and a bad one is refused the same way.
    agent.stop().await;
    let local = scratch.path().join("local.toml");
    fs::write(&local, FIRST.replace("lab-1", "own-1")).unwrap();
    let kept = agent.run(&["rules", "show"]).await;
    assert!(String::from_utf8_lossy(&kept.stdout).contains("version = \"lab-2\""), "{kept:?}");
    let config = format!("{own}rules_file = \"{}\"\n", local.display());
    fs::write(agent.folder().join("agent.toml"), config).unwrap();
    agent.start_again();
    let own = until(&store, "the host's own rules", after.sequence, |one| version(one) == "own-1").await;
    fs::write(&local, BAD).unwrap();
    let complaint = |one: &wire::Heartbeat| rules_capability(one).0 == CapabilityStatus::Broken;
    let refused = until(&store, "the agent's refusal", own.sequence, complaint).await;
    assert_eq!(version(&refused), "own-1");
    let (_, reason) = rules_capability(&refused);
    assert!(reason.contains("line 4, column 21: `bash`") && reason.contains("own-1 stays in force"), "{reason}");
    let drops = refused.coverage.unwrap().drops;
    assert!(drops.iter().any(|drop| drop.name == "detail_rules_refused" && drop.count == 1), "{drops:?}");

    let checked = agent.run(&["rules", "check", local.to_str().unwrap(), "--output", "json"]).await;
    let report: serde_json::Value = serde_json::from_slice(&checked.stdout).unwrap();
    assert_eq!((checked.status.code(), &report["line"], &report["accepted"]), (Some(2), &4.into(), &false.into()));
    agent.stop().await;
}
