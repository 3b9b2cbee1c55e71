//! What AWS Batch runs, keeps waiting and keeps ready: since when, by the kept history, and at what cost.

use super::{Context, SweepError};
use crate::{
    config::Config,
    detectors::FoundOn,
    findings::Finding,
    inventory::{BatchJob, ComputeEnvironment, Inventory},
    pricing::Cost,
    snapshot::{BatchHistory, BatchPolicy, BatchResource, Known, Machine, batch_cost, batch_resources, task_of},
    store::Store,
};
use jiff::Timestamp;
use model::{ResourceKey, ResourceKind};
use serde::Deserialize;
use std::{collections::HashMap, time::Duration};

/// Everything of it that may be waste, or that an open finding names.
pub(super) async fn read(
    context: &Context,
    inventory: &Inventory,
    machines: &[Machine],
    open: &[Finding],
    now: Timestamp,
) -> Result<Vec<BatchResource>, SweepError> {
    let known = Known::of(inventory);
    let history = history(&context.store, inventory, &known).await?;
    let named = open.iter().filter(|finding| finding.class.found_on() == FoundOn::Batch);
    let named = named.map(|finding| &finding.resource);
    let mut resources = batch_resources(inventory, &known, named, &history, now, policy(&context.config));
    let costs: HashMap<&ResourceKey, &Cost> =
        machines.iter().map(|machine| (&machine.subject.id, &machine.cost)).collect();
    for resource in &mut resources {
        resource.cost = batch_cost(inventory, &known, &costs, &resource.id);
    }
    Ok(resources)
}

fn policy(config: &Config) -> BatchPolicy {
    let of = |duration: Duration| duration.as_secs();
    let batch = &config.batch;
    BatchPolicy {
        blocked_after_s: of(batch.blocked_after),
        starting_after_s: of(batch.starting_after),
        lost_after_s: of(batch.lost_after),
        straggling_after_s: of(batch.straggling_after),
        held_after_s: of(batch.held_after),
    }
}

async fn history(store: &Store, inventory: &Inventory, known: &Known<'_>) -> Result<BatchHistory, SweepError> {
    let mut history = BatchHistory::default();
    for status in ["RUNNABLE", "STARTING", "RUNNING"] {
        let jobs = inventory.batch_jobs.iter().filter(|job| job.status.as_deref() == Some(status));
        // Of one that runs it is asked for only where its task is missing: Batch says when it began.
        let asked = |job: &&BatchJob| status != "RUNNING" || known.misses_task_of(job);
        let keys: Vec<ResourceKey> = jobs.filter(asked).map(|job| job.id.clone()).collect();
        let has_it = |record: &str| status_of(record).as_deref() == Some(status);
        history.lasting_since.extend(store.lasting_since(ResourceKind::BatchJob.into(), &keys, has_it).await?);
    }
    let keeps = |environment: &&ComputeEnvironment| environment.min_vcpus.is_some_and(|min| min > 0);
    let environments = inventory.batch_compute_environments.iter().filter(keeps);
    let keys: Vec<ResourceKey> = environments.map(|environment| environment.id.clone()).collect();
    let kind = ResourceKind::BatchComputeEnvironment.into();
    history.lasting_since.extend(store.lasting_since(kind, &keys, kept_some).await?);
    let placed = inventory.batch_jobs.iter().filter(|job| job.is_placed() && known.misses_task_of(job));
    let tasks: Vec<ResourceKey> = placed.filter_map(task_of).collect();
    history.missing_since = store.missing_since(ResourceKind::EcsTask.into(), &tasks).await?;
    Ok(history)
}

/// Of a job's many facts its status is enough; what another version of this program kept otherwise shows nothing.
fn status_of(record: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Kept {
        status: Option<String>,
    }
    serde_json::from_str::<Kept>(record).ok()?.status
}

fn kept_some(record: &str) -> bool {
    #[derive(Deserialize)]
    struct Kept {
        min_vcpus: Option<u32>,
    }
    serde_json::from_str::<Kept>(record).is_ok_and(|kept| kept.min_vcpus.is_some_and(|min| min > 0))
}
