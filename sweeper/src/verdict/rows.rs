//! Which row of a heartbeat did most of what a signal showed: a person looks for it first.

use super::{
    Signal,
    signal::{add, is_workload},
    watched::is_somebodys,
};
use heartbeat::wire;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The row that did most of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecidingRow {
    /// Of which signal.
    pub signal: Signal,
    /// Its key: the cgroup path; of inbound peers, `port` and its number.
    pub key: String,
    /// Its container: `NAMESPACE/POD/CONTAINER`, of ECS `CLUSTER/TASK/CONTAINER`, of Docker its name alone. Empty if it is none, or nobody told.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub container: String,
    /// Executable name of its busiest process; empty if it is not known.
    pub top_command: String,
    /// What it added: nanoseconds of CPU time, programs and processes started, or bytes; of inbound peers, how many there are.
    pub amount: u64,
}

/// What people call a row's container ([`DecidingRow::container`]).
pub(super) fn container(row: &wire::WorkloadActivity) -> String {
    let told = row.name.as_ref().and_then(|name| name.container.as_ref());
    let parts = told.map(|told| [told.namespace.as_str(), &told.pod, &told.name]);
    parts.into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/")
}

/// The row that added most to a signal between two heartbeats. `None` if no row did, as where the GPU, a person or an exited process that
/// nobody attributes did it.
pub(super) fn deciding(signal: Signal, earlier: &wire::Heartbeat, later: &wire::Heartbeat) -> Option<DecidingRow> {
    let counter: fn(&wire::WorkloadActivity) -> Option<u64> = match signal {
        Signal::WorkloadCpu => |row| row.cpu_ns,
        Signal::WorkloadStarts => |row| Some(row.forks.unwrap_or(0).saturating_add(row.execs.unwrap_or(0))),
        Signal::WorkloadDisk => |row| add(row.disk_read_bytes, row.disk_written_bytes),
        Signal::Network => |row| add(row.network_received_bytes, row.network_sent_bytes),
        Signal::InboundPeers => return newest_port(later),
        Signal::OomKill | Signal::Gpu | Signal::Person | Signal::Peers | Signal::Runs => return None,
    };
    // A cgroup may have a row of housekeeping beside that of work: cron's own, and the jobs that it starts.
    let before: BTreeMap<&str, u64> = (earlier.workloads.iter().filter(is_workload))
        .filter_map(|row| Some((row.key.as_str(), counter(row)?)))
        .collect();
    let grown = later.workloads.iter().filter(is_workload).filter_map(|row| {
        let amount = counter(row)?.saturating_sub(before.get(row.key.as_str()).copied().unwrap_or(0));
        (amount > 0).then_some((amount, row))
    });
    // Of equals the first by key: the same case gives the same judgement.
    let (amount, row) = grown.max_by(|(a, one), (b, other)| a.cmp(b).then_with(|| other.key.cmp(&one.key)))?;
    let (container, top_command) = (container(row), row.top_command.clone());
    Some(DecidingRow { signal, key: row.key.clone(), container, top_command, amount })
}

/// The port of somebody's work that was newly connected to last.
fn newest_port(heartbeat: &wire::Heartbeat) -> Option<DecidingRow> {
    let ports = heartbeat.inbound_peers.as_ref()?.listeners.iter().filter(|listener| is_somebodys(listener));
    let newest = ports.max_by_key(|listener| (listener.last_new_peer_unix_ms, std::cmp::Reverse(listener.port)))?;
    Some(DecidingRow {
        signal: Signal::InboundPeers,
        key: format!("port {}", newest.port),
        container: String::new(),
        top_command: newest.command.clone(),
        amount: newest.outside_peers.into(),
    })
}
