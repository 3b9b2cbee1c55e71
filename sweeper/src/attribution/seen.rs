//! What an hour's rollup tells of who used the machine.
//!
//! Runs with their tasks and tools, and workloads, are two views of the same work: one of them is told. What a task did beyond its tools is told as the
//! task's, what a run did beyond its tasks as the run's, and what workloads did beyond all runs as theirs.

use crate::rollup::{Activity, Counter, Entry, Label, Resource, Rollup, Subject as Whose, Sum};
use costs::{Measure, Seen, Subject, Used, Value, View};
use heartbeat::BootId;
use std::collections::BTreeMap;

/// What all that fits no row of its own is called.
const OVERFLOW: &str = "overflow";

/// What was seen, and who used it.
pub(super) fn of(rollup: &Rollup, view: View, machine: &str) -> (Seen, Vec<Subject>) {
    let node = &rollup.node;
    let (cpu, gpu) = (measure(node.sum(Counter::Cpu), node.resource(Resource::CpuCapacity)), gpu(node));
    let why = match (&cpu, &gpu) {
        (Some(_), Some(_)) => None,
        (None, _) if node.sum(Counter::Cpu).is_some() => {
            Some("the rollup is of an older version, which kept no capacity")
        }
        (None, _) => Some("CPU time was not measured"),
        (_, None) => Some("the machine has GPUs that were not read"),
    };
    let (Some(cpu), Some(gpu), None) = (cpu, gpu, why) else {
        return (Seen::Not(why.unwrap_or_default().into()), Vec::new());
    };
    let memory = measure(node.resource(Resource::MemoryTime), node.resource(Resource::MemoryCapacity));
    let told = match view {
        View::Workloads => by_workload(rollup),
        View::Runs => by_run(rollup, machine),
    };
    let (subjects, used) = told.into_iter().unzip();
    // To the nearest second: each interval's length is cut to milliseconds.
    (Seen::Measured { seconds: (cpu.ms + 500) / 1_000, cpu, memory, gpu, used }, subjects)
}

fn measure(used: Option<Sum>, capacity: Option<Sum>) -> Option<Measure> {
    let capacity = capacity?;
    Some(Measure { capacity: capacity.0, in_use: used?.0, ms: capacity.1 })
}

/// A machine without GPUs has a capacity of zero.
fn gpu(node: &Activity) -> Option<Measure> {
    let capacity = node.resource(Resource::GpuCapacity)?;
    let in_use = node.sum(Counter::GpuBusy).map_or(0, |busy| busy.0);
    Some(Measure { capacity: capacity.0, in_use, ms: capacity.1 })
}

fn used(activity: &Activity) -> Used {
    let of = |counter| activity.sum(counter).map(|sum| sum.0);
    Used {
        cpu_ns: of(Counter::Cpu),
        memory_kib_ms: activity.resource(Resource::MemoryTime).map(|sum| sum.0),
        gpu_ns: of(Counter::GpuBusy),
        ..Used::default()
    }
}

/// What two used.
fn both(one: Used, other: Used) -> Used {
    let add = |one: Option<u64>, other: Option<u64>| match (one, other) {
        (Some(one), Some(other)) => Some(one.saturating_add(other)),
        (one, other) => one.or(other),
    };
    Used {
        cpu_ns: add(one.cpu_ns, other.cpu_ns),
        memory_kib_ms: add(one.memory_kib_ms, other.memory_kib_ms),
        gpu_ns: add(one.gpu_ns, other.gpu_ns),
        ..Used::default()
    }
}

/// What one used that none of its parts did.
fn beyond(whole: Used, parts: Used) -> Used {
    let less = |whole: Option<u64>, parts: Option<u64>| whole.map(|whole| whole.saturating_sub(parts.unwrap_or(0)));
    Used {
        cpu_ns: less(whole.cpu_ns, parts.cpu_ns),
        memory_kib_ms: less(whole.memory_kib_ms, parts.memory_kib_ms),
        gpu_ns: less(whole.gpu_ns, parts.gpu_ns),
        ..Used::default()
    }
}

fn value(text: &str) -> Value {
    (!text.is_empty() && text != OVERFLOW).then(|| text.into())
}

/// Whether a workload of this class would run on a machine that nobody uses.
fn is_system(class: &str) -> bool {
    matches!(class, "housekeeping" | "kernel" | "agent")
}

