//! The maps that hold who belongs to which run: filled by the programs in the kernel, mended from here.

use super::error::ObjectError;
use crate::{
    model::comm_bytes,
    procfs::{process, stat::Stat},
    workload::engines::Engines,
};
use aya::maps::{Array, HashMap, Map, MapData};
use node_agent_ebpf::{
    COMM_BYTES,
    runs::{
        Lineage, MAX_LINEAGE, MAX_RUNS, RunCounts, SCRIPT_TASKS_PER_SAMPLE, TASKS_PER_SAMPLE, Tool, USER_SPACE_CPU,
        budget, engine_id, entries, lost, role, run_of, watched,
    },
};
use std::{collections::HashSet, fs, path::Path};

const LOSSES: [&str; lost::LEN as usize] = [
    "detail_lineage_full",
    "detail_runs_full",
    "detail_execs_not_looked_at",
    "detail_run_events",
    "detail_tasks_without_id",
];
/// Flags of an update: <https://github.com/torvalds/linux/blob/v6.12/include/uapi/linux/bpf.h#L1384-L1390>
const BPF_NOEXIST: u64 = 1;
const BPF_EXIST: u64 = 2;
/// Processes of one tree that are looked at when it becomes a run.
const MAX_DESCENDANTS: usize = 4_096;
/// Processes that one scan looks at.
const MAX_STRANGERS: usize = 8_192;

/// The maps.
pub struct Lineages {
    lineage: HashMap<MapData, u32, Lineage>,
    entries: Array<MapData, u64>,
    /// What stands at [`entries::by_agent`], by index.
    kept: std::collections::HashMap<u32, u64>,
    runs: HashMap<MapData, u32, RunCounts>,
    watched: HashMap<MapData, [u8; COMM_BYTES], u32>,
    tools: HashMap<MapData, u32, Tool>,
    lost: Array<MapData, u64>,
    budget: Array<MapData, u64>,
    next_number: u32,
    judged: HashSet<(u32, u64)>,
    orphans: HashSet<u32>,
}

impl Lineages {
    /// Takes them out of the object.
    ///
    /// # Errors
    /// If one is missing or has another shape.
    pub fn take(maps: &mut std::collections::HashMap<String, Map>) -> Result<Self, ObjectError> {
        let mut map = |name| maps.remove(name).ok_or(ObjectError::Incomplete(name));
        Ok(Self {
            lineage: map("LINEAGE")?.try_into()?,
            entries: map("ENTRIES")?.try_into()?,
            kept: std::collections::HashMap::new(),
            runs: map("RUNS")?.try_into()?,
            watched: map("WATCHED")?.try_into()?,
            tools: map("TOOLS")?.try_into()?,
            lost: map("LOST")?.try_into()?,
            budget: map("BUDGET")?.try_into()?,
            next_number: 0,
            judged: HashSet::new(),
            orphans: HashSet::new(),
        })
    }

    /// Says which programs are worth examining.
    ///
    /// # Errors
    /// If the map cannot be written.
    pub fn watch(&mut self, engines: &Engines) -> Result<(), ObjectError> {
        for (name, has_inline) in engines.interpreters() {
            let kind = if has_inline { watched::INLINE } else { watched::INTERPRETER };
            self.watched.insert(comm_bytes(name.as_bytes()), kind, 0)?;
        }
        for name in engines.programs() {
            self.watched.insert(comm_bytes(name.as_bytes()), watched::ENGINE, 0)?;
        }
        Ok(())
    }

    /// Lets the next tasks have ids of their own.
    ///
    /// # Errors
    /// If the map cannot be written.
    pub fn refill(&mut self) -> Result<(), ObjectError> {
        self.budget.set(budget::TASKS, TASKS_PER_SAMPLE, 0)?;
        Ok(self.budget.set(budget::SCRIPT_TASKS, SCRIPT_TASKS_PER_SAMPLE, 0)?)
    }

