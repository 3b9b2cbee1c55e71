//! A job that has outlived the job that submitted it, as CloudTrail tells, is found once and is gone when it ends.

use jiff::{SignedDuration, Timestamp};
use lab::{
    aws::{
        ACCOUNT, Fault, Instance, Launch, Moto,
        estate::{REGION, environment, job, minutes_ago, on, queue, registered, running},
    },
    sweeper::Sweeper,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

lab::on_both_databases! {
    a_job_that_outlives_the_one_that_submitted_it_is_found_until_it_ends,
}

fn key(job: &str) -> String {
    format!("aws:{ACCOUNT}:{REGION}:job/{job}")
}

/// The session that ECS opens for the role of a task.
fn session_of(task: &str) -> Value {
    json!({"type": "AssumedRole", "arn": format!("arn:aws:sts::{ACCOUNT}:assumed-role/head/{task}")})
}

fn by_resource(report: &Value) -> BTreeMap<String, Value> {
    let findings = report["findings"].as_array().unwrap().iter();
    findings.map(|finding| (finding["resource"].as_str().unwrap().to_owned(), finding.clone())).collect()
}

async fn a_job_that_outlives_the_one_that_submitted_it_is_found_until_it_ends(url: String) {
    let folder = tempfile::tempdir().unwrap();
    let moto = Moto::start(&folder.path().join("aws")).await;
    let machines = ["head", "child", "part", "own"].map(|name| Instance::named("m5.large", name));
    let ids = moto.run(REGION, &machines).await;
    let config = format!("[store]\nurl = \"{url}\"\n[aws]\nregions = [\"{REGION}\"]\ncloudtrail = true\n");
    let environment_of_moto = moto.environment();
    let environment_of_moto: Vec<_> =
        environment_of_moto.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    let sweeper = Sweeper::prepare(&folder.path().join("sweeper"), &config, &environment_of_moto);

    let part = |status: &str, more: Value| {
        let mut part = job("array:0", "q", status, more);
        part["arrayProperties"] = json!({"index": 0});
        part
    };
    let now = Timestamp::from_second(Timestamp::now().as_second()).unwrap();
    let [head, child, array, own] = ["head", "child", "array", "own"];
    moto.batch(
        REGION,
        json!({
            "environments": [environment("e", "MANAGED", "ECS", "EC2")],
            "queues": [queue("q", "e")],
            "jobs": [
                job(head, "q", "RUNNING", on("e", "t-head", "m0")), job(child, "q", "RUNNING", on("e", "t-child", "m1")),
                job(array, "q", "PENDING", json!({"arrayProperties": {"size": 2}})),
                part("RUNNING", on("e", "t-part", "m2")), job(own, "q", "RUNNING", on("e", "t-own", "m3")),
            ],
            "container_instances": (0..4).map(|n| registered("e", &format!("m{n}"), &ids[n])).collect::<Vec<_>>(),
            "tasks": (0..4).map(|n| {
                let task = ["t-head", "t-child", "t-part", "t-own"][n];
                running("e", task, Some(&format!("m{n}")), &[])
            }).collect::<Vec<_>>(),
        }),
    )
    .await;
    let user = json!({"type": "IAMUser", "arn": format!("arn:aws:iam::{ACCOUNT}:user/ada"), "userName": "ada"});
    let at = now - SignedDuration::from_mins(55);
    let started = [
        Launch::by(user.clone(), at, &ids),
        Launch::of_job(user.clone(), at, head),
        Launch::of_job(session_of("t-head"), at, child),
        Launch::of_job(session_of("t-head"), at, array),
        Launch::of_job(user, at, own),
    ];
    moto.launched(REGION, &started).await;
    let (code, report) = sweeper.sweep().await;
    assert_eq!((code, &report["findings"]), (0, &json!([])), "its head runs: {report:#}");
    let listed = report["scopes"].as_array().unwrap().iter().find(|scope| scope["kind"] == "submission").unwrap();
    assert_eq!(listed["listed"], 4, "{report:#}");

    // Its head fails, and nobody ends what it has submitted.
    let over = |status: &str, minutes| {
        let mut over = on("e", "t-head", "m0");
        over["stoppedAt"] = minutes_ago(minutes).into();
        job(head, "q", status, over)
    };
    moto.batch(REGION, json!({"jobs": [over("FAILED", 29)]})).await;
    let (_, report) = sweeper.sweep().await;
    assert_eq!(report["findings"], json!([]), "it may be ending what it submitted");
    moto.batch(REGION, json!({"jobs": [over("FAILED", 31)]})).await;
    let (code, report) = sweeper.sweep().await;
    let found = by_resource(&report);
    assert_eq!((code, found.keys().cloned().collect::<Vec<_>>()), (0, vec![key("array:0"), key(child)]), "{report:#}");
    let of_child = &found[&key(child)];
    assert_eq!((&of_child["class"], &of_child["cost_micro_usd_per_hour"]), (&json!("orphaned_job"), &json!(96_000)));
    let principal = of_child["launched_by"]["principal"].as_str().unwrap();
    assert!(principal.ends_with(":assumed-role/head/t-head"), "{principal}");
    let why = of_child["why"].as_str().unwrap();
    assert!(why.starts_with("the job that submitted it, head (align-head), has failed at "), "{why}");
    let text = String::from_utf8(sweeper.run(&["explain", of_child["id"].as_str().unwrap()]).await.stdout).unwrap();
    for part in [
        "align-child has outlived the job that submitted it for",
        "submitted by arn:aws:sts::",
        "no plan changes AWS Batch yet",
    ] {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }

    // Batch tells of a job that is over for a day, and the trail may be refused: what was known stays so.
    moto.batch(REGION, json!({"jobs": [over("FAILED", 60 * 30)]})).await;
    let refused =
        Fault { service: Some("cloudtrail".into()), code: Some("AccessDeniedException".into()), ..Fault::default() };
    moto.fail(&[refused]).await;
    let (code, later) = sweeper.sweep().await;
    assert_eq!(code, 0, "nobody is asked while each is known: {later:#}");
    let until = |report: &Value| by_resource(report)[&key(child)]["confirmed_until"].to_string();
    assert!(until(&later) > until(&report), "{later:#}");
    assert_eq!(by_resource(&later)[&key(child)]["since"], of_child["since"]);
    moto.batch(REGION, json!({"jobs": [job("new", "q", "RUNNABLE", json!({}))]})).await;
    let (code, later) = sweeper.sweep().await;
    let denied = later["scopes"].as_array().unwrap().iter().find(|scope| scope["kind"] == "submission").unwrap();
    assert_eq!(code, 3, "{later:#}");
    assert!(denied["failed"].as_str().unwrap().starts_with("cloudtrail:LookupEvents: denied"), "{denied}");
    assert_eq!(by_resource(&later).len(), 2);
    moto.fail(&[]).await;

    let ended = json!({"stoppedAt": minutes_ago(0)});
    moto.batch(
        REGION,
        json!({"jobs": [
            job(child, "q", "SUCCEEDED", ended.clone()), part("FAILED", ended.clone()), job("new", "q", "SUCCEEDED", ended),
        ]}),
    )
    .await;
    let (code, report) = sweeper.sweep().await;
    assert_eq!((code, &report["findings"]), (0, &json!([])));
    let closed = sweeper.json(&["findings", "--closed"]).await;
    let because: BTreeMap<_, _> = closed
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| (finding["resource"].as_str().unwrap(), finding["status"]["because"].as_str().unwrap()))
        .collect();
    assert_eq!(because, [(&*key(child), "the job is SUCCEEDED"), (&*key("array:0"), "the job is FAILED")].into());
    let (decisions, plans) = sweeper.replays().await;
    assert!(decisions >= 4 && plans == 0, "{decisions}");
}
