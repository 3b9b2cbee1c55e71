//! What AWS Batch runs, keeps waiting and keeps ready: since when, by the kept history, and at what cost.

use super::{Context, SweepError, provider_metrics::Submissions};
use crate::{
    config::Config,
    detectors::FoundOn,
    findings::{Evidence, Finding},
    inventory::{BatchJob, ComputeEnvironment, Inventory},
    pricing::Cost,
    snapshot::{
        BatchHistory, BatchPolicy, BatchResource, BatchState, Head, Known, Machine, batch_cost, batch_resources,
        says_blocked, task_of,
    },
    store::Store,
};
use jiff::Timestamp;
use model::{ResourceKey, ResourceKind};
use serde::Deserialize;
use std::{collections::HashMap, time::Duration};

/// Everything of it that may be waste, or that an open finding names.
pub(super) async fn read(
    context: &Context,
    (inventory, known): (&Inventory, &Known<'_>),
    (machines, submissions): (&[Machine], Submissions),
    open: &[Finding],
    now: Timestamp,
) -> Result<Vec<BatchResource>, SweepError> {
    let mut history = history(&context.store, inventory, known).await?;
    history.submitted_by = submissions;
    let of_batch = || open.iter().filter(|finding| finding.class.found_on() == FoundOn::Batch);
    history.heads = of_batch().filter_map(|finding| Some((finding.resource.clone(), head(finding)?))).collect();
    let named = of_batch().map(|finding| &finding.resource);
    let mut resources = batch_resources(inventory, known, named, &history, now, policy(&context.config));
    let costs: HashMap<&ResourceKey, &Cost> =
        machines.iter().map(|machine| (&machine.subject.id, &machine.cost)).collect();
    for resource in &mut resources {
        resource.cost = batch_cost(inventory, known, &costs, &resource.id);
    }
    Ok(resources)
}

/// The job that had submitted a job when a finding was last confirmed: Batch lists one that has ended for a day.
fn head(finding: &Finding) -> Option<Head> {
    let Evidence::Batch(evidence) = &finding.evidence else { return None };
    match &evidence.batch.state {
        Some(BatchState::Job(job)) => job.head.clone(),
        _ => None,
    }
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
        orphaned_after_s: of(batch.orphaned_after),
    }
}

async fn history(store: &Store, inventory: &Inventory, known: &Known<'_>) -> Result<BatchHistory, SweepError> {
    let mut history = BatchHistory::default();
    for status in ["RUNNABLE", "STARTING", "RUNNING"] {
        let jobs = inventory.batch_jobs.iter().filter(|job| job.status.as_deref() == Some(status));
        // It is asked for only what Batch does not tell: thousands may wait behind one.
        let asked = |job: &&BatchJob| match status {
            "RUNNABLE" => known.placeable_since(job).is_none(),
            "RUNNING" => known.misses_task_of(job),
            _ => true,
        };
        let keys: Vec<ResourceKey> = jobs.filter(asked).map(|job| job.id.clone()).collect();
        let has_it = |record: &str| kept(record).status.as_deref() == Some(status);
        history.lasting_since.extend(store.lasting_since(ResourceKind::BatchJob.into(), &keys, has_it).await?);
    }
    let is_blocked = |job: &&BatchJob| job.status_reason.as_deref().is_some_and(says_blocked);
    let blocked =
        inventory.batch_jobs.iter().filter(|job| job.status.as_deref() == Some("RUNNABLE")).filter(is_blocked);
    let keys: Vec<ResourceKey> = blocked.map(|job| job.id.clone()).collect();
    let was_blocked = |record: &str| {
        let kept = kept(record);
        kept.status.as_deref() == Some("RUNNABLE") && kept.status_reason.as_deref().is_some_and(says_blocked)
    };
    history.blocked_since = store.lasting_since(ResourceKind::BatchJob.into(), &keys, was_blocked).await?;
    let keeps = |environment: &&ComputeEnvironment| environment.min_vcpus.is_some_and(|min| min > 0);
    let environments = inventory.batch_compute_environments.iter().filter(keeps);
    let keys: Vec<ResourceKey> = environments.map(|environment| environment.id.clone()).collect();
    let kind = ResourceKind::BatchComputeEnvironment.into();
    let kept_some = |record: &str| kept(record).min_vcpus.is_some_and(|min| min > 0);
    history.lasting_since.extend(store.lasting_since(kind, &keys, kept_some).await?);
    let placed = inventory.batch_jobs.iter().filter(|job| job.is_placed() && known.misses_task_of(job));
    let tasks: Vec<ResourceKey> = placed.filter_map(task_of).collect();
    history.missing_since = store.missing_since(ResourceKind::EcsTask.into(), &tasks).await?;
    Ok(history)
}

/// Of the many facts of a job or an environment these are enough.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Kept {
    status: Option<String>,
    status_reason: Option<String>,
    min_vcpus: Option<u32>,
}

/// A version of the history; what another version of this program kept otherwise shows nothing.
fn kept(record: &str) -> Kept {
    serde_json::from_str(record).unwrap_or_default()
}
