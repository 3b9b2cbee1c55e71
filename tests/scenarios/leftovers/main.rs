//! What outlives machines and what owns them is listed whole, each kind by itself: what could not be listed is not known.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod found;
mod group;
mod prices;

use jiff::Timestamp;
use lab::{
    aws::{ACCOUNT, Address, Fault, Group, Instance, Member, Moto, REGIONS, Snapshot, Volume},
    sweeper::Sweeper,
};
use model::{Provider, ResourceKind, Verdict};
use recommender::rules::stop;
use serde_json::json;
use sweeper::inventory::{
    FailureKind, Inventory, Kind, Launch, Outcome, Protection, RetryPolicy, Silent, SnapshotState, StorageTier,
    VolumeAttachment, VolumeState,
    aws::{Options, Session, collect},
};

const KINDS: [Kind; 5] = [
    Kind::Resource(ResourceKind::Instance),
    Kind::Resource(ResourceKind::Volume),
    Kind::Resource(ResourceKind::Address),
    Kind::Resource(ResourceKind::Snapshot),
    Kind::Resource(ResourceKind::AutoScalingGroup),
];
/// What EC2 says of a machine that nothing protects.
const OPEN: Protection = Protection { stop: Some(false), termination: Some(false) };

/// The call that lists a kind.
fn call(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Resource(ResourceKind::Instance) => ("ec2", "DescribeInstances"),
        Kind::Resource(ResourceKind::Volume) => ("ec2", "DescribeVolumes"),
        Kind::Resource(ResourceKind::Address) => ("ec2", "DescribeAddresses"),
        Kind::Resource(ResourceKind::Snapshot) => ("ec2", "DescribeSnapshots"),
        Kind::Resource(ResourceKind::AutoScalingGroup) => ("autoscaling", "DescribeAutoScalingGroups"),
        other => unreachable!("{} is no subject here", other.as_str()),
    }
}

fn fault(kind: Kind, code: &str) -> Fault {
    let (service, action) = call(kind);
    Fault { service: Some(service.into()), action: Some(action.into()), code: Some(code.into()), ..Fault::default() }
}

/// One attempt, so that an injected fault is met at once and not waited out.
async fn inventory(moto: &Moto, regions: &[&str]) -> Inventory {
    let regions = regions.iter().map(|&region| region.to_owned()).collect();
    let retry = RetryPolicy { attempts: 1, ..RetryPolicy::default() };
    let options = Options { regions, retry, ..Options::default() };
    let session = Session::open_with(moto.loader(), &options).await.unwrap().unwrap();
    collect(&session, &options, &Silent).await
}

fn outcomes(inventory: &Inventory) -> Vec<(Kind, Result<usize, FailureKind>)> {
    let outcome = |outcome: &Outcome| match outcome {
        Outcome::Complete { listed } => Ok(*listed),
        Outcome::Failed { why, .. } => Err(why.kind),
    };
    let listings = inventory.listings.iter().map(|listing| (listing.kind.unwrap(), outcome(&listing.outcome)));
    listings.filter(|(kind, _)| KINDS.contains(kind)).collect()
}

/// How many resources of each kind arrived.
fn arrived(inventory: &Inventory) -> [usize; 5] {
    [
        inventory.instances.len(),
        inventory.volumes.len(),
        inventory.addresses.len(),
        inventory.snapshots.len(),
        inventory.autoscaling_groups.len(),
    ]
}

/// Two machines with a volume each, five more volumes, four addresses, five snapshots, four groups of which one has both machines.
async fn furnish(moto: &Moto, region: &str) {
    let machines = moto.run(region, &[Instance { count: Some(2), ..Instance::default() }]).await;
    let volumes = moto.volumes(region, &vec![Volume::default(); 5]).await;
    moto.addresses(region, &vec![Address::default(); 4]).await;
    let snapshot = |volume: &String| Snapshot { volume: volume.clone(), ..Snapshot::default() };
    moto.snapshots(region, &volumes.iter().map(snapshot).collect::<Vec<_>>()).await;
    let group = |name: &str, members: &[String]| Group {
        name: name.into(),
        max: 2,
        members: members.iter().map(|id| Member::of(id)).collect(),
        ..Group::default()
    };
    moto.groups(region, &[group("a", &machines), group("b", &[]), group("c", &[]), group("d", &[])]).await;
}

