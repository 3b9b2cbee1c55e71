//! What is known of machines that AWS Batch started.

use super::*;
use crate::{
    inventory::Instance,
    snapshot::{PlacedJobs, StartedBy, Worker, WorkerPolicy, Workers, environments_gone, lists_jobs},
};

const POLICY: WorkerPolicy = WorkerPolicy { register_after_s: 60, end_within_s: 900, lookback_s: 11_701 };

fn workers(inventory: &Inventory) -> Workers<'_> {
    let missing_since = environments_gone(inventory).into_iter().map(|key| (key, ago(700))).collect();
    Workers::of(inventory, missing_since, NOW, POLICY)
}

#[test]
fn whether_a_worker_is_registered_is_known_where_all_machines_of_clusters_are_listed() {
    let instance = |tag: &str| Instance {
        tags: [(tag.to_owned(), "batch".to_owned())].into(),
        ..crate::inventory::sample::instance()
    };
    let worker = |inventory: &Inventory| workers(inventory).find(&instance("AWSBatchServiceTag"));
    let registered = |inventory: &Inventory| worker(inventory).and_then(|worker| worker.is_registered);
    let last_end = NOW - SignedDuration::from_hours(24);
    let expected = Worker {
        launched_at: Some(Timestamp::UNIX_EPOCH),
        is_registered: Some(false),
        last_end,
        kept_for_s: None,
        register_after_s: 60,
        end_within_s: 900,
        started_by: StartedBy::NotTold,
    };
    assert_eq!(worker(&inventory(Vec::new())), Some(expected));
    assert_eq!(workers(&inventory(Vec::new())).find(&instance("aws:batch:job-id")), Some(expected));
    assert_eq!(workers(&inventory(Vec::new())).find(&instance("team")), None, "Batch did not start it");
    let its = Inventory { ecs_container_instances: vec![machine("i-0123456789abcdef0")], ..inventory(Vec::new()) };
    assert_eq!(registered(&its), Some(true));
    let kept = |min_vcpus, minutes| {
        let mut its = its.clone();
        let environment = &mut its.batch_compute_environments[0];
        (environment.min_vcpus, environment.min_scale_down_delay_minutes) = (min_vcpus, minutes);
        worker(&its).and_then(|worker| worker.kept_for_s)
    };
    assert_eq!(kept(Some(0), Some(30)), Some(1_800));
    assert_eq!(kept(Some(0), None), Some(1_200), "Batch's own");
    assert_eq!(kept(Some(0), Some(180)), Some(10_800));
    assert_eq!(kept(Some(0), Some(181)), None, "longer than heartbeats tell of");
    assert_eq!((kept(Some(8), Some(30)), kept(None, Some(30))), (None, None), "it may keep this one for good");
    let mut two = its.clone();
    two.batch_compute_environments[0].min_vcpus = Some(0);
    two.batch_compute_environments.push(two.batch_compute_environments[0].clone());
    assert_eq!(worker(&two).and_then(|worker| worker.kept_for_s), None, "nobody knows which is its environment");
    let waiting = inventory(vec![job("j", r#"{"status": "RUNNABLE"}"#)]);
    assert_eq!(registered(&waiting), Some(false), "jobs wait for it");
    let busy = inventory(vec![job("j", ON)]);
    assert_eq!(registered(&busy), None, "of a busy cluster only those are listed that jobs name");
    for kind in [
        ResourceKind::BatchComputeEnvironment,
        ResourceKind::BatchJobQueue,
        ResourceKind::BatchJob,
        ResourceKind::EcsContainerInstance,
    ] {
        assert_eq!(registered(&failed(kind, inventory(Vec::new()))), None, "{kind:?}");
    }
    let mut kubernetes = inventory(Vec::new());
    kubernetes.batch_compute_environments[0].ecs_cluster_arn = None;
    assert_eq!(registered(&kubernetes), None, "whose workers register elsewhere");
}

#[test]
fn the_environment_of_a_worker_is_the_one_that_its_tag_names() {
    let instance = |tags: &[(&str, &str)]| Instance {
        tags: tags.iter().map(|(tag, value)| ((*tag).to_owned(), (*value).to_owned())).collect(),
        ..crate::inventory::sample::instance()
    };
    let (started, names) = (("AWSBatchServiceTag", "batch"), |name| ("aws:batch:compute-environment", name));
    let of = |tags: &[(&str, &str)], change: fn(&mut Inventory)| {
        let mut all = Inventory { instances: vec![instance(tags)], ..inventory(Vec::new()) };
        change(&mut all);
        workers(&all).find(&all.instances[0]).map(|worker| worker.started_by)
    };
    let arn = "arn:aws:batch:eu-central-1:123456789012:compute-environment/e";
    for named in ["e", arn] {
        assert_eq!(of(&[started, names(named)], |_| {}), Some(StartedBy::Listed), "{named}");
    }
    let gone = StartedBy::Gone { since: Some(ago(700)) };
    assert_eq!(of(&[started, names("other")], |_| {}), Some(gone));
    assert_eq!(of(&[started], |_| {}), Some(StartedBy::NotTold), "it may be of the one that is listed");
    let none = |all: &mut Inventory| all.batch_compute_environments.clear();
    assert_eq!(of(&[started], none), Some(StartedBy::Gone { since: None }));
    let serverless = |all: &mut Inventory| all.batch_compute_environments[0].resource_type = Some("FARGATE".into());
    assert_eq!(of(&[started], serverless), Some(StartedBy::Gone { since: None }), "none has machines");
    let unread = |all: &mut Inventory| {
        *all = failed(ResourceKind::BatchComputeEnvironment, std::mem::take(all));
        all.batch_compute_environments.clear();
    };
    for tags in [&[started][..], &[started, names("e")]] {
        assert_eq!(of(tags, unread), Some(StartedBy::NotTold));
    }
}

#[test]
fn what_batch_runs_on_a_machine_is_counted_and_what_it_runs_nowhere_may_be_there() {
    let started = [("AWSBatchServiceTag".to_owned(), "batch".to_owned())].into();
    let batchs = Instance { tags: started, ..crate::inventory::sample::instance() };
    let anybodys = crate::inventory::sample::instance();
    let placed = |all: &Inventory| {
        let of = |one: &Instance| Known::of(all).placed_on(one, lists_jobs(all, &one.id));
        [of(&batchs), of(&anybodys)]
    };
    let on = |task: &str| {
        let arn = "arn:aws:ecs:x:1:container-instance/omics/i-0123456789abcdef0";
        format!(
            r#"{{"status": "RUNNING", "tasks": [{{"arn": "arn:aws:ecs:x:1:task/omics/{task}", "container_instance_arn": "{arn}", "containers": []}}]}}"#
        )
    };
    let with = |jobs: Vec<BatchJob>| {
        let mut machine = machine("i-0123456789abcdef0");
        machine.arn = "arn:aws:ecs:x:1:container-instance/omics/i-0123456789abcdef0".into();
        Inventory { ecs_container_instances: vec![machine], ..inventory(jobs) }
    };
    assert_eq!(placed(&with(Vec::new())), [PlacedJobs::None; 2]);
    let two = || vec![job("j", &on("t")), job("k", &on("u"))];
    assert_eq!(placed(&with(two())), [PlacedJobs::Some { count: 2 }; 2]);
    let over = job("j", &on("t").replace("RUNNING", "SUCCEEDED"));
    assert_eq!(placed(&with(vec![over])), [PlacedJobs::None; 2]);
    // Batch says that it runs, and not where.
    let somewhere = |status: &str| with(vec![job("j", &format!(r#"{{"status": "{status}"}}"#))]);
    assert_eq!(placed(&somewhere("RUNNING")), [PlacedJobs::NotTold; 2], "a cluster lists it, whoever started it");
    assert_eq!(placed(&somewhere("STARTING")), [PlacedJobs::None; 2], "it has not begun");
    assert_eq!(placed(&inventory(vec![job("j", &on("t"))])), [PlacedJobs::NotTold, PlacedJobs::None]);
    let array = job("array", r#"{"status": "PENDING", "array": {"size": 2}}"#);
    assert_eq!(placed(&with(vec![array])), [PlacedJobs::None; 2], "as a whole it is nowhere");
    for kind in [ResourceKind::BatchJob, ResourceKind::EcsTask, ResourceKind::EcsContainerInstance] {
        let unread = failed(kind, with(Vec::new()));
        assert_eq!(placed(&unread), [PlacedJobs::NotTold; 2], "{kind:?}");
    }
}
