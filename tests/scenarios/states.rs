//! What a row says of its tasks and its cgroup is what the kernel says: how many are in which state, how long none has run, how often a limit held them
//! back, how much memory they use. Each against the kernel's own file, read before and after.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use lab::{
    binaries,
    once::{Group, Once},
    process::Running,
    sleepers, wait,
};
use rustix::process::Signal;
use serde_json::json;
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

const TIMEOUT: Duration = Duration::from_secs(60);

/// A folder beside the group's own, in another controller's tree; it goes with this value.
struct Beside(PathBuf);

impl Beside {
    fn new(controller: &str, group: &Group) -> Self {
        let folder = Path::new("/sys/fs/cgroup").join(controller).join(group.key().trim_start_matches('/'));
        fs::create_dir(&folder)
            .unwrap_or_else(|error| panic!("{}: {error} (version 1 is mounted here?)", folder.display()));
        Self(folder)
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.0.join(file), text).unwrap_or_else(|error| panic!("{file}: {error}"));
    }

    fn take(&self, process: &Running) {
        self.write("cgroup.procs", &process.pid().as_raw_nonzero().to_string());
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.0.join(file)).unwrap()
    }

    fn line(&self, file: &str, name: &str) -> u64 {
        self.read(file).lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().parse().unwrap()
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // Whoever is held would not die.
        let _ = fs::write(self.0.join("freezer.state"), "THAWED");
        let _ = fs::remove_dir(&self.0);
    }
}

async fn started(name: &str, program: &Path, group: &Group, words: &[&str], folder: &Path) -> Running {
    let mut process = Running::start(name, group.inside(program).args(words), folder);
    process.line_with("ready", TIMEOUT).await;
    process
}

/// Waits until the process is in this state, as proc_pid_stat(5) has it.
async fn until_state(process: &Running, state: &str) {
    let path = format!("/proc/{}/stat", process.pid().as_raw_nonzero());
    let path = path.as_str();
    let is_there = || async move {
        let stat = fs::read_to_string(path).unwrap();
        stat.rsplit(')').next().unwrap().trim_start().starts_with(state).then_some(())
    };
    wait::until(&format!("state {state}"), TIMEOUT, is_there).await;
}

#[tokio::test]
async fn the_states_of_tasks_and_how_long_none_of_them_has_run_are_the_kernels() {
    let folder = tempfile::tempdir().unwrap();
    let program = binaries::compiled("states.c", folder.path());
    let (still, busy) = (Group::new("still"), Group::new("busy"));
    let began = Instant::now();
    let mut sleeps = started("sleeps", &program, &still, &["wait"], folder.path()).await;
    let mut blocked = started("blocked", &program, &still, &["vfork"], folder.path()).await;
    let mut stopped = started("stopped", &program, &still, &["wait"], folder.path()).await;
    let mut frozen = started("frozen", &program, &still, &["wait"], folder.path()).await;
    let mut burns = started("burns", &program, &busy, &["burn"], folder.path()).await;
    let freezer = Beside::new("freezer", &still);
    stopped.signal(Signal::STOP);
    freezer.take(&frozen);
    freezer.write("freezer.state", "FROZEN");
    until_state(&sleeps, "S").await;
    until_state(&blocked, "D").await;
    until_state(&stopped, "T").await;
    wait::until("the freezer", TIMEOUT, || async { (freezer.read("freezer.state") == "FROZEN\n").then_some(()) }).await;
    let all_still = Instant::now();
    let once = Once::measuring(&folder.path().join("agent"), "").await;
    let measuring = Instant::now();
    // So long that no other state's time could be taken for it.
    wait::until("two seconds", TIMEOUT, || async { (measuring.elapsed() > Duration::from_secs(2)).then_some(()) })
        .await;
    let at_least = all_still.elapsed();
    let seen = once.heartbeat().await;
    let at_most = began.elapsed();

    let row = seen.row(&still.key());
    // The child of vfork sleeps as well.
    let states = json!({ "running": 0, "sleeping": 2, "uninterruptible": 1, "stopped": 1, "frozen": 1 });
    assert_eq!(row["states"], states, "{row}");
    let not_run = Duration::from_nanos(row["not_run_ns"].as_u64().unwrap());
    assert!(not_run >= at_least && not_run <= at_most, "{not_run:?}, and not between {at_least:?} and {at_most:?}");
    let row = seen.row(&busy.key());
    assert_eq!(row["states"]["running"], 1, "{row}");
    let not_run = Duration::from_nanos(row["not_run_ns"].as_u64().unwrap());
    assert!(not_run < at_least / 2, "it runs: {not_run:?}");

    freezer.write("freezer.state", "THAWED");
    stopped.signal(Signal::CONT);
    for process in [&mut sleeps, &mut blocked, &mut stopped, &mut frozen, &mut burns] {
        process.kill();
    }
    drop((freezer, still, busy));
}

