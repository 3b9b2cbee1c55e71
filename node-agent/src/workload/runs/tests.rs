//! What a run shows, and that nothing is lost or runs backwards.

use super::*;
use node_agent_ebpf::{Totals, counter};
use proptest::prelude::*;

const RUN: u32 = 7;

fn task(number: u64) -> u64 {
    engine_id(RUN) | number
}

fn owner(task_id: u64) -> Owner<'static> {
    Owner { task_id, class: Class::Workload, path: Some("/user.slice"), job: None }
}

fn in_job(path: &str) -> Owner<'_> {
    let job = Some(Name { kind: "slurm".to_owned(), id: "17".to_owned() });
    Owner { task_id: 0, class: Class::Workload, path: Some(path), job }
}

fn delta(cpu_ns: u64, live: u32) -> Delta {
    let mut totals = Totals { execs: 1, ..Totals::default() };
    totals.counters[counter::CPU_NS] = cpu_ns;
    Delta { totals, live_processes: live, live_threads: live, ..Delta::default() }
}

fn cpu(activity: &crate::workload::Activity) -> u64 {
    activity.totals.counters[counter::CPU_NS]
}

fn began(engine: &str) -> Fact {
    let (id, engine) = ("1-2".to_owned(), engine.to_owned());
    Fact::RunBegan { run: RUN, id, engine, pipeline: "p".to_owned(), started_ns: 5, step: None }
}

fn sample(runs: &mut Runs, deltas: &[(u64, &str, Delta)]) {
    runs.begin(2_000_000_000);
    for (task_id, tool, delta) in deltas {
        runs.add(&owner(*task_id), tool, delta);
    }
    runs.end();
}

fn listed(runs: &Runs) -> Vec<(String, Vec<String>)> {
    runs.iter().map(|(id, _, tasks)| (id.to_owned(), tasks.map(|(_, task)| task.name().to_owned()).collect())).collect()
}

#[test]
fn a_run_holds_its_engine_and_its_tasks_and_a_task_its_tools() {
    let mut runs = Runs::default();
    runs.tell(began("snakemake"));
    runs.tell(Fact::TaskBegan { id: task(1), started_ns: 6 });
    runs.tell(Fact::RunCounted { run: RUN, started: 1, ended: 0, failed: 0 });
    let deltas = [
        (task(0), "snakemake", delta(3, 1)),
        (task(1), "bash", delta(1, 1)),
        (task(1), "bwa", delta(9, 1)),
        (0, "x", delta(50, 1)),
    ];
    sample(&mut runs, &deltas);
    let (_, run, tasks) = runs.iter().next().expect("one run");
    assert_eq!((cpu(&run.activity), run.workload.as_str(), run.counts()), (13, "/user.slice", [1, 0, 0]));
    let tasks: Vec<_> = tasks.collect();
    let tools: Vec<_> = tasks[0].1.tools.iter().map(|(name, activity)| (name.as_str(), cpu(activity))).collect();
    assert_eq!((tasks.len(), cpu(&tasks[0].1.activity), tasks[0].1.name()), (1, 10, "bwa"));
    assert_eq!(tools, [("bash", 1), ("bwa", 9)]);
}

#[test]
fn a_task_is_called_as_its_command_line_says_else_by_what_it_runs() {
    let runs_program = |program: &str, is_wrapper| Fact::TaskRuns {
        id: task(1),
        program: program.to_owned(),
        is_wrapper,
        is_helper: false,
    };
    let named = Fact::TaskNamed { id: task(1), name: "align:sample=A".to_owned() };
    for (facts, expected) in [
        (vec![], "bwa"),
        (vec![runs_program("bash", true)], "bwa"),
        (vec![runs_program("jspawnhelper", true), runs_program("sort.py", false)], "sort.py"),
        (vec![runs_program("sort.py", false), runs_program("bash", true)], "sort.py"),
        (vec![runs_program("bash", true), named], "align:sample=A"),
    ] {
        let mut runs = Runs::default();
        runs.tell(began("snakemake"));
        runs.tell(Fact::TaskBegan { id: task(1), started_ns: 6 });
        facts.into_iter().for_each(|fact| runs.tell(fact));
        sample(&mut runs, &[(task(1), "bash", delta(9, 1)), (task(1), "bwa", delta(1, 1))]);
        assert_eq!(listed(&runs), [("1-2".to_owned(), vec![expected.to_owned()])]);
    }
}

