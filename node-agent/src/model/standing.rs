//! What a source of the tasks' books measures, and why it does not measure the rest. Plain data.

use crate::coverage::{Probes, Status};
use serde::{Deserialize, Serialize};

/// The probes that speak about the tasks' books.
const PROBES: [&str; 22] = [
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
    "memory_peak_of_the_dead",
    "direct_reclaim",
    "births",
    "short_lives",
    "exit_status",
    "oom_kills",
    "cgroups",
    "task_states",
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
    pub births: bool,
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
}

/// What is measured, and a reason for each probe that is not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// Columns of the rows.
    pub measured: Measured,
    absences: Vec<(String, Status, String)>,
}

impl Standing {
    /// These columns, and nothing said about the others yet.
    #[must_use]
    pub fn of(measured: Measured) -> Self {
        Self { measured, absences: Vec::new() }
    }

    /// Says why a probe does not measure; the last word on it counts.
    pub fn lacks(&mut self, probe: &str, status: Status, reason: impl Into<String>) {
        self.absences.push((probe.to_owned(), status, reason.into()));
    }

    /// Says that a probe which could measure does not, if it would have: `network` or `syscall_classes`.
    pub fn give_up(&mut self, probe: &str, reason: &str) {
        let column = match probe {
            "network" => &mut self.measured.network,
            "syscall_classes" => &mut self.measured.syscalls,
            _ => return,
        };
        if std::mem::take(column) {
            self.lacks(probe, Status::Denied, reason);
        }
    }

    /// Says that the host's tasks are not seen at all: no column holds a measurement.
    pub fn see_nothing(&mut self, reason: &str) {
        self.measured = Measured::default();
        for probe in PROBES {
            self.lacks(probe, Status::Denied, reason);
        }
    }

    /// States every probe of the tasks' books.
    pub fn state(&self, probes: &mut Probes) {
        for name in PROBES {
            match self.absences.iter().rfind(|(probe, ..)| probe == name) {
                None => probes.ok(name),
                Some((_, status, reason)) => probes.set(name, *status, reason.clone()),
            }
        }
    }

    /// Nothing could be read this time: whatever should have measured did not.
    pub fn state_failure(&self, probes: &mut Probes, failure: &str) {
        for name in PROBES {
            if !["ebpf", "tracepoints", "taskstats", "cgroups"].contains(&name)
                && probes.status(name) == Some(Status::Ok)
            {
                probes.set(name, Status::Broken, failure);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_is_ok_unless_something_is_said_about_it_and_the_last_word_counts() {
        let mut standing = Standing::default();
        standing.lacks("network", Status::Unsupported, "first");
        standing.lacks("network", Status::Denied, "last");
        let mut probes = Probes::default();
        standing.state(&mut probes);
        assert_eq!(probes.status("network"), Some(Status::Denied));
        assert_eq!(probes.status("tasks"), Some(Status::Ok));
        standing.state_failure(&mut probes, "why");
        assert_eq!(probes.status("network"), Some(Status::Denied));
        assert_eq!(probes.status("tasks"), Some(Status::Broken));
        assert_eq!(probes.status("ebpf"), Some(Status::Ok));
    }

    #[test]
    fn who_sees_no_task_of_the_host_measures_nothing_of_them() {
        let mut standing = Standing::of(Measured { tasks: true, disk: true, ..Measured::default() });
        standing.see_nothing("why");
        assert_eq!(standing.measured, Measured::default());
        let mut probes = Probes::default();
        standing.state(&mut probes);
        for probe in PROBES {
            assert_eq!(probes.status(probe), Some(Status::Denied), "{probe}");
        }
    }
}