#[tokio::test]
async fn who_sleeps_until_a_timer_wakes_it_is_told_with_its_time() {
    let folder = tempfile::tempdir().unwrap();
    let states = binaries::compiled("states.c", folder.path());
    let script = folder.path().join("sleepers.sh");
    fs::write(&script, sleepers::SCRIPT).unwrap();
    let mut command = Command::new("sh");
    command.arg("-x").arg(&script).arg(binaries::node_agent()).arg(&states).arg(folder.path());
    let mut script = Running::start("sleepers", &mut command, folder.path());
    let status = script.end(TIMEOUT).await;
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap_or_default();
    assert!(status.success(), "{status}; the agent said: {}", read("agent.log"));
    sleepers::check(&read("heartbeat.json"), &read("counters"));
}

#[tokio::test]
async fn throttling_and_memory_are_those_of_the_rows_own_cgroup() {
    const BYTES: u64 = 64 << 20;
    let folder = tempfile::tempdir().unwrap();
    let program = binaries::compiled("states.c", folder.path());
    let group = Group::new("limited");
    let (cpu, memory) = (Beside::new("cpu", &group), Beside::new("memory", &group));
    cpu.write("cpu.cfs_period_us", "100000");
    cpu.write("cpu.cfs_quota_us", "20000");
    let once = Once::measuring(&folder.path().join("agent"), "").await;
    let mut burns = started("burns", &program, &group, &["burn"], folder.path()).await;
    cpu.take(&burns);
    // Memory is charged to where a process stands when it touches it.
    let script = format!("echo $$ >{}/cgroup.procs; exec \"$@\"", memory.0.display());
    let mut command = group.inside(&binaries::system("sh"));
    let mut holds = Running::start(
        "hold",
        command.args(["-c", &script, "sh"]).arg(&program).args(["hold", &BYTES.to_string()]),
        folder.path(),
    );
    holds.line_with("ready", TIMEOUT).await;
    // Both stand in both, so that either may be asked whose it is.
    memory.take(&burns);
    cpu.take(&holds);
    let throttled = || [cpu.line("cpu.stat", "nr_throttled "), cpu.line("cpu.stat", "throttled_time ")];
    wait::until("the limit to hold it back", TIMEOUT, || async { (throttled()[0] >= 5).then_some(()) }).await;
    let before = throttled();
    let seen = once.heartbeat().await;
    let after = throttled();

    let row = seen.row(&group.key());
    let of = |name: &str| row[name].as_u64().unwrap_or_else(|| panic!("{name} was not measured: {row}"));
    for (index, name) in ["cpu_throttled_periods", "cpu_throttled_ns"].into_iter().enumerate() {
        assert!(of(name) >= before[index] && of(name) <= after[index], "{name}: {before:?} {} {after:?}", of(name));
    }
    let peak = memory.read("memory.max_usage_in_bytes").trim().parse::<u64>().unwrap();
    assert!(of("memory_peak_bytes") >= BYTES && of("memory_peak_bytes") <= peak, "{peak}: {row}");
    let working_set = of("memory_working_set_bytes");
    assert!(working_set >= BYTES && working_set <= peak && working_set < BYTES / 4 * 5, "{peak}: {row}");
    // Who stands elsewhere has none.
    for row in seen.0["workloads"].as_array().unwrap().iter().filter(|row| row["key"] == "/") {
        assert!(row["memory_peak_bytes"].is_null() && row["cpu_throttled_ns"].is_null(), "{row}");
    }
    burns.kill();
    holds.kill();
    drop((cpu, memory, group));
}
