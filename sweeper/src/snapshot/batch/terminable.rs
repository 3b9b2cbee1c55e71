//! What lists say of a job, in the words of the guards that are asked before it is terminated.

use super::{super::coverage, Coverage, Known, task_of};
use crate::inventory::{BatchJob, ComputeEnvironment, Inventory, JobQueue, LaunchedBy, cluster_of, last_part};
use jiff::{SignedDuration, Timestamp};
use model::{
    ResourceKey,
    address::Told,
    job::{JobAttempt, JobFacts, JobPlace, JobShape},
};
use std::collections::BTreeMap;

/// What no list of Batch's or ECS's says of a job.
#[derive(Clone, Debug)]
pub struct AroundJob<'a> {
    /// Of its machine; none if they could not be read.
    pub machine_tags: Option<BTreeMap<String, String>>,
    /// Who submitted jobs, by the ids of what was submitted, as far as the provider's trail was read.
    pub submitted_by: &'a BTreeMap<String, LaunchedBy>,
    /// Nothing of it has run since then, so that it has submitted nothing; none if that is not known.
    pub rests_since: Option<Timestamp>,
}

/// The provider's clock and an agent's may differ by so much.
const CLOCKS: SignedDuration = SignedDuration::from_mins(1);

/// What the inventory says of a job; none if it does not list it. What the inventory does not know for sure is not known.
#[must_use]
pub fn job_facts(
    (inventory, known): (&Inventory, &Known<'_>),
    key: &ResourceKey,
    around: AroundJob<'_>,
) -> Option<JobFacts> {
    let job = *known.jobs.get(key)?;
    let queue = queue_of(inventory, job);
    let environment = queue.and_then(|queue| environment_of(inventory, queue, job));
    Some(JobFacts {
        account: key.account.clone(),
        region: key.location.clone(),
        job_id: key.id.clone(),
        name: job.name.clone(),
        status: job.status.clone(),
        shape: shape(job),
        on_kubernetes: job.pod.is_some(),
        is_ending: job.is_cancelled == Some(true) || job.is_terminated == Some(true),
        place: place(job, queue, environment),
        attempt: attempt(job, known),
        dependents: dependents(inventory, key),
        heads: heads((inventory, known), job, &around),
        submitted_by: around.submitted_by.get(job.submitted_as()).map(ToString::to_string),
        attempts_allowed: job.attempts_allowed,
        tags: Some(job.tags.clone()),
        queue_tags: queue.and_then(|queue| queue.tags.clone()),
        environment_tags: environment.and_then(|environment| environment.tags.clone()),
        machine_tags: around.machine_tags,
    })
}

fn shape(job: &BatchJob) -> JobShape {
    if job.node.is_some() || job.id.id.contains('#') {
        return JobShape::MultiNode;
    }
    match &job.array {
        Some(array) if array.parent.is_some() => JobShape::Child,
        Some(_) => JobShape::Array,
        None if job.id.id.contains(':') => JobShape::Child,
        None => JobShape::Plain,
    }
}

fn is_here(key: &ResourceKey, job: &BatchJob) -> bool {
    (key.provider, &key.account, &key.location) == (job.id.provider, &job.id.account, &job.id.location)
}

/// The one queue that a job names, by its ARN or by its name.
fn queue_of<'a>(inventory: &'a Inventory, job: &BatchJob) -> Option<&'a JobQueue> {
    let named = job.queue.as_deref()?;
    let is_it = |queue: &&JobQueue| {
        is_here(&queue.id, job) && (queue.arn.as_deref() == Some(named) || queue.id.id == last_part(named))
    };
    only(inventory.batch_job_queues.iter().filter(is_it))
}

/// The one environment of a queue in whose cluster a job's task is.
fn environment_of<'a>(inventory: &'a Inventory, queue: &JobQueue, job: &BatchJob) -> Option<&'a ComputeEnvironment> {
    let cluster = cluster_of(job.tasks.first()?.arn.as_deref()?)?;
    let used = queue.environments.as_ref()?;
    let is_it = |environment: &&ComputeEnvironment| {
        let arn = environment.arn.as_deref();
        is_here(&environment.id, job)
            && environment.ecs_cluster_arn.as_deref().map(last_part) == Some(cluster)
            && used.iter().any(|used| arn.is_some() && used.arn.as_deref() == arn)
    };
    only(inventory.batch_compute_environments.iter().filter(is_it))
}

