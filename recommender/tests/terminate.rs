//! The rule that terminates a stuck job: when it plans, what the plan says, and when not.

use guards::{JobRefusal, Refusal};
use jiff::Timestamp;
use model::{
    HourlyRate, Verdict,
    address::Told,
    job::{JobAttempt, JobFacts, JobPlace, JobShape},
    plan::{Action, ActionClass, Charge, Condition, Loss, Saving},
};
use recommender::rules::{
    Input, Price,
    terminate::{NoPlan, TerminateInput, plan},
};
use std::collections::BTreeMap;

const JOB: &str = "5f0c5c6e-0000-4000-8000-000000000001";
const NOW: Timestamp = Timestamp::constant(1_790_000_000, 0);
const SINCE: Timestamp = Timestamp::constant(1_789_990_000, 0);

fn input(change: impl FnOnce(&mut TerminateInput)) -> TerminateInput {
    let job = JobFacts {
        account: "123456789012".into(),
        region: "eu-central-1".into(),
        job_id: JOB.into(),
        name: Some("align-7".into()),
        status: Some("RUNNING".into()),
        shape: JobShape::Plain,
        on_kubernetes: false,
        is_ending: false,
        place: Some(JobPlace { queue: "arn:q".into(), definition: "arn:d:1".into(), environment: "arn:e".into() }),
        attempt: Some(JobAttempt {
            number: 1,
            started_at: Timestamp::UNIX_EPOCH,
            task: "arn:t".into(),
            container_instance: "arn:c".into(),
            machine: "i-1".into(),
        }),
        dependents: Told::Nothing,
        heads: Told::Nothing,
        submitted_by: Some("arn:aws:iam::123456789012:user/ada".into()),
        attempts_allowed: Some(3),
        tags: Some(BTreeMap::new()),
        queue_tags: Some(BTreeMap::new()),
        environment_tags: Some(BTreeMap::new()),
        machine_tags: Some(BTreeMap::new()),
    };
    let mut input = TerminateInput {
        finding: "f-1".into(),
        record: 2,
        resource: format!("aws:123456789012:eu-central-1:job/{JOB}").parse().expect("a key"),
        verdict: Verdict::Stuck,
        doubt: None,
        since: SINCE,
        job,
        price: Price::OnDemand(HourlyRate::from_micros(90_000)),
        now: NOW,
    };
    change(&mut input);
    input
}

#[test]
fn a_stuck_job_is_planned_to_be_terminated_for_good_by_two() {
    let input = input(|_| ());
    let sealed = plan(&input).expect("a plan");
    let content = sealed.content();
    assert_eq!((sealed.class(), content.actions.as_slice()), (ActionClass::Destructive, &[Action::TerminateJob][..]));
    assert_eq!(sealed.class().least_approvers(), 2);
    assert!(content.reversal.is_empty());
    assert_eq!(
        content.title,
        format!(
            "Terminate the stuck AWS Batch job {JOB} (align-7) on i-1 in eu-central-1 for good; Batch does not try it again"
        )
    );
    let (place, attempt) = (input.job.place.clone().expect("a place"), input.job.attempt.clone().expect("an attempt"));
    assert_eq!(
        content.conditions,
        [
            Condition::TagsPermit,
            Condition::StateIs { state: "RUNNING".into() },
            Condition::JobPlaceIs { place },
            Condition::JobAttemptIs { attempt },
            Condition::NothingDependsOnIt,
            Condition::StillStuck { since: SINCE },
        ]
    );
    assert_eq!(sealed.machine_of_job(), Some("i-1"));
    assert_eq!(
        content.lost,
        [Loss::Job { id: JOB.into(), submitted_by: input.job.submitted_by.clone() }, Loss::Retries { allowed: 3 }]
    );
    assert_eq!(content.keeps_billing, [Charge::MachineOfJob { id: "i-1".into() }]);
    assert!(
        matches!(&content.net_saving, Saving::Unknown { why } if why.contains("$0.09")),
        "{:?}",
        content.net_saving
    );
    assert_eq!(
        Action::TerminateJob.command_line(&content.resource),
        format!("aws batch terminate-job --region eu-central-1 --job-id {JOB} --reason REASON")
    );
    assert_eq!(Action::TerminateJob.ends_in().0, "terminated");
    assert!(!Action::TerminateJob.has_dry_run());
}

#[test]
fn the_same_input_makes_the_same_plan_after_it_was_kept() {
    let input = input(|_| ());
    let text = serde_json::to_string(&input).expect("JSON");
    let read: TerminateInput = serde_json::from_str(&text).expect("an input");
    let again = Input::Terminate(Box::new(read)).plan().expect("a plan");
    assert_eq!(again, plan(&input).expect("a plan"));
    let text = serde_json::to_string(&again).expect("JSON");
    let read: model::plan::Plan = serde_json::from_str(&text).expect("the same plan");
    assert_eq!(read, again);
}

#[test]
fn another_attempt_is_another_plan() {
    let first = plan(&input(|_| ())).expect("a plan");
    let second = plan(&input(|input| input.job.attempt.as_mut().expect("an attempt").number = 2)).expect("a plan");
    assert!(!first.is_like(&second));
}

#[test]
fn a_standstill_that_began_anew_is_another_plan() {
    let first = plan(&input(|_| ())).expect("a plan");
    let second = plan(&input(|input| input.since = NOW)).expect("a plan");
    assert!(!first.is_like(&second) && first.content_hash() != second.content_hash());
}

#[test]
fn nothing_else_is_planned() {
    for verdict in [Verdict::Active, Verdict::Waiting, Verdict::Idle, Verdict::Unknown] {
        assert_eq!(plan(&input(|input| input.verdict = verdict)), Err(NoPlan::NotStuck { verdict }));
    }
    let why = "a thread of it sleeps until a timer wakes it".to_owned();
    let doubted = plan(&input(|input| input.doubt = Some(why.clone())));
    assert_eq!(doubted, Err(NoPlan::NotCertain { why }));
    let of = |change: fn(&mut JobFacts)| plan(&input(|input| change(&mut input.job)));
    let guarded = |by: JobRefusal| Err(NoPlan::Guarded { by: by.into() });
    let what = "a child of an array".to_owned();
    assert_eq!(of(|job| job.shape = JobShape::Child), guarded(JobRefusal::PartOfMore { what }));
    assert_eq!(of(|job| job.tags = None), Err(NoPlan::Guarded { by: Refusal::TagsUnreadable }));
    let what = "its attempt, its task or its machine".to_owned();
    assert_eq!(of(|job| job.attempt = None), guarded(JobRefusal::NotKnown { what }));
    let waits = |job: &mut JobFacts| job.dependents = Told::Something { what: "job 7".to_owned() };
    assert_eq!(of(waits), guarded(JobRefusal::DependedUpon { what: "job 7".to_owned() }));
}
