//! What a verdict says, case by case, and that it can be replayed.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod checks;
mod events;
mod moments;
mod network;
mod node;
mod properties;
mod restart;
mod shutdown;
mod sleepers;
mod state;
mod stored;
mod waiting;
mod watched;

use heartbeat::wire;
use model::Verdict;
use node::{BOOTED_MS, Node, STARTED_S, bump, wall};
use sweeper::verdict::{Case, Contradiction, DecidingRow, Decision, Judgement, Policy, Signal, Unknown, judge, words};

/// Of whom something waits, and what its node is then.
const WHOSE: [(wire::Class, Verdict); 4] = [
    (wire::Class::Workload, Verdict::Waiting),
    (wire::Class::Unspecified, Verdict::Waiting),
    (wire::Class::Housekeeping, Verdict::Idle),
    (wire::Class::Self_, Verdict::Idle),
];

fn why(judgement: Judgement) -> Unknown {
    match judgement.decision {
        Decision::Unknown(why) => why,
        other => panic!("expected unknown, found {other:?}"),
    }
}

fn not_measured(signals: &[Signal], checks: &[Contradiction]) -> Unknown {
    Unknown::NotMeasured { signals: signals.to_vec(), checks: checks.to_vec() }
}

#[test]
fn half_an_hour_of_quiet_is_idle_since_its_first_comparable_interval() {
    let judgement = Node::new().quiet(61).judge();
    assert_eq!(judgement.verdict, Verdict::Idle);
    assert_eq!(judgement.since_unix_ms, Some(wall(STARTED_S + 30)));
}

#[test]
fn a_minute_less_is_not_enough() {
    assert_eq!(
        why(Node::new().quiet(59).judge()),
        Unknown::ObservedTooShort { quiet_since_unix_ms: Some(wall(STARTED_S + 30)) }
    );
}

#[test]
fn idle_begins_where_the_last_activity_ended() {
    let mut node = Node::new();
    node.quiet(10).pass(|n| bump(&mut n.workload.cpu_ns, 20_000_000_000)).quiet(60);
    assert_eq!(node.judge().since_unix_ms, Some(wall(STARTED_S + 11 * 30)));
}

#[test]
fn each_signal_alone_makes_a_node_active() {
    type Change = fn(&mut Node);
    // What no row shows, as the host's network where it is not attributed, has none that decided.
    let cases: [(Signal, Option<u64>, Change); 6] = [
        (Signal::WorkloadCpu, Some(103_000_000), |n| bump(&mut n.workload.cpu_ns, 100_000_000)),
        (Signal::WorkloadStarts, Some(1), |n| bump(&mut n.workload.execs, 1)),
        (Signal::WorkloadStarts, Some(1), |n| bump(&mut n.workload.forks, 1)),
        (Signal::WorkloadDisk, Some(1 << 20), |n| bump(&mut n.workload.disk_read_bytes, 1 << 20)),
        (Signal::Network, None, |n| bump(&mut n.counters.network_received_bytes, 1 << 20)),
        (Signal::OomKill, None, |n| bump(&mut n.counters.oom_kills, 1)),
    ];
    for (signal, amount, change) in cases {
        let mut node = Node::new();
        node.quiet(80).pass(change).quiet(59);
        let judgement = node.judge();
        match &judgement.decision {
            Decision::Above { signal: found, .. } => assert_eq!(*found, signal),
            other => panic!("{signal:?}: {other:?}"),
        }
        let expected = amount.map(|amount| DecidingRow {
            signal,
            key: "/user.slice".into(),
            container: String::new(),
            top_command: "python3".into(),
            amount,
        });
        assert_eq!(judgement.deciding_row(), expected.as_ref(), "{signal:?}");
        let says = words::decision(&judgement, &node.case());
        assert_eq!(says.contains("; the busiest row was /user.slice (python3) with "), amount.is_some(), "{says}");
    }
}

#[test]
fn a_container_that_decides_goes_by_its_name() {
    let mut node = Node::new();
    let container = wire::Container {
        name: "main".into(),
        pod: "align-x7q2w".into(),
        namespace: "omics".into(),
        ..wire::Container::default()
    };
    node.workload.name = Some(wire::WorkloadName { container: Some(container), ..wire::WorkloadName::default() });
    node.quiet(80).pass(|n| bump(&mut n.workload.cpu_ns, 100_000_000)).quiet(1);
    let says = words::decision(&node.judge(), &node.case());
    assert!(says.contains("; the busiest row was /user.slice (omics/align-x7q2w/main, python3) with "), "{says}");
    let facts = node.case().node;
    assert_eq!(facts.map(|facts| facts.workloads[0].container.clone()).as_deref(), Some("omics/align-x7q2w/main"));
}

