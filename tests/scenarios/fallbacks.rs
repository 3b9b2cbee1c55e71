//! Where eBPF does not run in full, the same heartbeat says what is counted all the same, and names what is not: no type information, no
//! eBPF, neither; natively and on another kernel.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use lab::{
    binaries,
    short_lived::{Proof, ShortLived},
};

const COUNT: u32 = 1_000;
const N: u64 = 1_000;
const OK: &str = "CAPABILITY_STATUS_OK";
const UNSUPPORTED: &str = "CAPABILITY_STATUS_UNSUPPORTED";
const DENIED: &str = "CAPABILITY_STATUS_DENIED";
/// Hides the kernel's type information from everybody in this mount namespace.
const NO_TYPES: &str = "mount -t tmpfs none /sys/kernel/btf";
/// A user without any right, or with one.
const NOBODY: &str = "setpriv --reuid=65534 --regid=65534 --clear-groups";

fn processes(source: &'static str, before: &'static str, rights: &str) -> ShortLived {
    let mut agent: Vec<String> = rights.split_whitespace().map(str::to_owned).collect();
    if !agent.is_empty() {
        agent.push(binaries::node_agent().display().to_string());
    }
    ShortLived { source, before, agent, ..ShortLived::programs(COUNT) }
}

async fn native(source: &'static str, before: &'static str, rights: &str) -> Proof {
    Proof::on_this_host(&processes(source, before, rights)).await
}

async fn guest(source: &'static str, before: &'static str) -> Proof {
    let folder = tempfile::tempdir().unwrap();
    Proof::in_a_micro_vm(folder.path(), &processes(source, before, "")).await
}

fn assert_source(proof: &Proof, source: &str) {
    assert_eq!(proof.heartbeat["coverage"]["source"], source);
    assert_eq!(proof.capability("tasks").0, OK);
    assert_ne!(proof.capability("ebpf").0, OK);
}

/// Forks, program starts and ends are exact.
fn assert_process_events(proof: &Proof) {
    assert_eq!([proof.own("forks"), proof.own("execs"), proof.own("exits")], [N; 3], "forks, execs, exits");
    assert_eq!(proof.capability("process_events").0, OK);
    proof.assert_nothing_lost();
}

/// The kernel's records count each of exited processes; the shell that started them is in this cgroup, is new as well, and has not exited.
fn assert_records(proof: &Proof) {
    assert_eq!([proof.own("forks"), proof.own("exits")], [N + 1, N], "forks, exits");
    assert_eq!(proof.capability("process_events").0, UNSUPPORTED);
    proof.assert_nothing_lost();
}

/// CPU time of processes that are shorter than a tick of the clock is a sample of many.
fn assert_cpu_time(proof: &Proof) {
    let (agent, counter) = (proof.own("cpu_ns"), proof.cpu_ns);
    assert!(
        agent * 100 > counter * 50 && agent * 100 < counter * 130,
        "the agent says {agent} ns, the counter {counter} ns"
    );
    assert_eq!(proof.capability("short_lived_processes").0, UNSUPPORTED);
}

/// Nobody saw them: they are nowhere, and that is said.
fn assert_blind(proof: &Proof, status: &str) {
    assert_source(proof, "SOURCE_PROC");
    for row in proof.heartbeat["workloads"].as_array().unwrap() {
        assert!(row["forks"].is_null() && row["execs"].is_null() && row["exits"].is_null(), "{row}");
    }
    for capability in ["process_events", "short_lived_processes"] {
        assert_eq!(proof.capability(capability).0, status, "{capability}");
    }
}

#[tokio::test]
async fn each_part_can_be_asked_for_alone() {
    let proof = native("tracepoints", ":", "").await;
    assert_source(&proof, "SOURCE_TRACEPOINTS");
    assert_process_events(&proof);
    let proof = native("taskstats", ":", "").await;
    assert_source(&proof, "SOURCE_TASKSTATS");
    assert_records(&proof);
    assert_cpu_time(&proof);
    assert_blind(&native("proc", ":", "").await, UNSUPPORTED);
}

#[tokio::test]
async fn without_type_information_tracepoints_and_records_count_exactly() {
    let proof = native("auto", NO_TYPES, "").await;
    assert_source(&proof, "SOURCE_TRACEPOINTS_TASKSTATS");
    assert_process_events(&proof);
    assert_cpu_time(&proof);
    assert!(proof.capability("ebpf").1.contains("/sys/kernel/btf/vmlinux"), "{:?}", proof.capability("ebpf"));
}

#[tokio::test]
async fn without_the_right_to_load_programs_the_kernels_records_count() {
    let proof = native("auto", ":", &format!("{NOBODY} --inh-caps=+net_admin --ambient-caps=+net_admin")).await;
    assert_source(&proof, "SOURCE_TASKSTATS");
    assert_records(&proof);
    assert_eq!(
        (proof.capability("ebpf").0, proof.capability("tracepoints").0, proof.capability("taskstats").0),
        (DENIED, DENIED, OK)
    );
    // Other users' storage traffic is not shown to such a user.
    assert_eq!(proof.capability("disk_io").0, DENIED);
}

#[tokio::test]
async fn without_any_right_proc_is_left_and_says_what_it_cannot_see() {
    let proof = native("auto", ":", NOBODY).await;
    assert_blind(&proof, DENIED);
    assert_eq!((proof.capability("tracepoints").0, proof.capability("taskstats").0), (DENIED, DENIED));
}

#[tokio::test]
async fn another_kernel_without_type_information_is_served_as_well() {
    let proof = guest("auto", NO_TYPES).await;
    assert_source(&proof, "SOURCE_TRACEPOINTS_TASKSTATS");
    assert_process_events(&proof);
    assert_cpu_time(&proof);
}

#[tokio::test]
async fn another_kernels_records_count_exactly() {
    let proof = guest("taskstats", ":").await;
    assert_source(&proof, "SOURCE_TASKSTATS");
    assert_records(&proof);
    assert_cpu_time(&proof);
}

#[tokio::test]
async fn another_kernels_proc_says_what_it_cannot_see() {
    assert_blind(&guest("proc", ":").await, UNSUPPORTED);
}
