//! The sums of one row, whatever the row stands for: a workload, a run, a task, a tool.

use crate::model::{Delta, Measured, States, add_totals, earlier};
use heartbeat::{envelope::MAX_FAILURES, wire};
use node_agent_ebpf::{Totals, counter, syscall_class};
use std::collections::BTreeMap;

/// Ways to end that a row tells apart; what comes beyond is [`OTHER_WAY`].
const MAX_WAYS: usize = 32;
/// Stands for all ways to end that have no place of their own.
pub const OTHER_WAY: u32 = u32::MAX;

/// Names of the classes of system calls on the wire, in the order of their counters.
const SYSCALL_CLASSES: [&str; syscall_class::LEN] =
    ["read", "write", "network", "memory", "process", "time", "wait", "other"];

/// Sums since the first sample, and who lives now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Processes alive at the last sample.
    pub live_processes: u32,
    /// Threads alive at the last sample.
    pub live_threads: u32,
    /// Resident memory at the last sample, in bytes.
    pub resident_bytes: u64,
    /// States of its threads at the last sample.
    pub states: States,
    /// When any of its tasks ran last, in nanoseconds since boot; 0 if that is not known.
    pub last_ran_boottime_ns: u64,
    /// Since when one of its tasks sleeps by a timer; see [`Delta`].
    pub timed_since_boottime_ns: Option<u64>,
    /// Sums since the first sample.
    pub totals: Totals,
    /// How processes ended, other than with exit code 0.
    pub failures: Failures,
}

impl Activity {
    /// Begins a sample: nobody has been seen alive yet.
    pub fn begin(&mut self) {
        self.live_processes = 0;
        self.live_threads = 0;
        self.resident_bytes = 0;
        self.states = States::default();
        self.timed_since_boottime_ns = None;
    }

    /// Adds what is new.
    pub fn add(&mut self, delta: &Delta) {
        self.live_processes = self.live_processes.saturating_add(delta.live_processes);
        self.live_threads = self.live_threads.saturating_add(delta.live_threads);
        self.resident_bytes = self.resident_bytes.saturating_add(delta.resident_bytes);
        self.states.add(&delta.states);
        self.last_ran_boottime_ns = self.last_ran_boottime_ns.max(delta.last_ran_boottime_ns);
        self.timed_since_boottime_ns = earlier(self.timed_since_boottime_ns, delta.timed_since_boottime_ns);
        add_totals(&mut self.totals, &delta.totals);
    }

    /// Takes over all that another row has summed up.
    pub fn absorb(&mut self, other: &Self) {
        let Self {
            live_processes,
            live_threads,
            resident_bytes,
            states,
            last_ran_boottime_ns,
            timed_since_boottime_ns,
            totals,
            ref failures,
        } = *other;
        self.add(&Delta {
            totals,
            resident_bytes,
            live_processes,
            live_threads,
            states,
            last_ran_boottime_ns,
            timed_since_boottime_ns,
        });
        for (wait_status, count) in &failures.0 {
            self.failures.add(*wait_status, *count);
        }
    }
}

/// How often each way to end came: wait(2)'s status and a count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failures(BTreeMap<u32, u64>);

impl Failures {
    /// Counts ends of one kind.
    pub fn add(&mut self, wait_status: u32, count: u64) {
        let has_place = self.0.len() < MAX_WAYS || self.0.contains_key(&wait_status);
        let sum = self.0.entry(if has_place { wait_status } else { OTHER_WAY }).or_default();
        *sum = sum.saturating_add(count);
    }

    /// The commonest first. Where there are more than fit, the last one stands for the rest.
    #[must_use]
    pub fn to_wire(&self) -> Vec<wire::Exit> {
        let mut ways: Vec<(u32, u64)> = self.0.iter().map(|(wait_status, count)| (*wait_status, *count)).collect();
        ways.sort_by_key(|(wait_status, count)| (*wait_status == OTHER_WAY, std::cmp::Reverse(*count), *wait_status));
        if ways.len() > MAX_FAILURES {
            let rest = ways.split_off(MAX_FAILURES - 1);
            ways.push((OTHER_WAY, rest.iter().fold(0, |sum: u64, (_, count)| sum.saturating_add(*count))));
        }
        ways.into_iter().map(|(wait_status, count)| wire::Exit { wait_status, count }).collect()
    }
}

