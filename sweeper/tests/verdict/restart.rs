//! What a restart of the agent costs: the time without one, and no more.

use crate::node::{Node, bump, capability, wall};
use crate::{not_measured, why};
use heartbeat::wire;
use model::Verdict;
use sweeper::verdict::{Contradiction, Decision, Signal, Unknown};

/// A node whose agent was away for so long, half an hour into its quiet time.
fn after(gap_s: u64) -> Node {
    let mut node = Node::new();
    node.quiet(61).restart(gap_s);
    node
}

/// When the first heartbeat of the second agent begins to be compared with its own.
fn second_begin(node: &Node) -> Unknown {
    Unknown::ObservedTooShort { quiet_since_unix_ms: Some(wall(node.counters_since_s + 30)) }
}

#[test]
fn a_machine_stays_idle_since_the_same_moment() {
    let before = Node::new().quiet(61).judge();
    for gap_s in [1, 11, 41, 60] {
        let judgement = after(gap_s).quiet(1).judge();
        assert_eq!((judgement.verdict, judgement.since_unix_ms), (Verdict::Idle, before.since_unix_ms), "{gap_s} s");
        let Decision::AllQuiet { total, .. } = judgement.decision else { unreachable!("it is idle") };
        assert_eq!(total.restart_gap_ms, Some(i64::try_from(gap_s).unwrap() * 1000));
    }
}

#[test]
fn the_time_without_an_agent_counts_towards_no_window() {
    let idle = |intervals| Node::new().quiet(31).restart(50).quiet(intervals).judge().verdict;
    assert_eq!((idle(29), idle(30)), (Verdict::Unknown, Verdict::Idle));
}

#[test]
fn what_the_host_did_meanwhile_is_held_to_the_cross_checks() {
    const S: u64 = 1_000_000_000;
    type Change = fn(&mut Node, u64);
    let checks: [(Contradiction, Change, u64); 2] = [
        (Contradiction::UnattributedCpu, |n, ns| bump(&mut n.counters.cpu_busy_ns, ns), 6 * S),
        (Contradiction::UnattributedDisk, |n, bytes| bump(&mut n.counters.disk_read_bytes, bytes), 300 << 20),
    ];
    for (check, change, most) in checks {
        let judge = |amount| after(50).pass(|n| change(n, amount)).quiet(1).judge();
        assert_eq!(judge(most).verdict, Verdict::Idle, "{check:?}");
        let contradicts = Unknown::Contradictory { by: vec![check], busiest: None };
        assert_eq!(why(judge(most + 1)), contradicts, "held to the threshold of one interval");
    }
    let traffic = |bytes| after(50).pass(|n| bump(&mut n.counters.network_sent_bytes, bytes)).judge().verdict;
    assert_eq!((traffic(100_000), traffic(200_000)), (Verdict::Idle, Verdict::Active));
}

#[test]
fn work_of_the_new_agents_rows_is_work_however_much_there_was_before() {
    let mut node = Node::new();
    node.pass(|n| bump(&mut n.workload.cpu_ns, 500_000_000_000)).quiet(70).restart(11);
    assert_eq!(node.clone().quiet(1).judge().verdict, Verdict::Idle);
    let judgement = node.pass(|n| bump(&mut n.workload.cpu_ns, 1_000_000_000)).judge();
    assert_eq!(judgement.verdict, Verdict::Active);
    assert_eq!(judgement.deciding_row().map(|row| row.amount), Some(1_003_000_000), "the row's own, since it began");
}

#[test]
fn too_long_without_an_agent_begins_a_new_window() {
    let mut node = after(61);
    assert_eq!(why(node.quiet(2).judge()), second_begin(&node));
    // Two intervals of an hour would be too much for the host's own counters to vouch for.
    let hourly = |gap_s| {
        let mut node = Node { interval_ms: 3_600_000, ..Node::new() };
        node.quiet(61).restart(gap_s).quiet(2);
        node
    };
    assert_eq!(hourly(120).judge().verdict, Verdict::Idle);
    let node = hourly(121);
    assert_eq!(why(node.judge()), second_begin(&node));
}

