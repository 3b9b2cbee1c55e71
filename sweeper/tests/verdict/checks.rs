//! The nets below the signals: what must have been measured besides them, and what contradicts quiet workloads.

use crate::{
    node::{Node, bump, wall},
    not_measured, why,
};
use heartbeat::wire::Source;
use model::Verdict;
use sweeper::verdict::{BusyRow, Case, Contradiction, Policy, Signal, Unknown, judge, words};

const SECOND_NS: u64 = 1_000_000_000;
const ALL: [Source; 5] =
    [Source::Ebpf, Source::Proc, Source::Taskstats, Source::Tracepoints, Source::TracepointsTaskstats];

/// A node as this source delivers it.
fn measured_by(source: Source) -> Node {
    let mut node = Node { source, ..Node::new() };
    if source == Source::Proc {
        for row in [&mut node.workload, &mut node.kernel, &mut node.housekeeping, &mut node.own] {
            (row.forks, row.execs, row.exits) = (None, None, None);
        }
    }
    if source == Source::Taskstats {
        for row in [&mut node.workload, &mut node.kernel, &mut node.housekeeping, &mut node.own] {
            row.execs = None;
        }
    }
    node
}

#[test]
fn every_source_that_measured_all_can_find_a_node_idle() {
    for source in ALL {
        assert_eq!(measured_by(source).quiet(62).judge().verdict, Verdict::Idle, "{source:?}");
    }
}

#[test]
fn a_cross_check_that_was_not_measured_makes_the_verdict_unknown_and_is_named() {
    type Hide = fn(&mut Node);
    let hidden: [(Hide, &[Signal], &[Contradiction], &str); 5] = [
        (|n| n.counters.oom_kills = None, &[Signal::OomKill], &[], "a kill by the out-of-memory killer"),
        (|n| n.kernel.cpu_ns = None, &[], &[Contradiction::KernelCpu], "CPU time of kernel threads"),
        (|n| n.counters.disk_read_bytes = None, &[], &[Contradiction::UnattributedDisk], "the host's disks"),
        (|n| n.housekeeping.disk_read_bytes = None, &[], &[Contradiction::UnattributedDisk], "the host's disks"),
        (|n| n.housekeeping.cpu_ns = None, &[], &[Contradiction::Housekeeping], "CPU time of housekeeping"),
    ];
    for source in ALL {
        for (hide, signals, checks, named) in &hidden {
            let mut node = measured_by(source);
            node.quiet(70);
            let before = Node { sent: Vec::new(), ..node.clone() };
            hide(&mut node);
            node.quiet(1);
            let judgement = node.judge();
            let said = words::decision(&judgement, &node.case());
            assert!(said.starts_with("not measured: ") && said.contains(named), "{source:?}: {said}");
            let Unknown::NotMeasured { signals: found, checks: found_checks } = why(judgement) else {
                panic!("{said}")
            };
            assert!(signals.iter().all(|signal| found.contains(signal)), "{source:?}: {found:?}");
            assert!(checks.iter().all(|check| found_checks.contains(check)), "{source:?}: {found_checks:?}");
            // Read again, it is no hindrance once a new window is full.
            node = Node { sent: std::mem::take(&mut node.sent), end_s: node.end_s, sequence: node.sequence, ..before };
            node.quiet(60);
            assert_eq!(node.judge().verdict, Verdict::Unknown, "{source:?}: {named}");
            node.quiet(2);
            assert_eq!(node.judge().verdict, Verdict::Idle, "{source:?}: {named}");
        }
    }
}

#[test]
fn cpu_time_of_the_host_is_a_cross_check_with_ebpf_and_a_part_of_the_signal_without() {
    for source in ALL {
        let mut node = measured_by(source);
        node.quiet(70).counters.cpu_busy_ns = None;
        let expected = match source {
            Source::Ebpf => not_measured(&[], &[Contradiction::UnattributedCpu]),
            _ => not_measured(&[Signal::WorkloadCpu], &[]),
        };
        assert_eq!(why(node.quiet(1).judge()), expected, "{source:?}");
    }
}

#[test]
fn a_heartbeat_without_a_kernel_thread_has_not_seen_the_host() {
    let mut node = Node::new();
    node.quiet(70);
    for (_, heartbeat) in &mut node.sent {
        heartbeat.workloads.retain(|row| row.key != "/");
    }
    assert_eq!(why(node.judge()), not_measured(&[], &[Contradiction::KernelCpu]));
}

