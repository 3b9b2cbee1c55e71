//! The inventory is complete or says what is missing; a price is exact or says why it is not known.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use model::{Provider, ResourceKind, Verdict};
use std::{collections::BTreeSet, path::Path, time::Duration};

use guards::Refusal;
use jiff::{Timestamp, ToSpan};
use lab::{
    aws::{ACCOUNT, Fault, Instance, Moto, REGIONS},
    imds::{Identity, Imds},
};
use recommender::rules::stop;
use sweeper::{
    inventory::{
        FailureKind, InstanceState, InstanceStore, Inventory, Kind, Lifecycle, Outcome, Protection, RetryPolicy,
        RootDevice, Silent,
        aws::{Options, Session, collect},
    },
    pricing::{self, PriceKey, Source, Unpriced},
};

fn retry(attempts: u32) -> RetryPolicy {
    RetryPolicy { attempts, base_wait: Duration::from_millis(20), ..RetryPolicy::default() }
}

/// One attempt, so that an injected fault is met at once and not waited out.
fn options(regions: &[&str]) -> Options {
    Options { regions: regions.iter().map(|&r| r.to_owned()).collect(), retry: retry(1), ..Options::default() }
}

async fn session(moto: &Moto, options: &Options) -> Session {
    Session::open_with(moto.loader(), options).await.unwrap().unwrap()
}

async fn inventory(moto: &Moto, options: &Options) -> Inventory {
    collect(&session(moto, options).await, options, &Silent).await
}

fn outcomes(inventory: &Inventory) -> Vec<(Option<&str>, Result<usize, FailureKind>)> {
    let outcome = |scope: &Outcome| match scope {
        Outcome::Complete { listed } => Ok(*listed),
        Outcome::Failed { why, .. } => Err(why.kind),
    };
    let of_instances =
        inventory.listings.iter().filter(|l| l.kind.is_none_or(|kind| kind == ResourceKind::Instance.into()));
    of_instances.map(|listing| (listing.region.as_deref(), outcome(&listing.outcome))).collect()
}

fn describe_fault(region: Option<&str>, code: Option<&str>) -> Fault {
    Fault {
        service: Some("ec2".into()),
        action: Some("DescribeInstances".into()),
        region: region.map(str::to_owned),
        code: code.map(str::to_owned),
        ..Fault::default()
    }
}

#[tokio::test]
async fn every_page_of_every_enabled_region_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let moto = Moto::start(folder.path()).await;
    let mut started = Vec::new();
    // Reservations of several instances, so that a page ends in the middle of one.
    for (region, count) in [("us-east-1", 5), ("us-east-1", 6), ("eu-central-1", 4)] {
        let instances = Instance { count: Some(count), ..Instance::named("m5.large", "w") };
        let ids = moto.run(region, &[instances]).await;
        started.extend(ids.into_iter().map(|id| format!("aws:{ACCOUNT}:{region}:{id}")));
    }
    moto.page_size(3).await;

    let inventory = inventory(&moto, &options(&[])).await;

    started.sort();
    assert_eq!(inventory.instances.iter().map(|i| i.id.to_string()).collect::<Vec<_>>(), started);
    assert_eq!(
        outcomes(&inventory),
        [(Some("eu-central-1"), Ok(4)), (Some("us-east-1"), Ok(11)), (Some("us-west-2"), Ok(0))]
    );
    assert!(inventory.is_complete());
    let calls = moto.calls().await;
    let pages = |region| calls.iter().filter(|c| c.action == "DescribeInstances" && c.region == region).count();
    assert_eq!(REGIONS.map(pages), [2, 4, 1]);
    assert!(calls.iter().all(|c| ["Describe", "Get", "List"].iter().any(|to| c.action.starts_with(to))), "read-only");
}

