//! Same bytes, four kernels: the one static agent binary finds its way natively and on Debian's cloud kernels 5.10, 6.1 and 6.12,
//! whose structs are laid out otherwise; the same source, compiled for 64-bit Arm, does on 6.1 and 6.12 of that. On each the counters are true from both sides: 2,000 programs of a millisecond, a mixed load
//! while process ids run out, programs that another thread than the first one starts, a victim of the out-of-memory killer. What a
//! kernel cannot measure is named, with the reason.
//!
//! Natively the same counts are the scenarios `short_lived` (20,000 programs: under emulation ten times as many take minutes) and
//! `mixed_load`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use lab::{
    agent::Agent,
    binaries,
    kernels::{Architecture, Kernel},
    lost_ends::{self, LostEnds},
    microvm::{Guest, HOST, MicroVm},
    once::Seen,
    port,
    process::Running,
    short_lived::{self, Machine, Proof},
    sleepers,
    truth::{self, Truth},
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    process::Command,
    time::Duration,
};

const OOM: &str = concat!(include_str!("../lab/measuring.sh"), include_str!("../lab/oom.sh"));
/// A guest takes a minute and a half on an idle host, and several times as long beside others: more than ten minutes beside three compilers and everything else (a load of 20 on two CPUs).
const TIMEOUT: Duration = Duration::from_secs(1200);
/// Programs of a millisecond in a guest.
const PROGRAMS: u32 = 2_000;
/// Headers of a frame with TCP over IPv4 without options; slirp's TCP asks for none.
const HEADER_BYTES: u64 = 14 + 20 + 20;

/// The sampler's own word on where the kernel keeps what.
const LOG: &str = "info,node_agent::kernel=debug";

/// What every kernel here can do. Written down here and not taken from the agent, which could then lose one unnoticed.
const EVERYWHERE: &str = "ebpf tasks cgroups cgroup_cpu process_events short_lived_processes exit_status oom_kills \
    cpu_split run_queue_delay switches faults call_counts memory_peak direct_reclaim disk_io network timed_waits";

/// A capability's status, and the reason where it does not measure.
type Capability = (String, String);

/// What `node-agent doctor` says of a kernel.
#[derive(Debug)]
struct Doctor {
    kernel: String,
    capabilities: BTreeMap<String, Capability>,
    /// Offsets of the kernel's fields.
    layout: Vec<String>,
}

impl Doctor {
    fn read(report: &str, log: &str) -> Self {
        let report: Value = serde_json::from_str(report).unwrap_or_else(|error| panic!("{error}: {report}"));
        let text = |capability: &Value, name: &str| capability[name].as_str().unwrap().to_owned();
        let capabilities = report["capabilities"].as_array().unwrap().iter();
        let capabilities =
            capabilities.map(|each| (text(each, "name"), (text(each, "status"), text(each, "reason")))).collect();
        let layout = log.lines().find(|line| line.contains("layout of this kernel")).unwrap_or_else(|| panic!("{log}"));
        let fields = layout.split_once('{').unwrap().1.split(", ").map(str::to_owned);
        // When counting began is no field of the kernel's.
        let layout = fields.filter(|field| !field.contains("count_from_boottime_ns")).collect();
        Self { kernel: text(&report, "kernel"), capabilities, layout }
    }

    async fn of_this_host() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let agent = Agent::prepare(folder.path(), "", &[("NODE_AGENT_IDENTITY", "host"), ("NODE_AGENT_LOG", LOG)]);
        let said = agent.run(&["doctor", "--output", "json"]).await;
        Self::read(&String::from_utf8_lossy(&said.stdout), &String::from_utf8_lossy(&said.stderr))
    }

    fn release(&self) -> Vec<u32> {
        self.kernel.split(['.', '-']).map_while(|part| part.parse().ok()).take(2).collect()
    }

    /// Whether what each task sends and receives is counted. Before Linux 6.3 that takes programs at the return of functions, which a kernel of Arm has had
    /// since 6.4.
    fn counts_bytes(&self, architecture: Architecture) -> bool {
        architecture == Architecture::X86 || self.release()[..] >= [6, 3][..]
    }

    /// What a kernel cannot do is named, and it is this and nothing else.
    fn check(&self, architecture: Architecture) {
        let kernel = &self.kernel;
        let status = |name: &str| self.capabilities.get(name).map_or("absent", |(status, _)| status.as_str());
        let counts_bytes = self.counts_bytes(architecture);
        if !counts_bytes {
            assert_eq!(status("network"), "unsupported", "{kernel}");
            let reason = &self.capabilities["network"].1;
            assert!(reason.contains("an Arm kernel before Linux 6.4"), "{kernel}: {reason}");
        }
        for name in EVERYWHERE.split_whitespace().filter(|name| counts_bytes || *name != "network") {
            assert_eq!(status(name), "ok", "{kernel}: {name}: {:?}", self.capabilities.get(name));
        }
        // Before that, the memory is gone when the exit is shown.
        let shows_memory_at_exit = self.release()[..] >= [6, 16][..];
        let expected = if shows_memory_at_exit { "ok" } else { "unsupported" };
        assert_eq!(status("memory_peak_of_exited"), expected, "{kernel}");
        let reason = &self.capabilities["memory_peak_of_exited"].1;
        assert_eq!(reason.contains("before Linux 6.16"), !shows_memory_at_exit, "{kernel}: {reason}");
        for (name, (status, reason)) in &self.capabilities {
            assert!(status == "ok" || !reason.is_empty(), "{kernel}: {name} is {status}, without a reason");
        }
    }

    /// Delays are kept from a task's begin on up to Linux 5.13, and after that if a switch says so, which nobody set in a guest.
    fn check_delays_of_a_guest(&self) {
        let (status, reason) = &self.capabilities["blocked_io"];
        let is_switched = self.release()[..] >= [5, 14][..];
        assert_eq!(status, if is_switched { "not_applicable" } else { "ok" }, "{}: {reason}", self.kernel);
        assert_eq!(reason.contains("kernel.task_delayacct=1"), is_switched, "{}: {reason}", self.kernel);
    }
}

