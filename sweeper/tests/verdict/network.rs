//! Whose network bytes they are, and what nobody accounts for.

use crate::{
    node::{Node, bump, capability},
    not_measured, why,
};
use heartbeat::wire::{CapabilityStatus, Source};
use model::Verdict;
use sweeper::verdict::{Contradiction, Decision, Signal, Unknown, judge, words};

/// A node whose source attributes every byte.
fn exact() -> Node {
    let mut node = Node { capabilities: vec![capability("network", CapabilityStatus::Ok)], ..Node::new() };
    for row in [&mut node.workload, &mut node.kernel, &mut node.housekeeping, &mut node.own] {
        (row.network_received_bytes, row.network_sent_bytes) = (Some(0), Some(0));
    }
    node
}

/// An exporter that somebody scrapes twice in an interval, with the headers of full segments.
fn scraped(node: &mut Node) {
    bump(&mut node.housekeeping.network_sent_bytes, 200_000);
    bump(&mut node.counters.network_sent_bytes, 214_000);
}

#[test]
fn a_scraped_exporter_is_no_work_where_bytes_are_attributed_and_is_where_they_are_not() {
    let judged = |change: fn(&mut Node)| {
        let mut node = exact();
        change(&mut node);
        for _ in 0..70 {
            node.pass(scraped);
        }
        node.judge()
    };
    assert_eq!(judged(|_| {}).verdict, Verdict::Idle);
    type Change = fn(&mut Node);
    let not_exact: [(&str, Change); 4] = [
        ("no capability", |n| n.capabilities.clear()),
        ("shed under the budget", |n| n.capabilities = vec![capability("network", CapabilityStatus::Denied)]),
        ("broken", |n| n.capabilities = vec![capability("network", CapabilityStatus::Broken)]),
        ("another source", |n| n.source = Source::Tracepoints),
    ];
    for (what, change) in not_exact {
        let judgement = judged(change);
        assert!(matches!(judgement.decision, Decision::Above { signal: Signal::Network, .. }), "{what}: {judgement:?}");
    }
}

#[test]
fn bytes_of_workloads_are_work_above_their_threshold_alone() {
    // 4 KiB/s over 30 s are 122,880 bytes.
    for (bytes, expected) in [(122_000, Verdict::Idle), (123_500, Verdict::Active)] {
        for outbound in [true, false] {
            let mut node = exact();
            node.quiet(70).pass(|n| {
                if outbound {
                    bump(&mut n.workload.network_sent_bytes, bytes);
                    bump(&mut n.counters.network_sent_bytes, bytes);
                } else {
                    bump(&mut n.workload.network_received_bytes, bytes);
                    bump(&mut n.counters.network_received_bytes, bytes);
                }
            });
            assert_eq!(node.judge().verdict, expected, "{bytes} {outbound}");
        }
    }
}

#[test]
fn traffic_of_the_host_that_nobody_accounts_for_contradicts() {
    type Change = fn(&mut Node);
    let cases: [(&str, Change, bool); 7] = [
        ("somebody forwards packets", |n| bump(&mut n.counters.network_received_bytes, 130_000), true),
        ("less than the threshold", |n| bump(&mut n.counters.network_received_bytes, 120_000), false),
        (
            "a file server in the kernel",
            |n| {
                bump(&mut n.kernel.network_sent_bytes, 1 << 20);
                bump(&mut n.counters.network_sent_bytes, 1 << 20);
            },
            true,
        ),
        (
            "headers of 10 MB of housekeeping",
            |n| {
                bump(&mut n.housekeeping.network_received_bytes, 10_000_000);
                bump(&mut n.counters.network_received_bytes, 10_900_000);
            },
            false,
        ),
        (
            "10 MB of housekeeping and 2 MB of somebody's",
            |n| {
                bump(&mut n.housekeeping.network_received_bytes, 10_000_000);
                bump(&mut n.counters.network_received_bytes, 12_000_000);
            },
            true,
        ),
        (
            "the agent sends what its spool held, and counts the headers itself",
            |n| {
                bump(&mut n.own.network_sent_bytes, 1_000_000);
                bump(&mut n.counters.own_network_sent_bytes, 1_300_000);
                bump(&mut n.counters.network_sent_bytes, 1_300_000);
            },
            false,
        ),
        (
            "only the agent's row knows that it sends",
            |n| {
                bump(&mut n.own.network_sent_bytes, 1_000_000);
                bump(&mut n.counters.network_sent_bytes, 1_060_000);
            },
            false,
        ),
    ];
    for (what, change, contradicts) in cases {
        let mut node = exact();
        node.quiet(80).pass(change).quiet(5);
        let judgement = node.judge();
        if contradicts {
            let said = words::decision(&judgement, &node.case());
            assert!(said.contains("unattributed network"), "{what}: {said}");
            let by = vec![Contradiction::UnattributedNetwork];
            assert_eq!(why(judgement), Unknown::Contradictory { by, busiest: None }, "{what}");
        } else {
            assert_eq!(judgement.verdict, Verdict::Idle, "{what}: {judgement:?}");
        }
    }
}

