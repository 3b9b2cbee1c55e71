//! What AWS Batch and ECS have, as they answer with it: environments, queues, jobs and what these run on, for [`Moto::batch`](super::Moto::batch). All of it is in one region.

use super::ACCOUNT;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

/// Where it is.
pub const REGION: &str = "us-east-1";

fn arn(service: &str, what: &str) -> String {
    format!("arn:aws:{service}:{REGION}:{ACCOUNT}:{what}")
}

/// ARN of a container instance.
#[must_use]
pub fn machine(cluster: &str, key: &str) -> String {
    arn("ecs", &format!("container-instance/{cluster}/{key}"))
}

/// ARN of a task.
#[must_use]
pub fn task(cluster: &str, key: &str) -> String {
    arn("ecs", &format!("task/{cluster}/{key}"))
}

/// 64 hexadecimal digits that begin with these.
#[must_use]
pub fn runtime_id(begin: &str) -> String {
    format!("{begin:0<64}")
}

/// A compute environment. Its cluster has its name.
#[must_use]
pub fn environment(name: &str, management: &str, orchestration: &str, resource_type: &str) -> Value {
    let mut told = json!({
        "computeEnvironmentName": name, "computeEnvironmentArn": arn("batch", &format!("compute-environment/{name}")),
        "type": management, "state": "ENABLED", "status": "VALID", "statusReason": "ComputeEnvironment Healthy",
        "containerOrchestrationType": orchestration,
    });
    if orchestration == "ECS" {
        told["ecsClusterArn"] = arn("ecs", &format!("cluster/{name}")).into();
    } else {
        told["eksConfiguration"] = json!({"eksClusterArn": arn("eks", "cluster/k"), "kubernetesNamespace": "batch"});
    }
    if management == "MANAGED" {
        told["computeResources"] = json!({
            "type": resource_type, "minvCpus": 0, "desiredvCpus": 48, "maxvCpus": 256, "subnets": ["subnet-1"],
            "instanceTypes": ["c6i"], "allocationStrategy": "BEST_FIT_PROGRESSIVE",
            "scalingPolicy": {"minScaleDownDelayMinutes": 20},
        });
    }
    told
}

/// A queue over one environment.
#[must_use]
pub fn queue(name: &str, environment: &str) -> Value {
    json!({
        "jobQueueName": name, "jobQueueArn": arn("batch", &format!("job-queue/{name}")), "state": "ENABLED",
        "status": "VALID", "priority": 7, "computeEnvironmentOrder":
            [{"order": 1, "computeEnvironment": arn("batch", &format!("compute-environment/{environment}"))}],
    })
}

/// A job of the definition `align` in its third revision, submitted an hour ago and running for 50 minutes if it runs, with more said of it.
///
/// # Panics
///
/// When that is no object.
#[must_use]
pub fn job(id: &str, queue: &str, status: &str, more: Value) -> Value {
    let mut told = json!({
        "jobId": id, "jobName": format!("align-{id}"), "jobQueue": arn("batch", &format!("job-queue/{queue}")),
        "jobDefinition": arn("batch", "job-definition/align:3"), "status": status, "createdAt": minutes_ago(60),
    });
    if status == "RUNNING" {
        told["startedAt"] = minutes_ago(50).into();
    }
    let Value::Object(more) = more else { panic!("members of a job: {more}") };
    told.as_object_mut().expect("an object").extend(more);
    told
}

/// In milliseconds since 1970-01-01 UTC.
#[must_use]
pub fn minutes_ago(minutes: i64) -> i64 {
    (Timestamp::now() - SignedDuration::from_mins(minutes)).as_millisecond()
}

/// Where a job runs: a task of a cluster, on a container instance.
#[must_use]
pub fn on(cluster: &str, key: &str, machine_key: &str) -> Value {
    json!({"container": {
        "taskArn": task(cluster, key), "containerInstanceArn": machine(cluster, machine_key), "logStreamName": "align/1",
        "resourceRequirements": [{"type": "VCPU", "value": "4"}],
    }})
}

/// An instance that is registered with a cluster.
#[must_use]
pub fn registered(cluster: &str, key: &str, instance: &str) -> Value {
    json!({"cluster": cluster, "is": {
        "containerInstanceArn": machine(cluster, key), "ec2InstanceId": instance, "status": "ACTIVE",
        "agentConnected": true, "runningTasksCount": 1, "pendingTasksCount": 0,
    }})
}

/// A task that runs, with its containers' names and ids; on Fargate without a container instance.
#[must_use]
pub fn running(cluster: &str, key: &str, machine_key: Option<&str>, containers: &[(&str, &str)]) -> Value {
    let container = |(name, id): &(&str, &str)| json!({"name": name, "runtimeId": id, "lastStatus": "RUNNING"});
    let mut told = json!({
        "taskArn": task(cluster, key), "lastStatus": "RUNNING", "desiredStatus": "RUNNING",
        "launchType": if machine_key.is_some() { "EC2" } else { "FARGATE" },
        "containers": containers.iter().map(container).collect::<Vec<_>>(),
    });
    if let Some(key) = machine_key {
        told["containerInstanceArn"] = machine(cluster, key).into();
    }
    json!({"cluster": cluster, "is": told})
}
