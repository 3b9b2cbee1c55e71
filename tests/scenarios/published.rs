//! What AWS leaves out, adds or renames in Batch's and ECS's answers tomorrow breaks no list.
//!
//! The answers are the examples that AWS publishes with its models: *made*, not recorded, for no public recording shows jobs in any state. Every
//! member of every object is cut out once, every object gets one more that nobody knows, and every word is replaced once by one of a later day.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use lab::{
    aws::{self, ACCOUNT},
    recorded::{Recorded, published},
};
use model::ResourceKind;
use serde_json::{Value, json};
use sweeper::inventory::{
    Inventory, Kind, Outcome, RetryPolicy, Silent,
    aws::{Options, Session, collect},
};

const BATCH: &str = "batch/2016-08-10";
const ECS: &str = "ecs/2014-11-13";

const IDENTITY: &str = "<GetCallerIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><GetCallerIdentityResult>\
    <Account>ACCOUNT</Account></GetCallerIdentityResult></GetCallerIdentityResponse>";

/// Where an example is said, what kind it is of, and the paths of the members without which a thing cannot be told from another, or a list be read.
struct Answer {
    said_to: &'static str,
    kind: Kind,
    told: Value,
    needed: &'static [&'static str],
}

fn answers() -> Vec<Answer> {
    let first = |model, action| published(model, action).swap_remove(0);
    let of = |said_to, kind, told, needed| Answer { said_to, kind, told, needed };
    // The examples name no cluster and are of several accounts; what they name each other by is made to fit.
    let mut jobs = first(BATCH, "DescribeJobs");
    jobs["jobs"][0]["status"] = "RUNNING".into();
    jobs["jobs"][0]["container"]["taskArn"] = "arn:aws:ecs:us-east-1:012345678910:task/c/t".into();
    jobs["jobs"][0]["attempts"] =
        json!([{"container": {"exitCode": 1, "reason": "r"}, "startedAt": 5, "stoppedAt": 6, "statusReason": "s"}]);
    let id = jobs["jobs"][0]["jobId"].clone();
    let listed = json!({"jobSummaryList": [{"jobId": id, "jobName": "example", "status": "RUNNING", "createdAt": 1}]});
    let mut tasks = first(ECS, "DescribeTasks");
    tasks["tasks"][0]["containers"][0]["runtimeId"] = "ab12".into();
    vec![
        of(
            "/v1/describecomputeenvironments",
            ResourceKind::BatchComputeEnvironment.into(),
            first(BATCH, "DescribeComputeEnvironments"),
            &["/computeEnvironments", "/computeEnvironments/0/computeEnvironmentName"],
        ),
        of(
            "/v1/describejobqueues",
            ResourceKind::BatchJobQueue.into(),
            first(BATCH, "DescribeJobQueues"),
            &["/jobQueues", "/jobQueues/0/jobQueueName"],
        ),
        of("/v1/listjobs", ResourceKind::BatchJob.into(), listed, &["/jobSummaryList", "/jobSummaryList/0/jobId"]),
        of("/v1/describejobs", ResourceKind::BatchJob.into(), jobs, &["/jobs", "/jobs/0/jobId"]),
        of("DescribeTasks", ResourceKind::EcsTask.into(), tasks, &["/tasks", "/tasks/0/taskArn"]),
        of(
            "DescribeContainerInstances",
            ResourceKind::EcsContainerInstance.into(),
            first(ECS, "DescribeContainerInstances"),
            &["/containerInstances", "/containerInstances/0/containerInstanceArn"],
        ),
    ]
}

/// Answers to all lists, of which one is then changed.
struct Site {
    recorded: Recorded,
    session: Session,
    options: Options,
}

impl Site {
    async fn new() -> Self {
        let recorded = Recorded::start().await;
        recorded.say("GetCallerIdentity", IDENTITY.replace("ACCOUNT", ACCOUNT));
        for answer in answers() {
            recorded.say(answer.said_to, answer.told.to_string());
        }
        recorded.say("ListClusters", json!({"clusterArns": ["arn:aws:ecs:us-east-1:1:cluster/c"]}).to_string());
        recorded.say(
            "ListContainerInstances",
            json!({"containerInstanceArns": ["arn:aws:ecs:us-east-1:1:container-instance/c/a"]}).to_string(),
        );
        let retry = RetryPolicy { attempts: 1, ..RetryPolicy::default() };
        let options = Options { regions: vec!["us-east-1".into()], retry, ..Options::default() };
        let session = Session::open_with(aws::loader(recorded.url()), &options).await.unwrap().unwrap();
        Self { recorded, session, options }
    }

