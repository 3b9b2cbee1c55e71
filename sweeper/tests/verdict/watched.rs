//! GPUs, interactive sessions and inbound peers: what they make active, and what not seeing them makes unknown.

use crate::{
    node::{Node, STARTED_S, bump, capability, wall},
    not_measured, why,
};
use heartbeat::wire;
use model::Verdict;
use sweeper::verdict::{Case, Decision, GpuUse, Signal, Unknown, Wait, gpu_use, judge, words};

const MINUTE_MS: i64 = 60_000;

fn gpu(uuid: &str) -> wire::Gpu {
    wire::Gpu { uuid: uuid.into(), busy_ns: Some(0), ..wire::Gpu::default() }
}

/// Two GPUs that are read.
fn gpu_node() -> Node {
    Node {
        gpu_present: true,
        gpus: vec![gpu("A"), gpu("B")],
        capabilities: vec![capability("gpu", wire::CapabilityStatus::Ok)],
        ..Node::new()
    }
}

fn typed(node: &mut Node, sessions: u32, last_input_unix_ms: Option<i64>) {
    node.interactive_sessions = Some(wire::InteractiveSessions { terminal_sessions: sessions, last_input_unix_ms });
}

fn listener(port: u32, class: wire::Class, last_new_peer_unix_ms: Option<i64>) -> wire::Listener {
    wire::Listener { port, class: class.into(), outside_peers: 1, last_new_peer_unix_ms, ..wire::Listener::default() }
}

fn inbound_peers(listeners: Vec<wire::Listener>) -> Option<wire::InboundPeers> {
    Some(wire::InboundPeers { listeners, listeners_not_listed: 0 })
}

#[test]
fn gpus_that_are_all_read_and_quiet_are_idle_after_their_own_time() {
    let mut node = gpu_node();
    assert_eq!(
        why(node.quiet(30).judge()),
        Unknown::ObservedTooShort { quiet_since_unix_ms: Some(wall(STARTED_S + 30)) }
    );
    assert_eq!(node.quiet(1).judge().verdict, Verdict::Idle, "15 minutes");
    assert_eq!(Node::new().quiet(31).judge().verdict, Verdict::Unknown, "30 minutes without a GPU");
}

#[test]
fn a_gpu_that_works_is_active_whatever_its_host_does() {
    let mut node = gpu_node();
    node.quiet(100).pass(|n| bump(&mut n.gpus[1].busy_ns, 300_000_000)).quiet(29);
    assert!(matches!(node.judge().decision, Decision::Above { signal: Signal::Gpu, .. }), "{:?}", node.judge());
    node.quiet(2);
    assert_eq!(node.judge().verdict, Verdict::Idle);
    assert_eq!(node.judge().since_unix_ms, Some(wall(STARTED_S + 101 * 30)));
    // 0.1 % of one GPU is the driver's own noise.
    let mut node = gpu_node();
    for _ in 0..40 {
        node.pass(|n| bump(&mut n.gpus[0].busy_ns, 30_000_000));
    }
    assert_eq!(node.judge().verdict, Verdict::Idle);
}

/// An hour of work without the GPUs; so many intervals are the half of it.
const AN_HOUR: usize = 120;

#[test]
fn gpus_are_unused_when_none_of_them_worked_for_an_hour_whatever_else_does() {
    let works = |node: &mut Node, intervals: usize| {
        for _ in 0..intervals {
            node.pass(|n| bump(&mut n.workload.cpu_ns, 30_000_000_000));
        }
    };
    let mut node = gpu_node();
    works(&mut node, AN_HOUR);
    assert_eq!(node.judge().verdict, Verdict::Active);
    assert_eq!(gpu_use(&node.case()), GpuUse::NotKnown, "the first interval compares nothing");
    works(&mut node, 1);
    let unused =
        |since_s, node: &Node| GpuUse::Unused { since_unix_ms: wall(since_s), until_unix_ms: wall(node.end_s) };
    assert_eq!(gpu_use(&node.case()), unused(STARTED_S + 30, &node));
    // One of them works for a moment.
    let end_s = node.end_s + 30;
    node.pass(|n| bump(&mut n.gpus[1].busy_ns, 300_000_000));
    let used = GpuUse::Used { until_unix_ms: wall(end_s) };
    works(&mut node, AN_HOUR - 1);
    assert_eq!(gpu_use(&node.case()), used);
    works(&mut node, 1);
    assert_eq!(gpu_use(&node.case()), unused(end_s, &node));
    // The driver's own noise.
    node.pass(|n| bump(&mut n.gpus[0].busy_ns, 30_000_000));
    assert_eq!(gpu_use(&node.case()), unused(end_s, &node));
}

