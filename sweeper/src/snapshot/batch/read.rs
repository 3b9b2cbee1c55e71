//! From an inventory to the resources of AWS Batch that may be waste.

use super::{
    BatchHistory, BatchInputs, BatchPolicy, BatchResource, BatchState, EnvironmentJobs, EnvironmentState, JobState,
    Known, QueueJobs, QueueState, Siblings, TaskState, WaitingJob, cost::registered, known::task_of,
};
use crate::{
    inventory::{BatchJob, COMPLETED_FOR, ComputeEnvironment, Inventory, JobQueue},
    pricing::Cost,
    snapshot::{Coverage, SnapshotPart, Thing, coverage},
};
use jiff::Timestamp;
use model::{ResourceKey, ResourceKind};
use std::collections::BTreeMap;

/// What a blocked job's reason begins with, in Batch's words; any other reason is one of the attempt before.
/// <https://docs.aws.amazon.com/batch/latest/userguide/job_stuck_in_runnable_time_limit_actions.html>
const BLOCKED_BY: [&str; 4] = ["CAPACITY:", "MISCONFIGURATION:", "ACTION_REQUIRED", "UNDETERMINED"];

/// Whether a status's reason says that the job cannot be placed.
#[must_use]
pub fn says_blocked(reason: &str) -> bool {
    BLOCKED_BY.iter().any(|begin| reason.starts_with(begin))
}

/// Jobs that are placed, queues in which some wait, environments that keep capacity, and what open findings name, in the order of their keys. What they
/// cost is not known yet.
#[must_use]
pub fn batch_resources<'a>(
    inventory: &'a Inventory,
    known: &Known<'a>,
    named: impl IntoIterator<Item = &'a ResourceKey>,
    history: &BatchHistory,
    at: Timestamp,
    policy: BatchPolicy,
) -> Vec<BatchResource> {
    let read = Read { inventory, known, history, at };
    let mut all: BTreeMap<&ResourceKey, Option<(BatchState, Thing)>> =
        named.into_iter().map(|key| (key, None)).collect();
    for job in &inventory.batch_jobs {
        if job.is_placed() || all.contains_key(&job.id) {
            all.insert(&job.id, Some((BatchState::Job(read.job(job)), thing_of_job(job))));
        }
    }
    let no_tags = BTreeMap::new();
    for queue in &inventory.batch_job_queues {
        let state = read.queue(queue);
        let waits = state.jobs.as_ref().is_some_and(|jobs| jobs.runnable > 0);
        if waits || all.contains_key(&queue.id) {
            let priority = queue.priority.map(|priority| format!("job queue of priority {priority}"));
            all.insert(
                &queue.id,
                Some((BatchState::Queue(state), Thing::of(priority, queue.tags.as_ref().unwrap_or(&no_tags), None))),
            );
        }
    }
    for environment in &inventory.batch_compute_environments {
        let state = read.environment(environment);
        if state.min_vcpus.is_some_and(|min| min > 0) || all.contains_key(&environment.id) {
            let kept = state.min_vcpus.map(|min| format!("at least {min} vCPUs"));
            all.insert(
                &environment.id,
                Some((
                    BatchState::Environment(state),
                    Thing::of(kept, environment.tags.as_ref().unwrap_or(&no_tags), None),
                )),
            );
        }
    }
    let resource = |(key, found): (&ResourceKey, Option<(BatchState, Thing)>)| {
        let (state, thing) = found.unzip();
        let inputs = read.inputs(key, state, policy);
        BatchResource { id: key.clone(), inputs, thing, cost: Cost::Unknown { why: "not looked up".to_owned() } }
    };
    all.into_iter().map(resource).collect()
}

/// What people call a job, and what it was made from.
pub(in crate::snapshot) fn thing_of_job(job: &BatchJob) -> Thing {
    let definition = job.definition.as_deref().map(|arn| arn.rsplit('/').next().unwrap_or(arn).to_owned());
    let thing = Thing::of(definition, &job.tags, job.created_at);
    Thing { name: thing.name.or_else(|| job.name.clone()), ..thing }
}

