//! What is left over is found once, with its price, and is gone when the state is.

use jiff::Timestamp;
use lab::{
    aws::{Address, Fault, Instance, Moto, Snapshot, Volume},
    sweeper::Sweeper,
};
use serde_json::{Value, json};
use std::{collections::BTreeMap, time::Duration};

lab::on_both_databases! {
    what_is_left_over_is_found_once_with_its_price_and_gone_when_it_is_used_or_released,
}

const REGION: &str = "us-east-1";
/// What the sweeper waits for; a sweep takes less.
const LEFT_AFTER: Duration = Duration::from_secs(3);

fn by_resource(report: &Value) -> BTreeMap<String, Value> {
    let findings = report["findings"].as_array().unwrap().iter();
    findings.map(|finding| (finding["resource"].as_str().unwrap().to_owned(), finding.clone())).collect()
}

async fn what_is_left_over_is_found_once_with_its_price_and_gone_when_it_is_used_or_released(url: String) {
    let folder = tempfile::tempdir().unwrap();
    let moto = Moto::start(&folder.path().join("aws")).await;
    let machines = moto.run(REGION, &[Instance { count: Some(2), ..Instance::default() }]).await;
    let [machine, stopped] = [&machines[0], &machines[1]];
    moto.query("ec2", REGION, &[("Action", "StopInstances"), ("InstanceId.1", stopped)]).await;
    let tags = |name: &str| [("Name".to_owned(), name.to_owned()), ("owner".to_owned(), "genomics".to_owned())].into();
    let volume = |name| Volume {
        size_gib: Some(100),
        iops: Some(3_000),
        throughput: Some(125),
        tags: tags(name),
        ..Volume::default()
    };
    let volumes = [volume("scratch"), volume("reads"), Volume { state: Some("error".into()), ..volume("broken") }];
    let volumes = moto.volumes(REGION, &volumes).await;
    // A copy of a volume that is deleted at once, one of a volume that stays, one of which an image is made, and one that is young.
    let old: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
    let gone = moto.volumes(REGION, &[Volume::default()]).await.remove(0);
    let copy = |volume: &String, started_at| Snapshot { volume: volume.clone(), started_at, ..Snapshot::default() };
    let copies = [
        Snapshot { tags: tags("before the move"), ..copy(&gone, Some(old)) },
        copy(&volumes[0], Some(old)),
        Snapshot { image: Some("base".into()), ..copy(&gone, Some(old)) },
        copy(&gone, None),
    ];
    let copies = moto.snapshots(REGION, &copies).await;
    moto.query("ec2", REGION, &[("Action", "DeleteVolume"), ("VolumeId", &gone)]).await;
    let addresses = [Address::default(), Address { service_managed: Some("alb".into()), ..Address::default() }];
    let addresses = moto.addresses(REGION, &addresses).await;
    let seconds = LEFT_AFTER.as_secs();
    let config = format!(
        "[store]\nurl = \"{url}\"\n[aws]\nregions = [\"{REGION}\"]\n[verdict]\nleftover_after = \"{seconds}s\"\nstopped_after = \"{seconds}s\"\n"
    );
    let environment = moto.environment();
    let environment: Vec<_> = environment.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    let sweeper = Sweeper::prepare(&folder.path().join("sweeper"), &config, &environment);
    let began = Timestamp::now();

    // One list tells what is, and not for how long.
    let (code, report) = sweeper.sweep().await;
    assert_eq!((code, &report["findings"]), (0, &json!([])), "{report:#}");
    tokio::time::sleep(LEFT_AFTER).await;
    let (_, report) = sweeper.sweep().await;
    let found = by_resource(&report);
    let key = |id: &str| format!("aws:{}:{REGION}:{id}", lab::aws::ACCOUNT);
    let [scratch, reads, address, off, orphan] =
        [&volumes[0], &volumes[1], &addresses[0], stopped, &copies[0]].map(|id| key(id));
    assert_eq!(found.keys().collect::<Vec<_>>(), {
        let mut expected = vec![&scratch, &reads, &address, &off, &orphan];
        expected.sort();
        expected
    });
    let one = &found[&scratch];
    // 100 GiB at $0.08 a month of 730 hours, and $0.005 an hour.
    let told = [&one["class"], &one["described"], &one["name"], &one["cost_micro_usd_per_hour"], &one["verdict"]];
    assert_eq!(
        told,
        [&json!("unattached_volume"), &json!("100 GiB gp3"), &json!("scratch"), &json!(10_959), &Value::Null]
    );
    let other = &found[&address];
    assert_eq!([&other["class"], &other["cost_micro_usd_per_hour"]], [&json!("unused_address"), &json!(5_000)]);
    assert_eq!(found[&off]["class"], "stopped_instance", "{:#}", found[&off]);
    let copy = &found[&orphan];
    let described = format!("copy of {gone}, 8 GiB");
    assert_eq!([&copy["class"], &copy["described"]], [&json!("orphaned_snapshot"), &json!(described)]);
    assert_eq!(copy["cost_micro_usd_per_hour"], Value::Null);
    // 8 GiB at $0.05 a month.
    let why = copy["cost_unknown_because"].as_str().unwrap_or_default();
    assert!(why.ends_with("billed once; at most $0.40 a month"), "{copy:#}");
    let since = |finding: &Value| finding["since"].as_str().unwrap().parse::<Timestamp>().unwrap();
    let first = since(one);
    assert!(
        began <= first && first < Timestamp::now() - jiff::SignedDuration::try_from(LEFT_AFTER).unwrap(),
        "{first}"
    );

    // A tag makes another version of it, and no other finding. A list that fails ends nothing, and confirms nothing.
    let tag = [("Action", "CreateTags"), ("ResourceId.1", &volumes[0]), ("Tag.1.Key", "team"), ("Tag.1.Value", "x")];
    moto.query("ec2", REGION, &tag).await;
    let (_, report) = sweeper.sweep().await;
    assert_eq!(since(&by_resource(&report)[&scratch]), first);
    let denied = Fault {
        service: Some("ec2".into()),
        action: Some("DescribeVolumes".into()),
        code: Some("UnauthorizedOperation".into()),
        ..Fault::default()
    };
    let no_images = Fault { action: Some("DescribeImages".into()), ..denied.clone() };
    moto.fail(&[denied]).await;
    let until = by_resource(&report)[&scratch]["confirmed_until"].clone();
    let (code, report) = sweeper.sweep().await;
    let kept = by_resource(&report);
    assert_eq!((code, kept.len()), (3, 5), "{report:#}");
    assert_eq!(
        (&kept[&scratch]["confirmed_until"], since(&kept[&scratch])),
        (&until, first),
        "its cost runs on no further"
    );
    assert!(kept[&address]["confirmed_until"].as_str() > until.as_str(), "addresses were listed");
    assert_eq!(kept[&orphan]["confirmed_until"], until, "its volume may be there");
    moto.fail(&[no_images]).await;
    let (code, report) = sweeper.sweep().await;
    let kept = by_resource(&report);
    assert_eq!((code, &kept[&orphan]["confirmed_until"]), (3, &until), "an image may be made of it");
    assert!(kept[&scratch]["confirmed_until"].as_str() > until.as_str(), "volumes were listed");
    moto.fail(&[]).await;

    let (_, report) = sweeper.sweep().await;
    assert_eq!((report["opened"].as_array().unwrap().len(), by_resource(&report).len()), (0, 5), "each is found once");
    let id = one["id"].as_str().unwrap();
    let text = String::from_utf8(sweeper.run(&["explain", id]).await.stdout).unwrap();
    for part in [
        "scratch has been attached to nothing for",
        "what      100 GiB gp3",
        "owner     genomics",
        "Why left over\n  attached to nothing in every list since",
        "decided again from the kept evidence just now: the same",
        "Plan: Take a snapshot of the unattached 100 GiB gp3 volume",
    ] {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
    let table = String::from_utf8(sweeper.run(&["sweep"]).await.stdout).unwrap();
    for part in ["No idle machines found.", "Left over: billed, and used by nobody", "UNUSED FOR"] {
        assert!(table.contains(part), "`{part}` is not in:\n{table}");
    }

    let attach =
        [("Action", "AttachVolume"), ("VolumeId", &volumes[0]), ("InstanceId", machine), ("Device", "/dev/xvdf")];
    moto.query("ec2", REGION, &attach).await;
    moto.query("ec2", REGION, &[("Action", "DeleteVolume"), ("VolumeId", &volumes[1])]).await;
    moto.query("ec2", REGION, &[("Action", "ReleaseAddress"), ("AllocationId", &addresses[0])]).await;
    moto.query("ec2", REGION, &[("Action", "StartInstances"), ("InstanceId.1", stopped)]).await;
    moto.query("ec2", REGION, &[("Action", "DeleteSnapshot"), ("SnapshotId", &copies[0])]).await;
    let (_, report) = sweeper.sweep().await;
    assert_eq!(report["findings"], json!([]), "{report:#}");
    let closed = sweeper.json(&["findings", "--closed"]).await;
    let because: BTreeMap<_, _> = closed
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| (finding["resource"].as_str().unwrap(), finding["status"]["because"].as_str().unwrap()))
        .collect();
    let attached = format!("it is attached to {machine}");
    let gone = "the provider lists it no more";
    let runs = "the instance is running";
    assert_eq!(
        because,
        [(&*scratch, &*attached), (&*reads, gone), (&*address, gone), (&*off, runs), (&*orphan, gone)].into()
    );
    let (decisions, plans) = sweeper.replays().await;
    assert!(decisions >= 10 && plans >= 3, "those of the address and of both volumes: {decisions}, {plans}");
}
