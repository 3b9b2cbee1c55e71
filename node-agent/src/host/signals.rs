//! The host's signals that need a memory from one sample to the next: GPUs, interactive sessions, inbound and other peers, missing interfaces, the peak of
//! memory in use.

use super::{
    connections::{Connected, ConnectionSampler},
    gpu::{self, Bus, Gpus},
    interfaces::Interfaces,
    memory::MemoryPeak,
    sessions::SessionSampler,
    whose::Whose,
};
use crate::{
    coverage::{Capabilities, Status},
    model::Moment,
};
use heartbeat::wire;

/// Reads them, again and again.
#[derive(Debug)]
pub struct Signals {
    gpus: Gpus,
    interactive_sessions: SessionSampler,
    connections: ConnectionSampler,
    interfaces: Interfaces,
    memory: MemoryPeak,
    hidden_host: Option<String>,
}

/// One sample of them; absent is not measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// GPUs that could be read.
    pub gpus: Vec<wire::Gpu>,
    /// Who sits at a terminal.
    pub interactive_sessions: Option<wire::InteractiveSessions>,
    /// Who would notice, and with whom data is exchanged.
    pub connected: Option<Connected>,
    /// Most memory in use since the last sample, in bytes.
    pub memory_used_peak_bytes: Option<u64>,
}

impl Signals {
    /// Begins to watch. Where there is a GPU, this waits for its first sample, 5 s at most. `hidden_host` says why the host's
    /// processes are not seen, if they are not: then nobody knows who sits there and who calls. `cpu_ppm_of_host` is the agent's budget, in millionths of the
    /// host's CPUs.
    #[must_use]
    pub fn start(gpu: &gpu::Options, cpu_ppm_of_host: u64, hidden_host: Option<String>) -> Self {
        Self {
            gpus: Gpus::start(gpu),
            interactive_sessions: SessionSampler::default(),
            connections: ConnectionSampler::within(cpu_ppm_of_host),
            interfaces: Interfaces::default(),
            memory: MemoryPeak::start(),
            hidden_host,
        }
    }

    /// Stops all that goes on between two samples and costs CPU time, until the next sample.
    pub fn pause(&self) {
        self.memory.pause();
    }

    /// Ends the baseline: what its samples cost delays none of the first heartbeat's.
    pub fn begin(&mut self) {
        self.connections.forget_cost();
    }

    /// Which GPUs are on the bus.
    #[must_use]
    pub fn bus(&self) -> &Bus {
        self.gpus.bus()
    }

    /// Process id of the helper that reads GPUs, while there is one.
    #[must_use]
    pub fn helper(&self) -> Option<u32> {
        self.gpus.helper()
    }

    /// Reads all of them. `classify` says whose work the process of an id does. The first sample is the baseline of the inbound peers: who is there then is no new one.
    pub fn read(&mut self, now: Moment, classify: &mut Whose<'_>, capabilities: &mut Capabilities) -> Seen {
        let gpus = self.gpus.read(now.boottime_ns, capabilities);
        let memory_used_peak_bytes = self.memory.take(capabilities);
        if let Some(reason) = &self.hidden_host {
            for capability in
                ["interactive_sessions", "inbound_peers", "inbound_peer_owners", "peers", "peer_owners", "interfaces"]
            {
                capabilities.set(capability, Status::Denied, reason.clone());
            }
            return Seen { gpus, memory_used_peak_bytes, ..Seen::default() };
        }
        self.interfaces.state(capabilities);
        let connected = self.connections.read(now.unix_ms, classify, capabilities);
        Seen {
            gpus,
            interactive_sessions: self.interactive_sessions.read(now.unix_ms, capabilities),
            connected,
            memory_used_peak_bytes,
        }
    }
}

impl Seen {
    /// Puts them where the contract has them.
    pub fn add_to(&self, heartbeat: &mut wire::Heartbeat) {
        heartbeat.gpus.clone_from(&self.gpus);
        heartbeat.interactive_sessions = self.interactive_sessions;
        heartbeat.inbound_peers = self.connected.as_ref().map(|connected| connected.inbound_peers.clone());
        heartbeat.peers = self.connected.as_ref().map(|connected| connected.peers.clone());
        if let Some(counters) = &mut heartbeat.counters {
            counters.memory_used_peak_bytes = self.memory_used_peak_bytes;
        }
    }
}
