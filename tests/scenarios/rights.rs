//! The agent needs two rights to begin and none to go on: an unprivileged user with nothing but `CAP_BPF` and `CAP_PERFMON` measures
//! exactly, and from then on no thread of the agent holds any right.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use lab::{
    agent::Agent,
    binaries,
    process::Running,
    short_lived::{Proof, ShortLived},
};
use std::{collections::BTreeSet, fs, os::unix::fs::PermissionsExt as _, process::Command, time::Duration};

const TIMEOUT: Duration = Duration::from_secs(60);
/// The user `nobody` of every distribution.
const NOBODY: u32 = 65_534;

/// A command before a command: no user of the system, with these capabilities and no other.
fn unprivileged(capabilities: &str) -> Vec<String> {
    let mut words = vec!["setpriv".to_owned()];
    words.extend([format!("--reuid={NOBODY}"), format!("--regid={NOBODY}"), "--clear-groups".to_owned()]);
    words.extend([format!("--inh-caps={capabilities}"), format!("--ambient-caps={capabilities}")]);
    words.push(binaries::node_agent().display().to_string());
    words
}

/// The distinct values of one line of every thread's status.
fn values<'a>(threads: &'a str, name: &str) -> BTreeSet<&'a str> {
    threads.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim).collect()
}

fn assert_powerless(threads: &str) {
    for set in ["CapPrm", "CapEff", "CapInh", "CapAmb"] {
        assert_eq!(values(threads, set), BTreeSet::from(["0000000000000000"]), "{set} of every thread:\n{threads}");
    }
    assert_eq!(values(threads, "NoNewPrivs"), BTreeSet::from(["1"]));
}

#[tokio::test]
async fn two_rights_are_enough_to_count_exactly_and_none_is_left() {
    const COUNT: u32 = ShortLived::ON_A_SHARED_HOST;
    let processes = ShortLived { agent: unprivileged("+bpf,+perfmon"), ..ShortLived::programs(COUNT) };
    let proof = Proof::on_this_host(&processes).await;
    proof.assert_exact(COUNT);
    assert_powerless(&proof.threads);
    assert_eq!(values(&proof.threads, "Uid"), BTreeSet::from(["65534\t65534\t65534\t65534"]));
    let (status, reason) = proof.capability("privileges");
    assert_eq!(status, "CAPABILITY_STATUS_OK", "{reason}");
    assert!(reason.starts_with("none are left"), "{reason}");
}

#[tokio::test]
async fn root_ends_up_without_rights_as_well_and_cannot_regain_them() {
    let proof = Proof::on_this_host(&ShortLived::programs(10)).await;
    proof.assert_counted(10);
    assert_powerless(&proof.threads);
    assert_eq!(values(&proof.threads, "CapBnd"), BTreeSet::from(["0000000000000000"]));
    assert_eq!(proof.capability("privileges"), ("CAPABILITY_STATUS_OK", "none are left"));
}

#[tokio::test]
async fn keep_ptrace_keeps_that_right_and_no_other() {
    /// `CAP_SYS_PTRACE` alone: capability 19.
    const PTRACE: &str = "0000000000080000";
    const NONE: &str = "0000000000000000";
    let processes = ShortLived { before: "export NODE_AGENT_KEEP_PTRACE=true", ..ShortLived::programs(10) };
    let proof = Proof::on_this_host(&processes).await;
    proof.assert_counted(10);
    // A thread that needs no right at all has none.
    for set in ["CapPrm", "CapEff"] {
        assert_eq!(values(&proof.threads, set), BTreeSet::from([NONE, PTRACE]), "{set}:\n{}", proof.threads);
    }
    for set in ["CapInh", "CapAmb", "CapBnd"] {
        assert_eq!(values(&proof.threads, set), BTreeSet::from([NONE]), "{set}:\n{}", proof.threads);
    }
    assert_eq!(values(&proof.threads, "NoNewPrivs"), BTreeSet::from(["1"]));
    let kept = ("CAPABILITY_STATUS_OK", "only CAP_SYS_PTRACE is left, as keep_ptrace says");
    assert_eq!(proof.capability("privileges"), kept);
}