    /// What is read where one answer is this one, and how that kind went.
    async fn read(&self, answer: &Answer, told: &Value) -> (Inventory, Option<usize>) {
        self.recorded.say(answer.said_to, told.to_string());
        let inventory = collect(&self.session, &self.options, &Silent).await;
        self.recorded.say(answer.said_to, answer.told.to_string());
        let listing = inventory.listings.iter().find(|listing| listing.kind == Some(answer.kind)).unwrap();
        let listed = match &listing.outcome {
            Outcome::Complete { listed } => Some(*listed),
            Outcome::Failed { .. } => None,
        };
        (inventory, listed)
    }
}

/// Every place in a value: the path to it, and its last name.
fn places(value: &Value, path: &str, found: &mut Vec<(String, String)>) {
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(members) => members.iter().map(|(name, value)| (name.clone(), value)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(n, value)| (n.to_string(), value)).collect(),
        _ => return,
    };
    for (name, value) in inner {
        let path = format!("{path}/{name}");
        found.push((path.clone(), name));
        places(value, &path, found);
    }
}

fn all_places(value: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    places(value, "", &mut found);
    found
}

#[tokio::test]
async fn the_published_examples_are_read_whole() {
    let site = Site::new().await;
    for answer in answers() {
        let (inventory, listed) = site.read(&answer, &answer.told).await;
        assert_eq!(listed, Some(1), "{}: {:?}", answer.said_to, inventory.listings);
    }
    let (inventory, _) = site.read(&answers()[0], &answers()[0].told).await;
    assert_eq!(inventory.batch_compute_environments[0].desired_vcpus, Some(48));
    assert_eq!(inventory.batch_job_queues[0].priority, Some(1));
    assert_eq!(inventory.batch_jobs[0].created_at.unwrap().as_millisecond(), 1_480_460_782_010);
    assert_eq!(inventory.ecs_container_instances[0].instance_id.as_deref(), Some("i-807f3249"));
}

#[tokio::test]
async fn a_member_that_is_left_out_is_not_known_and_breaks_no_list() {
    let site = Site::new().await;
    for answer in answers() {
        for (path, name) in all_places(&answer.told) {
            let Some((parent, _)) = path.rsplit_once('/') else { continue };
            let mut less = answer.told.clone();
            let Some(members) = less.pointer_mut(parent).unwrap().as_object_mut() else { continue };
            members.remove(&name);
            let (_, listed) = site.read(&answer, &less).await;
            let expected = if answer.needed.contains(&path.as_str()) { None } else { Some(1) };
            assert_eq!(listed, expected, "{} without {path}", answer.said_to);
        }
    }
}

#[tokio::test]
async fn a_member_of_a_later_day_changes_nothing() {
    let site = Site::new().await;
    for answer in answers() {
        let (whole, _) = site.read(&answer, &answer.told).await;
        for (path, _) in all_places(&answer.told).into_iter().chain([(String::new(), String::new())]) {
            let mut more = answer.told.clone();
            // In a map of somebody's own names one more is theirs.
            let is_map = ["tags", "parameters"].iter().any(|map| path.ends_with(map));
            let Some(members) = more.pointer_mut(&path).unwrap().as_object_mut().filter(|_| !is_map) else { continue };
            members.insert("brandNew".into(), json!([{"x": 1}]));
            let (read, _) = site.read(&answer, &more).await;
            assert!(read == whole, "{} with more in {path}: {:?}", answer.said_to, read.listings);
        }
    }
}

#[tokio::test]
async fn a_word_of_a_later_day_is_kept_and_breaks_no_list() {
    let site = Site::new().await;
    let mut kept = 0;
    for answer in answers() {
        for (path, name) in all_places(&answer.told) {
            let is_word = ["state", "status", "type", "lastStatus", "desiredStatus"].contains(&name.as_str());
            if !is_word || !answer.told.pointer(&path).unwrap().is_string() {
                continue;
            }
            let mut later = answer.told.clone();
            *later.pointer_mut(&path).unwrap() = "brand-new".into();
            let (read, listed) = site.read(&answer, &later).await;
            assert_eq!(listed, Some(1), "{} {path}", answer.said_to);
            kept += usize::from(format!("{read:?}").contains("brand-new"));
        }
    }
    assert!(kept >= 7, "the words of environments, queues, jobs, tasks and machines: {kept}");
}