#[tokio::test]
async fn what_ec2_says_arrives_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let moto = Moto::start(folder.path()).await;
    let launched_at: Timestamp = "2026-11-01T06:30:00Z".parse().unwrap();
    let attached_at: Timestamp = "2025-02-03T04:05:06Z".parse().unwrap();
    let mut plain = Instance {
        launched_at: Some(launched_at),
        attached_at: Some(attached_at),
        ..Instance::named("m5.large", "align-7")
    };
    plain.tags.insert("owner".into(), "genomics".into());
    plain.tags.insert("aws:ec2launchtemplate:id".into(), "lt-0123456789abcdef0".into());
    plain.tags.insert("aws:ec2launchtemplate:version".into(), "7".into());
    let spot = Instance { lifecycle: Some("spot".into()), ..Instance::named("c6i.4xlarge", "s") };
    let stopped = Instance {
        state: Some("stopped".into()),
        root_device_type: Some("instance-store".into()),
        ..Instance::named("z99.mega", "")
    };
    let ids = moto.run("us-east-1", &[plain, spot, stopped]).await;

    let inventory = inventory(&moto, &options(&["us-east-1"])).await;

    let find = |id: &str| inventory.instances.iter().find(|i| i.id.to_string().ends_with(id)).unwrap();
    let [plain, spot, stopped] = [0, 1, 2].map(|n: usize| find(&ids[n]));
    assert_eq!(plain.name.as_deref(), Some("align-7"));
    assert_eq!(plain.tags.get("owner").map(String::as_str), Some("genomics"));
    assert_eq!(plain.launched_at, Some(launched_at));
    assert_eq!(plain.attached_at, Some(attached_at));
    assert_eq!(plain.state, InstanceState::Running);
    assert_eq!((plain.public_ipv4.len(), plain.public_ipv4[0].elastic), (1, Some(false)));
    assert_eq!((plain.root_device, plain.volumes.len()), (RootDevice::Ebs, 1));
    let root = &plain.volumes[0];
    assert_eq!((root.device.as_deref(), root.attached_at), (Some("/dev/sda1"), Some(attached_at)));
    assert_eq!(plain.network_interfaces.len(), 1);
    let template = plain.launch_template.as_ref().map(|t| (t.id.as_deref(), t.version.as_deref()));
    assert_eq!(template, Some((Some("lt-0123456789abcdef0"), Some("7"))));
    assert_eq!(spot.lifecycle, Lifecycle::Spot);
    assert_eq!((&stopped.state, &stopped.name), (&InstanceState::Stopped, &None));
    assert_eq!(stopped.root_device, RootDevice::InstanceStore);
    assert_eq!(stopped.instance_type.as_deref(), Some("z99.mega"), "a type of a later day is kept");
}

#[tokio::test]
async fn a_region_that_cannot_be_read_is_unknown_and_leaves_the_others_alone() {
    let folder = tempfile::tempdir().unwrap();
    let moto = Moto::start(folder.path()).await;
    for region in REGIONS {
        moto.run(region, &[Instance::named("m5.large", "w")]).await;
    }
    for (code, kind) in [
        ("UnauthorizedOperation", FailureKind::Denied),
        ("RequestLimitExceeded", FailureKind::Throttled),
        ("AuthFailure", FailureKind::Credentials),
        ("InternalError", FailureKind::Provider),
    ] {
        moto.fail(&[describe_fault(Some("us-east-1"), Some(code))]).await;
        let inventory = inventory(&moto, &options(&[])).await;
        assert_eq!(
            outcomes(&inventory),
            [(Some("eu-central-1"), Ok(1)), (Some("us-east-1"), Err(kind)), (Some("us-west-2"), Ok(1))],
            "{code}"
        );
        assert_eq!(inventory.instances.len(), 2);
        assert!(!inventory.is_complete());
    }
}

#[tokio::test]
async fn a_region_that_fails_on_its_second_page_gives_no_half_inventory() {
    let folder = tempfile::tempdir().unwrap();
    let moto = Moto::start(folder.path()).await;
    moto.run("us-east-1", &[Instance { count: Some(5), ..Instance::default() }]).await;
    moto.page_size(3).await;
    moto.repeat_page_tokens().await;
    let inventory = inventory(&moto, &options(&["us-east-1"])).await;
    assert_eq!(outcomes(&inventory), [(Some("us-east-1"), Err(FailureKind::Malformed))]);
    assert!(inventory.instances.is_empty());
}

#[tokio::test]
async fn throttling_is_waited_out_and_silence_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let moto = Moto::start(folder.path()).await;
    moto.run("us-east-1", &[Instance::default()]).await;

    let throttled = Fault { status: Some(503), times: Some(2), ..describe_fault(None, Some("RequestLimitExceeded")) };
    moto.fail(&[throttled]).await;
    let patient = Options { retry: retry(4), ..options(&["us-east-1"]) };
    assert_eq!(outcomes(&inventory(&moto, &patient).await), [(Some("us-east-1"), Ok(1))]);

    moto.fail(&[Fault { delay_s: Some(3), ..describe_fault(None, None) }]).await;
    let hasty = Options { attempt_timeout: Duration::from_millis(500), ..options(&["us-east-1"]) };
    assert_eq!(outcomes(&inventory(&moto, &hasty).await), [(Some("us-east-1"), Err(FailureKind::TimedOut))]);
}

