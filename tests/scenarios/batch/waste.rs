//! What of AWS Batch gets nowhere is found once, with its cost or the reason why that is not known, and is gone when the state is.

use jiff::{SignedDuration, Timestamp};
use lab::{
    aws::{
        ACCOUNT, Fault, Instance, Moto,
        estate::{REGION, environment, job, minutes_ago, on, queue, registered, running},
    },
    sweeper::Sweeper,
};
use serde_json::{Value, json};
use std::{collections::BTreeMap, time::Duration};

lab::on_both_databases! {
    what_gets_nowhere_is_found_once_with_its_cost_and_gone_when_the_state_is,
}

/// What the sweeper waits for; a sweep takes less.
const AFTER: Duration = Duration::from_secs(3);

fn by_resource(report: &Value) -> BTreeMap<String, Value> {
    let findings = report["findings"].as_array().unwrap().iter();
    findings.map(|finding| (finding["resource"].as_str().unwrap().to_owned(), finding.clone())).collect()
}

/// Class and cost an hour by resource.
fn classes(report: &Value) -> BTreeMap<String, (String, Value)> {
    let told =
        |finding: Value| (finding["class"].as_str().unwrap().to_owned(), finding["cost_micro_usd_per_hour"].clone());
    by_resource(report).into_iter().map(|(resource, finding)| (resource, told(finding))).collect()
}

fn key(id: &str) -> String {
    format!("aws:{ACCOUNT}:{REGION}:{id}")
}

/// With the machines that are kept for it.
fn held(min_vcpus: u32) -> Value {
    let mut held = environment("held", "MANAGED", "ECS", "EC2");
    held["computeResources"]["minvCpus"] = min_vcpus.into();
    held
}

fn child(number: u32, status: &str, more: Value) -> Value {
    let mut child = job(&format!("array:{number}"), "busy", status, more);
    child["arrayProperties"] = json!({"index": number});
    child
}