const FURNISHED: [usize; 5] = [2, 7, 4, 5, 4];

#[tokio::test]
async fn every_page_of_every_kind_is_read_in_every_region() {
    let folder = tempfile::tempdir().unwrap();
    let moto = Moto::start(folder.path()).await;
    for region in REGIONS {
        furnish(&moto, region).await;
    }
    moto.page_size(2).await;

    let inventory = inventory(&moto, &[]).await;

    assert!(inventory.is_complete(), "{:?}", inventory.listings);
    assert_eq!(arrived(&inventory), FURNISHED.map(|count| 3 * count));
    let everywhere: Vec<_> = REGIONS.iter().flat_map(|_| KINDS.into_iter().zip(FURNISHED.map(Ok))).collect();
    assert_eq!(outcomes(&inventory), everywhere);
    let calls = moto.calls().await;
    let pages = |kind| calls.iter().filter(|c| c.action == call(kind).1 && c.region == "us-east-1").count();
    assert_eq!(KINDS.map(pages), [1, 4, 1, 3, 2], "addresses have no pages");
    let of = |action: &str| calls.iter().find(|c| c.action == action).unwrap();
    assert_eq!(of("DescribeVolumes").parameters["MaxResults"], "1000");
    assert_eq!(of("DescribeSnapshots").parameters["MaxResults"], "1000");
    assert_eq!(of("DescribeSnapshots").parameters["Owner.1"], "self");
    assert_eq!(of("DescribeAutoScalingGroups").parameters["MaxRecords"], "100");
    assert!(calls.iter().all(|c| ["Describe", "Get", "List"].iter().any(|to| c.action.starts_with(to))), "read-only");
    assert!(inventory.instances.iter().all(|instance| instance.autoscaling_group.as_deref() == Some("a")));
}

#[tokio::test]
async fn what_ec2_says_of_volumes_arrives_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let moto = Moto::start(folder.path()).await;
    let created_at: Timestamp = "2025-02-03T04:05:06Z".parse().unwrap();
    let attached_at: Timestamp = "2026-03-04T05:06:07Z".parse().unwrap();
    let machine = moto.run("us-east-1", &[Instance::default()]).await.remove(0);
    let attached = Volume {
        volume_type: Some("io2".into()),
        size_gib: Some(16_384),
        iops: Some(64_000),
        created_at: Some(created_at),
        snapshot: Some("snap-0123456789abcdef0".into()),
        attached_to: Some(machine.clone()),
        attached_at: Some(attached_at),
        delete_on_termination: Some(false),
        tags: [("owner".to_owned(), "genomics".to_owned())].into(),
        ..Volume::default()
    };
    let free = Volume { throughput: Some(250), ..Volume::default() };
    let odd = Volume { volume_type: Some("z9".into()), state: Some("dreaming".into()), ..Volume::default() };
    let ids = moto.volumes("us-east-1", &[attached, free, odd]).await;

    let inventory = inventory(&moto, &["us-east-1"]).await;

    let [attached, free, odd] =
        [0, 1, 2].map(|n: usize| inventory.volumes.iter().find(|volume| volume.id.id == ids[n]).unwrap());
    assert_eq!(attached.id.to_string(), format!("aws:{ACCOUNT}:us-east-1:{}", ids[0]));
    assert_eq!((attached.volume_type.as_deref(), attached.size_gib), (Some("io2"), Some(16_384)));
    assert_eq!((attached.iops, attached.throughput_mib_per_s), (Some(64_000), None));
    assert_eq!((attached.state.as_ref(), attached.created_at), (Some(&VolumeState::InUse), Some(created_at)));
    assert_eq!(attached.availability_zone.as_deref(), Some("us-east-1a"));
    assert_eq!(attached.snapshot_id.as_deref(), Some("snap-0123456789abcdef0"));
    assert_eq!(attached.tags.get("owner").map(String::as_str), Some("genomics"));
    let attachment = VolumeAttachment {
        instance_id: Some(machine),
        device: Some("/dev/sdf".into()),
        state: Some("attached".into()),
        delete_on_termination: Some(false),
        attached_at: Some(attached_at),
    };
    assert_eq!(attached.attachments, Some(vec![attachment]));
    assert_eq!(
        (free.state.as_ref(), free.attachments.as_deref()),
        (Some(&VolumeState::Available), Some([].as_slice()))
    );
    assert_eq!((free.iops, free.throughput_mib_per_s, &free.snapshot_id), (Some(3_000), Some(250), &None));
    assert_eq!(odd.state, Some(VolumeState::Other("dreaming".into())), "a word of a later day is kept");
    assert_eq!(odd.volume_type.as_deref(), Some("z9"));
}

