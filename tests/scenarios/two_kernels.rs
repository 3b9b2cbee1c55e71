//! Same bytes, two kernels: the one static agent binary finds its way natively and on Debian's 6.1 cloud kernel, whose
//! structs are laid out otherwise. That it counts exactly on both is the scenario `short_lives`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use lab::{
    agent::Agent,
    binaries,
    microvm::{Guest, MicroVm},
};
use serde_json::Value;
use std::time::Duration;

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
    vm.end(Duration::from_secs(300)).await;
    let guest = Doctor::read(&vm.given("report").unwrap(), &vm.given("log").unwrap());

    assert_ne!(native.kernel, guest.kernel);
    assert_ne!(native.layout, guest.layout);
    native.check();
    guest.check();
}
