//! CPU time that a task's own path lost is taken up from its cgroup's counter: once, and never what was not lost. That it is so on other kernels, and on
//! a pure version 2 tree, is the scenario `kernels`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use lab::{
    binaries,
    lost_ends::{LostEnds, SCRIPT},
    process::Running,
    short_lived::Machine,
};
use std::{fs, process::Command, time::Duration};

const TIMEOUT: Duration = Duration::from_secs(300);

#[tokio::test]
async fn what_a_lost_end_used_is_taken_up_from_the_cgroup_once_and_a_move_is_no_loss() {
    let folder = tempfile::tempdir().unwrap();
    let [load, lose] = ["load.c", "lose.c"].map(|source| binaries::compiled(source, folder.path()));
    let script = folder.path().join("lost_ends.sh");
    fs::write(&script, SCRIPT).unwrap();
    let mut command = Command::new("sh");
    command.arg("-x").arg(&script).arg(binaries::node_agent()).arg(&load).arg(&lose).arg(folder.path());
    // Kept until the end, for what it said is shown when the test fails.
    let mut script = Running::start("lost-ends", &mut command, folder.path());
    let status = script.end(TIMEOUT).await;
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap_or_default();
    assert!(status.success(), "{status}; the agent said: {}{}", read("lost.agent.log"), read("agent.log"));
    let ends = LostEnds::of(&read("lost.heartbeat.json"), &read("moved.heartbeat.json"), &read("counters"));
    ends.check(Machine::Shared);
}
