//! What is read of an inventory, and what it costs.

use super::*;
use crate::inventory::{
    BatchJob, ComputeEnvironment, EcsContainerInstance, EcsTask, Inventory, JobQueue, Listing,
    sample::{listing, of_batch},
};
use jiff::SignedDuration;
use model::{HourlyRate, ResourceKind};
use std::collections::HashMap;

mod terminable;
mod workers;

const NOW: Timestamp = Timestamp::constant(1_790_000_000, 0);
const POLICY: BatchPolicy = BatchPolicy {
    blocked_after_s: 1,
    starting_after_s: 1,
    lost_after_s: 1,
    straggling_after_s: 1,
    held_after_s: 1,
    orphaned_after_s: 1,
};
const KINDS: [ResourceKind; 5] = [
    ResourceKind::BatchComputeEnvironment,
    ResourceKind::BatchJobQueue,
    ResourceKind::BatchJob,
    ResourceKind::EcsContainerInstance,
    ResourceKind::EcsTask,
];

fn ago(seconds: i64) -> Timestamp {
    NOW - SignedDuration::from_secs(seconds)
}

/// A job of the queue `q`, which the environment `e` serves, whose cluster is `omics`.
fn job(id: &str, facts: &str) -> BatchJob {
    BatchJob { queue: Some("arn:q".into()), ..of_batch(ResourceKind::BatchJob, id, facts) }
}

