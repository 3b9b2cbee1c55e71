//! What may happen on a node in one interval, and what cannot be read of it.

use crate::node::{Node, bump, capability, wall};
use heartbeat::wire;

pub(crate) const SECOND_NS: u64 = 1_000_000_000;

/// What may happen in one interval and speaks against idleness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Works,
    StartsProgram,
    Talks,
    DropsEvents,
    Restarts,
    /// Nothing happens for as long as an agent that restarts is away. Not in [`EVENTS`]: more rest makes a node quieter.
    Rests,
    DiskUnread,
    GpuWorks,
    GpuUnread,
    Types,
    Called,
    RunIsOpen,
    JobLives,
    Exchanges,
    Sleeps,
    HostCpuUnread,
    KernelCpuUnread,
    HostDiskUnread,
    OomKillsUnread,
    HousekeepingUnread,
    HousekeepingWorks,
    RdmaUnread,
    NobodysCpu,
    NobodysTraffic,
}

pub(crate) const EVENTS: &[Event] = &[
    Event::Works,
    Event::StartsProgram,
    Event::Talks,
    Event::DropsEvents,
    Event::Restarts,
    Event::DiskUnread,
    Event::GpuWorks,
    Event::GpuUnread,
    Event::Types,
    Event::Called,
    Event::RunIsOpen,
    Event::JobLives,
    Event::Exchanges,
    Event::Sleeps,
    Event::HostCpuUnread,
    Event::KernelCpuUnread,
    Event::HostDiskUnread,
    Event::OomKillsUnread,
    Event::HousekeepingUnread,
    Event::HousekeepingWorks,
    Event::RdmaUnread,
    Event::NobodysCpu,
    Event::NobodysTraffic,
];

impl Event {
    /// Whether the heartbeats after it tell of it, too. Of what could not be read in one heartbeat alone the next one tells all that happened, for counters
    /// run on; and a run or a job that is open in one heartbeat alone would have begun and ended between two others, as programs that started.
    pub(crate) fn is_told_later(self) -> bool {
        !matches!(
            self,
            Self::DiskUnread
                | Self::GpuUnread
                | Self::RdmaUnread
                | Self::HostCpuUnread
                | Self::KernelCpuUnread
                | Self::HostDiskUnread
                | Self::OomKillsUnread
                | Self::HousekeepingUnread
                | Self::RunIsOpen
                | Self::JobLives
                | Self::Sleeps
        )
    }
}

pub(crate) fn happen(node: &mut Node, event: Event) {
    let at = wall(node.end_s) + 20_000;
    match event {
        Event::Works => bump(&mut node.workload.cpu_ns, SECOND_NS),
        Event::StartsProgram => bump(&mut node.workload.execs, 1),
        Event::Talks => {
            bump(&mut node.workload.network_sent_bytes, 1 << 20);
            bump(&mut node.counters.network_sent_bytes, 1 << 20);
        }
        Event::DropsEvents => node.drops += 1,
        Event::GpuWorks => bump(&mut node.gpus[0].busy_ns, SECOND_NS),
        Event::Types => {
            node.interactive_sessions =
                Some(wire::InteractiveSessions { terminal_sessions: 1, last_input_unix_ms: Some(at) });
        }
        Event::Called => {
            if let Some(peers) = &mut node.inbound_peers {
                peers.listeners[0].last_new_peer_unix_ms = Some(at);
            }
        }
        Event::Exchanges => {
            if let Some(peers) = &mut node.peers {
                peers.groups[0].last_exchange_unix_ms = Some(at);
            }
        }
        Event::HousekeepingWorks => {
            bump(&mut node.housekeeping.cpu_ns, 16 * SECOND_NS);
            bump(&mut node.counters.cpu_busy_ns, 16 * SECOND_NS);
        }
        Event::NobodysCpu => bump(&mut node.counters.cpu_busy_ns, 10 * SECOND_NS),
        Event::NobodysTraffic => bump(&mut node.counters.network_sent_bytes, 1 << 20),
        _ => {}
    }
}

pub(crate) fn hide(node: &mut Node, event: Event) {
    match event {
        Event::DiskUnread => node.workload.disk_read_bytes = None,
        Event::GpuUnread => node.capabilities.push(capability("gpu", wire::CapabilityStatus::Broken)),
        Event::RdmaUnread => node.capabilities.push(capability("rdma", wire::CapabilityStatus::Denied)),
        Event::HostCpuUnread => node.counters.cpu_busy_ns = None,
        Event::KernelCpuUnread => node.kernel.cpu_ns = None,
        Event::HostDiskUnread => node.counters.disk_written_bytes = None,
        Event::OomKillsUnread => node.counters.oom_kills = None,
        Event::HousekeepingUnread => node.housekeeping.cpu_ns = None,
        Event::RunIsOpen => node.runs.push(wire::Run { engine: "snakemake".into(), ..wire::Run::default() }),
        // Half of the window.
        Event::Sleeps => node.workload.timed_wait_ns = Some(150 * SECOND_NS),
        Event::JobLives => {
            node.workload.name = Some(wire::WorkloadName { kind: "slurm".into(), id: "17".into(), container: None });
        }
        _ => {}
    }
}
