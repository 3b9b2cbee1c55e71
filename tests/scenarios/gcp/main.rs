//! Google Cloud is read whole, each kind and each zone by itself: what could not be read is not known, closes no finding and allows
//! no plan. Every request and every answer is one of Google's own published description (`lab::gcp`).

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod acting;
mod acts;
mod estate;
mod group;
mod priced;
mod swept;

use model::ResourceKind;
use std::time::Duration;

use google_cloud_auth::credentials::anonymous;
use jiff::Timestamp;
use lab::gcp::{Fault, Google, PROJECT, Unreachable};
use serde_json::{Value, json};
use sweeper::inventory::{
    FailureKind, Instance, InstanceState, Inventory, Kind, Lifecycle, Listing, Outcome, Protection, RetryPolicy,
    Schedulers, Scope, Silent, UsageSource, VolumeState,
    gcp::{Options, Session, read},
};

use estate::{DISKS, FURNISHED, HERE, INSTANCES, KINDS, furnish, machine};

fn options(google: &Google) -> Options {
    let retry = RetryPolicy { attempts: 3, base_wait: Duration::from_millis(5), ..RetryPolicy::default() };
    let endpoint = Some(google.url().to_owned());
    Options {
        projects: vec![PROJECT.into()],
        compute_endpoint: endpoint.clone(),
        monitoring_endpoint: endpoint.clone(),
        billing_endpoint: endpoint,
        monitoring: true,
        retry,
        ..Options::default()
    }
}

async fn inventory_with(options: &Options) -> Inventory {
    // The process says once which cryptography is used; only the first says it.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let session = Session::open_with(|| Ok(anonymous::Builder::new().build()), options).await.unwrap();
    read(&session, &options.scopes()[0], &Silent).await
}

async fn inventory(google: &Google) -> Inventory {
    inventory_with(&options(google)).await
}

fn outcome(listing: &Listing) -> Result<usize, FailureKind> {
    match &listing.outcome {
        Outcome::Complete { listed } => Ok(*listed),
        Outcome::Failed { why, .. } => Err(why.kind),
    }
}

/// How the listings of the project went, of each kind.
fn outcomes(inventory: &Inventory) -> Vec<(Kind, Result<usize, FailureKind>)> {
    let of_project = inventory.listings.iter().filter(|listing| listing.region.as_deref() == Some(Scope::EVERYWHERE));
    of_project.map(|listing| (listing.kind.unwrap(), outcome(listing))).collect()
}

fn fault(method: &str, status: u16, reason: &str) -> Fault {
    Fault { method: Some(method.into()), status: Some(status), reason: Some(reason.into()), ..Fault::default() }
}

#[tokio::test]
async fn every_page_of_every_kind_is_read_and_arrives_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let google = Google::start(folder.path()).await;
    furnish(&google).await;
    google.page_size(2).await;

    let inventory = inventory(&google).await;

    assert!(inventory.is_complete(), "{:?}", inventory.listings);
    assert_eq!(outcomes(&inventory), KINDS.into_iter().zip(FURNISHED.map(Ok)).collect::<Vec<_>>());
    let states: Vec<InstanceState> = inventory.instances.iter().map(|instance| instance.state.clone()).collect();
    let kept = |word: &str| InstanceState::Other(word.into());
    assert_eq!(
        states,
        [
            InstanceState::Running,
            InstanceState::Stopped,
            InstanceState::Stopped,
            InstanceState::Suspended,
            InstanceState::Pending,
            kept("REPAIRING"),
            kept("PENDING_STOP"),
            InstanceState::Running,
        ]
    );
    let [first, .., spot] = inventory.instances.as_slice() else { panic!("{:?}", inventory.instances) };
    assert_eq!(first.id.to_string(), format!("gcp:{PROJECT}:europe-west3-a:1000"), "what the agent on it calls itself");
    let shape = first.google.as_ref().unwrap().shape.as_ref().unwrap();
    assert_eq!((shape.vcpus, shape.memory_mib), (Some(8), Some(32_768)));
    assert_eq!(first.launched_at, "2026-02-03T12:05:06.789Z".parse().ok());
    assert_eq!((&spot.lifecycle, spot.autoscaling_group.as_deref()), (&Lifecycle::Spot, Some("workers")));
    let schedulers = Schedulers::not_asked();
    let facts = |instance: &Instance| instance.stop_facts(true, &schedulers, Protection::default());
    assert!(inventory.instances.iter().all(|instance| facts(instance).is_some()), "each is asked about");

    let [used, free] = inventory.volumes.as_slice() else { panic!("{:?}", inventory.volumes) };
    assert_eq!((&used.state, &free.state), (&Some(VolumeState::InUse), &Some(VolumeState::Available)));
    assert_eq!(used.attachments.as_ref().unwrap()[0].instance_id.as_deref(), Some("1000"));
    let of = |address: &sweeper::inventory::Address| {
        (address.id.to_string(), address.google.as_ref().unwrap().status.clone())
    };
    let addresses: Vec<_> = inventory.addresses.iter().map(of).collect();
    let key = |place: &str, name: &str| format!("gcp:{PROJECT}:{place}:address/{name}");
    assert_eq!(
        addresses,
        [(key("europe-west3", "nat"), Some("IN_USE".into())), (key("global", "web"), Some("RESERVED".into()))],
        "an address of a private network is none"
    );

    let calls = google.calls().await;
    let pages = |method: &str| calls.iter().filter(|call| call.method == method).count();
    assert_eq!(
        (pages(INSTANCES), pages(DISKS), pages("compute.machineTypes.get")),
        (4, 1, 2),
        "one call for each type"
    );
    assert!(calls.iter().all(|call| call.project.as_deref() == Some(PROJECT)));
    assert_eq!(calls.iter().find(|call| call.method == INSTANCES).unwrap().query["maxResults"], "500");
}