/// An agent that measures holds no right, but one up to Linux 5.18: such a kernel lets nobody read a map without it.
fn check_rights(kernel: Kernel, proof: &Proof) {
    const NONE: &str = "0000000000000000";
    const CAP_BPF: &str = "0000008000000000";
    let threads = &proof.threads;
    let held: BTreeSet<&str> = threads.lines().filter_map(|line| line.strip_prefix("CapEff:")).map(str::trim).collect();
    let keeps_one = kernel == Kernel::Linux5_10;
    let expected: &[_] = if keeps_one { &[NONE, CAP_BPF] } else { &[NONE] };
    assert_eq!(held, expected.iter().copied().collect(), "{kernel:?}: {threads}");
    let (status, reason) = proof.capability("privileges");
    assert_eq!(
        (status, reason.contains("only CAP_BPF is left")),
        ("CAPABILITY_STATUS_OK", keeps_one),
        "{kernel:?}: {reason}"
    );
}

/// Who asked for memory is not who was killed, and the kernel's own counters of both cgroups say so.
fn assert_victim(heartbeat: &str, counters: &str) {
    let seen = Seen(serde_json::from_str(heartbeat).unwrap_or_else(|error| panic!("{error}: {heartbeat}")));
    let counter = |name: &str| counters.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim();
    assert_eq!((counter("status "), counter("victim_kills "), counter("sibling_kills ")), ("137", "1", "0"));
    let (victim, sibling) = (seen.row(counter("victim_path ")), seen.row(counter("sibling_path ")));
    assert_eq!([&victim["oom_kills"], &victim["exits"]], [&json!(1); 2], "{victim}");
    assert_eq!(victim["failures"], json!([{ "wait_status": 9, "count": 1 }]));
    assert_eq!([&sibling["oom_kills"], &sibling["exits"]], [&json!(0), &json!(1)], "{sibling}");
    assert_eq!(sibling["failures"], json!([]));
}