#[tokio::test]
async fn what_ec2_says_of_addresses_and_snapshots_arrives_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let moto = Moto::start(folder.path()).await;
    let started_at: Timestamp = "2024-05-06T07:08:09Z".parse().unwrap();
    let machine = moto.run("us-east-1", &[Instance::default()]).await.remove(0);
    let addresses = [
        Address { instance: Some(machine.clone()), ..Address::default() },
        Address { tags: [("owner".to_owned(), "web".to_owned())].into(), ..Address::default() },
        Address { service_managed: Some("alb".into()), ..Address::default() },
    ];
    let allocated = moto.addresses("us-east-1", &addresses).await;
    let volume = moto.volumes("us-east-1", &[Volume { size_gib: Some(500), ..Volume::default() }]).await.remove(0);
    let plain = Snapshot { volume: volume.clone(), ..Snapshot::default() };
    let of_machine = Snapshot {
        description: Some(format!("Created by CreateImage({machine}) for ami-1")),
        started_at: Some(started_at),
        state: Some("recoverable".into()),
        tier: Some("archive".into()),
        ..plain.clone()
    };
    let of_others = Snapshot { owner: Some("999999999999".into()), ..plain.clone() };
    let made = moto.snapshots("us-east-1", &[of_machine, plain, of_others]).await;

    let inventory = inventory(&moto, &["us-east-1"]).await;

    let [associated, free, managed] = [0, 1, 2].map(|n: usize| {
        let of = |address: &&sweeper::inventory::Address| address.allocation_id.as_deref() == Some(&allocated[n]);
        inventory.addresses.iter().find(of).unwrap()
    });
    assert_eq!(associated.instance_id, Some(machine.clone()));
    assert!(associated.association_id.is_some() && associated.network_interface_id.is_some());
    assert_eq!(associated.network_interface_owner.as_deref(), Some(ACCOUNT));
    assert_eq!((&free.association_id, &free.instance_id, &free.network_interface_id), (&None, &None, &None));
    assert_eq!(free.tags.get("owner").map(String::as_str), Some("web"));
    assert!(free.public_ipv4.is_some());
    assert_eq!((managed.service_managed.as_deref(), managed.pool.as_deref()), (Some("alb"), Some("amazon")));

    assert_eq!(inventory.snapshots.len(), 2, "those of other accounts are theirs");
    let [of_machine, plain] =
        [0, 1].map(|n: usize| inventory.snapshots.iter().find(|snapshot| snapshot.id.id == made[n]).unwrap());
    assert_eq!((&of_machine.volume_id, of_machine.volume_size_gib), (&Some(volume), Some(500)));
    assert_eq!(
        (of_machine.started_at, of_machine.state.as_ref()),
        (Some(started_at), Some(&SnapshotState::Recoverable))
    );
    assert_eq!(
        (of_machine.storage_tier.as_ref(), &of_machine.instance_id),
        (Some(&StorageTier::Archive), &Some(machine))
    );
    assert_eq!((plain.state.as_ref(), &plain.instance_id), (Some(&SnapshotState::Completed), &None));
}