/// The sums of a row, with every column that was not measured absent; whose they are is for the caller to say.
#[must_use]
pub fn to_wire(activity: &Activity, measured: Measured) -> wire::WorkloadActivity {
    let Activity { totals, .. } = activity;
    let sum = |measured: bool, index: usize| measured.then_some(totals.counters[index]);
    let if_measured = |measured: bool, value: u64| measured.then_some(value);
    let classes = SYSCALL_CLASSES.iter().zip(&totals.counters[counter::SYSCALLS..]);
    let syscalls = classes.filter(|_| measured.syscalls);
    wire::WorkloadActivity {
        live_processes: activity.live_processes,
        live_threads: activity.live_threads,
        cpu_ns: sum(measured.tasks, counter::CPU_NS),
        // A row whose processes all exited between two samples may have no peak at all; that is not zero.
        peak_resident_bytes: if_measured(measured.memory && totals.peak_resident_bytes > 0, totals.peak_resident_bytes),
        disk_read_bytes: sum(measured.disk, counter::DISK_READ_BYTES),
        disk_written_bytes: sum(measured.disk, counter::DISK_WRITTEN_BYTES),
        forks: if_measured(measured.process_events, totals.forks),
        execs: if_measured(measured.execs, totals.execs),
        exits: if_measured(measured.process_events, totals.exits),
        oom_kills: if_measured(measured.oom_kills, totals.oom_kills),
        cpu_user_ns: sum(measured.cpu_split, counter::USER_NS),
        cpu_system_ns: sum(measured.cpu_split, counter::SYSTEM_NS),
        run_queue_delay_ns: sum(measured.run_queue, counter::RUN_QUEUE_NS),
        voluntary_switches: sum(measured.switches, counter::VOLUNTARY_SWITCHES),
        involuntary_switches: sum(measured.switches, counter::INVOLUNTARY_SWITCHES),
        resident_bytes: if_measured(measured.memory, activity.resident_bytes),
        minor_faults: sum(measured.faults, counter::MINOR_FAULTS),
        major_faults: sum(measured.faults, counter::MAJOR_FAULTS),
        direct_reclaims: if_measured(measured.direct_reclaim, totals.direct_reclaims),
        read_calls: sum(measured.calls, counter::READ_CALLS),
        write_calls: sum(measured.calls, counter::WRITE_CALLS),
        blocked_io_ns: sum(measured.blocked_io, counter::BLOCKED_IO_NS),
        network_received_bytes: sum(measured.network, counter::NETWORK_RECEIVED_BYTES),
        network_sent_bytes: sum(measured.network, counter::NETWORK_SENT_BYTES),
        failures: if measured.failures { activity.failures.to_wire() } else { Vec::new() },
        syscalls: syscalls
            .map(|(class, count)| wire::SyscallClass { class: (*class).to_owned(), count: *count })
            .collect(),
        ..wire::WorkloadActivity::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commonest_ends_come_first_and_none_is_lost() {
        let mut failures = Failures::default();
        for code in 1..=100 {
            failures.add(code * 256, u64::from(code));
        }
        let wire = failures.to_wire();
        assert_eq!(wire.len(), MAX_FAILURES);
        assert_eq!(wire.iter().map(|exit| exit.count).sum::<u64>(), 5_050);
        assert!(wire[..MAX_FAILURES - 1].windows(2).all(|pair| pair[0].count >= pair[1].count));
        assert_eq!(wire[MAX_FAILURES - 1].wait_status, OTHER_WAY);
    }

    #[test]
    fn a_single_end_is_told_as_it_is() {
        let mut failures = Failures::default();
        failures.add(9, 2);
        assert_eq!(failures.to_wire(), [wire::Exit { wait_status: 9, count: 2 }]);
    }
}
