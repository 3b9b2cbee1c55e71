//! Verdicts by the states of nodes, on one core.

use crate::made_up::{Node, Timeline};
use jiff::Timestamp;
use lab::sample;
use std::time::{Duration, Instant};
use sweeper::verdict::{NodeSample, NodeState, Policy, StatePolicy};

/// So many a second, on one core: by the states of nodes, as a sweep of a large fleet takes them from the database.
pub(crate) fn per_s() -> f64 {
    let (state_policy, now) = (StatePolicy::new(Policy::default()), Timestamp::now());
    let timeline = Timeline::through(90, now.as_millisecond(), 1);
    let states: Vec<String> = (1..200_u64)
        .map(|number| {
            let node = Node { id: sample::node(0), number };
            let samples = (1..=90)
                .map(|sequence| NodeSample::of(node.boot(), &node.heartbeat(sequence, timeline.ended(sequence, 0))));
            let state = NodeState::of(samples.map(|sample| sample.expect("a whole heartbeat")), &state_policy);
            serde_json::to_string(&state.expect("a state")).expect("JSON")
        })
        .collect();
    let (began, mut judged, mut active) = (Instant::now(), 0_u32, 0_u32);
    while began.elapsed() < Duration::from_secs(3) {
        for state in &states {
            let state: NodeState = serde_json::from_str(state).expect("a state");
            active += u32::from(state.judge(now.as_millisecond(), &state_policy, None).is_some());
            judged += 1;
        }
    }
    assert!(active * 10 > judged * 8 && active < judged, "nine of ten work: {active} of {judged}");
    f64::from(judged) / began.elapsed().as_secs_f64()
}
