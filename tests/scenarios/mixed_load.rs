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
    truth.check_thread_execs(true);
    // stress-ng's sockets talk over loopback alone.
    let wild = truth.row("wild");
    assert_eq!([&wild["network_received_bytes"], &wild["network_sent_bytes"]], [&json!(0), &json!(0)]);
}

/// What `/proc` and the kernel's clocks say of a process that has one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Proc {
    cpu_ns: u64,
    run_queue_delay_ns: u64,
    voluntary_switches: u64,
    involuntary_switches: u64,
    read_calls: u64,
    write_calls: u64,
    minor_faults: u64,
    user_ns: u64,
    system_ns: u64,
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
        let (user_ns, system_ns) = sampled(process);
        Self {
            cpu_ns: schedstat[0],
            run_queue_delay_ns: schedstat[1],
            voluntary_switches: after("status", "voluntary_ctxt_switches:"),
            involuntary_switches: after("status", "nonvoluntary_ctxt_switches:"),
            read_calls: after("io", "syscr:"),
            write_calls: after("io", "syscw:"),
            minor_faults: stat[10 - 3].parse().unwrap(),
            user_ns,
            system_ns,
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
            user_ns: self.user_ns + other.user_ns,
            system_ns: self.system_ns + other.system_ns,
        }
    }
}

/// User and system time of a process as the tick sampled them, from the kernel's clocks of a process, as `timer_create` uses them for `ITIMER_VIRTUAL` and
/// `ITIMER_PROF`. `/proc` and `times` show them scaled to the exact sum of both; how far the samples are from it is chance: 22 % too many were seen.
fn sampled(process: &Running) -> (u64, u64) {
    // As the kernel's `MAKE_PROCESS_CPUCLOCK` composes it.
    const USER_AND_SYSTEM: i32 = 0;
    const USER: i32 = 1;
    let clock_ns = |kind: i32| -> u64 {
        let clock = (!process.pid().as_raw_nonzero().get() << 3) | kind;
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` outlives the call, and a clock that is not there is an error, which is asserted.
        let status = unsafe { libc::clock_gettime(clock, &raw mut time) };
        assert_eq!(status, 0, "{}", std::io::Error::last_os_error());
        u64::try_from(time.tv_sec).unwrap() * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap()
    };
    let user = clock_ns(USER);
    (user, clock_ns(USER_AND_SYSTEM) - user)
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
        ("cpu_user_ns", truth.user_ns),
        ("cpu_system_ns", truth.system_ns),
    ] {
        assert!(truth > 0, "nothing happened: {name}");
        assert_eq!(of(name), truth, "{name}: {row}");
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
