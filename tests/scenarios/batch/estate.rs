//! The estate that is read: environments, queues, jobs of every shape, and the machines below them.

use jiff::{SignedDuration, Timestamp};
use lab::aws::{ACCOUNT, Instance, Moto};
use serde_json::{Value, json};

use super::REGION;

fn arn(service: &str, what: &str) -> String {
    format!("arn:aws:{service}:{REGION}:{ACCOUNT}:{what}")
}

fn machine(cluster: &str, key: &str) -> String {
    arn("ecs", &format!("container-instance/{cluster}/{key}"))
}

fn task(cluster: &str, key: &str) -> String {
    arn("ecs", &format!("task/{cluster}/{key}"))
}

/// 64 hexadecimal digits that begin with these.
pub(super) fn runtime_id(begin: &str) -> String {
    format!("{begin:0<64}")
}

pub(super) fn environment(name: &str, management: &str, orchestration: &str, resource_type: &str) -> Value {
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

pub(super) fn queue(name: &str, environment: &str) -> Value {
    json!({
        "jobQueueName": name, "jobQueueArn": arn("batch", &format!("job-queue/{name}")), "state": "ENABLED",
        "status": "VALID", "priority": 7, "computeEnvironmentOrder":
            [{"order": 1, "computeEnvironment": arn("batch", &format!("compute-environment/{environment}"))}],
    })
}

/// A job with more said of it.
pub(super) fn job(id: &str, queue: &str, status: &str, more: Value) -> Value {
    let mut told = json!({
        "jobId": id, "jobName": format!("align-{id}"), "jobQueue": arn("batch", &format!("job-queue/{queue}")),
        "jobDefinition": arn("batch", "job-definition/align:3"), "status": status, "createdAt": minutes_ago(60),
    });
    if status == "RUNNING" {
        told["startedAt"] = minutes_ago(50).into();
    }
    let Value::Object(more) = more else { panic!("members of a job: {more}") };
    told.as_object_mut().unwrap().extend(more);
    told
}

pub(super) fn minutes_ago(minutes: i64) -> i64 {
    (Timestamp::now() - SignedDuration::from_mins(minutes)).as_millisecond()
}

pub(super) fn on(cluster: &str, key: &str, machine_key: &str) -> Value {
    json!({"container": {
        "taskArn": task(cluster, key), "containerInstanceArn": machine(cluster, machine_key), "logStreamName": "align/1",
        "resourceRequirements": [{"type": "VCPU", "value": "4"}],
    }})
}

pub(super) fn registered(cluster: &str, key: &str, instance: &str) -> Value {
    json!({"cluster": cluster, "is": {
        "containerInstanceArn": machine(cluster, key), "ec2InstanceId": instance, "status": "ACTIVE",
        "agentConnected": true, "runningTasksCount": 1, "pendingTasksCount": 0,
    }})
}

pub(super) fn running(cluster: &str, key: &str, machine_key: Option<&str>, containers: &[(&str, &str)]) -> Value {
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

/// Three machines: two of a managed environment, one that somebody registered with a cluster. Jobs of every shape.
pub(super) async fn furnish(moto: &Moto) -> Vec<String> {
    let ids = moto.run(REGION, &["a", "b", "web", "free"].map(|name| Instance::named("c6i.large", name))).await;
    let array = |more: Value| json!({"arrayProperties": more});
    let attempts = json!([
        {"container": {"taskArn": task("omics", "old1"), "containerInstanceArn": machine("omics", "gone"), "exitCode": 137,
                       "reason": "OutOfMemoryError: Container killed due to memory usage"},
         "startedAt": minutes_ago(50), "stoppedAt": minutes_ago(40), "statusReason": "Essential container in task exited"},
        {"container": {"taskArn": task("omics", "old2"), "exitCode": 1},
         "startedAt": minutes_ago(39), "stoppedAt": minutes_ago(30), "statusReason": "Host EC2 (instance i-1) terminated."},
    ]);
    let several = json!({"ecsProperties": {"taskProperties": [{
        "taskArn": task("omics", "t4"), "containerInstanceArn": machine("omics", "b"),
        "containers": [{"name": "main", "image": "x"}, {"name": "log", "image": "y"}],
    }]}});
    let stuck = json!({"statusReason": "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT - no instance type fits"});
    let over = |minutes| {
        json!({"startedAt": minutes_ago(50), "stoppedAt": minutes_ago(minutes), "attempts": attempts,
        "statusReason": "Task failed to start", "retryStrategy": {"attempts": 2}, "timeout": {"attemptDurationSeconds": 600}})
    };
    let node = |index: i32, key: &str, on_machine: &str| {
        let mut told = on("omics", key, on_machine);
        told["nodeDetails"] = json!({"nodeIndex": index, "isMainNode": index == 0});
        told
    };
    let nodes = json!({"nodeProperties": {"numNodes": 2, "mainNode": 0, "nodeRangeProperties": []}});
    let jobs = [
        job("plain", "high", "RUNNING", on("omics", "t0", "a")),
        job("stuck", "high", "RUNNABLE", stuck),
        job("waits", "high", "PENDING", json!({"dependsOn": [{"jobId": "plain"}]})),
        job("new", "high", "SUBMITTED", json!({})),
        job("failed", "high", "FAILED", over(30)),
        job("forgotten", "high", "FAILED", over(60 * 48)),
        job("array", "high", "PENDING", array(json!({"size": 3}))),
        job("array:0", "high", "SUCCEEDED", json!({"stoppedAt": minutes_ago(5), "arrayProperties": {"index": 0}})),
        {
            let mut child = job("array:1", "high", "RUNNING", on("omics", "t1", "a"));
            child["arrayProperties"] = json!({"index": 1});
            child
        },
        job("array:2", "high", "RUNNABLE", array(json!({"index": 2}))),
        job("nodes", "high", "RUNNING", nodes),
        job("nodes#0", "high", "RUNNING", node(0, "t2", "a")),
        job("nodes#1", "high", "STARTING", node(1, "t3", "b")),
        job("several", "high", "RUNNING", several),
        job("lost", "own", "RUNNING", on("own", "gone", "nobody")),
        job("serverless", "fargate", "RUNNING", json!({"container": {"taskArn": task("fargate", "t5")}})),
        job(
            "pod",
            "eks",
            "RUNNING",
            json!({"eksProperties": {"podProperties": {
            "podName": "aws-batch.1", "nodeName": "ip-10-0-0-9.ec2.internal"}}}),
        ),
    ];
    let put = json!({
        "environments": [
            environment("omics", "MANAGED", "ECS", "EC2"), environment("own", "UNMANAGED", "ECS", ""),
            environment("fargate", "MANAGED", "ECS", "FARGATE"), environment("eks", "MANAGED", "EKS", "EC2"),
        ],
        "queues": [queue("high", "omics"), queue("own", "own"), queue("fargate", "fargate"), queue("eks", "eks")],
        "clusters": ["web"],
        "container_instances": [
            registered("omics", "a", &ids[0]), registered("omics", "b", &ids[1]), registered("web", "w", &ids[2]),
            // No job is on it, and Batch's own tags would tell whose it is.
            registered("omics", "idle", "i-0aaaaaaaaaaaaaaaa"),
        ],
        "tasks": [
            running("omics", "t0", Some("a"), &[("default", &runtime_id("a0"))]),
            // ECS knows better: its attempt has moved.
            running("omics", "t1", Some("b"), &[("default", &runtime_id("a1"))]),
            running("omics", "t2", Some("a"), &[("default", &runtime_id("a2"))]),
            running("omics", "t4", Some("b"), &[("main", &runtime_id("a4")), ("log", &runtime_id("b4"))]),
            running("fargate", "t5", None, &[("default", "t5-1234567")]),
        ],
        "jobs": jobs,
    });
    moto.batch(REGION, put).await;
    ids
}
