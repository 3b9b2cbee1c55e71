//! What one node, workload, run, task or tool did in a period: sums, peaks, and how high cores and memory were for how long.

use super::Histogram;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The longest time that a flow is averaged over.
const FIVE_MINUTES_MS: u64 = 300_000;

/// A counter that is summed up. Times are in nanoseconds, amounts in bytes, all others are counts; what each means is in `heartbeat.proto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counter {
    /// CPU time; of a node all that was not idle.
    Cpu,
    /// CPU time in user mode.
    CpuUser,
    /// CPU time in kernel mode.
    CpuSystem,
    /// CPU time that the hypervisor gave to others.
    CpuSteal,
    /// Time in which tasks could have run and had no CPU.
    RunQueueDelay,
    /// Time in which a limit held tasks back.
    CpuThrottled,
    /// Time in which tasks were blocked on storage.
    BlockedIo,
    /// Bytes read from storage.
    DiskRead,
    /// Bytes written to storage.
    DiskWritten,
    /// Bytes received, loopback excluded.
    NetworkReceived,
    /// Bytes sent, loopback excluded.
    NetworkSent,
    /// Bytes received past the sockets by RDMA adapters.
    RdmaReceived,
    /// Bytes sent by them.
    RdmaSent,
    /// Processes started by fork; of a node tasks created, threads included.
    Forks,
    /// Programs started.
    Execs,
    /// Processes that ended.
    Exits,
    /// Processes that the out-of-memory killer ended.
    OomKills,
    /// Page faults that needed storage.
    MajorFaults,
    /// Time in which GPUs worked, added up over all of them; of a workload on those that no other one held.
    GpuBusy,
}

/// What a counter grew by, and the time in which it was measured, in milliseconds: it may be shorter than the period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sum(pub u64, pub u64);

impl Sum {
    fn grow(&mut self, by: Self) {
        *self = Self(self.0.saturating_add(by.0), self.1.saturating_add(by.1));
    }
}

/// What there was to use, and memory over time. Kept beside the counters, so that a version which does not know these reads the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// CPU time that there was to use, where it was measured how much was used; of a node.
    CpuCapacity,
    /// Memory in use at the end of each interval, in KiB, times the interval's milliseconds; of a node all that could not be had without swapping.
    MemoryTime,
    /// Memory that there was, likewise, where it was measured how much was in use; of a node.
    MemoryCapacity,
    /// Time of GPUs that there was to use, where it was measured how much was used: zero where there are none; of a node.
    GpuCapacity,
}

/// Something that is had, and not used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Peak {
    /// Most memory in use, in bytes: of a node the highest of samples that are taken once a second, of all else the highest at the end of an interval.
    Memory,
    /// Most processes alive at the end of an interval.
    Processes,
    /// Most threads alive at the end of an interval.
    Threads,
    /// Most memory of GPUs in use at the end of an interval, over all of them, in bytes.
    GpuMemory,
}

/// What a node's disks, swap and network did at most, as far as another type of machine could do less of it. Kept beside the counters, so that a version which does
/// not know it reads the others. What is `None` was not measured, or was added up by a version that did not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Extremes {
    /// Operations that disks completed.
    pub disk_operations: Option<Sum>,
    /// Pages that were moved to or from swap.
    pub swap_pages: Option<Sum>,
    /// For how many milliseconds the peak of memory is the highest of samples that are taken once a second.
    pub memory_sampled_ms: u64,
    /// Of an hour: bytes a second over the network, in the five minutes and the direction in which they were most.
    pub network_per_s: Option<u64>,
    /// Of an hour: bytes a second to and from disks in the five minutes in which they were most.
    pub disk_per_s: Option<u64>,
    /// Of an hour: operations a second of disks, likewise.
    pub disk_operations_per_s: Option<u64>,
}

impl Extremes {
    fn merge(&mut self, other: &Self) {
        let grow = |sum: &mut Option<Sum>, by: Option<Sum>| {
            if let Some(by) = by {
                sum.get_or_insert_default().grow(by);
            }
        };
        grow(&mut self.disk_operations, other.disk_operations);
        grow(&mut self.swap_pages, other.swap_pages);
        self.memory_sampled_ms = self.memory_sampled_ms.saturating_add(other.memory_sampled_ms);
        self.network_per_s = self.network_per_s.max(other.network_per_s);
        self.disk_per_s = self.disk_per_s.max(other.disk_per_s);
        self.disk_operations_per_s = self.disk_operations_per_s.max(other.disk_operations_per_s);
    }
}

