//! Short-lived processes in a cgroup of their own, as the agent and as the kernel's own counters of that cgroup tell of them.

use crate::{
    binaries,
    microvm::{Guest, MicroVm},
    process::Running,
};
use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

/// What starts them beside an agent; a shell's script, with its arguments at its top.
pub const SCRIPT: &str = concat!(include_str!("measuring.sh"), include_str!("short_lived.sh"));
const TIMEOUT: Duration = Duration::from_secs(300);

/// How many processes, of what kind, and how the agent is to measure.
#[derive(Clone, Debug)]
pub struct ShortLived {
    /// Processes.
    pub count: u32,
    /// `exec` or `names`; see `short_lived.sh`.
    pub kind: &'static str,
    /// The agent's setting of that name.
    pub source: &'static str,
    /// Shell commands before anything else, in a mount namespace of their own.
    pub before: &'static str,
    /// Natively, the words that start the agent, where it is not to run as it is.
    pub agent: Vec<String>,
}

impl ShortLived {
    /// So many outlast a moment in which the machine's first process is busy: one host here runs no BPF program on top of it, so that
    /// processes that are freed there are known by their cgroup's counter alone (docs/journal/2026-11-22-the-first-process.md).
    pub const ON_A_SHARED_HOST: u32 = 6_000;

    /// So many programs that are over at once.
    #[must_use]
    pub fn programs(count: u32) -> Self {
        Self { count, kind: "exec", source: "ebpf", before: ":", agent: Vec::new() }
    }
}

/// What the agent and the cgroup's own counters say about the same processes.
#[derive(Clone, Debug)]
pub struct Proof {
    /// What `node-agent once` printed.
    pub heartbeat: Value,
    /// The cgroup.
    pub path: String,
    /// CPU time by its own counters.
    pub cpu_ns: u64,
    /// `/proc/PID/task/TID/status` of each of the agent's threads, one after the other.
    pub threads: String,
    /// Whose work the heartbeat tells of.
    pub machine: Machine,
}

/// Whose work a heartbeat tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// Nobody's but the test's.
    Own,
    /// Others' as well: whoever builds or tests here beside this test.
    Shared,
}

impl Proof {
    /// Reads what the script left behind.
    ///
    /// # Panics
    ///
    /// When the heartbeat is none, or the counters are not whole.
    #[must_use]
    pub fn of(heartbeat: &str, counters: &str, threads: &str, machine: Machine) -> Self {
        let mut lines = counters.lines();
        Self {
            heartbeat: serde_json::from_str(heartbeat).unwrap_or_else(|error| panic!("{error}: {heartbeat}")),
            path: lines.next().expect("the cgroup's path").to_owned(),
            cpu_ns: lines.next().and_then(|cpu_ns| cpu_ns.parse().ok()).expect("the cgroup's CPU time"),
            threads: threads.to_owned(),
            machine,
        }
    }