#[test]
fn gpus_that_were_not_read_all_the_time_are_not_known_to_be_unused_and_what_was_seen_of_them_refutes() {
    let mut node = gpu_node();
    node.quiet(AN_HOUR + 1);
    let before = node.gpus.clone();
    node.pass(|n| n.gpus[0].busy_ns = None);
    assert_eq!(gpu_use(&node.case()), GpuUse::NotKnown);
    node.gpus = before;
    node.quiet(AN_HOUR);
    assert_eq!(gpu_use(&node.case()), GpuUse::NotKnown, "an hour begins anew with the next comparison");
    assert!(matches!(gpu_use(&node.quiet(1).case()), GpuUse::Unused { .. }));
    // A lost heartbeat may have been the one that said so.
    node.quiet(10);
    let lost = node.sent.len() - 5;
    node.sent.remove(lost);
    assert_eq!(gpu_use(&node.case()), GpuUse::NotKnown);
    let mut node = gpu_node();
    let end_s = node.quiet(2).end_s + 30;
    node.pass(|n| bump(&mut n.gpus[1].busy_ns, 300_000_000));
    node.quiet(5).pass(|n| n.gpus[0].busy_ns = None);
    assert_eq!(gpu_use(&node.case()), GpuUse::Used { until_unix_ms: wall(end_s) });
    assert_eq!(gpu_use(&Node::new().quiet(AN_HOUR + 1).case()), GpuUse::NotKnown, "there is none");
}

#[test]
fn a_gpu_that_was_not_read_for_one_interval_breaks_the_window() {
    type Change = fn(&mut Node);
    let changes: [Change; 4] = [
        |n| n.capabilities = vec![capability("gpu", wire::CapabilityStatus::Broken)],
        |n| n.gpus[0].busy_ns = None,
        |n| n.gpus.truncate(1),
        |n| n.gpus[0].uuid = "C".into(),
    ];
    for change in changes {
        let mut node = gpu_node();
        let before = (node.gpus.clone(), node.capabilities.clone());
        node.quiet(100).pass(change);
        (node.gpus, node.capabilities) = before;
        node.quiet(10);
        assert_eq!(why(node.judge()), not_measured(&[Signal::Gpu], &[]));
        assert_eq!(node.quiet(22).judge().verdict, Verdict::Idle, "a new window");
    }
}

#[test]
fn a_lost_heartbeat_of_a_gpu_host_may_have_been_the_one_that_said_it_could_not_read() {
    let mut node = gpu_node();
    node.quiet(100);
    node.sent.remove(90);
    assert_eq!(why(node.judge()), not_measured(&[Signal::Gpu], &[]));
}

#[test]
fn a_gpu_that_cannot_be_read_now_is_unknown() {
    let mut node = gpu_node();
    node.quiet(100);
    node.capabilities = vec![capability("gpu", wire::CapabilityStatus::Unsupported)];
    assert_eq!(why(node.quiet(1).judge()), Unknown::GpuNotMeasured);
}

#[test]
fn input_at_a_terminal_is_work_and_an_open_session_waits_for_two_hours() {
    let mut node = Node::new();
    typed(&mut node, 1, Some(wall(STARTED_S)));
    node.quiet(20);
    let input = wall(node.end_s) + 10_000;
    node.pass(|n| typed(n, 1, Some(input))).quiet(20);
    let judgement = node.judge();
    assert!(matches!(judgement.decision, Decision::Above { signal: Signal::Person, .. }), "{judgement:?}");
    // An hour later nothing else has happened, and the session is still open.
    node.quiet(120);
    let judgement = node.judge();
    let on = vec![Wait::Session { sessions: 1, last_input_unix_ms: input }];
    assert!(
        words::decision(&judgement, &node.case())
            .starts_with("it waits: 1 session with a terminal, where something was typed at ")
    );
    assert_eq!((judgement.verdict, judgement.decision), (Verdict::Waiting, Decision::Waiting { on }));
    // Two hours after the input.
    node.quiet(100);
    assert_eq!(node.judge().verdict, Verdict::Idle);
}

