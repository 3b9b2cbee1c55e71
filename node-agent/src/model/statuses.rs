//! What a source of the tasks' counters measures, and why it does not measure the rest. Plain data.

use crate::coverage::{Capabilities, Status};
use serde::{Deserialize, Serialize};

/// The capabilities that speak about the tasks' counters.
const CAPABILITIES: [&str; 23] = [
    "ebpf",
    "tracepoints",
    "taskstats",
    "tasks",
    "cpu_split",
    "run_queue_delay",
    "switches",
    "faults",
    "call_counts",
    "disk_io",
    "blocked_io",
    "network",
    "memory_peak",
    "memory_peak_of_exited",
    "direct_reclaim",
    "process_events",
    "short_lived_processes",
    "exit_status",
    "oom_kills",
    "cgroups",
    "task_states",
    "timed_waits",
    "syscall_classes",
];

/// Which columns of the rows hold a measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    /// CPU time and who lives.
    pub tasks: bool,
    /// CPU time in user and in kernel mode.
    pub cpu_split: bool,
    /// Waiting for a CPU.
    pub run_queue: bool,
    /// Context switches.
    pub switches: bool,
    /// Page faults.
    pub faults: bool,
    /// Read and write system calls.
    pub calls: bool,
    /// Storage traffic.
    pub disk: bool,
    /// Waiting for block I/O.
    pub blocked_io: bool,
    /// Network traffic.
    pub network: bool,
    /// Resident memory, and its peak.
    pub memory: bool,
    /// Tasks that reclaim memory by themselves.
    pub direct_reclaim: bool,
    /// Forks and exits.
    pub process_events: bool,
    /// Execs.
    pub execs: bool,
    /// How processes end.
    pub failures: bool,
    /// Kills by the out-of-memory killer.
    pub oom_kills: bool,
    /// System calls by class.
    pub syscalls: bool,
    /// Which cgroup a task is in.
    pub cgroups: bool,
    /// In which state tasks are, and when they ran last.
    pub states: bool,
    /// Which tasks sleep by a timer.
    pub timed_waits: bool,
}

/// What is measured, and a reason for each capability that is not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statuses {
    /// Columns of the rows.
    pub measured: Measured,
    absences: Vec<(String, Status, String)>,
}

impl Statuses {
    /// These columns, and nothing said about the others yet.
    #[must_use]
    pub fn of(measured: Measured) -> Self {
        Self { measured, absences: Vec::new() }
    }

    /// Says why a capability does not measure; the last word on it counts.
    pub fn lacks(&mut self, capability: &str, status: Status, reason: impl Into<String>) {
        self.absences.push((capability.to_owned(), status, reason.into()));
    }

    /// Says that a capability which could measure does not, if it would have: `network` or `syscall_classes`.
    pub fn shed(&mut self, capability: &str, reason: &str) {
        let column = match capability {
            "network" => &mut self.measured.network,
            "syscall_classes" => &mut self.measured.syscalls,
            _ => return,
        };
        if std::mem::take(column) {
            self.lacks(capability, Status::Denied, reason);
        }
    }

    /// Says that the host's tasks are not seen at all: no column holds a measurement.
    pub fn see_nothing(&mut self, reason: &str) {
        self.measured = Measured::default();
        for capability in CAPABILITIES {
            self.lacks(capability, Status::Denied, reason);
        }
    }

    /// States every capability of the tasks' counters.
    pub fn state(&self, capabilities: &mut Capabilities) {
        for name in CAPABILITIES {
            match self.absences.iter().rfind(|(capability, ..)| capability == name) {
                None => capabilities.ok(name),
                Some((_, status, reason)) => capabilities.set(name, *status, reason.clone()),
            }
        }
    }

    /// Nothing could be read this time: whatever should have measured did not.
    pub fn state_failure(&self, capabilities: &mut Capabilities, failure: &str) {
        for name in CAPABILITIES {
            if !["ebpf", "tracepoints", "taskstats", "cgroups"].contains(&name)
                && capabilities.status(name) == Some(Status::Ok)
            {
                capabilities.set(name, Status::Broken, failure);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capability_is_ok_unless_something_is_said_about_it_and_the_last_word_counts() {
        let mut statuses = Statuses::default();
        statuses.lacks("network", Status::Unsupported, "first");
        statuses.lacks("network", Status::Denied, "last");
        let mut capabilities = Capabilities::default();
        statuses.state(&mut capabilities);
        assert_eq!(capabilities.status("network"), Some(Status::Denied));
        assert_eq!(capabilities.status("tasks"), Some(Status::Ok));
        statuses.state_failure(&mut capabilities, "why");
        assert_eq!(capabilities.status("network"), Some(Status::Denied));
        assert_eq!(capabilities.status("tasks"), Some(Status::Broken));
        assert_eq!(capabilities.status("ebpf"), Some(Status::Ok));
    }

    #[test]
    fn who_sees_no_task_of_the_host_measures_nothing_of_them() {
        let mut statuses = Statuses::of(Measured { tasks: true, disk: true, ..Measured::default() });
        statuses.see_nothing("why");
        assert_eq!(statuses.measured, Measured::default());
        let mut capabilities = Capabilities::default();
        statuses.state(&mut capabilities);
        for capability in CAPABILITIES {
            assert_eq!(capabilities.status(capability), Some(Status::Denied), "{capability}");
        }
    }
}
