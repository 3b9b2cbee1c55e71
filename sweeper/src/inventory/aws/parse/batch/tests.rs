use model::Provider;
use serde_json::{Value, json};

use super::*;

fn scope() -> Scope {
    Scope { provider: Provider::Aws, account: "123456789012".into(), region: "us-east-1".into() }
}

fn read(raw: Value) -> BatchJob {
    job(&scope(), serde_json::from_value(raw).expect("JSON"), Some("arn:queue")).expect("a job")
}

#[test]
fn a_job_that_says_nothing_is_known_by_its_id_and_queue_alone() {
    let job = read(json!({"jobId": "5f0c", "startedAt": 0, "jobName": "", "status": null, "brandNew": [1]}));
    assert_eq!(job.id.to_string(), "aws:123456789012:us-east-1:job/5f0c");
    assert_eq!((&job.name, &job.status, job.started_at), (&None, &None, None));
    assert_eq!(job.queue.as_deref(), Some("arn:queue"));
    assert!(job.tasks.is_empty() && job.pod.is_none() && job.array.is_none() && job.node.is_none());
    assert!(!job.is_over() && job.is_placed(), "it may be anywhere");
    assert!(super::job(&scope(), Job::default(), None).is_err(), "without an id it cannot be told from another");
}

#[test]
fn a_plain_job_and_one_with_several_containers_say_where_in_two_forms() {
    let plain = read(json!({
        "jobId": "a", "status": "RUNNING", "createdAt": 1000, "startedAt": 2000,
        "container": {"taskArn": "t", "containerInstanceArn": "c", "logStreamName": "l", "vcpus": 2, "memory": 512,
                      "resourceRequirements": [{"type": "VCPU", "value": "4"}]},
    }));
    assert_eq!(plain.tasks[0].arn.as_deref(), Some("t"));
    assert_eq!(plain.tasks[0].containers[0].log_stream.as_deref(), Some("l"));
    assert_eq!(plain.since(), Timestamp::from_millisecond(2000).ok());
    let asked: Vec<_> = plain.resources.iter().map(|one| (one.kind.as_str(), one.value.as_str())).collect();
    assert_eq!(asked, [("VCPU", "4"), ("MEMORY", "512")]);

    let several = read(json!({
        "jobId": "b", "status": "RUNNING",
        "ecsProperties": {"taskProperties": [{"taskArn": "t", "containerInstanceArn": "c", "containers": [
            {"name": "a", "resourceRequirements": [{"type": "GPU", "value": "1"}]}, {"name": "b", "exitCode": 1}]}]},
    }));
    let [task] = several.tasks.as_slice() else { panic!("{:?}", several.tasks) };
    assert_eq!((task.arn.as_deref(), task.containers.len()), (Some("t"), 2));
    assert_eq!(several.resources[0].container.as_deref(), Some("a"));

    let waiting = read(json!({"jobId": "c", "status": "RUNNABLE", "createdAt": 1000, "container": {"vcpus": 1}}));
    assert!(waiting.tasks.is_empty() && !waiting.is_placed());
    assert_eq!(waiting.since(), Timestamp::from_millisecond(1000).ok());
}

#[test]
fn arrays_nodes_pods_and_attempts_are_told_apart() {
    let array: Job = serde_json::from_value(json!({"jobId": "a", "arrayProperties": {"size": 3}})).expect("JSON");
    let child: Job =
        serde_json::from_value(json!({"jobId": "a:2", "arrayProperties": {"index": 2, "size": 0}})).expect("JSON");
    let nodes: Job = serde_json::from_value(json!({"jobId": "n", "nodeProperties": {"numNodes": 2}})).expect("JSON");
    assert_eq!([&array, &child, &nodes].map(Job::is_array), [true, false, false]);
    assert_eq!([&array, &child, &nodes].map(Job::is_multi_node), [false, false, true]);
    let child = job(&scope(), child, None).expect("a child").array.expect("its part");
    assert_eq!((child.parent.as_deref(), child.index), (Some("a"), Some(2)));
    let node = read(json!({"jobId": "n#1", "nodeDetails": {"nodeIndex": 1, "isMainNode": false}}));
    let node = node.node.expect("its part");
    assert_eq!((node.parent.as_deref(), node.index, node.is_main), (Some("n"), Some(1), Some(false)));

    let pod = read(json!({
        "jobId": "k", "eksProperties": {"podProperties": {"podName": "p", "nodeName": "ip-10-0-0-1",
            "containers": [{"resources": {"limits": {"cpu": "2"}, "requests": {"memory": "1Gi"}}}]}},
        "eksAttempts": [{"podName": "p0", "statusReason": "gone"}],
    }));
    assert_eq!(pod.pod.as_ref().and_then(|pod| pod.node.as_deref()), Some("ip-10-0-0-1"));
    assert_eq!((pod.resources.len(), pod.attempts[0].reason.as_deref()), (2, Some("gone")));

    let failed = read(json!({"jobId": "f", "status": "FAILED", "stoppedAt": 9000, "attempts": [
        {"container": {"taskArn": "t1", "exitCode": 1, "reason": "OutOfMemoryError"}, "startedAt": 1000, "stoppedAt": 2000},
        {"container": {"taskArn": "t2", "exitCode": 137}, "statusReason": "Host EC2 terminated."}]}));
    let numbers: Vec<_> = failed.attempts.iter().map(|one| one.number).collect();
    assert_eq!((numbers, failed.is_over()), (vec![1, 2], true));
    assert_eq!(failed.attempts[0].tasks[0].containers[0].reason.as_deref(), Some("OutOfMemoryError"));
    assert_eq!(failed.since(), Timestamp::from_millisecond(9000).ok());
}

#[test]
fn an_environment_and_a_queue_say_what_they_are_and_nothing_that_was_not_said() {
    let raw = json!({"computeEnvironmentName": "omics", "type": "MANAGED", "computeResources": {"type": "SPOT",
        "minvCpus": 0, "desiredvCpus": 48, "maxvCpus": 128, "scalingPolicy": {"minScaleDownDelayMinutes": 20}}});
    let read = environment(&scope(), serde_json::from_value(raw).expect("JSON")).expect("an environment");
    assert_eq!((read.min_vcpus, read.desired_vcpus, read.max_vcpus), (Some(0), Some(48), Some(128)));
    assert_eq!((read.min_scale_down_delay_minutes, read.status), (Some(20), None));
    let bare = environment(&scope(), serde_json::from_value(json!({"computeEnvironmentName": "x"})).expect("JSON"));
    assert_eq!(bare.expect("an environment").max_vcpus, None);
    let bare =
        queue(&scope(), serde_json::from_value(json!({"jobQueueName": "high"})).expect("JSON")).expect("a queue");
    assert_eq!((bare.priority, bare.environments), (None, None));
}
