//! What lists say of a job that may be terminated.

use super::*;
use crate::{
    inventory::LaunchedBy,
    snapshot::{AroundJob, job_facts},
};
use model::{ResourceKey, address::Told, job::JobShape};
use std::collections::BTreeMap;

const TASK: &str = "arn:aws:ecs:x:1:task/omics/t1";
const MACHINE: &str = "arn:aws:ecs:x:1:container-instance/omics/m1";

fn furnished(change: impl FnOnce(&mut Inventory)) -> Inventory {
    let facts = format!(
        r#"{{"status": "RUNNING", "arn": "arn:j", "definition": "arn:d:3", "attempts_allowed": 2,
            "tasks": [{{"arn": "{TASK}", "container_instance_arn": "{MACHINE}", "containers": []}}]}}"#
    );
    let running = BatchJob { started_at: Some(ago(60)), ..job("j", &facts) };
    let mut inventory = inventory(vec![running]);
    inventory.batch_job_queues[0].arn = Some("arn:q".into());
    inventory.batch_job_queues[0].id.id = "q".into();
    inventory.batch_compute_environments[0].arn = Some("arn:e".into());
    let registered: EcsContainerInstance = of_batch(
        ResourceKind::EcsContainerInstance,
        "omics/m1",
        &format!(r#"{{"arn": "{MACHINE}", "cluster": "omics", "instance_id": "i-1"}}"#),
    );
    let task: EcsTask = of_batch(
        ResourceKind::EcsTask,
        "omics/t1",
        &format!(r#"{{"arn": "{TASK}", "cluster": "omics", "container_instance_arn": "{MACHINE}", "containers": []}}"#),
    );
    inventory.ecs_container_instances = vec![registered];
    inventory.ecs_tasks = vec![task];
    change(&mut inventory);
    inventory
}

fn facts(change: impl FnOnce(&mut Inventory)) -> model::job::JobFacts {
    let inventory = furnished(change);
    let key = inventory.batch_jobs[0].id.clone();
    job_facts((&inventory, &Known::of(&inventory)), &key, around(&[].into())).expect("a job")
}

/// Nothing of the job has run for half an hour.
fn around(submitted_by: &BTreeMap<String, LaunchedBy>) -> AroundJob<'_> {
    AroundJob { machine_tags: Some([].into()), submitted_by, rests_since: Some(ago(1_800)) }
}

#[test]
fn a_job_is_told_with_its_place_its_attempt_and_its_machine() {
    let told = facts(|_| ());
    let place = told.place.as_ref().expect("a place");
    let named = [&place.queue, &place.definition, &place.environment].map(String::as_str);
    assert_eq!(named, ["arn:q", "arn:d:3", "arn:e"]);
    let attempt = told.attempt.as_ref().expect("an attempt");
    assert_eq!((attempt.number, attempt.machine.as_str(), attempt.started_at), (1, "i-1", ago(60)));
    assert_eq!((attempt.task.as_str(), attempt.container_instance.as_str()), (TASK, MACHINE));
    assert_eq!((told.shape, told.dependents.clone()), (JobShape::Plain, Told::Nothing));
    assert_eq!(guards::may_terminate(&told), Ok(()));
}

#[test]
fn what_is_not_known_for_sure_is_not_known() {
    let attempt = |change: fn(&mut Inventory)| facts(change).attempt;
    assert_eq!(attempt(|inventory| inventory.ecs_container_instances.clear()), None);
    assert_eq!(attempt(|inventory| inventory.batch_jobs[0].started_at = None), None);
    assert_eq!(attempt(|inventory| inventory.batch_jobs[0].tasks.clear()), None);
    let second = attempt(|inventory| {
        let ended = r#"{"attempts": [{"number": 1, "tasks": [], "pod": null, "started_at": null, "stopped_at": null, "reason": null}]}"#;
        inventory.batch_jobs[0].attempts = job("x", ended).attempts;
    });
    assert_eq!(second.map(|attempt| attempt.number), Some(2));
    let place = |change: fn(&mut Inventory)| facts(change).place;
    assert_eq!(place(|inventory| inventory.batch_job_queues.clear()), None);
    assert_eq!(place(|inventory| inventory.batch_job_queues[0].environments = None), None);
    assert_eq!(place(|inventory| inventory.batch_compute_environments[0].ecs_cluster_arn = None), None);
    assert_eq!(place(|inventory| inventory.batch_jobs[0].definition = None), None);
    let twice = |inventory: &mut Inventory| {
        let twin = inventory.batch_compute_environments[0].clone();
        inventory.batch_compute_environments.push(twin);
    };
    assert_eq!(place(twice), None, "which of the two it is, nobody knows");
    let tags = |change: fn(&mut Inventory)| {
        let told = facts(change);
        [told.queue_tags.is_some(), told.environment_tags.is_some()]
    };
    assert_eq!(tags(|_| ()), [true, true]);
    assert_eq!(tags(|inventory| inventory.batch_job_queues[0].tags = None), [false, true]);
    assert_eq!(tags(|inventory| inventory.batch_compute_environments[0].tags = None), [true, false]);
    let nowhere = furnished(|_| ());
    let other: ResourceKey = ResourceKey { id: "other".into(), ..nowhere.batch_jobs[0].id.clone() };
    assert_eq!(job_facts((&nowhere, &Known::of(&nowhere)), &other, around(&[].into())), None);
}