async fn what_gets_nowhere_is_found_once_with_its_cost_and_gone_when_the_state_is(url: String) {
    let folder = tempfile::tempdir().unwrap();
    let moto = Moto::start(&folder.path().join("aws")).await;
    let hour_ago = Some(Timestamp::now() - SignedDuration::from_hours(1));
    let machine = |name| Instance { launched_at: hour_ago, ..Instance::named("m5.large", name) };
    let worker =
        Instance { tags: [("AWSBatchServiceTag".to_owned(), "batch".to_owned())].into(), ..machine("joined-nothing") };
    let tags = [("AWSBatchServiceTag", "batch"), ("aws:batch:compute-environment", "deleted")];
    let tags = tags.map(|(tag, value)| (tag.to_owned(), value.to_owned())).into();
    let abandoned = Instance { tags, ..machine("abandoned") };
    let machines = [worker, machine("kept"), machine("starts"), machine("lost"), machine("straggles"), abandoned];
    let machines = moto.run(REGION, &machines).await;
    let [worker, kept, starts, lost, straggles, abandoned] = [0, 1, 2, 3, 4, 5].map(|index| machines[index].as_str());
    let seconds = AFTER.as_secs();
    let config = format!(
        "[store]\nurl = \"{url}\"\n[aws]\nregions = [\"{REGION}\"]\n[batch]\nblocked_after = \"10m\"\nstarting_after = \"10m\"\n\
         lost_after = \"{seconds}s\"\nstraggling_after = \"10m\"\nheld_after = \"{seconds}s\"\nregister_after = \"10m\"\n"
    );
    let environment_of_moto = moto.environment();
    let environment_of_moto: Vec<_> =
        environment_of_moto.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    let sweeper = Sweeper::prepare(&folder.path().join("sweeper"), &config, &environment_of_moto);

    // No job runs anywhere: one waits, for what Batch says, and one environment keeps a machine.
    let reason = "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT - no instance type fits";
    moto.batch(
        REGION,
        json!({
            "environments": [environment("busy", "MANAGED", "ECS", "EC2"), held(4)],
            "queues": [queue("busy", "busy"), queue("held", "held")],
            "jobs": [
                job("stuck", "busy", "RUNNABLE", json!({"statusReason": reason})),
                job("behind", "busy", "RUNNABLE", json!({})),
            ],
            "container_instances": [registered("held", "k", kept)],
        }),
    )
    .await;
    let (code, report) = sweeper.sweep().await;
    assert_eq!(code, 0, "{report:#}");
    let per_hour = json!(96_000);
    let of = |class: &str, cost: &Value| (class.to_owned(), cost.clone());
    let (blocked, unregistered) = (key("queue/busy"), key(worker));
    let mut expected: BTreeMap<_, _> = [
        (blocked.clone(), of("blocked_queue", &json!(0))),
        (unregistered.clone(), of("unregistered_worker", &per_hour)),
        (key(abandoned), of("abandoned_worker", &per_hour)),
    ]
    .into();
    assert_eq!(classes(&report), expected, "how long it keeps machines one list does not tell");
    let told = &by_resource(&report)[&blocked]["why"];
    assert!(told.as_str().unwrap().starts_with("2 jobs wait to be placed, stuck (align-stuck) since"), "{told}");
    assert!(told.as_str().unwrap().ends_with(reason), "{told}");
    tokio::time::sleep(AFTER).await;
    let (_, report) = sweeper.sweep().await;
    expected.insert(key("environment/held"), of("held_capacity", &per_hour));
    assert_eq!(classes(&report), expected);
    let table = String::from_utf8(sweeper.run(&["findings"]).await.stdout).unwrap();
    assert!(table.contains("AWS Batch: queues, jobs and machines that get nowhere"), "{table}");

    // Jobs run: one gets no further than its start, one has lost its task, one is the last of its array by far. Which of its machines are
    // registered is not listed any more, and ends nothing.
    let now = Timestamp::now().as_second();
    let with = |mut task: Value, fields: &[(&str, Value)]| {
        fields.iter().for_each(|(name, value)| task["is"][*name] = value.clone());
        task
    };
    let over = |minutes: i64| json!({"startedAt": minutes_ago(minutes), "stoppedAt": minutes_ago(minutes - 2)});
    moto.batch(
        REGION,
        json!({
            "jobs": [
                job("starting", "busy", "STARTING", on("busy", "t1", "m1")),
                job("lost", "busy", "RUNNING", on("busy", "t2", "m2")),
                job("array", "busy", "PENDING", json!({"arrayProperties": {"size": 4}})),
                child(0, "SUCCEEDED", over(49)), child(1, "FAILED", over(48)), child(2, "SUCCEEDED", over(45)),
                child(3, "RUNNING", on("busy", "t3", "m3")),
            ],
            "container_instances": [
                registered("busy", "m1", starts), registered("busy", "m2", lost), registered("busy", "m3", straggles),
            ],
            "tasks": [
                with(running("busy", "t1", Some("m1"), &[]), &[("lastStatus", json!("PENDING")), ("createdAt", json!(now - 1_200))]),
                with(running("busy", "t2", Some("m2"), &[]), &[
                    ("lastStatus", json!("STOPPED")), ("stoppedAt", json!(now - 60)), ("stoppedReason", json!("Host EC2 terminated")),
                ]),
                running("busy", "t3", Some("m3"), &[]),
            ],
        }),
    )
    .await;
    let (code, report) = sweeper.sweep().await;
    assert_eq!(code, 0);
    for (id, class) in [("starting", "starting_job"), ("lost", "lost_job"), ("array:3", "straggling_job")] {
        expected.insert(key(&format!("job/{id}")), of(class, &per_hour));
    }
    assert_eq!(classes(&report), expected);
    let lost_job = &by_resource(&report)[&key("job/lost")];
    let text = String::from_utf8(sweeper.run(&["explain", lost_job["id"].as_str().unwrap()]).await.stdout).unwrap();
    for part in [
        "align-lost has been without its containers for",
        "what      align:3",
        "AWS Batch says that it is RUNNING, and its task has stopped at",
        "(Host EC2 terminated)",
        "decided again from the kept evidence just now: the same",
        "no plan changes AWS Batch yet",
    ] {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }

    // Without the list of tasks nobody knows of the lost one; without that of jobs nothing of any.
    let until = |report: &Value, resource: &str| by_resource(report)[resource]["confirmed_until"].to_string();
    let denied = |service: &str, action: &str| Fault {
        service: Some(service.into()),
        action: Some(action.into()),
        code: Some("AccessDeniedException".into()),
        ..Fault::default()
    };
    moto.fail(&[denied("ecs", "DescribeTasks")]).await;
    let (code, without_tasks) = sweeper.sweep().await;
    assert_eq!((code, classes(&without_tasks)), (3, expected.clone()));
    let (lost_key, last_key) = (key("job/lost"), key("job/array:3"));
    assert_eq!(until(&without_tasks, &lost_key), until(&report, &lost_key), "its cost runs on no further");
    assert!(until(&without_tasks, &last_key) > until(&report, &last_key));
    moto.fail(&[denied("batch", "ListJobs")]).await;
    let (code, without_jobs) = sweeper.sweep().await;
    assert_eq!((code, classes(&without_jobs).len()), (3, expected.len()));
    for resource in expected.keys().filter(|resource| **resource != key(abandoned)) {
        assert_eq!(until(&without_jobs, resource), until(&without_tasks, resource), "{resource}");
    }
    let abandoned_key = key(abandoned);
    assert!(until(&without_jobs, &abandoned_key) > until(&without_tasks, &abandoned_key), "it asks for no job");
    moto.fail(&[]).await;

    // Everything gets on, or ends.
    moto.batch(
        REGION,
        json!({
            "environments": [held(0)],
            "jobs": [
                job("stuck", "busy", "FAILED", json!({"stoppedAt": minutes_ago(0)})),
                job("behind", "busy", "FAILED", json!({"stoppedAt": minutes_ago(0)})),
                job("starting", "busy", "RUNNING", on("busy", "t1", "m1")),
                job("lost", "busy", "FAILED", json!({"stoppedAt": minutes_ago(0)})),
                child(3, "SUCCEEDED", json!({"startedAt": minutes_ago(50), "stoppedAt": minutes_ago(0)})),
            ],
            "tasks": [running("busy", "t1", Some("m1"), &[])],
        }),
    )
    .await;
    moto.query(
        "ec2",
        REGION,
        &[("Action", "TerminateInstances"), ("InstanceId.1", worker), ("InstanceId.2", abandoned)],
    )
    .await;
    let (_, report) = sweeper.sweep().await;
    assert_eq!(classes(&report), BTreeMap::new());
    let closed = sweeper.json(&["findings", "--closed"]).await;
    let closed = closed.as_array().unwrap().iter();
    let because: BTreeMap<_, _> = closed
        .map(|finding| (finding["resource"].as_str().unwrap(), finding["status"]["because"].as_str().unwrap()))
        .collect();
    let ended = [
        ("queue/busy", "no job of it waits to be placed"),
        (worker, "the instance is terminated"),
        (abandoned, "the instance is terminated"),
        ("environment/held", "it keeps no vCPU ready"),
        ("job/starting", "the job is RUNNING"),
        ("job/lost", "the job is FAILED"),
        ("job/array:3", "the job is SUCCEEDED"),
    ];
    let ended: Vec<_> = ended.map(|(id, why)| (key(id), why)).into();
    assert_eq!(because, ended.iter().map(|(id, why)| (id.as_str(), *why)).collect());
    let (decisions, plans) = sweeper.replays().await;
    assert!(decisions >= 14 && plans == 0, "{decisions}");
}
