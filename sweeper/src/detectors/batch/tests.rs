//! Both sides of every clause of the classes on what is AWS Batch's.

use super::super::{Answer, Class, FoundOn, replay};
use crate::snapshot::{
    BatchInputs, BatchPolicy, BatchState, Coverage, EnvironmentJobs, EnvironmentState, Head, Inputs, JobState,
    QueueJobs, QueueState, Siblings, SnapshotPart, TaskState, WaitingJob,
};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

mod workers;

const NOW: Timestamp = Timestamp::constant(1_790_000_000, 0);
/// Each of another length, so that no class takes another's.
const POLICY: BatchPolicy = BatchPolicy {
    blocked_after_s: 3_600,
    starting_after_s: 1_800,
    lost_after_s: 600,
    straggling_after_s: 3_000,
    held_after_s: 4_000,
    orphaned_after_s: 1_500,
};

fn ago(seconds: i64) -> Timestamp {
    NOW - SignedDuration::from_secs(seconds)
}

fn inputs(state: BatchState) -> BatchInputs {
    BatchInputs { at: NOW, coverage: Coverage::Complete, state: Some(state), policy: POLICY, failed: Vec::new() }
}

/// What a class says of inputs that went through their kept form.
fn of(class: Class, inputs: &BatchInputs) -> Answer {
    let text = serde_json::to_string(inputs).expect("JSON");
    let read: BatchInputs = serde_json::from_str(&text).expect("inputs");
    assert_eq!(read, *inputs);
    replay(class, &Inputs::Batch(Box::new(read)))
}

fn since(seconds: i64) -> Answer {
    Answer::Confirmed { since: ago(seconds), until: NOW, work: None }
}

#[track_caller]
fn refuted(answer: Answer, words: &str) {
    assert!(matches!(&answer, Answer::Refuted { because } if because.contains(words)), "{answer:?}");
}

fn job(status: &str, seconds: i64, task: TaskState) -> JobState {
    let (siblings, submitted_by, head) = (None, None, None);
    JobState { status: Some(status.into()), since: Some(ago(seconds)), task, siblings, submitted_by, head }
}

fn running_task() -> TaskState {
    TaskState::Known { status: Some("RUNNING".into()), stopped_at: None, reason: None }
}

fn stopped(seconds: Option<i64>) -> TaskState {
    TaskState::Known { status: Some("STOPPED".into()), stopped_at: seconds.map(ago), reason: None }
}

fn queue(change: impl FnOnce(&mut QueueJobs, &mut WaitingJob)) -> BatchInputs {
    let mut first =
        WaitingJob { id: "j-1".into(), name: None, since: Some(ago(3_600)), blocked_since: None, blocked_by: None };
    let mut jobs = QueueJobs { runnable: 2, placed: 0, last_move: None, first: None };
    change(&mut jobs, &mut first);
    inputs(BatchState::Queue(QueueState { jobs: Some(QueueJobs { first: Some(first), ..jobs }) }))
}

#[test]
fn a_blocked_queue_is_one_whose_first_job_cannot_be_placed_and_has_waited_for_long_enough() {
    let class = Class::BlockedQueue;
    assert_eq!(of(class, &queue(|_, _| {})), since(3_600), "nothing runs, nothing began to, and nobody says why");
    assert_eq!(of(class, &queue(|_, first| first.since = Some(ago(3_599)))), Answer::NotKnown);
    assert_eq!(of(class, &queue(|_, first| first.since = None)), Answer::NotKnown);
    assert_eq!(of(class, &queue(|_, first| first.since = Some(ago(-60)))), Answer::NotKnown, "a clock is off");
    refuted(of(class, &queue(|jobs, _| jobs.placed = 1)), "1 job of it is placed");
    let moved =
        |seconds, waits| queue(|jobs, first| (jobs.last_move, first.since) = (Some(ago(seconds)), Some(ago(waits))));
    refuted(of(class, &moved(60, 9_000)), "began or ended");
    refuted(of(class, &moved(3_599, 9_000)), "began or ended");
    assert_eq!(of(class, &moved(3_600, 9_000)), since(3_600), "it waited for its turn until then");
    assert_eq!(of(class, &moved(9_000, 3_600)), since(3_600), "before it waited");
    let none = QueueJobs { runnable: 0, placed: 3, last_move: None, first: None };
    refuted(of(class, &inputs(BatchState::Queue(QueueState { jobs: Some(none) }))), "no job of it waits");
    let unread = inputs(BatchState::Queue(QueueState { jobs: None }));
    assert_eq!(of(class, &unread), Answer::NotKnown, "its jobs could not be listed");
}

