//! What an hour's rollup tells of its machine as a whole. It is kept beside the rollup, whose text is mostly workloads, and read without them.

use super::{Activity, Counter, Rollup, Subject};
use serde::{Deserialize, Serialize};

/// Rows whose time without a CPU is known must have had so many per cent of the CPU time of all.
const ROWS_PER_CENT: u64 = 95;

/// What a machine as a whole did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// By the host's own counters.
    pub node: Activity,
    /// For how long tasks could have run and had no CPU, in nanoseconds; none if too many rows do not tell.
    pub run_queue_delay_ns: Option<u64>,
    /// For how long limits withheld CPU time, in nanoseconds, of all rows that tell; none if none does.
    pub throttled_ns: Option<u64>,
}

impl From<&Rollup> for Summary {
    fn from(rollup: &Rollup) -> Self {
        let (run_queue_delay_ns, throttled_ns) = of_rows(rollup);
        Self { node: rollup.node.clone(), run_queue_delay_ns, throttled_ns }
    }
}

/// Time without a CPU, and time that limits withheld.
fn of_rows(rollup: &Rollup) -> (Option<u64>, Option<u64>) {
    let rows = || rollup.subjects.iter().filter(|entry| is_of_machine(&entry.subject)).map(|entry| &entry.activity);
    let total = |counter| rows().filter_map(|row| row.sum(counter)).map(|sum| sum.0).reduce(u64::saturating_add);
    let cpu = |all: bool| {
        let rows = rows().filter(|row| all || row.sum(Counter::RunQueueDelay).is_some());
        rows.filter_map(|row| row.sum(Counter::Cpu)).fold(0_u128, |total, sum| total + u128::from(sum.0))
    };
    let is_told = cpu(false) * 100 >= cpu(true) * u128::from(ROWS_PER_CENT);
    (total(Counter::RunQueueDelay).filter(|_| is_told), total(Counter::CpuThrottled))
}

/// Whether a row is of the view that has all of the machine's work once: runs with their parts are another one.
fn is_of_machine(subject: &Subject) -> bool {
    match subject {
        Subject::Workload { .. } => true,
        Subject::Overflow { of } => of == "workload",
        Subject::Run { .. } | Subject::Task { .. } | Subject::Tool { .. } => false,
    }
}
