//! What the GPUs do: NVIDIA's through its management library, in a process of its own (`node-agent-gpu`), because the agent is a static
//! binary that cannot load a library, and because a driver that hangs must not take the agent with it.
//!
//! The helper is started only where an NVIDIA GPU is on the bus. It has no rights, no state and one pipe. A host is read
//! if and only if every GPU on the bus was read over the whole interval; in every other case the capability `gpu` says why, and no
//! verdict takes the host for idle. AMD's GPUs and other accelerators are not read, and the capability `accelerators` names them. Proven on an H100 (docs/journal/2026-11-27-a-real-gpu.md) and,
//! for what no GPU does on demand, against a stand-in library that is compiled from NVIDIA's own header.
//!
//! Cost: the helper asks the driver once a second; it is no part of the agent's own budget.

mod accelerators;
mod bus;
mod helper;
mod meter;

pub use bus::Bus;

use crate::{
    coverage::{Capabilities, Status},
    procfs::process,
};
use heartbeat::{envelope::MAX_GPUS, wire};
use helper::Shared;
use meter::Problem;
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::Duration,
};

/// The first call initialises the driver where nothing else keeps it awake; that takes a second or two.
const FIRST_WORD: Duration = Duration::from_secs(5);
/// Processes of one device whose workload is looked up.
const MAX_PROCESSES: usize = 64;

/// Where GPUs are looked for, and by what they are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The helper; `None` is `node-agent-gpu` beside the agent's own program.
    pub helper: Option<PathBuf>,
    /// `/sys/bus/pci/devices`, or what a test puts in its place.
    pub pci_devices: PathBuf,
    /// `/sys/class`, likewise.
    pub class: PathBuf,
}

impl Default for Options {
    fn default() -> Self {
        Self { helper: None, pci_devices: PathBuf::from("/sys/bus/pci/devices"), class: PathBuf::from("/sys/class") }
    }
}

/// The GPUs of this host.
#[derive(Debug)]
pub struct Gpus {
    bus: Bus,
    shared: Option<Arc<Shared>>,
    /// Why there is no helper where one is needed.
    refusal: Option<String>,
}

impl Gpus {
    /// Looks at the bus, and starts the helper if it is needed. Then waits for its first word, 5 s at most.
    #[must_use]
    pub fn start(options: &Options) -> Self {
        let bus = Bus::read(&options.pci_devices, &options.class);
        let mut gpus = Self { bus, shared: None, refusal: None };
        if gpus.bus.nvidia == 0 {
            return gpus;
        }
        let program = options.helper.clone().unwrap_or_else(helper::beside_this_program);
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let begin = move || {
            // Neither this thread nor the helper needs any.
            crate::privileges::drop_in_this_thread();
            helper::keep_running(&program, &theirs);
        };
        match thread::Builder::new().name("gpu".to_owned()).stack_size(256 * 1024).spawn(begin) {
            Ok(_) => {
                shared.wait_for_news(FIRST_WORD);
                gpus.shared = Some(shared);
            }
            Err(error) => gpus.refusal = Some(format!("no thread for the GPU helper: {error}")),
        }
        gpus
    }

    /// What the devices did so far, and what was not measured since the last call.
    pub fn read(&self, now_boottime_ns: u64, capabilities: &mut Capabilities) -> Vec<wire::Gpu> {
        let mut devices = Vec::new();
        let mut problem = None;
        if let Some(shared) = &self.shared {
            (devices, problem) = shared.meter().take(now_boottime_ns, self.bus.nvidia);
        }
        let (status, reason) = match (problem, &self.refusal) {
            _ if !self.bus.any_gpu() => (Status::NotApplicable, "no NVIDIA or AMD GPU is on the PCI bus".to_owned()),
            _ if let Some(reason) = &self.bus.unreadable => (Status::Broken, format!("there may be a GPU: {reason}")),
            (_, Some(refusal)) => (Status::Broken, refusal.clone()),
            (Some(Problem::Broken(reason)), _) => (Status::Broken, reason),
            (Some(Problem::Unsupported(reason)), _) => (Status::Unsupported, reason),
            (None, _) if self.bus.amd > 0 => {
                (Status::Unsupported, "an AMD GPU is on the bus, and this version reads NVIDIA's only".to_owned())
            }
            (None, _) => (Status::Ok, String::new()),
        };
        let (beside, why) = accelerators::state(&self.bus, (status, &reason));
        capabilities.set("gpu", status, reason);
        capabilities.set("accelerators", beside, why);
        let workloads = |pids: Vec<u32>| -> BTreeSet<String> {
            let known = pids.into_iter().take(MAX_PROCESSES);
            known.filter_map(|pid| process::workload(Path::new("/proc"), pid)).collect()
        };
        let devices = devices.into_iter().take(MAX_GPUS);
        devices.map(|(gpu, pids)| wire::Gpu { workloads: workloads(pids).into_iter().collect(), ..gpu }).collect()
    }

    /// Process id of what reads them, while it is there.
    #[must_use]
    pub fn helper(&self) -> Option<u32> {
        self.shared.as_ref()?.helper()
    }

    /// What is on the bus.
    #[must_use]
    pub fn bus(&self) -> &Bus {
        &self.bus
    }
}

impl Drop for Gpus {
    /// The helper's thread ends within a second, and the helper with it.
    fn drop(&mut self) {
        if let Some(shared) = &self.shared {
            shared.end();
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
