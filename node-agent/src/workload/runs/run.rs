//! One run and its tasks: sums by task and tool.

use crate::{
    model::Delta,
    workload::{Activity, engines::script},
};
use node_agent_ebpf::{counter, runs::run_of};
use std::collections::{BTreeMap, BTreeSet};

/// Named tools of one task; behind them one overflow row.
pub(super) const MAX_NAMED_TOOLS: usize = heartbeat::envelope::MAX_TOOLS - 1;
/// The row for all tools that have none of their own.
pub(super) const OVERFLOW: &str = "overflow";
/// An ended task, or run, stays for so many samples.
pub(super) const SAMPLES_AFTER_END: u32 = 10;

/// The name that used the most CPU time since the last sample.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Caption {
    pub(super) name: String,
    best_ns: Option<u64>,
}

impl Caption {
    fn begin(&mut self) {
        self.best_ns = None;
    }

    fn see(&mut self, name: &str, delta: &Delta) {
        let cpu_ns = delta.totals.counters[counter::CPU_NS];
        let is_better = self.best_ns.map_or(cpu_ns > 0 || self.name.is_empty(), |best| cpu_ns > best);
        if is_better {
            self.best_ns = Some(cpu_ns);
            name.clone_into(&mut self.name);
        }
    }
}

/// Whether a run or a task is on the list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Listing {
    /// It has not been there yet.
    #[default]
    New,
    /// There was no room for it, which has been counted.
    Refused,
    /// It is.
    Listed,
    /// It was, and made room.
    Left,
}

/// A process that drives a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Driver {
    /// Tasks begun, ended and failed.
    pub(super) counts: [u64; 3],
    /// How its tasks are called if nothing else names them.
    pub(super) step: Option<String>,
    pub(super) has_ended: bool,
}

/// One task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Task {
    pub(super) named: Option<String>,
    pub(super) program: Option<(String, bool)>,
    pub(super) busiest_tool: Option<String>,
    /// Begin, in nanoseconds since boot.
    pub started_ns: u64,
    /// End, in nanoseconds since boot.
    pub ended_ns: Option<u64>,
    /// How its first process ended.
    pub wait_status: Option<u32>,
    /// All its processes.
    pub activity: Activity,
    /// The same by tool.
    pub tools: BTreeMap<String, Activity>,
    /// Bookings for tools beyond those, since it was last asked.
    pub(super) tools_not_listed: u64,
    pub(super) caption: Caption,
    pub(super) is_helper: bool,
    pub(super) listing: Listing,
    pub(super) samples_since_end: u32,
}

impl Task {
    pub(super) fn begin(&mut self) {
        self.activity.begin();
        self.caption.begin();
        for tool in self.tools.values_mut() {
            tool.begin();
        }
    }

    pub(super) fn add(&mut self, tool: &str, delta: &Delta) {
        self.activity.add(delta);
        self.caption.see(tool, delta);
        self.tool(tool).add(delta);
    }

    /// Ends a sample: the tool that has used the most CPU time so far may give the task its name. Which one was seen first would hang on when a sample was
    /// taken.
    pub(super) fn end(&mut self) {
        if self.is_over() {
            self.samples_since_end += 1;
        }
        let cpu_ns = |activity: &Activity| activity.totals.counters[counter::CPU_NS];
        let ran = |activity: &Activity| activity.totals.execs > 0 || cpu_ns(activity) > 0;
        let tools = self.tools.iter().filter(|(name, activity)| !script::is_wrapper(name) && ran(activity));
        let Some((name, activity)) = tools.max_by_key(|(_, activity)| cpu_ns(activity)) else { return };
        let so_far = self.busiest_tool.as_ref().and_then(|name| self.tools.get(name)).map(cpu_ns);
        if so_far.is_none_or(|so_far| cpu_ns(activity) > so_far) {
            self.busiest_tool = Some(name.clone());
        }
    }

    /// The row of a tool. Without a place it shares the overflow row, which is counted.
    pub(super) fn tool(&mut self, tool: &str) -> &mut Activity {
        let has_place = self.tools.len() < MAX_NAMED_TOOLS || self.tools.contains_key(tool);
        self.tools_not_listed = self.tools_not_listed.saturating_add(u64::from(!has_place));
        self.tools.entry(if has_place { tool.to_owned() } else { OVERFLOW.to_owned() }).or_default()
    }

