mod certain;
mod orphan;
mod pod;
mod run;
mod spin;

use super::*;
use model::Verdict;
use proptest::prelude::*;

const MINUTE: i64 = 60_000;
const NOW: i64 = 1_800_000_000_000;
const BOOT: &str = "8e2b7a3c-52a3-4a2f-9b52-6d1f0a7d9c11";

fn boot() -> BootId {
    BOOT.parse().expect("a boot id")
}

fn row(key: &str, cpu_ns: u64) -> wire::WorkloadActivity {
    wire::WorkloadActivity {
        class: wire::Class::Workload.into(),
        key: key.into(),
        top_command: "bwa".into(),
        live_processes: 2,
        live_threads: 5,
        cpu_ns: Some(cpu_ns),
        forks: Some(3),
        execs: Some(2),
        exits: Some(1),
        voluntary_switches: Some(70),
        involuntary_switches: Some(7),
        minor_faults: Some(900),
        major_faults: Some(1),
        read_calls: Some(40),
        write_calls: Some(50),
        disk_read_bytes: Some(4_096),
        disk_written_bytes: Some(8_192),
        network_received_bytes: Some(0),
        network_sent_bytes: Some(0),
        states: Some(wire::TaskStates { sleeping: 5, ..wire::TaskStates::default() }),
        not_run_ns: Some(40 * 60 * 1_000_000_000),
        peers: Some(0),
        ..wire::WorkloadActivity::default()
    }
}

fn container(kind: &str, id: &str, cpu_ns: u64) -> wire::WorkloadActivity {
    let name = wire::WorkloadName { kind: kind.into(), id: id.into(), container: None };
    wire::WorkloadActivity { name: Some(name), ..row(&format!("/{kind}/{id}"), cpu_ns) }
}

fn task(id: u64, cpu_ns: u64) -> wire::Task {
    let states = None;
    let activity = wire::WorkloadActivity { states, not_run_ns: None, peers: None, ..row("align", cpu_ns) };
    wire::Task { id, name: "align".into(), started_boottime_ns: 10, activity: Some(activity), ..wire::Task::default() }
}

fn run(id: &str, engine: &str, tasks: Vec<wire::Task>) -> wire::Run {
    wire::Run {
        id: id.into(),
        engine: engine.into(),
        workload: "/user.slice/session-1.scope".into(),
        started_boottime_ns: 5,
        activity: Some(row(id, 77)),
        tasks,
        ..wire::Run::default()
    }
}

/// A heartbeat of a machine with a Batch job's container and a run of one task.
fn heartbeat(minutes_ago: i64) -> wire::Heartbeat {
    let end_unix_ms = NOW - minutes_ago * MINUTE;
    let minute = u64::try_from(100 - minutes_ago).expect("less than a hundred");
    wire::Heartbeat {
        sequence: minute * 2,
        interval: Some(wire::Interval {
            end_unix_ms,
            end_boottime_ns: minute * 60_000_000_000,
            counters_since_boottime_ns: 1_000,
            ..wire::Interval::default()
        }),
        host: Some(wire::Host { interval_ms: 30_000, ..wire::Host::default() }),
        counters: Some(wire::HostCounters::default()),
        coverage: Some(wire::Coverage { source: wire::Source::Ebpf.into(), ..wire::Coverage::default() }),
        workloads: vec![container("ecs", "t1/c1", 500), row("/user.slice/session-1.scope", 9)],
        runs: vec![run("snakemake:1", "snakemake", vec![task(1, 500)])],
        ..wire::Heartbeat::default()
    }
}

fn batch() -> Contract {
    Contract::BatchJob { containers: ["t1".to_owned(), "c1".to_owned()].into() }
}

fn task_of_run() -> Contract {
    Contract::open_tasks(&heartbeat(0)).next().expect("an open task")
}

fn case_of(contract: Contract, begin: wire::Heartbeat, end: wire::Heartbeat) -> WorkCase {
    let pair = |heartbeat| (boot(), heartbeat);
    let (begin, end) = (pair(begin), pair(end));
    WorkCase::new(NOW, WorkPolicy::default(), contract, [Some(&begin), Some(&end)], None)
}