#[test]
fn a_task_is_called_by_its_busiest_tool_wherever_a_sample_falls() {
    let parts = [("true", delta(3, 10)), ("gzip", delta(50, 1)), ("true", delta(2, 1))]
        .map(|(tool, delta)| (task(1), tool, delta));
    for cut in 1..=3 {
        let mut runs = Runs::default();
        runs.tell(began("snakemake"));
        runs.tell(Fact::TaskBegan { id: task(1), started_ns: 6 });
        let (before, after) = parts.split_at(cut);
        sample(&mut runs, before);
        let named = listed(&runs);
        assert_eq!(named[0].1, [if cut == 1 { "true" } else { "gzip" }], "as far as is known by then");
        sample(&mut runs, after);
        assert_eq!(listed(&runs)[0].1, ["gzip"], "{cut}");
    }
}

#[test]
fn a_script_is_a_pipeline_once_it_has_started_two_programs() {
    let mut runs = Runs::default();
    runs.tell(began("script"));
    for (started, expected) in [(0, 0), (1, 0), (2, 1)] {
        runs.tell(Fact::RunCounted { run: RUN, started, ended: 0, failed: 0 });
        sample(&mut runs, &[(task(0), "run.sh", delta(1, 1))]);
        assert_eq!(runs.iter().count(), expected, "{started}");
    }
}

#[test]
fn what_housekeeping_starts_is_no_pipeline() {
    let mut runs = Runs::default();
    runs.tell(began("script"));
    runs.tell(Fact::RunCounted { run: RUN, started: 5, ended: 5, failed: 0 });
    runs.begin(2_000_000_000);
    runs.add(&Owner { class: Class::Housekeeping, ..owner(task(0)) }, "apt.systemd.dai", &delta(1, 1));
    runs.end();
    assert_eq!(runs.iter().count(), 0);
}

#[test]
fn what_an_engine_starts_for_itself_is_no_task() {
    let mut runs = Runs::default();
    runs.tell(began("cwltool"));
    for (id, program, is_helper) in [(1, "node", true), (2, "wc", false)] {
        runs.tell(Fact::TaskBegan { id: task(id), started_ns: 6 });
        runs.tell(Fact::TaskRuns { id: task(id), program: program.to_owned(), is_wrapper: false, is_helper });
        runs.tell(Fact::TaskEnded { id: task(id), at_ns: 7, wait_status: 256 });
    }
    runs.tell(Fact::RunCounted { run: RUN, started: 2, ended: 2, failed: 2 });
    sample(&mut runs, &[(task(1), "node", delta(4, 0)), (task(2), "wc", delta(5, 0))]);
    let (_, run, _) = runs.iter().next().expect("one run");
    assert_eq!((run.counts(), cpu(&run.activity)), ([1, 1, 1], 9));
    assert_eq!(listed(&runs), [("1-2".to_owned(), vec!["wc".to_owned()])]);
}

#[test]
fn an_ended_task_stays_for_ten_samples_and_its_sums_for_good() {
    let mut runs = Runs::default();
    runs.tell(began("snakemake"));
    runs.tell(Fact::TaskBegan { id: task(1), started_ns: 6 });
    runs.tell(Fact::TaskEnded { id: task(1), at_ns: 9, wait_status: 0 });
    sample(&mut runs, &[(task(0), "snakemake", delta(1, 1)), (task(1), "bwa", delta(9, 0))]);
    for at in 2..=12 {
        sample(&mut runs, &[(task(0), "snakemake", delta(1, 1))]);
        let tasks = listed(&runs).remove(0).1.len();
        assert_eq!(tasks, usize::from(at <= 10), "{at}");
    }
    assert_eq!(runs.iter().next().map(|(_, run, _)| cpu(&run.activity)), Some(21));
    runs.tell(Fact::RunEnded { run: RUN, at_ns: 10, wait_status: 0 });
    for _ in 0..=SAMPLES_AFTER_END {
        assert!(runs.knows(RUN));
        sample(&mut runs, &[]);
    }
    assert!(!runs.knows(RUN));
}

