//! What is known of machines that AWS Batch started.

use super::*;
use crate::snapshot::{Worker, Workers};

#[test]
fn whether_a_worker_is_registered_is_known_where_all_machines_of_clusters_are_listed() {
    let instance = |tag: &str| crate::inventory::Instance {
        tags: [(tag.to_owned(), "batch".to_owned())].into(),
        ..crate::inventory::sample::instance()
    };
    let worker = |inventory: &Inventory| Workers::of(inventory, NOW, 60, 11_701).find(&instance("AWSBatchServiceTag"));
    let registered = |inventory: &Inventory| worker(inventory).and_then(|worker| worker.is_registered);
    let last_end = NOW - SignedDuration::from_hours(24);
    let expected = Worker {
        launched_at: Some(Timestamp::UNIX_EPOCH),
        is_registered: Some(false),
        last_end,
        kept_for_s: None,
        register_after_s: 60,
    };
    assert_eq!(worker(&inventory(Vec::new())), Some(expected));
    assert_eq!(
        Workers::of(&inventory(Vec::new()), NOW, 60, 11_701).find(&instance("aws:batch:job-id")),
        Some(expected)
    );
    assert_eq!(
        Workers::of(&inventory(Vec::new()), NOW, 60, 11_701).find(&instance("team")),
        None,
        "Batch did not start it"
    );
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
