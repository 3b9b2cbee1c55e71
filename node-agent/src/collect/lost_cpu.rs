//! Takes up from the cgroups' own counters what CPU time the tasks' own paths lost; see [`crate::workload::residue`].
//!
//! A task that was reaped and is not freed yet (RCU: milliseconds, 82 ms at most were seen) is in no sum of the tasks' for a moment. So where something
//! seems to be missing, the ends of tasks are read again after [`SETTLE`], until it stays the same or [`MAX_WAITS`] have passed: what is missing then is
//! lost. Ends from before the counters' sample are counted by then, and later ones make what is missing smaller, never larger: on a host where many
//! processes end, by the CPU time that they use in these waits, which a calmer heartbeat takes up. Without anything missing there is one small file to
//! read per cgroup and heartbeat, and no wait.
//!
//! Refused: to wait for no end and to believe what two heartbeats in a row miss. Where processes end all the time, some are between reaping and freeing
//! at each sample: both samples miss CPU time that is counted a moment later, and it would be counted twice. And `once` has no second heartbeat.

use super::{Sampler, TaskCounters};
use crate::{
    coverage::{Capabilities, Status},
    host::cgroup_cpu::CpuTree,
    model::Deltas,
    procfs::cgroups::Mounts,
    workload::{
        Class,
        residue::{Residue, Samples, THRESHOLD_NS},
    },
};
use node_agent_ebpf::{Key, hierarchy};
use std::{
    thread,
    time::{Duration, Instant},
};

/// Its name in coverage.
const CAPABILITY: &str = "cgroup_cpu";
/// Long enough for the kernel to free what was reaped: of 9,300 tasks on a busy host the last was freed after 82 ms.
const SETTLE: Duration = Duration::from_millis(100);
/// After so many, each end from before the counters' sample is counted, however busy the host is; and a last sample stays within its two seconds.
const MAX_WAITS: u32 = 2;
/// Tasks whose CPU time so far is not accounted for while they live: then it cannot be told from lost time.
const UNTRACKED: [&str; 2] = ["untracked_tasks", "unreadable_tasks"];

/// What takes up lost CPU time.
pub(super) struct LostCpu {
    tree: Result<(CpuTree, Residue), &'static str>,
    /// Taken up so far, in nanoseconds.
    taken_ns: u64,
    /// Tasks that were not tracked at the baseline.
    untracked_before: u64,
    is_untracked: bool,
}

impl LostCpu {
    /// Without a baseline: [`Sampler::begin_lost_cpu`] gives it one.
    pub(super) fn new(mounts: &Mounts, is_ebpf: bool) -> Self {
        let tree = if is_ebpf {
            CpuTree::find(mounts)
        } else {
            Err("it takes eBPF to tell lost CPU time from that of others")
        };
        let tree = tree.map(|tree| {
            let residue = Residue::new(tree.total());
            (tree, residue)
        });
        Self { tree, taken_ns: 0, untracked_before: 0, is_untracked: false }
    }

    /// What the tasks of a key accounted for; `path` knows the cgroups.
    pub(super) fn account<'a>(
        &mut self,
        key: &Key,
        class: Class,
        cpu_ns: u64,
        path: impl Fn(u8, u64) -> Option<&'a str>,
    ) {
        let Ok((tree, residue)) = &mut self.tree else { return };
        let (hierarchy, id) = match tree.hierarchy() {
            hierarchy::V2 => (hierarchy::V2, key.cgroup_id),
            // What has its place in another tree of version 1 stands in this one's root.
            tree if tree == key.hierarchy => (tree, key.cgroup_v1_id),
            _ => (hierarchy::ROOT, 0),
        };
        let place = if id == 0 { Some("/") } else { path(hierarchy, id) };
        residue.account(place, class, cpu_ns);
    }

    /// What tasks accounted for whose key found no place.
    pub(super) fn account_elsewhere(&mut self, class: Class, cpu_ns: u64) {
        if let Ok((_, residue)) = &mut self.tree {
            residue.account(None, class, cpu_ns);
        }
    }

    /// To be called right before the tasks are sampled: whatever runs in between is then no loss. It hides as much of one, so the total comes last.
    pub(super) fn sample(&self) -> Option<Samples> {
        let (tree, residue) = self.tree.as_ref().ok()?;
        let mut samples = tree.sample_parts(residue.paths());
        samples.extend(tree.sample_total());
        Some(samples)
    }

    /// To be called right after the tasks were sampled, for the same reason; the total comes first.
    fn sample_of_baseline(&self) -> Option<Samples> {
        let (tree, residue) = self.tree.as_ref().ok()?;
        let mut samples = tree.sample_total();
        samples.extend(tree.sample_parts(residue.paths()));
        Some(samples)
    }

    /// CPU time taken up since the start, in milliseconds, by name.
    pub(super) fn drops(&self) -> (&'static str, u64) {
        ("detail_cpu_taken_up_ms", self.taken_ns / 1_000_000)
    }

    /// Says whether rows add up to what the cgroups say.
    pub(super) fn state(&self, capabilities: &mut Capabilities) {
        match &self.tree {
            Err(reason) => capabilities.set(CAPABILITY, Status::NotApplicable, *reason),
            Ok(_) if self.is_untracked => {
                capabilities.set(
                    CAPABILITY,
                    Status::Broken,
                    "more tasks live than are tracked: what is lost cannot be told from what they used",
                );
            }
            Ok(_) => capabilities.ok(CAPABILITY),
        }
    }
}