/// What was done in a period. What is not there was not measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Activity {
    /// Sums.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub sums: BTreeMap<Counter, Sum>,
    /// Capacities, and memory over time.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub resources: BTreeMap<Resource, Sum>,
    /// Peaks.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub peaks: BTreeMap<Peak, u64>,
    /// How many thousandths of a core were in use on average over an interval, and for how long.
    pub milli_cores: Histogram,
    /// How many MiB were in use, and for how long.
    pub memory_mib: Histogram,
    /// What a node's disks, swap and network did at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extremes: Option<Extremes>,
}

/// What one interval adds.
#[derive(Clone, Debug, Default)]
pub(super) struct Added {
    /// How long the interval was, in milliseconds.
    pub(super) ms: u64,
    /// What each counter grew by, where it was measured.
    pub(super) grown: Vec<(Counter, Option<u64>)>,
    /// Capacities, and memory over time, where they were measured.
    pub(super) resources: Vec<(Resource, Option<u64>)>,
    /// Memory in use, in bytes.
    pub(super) memory_bytes: Option<u64>,
    /// What else there was.
    pub(super) peaks: Vec<(Peak, Option<u64>)>,
    /// Of a node.
    pub(super) extremes: Option<Extremes>,
}

impl Activity {
    /// Takes an interval up.
    pub(super) fn add(&mut self, added: &Added) {
        for (counter, grown) in &added.grown {
            let Some(grown) = grown else { continue };
            self.grow(*counter, Sum(*grown, added.ms));
            if *counter == Counter::Cpu && added.ms > 0 {
                // Nanoseconds a millisecond are millionths of a core.
                self.milli_cores.add(grown / added.ms / 1_000, added.ms);
            }
        }
        for (resource, amount) in &added.resources {
            if let Some(amount) = amount {
                self.resources.entry(*resource).or_default().grow(Sum(*amount, added.ms));
            }
        }
        if let Some(bytes) = added.memory_bytes {
            self.raise(Peak::Memory, bytes);
            self.memory_mib.add(bytes.div_ceil(1 << 20), added.ms);
        }
        for (peak, value) in &added.peaks {
            if let Some(value) = value {
                self.raise(*peak, *value);
            }
        }
        if let Some(extremes) = &added.extremes {
            self.extremes.get_or_insert_default().merge(extremes);
        }
    }

    /// Notes how much flowed in this part of an hour: what it grew by over its time, or over five minutes if that is shorter, since all of it may have
    /// flowed in a few of them.
    pub(super) fn note_flows(&mut self) {
        let rate = |sum: Option<Sum>| {
            let Sum(grown, ms) = sum?;
            let ms = u128::from(ms.min(FIVE_MINUTES_MS));
            (ms > 0).then(|| u64::try_from((u128::from(grown) * 1_000).div_ceil(ms)).unwrap_or(u64::MAX))
        };
        let both = |one: Option<u64>, other: Option<u64>| Some((one?, other?));
        let of = |counter| rate(self.sum(counter));
        let network = both(of(Counter::NetworkReceived), of(Counter::NetworkSent)).map(|(one, other)| one.max(other));
        let disk = both(of(Counter::DiskRead), of(Counter::DiskWritten)).map(|(one, other)| one.saturating_add(other));
        let operations = self.extremes.and_then(|extremes| rate(extremes.disk_operations));
        let extremes = self.extremes.get_or_insert_default();
        (extremes.network_per_s, extremes.disk_per_s, extremes.disk_operations_per_s) = (network, disk, operations);
    }

    /// Takes up what was done in another period, or by another of the same kind.
    pub fn merge(&mut self, other: &Self) {
        for (counter, sum) in &other.sums {
            self.grow(*counter, *sum);
        }
        for (resource, sum) in &other.resources {
            self.resources.entry(*resource).or_default().grow(*sum);
        }
        for (peak, value) in &other.peaks {
            self.raise(*peak, *value);
        }
        self.milli_cores.merge(&other.milli_cores);
        self.memory_mib.merge(&other.memory_mib);
        if let Some(extremes) = &other.extremes {
            self.extremes.get_or_insert_default().merge(extremes);
        }
    }

    /// A sum, if it was measured at all.
    #[must_use]
    pub fn sum(&self, counter: Counter) -> Option<Sum> {
        self.sums.get(&counter).copied()
    }

    /// A capacity, or memory over time, if it was measured at all.
    #[must_use]
    pub fn resource(&self, resource: Resource) -> Option<Sum> {
        self.resources.get(&resource).copied()
    }

    fn grow(&mut self, counter: Counter, by: Sum) {
        self.sums.entry(counter).or_default().grow(by);
    }

    fn raise(&mut self, peak: Peak, to: u64) {
        let highest = self.peaks.entry(peak).or_default();
        *highest = to.max(*highest);
    }
}
