use model::Provider;
use serde_json::json;

use super::*;

fn scope() -> Scope {
    Scope { provider: Provider::Aws, account: "123456789012".into(), region: "us-east-1".into() }
}

#[test]
fn what_ecs_leaves_out_is_not_known() {
    let arn = "arn:aws:ecs:us-east-1:123456789012:container-instance/web/0f1e";
    let raw = serde_json::from_value(json!({"containerInstanceArn": arn})).expect("JSON");
    let machine = container_instance(&scope(), "web", raw).expect("a container instance");
    assert_eq!(machine.id.to_string(), "aws:123456789012:us-east-1:container-instance/web/0f1e");
    assert_eq!((machine.agent_connected, machine.running_tasks, machine.instance_id), (None, None, None));
    let raw = serde_json::from_value(json!({"ec2InstanceId": "i-1"})).expect("JSON");
    assert!(container_instance(&scope(), "web", raw).is_err(), "it cannot be told from another");
}

#[test]
fn a_task_tells_its_containers_and_when() {
    let raw = json!({
        "taskArn": "arn:aws:ecs:us-east-1:123456789012:task/web/0f1e", "launchType": "EC2", "lastStatus": "RUNNING",
        "startedAt": 1_479_169_452.5, "containers": [{"name": "a", "runtimeId": "ab12", "exitCode": 137}],
    });
    let task = task(&scope(), "web", serde_json::from_value(raw).expect("JSON")).expect("a task");
    assert_eq!(task.started_at, "2016-11-15T00:24:12.5Z".parse().ok());
    assert_eq!((task.stopped_at, task.container_instance_arn), (None, None));
    assert_eq!(task.containers[0].runtime_id.as_deref(), Some("ab12"));
    assert_eq!(task.containers[0].exit_code, Some(137));
}

#[test]
fn only_what_is_gone_may_be_left_out() {
    let failure = |raw| serde_json::from_value::<Failure>(raw).expect("JSON").why();
    assert_eq!(failure(json!({"arn": "a", "reason": "MISSING"})), None);
    assert_eq!(failure(json!({"arn": "a", "reason": "BRAND_NEW"})), Some("BRAND_NEW: a".to_owned()));
    assert_eq!(failure(json!({})), Some("no reason: something".to_owned()));
}