    /// Natively.
    ///
    /// # Panics
    ///
    /// When the agent does not measure.
    pub async fn on_this_host(processes: &ShortLived) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let script = folder.path().join("short_lived.sh");
        fs::write(&script, SCRIPT).expect("the script can be written");
        let agent = agent_in(folder.path(), &processes.agent);
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", &format!("{}\nexec sh \"$@\"", processes.before), "sh"]);
        command.arg(&script).arg(agent).arg(processes.count.to_string()).arg(processes.kind).arg(folder.path());
        // Kept until the end, for what it said is shown when the test fails.
        let mut script = Running::start("short-lived", command.arg(processes.source), folder.path());
        let status = script.end(TIMEOUT).await;
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap_or_default();
        assert!(status.success(), "{status}; the agent said: {}", read("agent.log"));
        Self::of(&read("heartbeat.json"), &read("counters"), &read("threads"), Machine::Shared)
    }

    /// On another kernel, with a pure cgroup v2 tree. The guest's agent is root.
    ///
    /// # Panics
    ///
    /// When the agent does not measure.
    pub async fn in_a_micro_vm(folder: &Path, processes: &ShortLived) -> Self {
        let ShortLived { count, kind, source, before, .. } = processes;
        // Else the kernel starts a process for each module that it looks for in vain, the first time that the agent asks for sockets.
        let script = format!(
            "echo >/proc/sys/kernel/modprobe
            {before}
            sh /etc/short_lived.sh /bin/node-agent {count} {kind} /tmp {source} || {{ cat /tmp/agent.log; exit 1; }}
            give heartbeat /tmp/heartbeat.json
            give counters /tmp/counters
            give threads /tmp/threads"
        );
        let guest = Guest::running(&script)
            .with_program("node-agent", &binaries::node_agent())
            .with_text("short_lived.sh", SCRIPT);
        let mut guest = MicroVm::boot(folder, &guest);
        guest.end(TIMEOUT).await;
        let given = |name: &str| guest.given(name).expect("what the guest's script gives");
        Self::of(&given("heartbeat"), &given("counters"), &given("threads"), Machine::Own)
    }

    /// One counter of the workload row of this path; 0 if there is no such row.
    ///
    /// # Panics
    ///
    /// When it was not measured.
    #[must_use]
    pub fn counter(&self, path: &str, name: &str) -> u64 {
        let rows = self.heartbeat["workloads"].as_array().expect("rows");
        let row = rows.iter().find(|row| row["key"] == path && row["class"] == "CLASS_WORKLOAD");
        row.map_or(0, |row| row[name].as_u64().unwrap_or_else(|| panic!("{name} was not measured: {row}")))
    }

    /// One counter of the cgroup's row.
    #[must_use]
    pub fn own(&self, name: &str) -> u64 {
        self.counter(&self.path, name)
    }

    /// One counter of the overflow row.
    #[must_use]
    pub fn overflow(&self, name: &str) -> u64 {
        self.counter("overflow", name)
    }

    /// One drop counter.
    ///
    /// # Panics
    ///
    /// When there is none of this name.
    #[must_use]
    pub fn drops(&self, name: &str) -> u64 {
        drops(&self.heartbeat, name)
    }

    /// Status and reason of one capability.
    ///
    /// # Panics
    ///
    /// When there is none of this name.
    #[must_use]
    pub fn capability(&self, name: &str) -> (&str, &str) {
        let capabilities = self.heartbeat["coverage"]["capabilities"].as_array().expect("capabilities");
        let capability = capabilities
            .iter()
            .find(|capability| capability["name"] == name)
            .unwrap_or_else(|| panic!("no capability {name}"));
        (capability["status"].as_str().unwrap_or_default(), capability["reason"].as_str().unwrap_or_default())
    }

    /// Asserts that nothing was lost.
    ///
    /// # Panics
    ///
    /// When something was.
    pub fn assert_nothing_lost(&self) {
        assert_nothing_lost(&self.heartbeat, self.machine);
    }

    /// Asserts that all were counted, by eBPF, and nothing was lost.
    ///
    /// # Panics
    ///
    /// When they were not.
    pub fn assert_counted(&self, count: u32) {
        let count = u64::from(count);
        assert_eq!(self.heartbeat["coverage"]["source"], "SOURCE_EBPF");
        assert_eq!([self.own("forks"), self.own("execs"), self.own("exits")], [count; 3], "forks, execs, exits");
        self.assert_nothing_lost();
    }

    /// Asserts that counts are exact and that CPU time is within 1 % of the cgroup's own counters, but for what may have been taken up in another row. That takes a thousand processes:
    /// their parent has a part in the counters, too. On a shared host it takes [`ShortLived::ON_A_SHARED_HOST`].
    ///
    /// # Panics
    ///
    /// When they are not.
    pub fn assert_exact(&self, count: u32) {
        self.assert_counted(count);
        let (agent, counters, elsewhere) = (self.own("cpu_ns"), self.cpu_ns, taken_up_ns(&self.heartbeat));
        let tolerance = counters / 100;
        assert!(
            agent <= counters + tolerance && agent + elsewhere + tolerance >= counters,
            "the agent says {agent} ns, and up to {elsewhere} ns elsewhere; the cgroup's counters {counters} ns"
        );
    }
}

/// The agent, or a script that runs it otherwise.
fn agent_in(folder: &Path, words: &[String]) -> PathBuf {
    use std::os::unix::fs::PermissionsExt as _;
    if words.is_empty() {
        return binaries::node_agent();
    }
    let path = folder.join("agent.sh");
    let script = format!("#!/bin/sh\nexec {} \"$@\"\n", words.join(" "));
    fs::write(&path, script).expect("the script can be written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("the script can be made executable");
    path
}

/// CPU time of tasks, of any workload, whose end the kernel did not show: the agent took it up from the cgroups' counters, in the row of the cgroup where that is
/// clear and of one above it where it is not. None on a machine that shows all ends, and [`assert_nothing_lost`] sees to it.
///
/// # Panics
///
/// When the heartbeat is none.
#[must_use]
pub fn taken_up_ns(heartbeat: &Value) -> u64 {
    let drops = heartbeat["coverage"]["drops"].as_array().expect("drops");
    let taken_up = drops.iter().find(|drop| drop["name"] == "detail_cpu_taken_up_ms");
    taken_up.map_or(0, |drop| drop["count"].as_u64().expect("a count") * 1_000_000)
}

/// One drop counter of a heartbeat.
///
/// # Panics
///
/// When there is none of this name.
#[must_use]
pub fn drops(heartbeat: &Value, name: &str) -> u64 {
    let drops = heartbeat["coverage"]["drops"].as_array().expect("drops");
    let drop = drops.iter().find(|drop| drop["name"] == name).unwrap_or_else(|| panic!("no {name}: {drops:?}"));
    drop["count"].as_u64().expect("a count")
}

/// What others' tasks on a shared machine may bring about, since these are counted for all tasks together: they run more tools than a task has rows
/// for; a script of theirs begins more tasks in an interval than are told apart (256); and they end without being shown, whose CPU time is then taken up, and whose address a younger task may have.
const OF_OTHERS: [&str; 4] =
    ["detail_tools_not_listed", "detail_tasks_without_id", "detail_cpu_taken_up_ms", "missed_exits"];

/// Asserts that a heartbeat tells of no loss, but on a shared machine of what may be others'.
///
/// # Panics
///
/// When something was lost.
pub fn assert_nothing_lost(heartbeat: &Value, machine: Machine) {
    let is_others = |name: &Value| machine == Machine::Shared && OF_OTHERS.iter().any(|of| name == of);
    let drops = heartbeat["coverage"]["drops"].as_array().expect("drops").iter();
    for drop in drops.filter(|drop| !is_others(&drop["name"])) {
        assert_eq!(drop["count"], 0, "{drop}");
    }
}