fn only<T>(mut found: impl Iterator<Item = T>) -> Option<T> {
    found.next().filter(|_| found.next().is_none())
}

fn place(job: &BatchJob, queue: Option<&JobQueue>, environment: Option<&ComputeEnvironment>) -> Option<JobPlace> {
    Some(JobPlace {
        queue: queue?.arn.clone()?,
        definition: job.definition.clone()?,
        environment: environment?.arn.clone()?,
    })
}

fn attempt(job: &BatchJob, known: &Known<'_>) -> Option<JobAttempt> {
    // Not the task of an attempt that has ended.
    task_of(job)?;
    let [task] = job.tasks.as_slice() else { return None };
    let (machine, _) = known.machine_of(&job.id)?;
    Some(JobAttempt {
        number: u32::try_from(job.attempts.len()).ok()?.checked_add(1)?,
        started_at: job.started_at?,
        task: task.arn.clone()?,
        container_instance: task.container_instance_arn.clone()?,
        machine: machine.id.clone(),
    })
}

/// The job that waits for the end of this one. Batch tells of each that is not over what it depends on, also once that is over.
fn dependents(inventory: &Inventory, key: &ResourceKey) -> Told {
    if coverage(inventory, key) != Coverage::Complete {
        return Told::Unknown { why: "the jobs could not be listed".to_owned() };
    }
    let live = || inventory.batch_jobs.iter().filter(|job| !job.is_over() && is_here(key, job) && job.id != *key);
    let waits = |job: &&BatchJob| job.depends_on.iter().flatten().any(|on| on.job_id.as_deref() == Some(&key.id));
    if let Some(job) = live().find(waits) {
        return Told::Something { what: format!("the job {}", job.id.id) };
    }
    // A part of an array or of a multi-node job waits for what the whole waits for.
    let is_part = |job: &BatchJob| job.submitted_as() != job.id.id;
    match live().find(|job| job.depends_on.is_none() && !is_part(job)) {
        Some(job) => Told::Unknown { why: format!("of the job {} AWS Batch does not tell it", job.id.id) },
        None => Told::Nothing,
    }
}

/// The job that this one has submitted and that is not over. It may have submitted those of its account and region that came between its own submission and its standstill: who submitted each of these must be
/// known. What a machine's own role submitted may have come from any container on it.
fn heads((inventory, known): (&Inventory, &Known<'_>), head: &BatchJob, around: &AroundJob<'_>) -> Told {
    if coverage(inventory, &head.id) != Coverage::Complete {
        return Told::Unknown { why: "the jobs could not be listed".to_owned() };
    }
    let machine = known.machine_of(&head.id).map(|(machine, _)| machine.id.as_str());
    let rested = around.rests_since.and_then(|since| since.checked_add(CLOCKS).ok());
    let may_have = |job: &BatchJob| {
        let is_before = job.created_at.zip(head.created_at).is_some_and(|(its, own)| its < own);
        let is_after = job.created_at.zip(rested).is_some_and(|(its, rested)| its > rested);
        !is_before && !is_after
    };
    let mut unknown = None;
    for job in inventory.batch_jobs.iter().filter(|job| !job.is_over() && is_here(&head.id, job) && job.id != head.id) {
        let named = || format!("the job {}", job.submitted_as());
        match around.submitted_by.get(job.submitted_as()) {
            Some(by) if known.head_of(job, by).is_some_and(|its| its.id == head.id.id) => {
                return Told::Something { what: named() };
            }
            Some(by) if machine.is_some() && by.session() == machine && may_have(job) => {
                unknown = Some(format!("{} was submitted by the role of its machine", named()));
            }
            None if may_have(job) => unknown = Some(format!("who submitted {} is not known", named())),
            Some(_) | None => {}
        }
    }
    unknown.map_or(Told::Nothing, |why| Told::Unknown { why })
}
