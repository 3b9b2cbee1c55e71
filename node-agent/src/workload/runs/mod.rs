//! From processes to pipelines: runs, their tasks and their tools, as a second view of the counters.
//!
//! Nothing is counted here that is not in the workloads' rows, too. A process belongs to one run at most: to that of the innermost engine
//! above it, else to the batch job that its cgroup names. Bounded: 512 runs and 1,024 tasks are known, 64 and 512 of them
//! listed; what ended leaves after ten samples, or earlier where room is needed. A run's sums hold its tasks'
//! from their first nanosecond on, so that none is lost when a task leaves.

mod fact;
mod run;
mod wire;

pub use fact::Fact;
pub use run::{Run, Task};

use crate::{
    model::Delta,
    workload::{
        Class, Name,
        engines::{batch, script, slurm},
    },
};
use heartbeat::envelope::{MAX_RUNS, MAX_TASKS};
use node_agent_ebpf::runs::{engine_id, run_of};
use run::{Listing, SAMPLES_AFTER_END};
use std::collections::BTreeMap;

/// Runs that are known, listed or not.
const MAX_KNOWN_RUNS: usize = 512;
/// Tasks that are known, over all runs.
const MAX_KNOWN_TASKS: usize = 2 * MAX_TASKS;
/// So many drivers of one run are told apart; a Slurm job may have one for each of 100,000 steps, some 160 bytes each.
const MAX_DRIVERS: usize = 64;

/// Whose delta it is, as far as runs are concerned.
#[derive(Clone, Debug)]
pub struct Owner<'a> {
    /// The run's task by descent; 0 if there is none.
    pub task_id: u64,
    /// Whose work it is.
    pub class: Class,
    /// The cgroup's path.
    pub path: Option<&'a str>,
    /// The batch job that the cgroup belongs to.
    pub job: Option<Name>,
}

/// All runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Runs {
    runs: BTreeMap<String, Run>,
    numbers: BTreeMap<u32, String>,
    runs_not_listed: u64,
    tasks_not_listed: u64,
    tools_not_listed: u64,
    now_ns: u64,
}

impl Runs {
    /// Takes in what was learnt since the last sample.
    pub fn tell(&mut self, fact: Fact) {
        match fact {
            Fact::RunBegan { run, id, engine, pipeline, started_ns, step } => {
                if self.runs.len() >= MAX_KNOWN_RUNS && !self.runs.contains_key(&id) && !self.make_room_for_run() {
                    self.runs_not_listed = self.runs_not_listed.saturating_add(1);
                    return;
                }
                let known = self.runs.entry(id.clone()).or_insert_with(|| Run { started_ns, ..Run::default() });
                known.engine = engine;
                known.pipeline = pipeline;
                known.started_ns = known.started_ns.min(started_ns);
                known.ended_ns = None;
                known.samples_since_end = 0;
                let driver = known.drivers.entry(run).or_default();
                (driver.step, driver.has_ended) = (step, false);
                if known.drivers.len() > MAX_DRIVERS {
                    let forgotten = known.forget_ended_drivers();
                    self.numbers.retain(|number, _| !forgotten.contains(number));
                }
                self.numbers.insert(run, id);
            }
            Fact::RunWasNone { run } => {
                self.numbers.remove(&run).and_then(|id| self.runs.remove(&id));
            }
            Fact::RunEnded { run, at_ns, wait_status } => {
                if let Some(known) = self.run(run) {
                    known.drivers.entry(run).or_default().has_ended = true;
                    // A Slurm job has a driver for each of its steps, and goes on while one of them lives.
                    if known.drivers.values().all(|driver| driver.has_ended) {
                        known.ended_ns = Some(at_ns);
                    }
                    // Of several drivers, the one that failed says how it ended.
                    known.wait_status = known.wait_status.filter(|status| *status != 0).or(Some(wait_status));
                }
            }
            Fact::RunCounted { run, started, ended, failed } => {
                if let Some(known) = self.run(run) {
                    known.drivers.entry(run).or_default().counts = [started, ended, failed];
                }
            }
            Fact::TaskBegan { id, started_ns } => self.task(id, started_ns),
            Fact::TaskRuns { id, program, is_wrapper, is_helper } => {
                let Some(run) = self.run(run_of(id)) else { return };
                let Some(task) = run.tasks.get_mut(&id) else { return };
                // A launcher may run first, and a shell may become what it was told to start.
                let is_first = task.program.is_none();
                let is_better = task.program.as_ref().is_none_or(|(_, was_wrapper)| *was_wrapper || !is_wrapper);
                if is_better {
                    task.program = Some((program, is_wrapper));
                }
                if is_helper && is_first {
                    task.is_helper = true;
                    run.helpers[0] += 1;
                }
            }
            Fact::TaskNamed { id, name } => {
                if let Some(task) = self.run(run_of(id)).and_then(|run| run.tasks.get_mut(&id)) {
                    task.named.get_or_insert(name);
                }
            }
            Fact::TaskEnded { id, at_ns, wait_status } => {
                let Some(run) = self.run(run_of(id)) else { return };
                let Some(task) = run.tasks.get_mut(&id) else { return };
                task.ended_ns = Some(at_ns);
                task.wait_status = Some(wait_status);
                if task.is_helper {
                    run.helpers[1] += 1;
                    run.helpers[2] += u64::from(wait_status != 0);
                }
            }
        }
    }