#[tokio::test]
async fn an_account_that_cannot_be_asked_is_a_failed_scope_not_an_empty_account() {
    let folder = tempfile::tempdir().unwrap();
    let moto = Moto::start(folder.path()).await;
    for (service, action, code, kind) in [
        ("sts", "GetCallerIdentity", "ExpiredToken", FailureKind::Credentials),
        ("ec2", "DescribeRegions", "UnauthorizedOperation", FailureKind::Denied),
    ] {
        let fault = Fault {
            service: Some(service.into()),
            action: Some(action.into()),
            code: Some(code.into()),
            ..Fault::default()
        };
        moto.fail(&[fault]).await;
        let inventory = inventory(&moto, &options(&[])).await;
        assert_eq!(outcomes(&inventory), [(None, Err(kind))], "{action}");
        let Outcome::Failed { what, .. } = &inventory.listings[0].outcome else { unreachable!() };
        assert_eq!(what, &format!("{service}:{action}"));
    }
}

#[tokio::test]
async fn prices_are_found_by_exact_key_from_the_api_and_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let moto = Moto::start(folder.path()).await;
    let with = |instance_type: &str, change: fn(&mut Instance)| {
        let mut instance = Instance::named(instance_type, instance_type);
        change(&mut instance);
        instance
    };
    let ids = moto
        .run(
            "us-east-1",
            &[
                with("m5.large", |_| ()),
                with("m5.large", |i| i.usage_operation = Some("RunInstances:0002".into())),
                with("m5.large", |i| i.tenancy = Some("dedicated".into())),
                with("c6i.4xlarge", |_| ()),
                with("r5.large", |_| ()),
                with("m7i.large", |_| ()),
                with("m5.large", |i| i.lifecycle = Some("spot".into())),
                with("m5.large", |i| i.tenancy = Some("host".into())),
            ],
        )
        .await;
    let options = options(&["us-east-1"]);
    let session = session(&moto, &options).await;
    let inventory = collect(&session, &options, &Silent).await;
    let keys: Vec<Result<PriceKey, Unpriced>> = ids
        .iter()
        .map(|id| PriceKey::of(inventory.instances.iter().find(|i| i.id.to_string().ends_with(id)).unwrap()))
        .collect();
    let asked: BTreeSet<PriceKey> = keys.iter().filter_map(|key| key.clone().ok()).collect();

    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("lab/aws/price_list.jsonl");
    let sources = [Source::Api { session: session.clone(), region: "us-east-1".into() }, Source::file(file)];
    for source in sources {
        let (table, _) = pricing::load(&pricing::Options { source: source.clone() }, &asked, &BTreeSet::new()).await;
        let prices: Vec<Result<String, Unpriced>> = keys
            .iter()
            .map(|key| key.clone().and_then(|key| table.on_demand(&key)).map(|rate| rate.to_string()))
            .collect();
        let key = |n: usize| keys[n].clone().unwrap().to_string();
        assert_eq!(
            prices,
            [
                Ok("$0.096/h".to_owned()),
                Ok("$0.188/h".to_owned()),
                Ok("$0.102/h".to_owned()),
                Ok("$0.68/h".to_owned()),
                Err(Unpriced::Ambiguous { key: key(4), rows: 2 }),
                Err(Unpriced::NoRow(key(5))),
                Err(Unpriced::Spot),
                Err(Unpriced::DedicatedHost),
            ],
            "{source:?}"
        );
    }
}

#[tokio::test]
async fn a_price_list_that_cannot_be_read_makes_prices_unknown() {
    let folder = tempfile::tempdir().unwrap();
    let moto = Moto::start(folder.path()).await;
    moto.run("us-east-1", &[Instance::named("m5.large", "w")]).await;
    let options = options(&["us-east-1"]);
    let session = session(&moto, &options).await;
    let inventory = collect(&session, &options, &Silent).await;
    let key = PriceKey::of(&inventory.instances[0]).unwrap();
    moto.fail(&[Fault {
        service: Some("pricing".into()),
        code: Some("AccessDeniedException".into()),
        ..Fault::default()
    }])
    .await;
    for (source, reason) in [
        (Source::Api { session, region: "us-east-1".into() }, "pricing:GetProducts: denied"),
        (Source::file("/nowhere/list.json"), "/nowhere/list.json"),
        (Source::Off, "pricing.source"),
    ] {
        let asked = BTreeSet::from([key.clone()]);
        let (table, _) = pricing::load(&pricing::Options { source }, &asked, &BTreeSet::new()).await;
        let why = table.on_demand(&key).unwrap_err().to_string();
        assert!(why.contains(reason), "{why}");
    }
}

