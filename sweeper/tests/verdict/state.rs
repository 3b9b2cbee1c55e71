//! The state of a node against the whole of its heartbeats.

use crate::{
    node::{Node, bump, wall},
    properties::{History, history, policy},
};
use heartbeat::{BootId, wire};
use model::Verdict;
use proptest::{prelude::*, strategy::ValueTree as _, test_runner::TestRunner};
use sweeper::verdict::{Added, Case, Contradiction, Judgement, NodeSample, NodeState, StatePolicy, Unknown, judge};

fn samples(sent: &[(BootId, wire::Heartbeat)]) -> Vec<NodeSample> {
    sent.iter().map(|(boot, heartbeat)| NodeSample::of(*boot, heartbeat).unwrap()).collect()
}

fn state_policy() -> StatePolicy {
    StatePolicy::new(policy())
}

fn now(node: &Node) -> i64 {
    wall(node.end_s) + 1_000
}

/// What the state says, and what the whole window says.
fn both(node: &Node) -> (Option<Judgement>, Judgement) {
    let state = NodeState::of(samples(&node.sent), &state_policy());
    // It is kept as JSON.
    let kept = serde_json::to_string(&state).unwrap();
    let kept: Option<NodeState> = serde_json::from_str(&kept).unwrap();
    assert_eq!(kept, state);
    let said = kept.and_then(|state| state.judge(now(node), &state_policy(), None)).map(|(case, judgement)| {
        // Should a finding rest on it after all, its record is decided again from the case: to the same verdict, and never idle. What the newest observation
        // lacks the case does not hold: without it the node is seen to wait.
        let again = judge(&case).verdict;
        let lacks = matches!(judgement.why_unknown(), Some(Unknown::NotMeasured { .. } | Unknown::LostEvents { .. }));
        assert!(again == judgement.verdict || (again == Verdict::Waiting && lacks), "{again:?} and {judgement:?}");
        judgement
    });
    (said, judge(&Case::new(now(node), policy(), node.sent.clone())))
}

/// Whether a reason that the state gives may stand for the one of the whole window: budgets and restarts are left to that.
fn stands_for(state: &Unknown, whole: &Unknown) -> bool {
    match (state, whole) {
        (Unknown::ObservedTooShort { .. }, Unknown::ObservedTooShort { .. }) => true,
        (_, Unknown::Contradictory { by, .. }) if by.as_slice() == [Contradiction::Housekeeping] => true,
        (state, whole) => state == whole || matches!(whole, Unknown::ObservedTooShort { .. }),
    }
}

/// In what order heartbeats arrive, how many at a time, and which of them twice.
fn arrivals() -> impl Strategy<Value = (Vec<prop::sample::Index>, usize)> {
    (prop::collection::vec(any::<prop::sample::Index>(), 0..120), 1..9_usize)
}

/// Delivers all heartbeats, some of them twice, in this order; as the store does it.
fn deliver(all: &[NodeSample], order: &[prop::sample::Index], at_once: usize) -> Option<NodeState> {
    let state_policy = state_policy();
    let mut stored: Vec<NodeSample> = Vec::new();
    let mut state: Option<NodeState> = None;
    let arriving: Vec<_> =
        order.iter().filter(|_| !all.is_empty()).map(|index| index.get(all)).chain(all.iter().rev()).collect();
    for group in arriving.chunks(at_once) {
        let mut new = Vec::new();
        for sample in group {
            if !stored.contains(sample) {
                stored.push((*sample).clone());
                new.push((*sample).clone());
            }
        }
        new.sort_by_key(NodeSample::order);
        state = match state {
            None => NodeState::of(new, &state_policy),
            Some(mut state) => {
                let late =
                    new.into_iter().filter(|sample| state.add(sample.clone(), &state_policy) == Added::Late).count();
                let from = state.newest_unix_ms() - state_policy.reach_ms();
                let mut read: Vec<_> = stored.iter().filter(|sample| sample.order().0 > from).cloned().collect();
                read.sort_by_key(NodeSample::order);
                if late > 0 { NodeState::of(read, &state_policy) } else { Some(state) }
            }
        };
    }
    state
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn where_a_state_speaks_the_whole_window_says_the_same_and_never_idle(history in history()) {
        let (said, whole) = both(&history.node());
        if let Some(said) = said {
            prop_assert_ne!(whole.verdict, Verdict::Idle, "{:?}", said);
            prop_assert_eq!((said.verdict, said.since_unix_ms), (whole.verdict, whole.since_unix_ms));
            if let (Some(state), Some(whole)) = (said.why_unknown(), whole.why_unknown()) {
                prop_assert!(stands_for(state, whole), "{:?} and {:?}", state, whole);
            }
        }
    }

    #[test]
    fn heartbeats_in_any_order_and_twice_give_the_state_of_those_in_order(
        history in history(),
        (order, at_once) in arrivals(),
    ) {
        let all = samples(&history.node().sent);
        let in_order = NodeState::of(all.clone(), &state_policy());
        prop_assert_eq!(deliver(&all, &order, at_once), in_order);
    }
}

/// A state that never speaks would agree with everything.
#[test]
fn states_speak_of_most_histories() {
    let mut runner = TestRunner::deterministic();
    let histories = (0..400).map(|_| history().new_tree(&mut runner).unwrap().current());
    let said: Vec<_> = histories.map(|history: History| both(&history.node())).collect();
    let of = |verdict: Verdict| {
        let whole = said.iter().filter(|(_, whole)| whole.verdict == verdict);
        let spoken = whole.clone().filter(|(said, _)| said.is_some()).count();
        (spoken, whole.count())
    };
    let ((active, all_active), (unknown, all_unknown)) = (of(Verdict::Active), of(Verdict::Unknown));
    assert_eq!(active, all_active, "work is always told");
    assert!(all_active >= 40 && all_unknown >= 40 && unknown * 2 > all_unknown, "{unknown} of {all_unknown}");
    assert_eq!(of(Verdict::Idle).0, 0);
}

#[test]
fn a_node_that_falls_silent_is_told_by_its_state_and_one_under_another_policy_is_not() {
    let mut node = Node::new();
    node.quiet(30);
    let state = NodeState::of(samples(&node.sent), &state_policy()).unwrap();
    let judged = |ms: i64| state.judge(ms, &state_policy(), None).map(|(_, judgement)| judgement);
    assert_eq!(judged(now(&node)), None, "it may be idle");
    let last_heartbeat_unix_ms = wall(node.end_s);
    let silent = judged(last_heartbeat_unix_ms + 3_600_000);
    assert_eq!(silent.unwrap().why_unknown(), Some(&Unknown::Silent { last_heartbeat_unix_ms }));
    let other = StatePolicy::new(sweeper::verdict::Policy { idle_after_ms: 300_001, ..policy() });
    assert_eq!(state.judge(last_heartbeat_unix_ms + 3_600_000, &other, None), None);
}

#[test]
fn work_is_told_for_as_long_as_it_counts_and_quiet_is_counted_from_its_end() {
    let mut node = Node::new();
    node.quiet(20).pass(|node| bump(&mut node.workload.execs, 1)).quiet(5);
    let (said, whole) = both(&node);
    assert_eq!(said.unwrap().since_unix_ms, whole.since_unix_ms);
    node.quiet(5);
    assert_eq!(both(&node).0, None, "quiet for 300 s: the heartbeats are asked");
}