#[test]
fn a_part_of_more_is_told_to_be_one_and_so_is_who_waits() {
    let shape = |of: &str| {
        let parts = job("x", of);
        let (array, node) = (parts.array, parts.node);
        facts(|inventory| (inventory.batch_jobs[0].array, inventory.batch_jobs[0].node) = (array, node)).shape
    };
    assert_eq!(shape(r#"{"array": {"parent": null, "size": 3, "index": null}}"#), JobShape::Array);
    assert_eq!(shape(r#"{"array": {"parent": "a", "size": null, "index": 1}}"#), JobShape::Child);
    assert_eq!(shape(r#"{"node": {"parent": null, "size": 2, "index": null, "is_main": null}}"#), JobShape::MultiNode);
    let waiting = |status: &str| {
        let other = job("w", &format!(r#"{{"status": "{status}", "depends_on": [{{"job_id": "j", "kind": null}}]}}"#));
        facts(|inventory| inventory.batch_jobs.push(other)).dependents
    };
    assert_eq!(waiting("PENDING"), Told::Something { what: "the job w".into() });
    assert_eq!(waiting("FAILED"), Told::Nothing);
    let untold = |change: fn(&mut BatchJob)| {
        let mut other = job("w", r#"{"status": "PENDING", "depends_on": null}"#);
        change(&mut other);
        facts(|inventory| inventory.batch_jobs.push(other)).dependents
    };
    let why = "of the job w AWS Batch does not tell it".to_owned();
    assert_eq!(untold(|_| ()), Told::Unknown { why }, "it is listed, and was not described");
    assert_eq!(untold(|job| job.status = Some("SUCCEEDED".into())), Told::Nothing);
    assert_eq!(untold(|job| job.id.location = "us-east-2".into()), Told::Nothing, "elsewhere");
    let child = untold(|job| {
        job.array = serde_json::from_str(r#"{"parent": "a", "size": null, "index": 1}"#).expect("a part");
    });
    assert_eq!(child, Told::Nothing, "its array is asked");
    let unread = failed(ResourceKind::BatchJob, furnished(|_| ()));
    let key = unread.batch_jobs[0].id.clone();
    let told = job_facts((&unread, &Known::of(&unread)), &key, around(&[].into())).expect("a job");
    assert!(matches!(told.dependents, Told::Unknown { .. }));
}

#[test]
fn who_submitted_jobs_that_are_not_over_is_asked_before_one_that_may_have_done_so_is_ended() {
    let of = |seconds_ago: i64, change: fn(&mut BatchJob), session: Option<&str>| {
        let mut other = job("child", r#"{"status": "RUNNABLE"}"#);
        other.created_at = Some(ago(seconds_ago));
        change(&mut other);
        let inventory = furnished(|inventory| {
            inventory.batch_jobs[0].created_at = Some(ago(7_200));
            inventory.batch_jobs.push(other);
        });
        let by = |session: &str| LaunchedBy {
            principal: Some(format!("arn:aws:sts::1:assumed-role/head/{session}")),
            ..LaunchedBy::default()
        };
        let known = session.map(|session| ("child".to_owned(), by(session))).into_iter().collect();
        let key = inventory.batch_jobs[0].id.clone();
        job_facts((&inventory, &Known::of(&inventory)), &key, around(&known)).expect("a job").heads
    };
    let unknown = |why: &str| Told::Unknown { why: why.to_owned() };
    let same = |_: &mut BatchJob| ();
    assert_eq!(of(3_600, same, Some("t1")), Told::Something { what: "the job child".into() });
    assert_eq!(of(3_600, same, Some("t2")), Told::Nothing, "in another task");
    assert_eq!(of(3_600, same, Some("ada")), Told::Nothing, "a person");
    assert_eq!(of(3_600, same, Some("i-1")), unknown("the job child was submitted by the role of its machine"));
    assert_eq!(of(3_600, same, None), unknown("who submitted the job child is not known"));
    assert_eq!(of(7_201, same, None), Told::Nothing, "it is older");
    assert_eq!(of(1_739, same, None), Told::Nothing, "it came when nothing of the other ran any more");
    assert_eq!(of(1_741, same, None), unknown("who submitted the job child is not known"), "clocks differ");
    let ageless = |job: &mut BatchJob| job.created_at = None;
    assert_eq!(of(3_600, ageless, None), unknown("who submitted the job child is not known"));
    assert_eq!(of(3_600, |job| job.status = Some("FAILED".into()), Some("t1")), Told::Nothing, "it is over");
    assert_eq!(of(3_600, |job| job.id.location = "us-east-2".into(), None), Told::Nothing, "elsewhere");
}