#[tokio::test]
async fn whether_a_machine_has_disks_of_its_host_is_told_by_its_type() {
    let folder = tempfile::tempdir().unwrap();
    let moto = Moto::start(folder.path()).await;
    // The region does not offer the last one any more: that says nothing of the others.
    let types = ["m5.large", "g4dn.xlarge", "i3.large", "m5.large", "zz9.retired"];
    let machines = types.map(|instance_type| Instance::named(instance_type, instance_type));
    moto.run("us-east-1", &machines).await;
    let stores = |inventory: &Inventory| {
        let mut stores: Vec<_> =
            inventory.instances.iter().map(|it| (it.instance_type.clone().unwrap(), it.instance_store)).collect();
        stores.sort_by_key(|(instance_type, _)| instance_type.clone());
        stores.dedup();
        stores.into_iter().map(|(_, store)| store).collect::<Vec<_>>()
    };
    let of_types = |inventory: &Inventory| {
        let listing = inventory.listings.iter().find(|listing| listing.kind == Some(Kind::MachineType)).unwrap();
        match &listing.outcome {
            Outcome::Complete { listed } => Ok(*listed),
            Outcome::Failed { why, .. } => Err(why.kind),
        }
    };
    let read = inventory(&moto, &options(&["us-east-1"])).await;
    let [present, absent, unknown] = [InstanceStore::Present, InstanceStore::Absent, InstanceStore::Unknown];
    assert_eq!(stores(&read), [present, present, absent, unknown]);
    assert_eq!(of_types(&read), Ok(3));

    moto.fail(&[Fault {
        action: Some("DescribeInstanceTypes".into()),
        ..describe_fault(None, Some("UnauthorizedOperation"))
    }])
    .await;
    let denied = inventory(&moto, &options(&["us-east-1"])).await;
    assert_eq!(stores(&denied), [unknown; 4]);
    assert_eq!((of_types(&denied), outcomes(&denied)), (Err(FailureKind::Denied), vec![(Some("us-east-1"), Ok(5))]));
}

#[tokio::test]
async fn a_stop_is_planned_from_what_ec2_says() {
    let folder = tempfile::tempdir().unwrap();
    let moto = Moto::start(folder.path()).await;
    let mut member = Instance::named("m5.large", "member");
    member.tags.insert("aws:autoscaling:groupName".into(), "workers".into());
    let with_disks = Instance::named("g4dn.xlarge", "train-1");
    let ids = moto.run("us-east-1", &[Instance::named("m5.large", "align-7"), member, with_disks]).await;
    let inventory = inventory(&moto, &options(&["us-east-1"])).await;
    let now = Timestamp::now();
    let plan = |id: &str| {
        let instance = inventory.instances.iter().find(|i| i.id.to_string().ends_with(id)).unwrap();
        stop::plan(&stop::StopInput {
            record: 1,
            finding: "f-1".into(),
            resource: instance.id.clone(),
            verdict: Verdict::Idle,
            machine: instance
                .stop_facts(
                    inventory.groups_are_known(Provider::Aws, ACCOUNT, "us-east-1"),
                    &inventory.schedulers(Provider::Aws, ACCOUNT, "us-east-1"),
                    Protection { stop: Some(false), termination: Some(false) },
                )
                .unwrap(),
            price: stop::Price::OnDemand("0.096".parse().unwrap()),
            lent_ipv4: None,
            now,
        })
    };
    let planned = plan(&ids[0]).unwrap();
    let title = format!("Stop the idle m5.large instance {} (align-7) in us-east-1", ids[0]);
    assert_eq!(planned.content().title, title);
    assert_eq!(planned.valid_until(), now + 24.hours());
    assert!(plan(&ids[1]).unwrap_err().to_string().contains("Auto Scaling group workers"));
    assert_eq!(plan(&ids[2]).unwrap_err(), stop::NoPlan::Guarded { by: Refusal::HasInstanceStore });
}

#[tokio::test]
async fn the_laboratorys_metadata_service_answers_only_to_its_token() {
    let imds = Imds::start(Identity {
        account: ACCOUNT.into(),
        region: "us-east-1".into(),
        instance: "i-0123456789abcdef0".into(),
        instance_type: "m5.large".into(),
        life_cycle: "on-demand".into(),
    });
    let client = reqwest::Client::new();
    let document = format!("{}/latest/dynamic/instance-identity/document", imds.url());
    assert_eq!(client.get(&document).send().await.unwrap().status(), 401);

    let token = client.put(format!("{}/latest/api/token", imds.url()));
    assert_eq!(token.try_clone().unwrap().send().await.unwrap().status(), 400, "no lifetime");
    let token = token.header("X-aws-ec2-metadata-token-ttl-seconds", "60").send().await.unwrap().text().await.unwrap();
    let get = |url: String| client.get(url).header("X-aws-ec2-metadata-token", &token).send();

    let said: serde_json::Value = get(document).await.unwrap().json().await.unwrap();
    assert_eq!((&said["accountId"], &said["instanceId"]), (&ACCOUNT.into(), &"i-0123456789abcdef0".into()));
    let life_cycle = get(format!("{}/latest/meta-data/instance-life-cycle", imds.url())).await.unwrap();
    assert_eq!(life_cycle.text().await.unwrap(), "on-demand");
}
