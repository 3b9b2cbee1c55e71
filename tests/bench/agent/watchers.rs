//! Who watches: the agent, and what else could be used for parts of its work.

use crate::{figures::Cost, sink::Sink};
use lab::{agent::Agent, binaries, process::Running};
use std::{fs, process::Command, time::Duration};
use tempfile::TempDir;

/// Whoever watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Watcher {
    /// `node-agent run` with its default settings but an interval of 1 s: thirty times the default's samples.
    NodeAgent,
    /// `bpftrace` that counts forks, program starts and exits by name at the same three tracepoints.
    Bpftrace,
    /// `bpftrace` that counts context switches by name: what an agent pays that hooks the scheduler.
    BpftraceSwitches,
    /// A Python loop that reads every process's CPU time, memory and I/O through `psutil` once a second.
    Psutil,
}

const BPFTRACE: &str = "tracepoint:sched:sched_process_fork { @forks[comm] = count(); } \
    tracepoint:sched:sched_process_exec { @execs[comm] = count(); } \
    tracepoint:sched:sched_process_exit { @exits[comm] = count(); } \
    BEGIN { printf(\"watching\\n\"); }";
const BPFTRACE_SWITCHES: &str =
    "tracepoint:sched:sched_switch { @switches[args->prev_comm] = count(); } BEGIN { printf(\"watching\\n\"); }";
const PSUTIL: &str = "
import psutil, time
print('watching', flush=True)
while True:
    for process in psutil.process_iter(['pid', 'name', 'cpu_times', 'memory_info', 'io_counters']):
        process.info
    time.sleep(1)
";
const READY: Duration = Duration::from_secs(60);

/// A watcher at work.
pub(crate) enum Watching {
    /// The agent, its sweeper's stand-in, and its folder.
    Agent { agent: Box<Agent>, sink: Sink, _folder: TempDir },
    /// A peer and its folder.
    Peer { running: Running, _folder: TempDir },
}

impl Watcher {
    /// Starts it and waits until it watches.
    pub(crate) async fn start(self) -> Watching {
        let folder = tempfile::tempdir().expect("a folder");
        let peer = |mut command: Command| Running::start("peer", &mut command, folder.path());
        let program = |script: &str| {
            let mut command = Command::new(binaries::system("bpftrace"));
            command.args(["-e", script]);
            command
        };
        let mut running = match self {
            Self::NodeAgent => return Watching::agent(folder, "1s").await,
            Self::Bpftrace => peer(program(BPFTRACE)),
            Self::BpftraceSwitches => peer(program(BPFTRACE_SWITCHES)),
            Self::Psutil => {
                let mut command = Command::new(binaries::python("python"));
                command.args(["-c", PSUTIL]);
                peer(command)
            }
        };
        running.line_with("watching", READY).await;
        Watching::Peer { running, _folder: folder }
    }
}

impl Watching {
    /// The agent, reporting to a sink.
    pub(crate) async fn agent(folder: TempDir, interval: &str) -> Self {
        let sink = Sink::start().await;
        let config = format!(
            "sweeper_url = \"{}\"\njoin_token = \"bench\"\nidentity = \"host\"\ninterval = \"{interval}\"\n",
            sink.url()
        );
        let mut agent = Agent::start(folder.path(), &config, &[]);
        agent.process().line_with("measuring from here on", READY).await;
        Self::Agent { agent: Box::new(agent), sink, _folder: folder }
    }

    /// What it has cost so far: its processes' CPU time, and the run time of the BPF programs that are loaded.
    pub(crate) fn cost(&mut self) -> Cost {
        let pid = match self {
            Self::Agent { agent, .. } => agent.process().pid(),
            Self::Peer { running, .. } => running.pid(),
        };
        Cost { cpu: cpu_time(pid.as_raw_nonzero().get()), bpf: bpf_time() }
    }

    pub(crate) async fn stop(self) {
        match self {
            Self::Agent { mut agent, .. } => agent.stop().await,
            // bpftrace prints its maps at its end, and Python ends by the signal: neither status says anything.
            Self::Peer { mut running, .. } => drop(running.terminate(Duration::from_secs(30)).await),
        }
    }
}

/// CPU time of a process, its ended threads included, by the kernel's exact clock and not in ticks of 10 ms.
fn cpu_time(pid: i32) -> Duration {
    let mut clock = 0;
    // SAFETY: both calls write one value each into a local of the right type.
    let time = unsafe {
        let found = libc::clock_getcpuclockid(pid, &raw mut clock);
        assert_eq!(found, 0, "the watcher lives");
        let mut time = std::mem::zeroed::<libc::timespec>();
        assert_eq!(libc::clock_gettime(clock, &raw mut time), 0, "its clock can be read");
        time
    };
    let nanos = u32::try_from(time.tv_nsec).expect("less than a second");
    Duration::new(u64::try_from(time.tv_sec).expect("not negative"), nanos)
}

const BPF_STATS: &str = "/proc/sys/kernel/bpf_stats_enabled";

/// Whether the kernel measures BPF programs, which costs them two reads of the clock for each run.
pub(crate) fn measure_bpf(on: bool) {
    fs::write(BPF_STATS, if on { "1" } else { "0" }).expect("kernel.bpf_stats_enabled can be written: this needs root");
}

/// Run time of every BPF program that is loaded now; nobody else loads any on a machine that measures.
fn bpf_time() -> Option<Duration> {
    if fs::read_to_string(BPF_STATS).expect("kernel.bpf_stats_enabled can be read").trim() != "1" {
        return None;
    }
    let output =
        Command::new(binaries::system("bpftool")).args(["-j", "prog", "show"]).output().expect("bpftool starts");
    let programs: serde_json::Value = serde_json::from_slice(&output.stdout).expect("bpftool prints JSON");
    let programs = programs.as_array().expect("a list of programs");
    Some(Duration::from_nanos(programs.iter().filter_map(|program| program["run_time_ns"].as_u64()).sum()))
}