/// All of it in one guest, one load after the other. Nobody else starts a process there.
async fn counts_the_truth_on(kernel: Kernel) {
    let folder = tempfile::tempdir().unwrap();
    let architecture = kernel.architecture();
    let [load, thread_exec, lose, states] = ["load.c", "thread_exec.c", "lose.c", "states.c"]
        .map(|source| binaries::compiled_for(architecture, source, folder.path()));
    let port = port::free().to_string();
    let here = folder.path().join("here");
    fs::create_dir(&here).unwrap();
    let mut server = Command::new(binaries::compiled("load.c", &here));
    let mut server = Running::start("server", server.args(["serve", "127.0.0.1", &port]), folder.path());
    server.line_with("listening", TIMEOUT).await;

    let script = format!(
        "# Else the kernel starts a process for each module that it looks for in vain.
        echo >/proc/sys/kernel/modprobe
        export NODE_AGENT_IDENTITY=host NODE_AGENT_STATE_DIR=/tmp/state
        # 3: a capability is missing; the test reads which.
        NODE_AGENT_LOG={LOG} node-agent doctor --output json >/tmp/report 2>/tmp/log || [ $? = 3 ] || exit 1
        give report /tmp/report
        give log /tmp/log
        under_load() {{
            load=$1 folder=/tmp/$1; shift
            mkdir $folder
            sh /etc/$load.sh \"$@\" || {{ cat $folder/agent.log; exit 1; }}
            [ ! -e $folder/heartbeat.json ] || give $load.heartbeat $folder/heartbeat.json
            give $load.counters $folder/counters
            [ ! -e $folder/threads ] || give $load.threads $folder/threads
        }}
        under_load short_lived /bin/node-agent {PROGRAMS} exec /tmp/short_lived
        modprobe null_blk nr_devices=1 || exit 1
        echo 4096 >/proc/sys/kernel/pid_max
        under_load mixed_load /bin/node-agent /bin/load /bin/thread_exec /tmp/mixed_load /dev/nullb0 eth0 {HOST} {port}
        under_load sleepers /bin/node-agent /bin/states /tmp/sleepers
        under_load oom /bin/node-agent /tmp/oom
        under_load lost_ends /bin/node-agent /bin/load /bin/lose /tmp/lost_ends
        give lost.heartbeat /tmp/lost_ends/lost.heartbeat.json
        give moved.heartbeat /tmp/lost_ends/moved.heartbeat.json"
    );
    let guest = Guest::running(&script)
        .on(kernel)
        .with_module("null_blk")
        .with_program("node-agent", &binaries::node_agent_of(architecture))
        .with_program("load", &load)
        .with_program("thread_exec", &thread_exec)
        .with_text("short_lived.sh", short_lived::SCRIPT)
        .with_text("mixed_load.sh", truth::SCRIPT)
        .with_program("lose", &lose)
        .with_program("states", &states)
        .with_text("lost_ends.sh", lost_ends::SCRIPT)
        .with_text("sleepers.sh", sleepers::SCRIPT)
        .with_text("oom.sh", OOM);
    let mut guest = MicroVm::boot(&folder.path().join("guest"), &guest);
    guest.end(TIMEOUT).await;
    let given = |name: &str| guest.given(name).unwrap_or_else(|| panic!("no {name}"));

    let doctor = Doctor::read(&given("report"), &given("log"));
    assert!(doctor.kernel.starts_with(&format!("{}.", kernel.series())), "{}", doctor.kernel);
    doctor.check(architecture);
    let native = Doctor::of_this_host().await;
    assert_eq!(
        doctor.kernel == native.kernel,
        doctor.layout == native.layout,
        "{} and {}",
        doctor.kernel,
        native.kernel
    );

    let proof = Proof::of(
        &given("short_lived.heartbeat"),
        &given("short_lived.counters"),
        &given("short_lived.threads"),
        Machine::Own,
    );
    proof.assert_exact(PROGRAMS);
    check_rights(kernel, &proof);
    let truth = Truth::of(&given("mixed_load.heartbeat"), &given("mixed_load.counters"));
    assert!(truth.counter("wraps") > 0, "no process id was used twice");
    truth.check_processes(Machine::Own);
    truth.check_cpu_and_disk("known");
    let counts_bytes = doctor.counts_bytes(architecture);
    if counts_bytes {
        // The emulator's own network loses nothing.
        truth.check_network(HEADER_BYTES, 0);
    } else {
        truth.check_unknown_network();
    }
    truth.check_thread_execs(counts_bytes);
    sleepers::check(&given("sleepers.heartbeat"), &given("sleepers.counters"));
    assert_victim(&given("oom.heartbeat"), &given("oom.counters"));
    let ends = LostEnds::of(&given("lost.heartbeat"), &given("moved.heartbeat"), &given("lost_ends.counters"));
    ends.check(Machine::Own);
    doctor.check_delays_of_a_guest();
}

#[tokio::test]
async fn linux_5_10_is_counted_exactly_and_what_it_cannot_do_is_named() {
    counts_the_truth_on(Kernel::Linux5_10).await;
}

#[tokio::test]
async fn linux_6_1_is_counted_exactly_and_what_it_cannot_do_is_named() {
    counts_the_truth_on(Kernel::Linux6_1).await;
}

#[tokio::test]
async fn linux_6_12_is_counted_exactly_and_what_it_cannot_do_is_named() {
    counts_the_truth_on(Kernel::Linux6_12).await;
}

#[tokio::test]
async fn linux_6_1_on_arm_is_counted_exactly_and_what_it_cannot_do_is_named() {
    counts_the_truth_on(Kernel::Linux6_1Arm).await;
}

#[tokio::test]
async fn linux_6_12_on_arm_is_counted_exactly_and_what_it_cannot_do_is_named() {
    counts_the_truth_on(Kernel::Linux6_12Arm).await;
}

#[tokio::test]
async fn what_the_hosts_own_kernel_cannot_do_is_named() {
    Doctor::of_this_host().await.check(if cfg!(target_arch = "aarch64") {
        Architecture::Arm
    } else {
        Architecture::X86
    });
}

#[tokio::test]
async fn whom_the_out_of_memory_killer_killed_is_told_by_the_victims_row_not_by_that_of_who_asked() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("oom.sh");
    fs::write(&script, OOM).unwrap();
    let mut command = Command::new("sh");
    command.arg("-x").arg(&script).arg(binaries::node_agent()).arg(folder.path());
    // Kept until the end, for what it said is shown when the test fails.
    let mut script = Running::start("oom", &mut command, folder.path());
    let status = script.end(TIMEOUT).await;
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap_or_default();
    assert!(status.success(), "{status}; the agent said: {}", read("agent.log"));
    assert_victim(&read("heartbeat.json"), &read("counters"));
}