#[tokio::test]
async fn a_machine_that_a_group_or_a_tag_names_is_a_member() {
    let folder = tempfile::tempdir().unwrap();
    let moto = Moto::start(folder.path()).await;
    let mut tagged = Instance::named("m5.large", "by-tag");
    tagged.tags.insert("aws:autoscaling:groupName".into(), "old".into());
    let ids = moto.run("us-east-1", &[Instance::named("m5.large", "by-list"), tagged, Instance::default()]).await;
    let member = Member {
        lifecycle_state: "Standby".into(),
        health: "Unhealthy".into(),
        protected: true,
        ..Member::of(&ids[0])
    };
    let workers = Group {
        name: "workers".into(),
        min: 1,
        max: 4,
        desired: 2,
        members: vec![member],
        tags: [("team".to_owned(), "omics".to_owned())].into(),
        ..Group::default()
    };
    moto.groups("us-east-1", &[workers]).await;
    let group_of = |inventory: &Inventory, id: &str| {
        let instance = inventory.instances.iter().find(|i| i.id.to_string().ends_with(id)).unwrap();
        let known = inventory.groups_are_known(Provider::Aws, ACCOUNT, "us-east-1");
        let schedulers = inventory.schedulers(Provider::Aws, ACCOUNT, "us-east-1");
        (instance.autoscaling_group.clone(), instance.stop_facts(known, &schedulers, OPEN).unwrap())
    };

    let listed = inventory(&moto, &["us-east-1"]).await;
    let [group] = listed.autoscaling_groups.as_slice() else { panic!("{:?}", listed.autoscaling_groups) };
    assert_eq!(group.id.to_string(), format!("aws:{ACCOUNT}:us-east-1:group/workers"));
    assert!(group.arn.as_deref().unwrap().ends_with("autoScalingGroupName/workers"));
    assert_eq!((group.min_size, group.max_size, group.desired_capacity), (Some(1), Some(4), Some(2)));
    let Some(Launch::Template(template)) = &group.launch else { panic!("{:?}", group.launch) };
    assert_eq!((template.name.as_deref(), template.version.as_deref()), (Some("workers"), Some("1")));
    let member = &group.members.as_ref().unwrap()[0];
    assert_eq!((member.lifecycle_state.as_deref(), member.health.as_deref()), (Some("Standby"), Some("Unhealthy")));
    assert_eq!((&member.instance_id, member.protected_from_scale_in), (&ids[0], Some(true)));
    assert_eq!(group.tags.get("team").map(String::as_str), Some("omics"));
    let groups = [0, 1, 2].map(|n: usize| group_of(&listed, &ids[n]).0);
    assert_eq!(groups, [Some("workers".to_owned()), Some("old".to_owned()), None]);

    let resource = group.id.clone();
    let refusal = |machine| {
        let input = stop::StopInput {
            record: 1,
            finding: "f-1".into(),
            resource: resource.clone(),
            verdict: Verdict::Idle,
            machine,
            price: stop::Price::OnDemand("0.096".parse().unwrap()),
            lent_ipv4: None,
            now: Timestamp::now(),
        };
        stop::plan(&input).err().map(|refused| refused.to_string()).unwrap_or_default()
    };
    let refused = refusal(group_of(&listed, &ids[0]).1);
    assert!(refused.contains("Auto Scaling group workers"), "{refused}");
    assert_eq!(refusal(group_of(&listed, &ids[2]).1), "", "no group lists it");

    moto.fail(&[fault(ResourceKind::AutoScalingGroup.into(), "AccessDenied")]).await;
    let denied = inventory(&moto, &["us-east-1"]).await;
    let groups = [0, 1, 2].map(|n: usize| group_of(&denied, &ids[n]).0);
    assert_eq!(groups, [None, Some("old".to_owned()), None], "only the tags are left");
    for id in [&ids[0], &ids[2]] {
        let refused = refusal(group_of(&denied, id).1);
        assert!(refused.contains("groups could not be read"), "any group may hold it: {refused}");
    }
}

#[tokio::test]
async fn a_kind_that_is_denied_is_unknown_and_leaves_the_others_alone() {
    let folder = tempfile::tempdir().unwrap();
    let moto = Moto::start(folder.path()).await;
    furnish(&moto, "us-east-1").await;
    for (n, denied) in KINDS.into_iter().enumerate() {
        let code =
            if denied == ResourceKind::AutoScalingGroup.into() { "AccessDenied" } else { "UnauthorizedOperation" };
        moto.fail(&[fault(denied, code)]).await;
        let inventory = inventory(&moto, &["us-east-1"]).await;
        let mut expected: Vec<_> = KINDS.into_iter().zip(FURNISHED.map(Ok)).collect();
        expected[n].1 = Err(FailureKind::Denied);
        assert_eq!(outcomes(&inventory), expected);
        assert_eq!(arrived(&inventory)[n], 0);
        assert!(!inventory.is_complete());
        let Outcome::Failed { what, .. } = &inventory.listings[n].outcome else { unreachable!() };
        assert_eq!(what, &format!("{}:{}", call(denied).0, call(denied).1));
    }
}

