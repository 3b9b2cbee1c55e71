//! Same bytes, two kernels: the one static agent binary finds its way natively and on Debian's 6.1 cloud kernel, whose
//! structs are laid out otherwise. That it counts exactly on both is the scenario `short_lives`; here it names on both whom the
//! out-of-memory killer killed.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use lab::{
    agent::Agent,
    binaries,
    microvm::{Guest, MicroVm},
    once::Seen,
    process::Running,
};
use serde_json::{Value, json};
use std::{fs, process::Command, time::Duration};

const OOM: &str = concat!(include_str!("../lab/measuring.sh"), include_str!("../lab/oom.sh"));
const TIMEOUT: Duration = Duration::from_secs(300);

/// The collector's own word on where the kernel keeps what.
const LOG: &str = "info,node_agent::kernel=debug";

/// What `node-agent doctor` says of a kernel.
struct Doctor {
    kernel: String,
    /// Probes that this kernel cannot serve.
    unsupported: Vec<String>,
    layout: String,
}

impl Doctor {
    fn read(report: &str, log: &str) -> Self {
        let report: Value = serde_json::from_str(report).unwrap_or_else(|error| panic!("{error}: {report}"));
        let probes = report["probes"].as_array().unwrap();
        assert!(probes.iter().any(|probe| probe["name"] == "ebpf" && probe["standing"] == "ok"), "{probes:#?}");
        let stands = |probe: &Value| ["ok", "not_applicable"].contains(&probe["standing"].as_str().unwrap());
        let unsupported =
            probes.iter().filter(|probe| !stands(probe)).map(|probe| probe["name"].as_str().unwrap().into());
        let layout = log.lines().find(|line| line.contains("layout of this kernel")).unwrap_or_else(|| panic!("{log}"));
        Self {
            kernel: report["kernel"].as_str().unwrap().into(),
            unsupported: unsupported.collect(),
            layout: layout.split_once("layout of this kernel").unwrap().1.into(),
        }
    }

    /// Before Linux 6.16 a process's memory is gone when its exit is shown; all else is measured on either kernel.
    fn check(&self) {
        let release = self.kernel.split(['.', '-']).map_while(|part| part.parse().ok()).collect::<Vec<u32>>();
        let expected: &[&str] = if release[..2] >= [6, 16][..] { &[] } else { &["memory_peak_of_the_dead"] };
        assert_eq!(self.unsupported, expected, "{}", self.kernel);
    }
}

#[tokio::test]
async fn the_same_binary_measures_on_two_kernels_with_different_layouts() {
    let folder = tempfile::tempdir().unwrap();
    let agent = Agent::prepare(folder.path(), "", &[("NODE_AGENT_IDENTITY", "host"), ("NODE_AGENT_LOG", LOG)]);
    let native = agent.run(&["doctor", "--output", "json"]).await;
    let native = Doctor::read(&String::from_utf8_lossy(&native.stdout), &String::from_utf8_lossy(&native.stderr));

    let script = format!(
        "export NODE_AGENT_IDENTITY=host NODE_AGENT_STATE_DIR=/tmp/state NODE_AGENT_LOG={LOG}
        # 3: a probe is unsupported; the test reads which.
        node-agent doctor --output json >/tmp/report 2>/tmp/log || [ $? = 3 ] || exit 1
        give report /tmp/report
        give log /tmp/log"
    );
    let guest = Guest::running(&script).with_program("node-agent", &binaries::node_agent());
    let mut vm = MicroVm::boot(&folder.path().join("guest"), &guest);
    vm.end(TIMEOUT).await;
    let guest = Doctor::read(&vm.given("report").unwrap(), &vm.given("log").unwrap());

    assert_ne!(native.kernel, guest.kernel);
    assert_ne!(native.layout, guest.layout);
    native.check();
    guest.check();
}

/// Who asked for memory is not who was killed, and the kernel's own books of both cgroups say so.
fn assert_victim(heartbeat: &str, books: &str) {
    let seen = Seen(serde_json::from_str(heartbeat).unwrap_or_else(|error| panic!("{error}: {heartbeat}")));
    let book = |name: &str| books.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim();
    assert_eq!((book("status "), book("victim_kills "), book("sibling_kills ")), ("137", "1", "0"));
    let (victim, sibling) = (seen.row(book("victim_path ")), seen.row(book("sibling_path ")));
    assert_eq!([&victim["oom_kills"], &victim["exits"]], [&json!(1); 2], "{victim}");
    assert_eq!(victim["failures"], json!([{ "wait_status": 9, "count": 1 }]));
    assert_eq!([&sibling["oom_kills"], &sibling["exits"]], [&json!(0), &json!(1)], "{sibling}");
    assert_eq!(sibling["failures"], json!([]));
}

#[tokio::test]
async fn whom_the_out_of_memory_killer_killed_is_told_by_the_victims_row_not_by_that_of_who_asked() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("oom.sh");
    fs::write(&script, OOM).unwrap();
    let mut command = Command::new("sh");
    command.arg(&script).arg(binaries::node_agent()).arg(folder.path());
    let status = Running::start("oom", &mut command, folder.path()).end(TIMEOUT).await;
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap_or_default();
    assert!(status.success(), "{status}; the agent said: {}", read("agent.log"));
    assert_victim(&read("heartbeat.json"), &read("books"));
}

#[tokio::test]
async fn the_same_binary_names_the_victim_on_another_kernel() {
    let script = "sh /etc/oom.sh /bin/node-agent /tmp || { cat /tmp/agent.log; exit 1; }
        give heartbeat /tmp/heartbeat.json
        give books /tmp/books";
    let guest = Guest::running(script).with_program("node-agent", &binaries::node_agent()).with_text("oom.sh", OOM);
    let folder = tempfile::tempdir().unwrap();
    let mut vm = MicroVm::boot(folder.path(), &guest);
    vm.end(TIMEOUT).await;
    assert_victim(&vm.given("heartbeat").unwrap(), &vm.given("books").unwrap());
}
