//! The policies that the documentation gives are what the code calls, no action less and none more; what acts reads nothing, and what reads changes nothing.

use crate::{
    addresses::{FOR_GOOD, unused},
    jobs::TERMINATES,
    members::ENDS,
    site::{REGION, SWITCHED_ON, Site},
    volumes::scratch,
};
use lab::aws::{
    Instance, Snapshot, Volume,
    estate::{environment, job, minutes_ago, on, queue, registered, running},
};
use sea_orm::ConnectionTrait as _;
use serde_json::{Value, json};
use std::{collections::BTreeSet, fs};

/// The credentials that sweeps have.
const READS: &str = "AKIAIOSFODNN7EXAMPLE";
/// No policy need allow it.
const ALWAYS_GRANTED: &str = "sts:GetCallerIdentity";

/// The JSON blocks of a page.
pub(crate) fn blocks(page: &str) -> Vec<Value> {
    let text = fs::read_to_string(lab::binaries::checkout().join(page)).unwrap();
    let blocks = text.split("```json").skip(1).filter_map(|rest| rest.split("```").next().map(str::to_owned));
    blocks.filter_map(|block| serde_json::from_str(&block).ok()).collect()
}

/// The actions that a policy allows.
pub(crate) fn allowed(policy: &Value) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    let statements = policy["Statement"].as_array().into_iter().flatten();
    // What one denies besides is no right.
    for statement in statements.filter(|statement| statement["Effect"] != "Deny") {
        assert_eq!(statement["Effect"], "Allow");
        match &statement["Action"] {
            Value::String(one) => drop(all.insert(one.clone())),
            many => all.extend(many.as_array().unwrap().iter().map(|one| one.as_str().unwrap().to_owned())),
        }
    }
    all
}

/// The actions that a page names in its text, of these services, in the paragraph that begins so.
pub(crate) fn named(page: &str, begins: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(lab::binaries::checkout().join(page)).unwrap();
    let paragraph = text.lines().find(|line| line.starts_with(begins)).unwrap();
    paragraph.split('`').filter(|part| part.contains(':') && !part.contains(' ')).map(str::to_owned).collect()
}

#[tokio::test]
async fn the_policies_are_what_is_called_in_both_directions() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}?mode=rwc", folder.path().join("sweeper.db").display());
    let site = Site::start_leaving(&url, FOR_GOOD, SWITCHED_ON, &[unused("gateway")], &[scratch("scratch")]).await;
    // Something of everything that is listed by a call of its own.
    // Of a type whose price nobody has asked for yet.
    let made = Volume { volume_type: Some("st1".into()), size_gib: Some(500), ..Volume::default() };
    let [volume] = site.moto.volumes(REGION, &[made]).await.try_into().unwrap();
    site.moto.snapshots(REGION, &[Snapshot { volume, ..Snapshot::default() }]).await;
    site.moto
        .run(REGION, &[Instance { lifecycle: Some("spot".to_owned()), ..Instance::named("m5.large", "spot") }])
        .await;
    let containers = [("default", "c1")];
    let put = json!({
        "environments": [environment("own", "MANAGED", "ECS", "EC2")],
        "queues": [queue("own", "own")],
        "jobs": [job("j1", "own", "RUNNING", on("own", "t1", "m1")), job("j2", "own", "SUCCEEDED", json!({"stoppedAt": minutes_ago(5)}))],
        "container_instances": [registered("own", "m1", "i-00000000000000001"), registered("web", "m2", "i-00000000000000002")],
        "tasks": [running("own", "t1", Some("m1"), &containers)],
    });
    site.moto.batch(REGION, put).await;
    site.target_group("web").await;
    // What zones offer is asked for where a machine has been watched for a week.
    let watched = "UPDATE nodes SET joined_at_unix_ms = joined_at_unix_ms - 8 * 86400000";
    site.store.connection().execute_unprepared(watched).await.unwrap();
    // What the scenario itself asked for is none of the sweeper's.
    let before = site.moto.calls().await.len();
    site.sweeper.sweep().await;
    let (ada, grace) = (site.enrol("ada").await, site.enrol("grace").await);
    // What nothing undoes comes first: none of it is done within a day of an undo.
    let release = site.plan_to("gateway").await;
    site.approve(&release, &ada).await;
    site.approve(&release, &grace).await;
    let delete = site.plan_to("(scratch)").await;
    site.approve(&delete, &ada).await;
    site.approve(&delete, &grace).await;
    for plan in [release, delete] {
        let ended = site.ended(&plan).await;
        assert_eq!(ended["state"], "done", "{ended:#}");
    }
    let (plan, token) = (site.plan_to("Stop the idle").await, ada.to_str().unwrap());
    let approved = site.run(&["approve", &plan, "--token-file", token, "--wait"]).await;
    assert_eq!(approved.code, 0, "{approved:?}");
    let undone = site.run(&["undo", &plan, "--token-file", token, "--wait"]).await;
    assert_eq!(undone.code, 0, "{undone:?}");

    // Nothing more is done there within a day of an undo, and what belongs to a group is not stopped: another site has one.
    let other = format!("sqlite://{}?mode=rwc", folder.path().join("grouped.db").display());
    let grouped = Site::start_grouped(&other, FOR_GOOD, &format!("{SWITCHED_ON}{ENDS}")).await;
    let before_grouped = grouped.moto.calls().await.len();
    let end = grouped.plan_to("(align-7)").await;
    for name in ["ada", "grace"] {
        grouped.approve(&end, &grouped.enrol(name).await).await;
    }
    let ended = grouped.ended(&end).await;
    assert_eq!(ended["state"], "done", "{ended:#}");

    // Where a job runs nothing is stopped.
    let other = format!("sqlite://{}?mode=rwc", folder.path().join("busy.db").display());
    let busy = Site::start_with_job(&other, FOR_GOOD, &format!("{SWITCHED_ON}{TERMINATES}")).await;
    let before_busy = busy.moto.calls().await.len();
    let terminate = busy.plan_to("Terminate the stuck").await;
    for name in ["ada", "grace"] {
        busy.approve(&terminate, &busy.enrol(name).await).await;
    }
    let ended = busy.ended(&terminate).await;
    assert_eq!(ended["state"], "done", "{ended:#}");

    let mut calls = site.moto.calls().await.split_off(before);
    calls.extend(grouped.moto.calls().await.split_off(before_grouped));
    calls.extend(busy.moto.calls().await.split_off(before_busy));
    let of = |reads: bool| -> BTreeSet<String> {
        let of = calls.iter().filter(|call| (call.access_key == READS) == reads);
        of.map(|call| format!("{}:{}", call.service, call.action)).filter(|call| call != ALWAYS_GRANTED).collect()
    };
    let policies = blocks("docs/approvals.md");
    let [acts, trust] = policies.as_slice() else { panic!("{policies:#?}") };
    assert_eq!(of(false), allowed(acts), "what acts");
    let mut reads = allowed(&blocks("README.md")[0]);
    reads.extend(named("docs/approvals.md", "What reads needs beside"));
    // Regions are named here.
    assert!(reads.remove("ec2:DescribeRegions"));
    let mut assumes = allowed(trust);
    // A parameter of the other one, which IAM knows as an action.
    assert!(assumes.remove("sts:SetSourceIdentity"));
    reads.extend(assumes);
    assert_eq!(of(true), reads, "what reads");
    for call in of(true) {
        let verb = call.split_once(':').unwrap().1;
        let changes_nothing = ["Describe", "List", "Get", "Assume"].iter().any(|begin| verb.starts_with(begin));
        assert!(changes_nothing, "{call}");
    }
}
