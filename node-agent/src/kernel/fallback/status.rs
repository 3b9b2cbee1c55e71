//! What the fallback measures, and why not the rest.

use super::Fallback;
use crate::{
    coverage::Status,
    model::{Measured, Statuses},
};

/// What only the programs with type information measure.
const NEEDS_TYPES: [&str; 10] = [
    "ebpf",
    "run_queue_delay",
    "switches",
    "blocked_io",
    "network",
    "direct_reclaim",
    "oom_kills",
    "task_states",
    "timed_waits",
    "syscall_classes",
];

impl Fallback {
    /// What it measures, and why not the rest; `refusal` says why it is not eBPF with type information.
    #[must_use]
    pub fn statuses(&self, refusal: &(Status, String)) -> Statuses {
        let (counts_process_events, has_records) =
            (self.process_events.works().is_some(), self.taskstats.works().is_some());
        let mut statuses = Statuses::of(Measured {
            tasks: true,
            cpu_split: true,
            faults: true,
            disk: self.hides_io.is_none(),
            calls: self.hides_io.is_none(),
            memory: true,
            process_events: counts_process_events || has_records,
            execs: counts_process_events,
            failures: has_records,
            cgroups: true,
            ..Measured::default()
        });
        for name in NEEDS_TYPES {
            statuses.lacks(name, refusal.0, refusal.1.clone());
        }
        for (name, absence) in [("tracepoints", self.process_events.absence()), ("taskstats", self.taskstats.absence())]
        {
            if let Some((status, reason)) = absence {
                statuses.lacks(name, status, reason);
            }
        }
        if let Some((status, reason)) = self.hides_io {
            statuses.lacks("disk_io", status, reason);
            statuses.lacks("call_counts", status, reason);
        }
        if has_records {
            let reason = "each is counted; its CPU time is known to a tick of the clock, about 90 % of the sum of many";
            statuses.lacks("short_lived_processes", Status::Unsupported, reason);
        } else {
            statuses.lacks("short_lived_processes", refusal.0, refusal.1.clone());
            statuses.lacks("exit_status", refusal.0, refusal.1.clone());
            statuses.lacks("memory_peak_of_exited", Status::Unsupported, "/proc forgets a process when it ends");
        }
        match (counts_process_events, has_records) {
            (true, _) => {}
            (false, true) => {
                let reason = "processes that begin and end are counted; that one starts another program is not";
                statuses.lacks("process_events", Status::Unsupported, reason);
            }
            (false, false) => statuses.lacks("process_events", refusal.0, refusal.1.clone()),
        }
        statuses
    }
}
