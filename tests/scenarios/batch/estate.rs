//! The estate that is read: environments, queues, jobs of every shape, and the machines below them.

use lab::aws::{
    Instance, Moto,
    estate::{REGION, environment, job, machine, minutes_ago, on, queue, registered, running, runtime_id, task},
};
use serde_json::{Value, json};

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