struct Read<'a, 'b> {
    inventory: &'a Inventory,
    known: &'b Known<'a>,
    history: &'b BatchHistory,
    at: Timestamp,
}

impl<'a> Read<'a, '_> {
    fn inputs(&self, key: &ResourceKey, state: Option<BatchState>, policy: BatchPolicy) -> BatchInputs {
        let covered = coverage(self.inventory, key);
        let mut failed = Vec::new();
        if covered == Coverage::Failed {
            failed.push(SnapshotPart::Inventory);
        }
        if !self.is_listed(key, ResourceKind::EcsTask) {
            failed.push(SnapshotPart::EcsTasks);
        }
        BatchInputs { at: self.at, coverage: covered, state, policy, failed }
    }

    /// Whether another kind of resource is listed where this one is.
    fn is_listed(&self, beside: &ResourceKey, kind: ResourceKind) -> bool {
        coverage(self.inventory, &ResourceKey { kind, ..beside.clone() }) == Coverage::Complete
    }

    fn lasting(&self, key: &ResourceKey) -> Option<Timestamp> {
        self.history.lasting_since.get(key).copied()
    }

    /// Since when a job has had its status, as far as lists tell; it may have had another between two of them, and an attempt more.
    fn lasting_of(&self, job: &BatchJob) -> Option<Timestamp> {
        let lasting = self.lasting(&job.id)?;
        let ended = job.attempts.iter().filter_map(|attempt| attempt.stopped_at);
        let started = job.started_at.filter(|_| job.status.as_deref() == Some("RUNNING"));
        ended.chain(started).chain([lasting]).max()
    }

    fn job(&self, job: &BatchJob) -> JobState {
        let task_key = task_of(job);
        let found = task_key.as_ref().and_then(|key| self.known.task(key));
        let task = match (task_key, found) {
            (None, _) => TaskState::NotNamed,
            (Some(key), None) => TaskState::Missing {
                // One that no list has ever had has been missing since its job began to run, as far as lists tell.
                since: self.history.missing_since.get(&key).copied().or_else(|| self.lasting_of(job)),
            },
            (Some(_), Some(task)) => TaskState::Known {
                status: task.status.clone(),
                stopped_at: task.stopped_at,
                reason: task.stopped_reason.clone().or_else(|| task.stop_code.clone()),
            },
        };
        let since = match job.status.as_deref() {
            Some("STARTING") => found.and_then(|task| task.created_at).or_else(|| self.lasting_of(job)),
            Some("RUNNING") => job.started_at,
            _ => None,
        };
        let submitted_by = self.history.submitted_by.get(job.submitted_as()).cloned();
        let head = submitted_by.as_ref().and_then(|by| self.known.head_of(job, by));
        // One that was over is so for good, and is listed for a day.
        let head = head.or_else(|| self.history.heads.get(&job.id).filter(|head| head.ended_at.is_some()).cloned());
        // A multi-node job as a whole is nowhere: its nodes are.
        let head = head.filter(|_| job.node.as_ref().is_none_or(|node| node.parent.is_some()));
        JobState { status: job.status.clone(), since, task, siblings: self.siblings(job), submitted_by, head }
    }

    /// The other children of a job's array; none unless all of them are over. Children that ended long ago are listed no more, and have ended.
    fn siblings(&self, job: &BatchJob) -> Option<Siblings> {
        let array = self.known.array_of(job)?;
        let size = array.array.as_ref()?.size?;
        let others = self.known.children(&array.id).iter().filter(|child| child.id != job.id);
        let mut spans = Vec::new();
        for other in others {
            if !other.is_over() {
                return None;
            }
            // One that ended before it began tells nothing.
            if let (Some(from), Some(until)) = (other.started_at, other.stopped_at)
                && let Ok(seconds) = u64::try_from(until.duration_since(from).as_secs())
            {
                spans.push((seconds, until));
            }
        }
        Some(Siblings {
            over: size.saturating_sub(1),
            timed: u32::try_from(spans.len()).unwrap_or(u32::MAX),
            longest_s: spans.iter().map(|(seconds, _)| *seconds).max()?,
            last_end: spans.iter().map(|(_, until)| *until).max()?,
        })
    }

    fn queue(&self, queue: &'a JobQueue) -> QueueState {
        let jobs = self.known.of_queue(queue).filter(|_| self.is_listed(&queue.id, ResourceKind::BatchJob));
        let Some(jobs) = jobs else { return QueueState { jobs: None } };
        let (mut runnable, mut placed, mut last_move, mut waiting) = (0_u32, 0_u32, None, Vec::new());
        for job in jobs {
            last_move = last_move.max(job.started_at).max(job.stopped_at);
            // An array as a whole is nowhere: its children wait and run.
            let is_array = job.array.as_ref().is_some_and(|array| array.parent.is_none());
            if job.status.as_deref() == Some("RUNNABLE") && !is_array {
                runnable = runnable.saturating_add(1);
                waiting.push(self.waiting(job));
            } else if job.is_placed() {
                placed = placed.saturating_add(1);
            }
        }
        // Who does not say since when comes last.
        let turn = |job: &WaitingJob| (job.blocked_by.is_none(), job.since.is_none(), job.since);
        let first = waiting.into_iter().min_by_key(turn);
        QueueState { jobs: Some(QueueJobs { runnable, placed, last_move, first }) }
    }

    fn waiting(&self, job: &BatchJob) -> WaitingJob {
        let blocked_by = job.status_reason.as_ref().filter(|reason| says_blocked(reason)).cloned();
        WaitingJob {
            id: job.id.id.clone(),
            name: job.name.clone(),
            since: self.known.placeable_since(job).or_else(|| self.lasting_of(job)),
            blocked_since: self.history.blocked_since.get(&job.id).copied().filter(|_| blocked_by.is_some()),
            blocked_by,
        }
    }

    fn environment(&self, environment: &ComputeEnvironment) -> EnvironmentState {
        let is_of_machines = environment.management.as_deref() == Some("MANAGED")
            && matches!(environment.resource_type.as_deref(), Some("EC2" | "SPOT"));
        let (jobs, machines) = (self.jobs_of(environment), self.machines_of(environment));
        EnvironmentState {
            min_vcpus: environment.min_vcpus.filter(|_| is_of_machines),
            held_since: self.lasting(&environment.id),
            machines: machines.filter(|_| jobs.is_some_and(|jobs| jobs.live == 0)),
            jobs,
        }
    }

    fn jobs_of(&self, environment: &ComputeEnvironment) -> Option<EnvironmentJobs> {
        let ComputeEnvironment { id, arn, .. } = environment;
        if ![ResourceKind::BatchJob, ResourceKind::BatchJobQueue].into_iter().all(|kind| self.is_listed(id, kind)) {
            return None;
        }
        let queues = self.known.queues_of(id, arn.as_deref())?;
        let jobs: Vec<&[&BatchJob]> =
            queues.into_iter().map(|queue| self.known.of_queue(queue)).collect::<Option<_>>()?;
        let live = jobs.iter().copied().flatten().filter(|job| !job.is_over()).count();
        let last_end = jobs.iter().copied().flatten().filter_map(|job| job.stopped_at).max();
        let listed_from = self.at.checked_sub(COMPLETED_FOR).unwrap_or(Timestamp::MIN);
        Some(EnvironmentJobs {
            live: u32::try_from(live).unwrap_or(u32::MAX),
            last_end: last_end.map_or(listed_from, |end| end.max(listed_from)),
        })
    }

    /// The machines of an environment's cluster: all are listed while none of its queues has a job.
    fn machines_of(&self, environment: &ComputeEnvironment) -> Option<u32> {
        let id = &environment.id;
        if !self.is_listed(id, ResourceKind::EcsContainerInstance) {
            return None;
        }
        let count = registered(self.inventory, environment)?.count();
        Some(u32::try_from(count).unwrap_or(u32::MAX))
    }
}