#[tokio::test]
async fn a_zone_that_does_not_answer_is_unknown_and_leaves_the_others_alone() {
    let folder = tempfile::tempdir().unwrap();
    let google = Google::start(folder.path()).await;
    furnish(&google).await;
    for how in ["unreachables", "warning"] {
        let silent = |kind: &str, place: &str| Unreachable { kind: kind.into(), place: place.into(), how: how.into() };
        google.unreachable(&[silent("instances", HERE), silent("instanceGroupManagers", "regions/europe-west3")]).await;
        let inventory = inventory(&google).await;
        let parts: Vec<_> = inventory.listings.iter().filter(|listing| listing.is_of_a_part()).collect();
        let part = |listing: &&Listing| (listing.kind.unwrap(), listing.region.clone().unwrap(), outcome(listing));
        assert_eq!(
            parts.iter().map(part).collect::<Vec<_>>(),
            [
                (ResourceKind::AutoScalingGroup.into(), "europe-west3".to_owned(), Err(FailureKind::Unreachable)),
                (ResourceKind::Instance.into(), "europe-west3-a".to_owned(), Err(FailureKind::Unreachable)),
            ],
            "{how}"
        );
        let mut expected = FURNISHED;
        (expected[0], expected[3], expected[5]) = (1, 1, 1);
        assert_eq!(outcomes(&inventory), KINDS.into_iter().zip(expected.map(Ok)).collect::<Vec<_>>(), "{how}");
        assert!(!inventory.is_complete());
    }
}

#[tokio::test]
async fn a_kind_that_is_denied_is_unknown_and_leaves_the_others_alone() {
    let folder = tempfile::tempdir().unwrap();
    let google = Google::start(folder.path()).await;
    furnish(&google).await;
    let calls = [
        (ResourceKind::Volume.into(), DISKS),
        (ResourceKind::Address.into(), "compute.addresses.aggregatedList"),
        (ResourceKind::AutoScalingGroup.into(), "compute.instanceGroupManagers.aggregatedList"),
        (Kind::MachineType, "compute.machineTypes.get"),
        (Kind::Usage, "monitoring.projects.timeSeries.list"),
    ];
    for (denied, method) in calls {
        google.fail(&[fault(method, 403, "forbidden")]).await;
        let inventory = inventory(&google).await;
        let expected = KINDS.into_iter().zip(FURNISHED.map(Ok));
        let expected =
            expected.map(|(kind, listed)| (kind, if kind == denied { Err(FailureKind::Denied) } else { listed }));
        assert_eq!(outcomes(&inventory), expected.collect::<Vec<_>>());
    }
    let calls = google.calls().await;
    assert_eq!(calls.iter().filter(|call| call.method == DISKS).count(), 5, "what is denied is asked once");

    google.fail(&[fault(INSTANCES, 403, "forbidden")]).await;
    let inventory = inventory(&google).await;
    let of_machines = [ResourceKind::Instance.into(), Kind::Usage, Kind::MachineType];
    let expected = KINDS.into_iter().zip(FURNISHED.map(Ok));
    let expected = expected
        .map(|(kind, listed)| (kind, if of_machines.contains(&kind) { Err(FailureKind::Denied) } else { listed }));
    assert_eq!(
        outcomes(&inventory),
        expected.collect::<Vec<_>>(),
        "what is told of machines that nobody knows is not known"
    );
}

