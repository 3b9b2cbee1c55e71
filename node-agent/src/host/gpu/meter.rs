//! From samples of a moment to counters of an interval. Pure: no clock, no process.
//!
//! The helper says for how long kernels ran since its last report, by all samples that the driver took meanwhile. Time that they do not cover, and reports that lie further apart
//! than [`LONGEST_GAP_NS`], were not observed, and whoever asks is told: a device that nobody looked at was not idle.

use heartbeat::wire;
use node_agent_gpu::{Device, Report};
use std::collections::BTreeMap;

/// The helper reads once a second. Five of them may be late or lost; more is a gap.
pub(super) const LONGEST_GAP_NS: u64 = 5_000_000_000;

/// Why the devices' work over the last interval is not known, or not whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Problem {
    /// It should work and does not.
    Broken(String),
    /// A device or driver that cannot say it.
    Unsupported(String),
}

/// One device, and what it did since it was first read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Tracked {
    now: Device,
    busy_ns: u64,
}

/// Adds up.
#[derive(Debug, Default)]
pub(super) struct Meter {
    devices: BTreeMap<String, Tracked>,
    last_ns: Option<u64>,
    /// The first thing that went wrong since the last [`Meter::take`].
    problem: Option<Problem>,
    /// Devices that the library counts and does not show.
    lost: Vec<String>,
    /// What the helper said last, if it was that it cannot read.
    failure: Option<String>,
}

impl Meter {
    /// Takes a report that came at this moment.
    pub(super) fn feed(&mut self, report: Report, at_boottime_ns: u64) {
        let (devices, lost) = match report {
            Report::Read { devices, lost } => (devices, lost),
            Report::Failed { reason } => return self.fail(reason),
        };
        self.failure = None;
        let elapsed_ns = self.last_ns.map(|last| at_boottime_ns.saturating_sub(last));
        self.last_ns = Some(at_boottime_ns);
        if elapsed_ns.is_some_and(|elapsed| elapsed > LONGEST_GAP_NS) {
            self.note(Problem::Broken("nothing was read for a while within this interval".to_owned()));
        }
        let mut before = std::mem::take(&mut self.devices);
        for device in devices {
            let busy_before = before.remove(&device.uuid).map_or(0, |tracked| tracked.busy_ns);
            let busy_ns = busy_before.saturating_add(device.busy_us.unwrap_or(0).saturating_mul(1000));
            // What came before the first report of all was not asked for.
            if let Some(gap) = device.gap.as_ref().filter(|_| elapsed_ns.is_some()) {
                self.note(Problem::Broken(format!("{}: {gap}", printable(&device.uuid))));
            }
            self.devices.insert(device.uuid.clone(), Tracked { now: device, busy_ns });
        }
        if let Some(gone) = before.keys().next() {
            self.note(Problem::Broken(format!("{gone} is gone")));
        }
        self.lost = lost;
        if let Some(problem) = self.present_problem() {
            self.note(problem);
        }
    }

    /// Takes a failure of the helper, in words.
    pub(super) fn fail(&mut self, reason: String) {
        self.note(Problem::Broken(reason.clone()));
        self.failure = Some(reason);
    }

    fn note(&mut self, problem: Problem) {
        self.problem.get_or_insert(problem);
    }

    /// What is wrong with the last sample.
    fn present_problem(&self) -> Option<Problem> {
        let is_blind = |now: &&Device| now.utilization_percent.is_none() || now.busy_us.is_none();
        let blind = self.devices.values().map(|tracked| &tracked.now).find(is_blind);
        let lost = || self.lost.first().map(|why| Problem::Broken(why.clone()));
        blind.map_or_else(lost, |device| {
            let why = device
                .unreadable
                .iter()
                .find(|why| ["utilization", "samples"].iter().any(|what| why.starts_with(what)));
            let why = why.map_or("utilization: not read", String::as_str);
            Some(Problem::Unsupported(format!("{}: {why} (a GPU in MIG mode has none)", printable(&device.uuid))))
        })
    }

    /// Whether the last word was that nothing can be read.
    pub(super) fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Whether anything has been heard at all.
    pub(super) fn has_heard(&self) -> bool {
        self.last_ns.is_some() || self.failure.is_some()
    }

    /// The devices as they are now, each with the processes on it, and why the time since the last call is not measured or
    /// not wholly. `expected` is how many are on the bus.
    pub(super) fn take(
        &mut self,
        now_boottime_ns: u64,
        expected: usize,
    ) -> (Vec<(wire::Gpu, Vec<u32>)>, Option<Problem>) {
        let is_fresh = self.last_ns.is_some_and(|last| now_boottime_ns.saturating_sub(last) <= LONGEST_GAP_NS);
        if !is_fresh {
            let silence = "the driver gave no sample for more than 5 s";
            self.note(Problem::Broken(self.failure.clone().unwrap_or_else(|| silence.to_owned())));
        }
        if is_fresh {
            // It stands until a sample without it, however seldom samples come.
            if let Some(problem) = self.present_problem() {
                self.note(problem);
            }
            if self.devices.len() < expected {
                let found = self.devices.len();
                self.note(Problem::Broken(format!("of {expected} GPUs on the bus {found} can be read")));
            }
        }
        let problem = self.problem.take();
        // What is old says nothing about now.
        let devices = if is_fresh { self.devices.values().map(to_wire).collect() } else { Vec::new() };
        (devices, problem)
    }
}

fn to_wire(tracked: &Tracked) -> (wire::Gpu, Vec<u32>) {
    let now = &tracked.now;
    let gpu = wire::Gpu {
        uuid: printable(&now.uuid),
        model: printable(&now.model),
        busy_ns: now.utilization_percent.and(now.busy_us).map(|_| tracked.busy_ns),
        utilization_percent: now.utilization_percent,
        memory_used_bytes: now.memory_used_bytes,
        memory_total_bytes: now.memory_total_bytes,
        power_mw: now.power_mw,
        energy_mj: now.energy_mj,
        processes: now.process_count,
        workloads: Vec::new(),
    };
    (gpu, now.processes.clone().unwrap_or_default())
}

fn printable(text: &str) -> String {
    text.chars().flat_map(|c| if c.is_control() { c.escape_default().collect::<Vec<_>>() } else { vec![c] }).collect()
}

#[cfg(test)]
#[path = "meter_tests.rs"]
mod tests;
