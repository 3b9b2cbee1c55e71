//! Under a mixed load the agent's sums agree with every other counter that the kernel keeps of the same work: CPU time and disk bytes
//! with the cgroup's own within 1 %, network bytes with the interface's within 2 %, processes and the ways in which they end
//! exactly, also those whose program a thread other than the first one starts. Here on a hybrid host beside stress-ng; the scenario
//! `kernels` has the same load on other kernels. And of processes that stand still, whatever `/proc` says is what the agent says.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use lab::{
    binaries,
    once::{Group, Once, Seen},
    process::Running,
    short_lived::Machine,
    truth::{self, Truth},
    wait,
};
use serde_json::json;
use std::{fs, path::Path, process::Command, time::Duration};

const TIMEOUT: Duration = Duration::from_secs(300);
/// Headers of a frame with TCP over IPv4 and its timestamps. How many bytes share one is up to the kernel: the busier the host, the fewer.
const HEADER_BYTES: u64 = 14 + 20 + 20 + 12;

/// A network of its own at the other end of a cable.
struct Namespace(String);

impl Namespace {
    const OUTSIDE: &str = "sweeper-lab0";
    const ADDRESS: &str = "10.213.7.2";

    fn new() -> Self {
        let name = format!("sweeper-lab-{}", std::process::id());
        ip(&["netns", "add", &name]);
        let namespace = Self(name);
        let name = &namespace.0;
        ip(&["link", "add", Self::OUTSIDE, "type", "veth", "peer", "name", "inside", "netns", name]);
        ip(&["address", "add", "10.213.7.1/24", "dev", Self::OUTSIDE]);
        ip(&["link", "set", Self::OUTSIDE, "up"]);
        ip(&["-n", name, "address", "add", &format!("{}/24", Self::ADDRESS), "dev", "inside"]);
        ip(&["-n", name, "link", "set", "inside", "up"]);
        namespace
    }

    /// A command that runs inside.
    fn inside(&self, program: &Path) -> Command {
        let mut command = Command::new(binaries::system("ip"));
        command.args(["netns", "exec", &self.0]).arg(program);
        command
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // The cable goes with it.
        let _ = Command::new(binaries::system("ip")).args(["netns", "delete", &self.0]).status();
    }
}

fn ip(words: &[&str]) {
    let done = Command::new(binaries::system("ip")).args(words).output().unwrap();
    assert!(done.status.success(), "ip {words:?}: {}", String::from_utf8_lossy(&done.stderr));
}

#[tokio::test]
async fn beside_stress_the_sums_are_those_of_every_other_counter() {
    let folder = tempfile::tempdir().unwrap();
    let load = binaries::compiled("load.c", folder.path());
    let thread_exec = binaries::compiled("thread_exec.c", folder.path());
    let script = folder.path().join("mixed_load.sh");
    fs::write(&script, truth::SCRIPT).unwrap();
    let namespace = Namespace::new();
    let mut server = namespace.inside(&load);
    server.args(["serve", Namespace::ADDRESS, "7777"]);
    let mut server = Running::start("server", &mut server, folder.path());
    server.line_with("listening", TIMEOUT).await;

    let mut command = Command::new("sh");
    // It ends at the first command that fails, and some fail without a word: the last one that it shows is that.
    command.arg("-x").arg(&script).arg(binaries::node_agent()).arg(&load).arg(thread_exec);
    command.arg(folder.path()).arg(folder.path().join("disk"));
    command.args([Namespace::OUTSIDE, Namespace::ADDRESS, "7777"]).arg(binaries::system("stress-ng"));
    // Kept until the end, for what it said is shown when the test fails.
    let mut script = Running::start("mixed-load", &mut command, folder.path());
    let status = script.end(TIMEOUT).await;
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap_or_default();
    assert!(status.success(), "{status}; the agent said: {}", read("agent.log"));

    let truth = Truth::of(&read("heartbeat.json"), &read("counters"));
    truth.check_processes(Machine::Shared);
    truth.check_cpu_and_disk("known");
    truth.check_cpu_and_disk("wild");
    let again = server.output();
    let again = again.lines().find_map(|line| line.strip_prefix("serve_retransmitted ")).expect("what it sent again");
    truth.check_network(HEADER_BYTES, again.parse().unwrap());
    truth.check_thread_execs();
    // stress-ng's sockets talk over loopback alone.
    let wild = truth.row("wild");
    assert_eq!([&wild["network_received_bytes"], &wild["network_sent_bytes"]], [&json!(0), &json!(0)]);
}

/// What `/proc` says of a process that has one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Proc {
    cpu_ns: u64,
    run_queue_delay_ns: u64,
    voluntary_switches: u64,
    involuntary_switches: u64,
    read_calls: u64,
    write_calls: u64,
    minor_faults: u64,
    user_ticks: u64,
    system_ticks: u64,
}

impl Proc {
    fn of(process: &Running) -> Self {
        let read = |name: &str| fs::read_to_string(format!("/proc/{}/{name}", process.pid().as_raw_nonzero())).unwrap();
        let after = |file: &str, name: &str| -> u64 {
            let text = read(file);
            text.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().parse().unwrap()
        };
        let schedstat: Vec<u64> = read("schedstat").split_whitespace().map(|word| word.parse().unwrap()).collect();
        // The first word behind the name in brackets is the third of proc_pid_stat(5).
        let stat = read("stat");
        let stat: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        let number = |field: usize| stat[field - 3].parse().unwrap();
        Self {
            cpu_ns: schedstat[0],
            run_queue_delay_ns: schedstat[1],
            voluntary_switches: after("status", "voluntary_ctxt_switches:"),
            involuntary_switches: after("status", "nonvoluntary_ctxt_switches:"),
            read_calls: after("io", "syscr:"),
            write_calls: after("io", "syscw:"),
            minor_faults: number(10),
            user_ticks: number(14),
            system_ticks: number(15),
        }
    }

