//! What the fallback measures, and why not the rest.

use super::Fallback;
use crate::{
    coverage::Status,
    model::{Measured, Standing},
};

/// What only the programs with type information measure.
const NEEDS_TYPES: [&str; 9] = [
    "ebpf",
    "run_queue_delay",
    "switches",
    "blocked_io",
    "network",
    "direct_reclaim",
    "oom_kills",
    "task_states",
    "syscall_classes",
];

impl Fallback {
    /// What it measures, and why not the rest; `refusal` says why it is not eBPF with type information.
    #[must_use]
    pub fn standing(&self, refusal: &(Status, String)) -> Standing {
        let (counts_births, has_records) = (self.births.works().is_some(), self.taskstats.works().is_some());
        let mut standing = Standing::of(Measured {
            tasks: true,
            cpu_split: true,
            faults: true,
            disk: self.hides_io.is_none(),
            calls: self.hides_io.is_none(),
            memory: true,
            births: counts_births || has_records,
            execs: counts_births,
            failures: has_records,
            cgroups: true,
            ..Measured::default()
        });
        for name in NEEDS_TYPES {
            standing.lacks(name, refusal.0, refusal.1.clone());
        }
        for (name, absence) in [("tracepoints", self.births.absence()), ("taskstats", self.taskstats.absence())] {
            if let Some((status, reason)) = absence {
                standing.lacks(name, status, reason);
            }
        }
        if let Some((status, reason)) = self.hides_io {
            standing.lacks("disk_io", status, reason);
            standing.lacks("call_counts", status, reason);
        }
        if has_records {
            let reason = "each is counted; its CPU time is known to a tick of the clock, about 90 % of the sum of many";
            standing.lacks("short_lives", Status::Unsupported, reason);
        } else {
            standing.lacks("short_lives", refusal.0, refusal.1.clone());
            standing.lacks("exit_status", refusal.0, refusal.1.clone());
            standing.lacks("memory_peak_of_the_dead", Status::Unsupported, "/proc forgets a process when it ends");
        }
        match (counts_births, has_records) {
            (true, _) => {}
            (false, true) => {
                let reason = "processes that begin and end are counted; that one starts another program is not";
                standing.lacks("births", Status::Unsupported, reason);
            }
            (false, false) => standing.lacks("births", refusal.0, refusal.1.clone()),
        }
        standing
    }
}
