//! A process that sleeps by the clock waits: nobody else wakes it, and it goes on.

use crate::{
    WHOSE,
    node::{Node, capability, wall},
};
use heartbeat::wire::{self, CapabilityStatus, Class};
use model::Verdict;
use sweeper::verdict::{Case, Decision, Judgement, Policy, Wait, judge, words};

const MINUTE_NS: u64 = 60_000_000_000;
/// An interval of these nodes.
const INTERVAL_NS: u64 = 30_000_000_000;

/// So many quiet intervals, in which a thread of this class sleeps on; `slept_ns` at the first of their ends.
fn sleeps(node: &mut Node, intervals: u64, class: Class, slept_ns: u64) {
    for interval in 0..intervals {
        node.workload.class = class.into();
        node.workload.timed_wait_ns = Some(slept_ns + interval * INTERVAL_NS);
        node.quiet(1);
    }
}

fn sleeper(node: &Node, slept_minutes: i64) -> Judgement {
    let on = Wait::Sleeper {
        workload: node.workload.key.clone(),
        command: node.workload.top_command.clone(),
        slept_ms: slept_minutes * 60_000,
    };
    Judgement { verdict: Verdict::Waiting, since_unix_ms: None, decision: Decision::Waiting { on: vec![on] } }
}

#[test]
fn who_has_slept_for_half_of_the_window_waits_and_who_wakes_up_more_often_does_not() {
    for (minutes, expected) in [(5, Verdict::Idle), (14, Verdict::Idle), (15, Verdict::Waiting), (16, Verdict::Waiting)]
    {
        let mut node = Node::new();
        // It wakes up after so long, finds nothing to do, and sleeps again: for two hours.
        for _ in 0..120 / minutes {
            sleeps(&mut node, 2 * minutes, Class::Workload, INTERVAL_NS);
        }
        assert_eq!(node.judge().verdict, expected, "{minutes} minutes");
    }
}

#[test]
fn it_waits_in_every_moment_of_its_sleep_once_it_waited() {
    let mut node = Node::new();
    for _ in 0..4 {
        sleeps(&mut node, 40, Class::Workload, INTERVAL_NS);
        assert_eq!(node.judge(), sleeper(&node, 20));
        let mut woke = node.clone();
        for _ in 0..29 {
            sleeps(&mut woke, 1, Class::Workload, INTERVAL_NS);
            assert_ne!(woke.judge().verdict, Verdict::Idle, "it woke up a moment ago, and slept for long before");
        }
    }
    let said = words::decision(&node.judge(), &node.case());
    assert_eq!(said, "it waits: /user.slice (python3), of which a process has slept for 20 min until a timer wakes it");
    // It has ended.
    node.workload.timed_wait_ns = None;
    assert_ne!(node.quiet(59).judge().verdict, Verdict::Idle);
    let judgement = node.quiet(1).judge();
    assert_eq!((judgement.verdict, judgement.since_unix_ms), (Verdict::Idle, Some(wall(node.end_s - 60 * 30))));
}

/// A machine with GPUs is idle after a quarter of an hour: who fell asleep a moment after its window began has slept for less than that.
#[test]
fn on_a_machine_with_gpus_half_of_their_window_is_enough() {
    for (minutes, expected) in [(7, Verdict::Idle), (15, Verdict::Waiting)] {
        let mut node = Node::new();
        node.gpu_present = true;
        node.capabilities.push(capability("gpu", CapabilityStatus::Ok));
        node.gpus = vec![wire::Gpu { uuid: "A".into(), busy_ns: Some(0), ..wire::Gpu::default() }];
        node.quiet(1);
        for _ in 0..15_u64.div_ceil(minutes) {
            sleeps(&mut node, 2 * minutes, Class::Workload, 0);
        }
        assert_eq!(node.judge().verdict, expected, "{minutes} minutes");
    }
}

#[test]
fn whoever_it_is_of_waits_but_housekeeping_and_the_agent() {
    for (class, expected) in WHOSE {
        let mut node = Node::new();
        sleeps(&mut node, 70, class, 60 * MINUTE_NS);
        assert_eq!(node.judge().verdict, expected, "{class:?}");
    }
}

#[test]
fn where_schedules_do_not_wait_sleepers_do_not() {
    let mut node = Node::new();
    sleeps(&mut node, 70, Class::Workload, 60 * MINUTE_NS);
    assert_eq!(node.judge().verdict, Verdict::Waiting);
    let case = node.case();
    let ignores = Case { policy: Policy { schedules_wait: false, ..case.policy.clone() }, ..case };
    assert_eq!(judge(&ignores).verdict, Verdict::Idle);
}

#[test]
fn a_kernel_that_does_not_show_who_sleeps_is_judged_by_all_else() {
    let mut node = Node::new();
    node.capabilities.push(capability("timed_waits", CapabilityStatus::Unsupported));
    assert_eq!(node.quiet(70).judge().verdict, Verdict::Idle);
}