#[test]
fn who_has_left_does_not_count_for_two_hours() {
    let mut node = Node::new();
    node.quiet(20);
    let input = wall(node.end_s) + 10_000;
    node.pass(|n| typed(n, 1, Some(input)));
    typed(&mut node, 0, None);
    assert_eq!(node.quiet(59).judge().verdict, Verdict::Active);
    assert_eq!(node.quiet(2).judge().verdict, Verdict::Idle);
}

#[test]
fn an_old_session_that_outlives_a_newer_one_is_no_input() {
    let mut node = Node::new();
    let long_ago = wall(0);
    typed(&mut node, 2, Some(wall(STARTED_S)));
    node.quiet(1);
    typed(&mut node, 1, Some(long_ago));
    // The agent has been there for an hour; the machine booted two hours before.
    node.quiet(300);
    assert_eq!(node.judge().verdict, Verdict::Idle);
}

#[test]
fn a_terminal_whose_input_cannot_be_read_is_not_measured() {
    let mut node = Node::new();
    node.quiet(100);
    typed(&mut node, 1, None);
    assert_eq!(why(node.quiet(1).judge()), not_measured(&[Signal::Person], &[]));
    // Some can be read and others cannot; what is seen still counts.
    let mut node = Node::new();
    node.quiet(100);
    typed(&mut node, 2, Some(wall(0)));
    node.capabilities = vec![capability("interactive_sessions", wire::CapabilityStatus::Denied)];
    node.quiet(200);
    assert_eq!(why(node.judge()), not_measured(&[Signal::Person], &[]));
    let input = wall(node.end_s) + 10_000;
    node.pass(|n| typed(n, 2, Some(input)));
    assert_eq!(node.judge().verdict, Verdict::Active);
}

#[test]
fn a_new_inbound_peer_of_somebodys_port_is_work() {
    for (port, class, expected) in [
        (80, wire::Class::Workload, Verdict::Active),
        (80, wire::Class::Unspecified, Verdict::Active),
        (22, wire::Class::Workload, Verdict::Active),
        (22, wire::Class::Housekeeping, Verdict::Idle),
        (22, wire::Class::Unspecified, Verdict::Idle),
        (9100, wire::Class::Housekeeping, Verdict::Idle),
    ] {
        let mut node = Node::new();
        node.inbound_peers = inbound_peers(vec![listener(port, class, None)]);
        node.quiet(80);
        let at = wall(node.end_s) + 30_000;
        node.inbound_peers = inbound_peers(vec![listener(port, class, Some(at))]);
        node.quiet(59);
        let judgement = node.judge();
        assert_eq!(judgement.verdict, expected, "{port} {class:?} {judgement:?}");
        if expected == Verdict::Active {
            assert!(matches!(judgement.decision, Decision::Above { signal: Signal::InboundPeers, .. }));
        }
        if expected == Verdict::Active {
            // An hour later, and nobody need be connected any more.
            let judgement = node.quiet(120).judge();
            let on = vec![Wait::InboundPeer { port: Some(port), command: String::new(), last_new_peer_unix_ms: at }];
            assert_eq!((judgement.verdict, judgement.decision), (Verdict::Waiting, Decision::Waiting { on }));
        }
        assert_eq!(node.quiet(70).judge().verdict, Verdict::Idle, "one call is not work for ever");
    }
}