#[test]
fn what_batch_says_to_be_blocked_is_so_whatever_else_runs() {
    let said = |waits, moved: Option<i64>, blocked: Option<i64>| {
        let inputs = queue(|jobs, first| {
            (jobs.placed, jobs.last_move) = (7, moved.map(ago));
            (first.since, first.blocked_since) = (Some(ago(waits)), blocked.map(ago));
            first.blocked_by = Some("CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY".into());
        });
        of(Class::BlockedQueue, &inputs)
    };
    assert_eq!(said(3_600, None, None), since(3_600), "nothing has moved since it waits");
    assert_eq!(said(3_600, Some(9_000), Some(60)), since(3_600));
    assert_eq!(said(3_599, None, None), Answer::NotKnown);
    assert_eq!(said(9_000, Some(5), Some(3_600)), since(3_600), "others move, and Batch has said so for long enough");
    assert_eq!(said(9_000, Some(5), Some(3_599)), Answer::NotKnown);
    assert_eq!(said(9_000, Some(5), None), Answer::NotKnown, "since when Batch says so is not known");
}

#[test]
fn a_starting_job_has_been_so_for_long_enough() {
    let at = |status: &str, seconds| inputs(BatchState::Job(job(status, seconds, running_task())));
    assert_eq!(of(Class::StartingJob, &at("STARTING", 1_800)), since(1_800));
    assert_eq!(of(Class::StartingJob, &at("STARTING", 1_799)), Answer::NotKnown);
    refuted(of(Class::StartingJob, &at("RUNNING", 9_000)), "RUNNING");
    refuted(of(Class::StartingJob, &at("FAILED", 9_000)), "FAILED");
    let silent = JobState { status: None, ..job("", 9_000, running_task()) };
    assert_eq!(of(Class::StartingJob, &inputs(BatchState::Job(silent))), Answer::NotKnown);
    let unsaid = JobState { since: None, ..job("STARTING", 0, running_task()) };
    assert_eq!(of(Class::StartingJob, &inputs(BatchState::Job(unsaid))), Answer::NotKnown);
}

#[test]
fn a_lost_job_is_one_whose_task_has_stopped_or_is_not_known() {
    let class = Class::LostJob;
    let with = |status: &str, task| inputs(BatchState::Job(job(status, 9_000, task)));
    for status in ["STARTING", "RUNNING"] {
        assert_eq!(of(class, &with(status, stopped(Some(600)))), since(600));
        assert_eq!(of(class, &with(status, stopped(Some(599)))), Answer::NotKnown);
        assert_eq!(of(class, &with(status, stopped(None))), Answer::NotKnown);
        assert_eq!(of(class, &with(status, TaskState::Missing { since: Some(ago(600)) })), since(600));
        assert_eq!(of(class, &with(status, TaskState::Missing { since: Some(ago(599)) })), Answer::NotKnown);
        assert_eq!(of(class, &with(status, TaskState::Missing { since: None })), Answer::NotKnown);
        assert_eq!(of(class, &with(status, TaskState::NotNamed)), Answer::NotKnown, "Kubernetes runs it");
        refuted(of(class, &with(status, running_task())), "its task is RUNNING");
    }
    for status in ["SUCCEEDED", "FAILED", "RUNNABLE"] {
        refuted(of(class, &with(status, stopped(Some(9_000)))), status);
    }
    let mut unread = with("RUNNING", stopped(Some(600)));
    unread.failed = vec![SnapshotPart::EcsTasks];
    assert_eq!(of(class, &unread), Answer::NotKnown);
    assert_eq!(
        of(Class::StragglingJob, &unread),
        of(Class::StragglingJob, &with("RUNNING", running_task())),
        "it asks no ECS"
    );
}

