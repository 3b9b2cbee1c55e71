//! An Auto Scaling group of which each machine is idle is found once, and until one of them works or the group keeps none.

use jiff::{SignedDuration, Timestamp};
use lab::{
    aws::{ACCOUNT, Group, Instance, Member, Moto},
    sample,
    sweeper::Sweeper,
};
use serde_json::{Value, json};
use sweeper::store::Store;

lab::on_both_databases! {
    a_group_whose_machines_are_all_idle_is_found_until_one_of_them_works,
    a_group_is_found_that_starts_one_machine_after_the_other_for_nobody,
}

const REGION: &str = "us-east-1";
/// Half-minutes of heartbeats: an hour.
const BEATS: u64 = 120;

fn found(report: &Value) -> Vec<(&str, &str)> {
    let findings = report["findings"].as_array().unwrap().iter();
    let found = findings.map(|one| (one["class"].as_str().unwrap(), one["resource"].as_str().unwrap()));
    let mut found: Vec<_> = found.collect();
    found.sort_unstable();
    found
}

async fn a_group_whose_machines_are_all_idle_is_found_until_one_of_them_works(url: String) {
    let folder = tempfile::tempdir().unwrap();
    let moto = Moto::start(&folder.path().join("aws")).await;
    let machines = moto.run(REGION, &[Instance { count: Some(4), ..Instance::named("m5.large", "") }]).await;
    let group = |name: &str, members: &[String]| Group {
        name: name.into(),
        min: 0,
        max: 4,
        desired: 2,
        members: members.iter().map(|id| Member::of(id)).collect(),
        tags: [("owner".to_owned(), "genomics".to_owned())].into(),
    };
    moto.groups(REGION, &[group("left", &machines[..2]), group("half", &machines[2..])]).await;
    let config = format!("[store]\nurl = \"{url}\"\n[aws]\nregions = [\"{REGION}\"]\n");
    let environment = moto.environment();
    let environment: Vec<_> = environment.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    let sweeper = Sweeper::prepare(&folder.path().join("sweeper"), &config, &environment);
    sweeper.sweep().await;
    let store = Store::connect(&url).await.unwrap();
    let keys: Vec<String> = machines.iter().map(|id| format!("aws:{ACCOUNT}:{REGION}:{id}")).collect();
    // Nobody knows what the last one does.
    for key in &keys[..3] {
        sample::report(&store, &key.parse().unwrap(), sample::boot(1), 1..=BEATS, sample::quiet).await;
    }

    let left = format!("aws:{ACCOUNT}:{REGION}:group/left");
    let mut expected: Vec<_> = keys[..3].iter().map(|key| ("idle_node", key.as_str())).collect();
    expected.push(("idle_group", &left));
    expected.sort_unstable();
    let (_, told) = sweeper.sweep().await;
    assert_eq!(found(&told), expected, "{told:#}");
    let finding = told["findings"].as_array().unwrap().iter().find(|one| one["class"] == "idle_group").unwrap();
    assert_eq!([&finding["name"], &finding["described"]], ["left", "keeps 2 machines up from left"]);
    assert_eq!(finding["proposal"], Value::Null);
    let why = finding["cost_unknown_because"].as_str().unwrap();
    assert_eq!(why, "each of its machines is a finding of its own, together $0.192/h");
    let text = String::from_utf8(sweeper.run(&["explain", finding["id"].as_str().unwrap()]).await.stdout).unwrap();
    for part in [
        "left has had nothing but idle machines for 59 min ",
        "each of its 2 machines is idle, all at once since ",
        "one that is ended alone is started again",
        "no plan changes a group yet",
        "decided again from the kept evidence just now: the same",
    ] {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }

    let key = keys[0].parse().unwrap();
    sample::report(&store, &key, sample::boot(1), BEATS + 1..=BEATS + 1, sample::worked).await;
    let (_, worked) = sweeper.sweep().await;
    assert!(found(&worked).iter().all(|(class, _)| *class == "idle_node"), "{worked:#}");
    let closed = sweeper.json(&["findings", "--closed"]).await;
    let closed = closed.as_array().unwrap().iter().find(|one| one["class"] == "idle_group").unwrap();
    assert_eq!(closed["status"]["because"], json!(format!("{} of it works", machines[0])));
    let (decisions, _) = sweeper.replays().await;
    assert!(decisions >= 4, "{decisions}");
}