#[test]
fn a_call_counts_for_two_hours_after_it_though_the_agent_was_restarted_and_has_forgotten_it() {
    let mut node = Node::new();
    node.inbound_peers = inbound_peers(vec![listener(80, wire::Class::Workload, None)]);
    node.quiet(10);
    let at = wall(node.end_s) + 10_000;
    node.inbound_peers = inbound_peers(vec![listener(80, wire::Class::Workload, Some(at))]);
    let called_s = node.quiet(1).end_s;
    node.inbound_peers = inbound_peers(vec![listener(80, wire::Class::Workload, None)]);
    node.restart(11);
    node.quiet(70);
    let judgement = node.judge();
    let on = vec![Wait::InboundPeer { port: None, command: String::new(), last_new_peer_unix_ms: wall(called_s) }];
    assert_eq!((judgement.verdict, judgement.decision), (Verdict::Waiting, Decision::Waiting { on }));
    let said = words::decision(&node.judge(), &node.case());
    assert!(said.starts_with("it waits: calls from other machines, the last one at "), "{said}");
    // A case from before calls were waited for is judged as it was.
    let kept = serde_json::to_string(&node.case()).unwrap().replace(r#""called_after_ms":7200000,"#, "");
    let kept: Case = serde_json::from_str(&kept).unwrap();
    assert_eq!((kept.policy.called_after_ms, judge(&kept).verdict), (0, Verdict::Idle));
    // Two hours after the call.
    assert_eq!(node.quiet(170).judge().verdict, Verdict::Idle);
}

#[test]
fn a_port_that_is_not_listed_may_have_been_called_if_the_last_listed_one_was() {
    let old = Some(wall(0) - 7_200_000);
    for (last_new_peer_unix_ms, outside_peers, not_listed, is_known) in
        [(old, 0, 1, false), (None, 1, 1, false), (None, 0, 1, true), (old, 1, 0, true)]
    {
        let mut node = Node::new();
        let last = wire::Listener { outside_peers, ..listener(80, wire::Class::Workload, last_new_peer_unix_ms) };
        node.inbound_peers = Some(wire::InboundPeers { listeners: vec![last], listeners_not_listed: not_listed });
        let judgement = node.quiet(70).judge();
        if is_known {
            assert_eq!(judgement.verdict, Verdict::Idle, "{last_new_peer_unix_ms:?} {outside_peers} {not_listed}");
        } else {
            assert_eq!(why(judgement), not_measured(&[Signal::InboundPeers], &[]));
        }
    }
}

#[test]
fn a_port_that_comes_back_into_the_list_brings_no_new_inbound_peer() {
    let mut node = Node::new();
    // Long enough ago to be waited for no more.
    let old = wall(STARTED_S) - 7_200_000;
    node.inbound_peers = inbound_peers(vec![listener(80, wire::Class::Workload, Some(old))]);
    node.quiet(40);
    node.inbound_peers = inbound_peers(Vec::new());
    node.quiet(1);
    node.inbound_peers = inbound_peers(vec![listener(80, wire::Class::Workload, Some(old))]);
    assert_eq!(node.quiet(40).judge().verdict, Verdict::Idle);
}

#[test]
fn inbound_peers_that_could_not_be_listed_are_not_measured_and_an_older_agent_is_not_asked_for_them() {
    let mut node = Node::new();
    node.capabilities = vec![capability("inbound_peers", wire::CapabilityStatus::Broken)];
    assert_eq!(why(node.quiet(100).judge()), not_measured(&[Signal::InboundPeers], &[]));
    node.capabilities = vec![capability("callers", wire::CapabilityStatus::Broken)];
    assert_eq!(why(node.quiet(100).judge()), not_measured(&[Signal::InboundPeers], &[]), "by the name of before");
    node.capabilities = Vec::new();
    assert_eq!(node.quiet(61).judge().verdict, Verdict::Idle);
}

#[test]
fn evidence_from_before_these_signals_is_judged_as_it_was() {
    let mut node = Node::new();
    node.quiet(70);
    let case = node.case();
    let mut old = serde_json::to_value(&case).unwrap();
    for key in ["gpu_idle_after_ms", "interactive_after_ms", "gpu_busy_threshold_ns_per_s"] {
        assert!(old["policy"].as_object_mut().unwrap().remove(key).is_some());
    }
    let text = old.to_string();
    for key in ["gpu_busy_ns", "last_input", "new_inbound_peers", "blind", "terminals"] {
        assert!(!text.contains(key), "{key} is written where there is none");
    }
    let old: Case = serde_json::from_value(old).unwrap();
    assert_eq!(judge(&old), judge(&case));
    assert_eq!(old, case);
}

#[test]
fn the_words_name_gpus_sessions_and_inbound_peers_where_they_were_seen() {
    let mut node = gpu_node();
    node.inbound_peers = inbound_peers(vec![listener(80, wire::Class::Workload, None)]);
    let long_ago = wall(STARTED_S) - 60 * MINUTE_MS;
    typed(&mut node, 1, Some(long_ago));
    node.quiet(200);
    let case = node.case();
    let judgement = judge(&case);
    let Decision::AllQuiet { total, .. } = &judgement.decision else { panic!("{judgement:?}") };
    insta::assert_snapshot!(format!(
        "{}\n{}",
        words::decision(&judgement, &case),
        words::counters(total, &case).join("\n")
    ));
}
