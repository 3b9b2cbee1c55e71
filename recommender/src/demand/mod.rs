//! What a machine needed, by what was measured of it.
//!
//! Sums, percentiles and peaks of all hours of a [`Record`]. A signal is known if and only if it was measured in 95 % of the measured hours; otherwise it is
//! *unknown*, which no rule takes for zero. One pass over the hours. What speaks against less of something is kept of whatever hours have it, too.

mod hour;
mod levels;
mod record;

pub use hour::{Flow, HOUR_MS, Hour};
pub use levels::Levels;
pub use record::{LEAST_DAYS, MOST_GAPS_PER_CENT, Observed, Record, Span};

use serde::{Deserialize, Serialize};

/// What a machine needed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Demand {
    /// How much was observed.
    pub observed: Observed,
    /// Thousandths of a core in use; none if not measured.
    pub cores: Option<Cores>,
    /// How many CPUs it had; none if not known.
    pub cpus: Option<Cpus>,
    /// Most memory in use in any second, in bytes.
    pub memory_peak_bytes: Option<u64>,
    /// Thousandths of a task that could have run and had no CPU, on average over the hour in which they were most.
    pub waiting: Option<u64>,
    /// Thousandths of a core that a limit withheld, on average over the hour in which they were most.
    pub throttled: Option<u64>,
    /// Thousandths of a core that the hypervisor gave to others, likewise.
    pub stolen: Option<u64>,
    /// Processes that the out-of-memory killer ended.
    pub oom_kills: Option<u64>,
    /// Pages that were moved to or from swap.
    pub swap_pages: Option<u64>,
    /// Bytes a second over the network, in the hour and in the five minutes in which they were most.
    pub network: Option<Flow>,
    /// Bytes a second to and from disks, likewise.
    pub disk: Option<Flow>,
    /// Operations a second of disks, likewise.
    pub disk_operations: Option<Flow>,
    /// Bytes past the sockets by RDMA adapters.
    pub rdma_bytes: Option<u64>,
    /// What some hours alone show.
    pub signs: Signs,
}

/// How many CPUs a machine had, which is fewer than its type has where somebody chose so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cpus {
    /// In the hour in which they were fewest.
    pub fewest: u32,
    /// In the hour in which they were most.
    pub most: u32,
}

/// What whatever hours have it come to, however few they are, those that are no whole hours included: it speaks against a change, and its absence for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signs {
    /// As [`Demand::waiting`].
    pub waiting: Option<u64>,
    /// As [`Demand::throttled`].
    pub throttled: Option<u64>,
    /// As [`Demand::memory_peak_bytes`].
    pub memory_peak_bytes: Option<u64>,
    /// As [`Demand::oom_kills`].
    pub oom_kills: Option<u64>,
    /// As [`Demand::swap_pages`].
    pub swap_pages: Option<u64>,
    /// As [`Demand::rdma_bytes`].
    pub rdma_bytes: Option<u64>,
}

impl Signs {
    fn of(record: &Record) -> Self {
        let most = |of: fn(&Hour) -> Option<u64>| record.all_hours().filter_map(of).max().map(of_an_hour);
        let sum = |of: fn(&Hour) -> Option<u64>| record.all_hours().filter_map(of).reduce(u64::saturating_add);
        Self {
            waiting: most(|hour| hour.run_queue_delay_ms),
            throttled: most(|hour| hour.throttled_ms),
            memory_peak_bytes: record.all_hours().filter_map(|hour| hour.memory_peak_bytes).max(),
            oom_kills: sum(|hour| hour.oom_kills),
            swap_pages: sum(|hour| hour.swap_pages),
            rdma_bytes: sum(|hour| hour.rdma_bytes),
        }
    }
}

/// How many thousandths of a core were in use: of each figure the highest that its bucket holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cores {
    /// On average.
    pub mean: u64,
    /// Not exceeded for half of the time.
    pub median: u64,
    /// Not exceeded for 95 % of the time.
    pub p95: u64,
    /// Not exceeded for 99 % of the time.
    pub p99: u64,
    /// In the interval in which they were most.
    pub peak: u64,
}

impl Cores {
    /// Of these levels; none of none.
    #[must_use]
    pub fn of(levels: &Levels) -> Option<Self> {
        Some(Self {
            mean: levels.mean()?,
            median: levels.quantile(500)?,
            p95: levels.quantile(950)?,
            p99: levels.quantile(990)?,
            peak: levels.highest()?,
        })
    }
}

/// So many milliseconds in an hour, as thousandths of all of it, rounded up.
const fn of_an_hour(ms: u64) -> u64 {
    ms.div_ceil(HOUR_MS / 1_000)
}

impl Demand {
    /// What the machine of this record needed.
    #[must_use]
    pub fn of(record: &Record) -> Self {
        let hours: Vec<&Hour> = record.hours.iter().filter(|hour| hour.is_whole()).collect();
        let mut levels = Levels::default();
        record.hours.iter().for_each(|hour| levels.merge(&hour.milli_cores));
        let sum = |of: fn(&Hour) -> Option<u64>| known(&hours, of, u64::saturating_add);
        let most = |of: fn(&Hour) -> Option<u64>| known(&hours, of, u64::max).map(of_an_hour);
        let flow = |of: fn(&Hour) -> Option<Flow>| known(&hours, of, Flow::max);
        let cpus = |of: fn(u32, u32) -> u32| known(&hours, |hour| hour.cpus, of);
        Self {
            observed: record.observed(),
            cores: Cores::of(&levels),
            cpus: cpus(u32::min).zip(cpus(u32::max)).map(|(fewest, most)| Cpus { fewest, most }),
            memory_peak_bytes: known(&hours, |hour| hour.memory_peak_bytes, u64::max),
            waiting: most(|hour| hour.run_queue_delay_ms),
            throttled: most(|hour| hour.throttled_ms),
            stolen: most(|hour| hour.steal_ms),
            oom_kills: sum(|hour| hour.oom_kills),
            swap_pages: sum(|hour| hour.swap_pages),
            network: flow(|hour| hour.network),
            disk: flow(|hour| hour.disk),
            disk_operations: flow(|hour| hour.disk_operations),
            rdma_bytes: sum(|hour| hour.rdma_bytes),
            signs: Signs::of(record),
        }
    }
}

/// What the hours come to in which it was measured, if these are 95 % of all and at least one.
fn known<T>(hours: &[&Hour], of: impl Fn(&Hour) -> Option<T>, both: impl Fn(T, T) -> T) -> Option<T> {
    let measured: Vec<T> = hours.iter().filter_map(|hour| of(hour)).collect();
    (measured.len() * 100 >= hours.len() * 95).then_some(measured)?.into_iter().reduce(both)
}
