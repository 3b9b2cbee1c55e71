//! Pipelines under the eyes of an agent, and the kernel's own counters beside it.

use crate::{binaries, orphan::Orphan, process::Running, short_lived::taken_up_ns};
use rand::RngCore as _;
use serde_json::Value;
use std::{
    fs::{self, File},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

/// Longest that an engine may take, on a machine that builds something else meanwhile.
const TIMEOUT: Duration = Duration::from_secs(240);

/// A folder for one pipeline, with what pipelines here need: `in_group.sh`, `align.py`, and a file that takes time to pack.
#[derive(Debug)]
pub struct Bench {
    folder: tempfile::TempDir,
    groups: PathBuf,
}

impl Bench {
    /// Makes it.
    ///
    /// # Panics
    ///
    /// When the folder or the cgroup cannot be made.
    #[must_use]
    pub fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("pipeline-").tempdir().expect("a temporary folder");
        let tree = ["/sys/fs/cgroup/cpuacct", "/sys/fs/cgroup"].map(Path::new).into_iter().find(|tree| tree.is_dir());
        let name = folder.path().file_name().expect("a name");
        let groups = tree.expect("a cgroup tree").join(name);
        fs::create_dir(&groups).expect("a cgroup can be made");
        let bench = Self { folder, groups };
        bench.write("in_group.sh", include_str!("in_group.sh"));
        bench.write("align.py", include_str!("align.py"));
        let mut noise = vec![0; 24_000_000];
        rand::rng().fill_bytes(&mut noise);
        fs::write(bench.path("reads"), noise).expect("the folder can be written");
        bench
    }

    /// A path in the folder.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file into the folder; `@DIR@` in it is the folder, `@GROUP@` the beginning of its cgroups' paths.
    ///
    /// # Panics
    ///
    /// When it cannot be written.
    pub fn write(&self, name: &str, text: &str) {
        let folder = self.folder.path().to_str().expect("plain path");
        let text = text.replace("@DIR@", folder).replace("@GROUP@", self.groups.to_str().expect("plain path"));
        fs::create_dir_all(self.path(name).parent().expect("a folder")).expect("the folder can be made");
        fs::write(self.path(name), text).expect("the folder can be written");
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o755)).expect("it is ours");
    }

    /// CPU time of one of the folder's cgroups, by the kernel's own counters, in nanoseconds.
    ///
    /// # Panics
    ///
    /// When there is no such cgroup.
    #[must_use]
    pub fn cpu_ns(&self, group: &str) -> u64 {
        let group = self.groups.join(group);
        if let Ok(text) = fs::read_to_string(group.join("cpuacct.usage")) {
            return text.trim().parse().expect("a number");
        }
        let text = fs::read_to_string(group.join("cpu.stat")).expect("the cgroup's counters");
        let usage = text.lines().find_map(|line| line.strip_prefix("usage_usec ")).expect("usage_usec");
        usage.parse::<u64>().expect("a number") * 1_000
    }

    /// Starts `node-agent once`; it measures when this returns.
    pub async fn agent(&self) -> Running {
        let mut command = Command::new("sh");
        command.arg("-c").arg(r#"exec "$0" once --interval 1h >heartbeat.json"#).arg(binaries::node_agent());
        command.current_dir(self.folder.path());
        command.env("NODE_AGENT_LOG", "node_agent=info").env("NODE_AGENT_SOURCE", "ebpf");
        let mut agent = Running::start("agent", &mut command, self.folder.path());
        let _ = agent.line_with("measuring from here on", TIMEOUT).await;
        agent
    }

    /// What the agent has seen; it ends.
    ///
    /// # Panics
    ///
    /// When it failed, or printed no heartbeat.
    pub async fn seen(&self, mut agent: Running) -> Seen {
        // The kernel frees a task when an RCU grace period has passed since it was reaped: milliseconds, which nothing announces.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let status = agent.terminate(TIMEOUT).await;
        assert!(status.success(), "the agent ended with {status}");
        let text = fs::read_to_string(self.path("heartbeat.json")).expect("a heartbeat");
        Seen(serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}")))
    }

    /// A command that runs in the folder.
    #[must_use]
    pub fn command(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.folder.path());
        command
    }

    /// Readies a command that descends from nobody here.
    #[must_use]
    pub fn orphan(&self, command: &Command) -> Orphan {
        Orphan::new(command, self.path("orphan"))
    }

    /// Runs a command under the agent's eyes; its process id, and what was seen.
    ///
    /// # Panics
    ///
    /// When the command fails.
    pub async fn watch(&self, command: Command) -> (i32, Seen) {
        self.watch_until(command, async {}).await
    }

    /// The same for a command that others work for: the agent watches on until they are `done`, too.
    ///
    /// # Panics
    ///
    /// When the command fails.
    pub async fn watch_until(&self, command: Command, done: impl Future<Output = ()>) -> (i32, Seen) {
        let pipeline = self.orphan(&command);
        let agent = self.agent().await;
        let pid = pipeline.begin().await;
        let (status, output) = pipeline.end(TIMEOUT).await;
        assert_eq!(status, 0, "{output}");
        done.await;
        (pid, self.seen(agent).await)
    }

    /// Runs a command to its end, with its output in a file, and says whether it succeeded.
    ///
    /// # Panics
    ///
    /// When it does not start.
    #[must_use]
    pub fn run(&self, mut command: Command) -> bool {
        let output = File::create(self.path("command.log")).expect("the folder can be written");
        command.stdin(Stdio::null()).stdout(output.try_clone().expect("a handle")).stderr(output);
        command.status().expect("the command starts").success()
    }
}