/// A scrape that a row has in one interval and the interface in the next one.
#[test]
fn what_was_on_its_way_at_a_heartbeat_is_accounted_for_in_the_next_interval_alone() {
    const BYTES: u64 = 200_000;
    const FRAMES: u64 = 214_000;
    type Pass = fn(&mut Node);
    let hand_over: Pass = |n| bump(&mut n.housekeeping.network_sent_bytes, BYTES);
    let move_on: Pass = |n| bump(&mut n.counters.network_sent_bytes, FRAMES);
    let nothing: Pass = |_| {};
    let cases: [(&str, Vec<Pass>, bool); 7] = [
        ("in the next interval", vec![hand_over, move_on], false),
        ("each time", vec![hand_over, move_on, hand_over, move_on], false),
        (
            "half of it at once",
            vec![
                |n| {
                    bump(&mut n.housekeeping.network_sent_bytes, BYTES);
                    bump(&mut n.counters.network_sent_bytes, FRAMES / 2);
                },
                |n| bump(&mut n.counters.network_sent_bytes, FRAMES / 2),
            ],
            false,
        ),
        ("before anybody had handed it over", vec![move_on, hand_over], true),
        ("an interval later", vec![hand_over, nothing, move_on], true),
        ("once for what was handed over, and once more", vec![hand_over, move_on, move_on], true),
        ("with somebody else's", vec![hand_over, |n| bump(&mut n.counters.network_sent_bytes, FRAMES + 140_000)], true),
    ];
    for (what, passes, contradicts) in cases {
        let mut node = exact();
        node.quiet(80);
        for pass in passes {
            node.pass(pass);
        }
        let judgement = node.quiet(5).judge();
        if contradicts {
            let by = vec![Contradiction::UnattributedNetwork];
            assert_eq!(why(judgement), Unknown::Contradictory { by, busiest: None }, "{what}");
        } else {
            assert_eq!(judgement.verdict, Verdict::Idle, "{what}: {judgement:?}");
        }
    }
}

#[test]
fn the_net_below_must_have_been_measured_and_so_must_every_row() {
    type Hide = fn(&mut Node);
    let cases: [(Hide, &[Signal], &[Contradiction]); 4] = [
        (|n| n.counters.network_sent_bytes = None, &[], &[Contradiction::UnattributedNetwork]),
        (|n| n.housekeeping.network_sent_bytes = None, &[], &[Contradiction::UnattributedNetwork]),
        (|n| n.own.network_sent_bytes = None, &[], &[Contradiction::UnattributedNetwork]),
        (|n| n.workload.network_sent_bytes = None, &[Signal::Network], &[]),
    ];
    for (hide, signals, checks) in cases {
        let mut node = exact();
        hide(node.quiet(80));
        assert_eq!(why(node.quiet(1).judge()), not_measured(signals, checks));
    }
}