    /// What was lost, by name.
    #[must_use]
    pub fn losses(&self) -> Vec<(&'static str, u64)> {
        (0..).zip(LOSSES).map(|(index, name)| (name, self.lost.get(&index, 0).unwrap_or(0))).collect()
    }

    /// Losses that a scan of living processes can mend.
    #[must_use]
    pub fn lost_programs(&self) -> u64 {
        [lost::LINEAGE, lost::RUNS, lost::PROGRAMS, lost::EVENTS]
            .iter()
            .filter_map(|index| self.lost.get(index, 0).ok())
            .sum()
    }

    /// The run that a living process belongs to.
    #[must_use]
    pub fn run_of(&self, pid: u32) -> Option<u32> {
        self.lineage.get(&pid, 0).ok().filter(|entry| entry.end_boottime_ns == 0).map(|entry| run_of(entry.task_id))
    }

    /// The numbers of a run.
    #[must_use]
    pub fn counts(&self, run: u32) -> Option<RunCounts> {
        self.runs.get(&run, 0).ok()
    }

    /// A run is none, or over: what its processes start from here on belongs to nobody.
    pub fn forget_run(&mut self, run: u32) {
        // It may be gone already.
        let _ = self.runs.remove(&run);
    }

    /// Counts an entry that comes or goes. A count that cannot be written stays too high at worst: the programs then look where nothing is.
    fn count_entry(&mut self, pid: u32, what: u64) {
        let index = entries::by_agent(pid);
        let kept = self.kept.get(&index).copied().unwrap_or(0).wrapping_add(what);
        if self.entries.set(index, kept, 0).is_ok() {
            self.kept.insert(index, kept);
        }
    }

    /// Enters a process. Whoever is still there under its id has exited, and gives way.
    fn keep(&mut self, pid: u32, entry: Lineage) -> bool {
        // Counted before it is there: no program may miss it.
        self.count_entry(pid, 1);
        if self.lineage.insert(pid, entry, BPF_NOEXIST).is_ok() {
            return true;
        }
        self.count_entry(pid, u64::MAX);
        self.lineage.insert(pid, entry, BPF_EXIST).is_ok()
    }

    /// A process belongs to no run.
    pub fn forget_process(&mut self, pid: u32) {
        if self.lineage.remove(&pid).is_ok() {
            self.count_entry(pid, u64::MAX);
        }
    }

    /// Nobody belongs to any run.
    pub fn clear(&mut self) {
        let processes: Vec<u32> = self.lineage.keys().take(2 * MAX_LINEAGE as usize).filter_map(Result::ok).collect();
        processes.into_iter().for_each(|pid| self.forget_process(pid));
        let runs: Vec<u32> = self.runs.keys().take(2 * MAX_RUNS as usize).filter_map(Result::ok).collect();
        runs.into_iter().for_each(|run| self.forget_run(run));
        self.judged.clear();
    }

    /// Counts what this process does from here on under this name.
    pub fn name_tool(&mut self, pid: u32, start_boottime_ns: u64, name: [u8; COMM_BYTES]) {
        // Without room the interpreter's own name stays.
        let _ = self.tools.insert(pid, Tool { start_boottime_ns, name }, 0);
    }

    /// Runs that user space has not heard of at two samples in a row go: the event about them was lost.
    pub fn forget_unknown(&mut self, is_known: impl Fn(u32) -> bool) {
        let runs = self.runs.keys().take(2 * MAX_RUNS as usize).filter_map(Result::ok);
        let unknown: HashSet<u32> = runs.filter(|run| !is_known(*run)).collect();
        for run in &unknown {
            if self.orphans.contains(run) {
                let _ = self.runs.remove(run);
            }
        }
        self.orphans = unknown;
    }

    fn number(&mut self) -> u32 {
        self.next_number = (self.next_number + 1) & 0x7_ffff;
        USER_SPACE_CPU << 20 | self.next_number
    }

