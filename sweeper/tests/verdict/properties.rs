//! What holds for every history.

use crate::node::{Node, bump, wall};
use heartbeat::wire;
use proptest::prelude::*;
use sweeper::verdict::{Case, Policy, Verdict, judge};

/// One interval of a random history.
#[derive(Clone, Debug)]
struct Step {
    cpu_ns: u64,
    execs: u64,
    network: u64,
    lost: bool,
    drops: u64,
    restart: bool,
    unmeasured: bool,
    gpu_busy_ns: u64,
    gpu_blind: bool,
    types: bool,
    called: bool,
}

fn step() -> impl Strategy<Value = Step> {
    let watched = (0..40_000_000_u64, 0..60_u8, 0..80_u8, 0..80_u8);
    let counters = (0..80_000_000_u64, 0..40_u64, 0..200_000_u64, 0..20_u8, 0..40_u64, 0..60_u8, 0..60_u8);
    (counters, watched).prop_map(
        |((cpu_ns, execs, network, lost, drops, restart, unmeasured), (gpu_busy_ns, gpu_blind, types, called))| Step {
            gpu_busy_ns,
            gpu_blind: gpu_blind == 0,
            types: types == 0,
            called: called == 0,
            cpu_ns,
            execs: execs.saturating_sub(38),
            network,
            lost: lost == 0,
            drops: drops.saturating_sub(38),
            restart: restart == 0,
            unmeasured: unmeasured == 0,
        },
    )
}

/// A history of a host with a GPU, a terminal and a port, or of one without them.
fn play(steps: &[Step]) -> Case {
    let mut node = Node::new();
    let is_watched = steps.first().is_some_and(|step| step.network % 2 == 0);
    if is_watched {
        node.gpu_present = true;
        node.gpus = vec![wire::Gpu { uuid: "A".into(), busy_ns: Some(0), ..wire::Gpu::default() }];
        node.people = Some(wire::People { terminal_sessions: 1, last_input_unix_ms: Some(wall(0)) });
        node.callers = Some(wire::Callers {
            listeners: vec![wire::Listener { port: 80, ..wire::Listener::default() }],
            listeners_not_listed: 0,
        });
    }
    for step in steps {
        if step.restart {
            node.counters_since_s = node.end_s;
        }
        let measured = node.workload.disk_read_bytes;
        let at = wall(node.end_s) + 20_000;
        node.pass(|n| {
            if is_watched {
                watch(n, step, at);
            }
            bump(&mut n.workload.cpu_ns, step.cpu_ns);
            bump(&mut n.workload.execs, step.execs);
            bump(&mut n.counters.network_received_bytes, step.network);
            n.drops += step.drops;
            if step.unmeasured {
                n.workload.disk_read_bytes = None;
            }
        });
        node.workload.disk_read_bytes = measured;
        if step.lost {
            node.sent.pop();
        }
    }
    Case {
        policy: Policy {
            idle_after_ms: 300_000,
            gpu_idle_after_ms: 200_000,
            interactive_after_ms: 240_000,
            ..Policy::default()
        },
        ..node.case()
    }
}

fn watch(node: &mut Node, step: &Step, at_unix_ms: i64) {
    bump(&mut node.gpus[0].busy_ns, step.gpu_busy_ns);
    let status = if step.gpu_blind { wire::ProbeStatus::Broken } else { wire::ProbeStatus::Ok };
    node.probes = vec![wire::Probe { name: "gpu".into(), status: status.into(), reason: String::new() }];
    if let (true, Some(people)) = (step.types, &mut node.people) {
        people.last_input_unix_ms = Some(at_unix_ms);
    }
    if let (true, Some(callers)) = (step.called, &mut node.callers) {
        callers.listeners[0].last_new_peer_unix_ms = Some(at_unix_ms);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_stored_case_replays_to_the_same_judgement_byte_for_byte(steps in proptest::collection::vec(step(), 0..60)) {
        let case = play(&steps);
        let stored = serde_json::to_string(&case).unwrap();
        let replayed: Case = serde_json::from_str(&stored).unwrap();
        prop_assert_eq!(serde_json::to_string(&judge(&case)).unwrap(), serde_json::to_string(&judge(&replayed)).unwrap());
    }

    #[test]
    fn idle_is_only_ever_said_of_an_unbroken_measured_quiet_window(steps in proptest::collection::vec(step(), 0..60)) {
        let case = play(&steps);
        let judgement = judge(&case);
        if judgement.verdict == Verdict::Idle {
            let since = judgement.since_unix_ms.unwrap();
            let window: Vec<_> = case.observations.iter().filter(|o| o.start_unix_ms >= since).collect();
            let node = case.node.as_ref().unwrap();
            prop_assert!(node.last_heartbeat_unix_ms - since >= case.idle_after_ms());
            let covered: i64 = window.iter().map(|o| o.end_unix_ms - o.start_unix_ms).sum();
            prop_assert_eq!(covered, node.last_heartbeat_unix_ms - since);
            let input = node.terminals.and_then(|terminals| terminals.last_input_unix_ms);
            prop_assert!(input.is_none_or(|at| node.last_heartbeat_unix_ms - at >= case.policy.interactive_after_ms));
            for observation in window {
                prop_assert!(observation.active(&case.policy, node.interval_ms).is_empty());
                prop_assert!(observation.not_measured().is_empty());
                prop_assert_eq!(observation.lost_events, 0);
            }
        }
    }

    #[test]
    fn more_activity_never_turns_a_node_idle(steps in proptest::collection::vec(step(), 1..60), at in 0_usize..60) {
        let before = judge(&play(&steps));
        let mut busier = steps.clone();
        let at = at % busier.len();
        busier[at].cpu_ns += 60_000_000_000;
        if before.verdict != Verdict::Idle {
            prop_assert_ne!(judge(&play(&busier)).verdict, Verdict::Idle);
        }
    }
}
