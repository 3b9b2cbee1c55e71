//! AWS Batch's answers, read from their JSON: the SDK's own form of them says 0 for a job that never started, and an empty list for a
//! missing one. A field that is absent, `null` or an empty text says nothing; one of a later day is passed over.

use model::ResourceKind;
use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::inventory::{
    ArrayPart, Attempt, BatchJob, ComputeEnvironment, Dependency, JobContainer, JobQueue, JobTask, NodePart, Pod,
    QueuedEnvironment, Requirement, Scope,
};

mod raw;

use raw::{Container, EksAttempt, Ordered, RawAttempt, Tags, Task};
pub(in super::super) use raw::{Environment, Environments, Job, Jobs, Queue, Queues, Summaries};

pub(in super::super) fn environment(scope: &Scope, raw: Environment) -> Result<ComputeEnvironment, String> {
    let name = said(raw.compute_environment_name).ok_or("a compute environment has no name")?;
    let resources = raw.compute_resources.unwrap_or_default();
    let delay = resources.scaling_policy.and_then(|policy| policy.min_scale_down_delay_minutes);
    Ok(ComputeEnvironment {
        id: scope.key(ResourceKind::BatchComputeEnvironment, name),
        arn: said(raw.compute_environment_arn),
        state: said(raw.state),
        status: said(raw.status),
        status_reason: said(raw.status_reason),
        management: said(raw.r#type),
        orchestration: said(raw.container_orchestration_type),
        ecs_cluster_arn: said(raw.ecs_cluster_arn),
        eks_cluster_arn: raw.eks_configuration.and_then(|eks| said(eks.eks_cluster_arn)),
        resource_type: said(resources.r#type),
        allocation_strategy: said(resources.allocation_strategy),
        min_vcpus: count(resources.minimum),
        desired_vcpus: count(resources.desired),
        max_vcpus: count(resources.maximum),
        instance_types: resources.instance_types,
        min_scale_down_delay_minutes: count(delay),
        tags: raw.tags.map(|told| tags(Some(told))),
    })
}

pub(in super::super) fn queue(scope: &Scope, raw: Queue) -> Result<JobQueue, String> {
    let name = said(raw.job_queue_name).ok_or("a job queue has no name")?;
    let environment = |raw: Ordered| QueuedEnvironment { order: raw.order, arn: said(raw.compute_environment) };
    Ok(JobQueue {
        id: scope.key(ResourceKind::BatchJobQueue, name),
        arn: said(raw.job_queue_arn),
        state: said(raw.state),
        status: said(raw.status),
        status_reason: said(raw.status_reason),
        priority: raw.priority,
        scheduling_policy_arn: said(raw.scheduling_policy_arn),
        environments: raw.compute_environment_order.map(|order| order.into_iter().map(environment).collect()),
        tags: raw.tags.map(|told| tags(Some(told))),
    })
}

impl Job {
    /// Without one it cannot be told from another.
    pub(in super::super) fn id(&self) -> Result<String, String> {
        said(self.job_id.clone()).ok_or_else(|| "a job has no id".to_owned())
    }

    pub(in super::super) fn status(&self) -> Option<&str> {
        self.status.as_deref()
    }

    pub(in super::super) fn stopped_at(&self) -> Option<Timestamp> {
        moment(self.stopped_at)
    }

    /// Whether the answer tells its tags, if only that there are none.
    pub(in super::super) fn tells_tags(&self) -> bool {
        self.tags.is_some()
    }

    /// Whether it is an array as a whole.
    pub(in super::super) fn is_array(&self) -> bool {
        let array = self.array_properties.as_ref();
        parent(self.job_id.as_deref(), ':').is_none() && array.is_some_and(|array| array.size.is_some())
    }

    /// Whether it is a multi-node job as a whole.
    pub(in super::super) fn is_multi_node(&self) -> bool {
        let nodes = self.node_properties.as_ref();
        parent(self.job_id.as_deref(), '#').is_none() && nodes.is_some_and(|nodes| nodes.num_nodes.is_some())
    }
}

/// `listed_in` is the queue that was asked for it, for an answer that names none.
pub(in super::super) fn job(scope: &Scope, raw: Job, listed_in: Option<&str>) -> Result<BatchJob, String> {
    let id = raw.id()?;
    let nodes = raw.node_properties.clone().unwrap_or_default();
    let details = raw.node_details.clone().unwrap_or_default();
    let has_nodes = raw.node_properties.is_some() || raw.node_details.is_some();
    let array = raw.array_properties.clone().map(|array| ArrayPart {
        parent: parent(Some(&id), ':'),
        size: count(array.size),
        index: count(array.index),
    });
    let node = has_nodes.then(|| NodePart {
        parent: parent(Some(&id), '#'),
        size: count(nodes.num_nodes),
        index: count(details.node_index.or(nodes.node_index)),
        is_main: details.is_main_node.or(nodes.is_main_node),
    });
    let pod = raw.eks_properties.and_then(|eks| eks.pod_properties);
    let mut resources = requirements(raw.container.as_ref());
    for container in raw.ecs_properties.iter().flat_map(|ecs| ecs.task_properties.iter().flatten()) {
        resources.extend(container.containers.iter().flatten().flat_map(|container| requirements(Some(container))));
    }
    resources.extend(
        pod.iter().flat_map(|pod| pod.containers.iter().flatten()).flat_map(|container| requirements(Some(container))),
    );
    let tasks = raw.ecs_properties.and_then(|ecs| ecs.task_properties);
    Ok(BatchJob {
        arn: said(raw.job_arn),
        name: said(raw.job_name),
        status: said(raw.status),
        status_reason: said(raw.status_reason),
        queue: said(raw.job_queue).or_else(|| listed_in.map(str::to_owned)),
        definition: said(raw.job_definition),
        created_at: moment(raw.created_at),
        started_at: moment(raw.started_at),
        stopped_at: moment(raw.stopped_at),
        array,
        node,
        depends_on: raw.depends_on.map(|all| {
            let told = all.into_iter().map(|raw| Dependency { job_id: said(raw.job_id), kind: said(raw.r#type) });
            told.collect()
        }),
        is_cancelled: raw.is_cancelled,
        is_terminated: raw.is_terminated,
        timeout_s: raw.timeout.and_then(|timeout| u64::try_from(timeout.attempt_duration_seconds?).ok()),
        attempts_allowed: raw.retry_strategy.and_then(|retry| count(retry.attempts)),
        resources,
        tasks: job_tasks(raw.container, tasks),
        pod: pod
            .map(|pod| Pod { name: said(pod.pod_name), node: said(pod.node_name), cluster_arn: None })
            .filter(|pod| pod.name.is_some() || pod.node.is_some()),
        attempts: attempts(raw.attempts.unwrap_or_default(), raw.eks_attempts.unwrap_or_default()),
        tags: tags(raw.tags),
        id: scope.key(ResourceKind::BatchJob, id),
    })
}

/// `UUID:3` → `UUID`, `UUID#0` → `UUID`.
fn parent(id: Option<&str>, mark: char) -> Option<String> {
    id?.split_once(mark).map(|(parent, _)| parent.to_owned())
}

/// A plain job has a container, one with several containers has tasks; both forms say where. A job that has not been placed has neither.
fn job_tasks(container: Option<Container>, tasks: Option<Vec<Task>>) -> Vec<JobTask> {
    let plain = container.map(|raw| JobTask {
        arn: said(raw.task_arn.clone()),
        container_instance_arn: said(raw.container_instance_arn.clone()),
        containers: vec![job_container(raw)],
    });
    let several = tasks.unwrap_or_default().into_iter().map(|raw| JobTask {
        arn: said(raw.task_arn),
        container_instance_arn: said(raw.container_instance_arn),
        containers: raw.containers.unwrap_or_default().into_iter().map(job_container).collect(),
    });
    let ended = |container: &JobContainer| container.exit_code.is_some() || container.reason.is_some();
    plain
        .into_iter()
        .chain(several)
        .filter(|task| task.arn.is_some() || task.container_instance_arn.is_some() || task.containers.iter().any(ended))
        .collect()
}

fn job_container(raw: Container) -> JobContainer {
    JobContainer {
        name: said(raw.name),
        exit_code: raw.exit_code,
        reason: said(raw.reason),
        log_stream: said(raw.log_stream_name),
    }
}

/// The older form has two numbers, which are passed over where the newer one says the same thing.
fn requirements(container: Option<&Container>) -> Vec<Requirement> {
    let Some(container) = container else { return Vec::new() };
    let of = |kind: &str, value: String| Requirement {
        kind: kind.to_owned(),
        value,
        container: said(container.name.clone()),
    };
    let newer = container.resource_requirements.iter().flatten();
    let mut all: Vec<_> = newer.filter_map(|raw| Some(of(raw.r#type.as_deref()?, raw.value.clone()?))).collect();
    for (kind, older) in [("VCPU", container.vcpus), ("MEMORY", container.memory)] {
        if let Some(value) = older
            && !all.iter().any(|one| one.kind == kind)
        {
            all.push(of(kind, value.to_string()));
        }
    }
    // What is asked for counts; where only a limit is set, Kubernetes asks for that.
    let eks = container.resources.iter().flat_map(|eks| [&eks.requests, &eks.limits]);
    for (kind, value) in eks.flatten().flatten() {
        if let Some(value) = value
            && !all.iter().any(|one| one.kind == *kind)
        {
            all.push(of(kind, value.clone()));
        }
    }
    all
}

fn attempts(ecs: Vec<RawAttempt>, eks: Vec<EksAttempt>) -> Vec<Attempt> {
    let on_ecs = ecs.into_iter().map(|raw| Attempt {
        number: 0,
        tasks: job_tasks(raw.container, raw.task_properties),
        pod: None,
        started_at: moment(raw.started_at),
        stopped_at: moment(raw.stopped_at),
        reason: said(raw.status_reason),
    });
    let on_eks = eks.into_iter().map(|raw| Attempt {
        number: 0,
        tasks: Vec::new(),
        pod: Some(Pod { name: said(raw.pod_name), node: said(raw.node_name), cluster_arn: said(raw.eks_cluster_arn) }),
        started_at: moment(raw.started_at),
        stopped_at: moment(raw.stopped_at),
        reason: said(raw.status_reason),
    });
    (1..).zip(on_ecs.chain(on_eks)).map(|(number, attempt)| Attempt { number, ..attempt }).collect()
}

fn said(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

fn count(number: Option<i64>) -> Option<u32> {
    number.and_then(|number| u32::try_from(number).ok())
}

/// Batch counts milliseconds since 1970; it says 0 of what has not happened.
fn moment(unix_ms: Option<i64>) -> Option<Timestamp> {
    unix_ms.filter(|unix_ms| *unix_ms > 0).and_then(|unix_ms| Timestamp::from_millisecond(unix_ms).ok())
}

fn tags(tags: Option<Tags>) -> BTreeMap<String, String> {
    tags.into_iter().flatten().map(|(name, value)| (name, value.unwrap_or_default())).collect()
}

#[cfg(test)]
mod tests;