#[tokio::test]
async fn a_kind_that_fails_on_its_second_page_gives_no_half_list() {
    let folder = tempfile::tempdir().unwrap();
    let moto = Moto::start(folder.path()).await;
    furnish(&moto, "us-east-1").await;
    moto.page_size(2).await;
    let paged = [ResourceKind::Volume, ResourceKind::Snapshot, ResourceKind::AutoScalingGroup];
    moto.fail(&paged.map(|kind| Fault { after: Some(1), ..fault(kind.into(), "InternalError") })).await;
    let failed = inventory(&moto, &["us-east-1"]).await;
    let failure = Err(FailureKind::Provider);
    let expected = [Ok(2), failure, Ok(4), failure, failure];
    assert_eq!(outcomes(&failed), KINDS.into_iter().zip(expected).collect::<Vec<_>>());
    assert_eq!(arrived(&failed), [2, 0, 4, 0, 0]);

    moto.fail(&[]).await;
    moto.repeat_page_tokens().await;
    let repeated = inventory(&moto, &["us-east-1"]).await;
    let failure = Err(FailureKind::Malformed);
    let expected = [failure, failure, Ok(4), failure, failure];
    assert_eq!(outcomes(&repeated), KINDS.into_iter().zip(expected).collect::<Vec<_>>());
    assert_eq!(arrived(&repeated), [0, 0, 4, 0, 0]);
}

#[tokio::test]
async fn a_sweep_says_what_it_listed_and_judges_machines_whatever_else_is_denied() {
    let folder = tempfile::tempdir().unwrap();
    let moto = Moto::start(&folder.path().join("aws")).await;
    furnish(&moto, "us-east-1").await;
    moto.fail(&[fault(ResourceKind::Volume.into(), "UnauthorizedOperation")]).await;
    let config =
        "[aws]\nregions = [\"us-east-1\"]\n[pricing]\nsource = \"none\"\n[sweep]\nschedule = \"0 0 0 1 1 *\"\n";
    let environment = moto.environment();
    let environment: Vec<_> = environment.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    let sweeper = Sweeper::start(&folder.path().join("sweeper"), config, &environment).await;

    let (code, report) = sweeper.sweep().await;
    assert_eq!((code, &report["complete"]), (3, &false.into()));
    let scopes = report["scopes"].as_array().unwrap();
    let listed: Vec<_> = scopes.iter().map(|s| (s["kind"].as_str().unwrap(), s["listed"].as_u64())).collect();
    let expected = [
        ("instance", Some(2)),
        ("volume", None),
        ("address", Some(4)),
        ("snapshot", Some(5)),
        ("auto_scaling_group", Some(4)),
    ];
    assert_eq!(listed[..expected.len()], expected);
    assert!(scopes[1]["failed"].as_str().unwrap().starts_with("ec2:DescribeVolumes: denied"));
    assert_eq!(report["blind_spots"].as_array().unwrap().len(), 2, "the machines are judged: {report}");
    let overview = &report["overview"];
    assert_eq!(overview["running"], json!({"machines": 2, "priced": 0, "micro_usd_per_hour": 0}), "{overview:#}");
    assert_eq!(overview["unpriced"].as_array().unwrap().len(), 1, "one reason, once: {overview:#}");
    assert_eq!(overview["by_region"][0]["name"], "aws 123456789012 us-east-1");

    let table = String::from_utf8(sweeper.run(&["sweep"]).await.stdout).unwrap();
    let line = "Listed: 2 instances, volumes not known, 4 addresses, 5 snapshots, 4 Auto Scaling groups";
    assert!(table.contains(line) && table.contains("not read: aws 123456789012 us-east-1 volume:"), "{table}");
    for part in ["2 machines run; what they cost is not known", "no price of 2 machines: ", "Next: put an agent on "] {
        assert!(table.contains(part), "`{part}` is not in:\n{table}");
    }
}