impl Default for Bench {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let Ok(groups) = fs::read_dir(&self.groups) else { return };
        for group in groups.filter_map(Result::ok).filter(|entry| entry.path().is_dir()) {
            let _ = fs::remove_dir(group.path());
        }
        let _ = fs::remove_dir(&self.groups);
    }
}

/// A heartbeat with runs.
#[derive(Debug)]
pub struct Seen(pub Value);

impl Seen {
    /// CPU time of processes whose end the agent was not shown, in nanoseconds: it is in the rows of their cgroups, and in no task.
    ///
    #[must_use]
    pub fn taken_up_ns(&self) -> u64 {
        taken_up_ns(&self.0)
    }

    /// The only run whose id begins like this.
    ///
    /// # Panics
    ///
    /// When there is none.
    #[must_use]
    pub fn run(&self, id: &str) -> &Value {
        let runs = self.0["runs"].as_array().expect("runs");
        let found = runs.iter().find(|run| run["id"].as_str().is_some_and(|known| known.starts_with(id)));
        found.unwrap_or_else(|| panic!("no run {id}: {runs:#?}"))
    }
}

/// The tasks of a run, by name.
///
/// # Panics
///
/// When it has no list of tasks.
#[must_use]
pub fn names(run: &Value) -> Vec<String> {
    let tasks = run["tasks"].as_array().expect("tasks").iter();
    let mut names: Vec<String> = tasks.map(|task| task["name"].as_str().expect("a name").to_owned()).collect();
    names.sort();
    names
}

/// The task of this name.
///
/// # Panics
///
/// When the run has none.
#[must_use]
pub fn task<'a>(run: &'a Value, name: &str) -> &'a Value {
    let found = run["tasks"].as_array().expect("tasks").iter().find(|task| task["name"] == name);
    found.unwrap_or_else(|| panic!("no task {name}: {run:#}"))
}

/// A counter of one tool of a task.
///
/// # Panics
///
/// When the task ran no such tool.
#[must_use]
pub fn tool(task: &Value, name: &str, counter: &str) -> u64 {
    let found = task["tools"].as_array().expect("tools").iter().find(|tool| tool["key"] == name);
    found.unwrap_or_else(|| panic!("no tool {name}: {task:#}"))[counter].as_u64().expect("a number")
}
