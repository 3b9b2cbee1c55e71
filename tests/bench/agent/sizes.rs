//! How much memory the agent takes, and how large its heartbeats are.

use crate::watchers::Watching;
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

const TIMEOUT: Duration = Duration::from_secs(300);

const PID_MAX: &str = "/proc/sys/kernel/pid_max";
/// Process ids beside the crowd's: the machine's own, and those that wait to be used again.
const OTHER_PIDS: u32 = 16_384;

/// Lets so many processes live, until it goes.
struct Room(Option<String>);

impl Room {
    fn make(processes: u32) -> Self {
        let before = fs::read_to_string(PID_MAX).expect("kernel.pid_max can be read");
        let needed = processes + OTHER_PIDS;
        if before.trim().parse::<u32>().is_ok_and(|limit| limit >= needed) {
            return Self(None);
        }
        fs::write(PID_MAX, needed.to_string()).expect("kernel.pid_max can be written: this needs root");
        Self(Some(before))
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let _ = fs::write(PID_MAX, before);
        }
    }
}

/// The agent's memory beside so many living processes, after three samples of them.
pub(crate) async fn memory(processes: u32) -> Value {
    let _room = Room::make(processes);
    let mut crowd = crowd(processes);
    let mut watching = Watching::agent(tempfile::tempdir().expect("a folder"), "2s").await;
    let Watching::Agent { agent, sink, .. } = &mut watching else { unreachable!("the agent was asked for") };
    lab::wait::until("three heartbeats", TIMEOUT, || {
        let enough = sink.seen().len() >= 3;
        async move { enough.then_some(()) }
    })
    .await;
    let mut kb = |name| agent.process().memory_bytes(name) >> 10;
    let result = json!({"living_processes": processes, "resident_kb": kb("VmRSS"), "peak_resident_kb": kb("VmHWM")});
    watching.stop().await;
    drop(crowd.stdin.take());
    crowd.wait().expect("the crowd ends");
    result
}

fn crowd(processes: u32) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("the bench's own path"));
    command.args(["hold", &processes.to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("the crowd starts");
    let mut line = String::new();
    let out = child.stdout.as_mut().expect("its output");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).expect("the crowd says that it lives");
    assert!(line.contains("live"), "the crowd did not come together: {line}");
    child
}

/// Cgroups, each with a shell that does a little work again and again; they end and vanish with this value.
struct Workloads {
    root: PathBuf,
    shells: Vec<Child>,
}

impl Workloads {
    fn start(count: u32) -> Self {
        let v1 = Path::new("/sys/fs/cgroup/cpuacct");
        let tree = if v1.is_dir() { v1 } else { Path::new("/sys/fs/cgroup") };
        let root = tree.join(format!("bench-agent-{}", std::process::id()));
        let shells = (0..count)
            .map(|index| {
                // As long as the name of a container.
                let group = root.join(format!("docker-{index:064x}.scope"));
                fs::create_dir_all(&group).expect("a cgroup can be made");
                let work =
                    "echo $$ >\"$0/cgroup.procs\"; while read -r _ </proc/uptime; do busybox usleep 700000; done";
                let mut command = Command::new("/bin/busybox");
                command.args(["sh", "-c", work]).arg(&group).stdin(Stdio::null());
                command.spawn().expect("/bin/busybox starts: run `make setup`")
            })
            .collect();
        Self { root, shells }
    }
}

impl Drop for Workloads {
    fn drop(&mut self) {
        for shell in &mut self.shells {
            let _ = shell.kill();
            let _ = shell.wait();
        }
        let groups: Vec<_> = fs::read_dir(&self.root).into_iter().flatten().filter_map(Result::ok).collect();
        for group in groups.iter().map(fs::DirEntry::path).filter(|path| path.is_dir()) {
            // The last child of a shell may need a moment more than its parent: it sleeps for 0.7 s at most.
            for _ in 0..100 {
                if fs::remove_dir(&group).is_ok() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        let _ = fs::remove_dir(&self.root);
    }
}

/// Bytes on the wire of a heartbeat with at least so many workloads: the median of five.
pub(crate) async fn heartbeat(workloads: u32) -> Value {
    let _workloads = Workloads::start(workloads);
    let mut watching = Watching::agent(tempfile::tempdir().expect("a folder"), "2s").await;
    let Watching::Agent { sink, .. } = &mut watching else { unreachable!("the agent was asked for") };
    let mut seen = lab::wait::until("five heartbeats", TIMEOUT, || {
        let seen = sink.seen();
        async move { (seen.len() >= 5).then_some(seen) }
    })
    .await;
    watching.stop().await;
    seen.sort_unstable();
    let (bytes, rows) = seen[seen.len() / 2];
    json!({"workloads": workloads, "rows": rows, "median_bytes_on_the_wire": bytes})
}