    fn and(self, other: Self) -> Self {
        Self {
            cpu_ns: self.cpu_ns + other.cpu_ns,
            run_queue_delay_ns: self.run_queue_delay_ns + other.run_queue_delay_ns,
            voluntary_switches: self.voluntary_switches + other.voluntary_switches,
            involuntary_switches: self.involuntary_switches + other.involuntary_switches,
            read_calls: self.read_calls + other.read_calls,
            write_calls: self.write_calls + other.write_calls,
            minor_faults: self.minor_faults + other.minor_faults,
            user_ticks: self.user_ticks + other.user_ticks,
            system_ticks: self.system_ticks + other.system_ticks,
        }
    }
}

/// Of two processes that share a CPU and then stand still.
fn assert_row_is(seen: &Seen, key: &str, truth: Proc) {
    let row = seen.row(key);
    let of = |name: &str| row[name].as_u64().unwrap_or_else(|| panic!("{name} was not measured: {row}"));
    for (name, truth) in [
        ("cpu_ns", truth.cpu_ns),
        ("run_queue_delay_ns", truth.run_queue_delay_ns),
        ("voluntary_switches", truth.voluntary_switches),
        ("involuntary_switches", truth.involuntary_switches),
        ("read_calls", truth.read_calls),
        ("write_calls", truth.write_calls),
        ("minor_faults", truth.minor_faults),
    ] {
        assert!(truth > 0, "nothing happened: {name}");
        assert_eq!(of(name), truth, "{name}: {row}");
    }
    // Where the tick samples them, the kernel shows user and system time scaled to the exact sum of both; the agent tells the samples. How many
    // there are is chance: whoever sleeps often runs between two ticks, and a virtual CPU that its host held back has missed some, of both kinds
    // alike (a quarter of the time was sampled on a busy host). More than were used is an error of sampling, which is small.
    let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second();
    let sampled = of("cpu_user_ns") + of("cpu_system_ns");
    assert!(sampled > 0 && sampled < truth.cpu_ns * 6 / 5, "{sampled} ns: {row}, {truth:?}");
    for (name, ticks) in [("cpu_user_ns", truth.user_ticks), ("cpu_system_ns", truth.system_ticks)] {
        assert!(ticks > 0, "the load has both: {truth:?}");
        let scaled = u64::try_from(u128::from(of(name)) * u128::from(truth.cpu_ns) / u128::from(sampled)).unwrap();
        assert!(scaled.abs_diff(ticks * tick_ns) <= truth.cpu_ns / 10, "{name}: {row}, {truth:?}");
    }
}

#[tokio::test]
async fn of_processes_that_stand_still_the_agent_says_what_proc_says_and_counts_system_calls_only_if_asked() {
    const CALLS: u64 = 100_000;
    const READS: u64 = 6_000;
    const WRITES: u64 = 3_000;
    let folder = tempfile::tempdir().unwrap();
    let load = binaries::compiled("load.c", folder.path());
    let plain = Once::measuring(&folder.path().join("plain"), "").await;
    let by_class = Once::measuring(&folder.path().join("by-class"), "syscall_classes = true\n").await;
    let group = Group::new("held");
    let mut held: Vec<Running> = ["first", "second"]
        .map(|name| {
            let mut command = group.inside(&load);
            Running::start(name, command.arg("hold").args([CALLS, READS, WRITES].map(|n| n.to_string())), folder.path())
        })
        .into();
    for process in &mut held {
        process.line_with("held", TIMEOUT).await;
    }
    let truth = || held.iter().map(Proc::of).fold(Proc::default(), Proc::and);
    let both_stand_still = || async {
        let is_asleep = |process: &Running| {
            let stat = fs::read_to_string(format!("/proc/{}/stat", process.pid().as_raw_nonzero())).unwrap();
            stat.rsplit(')').next().unwrap().starts_with(" S")
        };
        held.iter().all(is_asleep).then_some(())
    };
    wait::until("both to stand still", TIMEOUT, both_stand_still).await;
    let before = truth();
    let (plain, by_class) = (plain.heartbeat().await, by_class.heartbeat().await);
    assert_eq!(truth(), before, "they stood still");
    for seen in [&plain, &by_class] {
        assert_row_is(seen, &group.key(), before);
        assert_eq!(seen.row(&group.key())["live_processes"], 2);
    }

    assert_eq!(plain.row(&group.key())["syscalls"], json!([]));
    let classes = by_class.row(&group.key())["syscalls"].as_array().unwrap().clone();
    let count =
        |class: &str| classes.iter().find(|row| row["class"] == class).map_or(0, |row| row["count"].as_u64().unwrap());
    // What the shells did before they became `load`, and what the C library does at a program's begin.
    const BESIDES: u64 = 500;
    for (class, asked) in [("process", CALLS), ("read", READS), ("write", WRITES)] {
        let (asked, count) = (2 * asked, count(class));
        assert!(count >= asked && count <= asked + BESIDES, "{class}: {count} of {asked}: {classes:?}");
    }
    // Each sleeps 50 times.
    assert!(count("time") >= 100, "{classes:?}");
    drop(held);
}
