//! Network bytes: by workload where the kernel attributes them exactly, else those of the whole host.
//!
//! Exact is the eBPF source whose capability `network` is ok at both ends of a span: then the bytes of workload rows are the
//! signal, and a scraped exporter, whose row is housekeeping, is no work. Below it lies a net: what the host's interfaces moved
//! beyond the bytes of workloads, of housekeeping and of the agent. What kernel threads send explains nothing, since they may
//! serve somebody elsewhere. A row has its bytes when a task hands them to the kernel, and an interface when they leave: what rows have beyond the
//! interfaces' explains those of the next interval, and of no later one. The other way round, what moved before a task had it, is nobody's.
//!
//! RDMA bytes pass the sockets by, so no process's own count holds them: they count as a workload's.

use super::signal::{add, sum};
use heartbeat::wire::{self, CapabilityStatus, Class, Source};
use serde::{Deserialize, Serialize};

/// Rows count payload and interfaces count frames: an eighth on top allows for headers. A full TCP segment of an MTU of 1,500 carries 1,428
/// to 1,448 bytes and 66 to 86 of Ethernet, IP and TCP headers (4.6 to 6 %), every second one is acknowledged by one more of these
/// headers (2.3 to 3 %), and a VLAN tag or a retransmission adds less than the rest. Messages much smaller than a segment have a
/// larger part of headers: the threshold of 4 KiB a second is about 60 such headers a second.
const HEADER_DIVISOR: u64 = 8;

/// Cumulative bytes of one heartbeat, both directions together; `None` is *not measured*.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Network {
    host: Option<u64>,
    own: Option<u64>,
    /// Received and sent by RDMA adapters; `None` also where there is none.
    rdma: [Option<u64>; 2],
    /// By class of row, only where it is exact.
    rows: Option<Rows>,
}

/// The rows' payload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Rows {
    workloads: Option<u64>,
    housekeeping: Option<u64>,
    own: Option<u64>,
}

/// What happened between two heartbeats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Moved {
    /// The signal: of workloads where it is exact, else of the host without the agent's own.
    pub(super) bytes: Option<u64>,
    /// What the host's interfaces moved and no row explains.
    pub(super) unattributed_bytes: Option<u64>,
    /// What rows explain beyond what the host's interfaces moved: as far as it was on its way at the end, they move it in the next span.
    pub(super) ahead_bytes: u64,
    /// Whether the signal is that of the workloads' rows, so that the net below must have been measured too.
    pub(super) is_exact: bool,
}

impl Network {
    pub(super) fn of(heartbeat: &wire::Heartbeat) -> Self {
        let counters = heartbeat.counters.unwrap_or_default();
        let coverage = heartbeat.coverage.as_ref();
        let is_exact = coverage.is_some_and(|coverage| {
            let is_ok = |capability: &wire::Capability| {
                capability.name == "network" && capability.status == i32::from(CapabilityStatus::Ok)
            };
            coverage.source == i32::from(Source::Ebpf) && coverage.capabilities.iter().any(is_ok)
        });
        let of = |is_counted: fn(Class) -> bool| {
            // A row of a class that this version does not know is somebody's work until proven otherwise.
            let class = |row: &wire::WorkloadActivity| Class::try_from(row.class).unwrap_or(Class::Workload);
            let rows = heartbeat.workloads.iter().filter(|row| is_counted(class(row)));
            sum(rows, |row| add(row.network_received_bytes, row.network_sent_bytes))
        };
        Self {
            host: add(counters.network_received_bytes, counters.network_sent_bytes),
            own: add(counters.own_network_received_bytes, counters.own_network_sent_bytes),
            rdma: [counters.rdma_received_bytes, counters.rdma_sent_bytes],
            rows: is_exact.then(|| Rows {
                workloads: of(|class| matches!(class, Class::Workload | Class::Unspecified)),
                housekeeping: of(|class| class == Class::Housekeeping),
                own: of(|class| class == Class::Self_),
            }),
        }
    }

    /// The same where the rows begin at zero. What the agent sent by its own count is as old as its process: where that goes on, the count does, and
    /// where it does not, it runs backwards, which explains nothing.
    pub(super) fn begun_anew(&self) -> Self {
        let zero = Some(0);
        let rows = self.rows.as_ref().map(|_| Rows { workloads: zero, housekeeping: zero, own: zero });
        Self { rows, ..self.clone() }
    }

    pub(super) fn since(&self, earlier: &Self) -> Moved {
        let delta = |now: Option<u64>, then: Option<u64>| now?.checked_sub(then?);
        let host = delta(self.host, earlier.host);
        // The agent reads its own traffic a moment after the host's: what it sends in between is missing here and is there in the
        // next span, which is no counter that runs backwards.
        let own = delta(self.own, earlier.own).unwrap_or(0);
        let rdma = self.rdma.iter().zip(&earlier.rdma).try_fold(0_u64, |total, pair| match pair {
            (None, None) => Some(total),
            // An adapter that came or went in between moved nobody knows what.
            (now, then) => Some(total.saturating_add(delta(*now, *then)?)),
        });
        let (Some(now), Some(then)) = (&self.rows, &earlier.rows) else {
            let bytes = host.map(|host| host.saturating_sub(own));
            return Moved { bytes: add(bytes, rdma), ..Moved::default() };
        };
        let workloads = delta(now.workloads, then.workloads);
        let explained = || {
            let payload = workloads?.saturating_add(delta(now.housekeeping, then.housekeeping)?);
            // The agent's own count has headers in it and misses what is not TCP; its row has neither.
            Some(with_headers(payload).saturating_add(own.max(with_headers(delta(now.own, then.own)?))))
        };
        let both = host.zip(explained());
        Moved {
            bytes: add(workloads, rdma),
            unattributed_bytes: both.map(|(host, explained)| host.saturating_sub(explained)),
            ahead_bytes: both.map_or(0, |(host, explained)| explained.saturating_sub(host)),
            is_exact: true,
        }
    }
}

fn with_headers(payload: u64) -> u64 {
    payload.saturating_add(payload / HEADER_DIVISOR)
}
