//! What holds for every history.

use crate::{
    events::{EVENTS, Event, SECOND_NS, happen, hide},
    node::{Node, bump, capability, wall},
};
use heartbeat::wire;
use model::Verdict;
use proptest::{prelude::*, sample::select, strategy::ValueTree as _, test_runner::TestRunner};
use sweeper::verdict::{Case, Policy, judge};

/// One interval of a random history.
#[derive(Clone, Debug)]
struct Step {
    event: Option<Event>,
    /// The heartbeat never arrives.
    lost: bool,
    /// Below the threshold.
    cpu_ns: u64,
    /// Ten of them together lie about the budget.
    housekeeping_ns: u64,
}

/// A random history.
#[derive(Clone, Debug)]
pub(crate) struct History {
    steps: Vec<Step>,
    /// A host with a GPU, a terminal and a port.
    is_watched: bool,
    /// Whose network bytes they are is known.
    is_exact: bool,
}

pub(crate) fn history() -> impl Strategy<Value = History> {
    let event = prop::option::weighted(0.05, select(EVENTS));
    let step = (event, prop::bool::weighted(0.02), 0..50_000_000_u64, 0..2 * SECOND_NS);
    let step = step.prop_map(|(event, lost, cpu_ns, housekeeping_ns)| Step { event, lost, cpu_ns, housekeeping_ns });
    (prop::collection::vec(step, 1..60), any::<bool>(), any::<bool>())
        .prop_map(|(steps, is_watched, is_exact)| History { steps, is_watched, is_exact })
}

pub(crate) fn policy() -> Policy {
    let used_ms = 240_000;
    let (interactive_after_ms, called_after_ms) = (used_ms, used_ms);
    Policy {
        idle_after_ms: 300_000,
        gpu_idle_after_ms: 200_000,
        interactive_after_ms,
        called_after_ms,
        ..Policy::default()
    }
}

impl History {
    fn play(&self) -> Case {
        Case { policy: policy(), ..self.node().case() }
    }

    /// A node with all heartbeats that it sent.
    pub(crate) fn node(&self) -> Node {
        let mut node = Node::new();
        node.capabilities.push(capability("rdma", wire::CapabilityStatus::Ok));
        node.peers = Some(wire::Peers {
            groups: vec![wire::PeerGroup { class: wire::Class::Workload.into(), ..wire::PeerGroup::default() }],
            groups_not_listed: 0,
        });
        if self.is_exact {
            node.capabilities.push(capability("network", wire::CapabilityStatus::Ok));
            for row in [&mut node.workload, &mut node.housekeeping, &mut node.own] {
                (row.network_received_bytes, row.network_sent_bytes) = (Some(0), Some(0));
            }
        }
        if self.is_watched {
            node.gpu_present = true;
            node.capabilities.push(capability("gpu", wire::CapabilityStatus::Ok));
            node.gpus = vec![wire::Gpu { uuid: "A".into(), busy_ns: Some(0), ..wire::Gpu::default() }];
            node.interactive_sessions =
                Some(wire::InteractiveSessions { terminal_sessions: 1, last_input_unix_ms: Some(wall(0)) });
            node.inbound_peers = Some(wire::InboundPeers {
                listeners: vec![wire::Listener { port: 80, ..wire::Listener::default() }],
                listeners_not_listed: 0,
            });
        }
        for step in &self.steps {
            self.pass(&mut node, step);
        }
        node
    }

    fn pass(&self, node: &mut Node, step: &Step) {
        match step.event {
            Some(Event::Restarts) => drop(node.restart(20)),
            Some(Event::Rests) => node.end_s += 20,
            _ => {}
        }
        bump(&mut node.workload.cpu_ns, step.cpu_ns);
        bump(&mut node.housekeeping.cpu_ns, step.housekeeping_ns);
        bump(&mut node.counters.cpu_busy_ns, step.cpu_ns + step.housekeeping_ns);
        if let Some(event) = step.event.filter(|event| self.concerns(*event)) {
            happen(node, event);
        }
        // What cannot be read is absent in this one heartbeat.
        let sent = std::mem::take(&mut node.sent);
        let after = node.clone();
        node.sent = sent;
        if let Some(event) = step.event.filter(|event| self.concerns(*event)) {
            hide(node, event);
        }
        node.pass(|_| {});
        let sent = std::mem::take(&mut node.sent);
        *node = Node { sent, end_s: node.end_s, sequence: node.sequence, ..after };
        // What passing added is in none of the counters from before.
        bump(&mut node.workload.cpu_ns, 3_000_000);
        bump(&mut node.counters.cpu_busy_ns, 3_000_000);
        bump(&mut node.counters.network_sent_bytes, 2_000);
        if step.lost {
            node.sent.pop();
        }
    }