    /// Whether it is over, and nobody lives who belongs to it.
    pub(super) fn is_over(&self) -> bool {
        self.ended_ns.is_some() && self.activity.live_threads == 0
    }

    pub(super) fn waits_for_list(&self) -> bool {
        !self.is_helper && !self.name().is_empty() && matches!(self.listing, Listing::New | Listing::Refused)
    }

    /// As a command line calls it, else what it runs.
    #[must_use]
    pub fn name(&self) -> &str {
        let program = self.program.as_ref();
        let is_plain = program.is_some_and(|(_, is_wrapper)| !is_wrapper);
        let name = self.named.as_ref().or_else(|| program.filter(|_| is_plain).map(|(name, _)| name));
        let name = name.or(self.busiest_tool.as_ref()).or_else(|| program.map(|(name, _)| name));
        name.unwrap_or(&self.caption.name)
    }
}

/// One run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// The engine's name on the wire.
    pub engine: String,
    /// The pipeline's name.
    pub pipeline: String,
    /// Key of the workload that the engine runs in.
    pub workload: String,
    /// Begin, in nanoseconds since boot.
    pub started_ns: u64,
    /// End, in nanoseconds since boot.
    pub ended_ns: Option<u64>,
    /// How its first process ended.
    pub wait_status: Option<u32>,
    /// The engine and all tasks.
    pub activity: Activity,
    pub(super) tasks: BTreeMap<u64, Task>,
    pub(super) caption: Caption,
    /// Processes that drive it, by number.
    pub(super) drivers: BTreeMap<u32, Driver>,
    /// What drivers counted that ended and are not told apart any more.
    pub(super) past_drivers: [u64; 3],
    /// Of those counts, what turned out to be no tasks.
    pub(super) helpers: [u64; 3],
    /// Tasks that were counted here, because no engine counts them: begun, ended, failed.
    pub(super) steps: [u64; 3],
    pub(super) is_ours: bool,
    pub(super) listing: Listing,
    pub(super) samples_since_end: u32,
}

impl Run {
    pub(super) fn begin(&mut self) {
        self.activity.begin();
        self.caption.begin();
        self.tasks.values_mut().for_each(Task::begin);
    }

    pub(super) fn begin_anew(&mut self) {
        self.activity = Activity::default();
        for task in self.tasks.values_mut() {
            task.activity = Activity::default();
            task.tools.clear();
        }
    }

    /// Adds what the engine itself or one of its tasks did.
    pub(super) fn add(&mut self, task_id: u64, tool: &str, delta: &Delta) {
        self.activity.add(delta);
        self.caption.see(tool, delta);
        if let Some(task) = self.tasks.get_mut(&task_id) {
            task.add(tool, delta);
        }
    }

    /// Tasks begun, ended and failed.
    #[must_use]
    pub fn counts(&self) -> [u64; 3] {
        std::array::from_fn(|at| {
            let counted: u64 = self.drivers.values().map(|driver| driver.counts[at]).sum();
            let counted = counted.saturating_add(self.past_drivers[at]);
            counted.saturating_sub(self.helpers[at]).saturating_add(self.steps[at])
        })
    }

    /// Drivers that have ended and left no task are counted together from now on; these are their numbers.
    pub(super) fn forget_ended_drivers(&mut self) -> BTreeSet<u32> {
        let with_tasks: BTreeSet<u32> = self.tasks.keys().map(|task| run_of(*task)).collect();
        let is_done = |(number, driver): &(&u32, &Driver)| driver.has_ended && !with_tasks.contains(number);
        let done: BTreeSet<u32> = self.drivers.iter().filter(is_done).map(|(number, _)| *number).collect();
        for driver in done.iter().filter_map(|number| self.drivers.remove(number)) {
            for (sum, count) in self.past_drivers.iter_mut().zip(driver.counts) {
                *sum = sum.saturating_add(count);
            }
        }
        done
    }

    /// A script that starts one program, or none, is no pipeline; nor is what runs on a machine that nobody uses.
    pub(super) fn is_pipeline(&self, now_ns: u64) -> bool {
        let lifetime_ns = self.ended_ns.unwrap_or(now_ns).saturating_sub(self.started_ns);
        let is_long = self.counts()[0] >= script::MIN_TASKS && lifetime_ns >= script::MIN_LIFETIME_NS;
        !self.is_ours && (self.engine != script::NAME || is_long)
    }

    pub(super) fn is_over(&self) -> bool {
        self.ended_ns.is_some() && self.activity.live_threads == 0
    }
}