fn inventory(jobs: Vec<BatchJob>) -> Inventory {
    let queue: JobQueue =
        of_batch(ResourceKind::BatchJobQueue, "q", r#"{"environments": [{"order": 1, "arn": "arn:e"}]}"#);
    let environment: ComputeEnvironment = of_batch(
        ResourceKind::BatchComputeEnvironment,
        "e",
        r#"{"management": "MANAGED", "resource_type": "EC2", "min_vcpus": 8, "ecs_cluster_arn": "arn:aws:ecs:x:1:cluster/omics"}"#,
    );
    let listings = KINDS.map(|kind| listed(kind, true)).into();
    Inventory {
        batch_compute_environments: vec![environment],
        batch_job_queues: vec![queue],
        batch_jobs: jobs,
        listings,
        ..Inventory::default()
    }
}

fn listed(kind: ResourceKind, complete: bool) -> Listing {
    Listing { kind: Some(kind.into()), ..listing(Some("123456789012"), Some("eu-central-1"), complete) }
}

/// Without the list of one kind.
fn failed(kind: ResourceKind, mut inventory: Inventory) -> Inventory {
    for listing in &mut inventory.listings {
        if listing.kind == Some(kind.into()) {
            *listing = listed(kind, false);
        }
    }
    inventory
}

fn read(inventory: &Inventory, history: &BatchHistory) -> HashMap<String, BatchInputs> {
    let all = batch_resources(inventory, &Known::of(inventory), [], history, NOW, POLICY);
    assert!(all.is_sorted_by_key(|one| one.id.clone()));
    all.into_iter().map(|one| (one.id.id, one.inputs)).collect()
}

fn job_of(inventory: &Inventory, history: &BatchHistory, id: &str) -> JobState {
    match read(inventory, history).remove(id).and_then(|inputs| inputs.state) {
        Some(BatchState::Job(job)) => job,
        other => panic!("{id} is no job: {other:?}"),
    }
}

fn queue_of(inventory: &Inventory, history: &BatchHistory) -> Option<QueueJobs> {
    match read(inventory, history).remove("q").and_then(|inputs| inputs.state) {
        Some(BatchState::Queue(queue)) => queue.jobs,
        None => None,
        other => panic!("{other:?}"),
    }
}

fn environment_of(inventory: &Inventory) -> EnvironmentState {
    match read(inventory, &BatchHistory::default()).remove("e").and_then(|inputs| inputs.state) {
        Some(BatchState::Environment(environment)) => environment,
        other => panic!("{other:?}"),
    }
}

fn times(facts: &str, fields: &[(&str, i64)]) -> String {
    let mut facts: serde_json::Map<String, serde_json::Value> = serde_json::from_str(facts).expect("facts");
    facts.extend(fields.iter().map(|(name, seconds)| ((*name).to_owned(), ago(*seconds).to_string().into())));
    serde_json::Value::from(facts).to_string()
}

#[test]
fn the_first_job_of_a_queue_is_one_that_batch_says_to_be_blocked_or_has_waited_longest() {
    let waiting = |id: &str, facts: &str, seconds| job(id, &times(facts, &[("created_at", seconds)]));
    let runnable = r#"{"status": "RUNNABLE"}"#;
    let blocked = r#"{"status": "RUNNABLE", "status_reason": "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY - none"}"#;
    // The reason of the attempt before is none of its waiting.
    let retried = r#"{"status": "RUNNABLE", "status_reason": "Host EC2 (instance i-1) terminated."}"#;
    let first = |jobs: Vec<BatchJob>| {
        queue_of(&inventory(jobs), &BatchHistory::default()).and_then(|jobs| jobs.first).expect("a job that waits")
    };
    let of_two = first(vec![waiting("new", runnable, 60), waiting("old", retried, 600)]);
    assert_eq!((of_two.id.as_str(), of_two.since, of_two.blocked_by), ("old", Some(ago(600)), None));
    let of_three = first(vec![waiting("a", runnable, 600), waiting("b", blocked, 60), waiting("c", blocked, 30)]);
    assert_eq!((of_three.id.as_str(), of_three.since), ("b", Some(ago(60))));
    assert!(of_three.blocked_by.is_some_and(|why| why.starts_with("CAPACITY:")));
    let one = waiting("b", blocked, 60);
    let history = BatchHistory { blocked_since: [(one.id.clone(), ago(20))].into(), ..BatchHistory::default() };
    let first = queue_of(&inventory(vec![one]), &history).and_then(|jobs| jobs.first).expect("a job that waits");
    assert_eq!(first.blocked_since, Some(ago(20)));
}

#[test]
fn since_when_a_job_could_have_been_placed_batch_tells_only_of_one_that_waited_for_nothing_else() {
    let depends = r#"{"status": "RUNNABLE", "depends_on": [{"job_id": "before", "kind": null}]}"#;
    let tried = r#"{"status": "RUNNABLE", "attempts": [{"number": 1, "tasks": []}]}"#;
    let child = r#"{"status": "RUNNABLE", "array": {"parent": "array", "index": 1}}"#;
    let array = |facts: &str| job("array", facts);
    let whole = r#"{"status": "PENDING", "array": {"size": 9}}"#;
    let sequential =
        r#"{"status": "PENDING", "array": {"size": 9}, "depends_on": [{"job_id": null, "kind": "SEQUENTIAL"}]}"#;
    for (one, parent, told) in [
        (depends, None, false),
        (tried, None, false),
        (child, Some(whole), true),
        (child, Some(sequential), false),
        (child, None, false),
    ] {
        let job = job("one", &times(one, &[("created_at", 600)]));
        let history = BatchHistory { lasting_since: [(job.id.clone(), ago(60))].into(), ..BatchHistory::default() };
        let jobs = [Some(job), parent.map(array)].into_iter().flatten().collect();
        let inventory = inventory(jobs);
        let first = queue_of(&inventory, &history).and_then(|jobs| jobs.first).expect("a job that waits");
        assert_eq!(first.since, Some(if told { ago(600) } else { ago(60) }), "{one} {parent:?}");
        let first = queue_of(&inventory, &BatchHistory::default()).and_then(|jobs| jobs.first).expect("a job");
        assert_eq!(first.since, told.then(|| ago(600)), "{one} {parent:?}, and no history");
    }
}

#[test]
fn what_runs_in_a_queue_is_counted_and_an_array_as_a_whole_is_nowhere() {
    let jobs = vec![
        job("array", r#"{"status": "RUNNABLE", "array": {"size": 2}}"#),
        job("array:0", &times(r#"{"status": "RUNNING", "array": {"parent": "array"}}"#, &[("started_at", 50)])),
        job("array:1", r#"{"status": "RUNNABLE", "array": {"parent": "array"}}"#),
        job("over", &times(r#"{"status": "SUCCEEDED"}"#, &[("started_at", 40), ("stopped_at", 30)])),
    ];
    let jobs = queue_of(&inventory(jobs), &BatchHistory::default()).expect("jobs");
    assert_eq!((jobs.runnable, jobs.placed, jobs.last_move), (1, 1, Some(ago(30))));
    let waits = inventory(vec![job("one", r#"{"status": "RUNNABLE"}"#)]);
    assert!(queue_of(&waits, &BatchHistory::default()).is_some());
    let unread = failed(ResourceKind::BatchJob, inventory(Vec::new()));
    assert_eq!(queue_of(&unread, &BatchHistory::default()), None);
    assert_eq!(environment_of(&unread).jobs, None, "no list of jobs is no empty list");
}

#[test]
fn a_job_that_may_be_any_queues_leaves_no_queue_without_jobs() {
    let waits = |queue: Option<&str>| {
        let mut job = job("j", &times(r#"{"status": "RUNNABLE"}"#, &[("created_at", 60)]));
        job.queue = queue.map(str::to_owned);
        inventory(vec![job])
    };
    let none = BatchHistory::default();
    for known in ["arn:q", "q", "arn:aws:batch:eu-central-1:123456789012:job-queue/q"] {
        assert_eq!(queue_of(&waits(Some(known)), &none).map(|jobs| jobs.runnable), Some(1), "{known}");
        assert_eq!(environment_of(&waits(Some(known))).jobs.map(|jobs| jobs.live), Some(1), "{known}");
    }
    for unknown in [None, Some("arn:other")] {
        assert_eq!(environment_of(&waits(unknown)).jobs, None, "{unknown:?}");
        assert_eq!(environment_of(&waits(unknown)).machines, None, "{unknown:?}");
        assert_eq!(queue_of(&waits(unknown), &none), None, "{unknown:?}");
    }
}

#[test]
fn a_sibling_that_ended_before_it_began_is_no_measure() {
    let part = |number: u32| format!(r#"{{"status": "FAILED", "array": {{"parent": "a", "index": {number}}}}}"#);
    let jobs = vec![
        job("a", r#"{"status": "PENDING", "array": {"size": 2}}"#),
        job("a:0", &times(&part(0), &[("started_at", 10), ("stopped_at", 90)])),
        job("a:1", &times(&part(1).replace("FAILED", "RUNNING"), &[("started_at", 900)])),
    ];
    assert_eq!(job_of(&inventory(jobs), &BatchHistory::default(), "a:1").siblings, None);
}

fn task(id: &str, facts: &str) -> EcsTask {
    of_batch(ResourceKind::EcsTask, &format!("omics/{id}"), facts)
}

const ON: &str = r#"{"status": "RUNNING", "tasks": [{"arn": "arn:aws:ecs:x:1:task/omics/t", "containers": []}]}"#;

#[test]
fn a_task_is_as_ecs_says_or_missing_since_no_list_has_it() {
    let jobs = || vec![job("j", &times(ON, &[("started_at", 900)]))];
    let state = |inventory: &Inventory, history: &BatchHistory| job_of(inventory, history, "j").task;
    let none = BatchHistory::default();
    let missing = inventory(jobs());
    assert_eq!(state(&missing, &none), TaskState::Missing { since: None });
    let key = task("t", "{}").id;
    let ended = BatchHistory { missing_since: [(key, ago(30))].into(), ..BatchHistory::default() };
    assert_eq!(state(&missing, &ended), TaskState::Missing { since: Some(ago(30)) });
    let never = BatchHistory { lasting_since: [(jobs()[0].id.clone(), ago(99))].into(), ..BatchHistory::default() };
    assert_eq!(state(&missing, &never), TaskState::Missing { since: Some(ago(99)) }, "no list ever had it");
    let earlier =
        BatchHistory { lasting_since: [(jobs()[0].id.clone(), ago(2_000))].into(), ..BatchHistory::default() };
    assert_eq!(state(&missing, &earlier), TaskState::Missing { since: Some(ago(900)) }, "this attempt began later");
    let stopped = times(r#"{"status": "STOPPED", "stop_code": "SpotInterruption"}"#, &[("stopped_at", 20)]);
    let with = Inventory { ecs_tasks: vec![task("t", &stopped)], ..inventory(jobs()) };
    let known = TaskState::Known {
        status: Some("STOPPED".into()),
        stopped_at: Some(ago(20)),
        reason: Some("SpotInterruption".into()),
    };
    assert_eq!(state(&with, &none), known);
    assert_eq!(job_of(&with, &none, "j").since, Some(ago(900)), "Batch says since when it runs");
    let unread = read(&failed(ResourceKind::EcsTask, inventory(jobs())), &none);
    assert_eq!(unread["j"].failed, [SnapshotPart::EcsTasks]);
    assert_eq!(read(&missing, &none)["j"].failed, []);
}

#[test]
fn a_task_of_an_attempt_that_ended_says_nothing_of_the_next_one() {
    let mut job = job("j", &times(&ON.replace("RUNNING", "STARTING"), &[("created_at", 900)]));
    let attempt = times(r#"{"number": 1, "tasks": []}"#, &[("stopped_at", 40)]);
    let mut attempt: crate::inventory::Attempt = serde_json::from_str(&attempt).expect("an attempt");
    attempt.tasks.clone_from(&job.tasks);
    job.attempts = vec![attempt];
    let history = BatchHistory { lasting_since: [(job.id.clone(), ago(600))].into(), ..BatchHistory::default() };
    let stopped = task("t", &times(r#"{"status": "STOPPED"}"#, &[("stopped_at", 500)]));
    let inventory = Inventory { ecs_tasks: vec![stopped], ..inventory(vec![job]) };
    let state = job_of(&inventory, &history, "j");
    assert_eq!((state.task, state.since), (TaskState::NotNamed, Some(ago(40))));
}

#[test]
fn the_head_of_a_job_is_the_one_in_whose_task_it_was_submitted() {
    let by = |session: &str| LaunchedBy {
        principal: Some(format!("arn:aws:sts::123456789012:assumed-role/head/{session}")),
        ..LaunchedBy::default()
    };
    let head = |status: &str| job("head", &times(&ON.replace("RUNNING", status), &[("stopped_at", 50)]));
    let child = || job("child", r#"{"status": "RUNNING"}"#);
    let part = || job("array:3", r#"{"status": "RUNNING", "array": {"parent": "array", "index": 3}}"#);
    let submitted = |session: &str| BatchHistory {
        submitted_by: [("child".to_owned(), by(session)), ("array".to_owned(), by(session))].into(),
        ..BatchHistory::default()
    };
    let of = |jobs, history: &BatchHistory, id| job_of(&inventory(jobs), history, id).head;
    let expected = Head { id: "head".into(), name: None, status: Some("FAILED".into()), ended_at: Some(ago(50)) };
    for id in ["child", "array:3"] {
        let all = || vec![head("FAILED"), child(), part()];
        assert_eq!(of(all(), &submitted("t"), id), Some(expected.clone()), "{id}");
        assert_eq!(of(all(), &submitted("u"), id), None, "no job's task");
        assert_eq!(of(all(), &BatchHistory::default(), id), None, "nobody knows who submitted it");
    }
    // An attempt before submitted it.
    let mut again = head("RUNNING");
    let attempt = times(r#"{"number": 1, "tasks": []}"#, &[("stopped_at", 40)]);
    let mut attempt: crate::inventory::Attempt = serde_json::from_str(&attempt).expect("an attempt");
    attempt.tasks = std::mem::take(&mut again.tasks);
    again.attempts = vec![attempt];
    let found = of(vec![again, child()], &submitted("t"), "child").expect("a head");
    assert_eq!(found.status.as_deref(), Some("RUNNING"));
    // Listed no more: as a finding keeps it, if it was over then.
    let kept = |head: Head| BatchHistory { heads: [(child().id, head)].into(), ..submitted("t") };
    assert_eq!(of(vec![child()], &kept(expected.clone()), "child"), Some(expected.clone()));
    let runs = Head { status: Some("RUNNING".into()), ended_at: None, ..expected };
    assert_eq!(of(vec![child()], &kept(runs), "child"), None);
    let nodes = job("child", r#"{"status": "RUNNING", "node": {"size": 2}}"#);
    assert_eq!(of(vec![head("FAILED"), nodes], &submitted("t"), "child"), None, "as a whole it is nowhere");
}

#[test]
fn since_when_a_job_starts_its_task_tells_or_the_history() {
    let starting = ON.replace("RUNNING", "STARTING");
    let jobs = || vec![job("j", &starting)];
    let history = BatchHistory { lasting_since: [(jobs()[0].id.clone(), ago(99))].into(), ..BatchHistory::default() };
    assert_eq!(job_of(&inventory(jobs()), &history, "j").since, Some(ago(99)));
    let made = task("t", &times("{}", &[("created_at", 120)]));
    let with = Inventory { ecs_tasks: vec![made], ..inventory(jobs()) };
    assert_eq!(job_of(&with, &history, "j").since, Some(ago(120)));
}

#[test]
fn the_last_child_of_an_array_is_compared_with_those_that_are_over() {
    let array = || job("a", r#"{"status": "PENDING", "array": {"size": 4}}"#);
    let child = |number: u32, status: &str, fields: &[(&str, i64)]| {
        let facts = format!(r#"{{"status": "{status}", "array": {{"parent": "a", "index": {number}}}}}"#);
        job(&format!("a:{number}"), &times(&facts, fields))
    };
    let last = || child(3, "RUNNING", &[("started_at", 900)]);
    let over = |number, from, until| child(number, "SUCCEEDED", &[("started_at", from), ("stopped_at", until)]);
    let siblings = |jobs: Vec<BatchJob>| job_of(&inventory(jobs), &BatchHistory::default(), "a:3").siblings;
    let all = siblings(vec![array(), over(0, 900, 800), over(1, 900, 600), over(2, 400, 390), last()]);
    assert_eq!(all, Some(Siblings { over: 3, timed: 3, longest_s: 300, last_end: ago(390) }));
    // Children that ended two days ago are listed no more.
    let some = siblings(vec![array(), over(2, 400, 390), last()]);
    assert_eq!(some, Some(Siblings { over: 3, timed: 1, longest_s: 10, last_end: ago(390) }));
    for status in ["RUNNING", "RUNNABLE", "SUBMITTED", "NEW"] {
        assert_eq!(siblings(vec![array(), over(0, 900, 800), child(1, status, &[]), last()]), None, "{status}");
    }
    assert_eq!(siblings(vec![over(0, 900, 800), last()]), None, "its array is not listed");
}

fn machine(instance: &str) -> EcsContainerInstance {
    let facts = format!(r#"{{"instance_id": "{instance}", "status": "ACTIVE"}}"#);
    of_batch(ResourceKind::EcsContainerInstance, &format!("omics/{instance}"), &facts)
}

fn key(instance: &str) -> ResourceKey {
    format!("aws:123456789012:eu-central-1:{instance}").parse().expect("a key")
}

fn known(micros: i64) -> Cost {
    Cost::Known { per_hour: HourlyRate::from_micros(micros), as_of: None }
}

#[test]
fn an_environment_costs_what_its_machines_do_and_that_is_known_of_all_or_none() {
    let held = Inventory { ecs_container_instances: vec![machine("i-1"), machine("i-2")], ..inventory(Vec::new()) };
    let state = environment_of(&held);
    assert_eq!((state.min_vcpus, state.machines), (Some(8), Some(2)));
    let day = SignedDuration::from_hours(24);
    assert_eq!(state.jobs, Some(EnvironmentJobs { live: 0, last_end: NOW - day }), "jobs are listed for a day");
    let (one, two, unpriced) = (known(100), known(23), Cost::Unknown { why: "no row".into() });
    let together = |costs: &[(&str, &Cost)]| {
        let keys: Vec<ResourceKey> = costs.iter().map(|(id, _)| key(id)).collect();
        let costs = keys.iter().zip(costs.iter().map(|(_, cost)| *cost)).collect();
        cost(&held, &Known::of(&held), &costs, &held.batch_compute_environments[0].id)
    };
    assert_eq!(together(&[("i-1", &one), ("i-2", &two)]), known(123));
    assert_eq!(together(&[("i-1", &one)]).rate(), None, "one is not listed");
    assert_eq!(together(&[("i-1", &one), ("i-2", &unpriced)]).rate(), None);
    let empty = inventory(Vec::new());
    let of_none = cost(&empty, &Known::of(&empty), &HashMap::new(), &empty.batch_compute_environments[0].id);
    assert_eq!(of_none.rate(), None, "nothing is registered, which is no price of zero");
    let unread = failed(ResourceKind::EcsContainerInstance, inventory(Vec::new()));
    let of_unread = cost(&unread, &Known::of(&unread), &HashMap::new(), &unread.batch_compute_environments[0].id);
    assert!(matches!(&of_unread, Cost::Unknown { why } if why.contains("could not be listed")), "{of_unread:?}");
    let queue = cost(&empty, &Known::of(&empty), &HashMap::new(), &empty.batch_job_queues[0].id);
    assert_eq!(queue, known(0));

    let ended = environment_of(&inventory(vec![job("j", &times(r#"{"status": "FAILED"}"#, &[("stopped_at", 60)]))]));
    assert_eq!(ended.jobs, Some(EnvironmentJobs { live: 0, last_end: ago(60) }));
    let busy = environment_of(&inventory(vec![job("j", r#"{"status": "PENDING"}"#)]));
    assert_eq!(
        (busy.jobs.map(|jobs| jobs.live), busy.machines),
        (Some(1), None),
        "not all of its machines are listed then"
    );
    let mut silent = inventory(Vec::new());
    silent.batch_job_queues[0].environments = None;
    assert_eq!(environment_of(&silent).jobs, None, "a queue that does not say may be its");
    for kind in [ResourceKind::BatchJob, ResourceKind::BatchJobQueue] {
        assert_eq!(environment_of(&failed(kind, inventory(Vec::new()))).jobs, None);
    }
    let mut serverless = inventory(Vec::new());
    serverless.batch_compute_environments[0].resource_type = Some("FARGATE".into());
    assert!(!read(&serverless, &BatchHistory::default()).contains_key("e"), "it keeps no machine");
}

#[test]
fn a_job_costs_what_its_machine_does_unless_others_run_on_it() {
    let on = |task: &str| {
        let arn = "arn:aws:ecs:x:1:container-instance/omics/i-1";
        format!(
            r#"{{"status": "RUNNING", "tasks": [{{"arn": "arn:aws:ecs:x:1:task/omics/{task}", "container_instance_arn": "{arn}", "containers": []}}]}}"#
        )
    };
    let placed = |jobs| {
        let mut machine = machine("i-1");
        machine.arn = "arn:aws:ecs:x:1:container-instance/omics/i-1".into();
        Inventory { ecs_container_instances: vec![machine], ..inventory(jobs) }
    };
    let (price, key) = (known(700), key("i-1"));
    let of_job = |inventory: &Inventory| {
        let costs = [(&key, &price)].into();
        cost(inventory, &Known::of(inventory), &costs, &inventory.batch_jobs[0].id)
    };
    assert_eq!(of_job(&placed(vec![job("j", &on("t"))])), known(700));
    let shared = of_job(&placed(vec![job("j", &on("t")), job("k", &on("u"))]));
    assert!(matches!(&shared, Cost::Unknown { why } if why.contains("runs 2 jobs")), "{shared:?}");
    assert_eq!(of_job(&inventory(vec![job("j", ON)])).rate(), None, "nobody knows where it runs");
}
