//! One heartbeat from just before to just after what a scenario does, and cgroups with counters of their own for what it does.

use crate::{agent::Agent, binaries, process::Running, wait};
use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

const TIMEOUT: Duration = Duration::from_secs(60);
/// Of signal 15, in a mask of `/proc/PID/status`.
const SIGTERM_BIT: u64 = 1 << 14;
/// Becomes a command inside a cgroup.
const IN_GROUP: &str = include_str!("in_group.sh");

/// An agent at work on one heartbeat.
#[derive(Debug)]
pub struct Once(Running);

impl Once {
    /// Starts `node-agent once` in `folder`, with these settings besides its identity; it has its baseline when this returns.
    ///
    /// # Panics
    ///
    /// When the agent does not measure.
    pub async fn measuring(folder: &Path, settings: &str) -> Self {
        let settings = format!("identity = \"host\"\nlog = \"info\"\nsource = \"ebpf\"\n{settings}");
        let agent = Agent::prepare(folder, &settings, &[]);
        let mut once = Running::start("once", agent.command().args(["once", "--interval", "1h"]), folder);
        let _ = once.line_with("measuring from here on", TIMEOUT).await;
        // It drops its rights then, looks at everything once more, and only after that can be told to stop.
        let status = format!("/proc/{}/status", once.pid().as_raw_nonzero());
        wait::until("the agent to obey SIGTERM", TIMEOUT, || {
            let caught = fs::read_to_string(&status).expect("the agent lives");
            let mask = caught.lines().find_map(|line| line.strip_prefix("SigCgt:")).expect("signals that it catches");
            let mask = u64::from_str_radix(mask.trim(), 16).expect("a mask");
            async move { (mask & SIGTERM_BIT != 0).then_some(()) }
        })
        .await;
        Self(once)
    }

    /// The heartbeat up to now.
    ///
    /// # Panics
    ///
    /// When the agent fails or prints none.
    pub async fn heartbeat(mut self) -> Seen {
        let status = self.0.terminate(TIMEOUT).await;
        let output = self.0.output();
        assert!(status.success(), "{status}: {output}");
        let json = &output[output.find("\n{\n").unwrap_or_else(|| panic!("no heartbeat: {output}"))..];
        let first = serde_json::Deserializer::from_str(json).into_iter().next().expect("a heartbeat");
        Seen(first.unwrap_or_else(|error| panic!("{error}: {json}")))
    }
}

/// What the agent has seen.
#[derive(Clone, Debug)]
pub struct Seen(pub Value);

impl Seen {
    /// The row of workloads in this cgroup, or `overflow`; null if there is none.
    ///
    /// # Panics
    ///
    /// When there are no rows at all.
    #[must_use]
    pub fn row(&self, key: &str) -> &Value {
        let rows = self.0["workloads"].as_array().expect("rows");
        rows.iter().find(|row| row["key"] == key && row["class"] == "CLASS_WORKLOAD").unwrap_or(&Value::Null)
    }

    /// CPU time of the agent itself, in nanoseconds.
    ///
    /// # Panics
    ///
    /// When it has no row.
    #[must_use]
    pub fn own_cpu_ns(&self) -> u64 {
        let rows = self.0["workloads"].as_array().expect("rows");
        let own = rows.iter().filter(|row| row["class"] == "CLASS_SELF");
        own.map(|row| row["cpu_ns"].as_u64().expect("its CPU time"))
            .reduce(u64::saturating_add)
            .expect("a row of its own")
    }

    /// One drop counter.
    ///
    /// # Panics
    ///
    /// When there is none of this name.
    #[must_use]
    pub fn drops(&self, name: &str) -> u64 {
        crate::short_lived::drops(&self.0, name)
    }
}

/// A cgroup of its own; it goes with this value, which is to be dropped after what runs in it.
#[derive(Debug)]
pub struct Group(PathBuf);

impl Group {
    /// Makes it, in the tree that has the counters of CPU time.
    ///
    /// # Panics
    ///
    /// When this user may make no cgroups: tests that need them need root.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let tree = ["/sys/fs/cgroup/cpuacct", "/sys/fs/cgroup"].map(Path::new).into_iter().find(|tree| tree.is_dir());
        let group = tree.expect("a cgroup tree").join(format!("lab-{name}-{}", std::process::id()));
        fs::create_dir(&group).expect("a cgroup can be made (run the tests as root)");
        Self(group)
    }

    /// As an agent names it.
    ///
    /// # Panics
    ///
    /// Never: it was made of a name.
    #[must_use]
    pub fn key(&self) -> String {
        format!("/{}", self.0.file_name().expect("a name").display())
    }

    /// A command that runs inside.
    #[must_use]
    pub fn inside(&self, program: &Path) -> Command {
        let mut command = Command::new(binaries::system("sh"));
        command.args(["-c", IN_GROUP, "in_group.sh"]).arg(&self.0).arg(program);
        command
    }

    /// Ids of the processes inside.
    ///
    /// # Panics
    ///
    /// When the cgroup is gone.
    #[must_use]
    pub fn processes(&self) -> Vec<String> {
        let pids = fs::read_to_string(self.0.join("cgroup.procs")).expect("the cgroup's processes");
        pids.lines().map(str::to_owned).collect()
    }

    /// CPU time by the kernel's own counters, in nanoseconds.
    ///
    /// # Panics
    ///
    /// When there are none.
    #[must_use]
    pub fn cpu_ns(&self) -> u64 {
        if let Ok(text) = fs::read_to_string(self.0.join("cpuacct.usage")) {
            return text.trim().parse().expect("a number");
        }
        let text = fs::read_to_string(self.0.join("cpu.stat")).expect("the cgroup's counters");
        let usage = text.lines().find_map(|line| line.strip_prefix("usage_usec ")).expect("usage_usec");
        usage.parse::<u64>().expect("a number") * 1_000
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}
