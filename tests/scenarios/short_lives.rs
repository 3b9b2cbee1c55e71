//! Processes that live for a millisecond are counted to the last one, and their CPU time is what the kernel's own books of their
//! cgroup say: natively, and with the identical binary on another kernel.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use lab::{
    binaries,
    microvm::{Guest, MicroVm},
    process::Running,
};
use serde_json::Value;
use std::{fs, path::Path, process::Command, time::Duration};

const SCRIPT: &str = include_str!("../lab/short_lives.sh");
const TIMEOUT: Duration = Duration::from_secs(300);

/// What the agent and the cgroup's own books say about the same lives.
struct Proof {
    heartbeat: Value,
    path: String,
    cpu_ns: u64,
}

impl Proof {
    fn of(heartbeat: &str, books: &str) -> Self {
        let mut lines = books.lines();
        Self {
            heartbeat: serde_json::from_str(heartbeat).unwrap_or_else(|error| panic!("{error}: {heartbeat}")),
            path: lines.next().unwrap().to_owned(),
            cpu_ns: lines.next().unwrap().parse().unwrap(),
        }
    }

    async fn on_this_host(count: u32, kind: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("short_lives.sh");
        fs::write(&script, SCRIPT).unwrap();
        let mut command = Command::new("sh");
        command.arg(&script).arg(binaries::node_agent()).arg(count.to_string()).arg(kind).arg(folder.path());
        let status = Running::start("short-lives", &mut command, folder.path()).end(TIMEOUT).await;
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap_or_default();
        assert!(status.success(), "{status}; the agent said: {}", read("agent.log"));
        Self::of(&read("heartbeat.json"), &read("books"))
    }

    async fn in_a_micro_vm(folder: &Path, count: u32, kind: &str) -> Self {
        let script = format!(
            "sh /etc/short_lives.sh /bin/node-agent {count} {kind} /tmp || {{ cat /tmp/agent.log; exit 1; }}
            give heartbeat /tmp/heartbeat.json
            give books /tmp/books"
        );
        let guest = Guest::running(&script)
            .with_program("node-agent", &binaries::node_agent())
            .with_text("short_lives.sh", SCRIPT);
        let mut guest = MicroVm::boot(folder, &guest);
        guest.end(TIMEOUT).await;
        Self::of(&guest.given("heartbeat").unwrap(), &guest.given("books").unwrap())
    }

    /// One counter of the workload row of this path; 0 if there is no such row.
    fn counter(&self, path: &str, name: &str) -> u64 {
        let rows = self.heartbeat["workloads"].as_array().unwrap();
        let row = rows.iter().find(|row| row["key"] == path && row["class"] == "CLASS_WORKLOAD");
        row.map_or(0, |row| row[name].as_u64().unwrap_or_else(|| panic!("{name} was not measured: {row}")))
    }

    fn own(&self, name: &str) -> u64 {
        self.counter(&self.path, name)
    }

    fn rest(&self, name: &str) -> u64 {
        self.counter("rest", name)
    }

    fn drops(&self, name: &str) -> u64 {
        let drops = self.heartbeat["coverage"]["drops"].as_array().unwrap();
        drops.iter().find(|drop| drop["name"] == name).unwrap()["count"].as_u64().unwrap()
    }

    fn assert_exact(&self, count: u32) {
        let count = u64::from(count);
        assert_eq!(self.heartbeat["coverage"]["collector"], "COLLECTOR_EBPF");
        assert_eq!([self.own("forks"), self.own("execs"), self.own("exits")], [count; 3], "forks, execs, exits");
        let agent = self.own("cpu_ns");
        let off_by = agent.abs_diff(self.cpu_ns);
        assert!(off_by * 100 <= self.cpu_ns, "the agent says {agent} ns, the cgroup's books {} ns", self.cpu_ns);
        for drop in self.heartbeat["coverage"]["drops"].as_array().unwrap() {
            assert_eq!(drop["count"], 0, "{drop}");
        }
    }
}

#[tokio::test]
async fn twenty_thousand_short_lives_are_counted_exactly_and_to_the_nanosecond() {
    const COUNT: u32 = 20_000;
    let proof = Proof::on_this_host(COUNT, "exec").await;
    assert!(proof.cpu_ns / u64::from(COUNT) < 3_000_000, "no short lives: {} ns for all", proof.cpu_ns);
    proof.assert_exact(COUNT);
}

#[tokio::test]
async fn a_flood_of_names_loses_attribution_and_never_the_sums() {
    // The map holds 8,192 keys: thousands of these names find no place.
    const COUNT: u32 = 12_000;
    let proof = Proof::on_this_host(COUNT, "names").await;
    assert!(proof.drops("detail_fold_overflow") > 0);
    assert!(proof.own("exits") < u64::from(COUNT));
    // What others on this host did meanwhile may be in the rest as well, but no more than they were.
    let exits = proof.own("exits") + proof.rest("exits");
    assert!(exits >= u64::from(COUNT), "{exits}");
    let cpu_ns = proof.own("cpu_ns") + proof.rest("cpu_ns");
    assert!(cpu_ns >= proof.cpu_ns / 100 * 99, "{cpu_ns} ns of {} ns", proof.cpu_ns);
}

#[tokio::test]
async fn the_same_binary_counts_exactly_on_another_kernel() {
    const COUNT: u32 = 2_000;
    let folder = tempfile::tempdir().unwrap();
    let proof = Proof::in_a_micro_vm(folder.path(), COUNT, "exec").await;
    proof.assert_exact(COUNT);
}

#[tokio::test]
async fn a_flood_of_names_is_summed_up_exactly_where_nobody_else_runs() {
    const COUNT: u32 = 12_000;
    let folder = tempfile::tempdir().unwrap();
    let proof = Proof::in_a_micro_vm(folder.path(), COUNT, "names").await;
    assert!(proof.drops("detail_fold_overflow") > 0);
    assert_eq!(proof.own("forks") + proof.rest("forks"), u64::from(COUNT));
    assert_eq!(proof.own("exits") + proof.rest("exits"), u64::from(COUNT));
    let cpu_ns = proof.own("cpu_ns") + proof.rest("cpu_ns");
    let off_by = cpu_ns.abs_diff(proof.cpu_ns);
    assert!(off_by * 100 <= proof.cpu_ns, "{cpu_ns} ns, and the cgroup's books say {} ns", proof.cpu_ns);
}