/// Judges both kinds of work, with a change at the newest heartbeat.
fn judged(change: impl Fn(&mut wire::Heartbeat)) -> [WorkJudgement; 2] {
    [batch(), task_of_run()].map(|contract| {
        let mut end = heartbeat(0);
        change(&mut end);
        judge(&case_of(contract, heartbeat(31), end))
    })
}

fn verdicts(change: impl Fn(&mut wire::Heartbeat)) -> [Verdict; 2] {
    judged(change).map(|judgement| judgement.verdict)
}

/// Changes the work itself, in both its forms.
fn own(heartbeat: &mut wire::Heartbeat, change: impl Fn(&mut wire::WorkloadActivity)) {
    change(&mut heartbeat.workloads[0]);
    change(heartbeat.runs[0].tasks[0].activity.as_mut().expect("activity"));
}

const STUCK: [Verdict; 2] = [Verdict::Stuck; 2];
const ACTIVE: [Verdict; 2] = [Verdict::Active; 2];
const WAITING: [Verdict; 2] = [Verdict::Waiting; 2];
const UNKNOWN: [Verdict; 2] = [Verdict::Unknown; 2];

#[test]
fn work_of_which_no_task_ran_for_the_whole_window_is_stuck_and_says_how_it_is_held() {
    let [job, task] = judged(|_| {});
    assert_eq!(job.window_unix_ms, Some([NOW - 31 * MINUTE, NOW]));
    let still = |held, not_run_ms| WorkDecision::Still { held, processes: 2, threads: 5, not_run_ms };
    assert_eq!(job.decision, still(Held::Asleep, Some(40 * MINUTE)));
    assert_eq!((task.verdict, task.decision), (Verdict::Stuck, still(Held::NotTold, None)));
    for (states, held) in [
        (wire::TaskStates { uninterruptible: 1, sleeping: 4, ..wire::TaskStates::default() }, Held::Uninterruptible),
        (wire::TaskStates { stopped: 1, sleeping: 4, ..wire::TaskStates::default() }, Held::Stopped),
        (wire::TaskStates { frozen: 5, ..wire::TaskStates::default() }, Held::Frozen),
    ] {
        let [job, _] = judged(|end| end.workloads[0].states = Some(states));
        assert_eq!(job.decision, still(held, Some(40 * MINUTE)));
    }
}

#[test]
fn the_least_progress_of_any_kind_is_progress() {
    let kinds: [fn(&mut wire::WorkloadActivity); 13] = [
        |row| row.cpu_ns = Some(501),
        |row| row.forks = Some(4),
        |row| row.execs = Some(3),
        |row| row.exits = Some(2),
        |row| row.voluntary_switches = Some(71),
        |row| row.involuntary_switches = Some(8),
        |row| row.minor_faults = Some(901),
        |row| row.major_faults = Some(2),
        |row| row.read_calls = Some(41),
        |row| row.write_calls = Some(51),
        |row| row.disk_read_bytes = Some(4_097),
        |row| row.disk_written_bytes = Some(8_193),
        |row| row.network_received_bytes = Some(1),
    ];
    for (number, kind) in kinds.into_iter().enumerate() {
        assert_eq!(verdicts(|end| own(end, kind)), ACTIVE, "{number}");
    }
    assert_eq!(verdicts(|end| own(end, |row| row.cpu_ns = Some(499))), ACTIVE, "other tasks are counted than before");
}