#[test]
fn while_the_agent_does_without_the_network_the_hosts_traffic_counts() {
    let mut node = exact();
    node.quiet(40).capabilities = vec![capability("network", CapabilityStatus::Denied)];
    for row in [&mut node.workload, &mut node.kernel, &mut node.housekeeping, &mut node.own] {
        (row.network_received_bytes, row.network_sent_bytes) = (None, None);
    }
    node.quiet(40);
    assert_eq!(node.judge().verdict, Verdict::Idle, "one window holds both");
    node.pass(|n| bump(&mut n.counters.network_received_bytes, 1 << 20));
    assert_eq!(node.judge().verdict, Verdict::Active);
}

#[test]
fn rdma_bytes_count_as_somebodys_whoever_is_asked() {
    for mut node in [exact(), Node::new()] {
        node.capabilities.push(capability("rdma", CapabilityStatus::Ok));
        (node.counters.rdma_received_bytes, node.counters.rdma_sent_bytes) = (Some(5), Some(5));
        node.quiet(70);
        assert_eq!(node.judge().verdict, Verdict::Idle, "an adapter at rest");
        node.pass(|n| bump(&mut n.counters.rdma_received_bytes, 1 << 20));
        assert!(matches!(node.judge().decision, Decision::Above { signal: Signal::Network, .. }), "{:?}", node.judge());
        node.quiet(61);
        assert_eq!(node.judge().verdict, Verdict::Idle);
        node.counters.rdma_sent_bytes = None;
        assert_eq!(why(node.quiet(1).judge()), not_measured(&[Signal::Network], &[]), "it is half read");
    }
}

#[test]
fn traffic_and_accelerators_that_nobody_counts_are_not_measured() {
    for (name, signal) in [("rdma", Signal::Network), ("interfaces", Signal::Network), ("accelerators", Signal::Gpu)] {
        for (status, expected) in [
            (CapabilityStatus::Ok, None),
            (CapabilityStatus::NotApplicable, None),
            (CapabilityStatus::Unsupported, Some(signal)),
            (CapabilityStatus::Denied, Some(signal)),
            (CapabilityStatus::Broken, Some(signal)),
            (CapabilityStatus::Unspecified, Some(signal)),
        ] {
            let mut node = exact();
            node.capabilities.push(capability(name, status));
            let judgement = node.quiet(70).judge();
            match expected {
                None => assert_eq!(judgement.verdict, Verdict::Idle, "{name} {status:?}"),
                Some(signal) => assert_eq!(why(judgement), not_measured(&[signal], &[]), "{name} {status:?}"),
            }
        }
    }
    // Two reasons make one signal blind once.
    let mut node = exact();
    node.capabilities.extend(["rdma", "interfaces"].map(|name| capability(name, CapabilityStatus::Denied)));
    assert_eq!(why(node.quiet(70).judge()), not_measured(&[Signal::Network], &[]));
    assert_eq!(exact().quiet(70).judge().verdict, Verdict::Idle, "an older agent is not asked for them");
}

#[test]
fn a_gpu_that_works_is_seen_beside_an_accelerator_that_nobody_reads() {
    let mut node = exact();
    node.gpu_present = true;
    node.gpus = vec![heartbeat::wire::Gpu { uuid: "A".into(), busy_ns: Some(0), ..Default::default() }];
    node.capabilities
        .extend([capability("gpu", CapabilityStatus::Ok), capability("accelerators", CapabilityStatus::Unsupported)]);
    node.quiet(40);
    assert_eq!(why(node.judge()), not_measured(&[Signal::Gpu], &[]));
    node.pass(|n| bump(&mut n.gpus[0].busy_ns, 1_000_000_000));
    assert!(matches!(node.judge().decision, Decision::Above { signal: Signal::Gpu, .. }));
}

#[test]
fn the_words_say_whose_traffic_it_was() {
    let lines = |mut node: Node| {
        let case = node.quiet(70).case();
        let Decision::AllQuiet { total, .. } = judge(&case).decision else { panic!("{:?}", node.judge()) };
        words::counters(&total, &case).join("\n")
    };
    assert!(
        lines(exact()).contains("network traffic of workloads, without loopback: 0 B (threshold 4.0 KiB per second)")
    );
    assert!(lines(Node::new()).contains("network traffic without loopback and the agent's own: 134 KiB"));
}
