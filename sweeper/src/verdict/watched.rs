//! GPUs, interactive sessions, inbound peers and exchanges: signals that agents learnt to read after the first ones, and that some hosts have not.
//!
//! What an agent does not claim to look for is not demanded of it. What it looks for and could not read is not
//! measured: it says so in a capability of that name.

use super::{Signal, wait};
use heartbeat::wire::{self, CapabilityStatus, Class};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The kernel writes down a terminal's input in steps of 8 s.
const INPUT_STEP_MS: i64 = 8_000;
const SSH_PORT: u32 = 22;

/// What one heartbeat says of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Watched {
    /// Busy time by device, since its agent first read it.
    gpus: BTreeMap<String, Option<u64>>,
    has_gpu: bool,
    /// The GPUs are there and could not be read; other accelerators do not take away what was read of them.
    gpus_are_unread: bool,
    last_input_unix_ms: Option<i64>,
    /// By port: when its newest peer was first seen.
    new_peers: Option<BTreeMap<u32, i64>>,
    not_measured: Vec<Signal>,
}

/// What happened of them between two heartbeats.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Happened {
    pub(super) gpu_busy_ns: Option<u64>,
    pub(super) last_input_unix_ms: Option<i64>,
    pub(super) new_inbound_peers: Option<u64>,
    pub(super) not_measured: Vec<Signal>,
}

/// Whether the agent looks for it, and could not see it.
pub(super) fn is_blind(capabilities: &[wire::Capability], name: &str) -> bool {
    statuses(capabilities, name).any(|status| !is_fine(status))
}

/// Whether the agent says that it looks for it, and sees it or that there is none.
pub(super) fn is_told(capabilities: &[wire::Capability], name: &str) -> bool {
    statuses(capabilities, name).next().is_some() && !is_blind(capabilities, name)
}

fn is_fine(status: i32) -> bool {
    [CapabilityStatus::Ok, CapabilityStatus::NotApplicable].map(i32::from).contains(&status)
}

/// Heartbeats that are stored, or wait on a node's disk, may have the names of before.
fn statuses<'a>(capabilities: &'a [wire::Capability], name: &'a str) -> impl Iterator<Item = i32> + 'a {
    let before = match name {
        "interactive_sessions" => "people",
        "inbound_peers" => "callers",
        other => other,
    };
    let named = capabilities.iter().filter(move |one| [name, before].contains(&one.name.as_str()));
    named.map(|capability| capability.status)
}

/// Somebody's port, as far as anybody knows. Who logs in by ssh starts workload; the world's attempts to log in are no work.
pub(super) fn is_somebodys(listener: &wire::Listener) -> bool {
    match Class::try_from(listener.class) {
        Ok(Class::Housekeeping | Class::Kernel | Class::Self_) => false,
        Ok(Class::Unspecified) => listener.port != SSH_PORT,
        _ => true,
    }
}

impl Watched {
    pub(super) fn of(heartbeat: &wire::Heartbeat) -> Self {
        let capabilities = heartbeat.coverage.as_ref().map_or(&[][..], |coverage| &coverage.capabilities);
        let has_gpu = heartbeat.host.as_ref().is_some_and(|host| host.gpu_present);
        let sessions = heartbeat.interactive_sessions;
        let is_ageless =
            sessions.is_some_and(|sessions| sessions.terminal_sessions > 0 && sessions.last_input_unix_ms.is_none());
        let gpus_are_unread = has_gpu && is_blind(capabilities, "gpu");
        let not_measured = [
            (Signal::Gpu, gpus_are_unread || is_blind(capabilities, "accelerators")),
            (Signal::Network, is_blind(capabilities, "rdma") || is_blind(capabilities, "interfaces")),
            (Signal::Person, is_ageless || is_blind(capabilities, "interactive_sessions")),
            (Signal::InboundPeers, is_blind(capabilities, "inbound_peers") || wait::hides_calls(heartbeat)),
            (Signal::Peers, is_blind(capabilities, "peers") || wait::hides_exchanges(heartbeat)),
            (Signal::Runs, is_blind(capabilities, "pipelines")),
        ];
        Self {
            gpus: heartbeat.gpus.iter().map(|gpu| (gpu.uuid.clone(), gpu.busy_ns)).collect(),
            has_gpu,
            gpus_are_unread,
            last_input_unix_ms: sessions.and_then(|sessions| sessions.last_input_unix_ms),
            new_peers: heartbeat.inbound_peers.as_ref().map(|peers| {
                let ports = peers.listeners.iter().filter(|listener| is_somebodys(listener));
                ports.filter_map(|listener| Some((listener.port, listener.last_new_peer_unix_ms?))).collect()
            }),
            not_measured: not_measured.into_iter().filter_map(|(signal, blind)| blind.then_some(signal)).collect(),
        }
    }

    /// What happened after `earlier`, from this moment on. `follows` says that no heartbeat is missing in between: a lost one takes
    /// with it whether the GPUs were read all the time.
    pub(super) fn since(&self, earlier: &Self, start_unix_ms: i64, follows: bool) -> Happened {
        let mut not_measured = self.not_measured.clone();
        let gpu_busy_ns = self.gpu_busy_ns(earlier).filter(|_| follows && !self.gpus_are_unread);
        if self.has_gpu && gpu_busy_ns.is_none() && !not_measured.contains(&Signal::Gpu) {
            not_measured.insert(0, Signal::Gpu);
        }
        let is_new = |at: i64, before: Option<i64>| before.is_none_or(|before| at > before);
        let last_input_unix_ms = self
            .last_input_unix_ms
            .filter(|at| is_new(*at, earlier.last_input_unix_ms) && *at > start_unix_ms.saturating_sub(INPUT_STEP_MS));
        let new_inbound_peers = self.new_peers.as_ref().map(|ports| {
            let before = |port| earlier.new_peers.as_ref().and_then(|ports| ports.get(port)).copied();
            let new = ports.iter().filter(|(port, at)| is_new(**at, before(*port)) && **at > start_unix_ms);
            u64::try_from(new.count()).unwrap_or(u64::MAX)
        });
        Happened { gpu_busy_ns, last_input_unix_ms, new_inbound_peers, not_measured }
    }

    /// Over all devices; absent unless each of them was there before and counts.
    fn gpu_busy_ns(&self, earlier: &Self) -> Option<u64> {
        if !self.has_gpu || self.gpus.is_empty() || self.gpus.len() != earlier.gpus.len() {
            return None;
        }
        self.gpus.iter().try_fold(0_u64, |total, (uuid, busy_ns)| {
            let before = (*earlier.gpus.get(uuid)?)?;
            Some(total.saturating_add((*busy_ns)?.checked_sub(before)?))
        })
    }
}
