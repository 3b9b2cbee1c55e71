//! Both sides of every clause of the classes on machines that AWS Batch started.

use super::{NOW, ago, refuted, since};
use crate::{
    detectors::{Answer, Class, Of, of_machine, replay},
    inventory::InstanceState,
    snapshot::{Coverage, Inputs, MachineInputs, PlacedJobs, Presence, StartedBy, Worker},
    verdict::{Case, Decision, Judgement, Policy, Unknown},
};

fn worker(change: impl FnOnce(&mut Worker)) -> Option<Worker> {
    let mut worker = Worker {
        launched_at: Some(ago(1_200)),
        is_registered: Some(false),
        last_end: ago(86_400),
        kept_for_s: None,
        register_after_s: 1_200,
        end_within_s: 900,
        started_by: StartedBy::Listed,
    };
    change(&mut worker);
    Some(worker)
}

pub(super) fn machine(worker: Option<Worker>) -> MachineInputs {
    let presence = Presence {
        listed: Some(InstanceState::Running),
        coverage: Coverage::Complete,
        launched_at: None,
        last_heard: None,
        gone_after_s: 7 * 86_400,
        silent_after_s: 3_600,
    };
    let case = Case::new(NOW.as_millisecond(), Policy::default(), Vec::new());
    MachineInputs { worker, ..MachineInputs::new(presence, case) }
}

#[test]
fn an_unregistered_worker_had_time_to_register_and_did_not() {
    let of = |worker| replay(Class::UnregisteredWorker, &Inputs::Machine(Box::new(machine(worker))));
    assert_eq!(of(worker(|_| {})), since(1_200));
    assert_eq!(of(worker(|it| it.launched_at = Some(ago(1_199)))), Answer::NotKnown, "it may still boot");
    assert_eq!(of(worker(|it| it.launched_at = None)), Answer::NotKnown);
    assert_eq!(of(worker(|it| it.is_registered = None)), Answer::NotKnown, "not all machines of clusters are listed");
    refuted(of(worker(|it| it.is_registered = Some(true))), "registered");
    refuted(of(None), "no tag");
    let long_ago = |last_end| worker(|it| (it.launched_at, it.last_end) = (Some(ago(90_000)), ago(last_end)));
    assert_eq!(of(long_ago(2_000)), since(2_000), "a job may have run on it until then");
    assert_eq!(of(long_ago(1_199)), Answer::NotKnown);
}

#[test]
fn an_abandoned_worker_is_one_whose_environment_is_gone() {
    let of = |worker| replay(Class::AbandonedWorker, &Inputs::Machine(Box::new(machine(worker))));
    let gone = |since: Option<i64>| worker(|it| it.started_by = StartedBy::Gone { since: since.map(ago) });
    assert_eq!(of(gone(Some(600))), since(600));
    assert_eq!(of(gone(Some(9_000))), since(1_200), "it was started later");
    assert_eq!(of(gone(None)), since(0), "from the first sweep on that sees it");
    let with = |change: fn(&mut Worker)| {
        of(gone(Some(600)).map(|mut it| {
            change(&mut it);
            it
        }))
    };
    assert_eq!(with(|it| it.launched_at = Some(ago(1_199))), Answer::NotKnown, "it may still boot");
    assert_eq!(with(|it| it.launched_at = None), Answer::NotKnown);
    assert_eq!(with(|it| it.is_registered = None), since(600), "whatever else runs in the region");
    refuted(with(|it| it.is_registered = Some(true)), "registered");
    refuted(with(|it| it.started_by = StartedBy::Listed), "is listed");
    assert_eq!(with(|it| it.started_by = StartedBy::NotTold), Answer::NotKnown);
    refuted(of(None), "no tag");
}

/// A machine of an environment that keeps one for twenty minutes without a job, idle for so many seconds by its agent's word.
fn idle_for(seconds: i64, kept_for_s: Option<u64>) -> [Answer; 2] {
    idle_with(PlacedJobs::None, seconds, kept_for_s)
}

fn idle_with(jobs: PlacedJobs, seconds: i64, kept_for_s: Option<u64>) -> [Answer; 2] {
    let worker = worker(|it| (it.is_registered, it.kept_for_s) = (Some(true), kept_for_s));
    let inputs = MachineInputs { jobs, ..machine(worker) };
    let (start, end) = (ago(seconds).as_millisecond(), NOW.as_millisecond());
    let total = serde_json::from_str(&format!(r#"{{"start_unix_ms":{start},"end_unix_ms":{end},"lost_events":0}}"#));
    let idle = Judgement {
        verdict: model::Verdict::Idle,
        since_unix_ms: Some(start),
        decision: Decision::AllQuiet { observations: 1, total: total.expect("an observation") },
    };
    [Class::IdleWorker, Class::IdleNode].map(|class| {
        let Of::Machine(decide) = class.detector().answer else { panic!("found on machines") };
        of_machine(class.detector(), decide, &inputs, &idle)
    })
}

#[test]
fn an_idle_worker_is_one_that_batch_should_have_ended_and_no_idle_node_before() {
    assert_eq!(idle_for(2_100, Some(1_200)), [since(2_100), Answer::NotKnown]);
    assert_eq!(idle_for(2_099, Some(1_200)), [Answer::NotKnown, Answer::NotKnown], "Batch may be about to end it");
    assert_eq!(idle_for(2_100, Some(1_201))[0], Answer::NotKnown);
    assert_eq!(idle_for(9_000, None), [Answer::NotKnown, since(9_000)], "nobody ends it by itself");
    for jobs in [PlacedJobs::Some { count: 1 }, PlacedJobs::NotTold] {
        for kept_for_s in [Some(1_200), None] {
            let answers = idle_with(jobs, 9_000, kept_for_s);
            assert_eq!(answers, [Answer::NotKnown, Answer::NotKnown], "a job of it may only sleep");
        }
    }
    let active = Judgement {
        verdict: model::Verdict::Active,
        since_unix_ms: None,
        decision: Decision::Unknown(Unknown::NoAgent),
    };
    let inputs = machine(worker(|it| (it.is_registered, it.kept_for_s) = (Some(true), Some(1_200))));
    let Of::Machine(decide) = Class::IdleWorker.detector().answer else { panic!("found on machines") };
    let worked = of_machine(Class::IdleWorker.detector(), decide, &inputs, &active);
    assert!(matches!(worked, Answer::Refuted { .. }), "{worked:?}");
}