#[test]
fn a_row_of_housekeeping_in_the_same_cgroup_is_not_what_the_row_of_work_is_compared_with() {
    let mut node = Node::new();
    node.workload.key.clone_from(&node.housekeeping.key);
    node.workload.cpu_ns = Some(9_000_000_000);
    node.quiet(80).pass(|n| bump(&mut n.workload.cpu_ns, 100_000_000)).quiet(1);
    let judgement = node.judge();
    assert_eq!(judgement.deciding_row().map(|row| row.amount), Some(103_000_000), "{judgement:?}");
}

#[test]
fn the_agents_own_traffic_is_not_work() {
    let mut node = Node::new();
    for _ in 0..70 {
        node.pass(|n| {
            bump(&mut n.counters.network_sent_bytes, 10 << 20);
            bump(&mut n.counters.own_network_sent_bytes, 10 << 20);
        });
    }
    assert_eq!(node.judge().verdict, Verdict::Idle);
}

#[test]
fn traffic_of_the_agent_that_its_own_meter_sees_first_is_no_counter_that_runs_backwards() {
    let mut node = Node::new();
    node.quiet(40).pass(|n| bump(&mut n.counters.own_network_sent_bytes, 50_000));
    node.pass(|n| bump(&mut n.counters.network_sent_bytes, 50_000)).quiet(40);
    assert_eq!(node.judge().verdict, Verdict::Idle);
}

#[test]
fn a_burst_is_not_averaged_away_by_lost_heartbeats() {
    let mut node = Node::new();
    node.quiet(100);
    // 3 s of CPU within 10 lost minutes: 5 ms a second on average, but all of it may have fallen into one interval.
    node.pass(|n| bump(&mut n.workload.cpu_ns, 100_000_000)).quiet(20);
    node.sent.drain(95..119);
    assert_eq!(node.judge().verdict, Verdict::Active);
}

#[test]
fn lost_heartbeats_of_a_quiet_node_cost_resolution_and_not_the_verdict() {
    let mut node = Node::new();
    node.quiet(80);
    node.sent.drain(30..50);
    // 24 intervals' worth of idle cost (72 ms) stays under the threshold of one interval only if the gap is short.
    node.sent.retain(|(_, h)| h.sequence != 60);
    assert_ne!(node.judge().verdict, Verdict::Idle, "20 lost intervals hide too much");
    let mut node = Node::new();
    node.quiet(80);
    node.sent.drain(40..45);
    assert_eq!(node.judge().verdict, Verdict::Idle);
}

#[test]
fn no_agent_and_silence_are_unknown() {
    let never = judge(&Case::new(0, Policy::default(), Vec::new()));
    assert_eq!(why(never), Unknown::NoAgent);
    let mut node = Node::new();
    node.quiet(100);
    let late = Case { now_unix_ms: wall(node.end_s) + 90_001, ..node.case() };
    assert_eq!(why(judge(&late)), Unknown::Silent { last_heartbeat_unix_ms: wall(node.end_s) });
}

#[test]
fn the_evidence_names_the_rules_and_older_evidence_is_read_without() {
    let mut node = Node::new();
    let case = node.quiet(100).case();
    assert_eq!(case.node.as_ref().map(|facts| facts.rules_version.as_str()), Some("2026-11-21"));
    let mut stored = serde_json::to_value(&case).unwrap();
    stored["node"].as_object_mut().unwrap().remove("rules_version").unwrap();
    let older: Case = serde_json::from_value(stored).unwrap();
    assert_eq!(judge(&older), judge(&case));
}

#[test]
fn a_signal_that_was_not_measured_is_never_quiet() {
    let mut node = Node::new();
    node.quiet(100);
    node.counters.network_sent_bytes = None;
    node.quiet(10);
    assert_eq!(why(node.judge()), not_measured(&[Signal::Network], &[]));
}

#[test]
fn a_counter_that_runs_backwards_is_not_measured() {
    let mut node = Node::new();
    node.quiet(100).pass(|n| n.workload.cpu_ns = Some(5)).quiet(10);
    assert_eq!(why(node.judge()), not_measured(&[Signal::WorkloadCpu], &[]));
}

#[test]
fn lost_kernel_events_are_unknown_and_lost_spool_records_are_not() {
    assert_eq!(Node::new().quiet(61).judge().verdict, Verdict::Idle);
    let mut node = Node::new();
    node.quiet(100).pass(|n| n.drops = 7).quiet(10);
    assert_eq!(why(node.judge()), Unknown::LostEvents { count: 7 });
    let mut node = Node::new();
    node.quiet(100).pass(|n| n.details = 7).quiet(10);
    assert_eq!(node.judge().verdict, Verdict::Idle, "a lost name hides no activity");
}

#[test]
fn a_gpu_that_nobody_reads_is_unknown_unless_the_node_works() {
    let mut node = Node::new();
    node.gpu_present = true;
    node.quiet(100);
    assert_eq!(why(node.judge()), Unknown::GpuNotMeasured);
    node.pass(|n| bump(&mut n.workload.cpu_ns, 30_000_000_000));
    assert_eq!(node.judge().verdict, Verdict::Active);
}