fn by_workload(rollup: &Rollup) -> Vec<(Subject, Used)> {
    let told = rollup.subjects.iter().filter_map(|entry| {
        let subject = match &entry.subject {
            Whose::Workload { class, key } => {
                Subject { is_system: is_system(class), workload: workload(&entry.label, key), ..Subject::default() }
            }
            Whose::Overflow { of } if of == "workload" => Subject::default(),
            _ => return None,
        };
        Some((subject, used(&entry.activity)))
    });
    told.collect()
}

/// `namespace/pod/container`, else what kind it is and its name, else its cgroup's path.
fn workload(label: &Label, key: &str) -> Value {
    match (&*label.place, &*label.kind, &*label.name) {
        ("", "", _) | ("", _, "") => value(key),
        ("", kind, name) => value(&format!("{kind} {name}")),
        (place, ..) => value(place),
    }
}

/// A run on this machine.
type RunId<'a> = (BootId, &'a str);

fn by_run(rollup: &Rollup, machine: &str) -> Vec<(Subject, Used)> {
    let mut of_tasks = BTreeMap::<RunId<'_>, Used>::new();
    let mut of_tools = BTreeMap::<(RunId<'_>, u64), Used>::new();
    let mut runs = BTreeMap::<RunId<'_>, &Entry>::new();
    let mut tasks = BTreeMap::<(RunId<'_>, u64), &Entry>::new();
    let (mut of_runs, mut of_workloads, mut of_system) = (Used::default(), Used::default(), Used::default());
    for entry in &rollup.subjects {
        let used = used(&entry.activity);
        match &entry.subject {
            Whose::Workload { class, .. } if is_system(class) => of_system = both(of_system, used),
            Whose::Workload { .. } => of_workloads = both(of_workloads, used),
            Whose::Run { boot, run } => {
                runs.insert((*boot, run), entry);
                of_runs = both(of_runs, used);
            }
            Whose::Task { boot, run, task } => {
                tasks.insert(((*boot, run), *task), entry);
                let sum = of_tasks.entry((*boot, run)).or_default();
                *sum = both(*sum, used);
            }
            Whose::Tool { boot, run, task, .. } => {
                let sum = of_tools.entry(((*boot, run), *task)).or_default();
                *sum = both(*sum, used);
            }
            // What made room is in what it is a part of; of workloads it is of any class.
            Whose::Overflow { of } if of == "workload" => of_workloads = both(of_workloads, used),
            Whose::Overflow { .. } => {}
        }
    }
    // What made room has left its parts, which are told: they are a part of its run all the same, and of all runs.
    for ((run, _), tools) in of_tools.iter().filter(|(whose, _)| !tasks.contains_key(*whose)) {
        let sum = of_tasks.entry(*run).or_default();
        *sum = both(*sum, *tools);
    }
    for (_, of_its_tasks) in of_tasks.iter().filter(|(run, _)| !runs.contains_key(*run)) {
        of_runs = both(of_runs, *of_its_tasks);
    }
    let of_run = |run: RunId<'_>| Subject {
        pipeline: runs.get(&run).and_then(|entry| value(&entry.label.name)),
        run: value(&format!("{} on {machine}", run.1)),
        ..Subject::default()
    };
    let of_task = |run: RunId<'_>, task: u64| {
        let name = tasks.get(&(run, task)).and_then(|entry| value(&entry.label.name));
        Subject { task: name, ..of_run(run) }
    };
    let system = Subject { is_system: true, ..Subject::default() };
    let mut told = vec![(system, of_system), (Subject::default(), beyond(of_workloads, of_runs))];
    for (run, entry) in &runs {
        told.push((of_run(*run), beyond(used(&entry.activity), of_tasks.get(run).copied().unwrap_or_default())));
    }
    for ((run, task), entry) in &tasks {
        let of_tools = of_tools.get(&(*run, *task)).copied().unwrap_or_default();
        told.push((of_task(*run, *task), beyond(used(&entry.activity), of_tools)));
    }
    for entry in &rollup.subjects {
        if let Whose::Tool { boot, run, task, tool } = &entry.subject {
            told.push((Subject { tool: value(tool), ..of_task((*boot, run), *task) }, used(&entry.activity)));
        }
    }
    told
}

#[cfg(test)]
mod tests;