/// Tasks that are not tracked, by these counts of losses.
fn untracked(drops: &[(&'static str, u64)]) -> u64 {
    drops.iter().filter(|(name, _)| UNTRACKED.contains(name)).map(|(_, count)| *count).sum()
}

impl Sampler {
    /// The baseline: of the tasks once more, and of the cgroups at the same moment.
    pub(super) fn begin_lost_cpu(&mut self) {
        let TaskCounters::Ebpf(object) = &mut self.task_counters else { return };
        let mut samples = None;
        let deltas = match object.read_and(|| samples = self.lost_cpu.sample_of_baseline()) {
            Ok(deltas) => deltas,
            Err(error) => {
                // Without a baseline everything that is missing may be older than it: nothing is taken up.
                tracing::warn!(%error, "lost CPU time is not taken up");
                self.lost_cpu.is_untracked = true;
                self.lost_samples += 1;
                return;
            }
        };
        self.drops.clone_from(&deltas.drops);
        self.overflowed = self.overflowed.saturating_add(deltas.overflowed);
        self.add_sample(&deltas);
        self.lost_cpu.untracked_before = untracked(&self.drops);
        self.lost_cpu.is_untracked = false;
        if let Some(samples) = samples
            && let Ok((_, residue)) = &mut self.lost_cpu.tree
        {
            residue.begin(&samples);
        }
    }

    /// Takes up what is missing; `samples` were taken at `since`, before the tasks', which are counted by now. More of the tasks' ends may be counted here.
    pub(super) fn take_up_lost_cpu(&mut self, samples: &Samples, since: Instant) {
        self.lost_cpu.is_untracked |= untracked(&self.drops) > self.lost_cpu.untracked_before;
        let Ok((tree, residue)) = &mut self.lost_cpu.tree else { return };
        residue.sampled(samples);
        let new = tree.sample(residue.new_paths());
        residue.sampled_late(&new);
        if self.lost_cpu.is_untracked || !self.settle() {
            return;
        }
        let nanos = since.elapsed().as_nanos().saturating_mul(u128::from(self.facts.cpus.max(1)));
        let slack_ns = u64::try_from(nanos).unwrap_or(u64::MAX);
        let Ok((_, residue)) = &mut self.lost_cpu.tree else { return };
        for taken in residue.take_up(slack_ns) {
            tracing::debug!(cgroup = taken.path, class = ?taken.class, cpu_ns = taken.cpu_ns, "lost CPU time is taken up");
            self.lost_cpu.taken_ns = self.lost_cpu.taken_ns.saturating_add(taken.cpu_ns);
            self.rows.take_up(taken.class, &taken.path, taken.cpu_ns);
        }
    }

    /// Counts the ends that were under way at the samples; false if they could not be read.
    fn settle(&mut self) -> bool {
        for _ in 0..MAX_WAITS {
            let missing_ns = self.missing_cpu_ns();
            tracing::debug!(missing_ns, "ends may be under way");
            if missing_ns < THRESHOLD_NS {
                break;
            }
            thread::sleep(SETTLE);
            let mut late = Deltas::default();
            let TaskCounters::Ebpf(object) = &mut self.task_counters else { break };
            let read = object.read_ended(&mut late, || ());
            self.add(&late);
            if let Err(error) = read {
                tracing::warn!(%error, "ends of tasks could not be read a second time");
                self.lost_samples += 1;
                return false;
            }
        }
        true
    }

    fn missing_cpu_ns(&self) -> u64 {
        self.lost_cpu.tree.as_ref().map_or(0, |(_, residue)| residue.missing_ns())
    }
}