/// Rows also begin anew where the agent counts by workload again what its budget had left out. What it sent itself goes on.
#[test]
fn what_the_agent_sent_before_its_rows_began_hides_no_traffic() {
    let mut node = Node::new();
    node.pass(|n| bump(&mut n.counters.own_network_sent_bytes, 200 << 20)).quiet(61).restart(1);
    assert_eq!(node.clone().quiet(1).judge().verdict, Verdict::Idle);
    let judgement = node.pass(|n| bump(&mut n.counters.network_sent_bytes, 150 << 20)).judge();
    assert_eq!(judgement.verdict, Verdict::Active);
}

#[test]
fn rows_that_may_mean_something_else_begin_a_new_window() {
    let mut node = Node { rules_version: "2026-11-22".to_owned(), ..after(11) };
    assert_eq!(why(node.quiet(2).judge()), second_begin(&node), "other rules");
    let mut node = Node { rules_digest: "2".to_owned(), ..after(11) };
    assert_eq!(why(node.quiet(2).judge()), second_begin(&node), "other rules of the same version");
    let mut node = Node { rules_digest: String::new(), ..Node::new() };
    node.quiet(61).restart(11);
    assert_eq!(why(node.quiet(2).judge()), second_begin(&node), "nobody knows whether they are the same");
    let mut node = Node { source: wire::Source::Proc, ..Node::new() };
    node.quiet(61).restart(11);
    assert_eq!(why(node.quiet(2).judge()), second_begin(&node), "CPU time that nobody owns is work there");
    let mut node = after(11);
    node.source = wire::Source::Proc;
    assert_eq!(why(node.quiet(2).judge()), second_begin(&node), "another source");
    let mut node = after(0);
    assert_eq!(why(node.quiet(2).judge()), second_begin(&node), "no restart, but other rules");
    // Counters that claim to have begun while the first agent still counted.
    let mut node = after(11);
    node.counters_since_s -= 12;
    assert_eq!(
        why(node.quiet(2).judge()),
        second_begin(&Node { counters_since_s: node.counters_since_s + 12, ..node })
    );
}

#[test]
fn what_a_gpu_did_meanwhile_is_not_measured() {
    let mut node =
        Node { gpu_present: true, capabilities: vec![capability("gpu", wire::CapabilityStatus::Ok)], ..Node::new() };
    node.gpus = vec![wire::Gpu { uuid: "A".into(), busy_ns: Some(0), ..wire::Gpu::default() }];
    node.quiet(61).restart(11);
    assert_eq!(why(node.quiet(1).judge()), not_measured(&[Signal::Gpu], &[]));
}

#[test]
fn an_agent_that_is_restarted_again_and_again_sees_too_little() {
    let idle = |between| after(11).quiet(between).restart(11).quiet(1).judge().verdict;
    // A third of half an hour from one to the other: 19 intervals and the first gap are less, 20 are more.
    assert_eq!((idle(1), idle(19), idle(20)), (Verdict::Unknown, Verdict::Unknown, Verdict::Idle));
    assert_eq!(idle(0), Verdict::Idle, "an agent without a heartbeat is no agent: one gap");
}

#[test]
fn what_was_measured_must_have_been_measured_on_both_sides() {
    let mut node = after(11);
    node.workload.disk_read_bytes = None;
    assert_eq!(why(node.quiet(1).judge()), not_measured(&[Signal::WorkloadDisk], &[]));
    let mut node = Node::new();
    node.quiet(60).pass(|n| n.counters.cpu_busy_ns = None).restart(11);
    node.counters.cpu_busy_ns = Some(0);
    assert_eq!(why(node.quiet(1).judge()), not_measured(&[], &[Contradiction::UnattributedCpu]));
}

#[test]
fn events_that_the_new_agent_lost_are_lost() {
    assert_eq!(after(11).quiet(1).judge().verdict, Verdict::Idle);
    assert_eq!(why(after(11).pass(|n| n.drops = 7).judge()), Unknown::LostEvents { count: 7 });
}
