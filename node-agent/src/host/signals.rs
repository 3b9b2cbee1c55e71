//! The host's signals that need a memory from one sample to the next: GPUs, people, callers and peers, missing interfaces, the peak of
//! memory in use.

use super::{
    callers::Callers,
    gpu::{self, Bus, Gpus},
    interfaces::Interfaces,
    memory::MemoryPeak,
    people::People,
    whose::Whose,
};
use crate::{
    coverage::{Probes, Status},
    model::Moment,
};
use heartbeat::wire;

/// Reads them, again and again.
#[derive(Debug)]
pub struct Signals {
    gpus: Gpus,
    people: People,
    callers: Callers,
    interfaces: Interfaces,
    memory: MemoryPeak,
    hidden_host: Option<String>,
}

/// One reading of them; absent is not measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// GPUs that could be read.
    pub gpus: Vec<wire::Gpu>,
    /// Who sits at a terminal.
    pub people: Option<wire::People>,
    /// Who would notice.
    pub callers: Option<wire::Callers>,
    /// With whom data is exchanged.
    pub peers: Option<wire::Peers>,
    /// Most memory in use since the last sample, in bytes.
    pub memory_used_peak_bytes: Option<u64>,
}

impl Signals {
    /// Begins to watch. Where there is a GPU, this waits for its first reading, 5 s at most. `hidden_host` says why the host's
    /// processes are not seen, if they are not: then nobody knows who sits there and who calls.
    #[must_use]
    pub fn start(gpu: &gpu::Options, hidden_host: Option<String>) -> Self {
        Self {
            gpus: Gpus::start(gpu),
            people: People::default(),
            callers: Callers::default(),
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
        self.callers.forget_cost();
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

    /// Reads all of them. `classify` says whose work the process of an id does. The first reading is the baseline of the callers: who is there then is no new one.
    pub fn read(&mut self, now: Moment, classify: &mut Whose<'_>, probes: &mut Probes) -> Seen {
        let gpus = self.gpus.read(now.boottime_ns, probes);
        let memory_used_peak_bytes = self.memory.take(probes);
        if let Some(reason) = &self.hidden_host {
            for probe in ["people", "callers", "caller_owners", "peers", "peer_owners", "interfaces"] {
                probes.set(probe, Status::Denied, reason.clone());
            }
            return Seen { gpus, memory_used_peak_bytes, ..Seen::default() };
        }
        self.interfaces.state(probes);
        let (callers, peers) = self.callers.read(now.unix_ms, classify, probes).unzip();
        Seen { gpus, people: self.people.read(now.unix_ms, probes), callers, peers, memory_used_peak_bytes }
    }
}

impl Seen {
    /// Puts them where the contract has them.
    pub fn fold_into(&self, heartbeat: &mut wire::Heartbeat) {
        heartbeat.gpus.clone_from(&self.gpus);
        heartbeat.people = self.people;
        heartbeat.callers.clone_from(&self.callers);
        heartbeat.peers.clone_from(&self.peers);
        if let Some(counters) = &mut heartbeat.counters {
            counters.memory_used_peak_bytes = self.memory_used_peak_bytes;
        }
    }
}