    /// Sets all sums to zero: the readers subtract nothing across this moment. What is known of runs and tasks stays.
    pub fn begin_anew(&mut self) {
        self.runs.values_mut().for_each(Run::begin_anew);
    }

    /// Begins a sample: nobody has been seen alive yet.
    pub fn begin(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
        self.runs.values_mut().for_each(Run::begin);
    }

    /// Adds one delta.
    pub fn add(&mut self, owner: &Owner<'_>, tool: &str, delta: &Delta) {
        let Some((run, task_id)) = self.place(owner) else { return };
        run.add(task_id, tool, delta);
    }

    /// Counts ends of one kind, other than with exit code 0.
    pub fn add_failures(&mut self, owner: &Owner<'_>, tool: &str, wait_status: u32, count: u64) {
        let Some((run, task_id)) = self.place(owner) else { return };
        run.activity.failures.add(wait_status, count);
        if let Some(task) = run.tasks.get_mut(&task_id) {
            task.activity.failures.add(wait_status, count);
            task.tool(tool).failures.add(wait_status, count);
        }
    }

    /// Ends a sample: what is over for long leaves, and what is new is listed as far as there is room.
    pub fn end(&mut self) {
        let now_ns = self.now_ns;
        for run in self.runs.values_mut() {
            end_steps(run, now_ns);
            for task in run.tasks.values_mut() {
                task.end();
                let not_listed = std::mem::take(&mut task.tools_not_listed);
                self.tools_not_listed = self.tools_not_listed.saturating_add(not_listed);
            }
            run.tasks.retain(|_, task| task.samples_since_end <= SAMPLES_AFTER_END);
            run.samples_since_end = if run.is_over() { run.samples_since_end + 1 } else { 0 };
        }
        self.runs.retain(|_, run| {
            let is_script = !run.is_pipeline(now_ns);
            run.samples_since_end <= if is_script { 0 } else { SAMPLES_AFTER_END }
        });
        self.numbers.retain(|_, id| self.runs.contains_key(id));
        self.list();
    }

