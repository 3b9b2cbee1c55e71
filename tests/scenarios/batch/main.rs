//! Each AWS Batch job is known down to the machine, the node and the container that it runs on; what of Batch or ECS could not be read is said,
//! leaves the rest alone, and lets no machine be proposed for a stop.
//!
//! EC2 and its machines are moto's; Batch and ECS are answered from a table that is held to AWS's own model (`tests/lab/aws/batch.py`).

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod estate;
mod idle_worker;
mod orphaned;
mod seen;
mod stuck;
mod waste;

use model::{Provider, ResourceKind, Verdict};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;
use lab::aws::{
    ACCOUNT, Fault, Instance, Moto,
    estate::{REGION, queue, runtime_id},
};
use recommender::rules::stop;
use serde_json::json;
use sweeper::{
    inventory::{
        BatchJob, FailureKind, Inventory, Kind, Outcome, Protection, RetryPolicy, Silent,
        aws::{Options, Session, collect},
    },
    jobs::{Chain, JobFacts, Machine, Placement},
};

use estate::furnish;

const UNPROTECTED: Protection = Protection { stop: Some(false), termination: Some(false) };
const KINDS: [Kind; 5] = [
    Kind::Resource(ResourceKind::BatchComputeEnvironment),
    Kind::Resource(ResourceKind::BatchJobQueue),
    Kind::Resource(ResourceKind::BatchJob),
    Kind::Resource(ResourceKind::EcsContainerInstance),
    Kind::Resource(ResourceKind::EcsTask),
];
/// What the estate comes to: environments, queues, jobs, container instances, tasks.
const FURNISHED: [usize; 5] = [4, 4, 16, 3, 5];

fn options(attempts: u32) -> Options {
    let retry = RetryPolicy { attempts, base_wait: Duration::from_millis(20), ..RetryPolicy::default() };
    Options { regions: vec![REGION.into()], retry, ..Options::default() }
}

async fn inventory(moto: &Moto, options: &Options) -> Inventory {
    let session = Session::open_with(moto.loader(), options).await.unwrap().unwrap();
    collect(&session, options, &Silent).await
}

fn outcomes(inventory: &Inventory) -> Vec<Result<usize, FailureKind>> {
    let outcome = |kind: &Kind| {
        let listing = inventory.listings.iter().find(|listing| listing.kind == Some(*kind)).unwrap();
        match &listing.outcome {
            Outcome::Complete { listed } => Ok(*listed),
            Outcome::Failed { why, .. } => Err(why.kind),
        }
    };
    KINDS.iter().map(outcome).collect()
}

/// The call that a kind failed by.
fn failed_by(inventory: &Inventory, kind: Kind) -> String {
    let listing = inventory.listings.iter().find(|listing| listing.kind == Some(kind)).unwrap();
    match &listing.outcome {
        Outcome::Failed { what, .. } => what.clone(),
        Outcome::Complete { listed } => panic!("{kind:?} is complete: {listed}"),
    }
}

fn chains(inventory: &Inventory) -> BTreeMap<String, Chain> {
    let facts = JobFacts {
        jobs: inventory.batch_jobs.clone(),
        tasks: inventory.ecs_tasks.clone(),
        container_instances: inventory.ecs_container_instances.clone(),
        ..JobFacts::default()
    };
    facts.join().into_iter().map(|chain| (chain.job.id.id.clone(), chain)).collect()
}

fn instance(id: &str) -> Machine {
    Machine::Instance { id: format!("aws:{ACCOUNT}:{REGION}:{id}").parse().unwrap() }
}

