//! CPU time of housekeeping against its budget.
//!
//! Housekeeping is told from work by provenance, and that may err. So its CPU time over any `idle_after` of a window must stay below
//! a budget, averaged and not by the interval: apt's timers work in bursts. A single burst within a short window is held against the
//! budget of a whole one. Cost: each observation is added once and left out once.

use super::Observation;
use heartbeat::wire::{self, Class};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// Below this, housekeeping's busiest row is not kept with an observation, in nanoseconds per second: a fifth of the budget's default. An
/// hour of evidence would otherwise hold 120 names that nobody asks for.
const NAMED_FROM_NS_PER_S: u64 = 10_000_000;

/// One row of a heartbeat that used CPU time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BusyRow {
    /// Its key: the cgroup path.
    pub key: String,
    /// Executable name of its busiest process.
    pub top_command: String,
    /// Its CPU time, in nanoseconds.
    pub cpu_ns: u64,
}

/// The housekeeping rows of one heartbeat, by key: CPU time and top command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Housekeeping(BTreeMap<String, (Option<u64>, String)>);

impl Housekeeping {
    pub(super) fn of(heartbeat: &wire::Heartbeat) -> Self {
        let rows = heartbeat.workloads.iter().filter(|row| row.class == i32::from(Class::Housekeeping));
        Self(rows.map(|row| (row.key.clone(), (row.cpu_ns, row.top_command.clone()))).collect())
    }

    /// All of it as one row without a name.
    pub(super) fn without_names(self) -> Self {
        let sum = self.0.values().try_fold(0_u64, |total, (cpu_ns, _)| Some(total.saturating_add((*cpu_ns)?)));
        let is_empty = self.0.is_empty();
        Self((!is_empty).then(|| (String::new(), (sum, String::new()))).into_iter().collect())
    }

    /// CPU time since `earlier`, in nanoseconds; `None` if a row lacks it or the sum runs backwards.
    pub(super) fn cpu_ns(&self, earlier: &Self) -> Option<u64> {
        let sum =
            |of: &Self| of.0.values().try_fold(0_u64, |total, (cpu_ns, _)| Some(total.saturating_add((*cpu_ns)?)));
        sum(self)?.checked_sub(sum(earlier)?)
    }

    /// The row that used most CPU time since `earlier`, if housekeeping used enough of it for a name to matter.
    pub(super) fn busiest(&self, earlier: &Self, span_ms: i64) -> Option<BusyRow> {
        let is_named = is_above(self.cpu_ns(earlier)?, NAMED_FROM_NS_PER_S, span_ms);
        let rows = self.0.iter().filter(|_| is_named).map(|(key, (cpu_ns, top_command))| {
            let before = earlier.0.get(key).and_then(|(cpu_ns, _)| *cpu_ns).unwrap_or(0);
            let cpu_ns = cpu_ns.unwrap_or(0).saturating_sub(before);
            BusyRow { key: key.clone(), top_command: top_command.clone(), cpu_ns }
        });
        rows.max_by_key(|row| row.cpu_ns)
    }
}

fn is_above(cpu_ns: u64, ns_per_s: u64, span_ms: i64) -> bool {
    u128::from(cpu_ns) * 1000 > u128::from(ns_per_s) * u128::try_from(span_ms).unwrap_or(0)
}

/// What counts against the budget: housekeeping's CPU time, and where an agent was away that of nobody known, which was housekeeping's as likely as not.
/// Heartbeats that were lost before a restart would hide theirs otherwise.
fn against_budget(observation: &Observation) -> u64 {
    let of_nobody = observation.restart_gap_ms.and(observation.unattributed_cpu_ns).unwrap_or(0);
    observation.housekeeping_cpu_ns.unwrap_or(0).saturating_add(of_nobody)
}

/// Housekeeping's CPU time in the oldest `idle_after` of a window that grows backwards.
#[derive(Debug)]
pub(super) struct Budget<'a> {
    ns_per_s: u64,
    idle_after_ms: i64,
    /// Newest last.
    within: VecDeque<&'a Observation>,
    cpu_ns: u64,
}

impl<'a> Budget<'a> {
    pub(super) fn new(ns_per_s: u64, idle_after_ms: i64) -> Self {
        Self { ns_per_s, idle_after_ms, within: VecDeque::new(), cpu_ns: 0 }
    }

    /// Adds the observation before those that were added. Whether the `idle_after` that begins with it is above the budget.
    pub(super) fn is_exceeded_with(&mut self, observation: &'a Observation) -> bool {
        self.within.push_front(observation);
        self.cpu_ns = self.cpu_ns.saturating_add(against_budget(observation));
        let start_unix_ms = observation.start_unix_ms;
        while let Some(newest) = self.within.back()
            && newest.start_unix_ms.saturating_sub(start_unix_ms) >= self.idle_after_ms
        {
            self.cpu_ns = self.cpu_ns.saturating_sub(against_budget(newest));
            self.within.pop_back();
        }
        let end_unix_ms = self.within.back().map_or(start_unix_ms, |newest| newest.end_unix_ms);
        is_above(self.cpu_ns, self.ns_per_s, self.idle_after_ms.max(end_unix_ms.saturating_sub(start_unix_ms)))
    }

    /// The row that was busiest in these observations, as far as each named its own.
    pub(super) fn busiest(&self) -> Option<BusyRow> {
        let mut rows = BTreeMap::<&str, BusyRow>::new();
        for row in self.within.iter().filter_map(|observation| observation.busiest_housekeeping.as_ref()) {
            let sum = rows.entry(&row.key).or_insert_with(|| BusyRow { cpu_ns: 0, ..row.clone() });
            sum.cpu_ns = sum.cpu_ns.saturating_add(row.cpu_ns);
        }
        rows.into_values().max_by_key(|row| row.cpu_ns)
    }
}
