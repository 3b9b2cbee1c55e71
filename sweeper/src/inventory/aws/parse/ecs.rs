//! ECS's answers, read from their JSON: in the SDK's own form a missing switch is `false` and a missing number 0.

use jiff::Timestamp;
use model::ResourceKind;
use serde::Deserialize;

use crate::inventory::{EcsContainer, EcsContainerInstance, EcsTask, Scope, last_part};

/// An answer of `ListClusters`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in super::super) struct Clusters {
    pub(in super::super) cluster_arns: Option<Vec<String>>,
}

/// An answer of `ListContainerInstances`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in super::super) struct ContainerInstanceArns {
    pub(in super::super) container_instance_arns: Option<Vec<String>>,
}

/// An answer of `DescribeContainerInstances`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in super::super) struct ContainerInstances {
    pub(in super::super) container_instances: Option<Vec<ContainerInstance>>,
    pub(in super::super) failures: Option<Vec<Failure>>,
}

/// An answer of `DescribeTasks`.
#[derive(Debug, Deserialize)]
pub(in super::super) struct Tasks {
    pub(in super::super) tasks: Option<Vec<Task>>,
    pub(in super::super) failures: Option<Vec<Failure>>,
}

/// One that was asked for and is not told of.
#[derive(Debug, Deserialize)]
pub(in super::super) struct Failure {
    arn: Option<String>,
    reason: Option<String>,
}

impl Failure {
    /// None if there is no such thing any more, else why it is not told of.
    pub(in super::super) fn why(&self) -> Option<String> {
        let reason = self.reason.as_deref().unwrap_or("no reason");
        (reason != "MISSING").then(|| format!("{reason}: {}", self.arn.as_deref().unwrap_or("something")))
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in super::super) struct ContainerInstance {
    container_instance_arn: Option<String>,
    ec2_instance_id: Option<String>,
    status: Option<String>,
    status_reason: Option<String>,
    agent_connected: Option<bool>,
    registered_at: Option<f64>,
    capacity_provider_name: Option<String>,
    running_tasks_count: Option<i64>,
    pending_tasks_count: Option<i64>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in super::super) struct Task {
    task_arn: Option<String>,
    container_instance_arn: Option<String>,
    launch_type: Option<String>,
    last_status: Option<String>,
    desired_status: Option<String>,
    stop_code: Option<String>,
    stopped_reason: Option<String>,
    created_at: Option<f64>,
    started_at: Option<f64>,
    stopped_at: Option<f64>,
    containers: Option<Vec<Container>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Container {
    name: Option<String>,
    runtime_id: Option<String>,
    last_status: Option<String>,
    exit_code: Option<i64>,
    reason: Option<String>,
    gpu_ids: Option<Vec<String>>,
}

pub(in super::super) fn container_instance(
    scope: &Scope,
    cluster: &str,
    raw: ContainerInstance,
) -> Result<EcsContainerInstance, String> {
    let arn = said(raw.container_instance_arn).ok_or("a container instance has no ARN")?;
    let count = |number: Option<i64>| number.and_then(|number| u32::try_from(number).ok());
    Ok(EcsContainerInstance {
        id: scope.key(ResourceKind::EcsContainerInstance, format!("{cluster}/{}", last_part(&arn))),
        cluster: cluster.to_owned(),
        instance_id: said(raw.ec2_instance_id),
        status: said(raw.status),
        status_reason: said(raw.status_reason),
        agent_connected: raw.agent_connected,
        registered_at: moment(raw.registered_at),
        capacity_provider: said(raw.capacity_provider_name),
        running_tasks: count(raw.running_tasks_count),
        pending_tasks: count(raw.pending_tasks_count),
        arn,
    })
}

pub(in super::super) fn task(scope: &Scope, cluster: &str, raw: Task) -> Result<EcsTask, String> {
    let arn = said(raw.task_arn).ok_or("a task has no ARN")?;
    let container = |raw: Container| EcsContainer {
        name: said(raw.name),
        runtime_id: said(raw.runtime_id),
        status: said(raw.last_status),
        exit_code: raw.exit_code,
        reason: said(raw.reason),
        gpu_ids: raw.gpu_ids.unwrap_or_default(),
    };
    Ok(EcsTask {
        id: scope.key(ResourceKind::EcsTask, format!("{cluster}/{}", last_part(&arn))),
        cluster: cluster.to_owned(),
        container_instance_arn: said(raw.container_instance_arn),
        launch_type: said(raw.launch_type),
        status: said(raw.last_status),
        desired_status: said(raw.desired_status),
        stop_code: said(raw.stop_code),
        stopped_reason: said(raw.stopped_reason),
        created_at: moment(raw.created_at),
        started_at: moment(raw.started_at),
        stopped_at: moment(raw.stopped_at),
        containers: raw.containers.unwrap_or_default().into_iter().map(container).collect(),
        arn,
    })
}

fn said(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

/// ECS counts seconds since 1970, with fractions.
fn moment(unix_s: Option<f64>) -> Option<Timestamp> {
    let nanosecond = jiff::SignedDuration::try_from_secs_f64(unix_s?).ok()?;
    Timestamp::from_duration(nanosecond).ok()
}

#[cfg(test)]
mod tests;
