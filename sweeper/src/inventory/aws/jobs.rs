//! Batch and ECS of one scope: what each list needs of the ones before it, and what is left where one of them failed.
//!
//! Environments and queues need nothing, jobs need the queues, tasks the jobs, and the machines of clusters all of them, so as to
//! leave out those of busy clusters that carry Batch's own tags. Where that is not known they are listed whole.

use model::{ResourceKey, ResourceKind};
use std::collections::BTreeSet;

use jiff::Timestamp;

use super::{
    batch::{self, Failed},
    collect::{List, keep},
    ecs,
};
use crate::inventory::{Inventory, Listing, Outcome, clusters_in_use};

/// Everything of Batch, and of ECS what belongs to it or keeps machines.
pub(super) async fn read(list_of: &List<'_>) -> Inventory {
    let (environments, queues) = futures::join!(batch::environments(list_of), batch::queues(list_of));
    let jobs = match &queues {
        Ok(queues) => batch::jobs(list_of, queues, Timestamp::now()).await,
        Err(why) => Err((batch::QUEUES, why.clone())),
    };
    let (known_queues, known_environments) =
        (queues.as_deref().unwrap_or_default(), environments.as_deref().unwrap_or_default());
    let tasks = match &jobs {
        Ok(jobs) => ecs::tasks(list_of, jobs, known_queues, known_environments).await,
        Err(failed) => Err(failed.clone()),
    };
    let by_name = match (&environments, &jobs) {
        (Ok(environments), Ok(jobs)) => clusters_in_use(environments, known_queues, jobs),
        _ => BTreeSet::new(),
    };
    let machines = ecs::container_instances(
        list_of,
        &by_name,
        jobs.as_deref().unwrap_or_default(),
        tasks.as_deref().unwrap_or_default(),
        known_queues,
        known_environments,
    );
    let machines = machines.await;

    let mut read = Inventory::default();
    let outcomes = [
        (
            ResourceKind::BatchComputeEnvironment,
            keep(batch::ENVIRONMENTS, environments, &mut read.batch_compute_environments, |it| &it.id),
        ),
        (ResourceKind::BatchJobQueue, keep(batch::QUEUES, queues, &mut read.batch_job_queues, |it| &it.id)),
        (ResourceKind::BatchJob, keep_all(jobs, &mut read.batch_jobs, |it| &it.id)),
        (ResourceKind::EcsContainerInstance, keep_all(machines, &mut read.ecs_container_instances, |it| &it.id)),
        (ResourceKind::EcsTask, keep_all(tasks, &mut read.ecs_tasks, |it| &it.id)),
    ];
    read.listings = outcomes.map(|(kind, outcome)| Listing::of(list_of.scope, kind, outcome)).into();
    read
}

/// A list that several calls make; one of them failed, or none.
fn keep_all<T>(read: Result<Vec<T>, Failed>, into: &mut Vec<T>, id: impl Fn(&T) -> &ResourceKey) -> Outcome {
    let api = read.as_ref().err().map_or(batch::ENVIRONMENTS, |(api, _)| *api);
    keep(api, read.map_err(|(_, why)| why), into, id)
}