#[test]
fn what_it_may_wait_for_is_no_standstill() {
    for (connections, expected) in [(0, STUCK), (1, WAITING)] {
        assert_eq!(verdicts(|end| end.workloads.iter_mut().for_each(|row| row.peers = Some(connections))), expected);
    }
    // A GPU, an adapter, a person.
    let with = |change: fn(&mut wire::Heartbeat, u64)| {
        [batch(), task_of_run()].map(|contract| {
            let (mut begin, mut end) = (heartbeat(31), heartbeat(0));
            change(&mut begin, 5);
            change(&mut end, 6);
            judge(&case_of(contract, begin, end)).verdict
        })
    };
    let gpu = |heartbeat: &mut wire::Heartbeat, busy_ns| {
        heartbeat.host.as_mut().expect("a host").gpu_present = true;
        let ok = wire::CapabilityStatus::Ok.into();
        let capability = wire::Capability { name: "gpu".into(), status: ok, ..wire::Capability::default() };
        heartbeat.coverage.as_mut().expect("coverage").capabilities.push(capability);
        heartbeat.gpus = vec![wire::Gpu { busy_ns: Some(busy_ns), ..wire::Gpu::default() }];
    };
    assert_eq!(with(gpu), WAITING);
    assert_eq!(
        with(|heartbeat, moved| {
            let counters = heartbeat.counters.as_mut().expect("counters");
            (counters.rdma_received_bytes, counters.rdma_sent_bytes) = (Some(moved), Some(0));
        }),
        WAITING
    );
    let typed = |ago| {
        verdicts(|end| {
            let last_input_unix_ms = Some(NOW - ago * MINUTE);
            end.interactive_sessions = Some(wire::InteractiveSessions { terminal_sessions: 1, last_input_unix_ms });
        })
    };
    assert_eq!((typed(119), typed(120)), (WAITING, STUCK));
}

#[test]
fn what_runs_beside_it_and_may_do_so_for_it_is_waited_for() {
    let both = |change: &dyn Fn(&mut wire::Heartbeat, u64), contract| {
        let (mut begin, mut end) = (heartbeat(31), heartbeat(0));
        change(&mut begin, 5);
        change(&mut end, 6);
        judge(&case_of(contract, begin, end)).verdict
    };
    let beside = |kind: &'static str, id: &'static str| {
        move |heartbeat: &mut wire::Heartbeat, cpu| heartbeat.workloads.push(container(kind, id, cpu))
    };
    // An engine's daemon runs containers for whoever asks; those of another task ECS started.
    assert_eq!(both(&beside("docker", "c9"), batch()), Verdict::Waiting);
    assert_eq!(both(&beside("ecs", "t2/c2"), batch()), Verdict::Stuck);
    assert_eq!(both(&beside("docker", "c9"), task_of_run()), Verdict::Waiting);
    assert_eq!(both(&beside("ecs", "t2/c2"), task_of_run()), Verdict::Waiting);
    assert_eq!(both(&beside("systemd", "cron.service"), task_of_run()), Verdict::Stuck, "a neighbour");
    assert_eq!(both(&beside("systemd", "run-r1.service"), task_of_run()), Verdict::Waiting, "systemd-run --wait");
    let overflow = |heartbeat: &mut wire::Heartbeat, cpu| heartbeat.workloads.push(row("overflow", cpu));
    assert_eq!([both(&overflow, batch()), both(&overflow, task_of_run())], WAITING, "it may be a part of it");
    // A container that does nothing may wait for somebody elsewhere, and a task for it.
    let connected = |heartbeat: &mut wire::Heartbeat, _| {
        heartbeat.workloads.push(wire::WorkloadActivity { peers: Some(1), ..container("podman", "c9", 5) });
    };
    assert_eq!([both(&connected, batch()), both(&connected, task_of_run())], [Verdict::Stuck, Verdict::Waiting]);
    // It has ended as somebody's, and holds the connection as the system's own.
    let named_late = |heartbeat: &mut wire::Heartbeat, _| {
        let own = wire::WorkloadActivity { peers: Some(1), ..container("docker", "ecs-agent", 5) };
        let ended = wire::WorkloadActivity { live_processes: 0, live_threads: 0, ..own.clone() };
        let named = wire::WorkloadActivity { class: wire::Class::Housekeeping.into(), ..own };
        heartbeat.workloads.extend([ended, named]);
    };
    assert_eq!(both(&named_late, task_of_run()), Verdict::Stuck);
    // The other tasks of its run, and runs that began within it.
    let sibling = |heartbeat: &mut wire::Heartbeat, cpu| heartbeat.runs[0].tasks.push(task(2, cpu));
    assert_eq!(both(&sibling, task_of_run()), Verdict::Waiting);
    let another = |workload: &'static str, began: u64| {
        move |heartbeat: &mut wire::Heartbeat, cpu| {
            let activity = Some(row("x", cpu));
            let workload = workload.into();
            let inner =
                wire::Run { activity, workload, started_boottime_ns: began, ..run("toil:2", "toil", Vec::new()) };
            heartbeat.runs.push(inner);
        }
    };
    assert_eq!(both(&another("/user.slice/session-1.scope", 10), task_of_run()), Verdict::Waiting);
    assert_eq!(both(&another("/user.slice/session-1.scope", 9), task_of_run()), Verdict::Stuck, "it began before");
    assert_eq!(both(&another("/user.slice/session-2.scope", 10), task_of_run()), Verdict::Stuck, "it is elsewhere");
    assert_eq!(both(&another("/user.slice/session-1.scope/job", 10), task_of_run()), Verdict::Waiting);
    assert_eq!(both(&another("/user.slice/session-1.scopes", 10), task_of_run()), Verdict::Stuck);
}