    fn concerns(&self, event: Event) -> bool {
        match event {
            // Nobody reads the GPU while no agent runs.
            Event::GpuWorks | Event::GpuUnread | Event::Types | Event::Called | Event::Restarts => self.is_watched,
            // Elsewhere such traffic counts as somebody's.
            Event::NobodysTraffic => self.is_exact,
            _ => true,
        }
    }

    /// So many intervals are the shortest window, and so much housekeeping is surely within its budget there, and so much above.
    fn window(&self) -> (usize, u64, u64) {
        let budget_ns_per_s = Policy::default().housekeeping_cpu_budget_ns_per_s;
        let (intervals, idle_after_s) = if self.is_watched { (7, 200) } else { (10, 300) };
        (intervals, idle_after_s * budget_ns_per_s, intervals as u64 * 30 * budget_ns_per_s)
    }

    /// What the verdict must be, as far as these rules tell; `None` where heartbeats were lost, or an event lies at the edge.
    fn is_idle(&self) -> Option<bool> {
        let (intervals, within_ns, above_ns) = self.window();
        if self.steps.len() <= intervals {
            return Some(false);
        }
        let last = |count: usize| &self.steps[self.steps.len().saturating_sub(count)..];
        if last(intervals + 3).iter().any(|step| step.lost) {
            return None;
        }
        // Of two that follow each other closely the first spoils, too.
        if last(intervals + 3).iter().filter(|step| step.event == Some(Event::Restarts)).count() > 1 {
            return None;
        }
        let spoils = |step: &Step| step.event.is_some_and(|event| self.concerns(event));
        // Input and calls count for 240 s, which is longer than a window with GPUs.
        let is_somebody = |step: &Step| matches!(step.event, Some(Event::Types | Event::Called));
        let was_used = self.is_watched && last(8).iter().any(is_somebody);
        let housekeeping_ns: u64 = last(intervals).iter().map(|step| step.housekeeping_ns).sum();
        if was_used || housekeeping_ns > above_ns || last(intervals).iter().any(spoils) {
            return Some(false);
        }
        // A heartbeat that lacks a counter, and a run that ends, spoil the interval after it as well.
        (housekeeping_ns <= within_ns && !last(intervals + 1).iter().any(spoils)).then_some(true)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_stored_case_replays_to_the_same_judgement_byte_for_byte(history in history()) {
        let case = history.play();
        let stored = serde_json::to_string(&case).unwrap();
        let replayed: Case = serde_json::from_str(&stored).unwrap();
        prop_assert_eq!(&replayed, &case);
        prop_assert_eq!(serde_json::to_string(&judge(&case)).unwrap(), serde_json::to_string(&judge(&replayed)).unwrap());
    }

    /// The rules are told by the events themselves, not by what the observations make of them.
    #[test]
    fn a_node_is_idle_if_and_only_if_nothing_in_its_window_speaks_against_it(history in history()) {
        let judgement = judge(&history.play());
        if let Some(is_idle) = history.is_idle() {
            prop_assert_eq!(judgement.verdict == Verdict::Idle, is_idle, "{:?}", judgement);
        }
    }

    #[test]
    fn idle_is_only_ever_said_of_an_unbroken_measured_quiet_window(history in history()) {
        let case = history.play();
        let judgement = judge(&case);
        if judgement.verdict == Verdict::Idle {
            let since = judgement.since_unix_ms.unwrap();
            let window: Vec<_> = case.observations.iter().filter(|o| o.start_unix_ms >= since).collect();
            let node = case.node.as_ref().unwrap();
            let unwatched: i64 = window.iter().filter_map(|o| o.restart_gap_ms).sum();
            prop_assert!(node.last_heartbeat_unix_ms - since - unwatched >= case.idle_after_ms());
            let covered: i64 = window.iter().map(|o| o.end_unix_ms - o.start_unix_ms).sum();
            prop_assert_eq!(covered, node.last_heartbeat_unix_ms - since);
            let input = node.terminals.and_then(|terminals| terminals.last_input_unix_ms);
            prop_assert!(input.is_none_or(|at| node.last_heartbeat_unix_ms - at >= case.policy.interactive_after_ms));
            prop_assert!(case.waits().is_empty());
            for observation in &window {
                prop_assert!(observation.active(&case.policy, node.interval_ms).is_empty());
                prop_assert!(observation.not_measured().is_empty() && observation.unchecked.is_empty());
                prop_assert!(observation.contradictions(&case.policy, node.interval_ms).is_empty());
                prop_assert_eq!((observation.lost_events, observation.waited), (0, false));
                prop_assert!(observation.slept_ms.is_none_or(|slept_ms| slept_ms < 150_000));
            }
            // No span of `idle_after` within the window has more housekeeping than its budget.
            for (at, first) in window.iter().enumerate() {
                let within = window[at..].iter().take_while(|o| o.start_unix_ms - first.start_unix_ms < case.idle_after_ms());
                let (mut end, mut cpu_ns) = (first.end_unix_ms, 0);
                for observation in within {
                    (end, cpu_ns) = (observation.end_unix_ms, cpu_ns + observation.housekeeping_cpu_ns.unwrap());
                }
                let span_ms = (end - first.start_unix_ms).max(case.idle_after_ms()).cast_unsigned();
                prop_assert!(cpu_ns * 1000 <= case.policy.housekeeping_cpu_budget_ns_per_s * span_ms);
            }
        }
    }

    #[test]
    fn more_activity_never_turns_a_node_idle(history in history(), at in 0_usize..60) {
        let before = judge(&history.play());
        let mut busier = history.clone();
        let at = at % busier.steps.len();
        busier.steps[at].cpu_ns += 60 * SECOND_NS;
        if before.verdict != Verdict::Idle {
            prop_assert_ne!(judge(&busier.play()).verdict, Verdict::Idle);
        }
    }

    /// Whatever happens besides, or could not be read: it speaks against idleness or says nothing.
    #[test]
    fn nothing_that_happens_besides_turns_a_node_idle(history in history(), at in 0_usize..60, event in select(EVENTS)) {
        let mut richer = history.clone();
        let at = at % richer.steps.len();
        // What is compared is the event and not the 20 s of rest that a restart brings along: they lower the average of housekeeping.
        let mut plain = history.clone();
        plain.steps[at].event = (event == Event::Restarts).then_some(Event::Rests);
        // A heartbeat that was lost right before an agent ends takes its details along: for that time the host's own counters speak, by their thresholds.
        let hides = event == Event::Restarts && at > 0 && history.steps[at - 1].lost;
        if !hides && richer.steps[at].event.is_none() && judge(&plain.play()).verdict != Verdict::Idle {
            richer.steps[at].event = Some(event);
            prop_assert_ne!(judge(&richer.play()).verdict, Verdict::Idle);
        }
    }

    /// Evidence that is taken away. Without the newest one a node is judged as it was before: for that there is silence.
    #[test]
    fn a_heartbeat_that_never_arrived_turns_no_node_idle(history in history(), at in 0_usize..60) {
        let mut poorer = history.clone();
        let at = at % poorer.steps.len();
        poorer.steps[at].lost = true;
        let newest = history.steps.iter().rposition(|step| !step.lost);
        if newest.is_some_and(|newest| at < newest) && judge(&history.play()).verdict != Verdict::Idle
            && judge(&poorer.play()).verdict == Verdict::Idle
        {
            // Then it alone told of what the others say is over, and without that the node was idle.
            prop_assert!(history.steps[at].event.is_some_and(|event| !event.is_told_later()));
            let mut calm = history.clone();
            calm.steps[at].event = None;
            prop_assert_eq!(judge(&calm.play()).verdict, Verdict::Idle);
        }
    }
}

/// Without both kinds, the properties above would prove nothing.
#[test]
fn random_histories_are_idle_and_not_idle_in_good_numbers() {
    let mut runner = TestRunner::deterministic();
    let histories = (0..400).map(|_| history().new_tree(&mut runner).unwrap().current());
    let told: Vec<_> = histories.filter_map(|history| history.is_idle()).collect();
    let idle = told.iter().filter(|is_idle| **is_idle).count();
    assert!((40..=360).contains(&idle) && told.len() - idle >= 40, "{idle} of {}", told.len());
}