#[test]
fn a_machine_that_just_booted_is_unknown() {
    let mut node = Node::new();
    (node.end_s, node.counters_since_s) = (0, 0);
    node.quiet(19);
    assert_eq!(why(node.judge()), Unknown::BootGrace { booted_unix_ms: BOOTED_MS });
}

#[test]
fn without_attribution_cpu_time_and_forks_that_nobody_owns_count_as_work() {
    let idle = |change: fn(&mut Node)| {
        let mut node = Node::new();
        node.source = wire::Source::Proc;
        (node.workload.forks, node.workload.execs, node.workload.oom_kills) = (None, None, None);
        node.quiet(70).pass(change).quiet(10);
        node.judge().verdict
    };
    assert_eq!(idle(|_| {}), Verdict::Idle);
    assert_eq!(idle(|n| bump(&mut n.counters.cpu_busy_ns, 500_000_000)), Verdict::Active);
    assert_eq!(idle(|n| bump(&mut n.counters.tasks_created, 100)), Verdict::Active);
}

#[test]
fn quiet_workloads_on_a_machine_that_works_are_contradictory_and_never_idle() {
    const S: u64 = 1_000_000_000;
    type Change = fn(&mut Node);
    let cases: [(&str, Contradiction, Change); 3] = [
        ("10 s busy and nobody's", Contradiction::UnattributedCpu, |n| bump(&mut n.counters.cpu_busy_ns, 10 * S)),
        ("a file server in the kernel", Contradiction::KernelCpu, |n| {
            bump(&mut n.kernel.cpu_ns, 10 * S);
            bump(&mut n.counters.cpu_busy_ns, 10 * S);
        }),
        ("1 GiB that a kernel thread read", Contradiction::UnattributedDisk, |n| {
            bump(&mut n.kernel.disk_read_bytes, 1 << 30);
            bump(&mut n.counters.disk_read_bytes, 1 << 30);
        }),
    ];
    for (what, contradiction, change) in cases {
        let mut node = Node::new();
        node.quiet(80).pass(change).quiet(10);
        let judgement = node.judge();
        assert!(words::decision(&judgement, &node.case()).contains("its workloads were quiet, and yet"), "{what}");
        assert_eq!(why(judgement), Unknown::Contradictory { by: vec![contradiction], busiest: None }, "{what}");
    }
    // What counters of a quiet machine differ by is none.
    let mut node = Node::new();
    for _ in 0..70 {
        node.pass(|n| {
            bump(&mut n.counters.cpu_busy_ns, S);
            bump(&mut n.kernel.cpu_ns, S / 2);
            bump(&mut n.counters.disk_written_bytes, 60 << 20);
        });
    }
    assert_eq!(node.judge().verdict, Verdict::Idle);
}

#[test]
fn forks_that_the_kernels_records_attribute_count_by_their_owner() {
    let idle = |change: fn(&mut Node)| {
        let mut node = Node::new();
        node.source = wire::Source::Taskstats;
        (node.workload.execs, node.workload.oom_kills) = (None, None);
        node.quiet(70).pass(change).quiet(10);
        node.judge().verdict
    };
    assert_eq!(idle(|_| {}), Verdict::Idle);
    assert_eq!(idle(|n| bump(&mut n.workload.forks, 1)), Verdict::Active);
    // CPU time that no record accounts for is somebody's work all the same; a fork that belongs to housekeeping is not.
    assert_eq!(idle(|n| bump(&mut n.counters.cpu_busy_ns, 500_000_000)), Verdict::Active);
    assert_eq!(idle(|n| bump(&mut n.counters.tasks_created, 100)), Verdict::Idle);
}

#[test]
fn a_source_that_lost_its_process_starts_is_judged_like_proc() {
    for source in [wire::Source::Taskstats, wire::Source::Tracepoints, wire::Source::TracepointsTaskstats] {
        let mut node = Node::new();
        node.source = source;
        (node.workload.forks, node.workload.execs, node.workload.oom_kills) = (None, None, None);
        node.quiet(70).pass(|n| bump(&mut n.counters.tasks_created, 100)).quiet(10);
        assert_eq!(node.judge().verdict, Verdict::Active, "{source:?}");
    }
}

#[test]
fn a_row_of_an_unknown_class_is_somebodys_work() {
    let mut node = Node::new();
    node.workload.class = 99;
    node.quiet(80).pass(|n| bump(&mut n.workload.cpu_ns, 30_000_000_000));
    assert_eq!(node.judge().verdict, Verdict::Active);
}

#[test]
fn the_words_name_signal_window_and_counters() {
    let mut node = Node::new();
    node.quiet(70);
    let case = node.case();
    let judgement = judge(&case);
    let Decision::AllQuiet { total, .. } = &judgement.decision else { panic!("{judgement:?}") };
    insta::assert_snapshot!(format!(
        "{}\n{}",
        words::decision(&judgement, &case),
        words::counters(total, &case).join("\n")
    ));
}