#[test]
fn what_was_not_measured_for_the_whole_window_is_not_known() {
    type Change = fn(&mut wire::Heartbeat);
    fn denied(end: &mut wire::Heartbeat, name: &str) {
        let status = wire::CapabilityStatus::Denied.into();
        let capability = wire::Capability { name: name.into(), status, ..wire::Capability::default() };
        end.coverage.as_mut().expect("coverage").capabilities.push(capability);
    }
    let changes: [(&str, Change); 15] = [
        ("another boot's counters", |end| end.interval.as_mut().expect("an interval").counters_since_boottime_ns += 1),
        ("another source", |end| end.coverage.as_mut().expect("coverage").source = wire::Source::Proc.into()),
        ("no CPU time", |end| own(end, |row| row.cpu_ns = None)),
        ("no switches", |end| own(end, |row| row.voluntary_switches = None)),
        ("no exits", |end| own(end, |row| row.exits = None)),
        ("no forks", |end| own(end, |row| row.forks = None)),
        ("no connections", |end| end.workloads.iter_mut().for_each(|row| row.peers = None)),
        ("lost events", |end| {
            let drop = wire::Drop { name: "missed_exits".into(), count: 1 };
            end.coverage.as_mut().expect("coverage").drops.push(drop);
        }),
        ("a GPU that is not read", |end| end.host.as_mut().expect("a host").gpu_present = true),
        ("too few heartbeats", |end| end.sequence = 69 * 2 + 45),
        ("an adapter that is not read", |end| denied(end, "rdma")),
        ("an accelerator that is not read", |end| denied(end, "accelerators")),
        ("an interface that is not read", |end| denied(end, "interfaces")),
        ("sessions that are not read", |end| denied(end, "interactive_sessions")),
        ("not shown", |end| {
            end.workloads.remove(0);
            end.runs[0].tasks[0].ended_boottime_ns = Some(7);
        }),
    ];
    for (what, change) in changes {
        assert_eq!(verdicts(change), UNKNOWN, "{what}");
    }
    assert_eq!(verdicts(|end| end.sequence = 69 * 2 + 47), STUCK, "three of four heartbeats");
    let [job, _] = judged(|end| end.workloads[0].states = Some(wire::TaskStates { running: 1, ..Default::default() }));
    assert_eq!(job.decision, WorkDecision::Unknown(WorkUnknown::HeldBack { threads: 1 }));
}

#[test]
fn the_window_must_be_long_enough_by_the_boot_clock_and_the_agent_be_heard() {
    let of = |begin: i64, now: i64, change: fn(&mut WorkCase)| {
        let mut case = case_of(batch(), heartbeat(begin), heartbeat(0));
        case.now_unix_ms = NOW + now;
        change(&mut case);
        judge(&case).decision
    };
    let unknown = WorkDecision::Unknown;
    assert!(matches!(of(30, 0, |_| {}), WorkDecision::Still { .. }));
    assert_eq!(of(29, 0, |_| {}), unknown(WorkUnknown::ObservedTooShort));
    assert!(matches!(of(30, 90_000, |_| {}), WorkDecision::Still { .. }));
    assert_eq!(of(30, 90_001, |_| {}), unknown(WorkUnknown::Silent { last_heartbeat_unix_ms: NOW }));
    assert_eq!(of(30, 0, |case| case.end = None), unknown(WorkUnknown::NoAgent));
    assert_eq!(of(30, 0, |case| case.begin = None), unknown(WorkUnknown::ObservedTooShort));
    let other = "00000000-0000-4000-8000-000000000000".parse().expect("a boot id");
    let case = case_of(batch(), heartbeat(30), heartbeat(0));
    let rebooted = WorkCase { begin: case.begin.clone().map(|begin| WorkSample { boot_id: other, ..begin }), ..case };
    assert_eq!(judge(&rebooted).decision, unknown(WorkUnknown::ObservedTooShort));
    // It began within the window.
    let began = of(30, 0, |case| case.begin.as_mut().expect("a begin").work = None);
    assert_eq!(began, WorkDecision::Moved { by: Vec::new() });
}