async fn a_group_is_found_that_starts_one_machine_after_the_other_for_nobody(url: String) {
    let folder = tempfile::tempdir().unwrap();
    let moto = Moto::start(&folder.path().join("aws")).await;
    let day_ago = Some(Timestamp::now() - SignedDuration::from_hours(24));
    let three = |launched_at| Instance { count: Some(3), launched_at, ..Instance::named("m5.large", "") };
    // Those of the second group have worked for a day before they were idle.
    let machines = moto.run(REGION, &[three(None), three(day_ago)]).await;
    let group = |name: &str, members: &[String]| Group {
        name: name.into(),
        min: 0,
        max: 4,
        desired: 3,
        members: members.iter().map(|id| Member::of(id)).collect(),
        ..Group::default()
    };
    moto.groups(REGION, &[group("nightly", &machines[..3]), group("worked", &machines[3..])]).await;
    let config = format!("[store]\nurl = \"{url}\"\n[aws]\nregions = [\"{REGION}\"]\n");
    let environment = moto.environment();
    let environment: Vec<_> = environment.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    let sweeper = Sweeper::prepare(&folder.path().join("sweeper"), &config, &environment);
    sweeper.sweep().await;
    let store = Store::connect(&url).await.unwrap();
    for id in &machines {
        let key = format!("aws:{ACCOUNT}:{REGION}:{id}").parse().unwrap();
        sample::report(&store, &key, sample::boot(1), 1..=BEATS, sample::quiet).await;
    }
    sweeper.sweep().await;

    // Somebody ends two of them, which is no habit yet, and all of another group.
    let end = async |ids: &[&String]| {
        let mut call = vec![("Action".to_owned(), "TerminateInstances".to_owned())];
        call.extend(ids.iter().zip(1..).map(|(id, number)| (format!("InstanceId.{number}"), (*id).clone())));
        let call: Vec<_> = call.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        moto.query("ec2", REGION, &call).await;
    };
    let relaunching = |report: &Value| {
        let findings = report["findings"].as_array().unwrap().iter();
        findings.filter(|one| one["class"] == "relaunching_group").cloned().collect::<Vec<_>>()
    };
    end(&[&machines[0], &machines[1], &machines[3], &machines[4], &machines[5]]).await;
    sweeper.sweep().await;
    let (_, told) = sweeper.sweep().await;
    assert_eq!(relaunching(&told), Vec::<Value>::new(), "{told:#}");
    end(&[&machines[2]]).await;
    // This sweep sees it ended, and the next one what became of all three.
    sweeper.sweep().await;
    let (_, told) = sweeper.sweep().await;
    let found = relaunching(&told);
    let [finding] = found.as_slice() else { panic!("{told:#}") };
    assert_eq!(finding["resource"], format!("aws:{ACCOUNT}:{REGION}:group/nightly"));
    assert_eq!(finding["proposal"], Value::Null);
    let why = finding["cost_unknown_because"].as_str().unwrap();
    assert_eq!(why, "what it starts next nobody knows; what it had started cost $0.29 while it was idle");
    let text = String::from_utf8(sweeper.run(&["explain", finding["id"].as_str().unwrap()]).await.stdout).unwrap();
    for part in [
        "nightly has started machines that nobody used for ",
        "3 machines that it had started were found idle within a week and have ended, the last was idle until ",
        // 59.5 minutes of each at $0.096/h.
        "together they were idle for 2 h 58 min, which cost $0.29",
        "no plan changes a group yet",
        "decided again from the kept evidence just now: the same",
    ] {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
    let table = String::from_utf8(sweeper.run(&["findings"]).await.stdout).unwrap();
    assert!(table.contains("Relaunching groups: what they started within a week was idle until it ended"), "{table}");

    // It may start none any more.
    let call = [
        ("Action", "UpdateAutoScalingGroup"),
        ("AutoScalingGroupName", "nightly"),
        ("MinSize", "0"),
        ("MaxSize", "0"),
        ("DesiredCapacity", "0"),
    ];
    moto.query("autoscaling", REGION, &call).await;
    let (_, over) = sweeper.sweep().await;
    assert_eq!(relaunching(&over), Vec::<Value>::new(), "{over:#}");
    let closed = sweeper.json(&["findings", "--closed"]).await;
    let closed = closed.as_array().unwrap().iter().find(|one| one["class"] == "relaunching_group").unwrap();
    assert_eq!(closed["status"]["because"], "it may start no machine any more");
    let (decisions, plans) = sweeper.replays().await;
    assert!(decisions >= 5 && plans == 0, "{decisions} {plans}");
}
