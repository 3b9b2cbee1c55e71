use super::*;
use crate::rollup::Sum;

const BOOT: &str = "6f1c1c1e-0000-4000-8000-000000000001";

fn activity(cpu: u64, resources: &[(Resource, u64)]) -> Activity {
    let sum = |amount| Sum(amount, 3_600_000);
    let resources = resources.iter().map(|(resource, amount)| (*resource, sum(*amount))).collect();
    Activity { sums: [(Counter::Cpu, sum(cpu))].into(), resources, ..Activity::default() }
}

fn entry(subject: Whose, label: Label, cpu: u64, memory: u64) -> Entry {
    Entry { subject, label, activity: activity(cpu, &[(Resource::MemoryTime, memory)]) }
}

fn named(name: &str) -> Label {
    Label { name: name.to_owned(), ..Label::default() }
}

/// An hour of a machine with one run: an engine (5), a task that is named (20) with two tools (12 and 6), one whose tool is not (10), a service (30) and housekeeping.
fn hour() -> Rollup {
    let boot: BootId = BOOT.parse().expect("a boot");
    let run = || "r1".to_owned();
    let tool = |task, tool: &str| Whose::Tool { boot, run: run(), task, tool: tool.to_owned() };
    let workload = |class: &str, key: &str| Whose::Workload { class: class.to_owned(), key: key.to_owned() };
    let unit = Label { kind: "systemd".to_owned(), ..named("db.service") };
    let subjects = vec![
        entry(workload("workload", "/batch"), Label::default(), 35, 350),
        entry(workload("workload", "/system.slice/db.service"), unit, 30, 300),
        entry(workload("housekeeping", "/cron"), Label::default(), 2, 20),
        entry(workload("kernel", "/"), Label::default(), 1, 0),
        entry(Whose::Run { boot, run: run() }, named("rnaseq"), 35, 350),
        entry(Whose::Task { boot, run: run(), task: 1 }, named("align"), 20, 200),
        entry(Whose::Task { boot, run: run(), task: 2 }, Label::default(), 10, 100),
        entry(tool(1, "bwa"), Label::default(), 12, 120),
        entry(tool(1, "samtools"), Label::default(), 6, 60),
        entry(tool(2, "overflow"), Label::default(), 10, 100),
        entry(Whose::Overflow { of: "tool".to_owned() }, Label::default(), 1, 0),
    ];
    let node = activity(
        70,
        &[
            (Resource::CpuCapacity, 200),
            (Resource::MemoryTime, 700),
            (Resource::MemoryCapacity, 1_000),
            (Resource::GpuCapacity, 0),
        ],
    );
    let mut rollup = Rollup::default();
    (rollup.node, rollup.subjects) = (node, subjects);
    rollup
}

fn told(view: View) -> Vec<(String, u64)> {
    told_of(&hour(), view)
}

fn told_of(rollup: &Rollup, view: View) -> Vec<(String, u64)> {
    let (seen, subjects) = of(rollup, view, "aws:1:r:i-1");
    let Seen::Measured { used, .. } = seen else { panic!("{seen:?}") };
    let name = |value: &Value| value.as_deref().unwrap_or("-").to_owned();
    let line = |(subject, used): (&Subject, &Used)| {
        // Of the kernel's threads none is measured.
        assert_eq!(used.memory_kib_ms, used.cpu_ns.map(|cpu| if subject.is_system { 20 } else { cpu * 10 }));
        let all =
            [&subject.pipeline, &subject.run, &subject.task, &subject.tool, &subject.workload].map(name).join(" ");
        (format!("{}{all}", if subject.is_system { "system " } else { "" }), used.cpu_ns.unwrap_or(0))
    };
    subjects.iter().zip(&used).map(line).collect()
}

#[test]
fn each_part_of_the_work_is_told_once_by_tool_task_or_run() {
    let told = told(View::Runs);
    let run = "rnaseq r1 on aws:1:r:i-1";
    let expected = [
        ("system - - - - -".to_owned(), 3),
        ("- - - - -".to_owned(), 30),
        (format!("{run} - - -"), 5),
        (format!("{run} align - -"), 2),
        (format!("{run} - - -"), 0),
        (format!("{run} align bwa -"), 12),
        (format!("{run} align samtools -"), 6),
        (format!("{run} - - -"), 10),
    ];
    assert_eq!(told, expected);
    // All that workloads and the system did, and no more.
    assert_eq!(told.iter().map(|(_, cpu)| cpu).sum::<u64>(), 68);
}

#[test]
fn what_made_room_is_told_by_its_parts_once() {
    let without = |made_room: fn(&Whose) -> bool| {
        let mut rollup = hour();
        rollup.subjects.retain(|entry| !made_room(&entry.subject));
        told_of(&rollup, View::Runs).iter().map(|(_, cpu)| cpu).sum::<u64>()
    };
    assert_eq!(without(|subject| matches!(subject, Whose::Task { task: 1, .. })), 68);
    assert_eq!(without(|subject| matches!(subject, Whose::Task { .. })), 68);
    assert_eq!(without(|subject| matches!(subject, Whose::Run { .. })), 68);
    assert_eq!(without(|subject| matches!(subject, Whose::Run { .. } | Whose::Task { .. })), 68);
}

#[test]
fn workloads_are_another_view_of_the_same() {
    let mut rollup = hour();
    rollup.subjects.retain(|entry| !matches!(&entry.subject, Whose::Workload { class, .. } if class == "kernel"));
    let (seen, subjects) = of(&rollup, View::Workloads, "aws:1:r:i-1");
    let Seen::Measured { seconds, cpu, memory, gpu, used } = seen else { panic!("{seen:?}") };
    assert_eq!((seconds, cpu.in_use, memory.map(|memory| memory.capacity), gpu.capacity), (3_600, 70, Some(1_000), 0));
    let names: Vec<_> = subjects.iter().map(|subject| (subject.workload.as_deref(), subject.is_system)).collect();
    assert_eq!(names, [(Some("/batch"), false), (Some("systemd db.service"), false), (Some("/cron"), true)]);
    assert_eq!(used.iter().map(|used| used.cpu_ns).collect::<Vec<_>>(), [35, 30, 2].map(Some));
}

#[test]
fn what_cannot_be_split_says_why() {
    let without = |resource, is_cpu_measured| {
        let mut rollup = hour();
        rollup.node.resources.remove(&resource);
        rollup.node.sums.retain(|_, _| is_cpu_measured);
        match of(&rollup, View::Runs, "m").0 {
            Seen::Not(why) => why.to_string(),
            seen @ Seen::Measured { .. } => format!("{seen:?}"),
        }
    };
    assert!(without(Resource::CpuCapacity, true).contains("older version"));
    assert_eq!(without(Resource::CpuCapacity, false), "CPU time was not measured");
    assert_eq!(without(Resource::GpuCapacity, true), "the machine has GPUs that were not read");
    assert!(without(Resource::MemoryCapacity, true).contains("memory: None"));
}
