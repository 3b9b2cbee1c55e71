use super::*;
use crate::inventory::{EcsContainer, Scope};
use model::{Provider, ResourceKind};

const ACCOUNT: &str = "123456789012";
const REGION: &str = "eu-central-1";

fn scope() -> Scope {
    Scope { provider: Provider::Aws, account: ACCOUNT.into(), region: REGION.into() }
}

fn node(instance: &str) -> NodeId {
    format!("aws:{ACCOUNT}:{REGION}:{instance}").parse().expect("a node id")
}

fn job(status: &str, task: Option<JobTask>) -> BatchJob {
    let id = scope().key(ResourceKind::BatchJob, "5f0c");
    let facts = serde_json::json!({
        "id": id, "status": status, "depends_on": [], "resources": [], "tasks": [], "attempts": [], "tags": {},
    });
    let job: BatchJob = serde_json::from_value(facts).expect("a job");
    BatchJob { tasks: task.into_iter().collect(), ..job }
}

fn told(task: Option<&str>, machine: Option<&str>) -> JobTask {
    JobTask { arn: task.map(str::to_owned), container_instance_arn: machine.map(str::to_owned), containers: Vec::new() }
}

fn task(arn: &str, machine: Option<&str>, launch_type: &str, runtime_id: &str) -> EcsTask {
    let id = scope().key(ResourceKind::EcsTask, format!("omics/{arn}"));
    let container = EcsContainer {
        name: Some("main".into()),
        runtime_id: Some(runtime_id.to_owned()),
        status: Some("RUNNING".into()),
        exit_code: None,
        reason: None,
        gpu_ids: Vec::new(),
    };
    let facts = serde_json::json!({"id": id, "arn": arn, "cluster": "omics", "containers": []});
    let task: EcsTask = serde_json::from_value(facts).expect("a task");
    EcsTask {
        container_instance_arn: machine.map(str::to_owned),
        launch_type: Some(launch_type.to_owned()),
        containers: vec![container],
        ..task
    }
}

fn machine(arn: &str, instance: Option<&str>) -> EcsContainerInstance {
    let id = scope().key(ResourceKind::EcsContainerInstance, format!("omics/{arn}"));
    let facts = serde_json::json!({"id": id, "arn": arn, "cluster": "omics", "instance_id": instance});
    serde_json::from_value(facts).expect("a container instance")
}

fn reporting(instance: &str, hostname: &str) -> Reporting {
    Reporting { id: node(instance), hostname: hostname.to_owned() }
}

/// Two machines, one of which reports, and a task on the second.
fn facts(job: BatchJob) -> JobFacts {
    JobFacts {
        jobs: vec![job],
        tasks: vec![task("t-1", Some("c-2"), "EC2", "ab12")],
        container_instances: vec![
            machine("c-1", Some("i-1")),
            machine("c-2", Some("i-2")),
            machine("c-3", None),
            machine("c-4", Some("mi-4")),
        ],
        nodes: vec![reporting("i-2", "ip-10-0-0-2")],
        ecs_not_read: BTreeMap::new(),
    }
}

fn placed(facts: JobFacts) -> Placement {
    facts.join().remove(0).placements.remove(0)
}

fn unknown(placement: &Placement) -> &str {
    let Machine::Unknown { why } = &placement.machine else { panic!("{placement:?}") };
    why
}

#[test]
fn what_ecs_says_wins_over_what_batch_still_tells() {
    let moved = placed(facts(job("RUNNING", Some(told(Some("t-1"), Some("c-1"))))));
    assert_eq!(moved.machine, Machine::Instance { id: node("i-2") });
    assert_eq!(moved.node, Some(node("i-2")));
    assert_eq!(moved.containers[0].runtime_id.as_deref(), Some("ab12"));
    let own = placed(facts(job("RUNNING", Some(told(Some("t-gone"), Some("c-1"))))));
    assert_eq!((own.machine, own.node), (Machine::Instance { id: node("i-1") }, None), "no agent reports there");
}