#[tokio::test]
async fn jobs_of_every_shape_are_listed_and_joined_with_their_machines() {
    let folder = tempfile::tempdir().unwrap();
    let moto = Moto::start(folder.path()).await;
    let ids = furnish(&moto).await;

    let inventory = inventory(&moto, &options(1)).await;

    assert!(inventory.is_complete(), "{:?}", inventory.listings);
    assert_eq!(outcomes(&inventory), FURNISHED.map(Ok));
    let chains = chains(&inventory);
    let job = |id: &str| -> &BatchJob { &chains[id].job };
    let at = |id: &str| -> &Placement { &chains[id].placements[0] };
    let container = |id: &str, n: usize| at(id).containers[n].runtime_id.clone().unwrap();
    assert!(!chains.contains_key("forgotten"), "it ended two days ago");

    assert_eq!(at("plain").machine, instance(&ids[0]));
    assert_eq!(container("plain", 0), runtime_id("a0"));
    assert_eq!(job("plain").resources[0].value, "4");
    assert_eq!(at("array:1").machine, instance(&ids[1]), "ECS says where it is");
    let part = job("array:1").array.as_ref().unwrap();
    assert_eq!(
        (part.parent.as_deref(), part.index, job("array").array.as_ref().unwrap().size),
        (Some("array"), Some(1), Some(3))
    );
    assert_eq!(job("array:0").status.as_deref(), Some("SUCCEEDED"));
    assert_eq!((at("nodes#0").machine.clone(), at("nodes#1").machine.clone()), (instance(&ids[0]), instance(&ids[1])));
    let part = job("nodes#1").node.as_ref().unwrap();
    assert_eq!((part.parent.as_deref(), part.index, part.is_main), (Some("nodes"), Some(1), Some(false)));
    assert_eq!((container("several", 0), container("several", 1)), (runtime_id("a4"), runtime_id("b4")));
    assert_eq!((at("serverless").machine.clone(), container("serverless", 0)), (Machine::Fargate, "t5-1234567".into()));
    assert_eq!(at("pod").machine, Machine::KubernetesNode { name: "ip-10-0-0-9.ec2.internal".into() });
    assert!(chains["stuck"].placements.is_empty() && job("stuck").started_at.is_none(), "it never started");
    assert!(job("stuck").status_reason.as_deref().unwrap().starts_with("MISCONFIGURATION"));
    let Machine::Unknown { why } = &at("lost").machine else { panic!("{:?}", at("lost")) };
    assert_eq!(why, "ECS does not know its container instance");
    let failed = job("failed");
    assert_eq!((failed.attempts.len(), failed.attempts_allowed, failed.timeout_s), (2, Some(2), Some(600)));
    assert_eq!(failed.attempts[0].tasks[0].containers[0].exit_code, Some(137));
    assert_eq!(job("waits").depends_on.as_ref().unwrap()[0].job_id.as_deref(), Some("plain"));

    let omics = inventory.batch_compute_environments.iter().find(|one| one.id.id == "omics").unwrap();
    assert_eq!((omics.min_vcpus, omics.desired_vcpus, omics.max_vcpus), (Some(0), Some(48), Some(256)));
    assert_eq!((omics.min_scale_down_delay_minutes, omics.orchestration.as_deref()), (Some(20), Some("ECS")));
    let high = inventory.batch_job_queues.iter().find(|one| one.id.id == "high").unwrap();
    assert_eq!((high.priority, high.environments.as_ref().unwrap()[0].order), (Some(7), Some(1)));
    let web = inventory.ecs_container_instances.iter().find(|one| one.cluster == "web").unwrap();
    assert_eq!(
        (web.instance_id.as_deref(), web.agent_connected, web.running_tasks),
        (Some(ids[2].as_str()), Some(true), Some(1))
    );

    let calls = moto.calls().await;
    let of = |action: &'static str| calls.iter().filter(move |call| call.action == action);
    assert!(
        of("ListJobs").all(|call| call.parameters["jobStatus"].is_string() && call.parameters["maxResults"] == 1000)
    );
    assert_eq!(of("DescribeJobs").count(), 1, "100 at once");
    let listed: Vec<_> =
        of("ListContainerInstances").map(|call| call.parameters["cluster"].as_str().unwrap()).collect();
    assert_eq!(listed.len(), 2, "those that Batch does not manage: {listed:?}");
}