#[test]
fn a_run_ends_with_the_last_of_its_drivers_and_is_known_while_a_task_outlives_them() {
    let mut runs = Runs::default();
    let drives = |run, step: &str| {
        let (id, step) = ("slurm:17".to_owned(), Some(step.to_owned()));
        Fact::RunBegan { run, id, engine: "slurm".to_owned(), pipeline: String::new(), started_ns: 5, step }
    };
    let ended = |run, at_ns, wait_status| Fact::RunEnded { run, at_ns, wait_status };
    let end = |runs: &Runs| runs.iter().next().map(|(_, run, _)| (run.ended_ns, run.wait_status));
    runs.tell(drives(RUN, "batch"));
    runs.tell(Fact::TaskBegan { id: task(1), started_ns: 6 });
    runs.tell(drives(RUN + 1, "0"));
    runs.tell(ended(RUN + 1, 10, 256));
    sample(&mut runs, &[(task(1), "bwa", delta(1, 1))]);
    assert_eq!(end(&runs), Some((None, Some(256))), "its batch step goes on");
    runs.tell(drives(RUN + 1, "1"));
    runs.tell(ended(RUN, 20, 0));
    assert_eq!(end(&runs), Some((None, Some(256))), "a later step goes on");
    runs.tell(ended(RUN + 1, 30, 0));
    assert_eq!(end(&runs), Some((Some(30), Some(256))));
    for _ in 0..=2 * SAMPLES_AFTER_END {
        sample(&mut runs, &[(task(1), "bwa", delta(1, 1))]);
    }
    assert_eq!(listed(&runs), [("slurm:17".to_owned(), vec!["batch".to_owned()])], "its task lives on");
    for _ in 0..=SAMPLES_AFTER_END {
        sample(&mut runs, &[]);
    }
    assert_eq!(end(&runs), None);
}

#[test]
fn a_job_of_many_steps_keeps_what_they_counted_and_not_each_of_them() {
    let mut runs = Runs::default();
    let step = |run: u32| {
        let (id, step) = ("slurm:17".to_owned(), Some(run.to_string()));
        Fact::RunBegan { run, id, engine: "slurm".to_owned(), pipeline: String::new(), started_ns: 5, step }
    };
    // The first one goes on, with a task.
    runs.tell(step(RUN));
    runs.tell(Fact::TaskBegan { id: task(1), started_ns: 6 });
    for run in RUN + 1..=RUN + 1_000 {
        runs.tell(step(run));
        runs.tell(Fact::RunCounted { run, started: 3, ended: 3, failed: 1 });
        runs.tell(Fact::RunEnded { run, at_ns: 10, wait_status: 0 });
        sample(&mut runs, &[(task(1), "bwa", delta(1, 1))]);
    }
    let (_, run, _) = runs.iter().next().expect("one run");
    assert_eq!((run.counts(), run.ended_ns), ([3_000, 3_000, 1_000], None));
    assert!(run.drivers.len() <= MAX_DRIVERS + 1 && runs.numbers.len() <= MAX_DRIVERS + 1, "{}", run.drivers.len());
    assert!(runs.knows(RUN) && runs.knows(RUN + 1_000) && !runs.knows(RUN + 1));
    runs.tell(Fact::RunEnded { run: RUN, at_ns: 20, wait_status: 0 });
    assert_eq!(runs.iter().next().and_then(|(_, run, _)| run.ended_ns), Some(20), "the last of them");
}

