//! The host's signals that need a memory from one reading to the next: GPUs, people, callers.

use super::{
    callers::Callers,
    clock::Moment,
    gpu::{self, Bus, Gpus},
    people::People,
};
use crate::{
    coverage::{Probes, Status},
    workload::{Class, Traits},
};
use heartbeat::wire;

/// Reads them, again and again.
#[derive(Debug)]
pub struct Signals {
    gpus: Gpus,
    people: People,
    callers: Callers,
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
}

impl Signals {
    /// Begins to watch. Where there is a GPU, this waits for its first reading, 5 s at most. `hidden_host` says why the host's
    /// processes are not seen, if they are not: then nobody knows who sits there and who calls.
    #[must_use]
    pub fn start(gpu: &gpu::Options, hidden_host: Option<String>) -> Self {
        Self { gpus: Gpus::start(gpu), people: People::default(), callers: Callers::default(), hidden_host }
    }

    /// Which GPUs are on the bus.
    #[must_use]
    pub fn bus(&self) -> &Bus {
        self.gpus.bus()
    }

    /// Reads all of them. The first reading is the baseline of the callers: who is there then is no new one.
    pub fn read(&mut self, now: Moment, classify: &dyn Fn(&Traits<'_>) -> Class, probes: &mut Probes) -> Seen {
        let gpus = self.gpus.read(now.boottime_ns, probes);
        if let Some(reason) = &self.hidden_host {
            for probe in ["people", "callers", "caller_owners"] {
                probes.set(probe, Status::Denied, reason.clone());
            }
            return Seen { gpus, ..Seen::default() };
        }
        Seen {
            gpus,
            people: self.people.read(now.unix_ms, probes),
            callers: self.callers.read(now.unix_ms, classify, probes),
        }
    }
}

impl Seen {
    /// Puts them where the contract has them.
    pub fn fold_into(&self, heartbeat: &mut wire::Heartbeat) {
        heartbeat.gpus.clone_from(&self.gpus);
        heartbeat.people = self.people;
        heartbeat.callers.clone_from(&self.callers);
    }
}