#[tokio::test]
async fn every_page_is_read_and_more_than_a_hundred_jobs_are_described_in_several_calls() {
    let folder = tempfile::tempdir().unwrap();
    let moto = Moto::start(folder.path()).await;
    let ids = moto.run(REGION, &[Instance { count: Some(130), ..Instance::default() }]).await;
    moto.batch(REGION, json!({"fleets": [{"environment": "fleet", "instances": ids}]})).await;
    moto.batch(REGION, json!({"queues": [queue("x", "fleet"), queue("y", "fleet")], "clusters": ["c", "d", "e"]}))
        .await;
    moto.page_size(50).await;

    let inventory = inventory(&moto, &options(1)).await;

    assert_eq!(outcomes(&inventory), [1, 3, 130, 130, 130].map(Ok));
    let chains = chains(&inventory);
    let machines: BTreeSet<_> = chains.values().map(|chain| format!("{:?}", chain.placements[0].machine)).collect();
    assert_eq!(machines, ids.iter().map(|id| format!("{:?}", instance(id))).collect());
    let calls = moto.calls().await;
    let count = |action: &str| calls.iter().filter(|call| call.action == action).count();
    assert_eq!((count("DescribeJobs"), count("DescribeTasks"), count("DescribeContainerInstances")), (2, 2, 2));
    let running = |call: &&lab::aws::Call| call.parameters["jobStatus"] == "RUNNING" && call.action == "ListJobs";
    assert_eq!(calls.iter().filter(running).count(), 3 + 1 + 1, "three pages, and two queues without jobs");
}

#[tokio::test]
async fn an_account_that_never_used_batch_has_none() {
    let folder = tempfile::tempdir().unwrap();
    let moto = Moto::start(folder.path()).await;
    let inventory = inventory(&moto, &options(1)).await;
    assert_eq!(outcomes(&inventory), [Ok(0); 5]);
    assert!(inventory.is_complete());
}

fn fault(action: &str, code: &str) -> Fault {
    Fault { action: Some(action.into()), code: Some(code.into()), ..Fault::default() }
}

#[tokio::test]
async fn a_call_that_is_denied_makes_what_rests_on_it_unknown_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let moto = Moto::start(folder.path()).await;
    furnish(&moto).await;
    let [environments, queues, jobs, _, tasks] = FURNISHED.map(Ok);
    let no = Err(FailureKind::Denied);
    // Where it is not known which machines jobs name, those of all clusters are listed.
    for (action, expected) in [
        ("DescribeComputeEnvironments", [no, queues, jobs, Ok(4), tasks]),
        ("DescribeJobQueues", [environments, no, no, Ok(4), no]),
        ("ListJobs", [environments, queues, no, Ok(4), no]),
        ("DescribeJobs", [environments, queues, no, Ok(4), no]),
        ("DescribeTasks", [environments, queues, jobs, Ok(3), no]),
        ("ListClusters", [environments, queues, jobs, no, tasks]),
        ("ListContainerInstances", [environments, queues, jobs, no, tasks]),
        ("DescribeContainerInstances", [environments, queues, jobs, no, tasks]),
    ] {
        moto.fail(&[fault(action, "AccessDeniedException")]).await;
        let inventory = inventory(&moto, &options(1)).await;
        assert_eq!(outcomes(&inventory), expected, "{action}");
        let call = KINDS.into_iter().zip(expected).find(|(_, outcome)| outcome.is_err()).unwrap().0;
        assert!(failed_by(&inventory, call).ends_with(&format!(":{action}")), "{action}");
        assert_eq!(inventory.instances.len(), 4, "the machines are another matter");
    }
}