#[test]
fn a_script_and_what_has_ended_promise_nothing() {
    let of = |change: fn(&mut wire::Run)| {
        let mut heartbeat = heartbeat(0);
        change(&mut heartbeat.runs[0]);
        Contract::open_tasks(&heartbeat).count()
    };
    assert_eq!(of(|_| {}), 1);
    assert_eq!(of(|run| run.engine = "script".into()), 0);
    assert_eq!(of(|run| run.ended_boottime_ns = Some(9)), 0);
    assert_eq!(of(|run| run.tasks[0].ended_boottime_ns = Some(9)), 0);
    assert_eq!(of(|run| run.activity.as_mut().expect("activity").class = wire::Class::Housekeeping.into()), 0);
}

#[test]
fn a_judgement_is_told_in_words_that_a_person_can_check() {
    let case = case_of(batch(), heartbeat(31), heartbeat(0));
    assert_eq!(
        decision(&judge(&case), &case),
        "no task of it has run for 31 min: 2 processes (5 threads), asleep; nothing was read, written, sent, started or ended, \
         and nothing is seen that it waits for; those that live have not run for 40 min"
    );
}

fn any_counter() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![Just(None), (0_u64..3).prop_map(Some)]
}

prop_compose! {
    fn any_row()(
        counters in prop::collection::vec(any_counter(), 8), peers in prop::option::of(0_u32..2), running in 0_u32..2,
        has_states: bool, live_threads in 0_u32..3,
    ) -> wire::WorkloadActivity {
        wire::WorkloadActivity {
            cpu_ns: counters[0],
            forks: counters[1],
            exits: counters[2],
            voluntary_switches: counters[3],
            read_calls: counters[4],
            disk_read_bytes: counters[5],
            minor_faults: counters[6],
            network_sent_bytes: counters[7],
            peers,
            states: has_states.then(|| wire::TaskStates { running, sleeping: 1, ..wire::TaskStates::default() }),
            live_threads,
            ..container("ecs", "t1/c1", 0)
        }
    }
}

proptest! {
    /// Nothing is stuck unless every counter that is needed was there at both ends and stood still; whatever is taken away, or moves besides, never makes it so.
    #[test]
    fn stuck_is_proven_or_not_said(before in any_row(), after in any_row(), made in 0_u64..70, source in 1_i32..5) {
        let (mut begin, mut end) = (heartbeat(31), heartbeat(0));
        (begin.workloads[0], end.workloads[0]) = (before.clone(), after.clone());
        end.sequence = begin.sequence + made;
        end.coverage.as_mut().expect("coverage").source = source;
        begin.coverage.as_mut().expect("coverage").source = source;
        let case = case_of(batch(), begin, end);
        let kept: WorkCase = serde_json::from_str(&serde_json::to_string(&case).expect("JSON")).expect("JSON");
        prop_assert_eq!(judge(&kept), judge(&case));
        if judge(&case).verdict == Verdict::Stuck {
            let needed = |row: &wire::WorkloadActivity| {
                [row.cpu_ns, row.forks, row.execs, row.exits, row.voluntary_switches, row.involuntary_switches]
            };
            prop_assert!(needed(&after).iter().all(Option::is_some) && needed(&before) == needed(&after));
            let moved = |of: fn(&wire::WorkloadActivity) -> Option<u64>| {
                of(&before).zip(of(&after)).is_some_and(|(before, after)| before != after)
            };
            prop_assert!(!moved(|row| row.read_calls) && !moved(|row| row.disk_read_bytes) && !moved(|row| row.network_sent_bytes));
            prop_assert!(after.peers == Some(0) && made >= 47 && source == i32::from(wire::Source::Ebpf));
            prop_assert!(after.states.is_none_or(|states| states.running == 0) && before.live_threads > 0);
        }
    }
}