    /// Runs that are listed, with what is listed of their tasks.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Run, impl Iterator<Item = (u64, &Task)>)> {
        let listed = self.runs.iter().filter(|(_, run)| run.listing == Listing::Listed);
        listed.map(|(id, run)| {
            let tasks =
                run.tasks.iter().filter(|(_, task)| task.listing == Listing::Listed).map(|(id, task)| (*id, task));
            (id.as_str(), run, tasks)
        })
    }

    /// Numbers of the runs that are known.
    #[must_use]
    pub fn knows(&self, run: u32) -> bool {
        self.numbers.contains_key(&run)
    }

    /// What found no place on the list, by name.
    #[must_use]
    pub const fn drops(&self) -> [(&'static str, u64); 3] {
        [
            ("detail_runs_not_listed", self.runs_not_listed),
            ("detail_tasks_not_listed", self.tasks_not_listed),
            ("detail_tools_not_listed", self.tools_not_listed),
        ]
    }

    fn run(&mut self, number: u32) -> Option<&mut Run> {
        self.runs.get_mut(self.numbers.get(&number)?)
    }

    /// The task, known from here on if there is room.
    fn task(&mut self, id: u64, started_ns: u64) {
        let known: usize = self.runs.values().map(|run| run.tasks.len()).sum();
        if known >= MAX_KNOWN_TASKS && !self.make_room_for_task() {
            self.tasks_not_listed = self.tasks_not_listed.saturating_add(1);
            return;
        }
        let Some(run) = self.run(run_of(id)) else { return };
        let named = run.drivers.get(&run_of(id)).and_then(|driver| driver.step.clone());
        run.tasks.entry(id).or_insert_with(|| Task { named, started_ns, ..Task::default() });
    }

    /// The run and the task that a delta belongs to.
    fn place(&mut self, owner: &Owner<'_>) -> Option<(&mut Run, u64)> {
        // Whoever starts this agent from a script has not made it a part of a pipeline.
        if owner.class == Class::Own {
            return None;
        }
        let number = run_of(owner.task_id);
        let by_descent = self.numbers.get(&number).filter(|_| owner.task_id != 0).cloned();
        let is_script =
            by_descent.as_ref().and_then(|id| self.runs.get(id)).is_none_or(|run| run.engine == script::NAME);
        let job = owner.job.as_ref().filter(|job| is_script && [slurm::NAME, batch::NAME].contains(&job.kind.as_str()));
        if let Some(job) = job {
            return self.place_in_job(&job.kind, &job.id, owner.path.unwrap_or_default());
        }
        let run = self.runs.get_mut(&by_descent?)?;
        if owner.task_id == engine_id(number) {
            if run.workload.is_empty() {
                owner.path.unwrap_or_default().clone_into(&mut run.workload);
            }
            run.is_ours |= owner.class != Class::Workload;
        }
        Some((run, owner.task_id))
    }

    /// A job whose run nobody drives here: its steps are its tasks.
    fn place_in_job(&mut self, kind: &str, job: &str, path: &str) -> Option<(&mut Run, u64)> {
        let id = format!("{kind}:{job}");
        if !self.runs.contains_key(&id) {
            if self.runs.len() >= MAX_KNOWN_RUNS && !self.make_room_for_run() {
                self.runs_not_listed = self.runs_not_listed.saturating_add(1);
                return None;
            }
            let run =
                Run { engine: kind.to_owned(), started_ns: self.now_ns, workload: path.to_owned(), ..Run::default() };
            self.runs.insert(id.clone(), run);
        }
        let now_ns = self.now_ns;
        let run = self.runs.get_mut(&id)?;
        run.ended_ns = None;
        let step = slurm::step_of_cgroup(path).map(|step| step.step).filter(|step| !step.is_empty());
        let Some(step) = step.filter(|_| run.tasks.len() < MAX_KNOWN_TASKS / 4) else { return Some((run, 0)) };
        // Small numbers name no task of any engine: their upper half is a run that does not exist.
        let task_id = run.tasks.iter().find(|(_, task)| task.named.as_deref() == Some(&step)).map(|(id, _)| *id);
        let task_id = task_id.unwrap_or(run.steps[0] + 1);
        run.tasks.entry(task_id).or_insert_with(|| {
            run.steps[0] += 1;
            Task { named: Some(step), started_ns: now_ns, ..Task::default() }
        });
        Some((run, task_id))
    }

    fn make_room_for_task(&mut self) -> bool {
        let ended = self.runs.iter().flat_map(|(id, run)| {
            run.tasks
                .iter()
                .filter(|(_, task)| task.is_over())
                .map(move |(task_id, task)| (task.ended_ns, id, *task_id))
        });
        let Some((_, id, task_id)) = ended.min().map(|(end, id, task_id)| (end, id.clone(), task_id)) else {
            return false;
        };
        self.runs.get_mut(&id).is_some_and(|run| run.tasks.remove(&task_id).is_some())
    }

    fn make_room_for_run(&mut self) -> bool {
        let ended = self.runs.iter().filter(|(_, run)| run.is_over());
        let Some(id) = ended.min_by_key(|(_, run)| run.ended_ns).map(|(id, _)| id.clone()) else { return false };
        self.runs.remove(&id);
        self.numbers.retain(|_, of| *of != id);
        true
    }

    /// Who is on the list stays there. What is new comes on it in the order of its begin.
    fn list(&mut self) {
        let now_ns = self.now_ns;
        let mut room = MAX_RUNS.saturating_sub(self.runs.values().filter(|run| run.listing == Listing::Listed).count());
        let new = self.runs.values_mut().filter(|run| run.listing != Listing::Listed && run.is_pipeline(now_ns));
        let mut new: Vec<&mut Run> = new.collect();
        new.sort_by_key(|run| run.started_ns);
        for run in new {
            self.runs_not_listed += list_if(&mut room, &mut run.listing);
        }
        let listed =
            || self.runs.values().filter(|run| run.listing == Listing::Listed).flat_map(|run| run.tasks.values());
        let mut room = MAX_TASKS.saturating_sub(listed().filter(|task| task.listing == Listing::Listed).count());
        let wanted = listed().filter(|task| task.waits_for_list()).count();
        while room < wanted && self.unlist_ended() {
            // An ended task that has been told makes room for one that has not.
            room += 1;
        }
        let runs = self.runs.values_mut().filter(|run| run.listing == Listing::Listed);
        for task in runs.flat_map(|run| run.tasks.values_mut()).filter(|task| task.waits_for_list()) {
            self.tasks_not_listed += list_if(&mut room, &mut task.listing);
        }
    }

    fn unlist_ended(&mut self) -> bool {
        let told = self.runs.values_mut().flat_map(|run| run.tasks.values_mut());
        let told = told.filter(|task| task.listing == Listing::Listed && task.samples_since_end > 1);
        let Some(task) = told.min_by_key(|task| task.ended_ns) else { return false };
        task.listing = Listing::Left;
        true
    }
}

/// Takes a place if there is one; how many found none for the first time.
fn list_if(room: &mut usize, listing: &mut Listing) -> u64 {
    if let Some(left) = room.checked_sub(1) {
        (*room, *listing) = (left, Listing::Listed);
        return 0;
    }
    u64::from(std::mem::replace(listing, Listing::Refused) == Listing::New)
}

/// What only cgroups show has ended when nobody lives there any more.
fn end_steps(run: &mut Run, now_ns: u64) {
    if !run.drivers.is_empty() || run.engine == script::NAME {
        return;
    }
    for task in run.tasks.values_mut() {
        if task.activity.live_threads > 0 {
            task.ended_ns = None;
            task.samples_since_end = 0;
        } else if task.ended_ns.is_none() {
            task.ended_ns = Some(now_ns);
        }
    }
    run.steps[1] =
        run.steps[0].saturating_sub(run.tasks.values().filter(|task| task.ended_ns.is_none()).count() as u64);
    if run.activity.live_threads == 0 {
        run.ended_ns.get_or_insert(now_ns);
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