#[tokio::test]
async fn what_can_be_waited_out_or_renewed_is_and_half_a_list_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let moto = Moto::start(folder.path()).await;
    furnish(&moto).await;
    moto.page_size(2).await;
    let second = |action: &str, code: &str| Fault {
        parameters: [("nextToken".to_owned(), "after-2".to_owned())].into(),
        ..fault(action, code)
    };
    let complete = FURNISHED.map(Ok);

    for (action, code, status) in [
        ("ListJobs", "TooManyRequestsException", 429),
        ("DescribeTasks", "ThrottlingException", 400),
        ("DescribeContainerInstances", "ServerException", 500),
    ] {
        moto.fail(&[Fault { status: Some(status), times: Some(2), ..fault(action, code) }]).await;
        assert_eq!(outcomes(&inventory(&moto, &options(4)).await), complete, "{action} {code}");
    }
    moto.fail(&[Fault { times: Some(1), ..second("ListJobs", "ClientException") }]).await;
    assert_eq!(outcomes(&inventory(&moto, &options(4)).await), complete, "a token that is not taken any more");

    let no = |kind| Err(kind);
    let [environments, queues, ..] = complete;
    moto.fail(&[Fault { status: Some(429), ..second("ListJobs", "TooManyRequestsException") }]).await;
    let throttled = inventory(&moto, &options(2)).await;
    let expected = no(FailureKind::Throttled);
    assert_eq!(outcomes(&throttled), [environments, queues, expected, Ok(4), expected]);
    assert!(throttled.batch_jobs.is_empty(), "the first page alone is no list");
    let expiring = Fault { code: None, expire: true, ..second("ListJobs", "") };
    moto.fail(&[expiring]).await;
    let expired = inventory(&moto, &options(2)).await;
    assert_eq!(outcomes(&expired)[2], no(FailureKind::Credentials));
    assert!(expired.batch_jobs.is_empty());
}

#[tokio::test]
async fn a_page_token_that_repeats_is_malformed() {
    let folder = tempfile::tempdir().unwrap();
    let moto = Moto::start(folder.path()).await;
    furnish(&moto).await;
    moto.page_size(2).await;
    moto.repeat_page_tokens().await;
    let repeated = inventory(&moto, &options(2)).await;
    assert_eq!(outcomes(&repeated), [Err(FailureKind::Malformed); 5]);
    assert!(repeated.batch_jobs.is_empty() && repeated.ecs_container_instances.is_empty());
}

#[tokio::test]
async fn no_plan_is_made_of_a_machine_that_a_scheduler_has_or_may_have() {
    let folder = tempfile::tempdir().unwrap();
    let moto = Moto::start(folder.path()).await;
    let ids = furnish(&moto).await;
    let refusal = |inventory: &Inventory, id: &str| {
        let instance = inventory.instances.iter().find(|one| one.id.to_string().ends_with(id)).unwrap();
        let known = inventory.groups_are_known(Provider::Aws, ACCOUNT, REGION);
        let input = stop::StopInput {
            record: 1,
            finding: "f-1".into(),
            resource: instance.id.clone(),
            verdict: Verdict::Idle,
            machine: instance
                .stop_facts(known, &inventory.schedulers(Provider::Aws, ACCOUNT, REGION), UNPROTECTED)
                .unwrap(),
            price: stop::Price::OnDemand("0.096".parse().unwrap()),
            lent_ipv4: None,
            now: Timestamp::now(),
        };
        stop::plan(&input).err().map(|refused| refused.to_string()).unwrap_or_default()
    };
    let listed = inventory(&moto, &options(1)).await;
    assert!(refusal(&listed, &ids[0]).contains("AWS Batch compute environment omics"), "{}", refusal(&listed, &ids[0]));
    assert!(refusal(&listed, &ids[2]).contains("ECS cluster web"), "{}", refusal(&listed, &ids[2]));
    assert_eq!(refusal(&listed, &ids[3]), "", "nobody has it");
    for (action, permission) in [
        ("DescribeComputeEnvironments", "batch:DescribeComputeEnvironments: denied"),
        ("ListJobs", "batch:ListJobs: denied"),
        ("ListClusters", "ecs:ListClusters: denied"),
        ("DescribeTasks", "ecs:DescribeTasks: denied"),
    ] {
        moto.fail(&[fault(action, "AccessDeniedException")]).await;
        let denied = inventory(&moto, &options(1)).await;
        assert!(refusal(&denied, &ids[3]).contains(permission), "{}", refusal(&denied, &ids[3]));
    }
}