#[test]
fn a_straggling_job_is_the_last_of_its_array_by_far() {
    let with = |seconds, change: fn(&mut Siblings)| {
        let mut siblings = Siblings { over: 9, timed: 3, longest_s: 1_000, last_end: ago(seconds - 1_200) };
        change(&mut siblings);
        let job = JobState { siblings: Some(siblings), ..job("RUNNING", seconds, running_task()) };
        of(Class::StragglingJob, &inputs(BatchState::Job(job)))
    };
    // The last of the others ended 1,200 s after it began.
    assert_eq!(with(3_000, |_| {}), since(1_800));
    assert_eq!(with(2_999, |_| {}), Answer::NotKnown);
    assert_eq!(with(3_000, |siblings| siblings.longest_s = 1_001), Answer::NotKnown, "less than three times as long");
    assert_eq!(with(3_003, |siblings| siblings.longest_s = 1_001), since(1_803));
    assert_eq!(with(3_000, |siblings| siblings.longest_s = 10), since(1_800));
    assert_eq!(with(2_999, |siblings| siblings.longest_s = 10), Answer::NotKnown, "not for long enough");
    assert_eq!(with(3_000, |siblings| siblings.timed = 2), Answer::NotKnown, "too few to compare with");
    assert_eq!(with(3_000, |siblings| siblings.last_end = ago(9_000)), since(2_000), "behind the longest of them");
    refuted(of(Class::StragglingJob, &inputs(BatchState::Job(job("RUNNING", 99_999, running_task())))), "last child");
    refuted(of(Class::StragglingJob, &inputs(BatchState::Job(job("SUCCEEDED", 9, running_task())))), "SUCCEEDED");
}

#[test]
fn an_orphaned_job_is_one_whose_head_has_failed_and_not_only_now() {
    let class = Class::OrphanedJob;
    let with = |status: &str, head: Option<&str>, ended: Option<i64>| {
        let id = "head".to_owned();
        let head = Some(Head { id, name: None, status: head.map(str::to_owned), ended_at: ended.map(ago) });
        of(class, &inputs(BatchState::Job(JobState { head, ..job(status, 9_000, running_task()) })))
    };
    for status in ["STARTING", "RUNNING"] {
        assert_eq!(with(status, Some("FAILED"), Some(1_500)), since(1_500));
        assert_eq!(with(status, Some("FAILED"), Some(1_499)), Answer::NotKnown);
        assert_eq!(with(status, Some("FAILED"), None), Answer::NotKnown, "when it failed is not known");
        assert_eq!(with(status, None, Some(9_000)), Answer::NotKnown);
        refuted(with(status, Some("RUNNING"), None), "its head is RUNNING");
        refuted(with(status, Some("SUCCEEDED"), Some(9_000)), "its head is SUCCEEDED");
        let alone = inputs(BatchState::Job(job(status, 9_000, running_task())));
        assert_eq!(of(class, &alone), Answer::NotKnown, "nobody knows who submitted it");
    }
    refuted(with("SUCCEEDED", Some("FAILED"), Some(9_000)), "the job is SUCCEEDED");
    refuted(with("RUNNABLE", Some("FAILED"), Some(9_000)), "the job is RUNNABLE");
}

fn environment(change: impl FnOnce(&mut EnvironmentState)) -> BatchInputs {
    let jobs = Some(EnvironmentJobs { live: 0, last_end: ago(5_000) });
    let mut state = EnvironmentState { min_vcpus: Some(16), held_since: Some(ago(4_000)), jobs, machines: Some(4) };
    change(&mut state);
    inputs(BatchState::Environment(state))
}

#[test]
fn held_capacity_is_kept_while_no_job_is_there_for_long_enough() {
    let class = Class::HeldCapacity;
    assert_eq!(of(class, &environment(|_| {})), since(4_000));
    assert_eq!(of(class, &environment(|it| it.held_since = Some(ago(3_999)))), Answer::NotKnown);
    assert_eq!(of(class, &environment(|it| it.held_since = None)), Answer::NotKnown, "this list is the first");
    let ended = |live, seconds| environment(|it| it.jobs = Some(EnvironmentJobs { live, last_end: ago(seconds) }));
    assert_eq!(of(class, &ended(0, 3_999)), Answer::NotKnown, "a job ended a moment ago");
    refuted(of(class, &ended(1, 9_000)), "1 job is in its queues");
    refuted(of(class, &environment(|it| it.min_vcpus = Some(0))), "no vCPU");
    assert_eq!(of(class, &environment(|it| it.min_vcpus = None)), Answer::NotKnown);
    assert_eq!(of(class, &environment(|it| it.jobs = None)), Answer::NotKnown);
    refuted(of(class, &environment(|it| it.machines = Some(0))), "no machine");
    assert_eq!(of(class, &environment(|it| it.machines = None)), since(4_000), "its price is not known then");
}