#[tokio::test]
async fn what_is_not_of_googles_own_description_is_refused_and_told() {
    let folder = tempfile::tempdir().unwrap();
    let google = Google::start(folder.path()).await;
    let ask = async |path: &str| {
        let answer = reqwest::get(format!("{}{path}", google.url())).await.unwrap();
        (answer.status().as_u16(), google.take_wrong())
    };
    let list = format!("/compute/v1/projects/{PROJECT}/aggregated/instances");
    assert_eq!(ask(&format!("{list}?maxResults=500&$apiVersion=2026-09-01")).await, (200, String::new()));
    for (path, status, why) in [
        (format!("{list}?maxResults=501"), 400, "more than 500"),
        (format!("{list}?maxResults=many"), 400, "no integer"),
        (format!("{list}?returnPartialSuccess=true"), 400, "no parameter returnPartialSuccess"),
        (format!("{list}?includeAllScopes=maybe"), 400, "no boolean"),
        (format!("{list}?$apiVersion=newest"), 400, "$apiVersion is 'newest'"),
        (format!("/compute/v1/projects/{PROJECT}/all/instances"), 404, "is no method"),
        (format!("/v3/projects/{PROJECT}/timeSeries?view=SOME"), 400, "not one of FULL, HEADERS"),
        (format!("/v3/projects/{PROJECT}/timeSeries?aggregation.alignmentPeriod=1h"), 400, "no duration"),
    ] {
        let (refused, told) = ask(&path).await;
        assert!(refused == status && told.contains(why), "{path}: {refused} {told}");
    }
    for (change, why) in [
        (json!({"brandNew": 1}), "has no member brandNew"),
        (json!({"id": 1_000}), "no text that holds a uint64"),
        (json!({"status": "DREAMING"}), "not one of"),
        (json!({"deletionProtection": "no"}), "no boolean"),
    ] {
        let mut machine = machine(HERE, 1_000, "RUNNING");
        machine.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        google.resources(PROJECT, "instances", HERE, &[machine]).await;
        let (refused, told) = ask(&list).await;
        assert!(
            refused == 500 && told.contains("answers what Google cannot") && told.contains(why),
            "{refused} {told}"
        );
    }
}

#[tokio::test]
async fn what_can_be_waited_out_or_renewed_is_and_half_a_list_is_never_given() {
    let folder = tempfile::tempdir().unwrap();
    let google = Google::start(folder.path()).await;
    furnish(&google).await;
    google.page_size(3).await;
    let of_instances = async || {
        let inventory = inventory(&google).await;
        assert_eq!(inventory.instances.len(), outcomes(&inventory)[0].1.unwrap_or(0));
        let asked = google.calls().await.into_iter().filter(|call| call.method == INSTANCES);
        let token = |query: &Value| query["pageToken"].as_str().unwrap_or("first").to_owned();
        (outcomes(&inventory)[0].1, asked.map(|call| token(&call.query)).collect::<Vec<_>>())
    };
    let whole = ["first", "page-3", "page-6"];
    let twice = ["first", "page-3", "page-3", "page-6"];
    assert_eq!(of_instances().await, (Ok(8), whole.map(str::to_owned).to_vec()));

    for (status, reason) in [(403, "rateLimitExceeded"), (429, "rateLimitExceeded"), (503, "backendError")] {
        let once = Fault { token: Some("page-3".into()), times: Some(1), ..fault(INSTANCES, status, reason) };
        google.fail(&[once]).await;
        assert_eq!(of_instances().await, (Ok(8), twice.map(str::to_owned).to_vec()), "{status} {reason}");
    }
    google.fail(&[fault(INSTANCES, 403, "rateLimitExceeded")]).await;
    let (throttled, asked) = of_instances().await;
    assert_eq!((throttled, asked.len()), (Err(FailureKind::Throttled), 3));

    let expired =
        Fault { method: Some(INSTANCES.into()), token: Some("page-3".into()), expire: true, ..Fault::default() };
    google.fail(&[Fault { times: Some(1), ..expired.clone() }]).await;
    assert_eq!(of_instances().await, (Ok(8), twice.map(str::to_owned).to_vec()), "the same page with new credentials");
    google.fail(&[expired]).await;
    let (refused, asked) = of_instances().await;
    assert_eq!((refused, asked.len()), (Err(FailureKind::Credentials), 3), "renewed once");

    let stale = Fault { token: Some("page-6".into()), ..fault(INSTANCES, 400, "invalid") };
    google.fail(&[Fault { times: Some(1), ..stale.clone() }]).await;
    assert_eq!(of_instances().await, (Ok(8), [whole, whole].concat().into_iter().map(str::to_owned).collect()));
    google.fail(&[stale]).await;
    assert_eq!(of_instances().await.0, Err(FailureKind::Provider), "begun anew once");

    google.fail(&[]).await;
    google.repeat_page_tokens(3).await;
    let (repeated, asked) = of_instances().await;
    assert_eq!((repeated, asked.len()), (Err(FailureKind::Malformed), 2));
}

