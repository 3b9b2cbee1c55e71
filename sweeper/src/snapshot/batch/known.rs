//! What a job's place and its kept history say: an index over one inventory.

use super::Head;
use crate::{
    inventory::{BatchJob, EcsTask, Instance, Inventory, JobQueue, LaunchedBy, cluster_of, last_part},
    jobs::{Chain, JobFacts, Machine},
};
use jiff::Timestamp;
use model::{ResourceKey, ResourceKind};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// What the kept history says of Batch's resources.
#[derive(Clone, Debug, Default)]
pub struct BatchHistory {
    /// Since when each job has had its status, and each environment has kept capacity.
    pub lasting_since: HashMap<ResourceKey, Timestamp>,
    /// Since when Batch has said of each job that waits what blocks it.
    pub blocked_since: HashMap<ResourceKey, Timestamp>,
    /// Since when no list has had each task.
    pub missing_since: HashMap<ResourceKey, Timestamp>,
    /// Who submitted jobs, by the ids of what was submitted.
    pub submitted_by: BTreeMap<String, LaunchedBy>,
    /// The jobs that had submitted others when these were last found to be waste.
    pub heads: HashMap<ResourceKey, Head>,
}

/// What AWS Batch runs on a machine, by Batch's word: a job that sleeps is one all the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "are", rename_all = "snake_case")]
pub enum PlacedJobs {
    /// Nothing.
    #[default]
    None,
    /// So many jobs start or run there.
    Some {
        /// How many.
        count: u32,
    },
    /// Batch may place jobs on it, and where each job runs is not known.
    NotTold,
}

impl PlacedJobs {
    /// Whether there is surely none.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }
}