#[tokio::test]
async fn another_kernel_shows_its_counters_to_an_agent_without_rights_whatever_its_setting() {
    let folder = tempfile::tempdir().unwrap();
    // 2 is the default there; 1 cannot be set back.
    for (index, setting) in
        ["", "echo 0 >/proc/sys/kernel/unprivileged_bpf_disabled", "echo 1 >/proc/sys/kernel/unprivileged_bpf_disabled"]
            .iter()
            .enumerate()
    {
        let processes = ShortLived { before: setting, ..ShortLived::programs(100) };
        let proof = Proof::in_a_micro_vm(&folder.path().join(index.to_string()), &processes).await;
        proof.assert_counted(100);
        assert_powerless(&proof.threads);
    }
}

#[tokio::test]
async fn an_agent_that_runs_has_no_rights_before_it_touches_the_network() {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let home = folder.path().join("agent");
    let config = "sweeper_url = \"http://127.0.0.1:9\"\nidentity = \"host\"\ninterval = \"200ms\"\nsource = \"ebpf\"\n";
    let prepared = Agent::prepare(&home, config, &[]);
    std::os::unix::fs::chown(&home, Some(NOBODY), Some(NOBODY)).unwrap();
    let mut command = Command::new("setpriv");
    command.args(&unprivileged("+bpf,+perfmon")[1..]).arg("run");
    command.arg("--config").arg(prepared.folder().join("agent.toml")).env("NODE_AGENT_STATE_DIR", home.join("state"));
    let mut agent = Running::start("node-agent", &mut command, folder.path());
    // It says who it is right before it prepares its first request.
    agent.line_with("this node", TIMEOUT).await;
    let tasks = fs::read_dir(format!("/proc/{}/task", agent.pid().as_raw_nonzero())).unwrap();
    let threads: String =
        tasks.map(|task| fs::read_to_string(task.unwrap().path().join("status")).unwrap_or_default()).collect();
    assert_powerless(&threads);
    let log = agent.output();
    let (measuring, node) = (log.find("measuring from here on").unwrap(), log.find("this node").unwrap());
    assert!(measuring < node, "{log}");
    assert!(agent.terminate(TIMEOUT).await.success());
}

/// `docker run` without `--pid=host`: the kernel would show the agent its own container and call that the host.
#[tokio::test]
async fn in_a_pid_namespace_of_its_own_the_agent_says_that_it_sees_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let agent = Agent::prepare(folder.path(), "identity = \"host\"\n", &[]);
    let inner = agent.command();
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--mount-proc"]).arg(inner.get_program()).args(inner.get_args());
    command.args(["once", "--interval", "200ms"]).current_dir(folder.path());
    for (key, value) in inner.get_envs() {
        match value {
            Some(value) => command.env(key, value),
            None => command.env_remove(key),
        };
    }
    let output = tokio::process::Command::from(command).output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    let heartbeat: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let capabilities = heartbeat["coverage"]["capabilities"].as_array().unwrap();
    for name in [
        "ebpf",
        "tasks",
        "disk_io",
        "process_events",
        "network",
        "interactive_sessions",
        "inbound_peers",
        "host_network",
    ] {
        let capability = capabilities.iter().find(|capability| capability["name"] == name).unwrap();
        assert_eq!(capability["status"], "CAPABILITY_STATUS_DENIED", "{capability}");
        let reason = capability["reason"].as_str().unwrap();
        assert!(reason.contains("--pid=host") && reason.contains("hostPID"), "{reason}");
    }
    for row in heartbeat["workloads"].as_array().unwrap() {
        assert!(row["cpu_ns"].is_null() && row["disk_read_bytes"].is_null(), "{row}");
    }
    assert!(heartbeat["interactive_sessions"].is_null() && heartbeat["inbound_peers"].is_null());
}