#[test]
fn what_batch_lists_no_more_is_gone_and_what_could_not_be_listed_is_not_known() {
    for class in Class::ALL.into_iter().filter(|class| class.found_on() == FoundOn::Batch) {
        let unlisted = |coverage| BatchInputs { coverage, state: None, ..queue(|_, _| {}) };
        let gone = of(class, &unlisted(Coverage::Complete));
        assert_eq!(gone, Answer::Gone { because: "AWS Batch lists it no more".into() });
        assert_eq!(of(class, &unlisted(Coverage::Failed)), Answer::NotKnown);
        assert_eq!(of(class, &unlisted(Coverage::NotAsked)), Answer::NotKnown);
        let other = replay(class, &Inputs::Machine(Box::new(workers::machine(None))));
        assert_eq!(other, Answer::NotKnown, "inputs of another kind");
    }
}

fn any_time() -> impl Strategy<Value = Option<Timestamp>> {
    prop::option::of((-200_i64..10_000).prop_map(ago))
}

prop_compose! {
    fn any_job()(
        status in prop::sample::select(vec![None, Some("STARTING"), Some("RUNNING"), Some("FAILED"), Some("HELD")]),
        since in any_time(),
        task in prop_oneof![
            Just(TaskState::NotNamed),
            any_time().prop_map(|since| TaskState::Missing { since }),
            (prop::sample::select(vec![None, Some("STOPPED"), Some("RUNNING")]), any_time()).prop_map(|(status, stopped_at)| {
                TaskState::Known { status: status.map(str::to_owned), stopped_at, reason: None }
            }),
        ],
        siblings in prop::option::of((0_u32..6, 0_u64..4_000, 0_i64..9_000).prop_map(|(timed, longest_s, end)| {
            Siblings { over: 5, timed, longest_s, last_end: ago(end) }
        })),
        head in prop::option::of((prop::sample::select(vec![None, Some("RUNNING"), Some("FAILED")]), any_time()).prop_map(|(status, ended_at)| {
            Head { id: "head".into(), name: None, status: status.map(str::to_owned), ended_at }
        })),
    ) -> BatchState {
        let submitted_by = None;
        BatchState::Job(JobState { status: status.map(str::to_owned), since, task, siblings, submitted_by, head })
    }
}

prop_compose! {
    fn any_queue()(
        placed in 0_u32..3,
        last_move in any_time(),
        first in prop::option::of((any_time(), any_time(), any::<bool>()).prop_map(|(since, blocked_since, is_blocked)| WaitingJob {
            id: "j".into(), name: None, since, blocked_since, blocked_by: is_blocked.then(|| "CAPACITY:X".to_owned()),
        })),
        is_listed in any::<bool>(),
    ) -> BatchState {
        let jobs = QueueJobs { runnable: u32::from(first.is_some()), placed, last_move, first };
        BatchState::Queue(QueueState { jobs: is_listed.then_some(jobs) })
    }
}

proptest! {
    /// Whatever is listed: nothing is confirmed where the list of it failed, nothing begins in the future or ends after the moment that was listed, and
    /// what is confirmed is so at any later moment at which nothing else has changed.
    #[test]
    fn nothing_is_confirmed_of_what_could_not_be_read_and_time_alone_ends_nothing(
        state in prop_oneof![any_job(), any_queue()],
        later in 0_i64..100_000,
    ) {
        for class in Class::ALL.into_iter().filter(|class| class.found_on() == FoundOn::Batch) {
            let read = inputs(state.clone());
            let answer = of(class, &read);
            let failed = BatchInputs { failed: vec![SnapshotPart::Inventory], ..read.clone() };
            prop_assert!(!matches!(of(class, &failed), Answer::Confirmed { .. }), "{:?}", state);
            if let Answer::Confirmed { since, until, .. } = answer {
                prop_assert!(since <= until && until == NOW, "{} {}", since, until);
                let then = BatchInputs { at: NOW + SignedDuration::from_secs(later), ..read };
                let still = matches!(of(class, &then), Answer::Confirmed { since: then, .. } if then == since);
                prop_assert!(still, "{:?}", state);
            }
        }
    }
}