#[test]
fn a_link_that_is_missing_is_unknown_with_its_reason() {
    let of = |status: &str, told| placed(facts(job(status, Some(told))));
    let text = |placement: Placement| unknown(&placement).to_owned();
    assert_eq!(text(of("RUNNING", told(None, Some("c-9")))), "ECS does not know its container instance");
    assert_eq!(text(of("RUNNING", told(Some("t-9"), None))), "ECS does not know its task");
    assert_eq!(text(of("RUNNING", told(None, Some("c-3")))), "its container instance does not say its machine");
    assert!(text(of("FAILED", told(Some("t-9"), Some("c-9")))).starts_with("it is over"));
    assert_eq!(of("RUNNING", told(None, Some("c-4"))).machine, Machine::External { id: "mi-4".into() });
    assert!(facts(job("RUNNABLE", None)).join()[0].placements.is_empty(), "it waits, which is no error");
    let retried = job("RUNNABLE", Some(told(Some("t-1"), Some("c-1"))));
    assert!(facts(retried).join()[0].placements.is_empty(), "the attempt before is over");
}

#[test]
fn where_ecs_was_not_read_the_job_stays_and_its_machine_is_unknown() {
    let mut facts = facts(job("RUNNING", Some(told(Some("t-1"), Some("c-1")))));
    facts.ecs_not_read.insert((ACCOUNT.into(), REGION.into()), "ecs:DescribeTasks: denied".into());
    let placement = placed(facts);
    assert_eq!(unknown(&placement), "ECS was not read: ecs:DescribeTasks: denied");
    assert_eq!(placement.node, None);
}

#[test]
fn fargate_has_no_machine() {
    let mut facts = facts(job("RUNNING", Some(told(Some("t-f"), None))));
    facts.tasks.push(task("t-f", None, "FARGATE", "0f1e-123"));
    assert_eq!(placed(facts).machine, Machine::Fargate);
}

#[test]
fn a_pod_is_on_the_one_node_of_that_name_or_on_the_instance_that_it_is_called_after() {
    let on = |node: &str, nodes: Vec<Reporting>| {
        let pod = Pod { name: Some("p".into()), node: Some(node.to_owned()), cluster_arn: None };
        let job = BatchJob { pod: Some(pod), ..job("RUNNING", None) };
        placed(JobFacts { jobs: vec![job], nodes, ..JobFacts::default() })
    };
    let named = || reporting("i-2", "ip-10-0-0-2");
    let found = on("ip-10-0-0-2", vec![named()]);
    assert_eq!((found.machine, found.node), (Machine::Instance { id: node("i-2") }, Some(node("i-2"))));
    let two = on("ip-10-0-0-2", vec![named(), reporting("i-3", "ip-10-0-0-2")]);
    assert_eq!(two.machine, Machine::KubernetesNode { name: "ip-10-0-0-2".into() });
    assert_eq!(on("i-7.ec2.internal", Vec::new()).machine, Machine::Instance { id: node("i-7") });
}

#[test]
fn a_container_is_the_workload_of_its_id_or_the_task_around_it() {
    let resolved = |workloads: &[(&str, &str)]| {
        let mut chains = facts(job("RUNNING", Some(told(Some("t-1"), None)))).join();
        let workloads = workloads.iter().map(|(kind, id)| Workload { kind: (*kind).into(), id: (*id).into() });
        resolve(&mut chains, &[(node("i-2"), workloads.collect())].into());
        chains.remove(0).placements.remove(0).containers.remove(0).workload.map(|one| one.id)
    };
    assert_eq!(resolved(&[("ecs", "t-0/ab12"), ("ecs", "t-1")]).as_deref(), Some("t-0/ab12"));
    assert_eq!(resolved(&[("docker", "ab12")]).as_deref(), Some("ab12"));
    assert_eq!(resolved(&[("ecs", "t-1")]).as_deref(), Some("t-1"));
    assert_eq!(resolved(&[("ecs", "t-2/cd34"), ("docker", "ab1")]), None);
}
