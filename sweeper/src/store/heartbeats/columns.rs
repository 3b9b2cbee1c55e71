//! What a node did, in columns beside its packed heartbeat: what people and live views ask for without unpacking it.
//!
//! Each is a cumulative counter of the heartbeat, or a sum of some: what was done in an interval is the difference to the heartbeat before of the same boot,
//! and for what the agent counts itself (workloads, GPUs) of the same `counters_since_boottime_ns`. What was not measured is NULL, and never 0.
//! The rows of a heartbeat are read twice for them, a microsecond for fifty.

use crate::verdict::{is_workload, sum};
use heartbeat::wire::{CapabilityStatus, Class, Heartbeat, WorkloadActivity};

/// Stands for what was not measured on its way to the database; no counter is negative.
pub(in crate::store) const NOT_MEASURED: i64 = -1;

/// A column and its counter.
type NodeColumn = (&'static str, fn(&Heartbeat) -> Option<u64>);

/// The columns.
pub(in crate::store) const COLUMNS: [NodeColumn; 6] = [
    // CPU time of the host, all that was not idle.
    ("cpu_busy_ns", |heartbeat| heartbeat.counters.as_ref()?.cpu_busy_ns),
    ("workload_cpu_ns", |heartbeat| of_workloads(heartbeat, |row| row.cpu_ns)),
    // Programs that workloads started.
    ("workload_execs", |heartbeat| of_workloads(heartbeat, |row| row.execs)),
    // Of the host, in both directions, as are those of the network.
    ("disk_bytes", |heartbeat| {
        let counters = heartbeat.counters.as_ref()?;
        both(counters.disk_read_bytes, counters.disk_written_bytes)
    }),
    ("network_bytes", |heartbeat| {
        let counters = heartbeat.counters.as_ref()?;
        both(counters.network_received_bytes, counters.network_sent_bytes)
    }),
    ("gpu_busy_ns", gpu_busy),
];

/// What one heartbeat has in these columns.
pub(super) fn of(heartbeat: &Heartbeat) -> [i64; COLUMNS.len()] {
    let stored = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    COLUMNS.map(|(_, counter)| counter(heartbeat).map_or(NOT_MEASURED, stored))
}

fn both(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    Some(one?.saturating_add(other?))
}

/// A counter over all rows of workloads, of which there may be none. An agent that measures it does so of kernel threads too, which every Linux has: where none of
/// these has it, it was not measured, or the agent does not see the host's processes.
fn of_workloads(heartbeat: &Heartbeat, counter: fn(&WorkloadActivity) -> Option<u64>) -> Option<u64> {
    let mut kernel = heartbeat.workloads.iter().filter(|row| row.class == i32::from(Class::Kernel));
    kernel.any(|row| counter(row).is_some()).then_some(())?;
    sum(heartbeat.workloads.iter().filter(is_workload), counter)
}

/// Over all GPUs; not measured where there is none, and where one of them was not read.
fn gpu_busy(heartbeat: &Heartbeat) -> Option<u64> {
    let mut capabilities = heartbeat.coverage.as_ref()?.capabilities.iter();
    let is_unread =
        capabilities.any(|capability| capability.name == "gpu" && capability.status != i32::from(CapabilityStatus::Ok));
    if is_unread || heartbeat.gpus.is_empty() {
        return None;
    }
    heartbeat.gpus.iter().try_fold(0_u64, |total, gpu| Some(total.saturating_add(gpu.busy_ns?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use heartbeat::wire::{Capability, Coverage, Gpu, HostCounters};

    fn row(class: Class, cpu_ns: Option<u64>, execs: Option<u64>) -> WorkloadActivity {
        WorkloadActivity { class: class.into(), cpu_ns, execs, ..WorkloadActivity::default() }
    }

    fn heartbeat(workloads: Vec<WorkloadActivity>) -> Heartbeat {
        Heartbeat { workloads, coverage: Some(Coverage::default()), ..Heartbeat::default() }
    }

    #[test]
    fn what_the_host_did_is_the_sum_of_both_directions_and_half_of_it_is_none() {
        let counters = HostCounters {
            cpu_busy_ns: Some(7),
            disk_read_bytes: Some(1),
            disk_written_bytes: Some(2),
            network_received_bytes: Some(u64::MAX),
            ..HostCounters::default()
        };
        let mut beat = Heartbeat { counters: Some(counters), ..heartbeat(Vec::new()) };
        assert_eq!(of(&beat), [7, -1, -1, 3, -1, -1]);
        beat.counters = Some(HostCounters { network_sent_bytes: Some(1), ..counters });
        assert_eq!(of(&beat)[4], i64::MAX, "no overflow");
        assert_eq!(of(&Heartbeat::default()), [-1; 6]);
    }

    #[test]
    fn what_workloads_did_is_known_where_each_row_has_it_and_kernel_threads_were_measured() {
        let kernel = row(Class::Kernel, Some(100), Some(0));
        let work = |cpu_ns, execs| row(Class::Workload, cpu_ns, execs);
        let housekeeping = row(Class::Housekeeping, Some(1_000), Some(50));
        for (rows, expected) in [
            (vec![kernel.clone(), work(Some(1), Some(2)), work(Some(3), Some(4)), housekeeping.clone()], [4, 6]),
            // A class of a later version.
            (vec![kernel.clone(), WorkloadActivity { class: 99, ..work(Some(1), Some(2)) }], [1, 2]),
            (vec![kernel.clone(), work(Some(1), None), work(None, Some(4))], [-1, -1]),
            // Nobody worked.
            (vec![kernel, housekeeping.clone()], [0, 0]),
            // Starts of programs are not measured.
            (vec![row(Class::Kernel, Some(100), None), housekeeping.clone()], [0, -1]),
            // A container that sees nobody but itself.
            (vec![work(Some(1), Some(2)), housekeeping], [-1, -1]),
            (Vec::new(), [-1, -1]),
        ] {
            let told = of(&heartbeat(rows.clone()));
            assert_eq!([told[1], told[2]], expected, "{rows:?}");
        }
    }

    #[test]
    fn gpus_count_where_all_of_them_were_read() {
        let told = |busy: &[Option<u64>], status: Option<CapabilityStatus>| {
            let gpus = busy.iter().map(|busy_ns| Gpu { busy_ns: *busy_ns, ..Gpu::default() }).collect();
            let capability = |status: CapabilityStatus| Capability {
                name: "gpu".to_owned(),
                status: status.into(),
                reason: String::new(),
            };
            let capabilities = status.map(capability).into_iter().collect();
            let coverage = Some(Coverage { capabilities, ..Coverage::default() });
            of(&Heartbeat { gpus, coverage, ..Heartbeat::default() })[5]
        };
        assert_eq!(told(&[Some(2), Some(3)], Some(CapabilityStatus::Ok)), 5);
        assert_eq!(told(&[Some(0)], None), 0);
        assert_eq!(told(&[Some(2), None], Some(CapabilityStatus::Ok)), -1);
        // One of several that the bus has is not listed.
        assert_eq!(told(&[Some(2)], Some(CapabilityStatus::Broken)), -1);
        assert_eq!(told(&[], Some(CapabilityStatus::NotApplicable)), -1);
    }
}
