//! The sums of one row, whatever the row stands for: a workload, a run, a task, a tool.

use crate::kernel::{Share, States, add_totals};
use heartbeat::{envelope::MAX_FAILURES, wire};
use node_agent_ebpf::Totals;
use std::collections::BTreeMap;

/// Ways to end that a row tells apart; what comes beyond is [`OTHER_WAY`].
const MAX_WAYS: usize = 32;
/// Stands for all ways to end that have no place of their own.
pub const OTHER_WAY: u32 = u32::MAX;

/// Sums since the first reading, and who lives now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Processes alive at the last reading.
    pub live_processes: u32,
    /// Threads alive at the last reading.
    pub live_threads: u32,
    /// Resident memory at the last reading, in bytes.
    pub resident_bytes: u64,
    /// States of its threads at the last sample.
    pub states: States,
    /// When any of its tasks ran last, in nanoseconds since boot; 0 if that is not known.
    pub last_ran_boottime_ns: u64,
    /// Sums since the first reading.
    pub totals: Totals,
    /// How processes ended, other than with exit code 0.
    pub failures: Failures,
}

impl Activity {
    /// Begins a reading: nobody has been seen alive yet.
    pub fn begin(&mut self) {
        self.live_processes = 0;
        self.live_threads = 0;
        self.resident_bytes = 0;
        self.states = States::default();
    }

    /// Adds what is new.
    pub fn add(&mut self, share: &Share) {
        self.live_processes = self.live_processes.saturating_add(share.live_processes);
        self.live_threads = self.live_threads.saturating_add(share.live_threads);
        self.resident_bytes = self.resident_bytes.saturating_add(share.resident_bytes);
        self.states.add(&share.states);
        self.last_ran_boottime_ns = self.last_ran_boottime_ns.max(share.last_ran_boottime_ns);
        add_totals(&mut self.totals, &share.totals);
    }

    /// Takes over all that another row has summed up.
    pub fn absorb(&mut self, other: &Self) {
        let Self { live_processes, live_threads, resident_bytes, states, last_ran_boottime_ns, totals, ref failures } =
            *other;
        self.add(&Share { totals, resident_bytes, live_processes, live_threads, states, last_ran_boottime_ns });
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