/// An inventory's jobs by what they belong to.
#[derive(Debug)]
pub struct Known<'a> {
    /// Each job by its key.
    pub jobs: HashMap<&'a ResourceKey, &'a BatchJob>,
    queues: Vec<&'a JobQueue>,
    /// By account, region and name of the queue, whether a job names it so or by its ARN.
    by_queue: HashMap<(&'a str, &'a str, &'a str), Vec<&'a BatchJob>>,
    /// A job that is not over names no queue, or none that is listed: it may be any queue's.
    has_strays: bool,
    children: HashMap<(&'a str, &'a str, &'a str), Vec<&'a BatchJob>>,
    tasks: HashMap<&'a ResourceKey, &'a EcsTask>,
    /// The job of each ECS task of any attempt, by account, region and the task's id.
    by_task: HashMap<(&'a str, &'a str, &'a str), &'a BatchJob>,
    machines: HashMap<ResourceKey, ResourceKey>,
    jobs_on: HashMap<ResourceKey, usize>,
    /// Accounts and regions with a job that runs on nobody knows which machine.
    unplaced: HashSet<(String, String)>,
    /// EC2's ids of the machines that clusters list.
    registered: HashSet<&'a str>,
}

impl<'a> Known<'a> {
    /// Looks through an inventory once.
    #[must_use]
    pub fn of(inventory: &'a Inventory) -> Self {
        let placed: Vec<BatchJob> = inventory.batch_jobs.iter().filter(|job| job.is_placed()).cloned().collect();
        let facts = JobFacts {
            jobs: placed,
            tasks: inventory.ecs_tasks.clone(),
            container_instances: inventory.ecs_container_instances.clone(),
            ..JobFacts::default()
        };
        let (mut machines, mut jobs_on, mut unplaced) = (HashMap::new(), HashMap::new(), HashSet::new());
        for Chain { job, placements } in facts.join() {
            let is_whole = job.array.as_ref().is_some_and(|array| array.parent.is_none())
                || job.node.as_ref().is_some_and(|node| node.parent.is_none());
            let is_nowhere = placements.iter().any(|placement| matches!(placement.machine, Machine::Unknown { .. }));
            // One that starts says where before it does anything.
            let is_starting = job.status.as_deref() == Some("STARTING");
            if is_nowhere || (placements.is_empty() && !is_whole && !is_starting) {
                unplaced.insert((job.id.account.clone(), job.id.location.clone()));
            }
            let on: HashSet<_> =
                placements.into_iter().filter_map(|placement| key_of_machine(placement.machine)).collect();
            for machine in &on {
                *jobs_on.entry(machine.clone()).or_insert(0) += 1;
            }
            if let [machine] = on.into_iter().collect::<Vec<_>>().as_slice() {
                machines.insert(job.id, machine.clone());
            }
        }
        let mut known = Self {
            jobs: inventory.batch_jobs.iter().map(|job| (&job.id, job)).collect(),
            queues: inventory.batch_job_queues.iter().collect(),
            by_queue: HashMap::new(),
            has_strays: false,
            children: HashMap::new(),
            tasks: inventory.ecs_tasks.iter().map(|task| (&task.id, task)).collect(),
            by_task: HashMap::new(),
            machines,
            jobs_on,
            unplaced,
            registered: inventory.ecs_container_instances.iter().filter_map(|one| one.instance_id.as_deref()).collect(),
        };
        for job in &inventory.batch_jobs {
            if let Some(queue) = &job.queue {
                let place = (job.id.account.as_str(), job.id.location.as_str(), last_part(queue));
                known.by_queue.entry(place).or_default().push(job);
            }
            let attempts = job.attempts.iter().flat_map(|attempt| &attempt.tasks);
            for arn in job.tasks.iter().chain(attempts).filter_map(|task| task.arn.as_deref()) {
                known.by_task.insert((&job.id.account, &job.id.location, last_part(arn)), job);
            }
            let parent = job.array.as_ref().and_then(|array| array.parent.as_deref());
            if let Some(parent) = parent {
                known.children.entry((&job.id.account, &job.id.location, parent)).or_default().push(job);
            }
        }
        let listed: HashSet<_> = known.queues.iter().map(|queue| place_of(queue)).collect();
        let is_stray = |job: &BatchJob| {
            let place = |queue| (job.id.account.as_str(), job.id.location.as_str(), last_part(queue));
            !job.is_over() && job.queue.as_deref().is_none_or(|queue| !listed.contains(&place(queue)))
        };
        known.has_strays = inventory.batch_jobs.iter().any(is_stray);
        known
    }

    /// The jobs of a queue; those of an array and of a multi-node job as a whole are among them, beside their parts. None if some job may be any queue's.
    pub(super) fn of_queue(&self, queue: &'a JobQueue) -> Option<&[&'a BatchJob]> {
        if self.has_strays {
            return None;
        }
        Some(self.by_queue.get(&place_of(queue)).map_or(&[], Vec::as_slice))
    }

    /// Since when a job could have been placed, by Batch's word: with nothing to wait for and no attempt behind it, from the beginning. None where that is
    /// not so, or not known of the array that it is a child of.
    #[must_use]
    pub fn placeable_since(&self, job: &BatchJob) -> Option<Timestamp> {
        let depends = |job: &BatchJob| job.depends_on.as_ref().is_some_and(|on| !on.is_empty());
        let waits_for = |job: &BatchJob| depends(job) || !job.attempts.is_empty();
        let is_child = job.array.as_ref().is_some_and(|array| array.parent.is_some());
        let waited = waits_for(job) || (is_child && self.array_of(job).is_none_or(waits_for));
        job.created_at.filter(|_| !waited)
    }

    /// The queues of an environment; none if one of them does not say which it uses.
    pub(super) fn queues_of(&self, environment: &ResourceKey, arn: Option<&str>) -> Option<Vec<&'a JobQueue>> {
        let mut found = Vec::new();
        let here = |queue: &&&JobQueue| {
            (&queue.id.account, &queue.id.location) == (&environment.account, &environment.location)
        };
        for queue in self.queues.iter().filter(here) {
            let used = queue.environments.as_ref()?;
            for one in used {
                let named = one.arn.as_deref()?;
                if Some(named) == arn || last_part(named) == environment.id {
                    found.push(*queue);
                    break;
                }
            }
        }
        Some(found)
    }

    /// The children of an array.
    pub(super) fn children(&self, array: &'a ResourceKey) -> &[&'a BatchJob] {
        let key = (array.account.as_str(), array.location.as_str(), array.id.as_str());
        self.children.get(&key).map_or(&[], Vec::as_slice)
    }

    /// The array that a job is a child of.
    pub(super) fn array_of(&self, job: &BatchJob) -> Option<&'a BatchJob> {
        let parent = job.array.as_ref()?.parent.as_ref()?;
        self.jobs.get(&ResourceKey { id: parent.clone(), ..job.id.clone() }).copied()
    }

    /// The job that submitted another: the one in whose task the role of that call was assumed, whose session is named after the task.
    pub(super) fn head_of(&self, job: &BatchJob, submitted_by: &LaunchedBy) -> Option<Head> {
        let head = self.by_task.get(&(&job.id.account, &job.id.location, submitted_by.session()?))?;
        Some(Head {
            id: head.id.id.clone(),
            name: head.name.clone(),
            status: head.status.clone(),
            ended_at: head.stopped_at,
        })
    }

    /// Whether Batch names a task for a job, and ECS does not tell of it.
    #[must_use]
    pub fn misses_task_of(&self, job: &BatchJob) -> bool {
        task_of(job).is_some_and(|key| !self.tasks.contains_key(&key))
    }

    /// A task by its key.
    pub(super) fn task(&self, key: &ResourceKey) -> Option<&'a EcsTask> {
        self.tasks.get(key).copied()
    }

    /// Ids of the ECS task that a job runs in and of that task's containers, as an agent names them; none where Batch names no task, and for a part of a
    /// multi-node job, which may wait for the others without a word.
    #[must_use]
    pub fn containers_of(&self, job: &BatchJob) -> Option<BTreeSet<String>> {
        let key = task_of(job).filter(|_| job.node.is_none())?;
        let runtime_ids = self.task(&key).into_iter().flat_map(|task| &task.containers);
        let runtime_ids = runtime_ids.filter_map(|container| container.runtime_id.clone());
        Some(runtime_ids.chain([last_part(&key.id).to_owned()]).filter(|id| !id.is_empty()).collect())
    }

    /// Whether Batch may place jobs on a machine: it started it, or a cluster lists it, which may be an unmanaged environment's.
    #[must_use]
    pub fn may_have_jobs(&self, instance: &Instance) -> bool {
        instance.is_batchs() || self.registered.contains(instance.id.id.as_str())
    }

    /// What Batch runs on a machine. `are_listed`: jobs, their tasks and the machines of clusters could be listed.
    #[must_use]
    pub fn placed_on(&self, instance: &Instance, are_listed: bool) -> PlacedJobs {
        let place = || (instance.id.account.clone(), instance.id.location.clone());
        match self.jobs_on.get(&instance.id) {
            Some(count) => PlacedJobs::Some { count: u32::try_from(*count).unwrap_or(u32::MAX) },
            None if self.may_have_jobs(instance) && (!are_listed || self.unplaced.contains(&place())) => {
                PlacedJobs::NotTold
            }
            None => PlacedJobs::None,
        }
    }

    /// The one EC2 instance that a job is placed on, and how many jobs are.
    #[must_use]
    pub fn machine_of(&self, job: &ResourceKey) -> Option<(&ResourceKey, usize)> {
        let machine = self.machines.get(job)?;
        Some((machine, self.jobs_on.get(machine).copied().unwrap_or(0)))
    }
}

/// The key of the ECS task that a job's latest attempt runs in; none where Batch names none, or still that of an attempt that has ended, or in the older short
/// form, which names no cluster.
#[must_use]
pub fn task_of(job: &BatchJob) -> Option<ResourceKey> {
    let arn = job.tasks.first()?.arn.as_deref()?;
    let mut ended = job.attempts.iter().flat_map(|attempt| &attempt.tasks);
    if ended.any(|task| task.arn.as_deref() == Some(arn)) {
        return None;
    }
    let id = format!("{}/{}", cluster_of(arn)?, last_part(arn));
    Some(ResourceKey { kind: ResourceKind::EcsTask, id, ..job.id.clone() })
}

/// Account, region and name.
fn place_of(queue: &JobQueue) -> (&str, &str, &str) {
    (&queue.id.account, &queue.id.location, &queue.id.id)
}

fn key_of_machine(machine: Machine) -> Option<ResourceKey> {
    match machine {
        Machine::Instance { id } => Some(crate::inventory::key_of(&id)),
        Machine::External { .. } | Machine::Fargate | Machine::KubernetesNode { .. } | Machine::Unknown { .. } => None,
    }
}