#[test]
fn a_job_of_a_batch_system_is_a_run_and_its_steps_are_tasks() {
    let mut runs = Runs::default();
    let (first, second) = ("/slurm/uid_0/job_17/step_0/task_0", "/slurm/uid_0/job_17/step_batch");
    for live in [1, 1, 0] {
        runs.begin(2_000_000_000);
        runs.add(&in_job(first), "bwa", &delta(5, live));
        runs.add(&in_job(second), "slurm_script", &delta(1, live));
        runs.end();
    }
    let (id, run, tasks) = runs.iter().next().expect("one run");
    assert_eq!((id, run.engine.as_str(), cpu(&run.activity), run.counts()), ("slurm:17", "slurm", 18, [2, 2, 0]));
    assert_eq!(
        tasks.map(|(_, task)| (task.name().to_owned(), cpu(&task.activity))).collect::<Vec<_>>(),
        [("0".to_owned(), 15), ("batch".to_owned(), 3)]
    );
}

#[test]
fn lists_have_an_end_and_what_lies_beyond_is_counted() {
    let mut runs = Runs::default();
    runs.tell(began("snakemake"));
    for id in 1..=2_000 {
        runs.tell(Fact::TaskBegan { id: task(id), started_ns: id });
    }
    let deltas: Vec<_> = (1..=2_000).map(|id| (task(id), "bwa", delta(1, 1))).collect();
    sample(&mut runs, &deltas);
    let tasks: usize = listed(&runs).iter().map(|(_, tasks)| tasks.len()).sum();
    assert_eq!(tasks, MAX_TASKS);
    assert_eq!(runs.iter().next().map(|(_, run, _)| cpu(&run.activity)), Some(2_000));
    assert_eq!(runs.drops()[1], ("detail_tasks_not_listed", 2_000 - MAX_TASKS as u64));
    for number in 0..200 {
        let id = format!("{number}");
        runs.tell(Fact::RunBegan {
            run: 1_000 + number,
            id,
            engine: "toil".to_owned(),
            pipeline: String::new(),
            started_ns: 9,
            step: None,
        });
    }
    sample(&mut runs, &[]);
    assert_eq!(runs.iter().count(), MAX_RUNS);
    assert!(runs.drops()[0].1 > 0);
}

#[test]
fn many_tools_of_one_task_share_the_last_row() {
    let mut runs = Runs::default();
    runs.tell(began("snakemake"));
    runs.tell(Fact::TaskBegan { id: task(1), started_ns: 6 });
    let names: Vec<String> = (0..40).map(|number| format!("tool{number}")).collect();
    let deltas: Vec<_> = names.iter().map(|name| (task(1), name.as_str(), delta(1, 0))).collect();
    sample(&mut runs, &deltas);
    assert_eq!(runs.drops()[2], ("detail_tools_not_listed", 24));
    let (_, _, mut tasks) = runs.iter().next().expect("one run");
    let tools = &tasks.next().expect("one task").1.tools;
    assert_eq!(tools.len(), heartbeat::envelope::MAX_TOOLS);
    assert_eq!(tools.get("overflow").map(cpu), Some(24));
}

proptest! {
    #[test]
    fn sums_never_run_backwards(samples in prop::collection::vec(prop::collection::vec((0_u64..40, 0_u64..9, any::<bool>()), 0..30), 1..30)) {
        let mut runs = Runs::default();
        runs.tell(began("snakemake"));
        let mut counted = 0;
        for deltas in samples {
            let before = runs.clone();
            for (number, _, ends) in &deltas {
                let id = task(number + 1);
                runs.tell(if *ends { Fact::TaskEnded { id, at_ns: 9, wait_status: 0 } } else { Fact::TaskBegan { id, started_ns: 6 } });
            }
            let deltas: Vec<_> = deltas.iter().map(|(number, ns, _)| (task(*number), "bwa", delta(*ns, 0))).collect();
            counted += deltas.iter().map(|(_, _, delta)| delta.totals.counters[counter::CPU_NS]).sum::<u64>();
            sample(&mut runs, &deltas);
            for (id, run, tasks) in before.iter() {
                let now = &runs.runs[id];
                prop_assert!(cpu(&now.activity) >= cpu(&run.activity));
                for (id, task) in tasks {
                    if let Some(now) = now.tasks.get(&id) {
                        prop_assert!(cpu(&now.activity) >= cpu(&task.activity));
                    }
                }
            }
            let sum: u64 = runs.runs.values().map(|run| cpu(&run.activity)).sum();
            prop_assert_eq!(sum, counted);
        }
    }
}