    /// Makes a living process the engine of a new run, and its descendants that run's tasks; the tasks with their begin. The run's
    /// counts hold only what is forked from here on.
    pub fn begin_run(&mut self, pid: u32, start_boottime_ns: u64, is_script: bool) -> Option<(u32, Vec<(u64, u64)>)> {
        let run = self.number();
        let budget = u64::from(if is_script { budget::SCRIPT_TASKS } else { budget::TASKS });
        self.runs.insert(run, RunCounts { budget, ..RunCounts::default() }, 0).ok()?;
        let task_id = engine_id(run);
        let entry = Lineage { start_boottime_ns, end_boottime_ns: 0, task_id, role: role::ENGINE, programs: 0 };
        if !self.keep(pid, entry) || !is_alive(pid) {
            self.forget_process(pid);
            self.forget_run(run);
            return None;
        }
        let mut roots = Vec::new();
        let mut queue: Vec<(u32, u64)> = children(pid).into_iter().map(|child| (child, 0)).collect();
        for _ in 0..MAX_DESCENDANTS {
            let Some((child, of)) = queue.pop() else { break };
            // What is forked from here on, the programs enter.
            if self.run_of(child) == Some(run) {
                continue;
            }
            let Some(start_boottime_ns) = start_of(child) else { continue };
            let is_root = of == 0;
            let task_id = if is_root { task_id | u64::from(self.number()) } else { of };
            let role = if is_root { role::ROOT } else { role::MEMBER };
            let entry = Lineage { start_boottime_ns, end_boottime_ns: 0, task_id, role, programs: 0 };
            if self.keep(child, entry) {
                if !is_alive(child) {
                    self.forget_process(child);
                    continue;
                }
                if is_root {
                    roots.push((child, task_id, start_boottime_ns));
                }
                queue.extend(children(child).into_iter().map(|child| (child, task_id)));
            }
        }
        // A child is listed a moment before the programs see its fork: such a one is theirs by now.
        let is_ours = |pid, id| self.lineage.get(&pid, 0).is_ok_and(|entry: Lineage| entry.task_id == id);
        let tasks =
            roots.into_iter().filter(|(pid, id, _)| is_ours(*pid, *id)).map(|(_, id, start)| (id, start)).collect();
        Some((run, tasks))
    }

    /// Living processes that have not been looked at yet, the oldest first, with their begin; and whether there are more of them.
    pub fn strangers(&mut self) -> (Vec<(u32, u64)>, bool) {
        let pids = process::list(Path::new("/proc")).unwrap_or_default();
        let living = pids.into_iter().filter_map(|pid| Some((pid, start_of(pid)?)));
        let (known, mut new): (Vec<_>, Vec<_>) = living.partition(|process| self.judged.contains(process));
        new.retain(|(pid, _)| *pid != std::process::id());
        new.sort_by_key(|(pid, start)| (*start, *pid));
        let are_more = new.len() > MAX_STRANGERS;
        new.truncate(MAX_STRANGERS);
        self.judged = known.into_iter().chain(new.iter().copied()).collect();
        (new, are_more)
    }
}

/// Fields of `/proc/PID/stat` by their numbers in proc_pid_stat(5).
fn stat<const N: usize>(pid: u32, numbers: [usize; N]) -> Option<[u64; N]> {
    Stat::read(Path::new("/proc"), pid).ok()?.numbers(numbers)
}

/// When a process began, in nanoseconds since boot, rounded down to the kernel's tick.
fn start_of(pid: u32) -> Option<u64> {
    let [start] = stat(pid, [22])?;
    start.checked_mul(1_000_000_000 / rustix::param::clock_ticks_per_second().max(1))
}

/// Whether the programs will still see a process end. Its last thread bears this flag before they do:
/// <https://github.com/torvalds/linux/blob/v6.16/kernel/exit.c#L925-L945>
fn is_alive(pid: u32) -> bool {
    const PF_EXITING: u64 = 4;
    stat(pid, [9, 20]).is_some_and(|[flags, threads]| flags & PF_EXITING == 0 || threads > 1)
}

/// The children of every thread of a process; none where the kernel does not list them (`CONFIG_PROC_CHILDREN`).
fn children(pid: u32) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect()
}