fn busy(key: &str, top_command: &str, cpu_ns: u64) -> BusyRow {
    BusyRow { key: key.into(), top_command: top_command.into(), cpu_ns }
}

/// Housekeeping works for so long in one interval.
fn housekeeping(node: &mut Node, cpu_ns: u64) -> &mut Node {
    node.pass(|n| {
        bump(&mut n.housekeeping.cpu_ns, cpu_ns);
        bump(&mut n.counters.cpu_busy_ns, cpu_ns);
    })
}

#[test]
fn a_burst_of_housekeeping_within_its_budget_is_none_of_anybodys_work_and_one_above_contradicts() {
    // 5 % of one core are 90 s in half an hour; apt works at full speed, three intervals long.
    for (seconds, expected) in [(30, Verdict::Idle), (31, Verdict::Unknown)] {
        let mut node = Node::new();
        node.quiet(40);
        for _ in 0..3 {
            housekeeping(&mut node, seconds * SECOND_NS);
        }
        node.quiet(25);
        let judgement = node.judge();
        assert_eq!(judgement.verdict, expected, "{seconds}: {judgement:?}");
        if expected == Verdict::Unknown {
            let said = words::decision(&judgement, &node.case());
            assert!(said.contains("housekeeping used more CPU time than its budget"), "{said}");
            assert!(said.contains("/system.slice/cron.service (cron) with 93.0 s"), "{said}");
            let busiest = Some(busy("/system.slice/cron.service", "cron", 93 * SECOND_NS));
            let by = vec![Contradiction::Housekeeping];
            assert_eq!(why(judgement), Unknown::Contradictory { by, busiest });
        }
    }
}

#[test]
fn housekeeping_that_never_rests_is_held_against_the_last_half_hour_and_not_against_all_that_is_known() {
    // A whole core for two minutes is 3 % of an hour, and 7 % of the half hour that counts.
    let mut node = Node::new();
    node.quiet(116);
    for _ in 0..4 {
        housekeeping(&mut node, 30 * SECOND_NS);
    }
    let Unknown::Contradictory { by, .. } = why(node.judge()) else { panic!("{:?}", node.judge()) };
    assert_eq!(by, [Contradiction::Housekeeping]);
    // Once it rests, idleness begins where half an hour is within the budget again.
    node.quiet(56);
    assert_eq!(node.judge().verdict, Verdict::Unknown);
    node.quiet(5);
    let judgement = node.judge();
    assert_eq!(judgement.verdict, Verdict::Idle);
    assert_eq!(
        judgement.since_unix_ms,
        Some(wall(node.end_s - 64 * 30)),
        "61 intervals of rest and three of four bursts"
    );
}

#[test]
fn a_steady_use_is_judged_on_both_sides_of_the_budget() {
    for (ms_per_s, expected) in [(49, Verdict::Idle), (51, Verdict::Unknown)] {
        let mut node = Node::new();
        for _ in 0..80 {
            housekeeping(&mut node, ms_per_s * 30_000_000);
        }
        assert_eq!(node.judge().verdict, expected, "{ms_per_s} ms a second");
        let policy = Policy { housekeeping_cpu_budget_ns_per_s: 100_000_000, ..Policy::default() };
        assert_eq!(judge(&Case { policy, ..node.case() }).verdict, Verdict::Idle, "the budget is a setting");
    }
}

#[test]
fn the_busiest_of_several_rows_is_named() {
    let mut node = Node::new();
    let vector = |n: &Node| heartbeat::wire::WorkloadActivity {
        key: "/system.slice/vector.service".into(),
        top_command: "vector".into(),
        ..n.housekeeping.clone()
    };
    for _ in 0..70 {
        node.pass(|n| {
            bump(&mut n.housekeeping.cpu_ns, 400_000_000);
            bump(&mut n.own.cpu_ns, 3_000_000_000);
            bump(&mut n.counters.cpu_busy_ns, 4_400_000_000);
        });
        let row = heartbeat::wire::WorkloadActivity { cpu_ns: Some(node.sequence * 1_500_000_000), ..vector(&node) };
        if let Some((_, heartbeat)) = node.sent.last_mut() {
            heartbeat.workloads.push(row);
        }
    }
    let Unknown::Contradictory { busiest, .. } = why(node.judge()) else { panic!("{:?}", node.judge()) };
    let busiest = busiest.unwrap();
    assert_eq!((busiest.key.as_str(), busiest.top_command.as_str()), ("/system.slice/vector.service", "vector"));
}