#[tokio::test]
async fn a_project_that_does_not_answer_is_cut_off_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let google = Google::start(folder.path()).await;
    furnish(&google).await;
    google.fail(&[Fault { method: Some(INSTANCES.into()), delay_s: Some(20), ..Fault::default() }]).await;
    let one_attempt = Options { attempt_timeout: Duration::from_millis(200), ..options(&google) };
    let late = inventory_with(&one_attempt).await;
    assert_eq!(
        outcomes(&late)[..2],
        [(ResourceKind::Instance.into(), Err(FailureKind::TimedOut)), (ResourceKind::Volume.into(), Ok(2))]
    );
    let mut whole_list = options(&google);
    whole_list.retry.listing_timeout = Duration::from_secs(1);
    let late = inventory_with(&whole_list).await;
    let Outcome::Failed { why, .. } = &late.listings[0].outcome else { panic!("{:?}", late.listings) };
    assert!(why.kind == FailureKind::TimedOut && why.message.contains("gcp.listing_timeout"), "{why}");
}

#[tokio::test]
async fn what_cloud_monitoring_measured_is_kept_for_running_machines_and_never_in_part() {
    let folder = tempfile::tempdir().unwrap();
    let google = Google::start(folder.path()).await;
    furnish(&google).await;
    let hour = Timestamp::now().as_second() / 3_600 * 3_600;
    let series = |metric: &str, instance: &str, points: &[(i64, f64)]| {
        json!({"metric": format!("compute.googleapis.com/instance/{metric}"), "zone": "europe-west3-a", "instance": instance,
               "points": points})
    };
    let of_network = |metric: &str, base: f64| series(metric, "1000", &[(hour, base), (hour - 3_600, 2.0 * base)]);
    google
        .series(
            PROJECT,
            &[
                series("cpu/utilization", "1000", &[(hour, 0.25), (hour - 3_600, 0.5), (hour - 90_000, 0.9)]),
                series("cpu/utilization", "1001", &[(hour, 0.25)]),
                of_network("network/received_bytes_count", 10.0),
                of_network("network/sent_bytes_count", 100.0),
            ],
        )
        .await;
    google.page_size(1).await;

    let read = inventory(&google).await;

    let [usage] = read.usage.as_slice() else { panic!("{:?}", read.usage) };
    assert_eq!(usage.id.to_string(), format!("gcp:{PROJECT}:europe-west3-a:1000"), "a stopped machine has none");
    assert_eq!((usage.source, usage.period_s, usage.periods), (UsageSource::CloudMonitoring, 3_600, 2));
    assert_eq!((usage.busiest_cpu_millionths, usage.busiest_network_bytes_per_s), (Some(500_000), Some(220)));
    assert_eq!(usage.until.as_second() - usage.from.as_second(), 86_400, "no older point counts");
    assert_eq!(outcomes(&read)[4], (Kind::Usage, Ok(1)));

    let unasked = inventory_with(&Options { monitoring: false, ..options(&google) }).await;
    assert!(unasked.is_complete() && outcomes(&unasked).iter().all(|(kind, _)| *kind != Kind::Usage), "{unasked:?}");

    let partial = json!({"timeSeries": [], "executionErrors": [{"code": 4, "message": "a shard was late"}]});
    google.say("monitoring.projects.timeSeries.list", Some(&partial)).await;
    let read = inventory(&google).await;
    assert_eq!(outcomes(&read)[4], (Kind::Usage, Err(FailureKind::Provider)));
    assert!(read.usage.is_empty());
}
