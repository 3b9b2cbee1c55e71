//! What a machine did in one hour.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Levels;

/// The length of an hour, in milliseconds.
pub const HOUR_MS: u64 = 3_600_000;

/// What one machine did in one hour, all of it together. What is `None` was not measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hour {
    /// Its begin, a full hour of UTC.
    pub begin: Timestamp,
    /// How many thousandths of a core were in use on average over an interval of the agent's, and for how long. Empty: not measured.
    pub milli_cores: Levels,
    /// How many CPUs the machine had; none if that is not known, or changed within the hour.
    pub cpus: Option<u32>,
    /// Most memory in use, in bytes.
    pub memory_peak_bytes: Option<u64>,
    /// Time in which tasks could have run and had no CPU, in milliseconds, added up over all tasks.
    pub run_queue_delay_ms: Option<u64>,
    /// Time in which a limit held tasks back, in milliseconds.
    pub throttled_ms: Option<u64>,
    /// CPU time that the hypervisor gave to others, in milliseconds: what a burstable machine without credits shows.
    pub steal_ms: Option<u64>,
    /// Processes that the out-of-memory killer ended.
    pub oom_kills: Option<u64>,
    /// Pages that were moved to or from swap.
    pub swap_pages: Option<u64>,
    /// Bytes a second over the network, of the direction that had more.
    pub network: Option<Flow>,
    /// Bytes a second to and from disks.
    pub disk: Option<Flow>,
    /// Operations a second of disks.
    pub disk_operations: Option<Flow>,
    /// Bytes past the sockets by RDMA adapters.
    pub rdma_bytes: Option<u64>,
}

/// What flowed in an hour, each second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Flow {
    /// On average over the hour.
    pub mean: u64,
    /// On average over the five minutes, or the shorter span, in which it was most.
    pub peak: u64,
}

impl Flow {
    /// The higher of both, figure by figure.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self { mean: self.mean.max(other.mean), peak: self.peak.max(other.peak) }
    }
}

impl Hour {
    /// An hour of which nothing was measured.
    #[must_use]
    pub fn unmeasured(begin: Timestamp) -> Self {
        Self {
            begin,
            milli_cores: Levels::default(),
            cpus: None,
            memory_peak_bytes: None,
            run_queue_delay_ms: None,
            throttled_ms: None,
            steal_ms: None,
            oom_kills: None,
            swap_pages: None,
            network: None,
            disk: None,
            disk_operations: None,
            rdma_bytes: None,
        }
    }

    /// Whether CPU use was measured for at least 95 % of it: intervals do not end with the hour.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.milli_cores.total_ms() >= HOUR_MS / 100 * 95
    }
}
