//! Google Cloud is read whole, each kind and each zone by itself: what could not be read is not known, closes no finding and allows
//! no plan. Every request and every answer is one of Google's own published description (`lab::gcp`).

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{path::Path, time::Duration};

use google_cloud_auth::credentials::anonymous;
use heartbeat::NodeId;
use jiff::Timestamp;
use lab::{
    gcp::{Fault, Google, PROJECT, Unreachable},
    sample,
    sweeper::Sweeper,
};
use serde_json::{Value, json};
use sweeper::{
    inventory::{
        FailureKind, Instance, InstanceState, Inventory, Kind, Lifecycle, Listing, Outcome, Patience, Protection,
        Provider, Schedulers, Scope, Silent, UsageSource, VolumeState,
        gcp::{Options, Session, read},
    },
    store::{Store, TokenHash},
};

const HERE: &str = "zones/europe-west3-a";
const THERE: &str = "zones/europe-west3-b";
const INSTANCES: &str = "compute.instances.aggregatedList";
const DISKS: &str = "compute.disks.aggregatedList";
const KINDS: [Kind; 6] =
    [Kind::Instance, Kind::Volume, Kind::Address, Kind::AutoScalingGroup, Kind::Usage, Kind::MachineType];

fn url(path: &str) -> String {
    format!("https://www.googleapis.com/compute/v1/projects/{PROJECT}/{path}")
}

/// A machine as Google describes it.
fn machine(place: &str, number: u64, status: &str) -> Value {
    json!({
        "kind": "compute#instance", "id": number.to_string(), "name": format!("align-{number}"), "status": status,
        "zone": url(place), "machineType": url(&format!("{place}/machineTypes/n2-standard-8")),
        "creationTimestamp": "2026-01-02T03:04:05.678-08:00", "lastStartTimestamp": "2026-02-03T04:05:06.789-08:00",
        "scheduling": {"provisioningModel": "STANDARD", "preemptible": false}, "labels": {"owner": "genomics"},
        "disks": [{"type": "PERSISTENT", "boot": true, "autoDelete": true, "deviceName": "boot",
                   "source": url(&format!("{place}/disks/align-{number}"))}],
        "networkInterfaces": [{"name": "nic0", "accessConfigs": [{"type": "ONE_TO_ONE_NAT", "natIP": "203.0.113.7"}]}],
    })
}

fn disk(place: &str, name: &str, user: Option<&str>) -> Value {
    let mut disk = json!({"id": "7", "name": name, "status": "READY", "sizeGb": "500", "zone": url(place),
        "type": url(&format!("{place}/diskTypes/pd-ssd")), "creationTimestamp": "2026-01-02T03:04:05.678-08:00"});
    if let Some(user) = user {
        disk["users"] = json!([url(&format!("{place}/instances/{user}"))]);
    }
    disk
}

/// Machines of every state, two disks, two public addresses and one private, two groups, and the type in use.
async fn furnish(google: &Google) {
    let states = ["RUNNING", "TERMINATED", "STOPPED", "SUSPENDED", "STAGING", "REPAIRING", "PENDING_STOP"];
    let numbered = states.into_iter().zip(1_000_u64..);
    let machines: Vec<Value> = numbered.map(|(status, number)| machine(HERE, number, status)).collect();
    google.resources(PROJECT, "instances", HERE, &machines).await;
    let mut spot = machine(THERE, 2_000, "RUNNING");
    spot["scheduling"] = json!({"provisioningModel": "SPOT"});
    spot["metadata"] = json!({"items": [
        {"key": "created-by", "value": "projects/42/zones/europe-west3-b/instanceGroupManagers/workers"}
    ]});
    google.resources(PROJECT, "instances", THERE, &[spot]).await;
    google
        .resources(PROJECT, "disks", HERE, &[disk(HERE, "align-1000", Some("align-1000")), disk(HERE, "data", None)])
        .await;
    let address = |name: &str, kind: &str, status: &str| json!({"id": "8", "name": name, "address": "203.0.113.9", "addressType": kind, "status": status});
    google.resources(PROJECT, "addresses", "global", &[address("web", "EXTERNAL", "RESERVED")]).await;
    let regional = [address("nat", "EXTERNAL", "IN_USE"), address("inner", "INTERNAL", "RESERVED")];
    google.resources(PROJECT, "addresses", "regions/europe-west3", &regional).await;
    let group = |name: &str| json!({"id": "9", "name": name, "targetSize": 2, "status": {"isStable": true}});
    google.resources(PROJECT, "instanceGroupManagers", THERE, &[group("workers")]).await;
    google.resources(PROJECT, "instanceGroupManagers", "regions/europe-west3", &[group("regional")]).await;
    for place in [HERE, THERE] {
        let shape = json!({"name": "n2-standard-8", "guestCpus": 8, "memoryMb": 32_768, "isSharedCpu": false});
        google.types(PROJECT, place, &[shape]).await;
    }
}

const FURNISHED: [usize; 6] = [8, 2, 2, 2, 0, 2];

fn options(google: &Google) -> Options {
    let patience = Patience { attempts: 3, base_wait: Duration::from_millis(5), ..Patience::default() };
    let endpoint = Some(google.url().to_owned());
    Options {
        projects: vec![PROJECT.into()],
        compute_endpoint: endpoint.clone(),
        monitoring_endpoint: endpoint,
        monitoring: true,
        patience,
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
    assert!(inventory.instances.iter().all(|instance| facts(instance).is_none()), "no stop is proposed");

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
                (Kind::AutoScalingGroup, "europe-west3".to_owned(), Err(FailureKind::Unreachable)),
                (Kind::Instance, "europe-west3-a".to_owned(), Err(FailureKind::Unreachable)),
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
        (Kind::Volume, DISKS),
        (Kind::Address, "compute.addresses.aggregatedList"),
        (Kind::AutoScalingGroup, "compute.instanceGroupManagers.aggregatedList"),
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
    let of_machines = [Kind::Instance, Kind::Usage, Kind::MachineType];
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
async fn a_project_that_does_not_answer_is_given_up_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let google = Google::start(folder.path()).await;
    furnish(&google).await;
    google.fail(&[Fault { method: Some(INSTANCES.into()), delay_s: Some(20), ..Fault::default() }]).await;
    let one_attempt = Options { attempt_timeout: Duration::from_millis(200), ..options(&google) };
    let late = inventory_with(&one_attempt).await;
    assert_eq!(outcomes(&late)[..2], [(Kind::Instance, Err(FailureKind::TimedOut)), (Kind::Volume, Ok(2))]);
    let mut whole_list = options(&google);
    whole_list.patience.listing_timeout = Duration::from_secs(1);
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

/// One idle machine with an open finding, swept by the real binary.
struct Site {
    google: Google,
    sweeper: Sweeper,
    store: Store,
    finding: String,
}

impl Site {
    async fn new(folder: &Path) -> Self {
        let google = Google::start(&folder.join("google")).await;
        furnish(&google).await;
        let config = format!(
            "[aws]\nenabled = \"no\"\n{}[verdict]\nidle_after = \"5m\"\nmissed_heartbeats = 60\n\
             [sweep]\nschedule = \"0 0 0 1 1 *\"\n",
            google.config(&[PROJECT])
        );
        let environment = google.environment(folder);
        let environment: Vec<(&str, &str)> = environment.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        let mut sweeper = Sweeper::start(&folder.join("sweeper"), &config, &environment).await;
        sweeper.stop().await;
        let url = format!("sqlite://{}?mode=rwc", folder.join("sweeper/data/sweeper.db").display());
        let store = Store::connect(&url).await.unwrap();
        let node: NodeId = format!("gcp:{PROJECT}:europe-west3-a:1000").parse().unwrap();
        let (boot, now) = (sample::boot(7), Timestamp::now());
        store.join_node(&sample::join(&node, boot), &TokenHash::of("token"), now).await.unwrap();
        store.store_heartbeats(&sample::checked(&sample::rest(&node, boot, now)), now).await.unwrap();
        let mut site = Self { google, sweeper, store, finding: String::new() };
        let (code, report) = site.sweeper.sweep().await;
        assert_eq!((code, report["complete"].as_bool()), (0, Some(true)), "{report}");
        site.finding = report["opened"][0].as_str().expect("a finding").to_owned();
        site
    }

    /// The machine of the finding, and nothing else of its zone, is there no more.
    async fn delete(&self) {
        self.google.resources(PROJECT, "instances", HERE, &[machine(HERE, 1_001, "TERMINATED")]).await;
    }

    /// A sweep closes nothing and says what it could not read.
    async fn stays_open(&self, because: &str) {
        let (code, report) = self.sweeper.sweep().await;
        assert_eq!((code, report["complete"].as_bool()), (3, Some(false)), "{because}: {report}");
        assert_eq!(report["closed"], json!([]), "{because}");
        let failed = report["scopes"].as_array().unwrap().iter().filter_map(|scope| scope["failed"].as_str());
        assert!(failed.clone().any(|failed| failed.contains(because)), "{because}: {:?}", failed.collect::<Vec<_>>());
        let open = self.store.open_findings().await.unwrap();
        assert_eq!(open.iter().map(|finding| finding.id.0.as_str()).collect::<Vec<_>>(), [&self.finding]);
        assert!(open[0].proposal.is_none());
    }
}

#[tokio::test]
async fn an_idle_machine_is_found_without_a_price_and_without_a_plan() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::new(folder.path()).await;
    let hour = Timestamp::now().as_second() / 3_600 * 3_600;
    let cpu = json!({"metric": "compute.googleapis.com/instance/cpu/utilization", "zone": "europe-west3-b", "instance": "2000",
        "points": [[hour, 0.25]]});
    site.google.series(PROJECT, &[cpu]).await;
    let (code, report) = site.sweeper.sweep().await;
    assert_eq!(code, 0, "{report}");
    let [finding] = report["findings"].as_array().unwrap().as_slice() else { panic!("{report}") };
    assert_eq!(finding["resource"], format!("gcp:{PROJECT}:europe-west3-a:1000"));
    assert_eq!(
        (finding["class"].as_str(), finding["instance_type"].as_str()),
        (Some("idle_instance"), Some("n2-standard-8"))
    );
    assert_eq!(finding["cost_unknown_because"], "no price list of Google Cloud is read yet");
    assert_eq!(finding["proposal"], Value::Null);
    let open = site.store.open_findings().await.unwrap();
    assert_eq!(open[0].confirmed_sweeps, 2);
    assert_eq!(open[0].not_proposed.as_deref(), Some("no stop is proposed yet for machines of Google Cloud"));
    assert_eq!(report["counts"]["not_running"], 3, "{report}");
    let blind: Vec<&str> =
        report["blind_spots"].as_array().unwrap().iter().map(|line| line["resource"].as_str().unwrap()).collect();
    assert_eq!(blind.len(), 4, "starting, in repair, about to stop, and running without an agent: {blind:?}");
    let seen = report["blind_spots"].as_array().unwrap().iter().find(|line| line["name"] == "align-2000").unwrap();
    assert_eq!(
        (&seen["usage"]["source"], &seen["usage"]["busiest_cpu_millionths"]),
        (&json!("cloud_monitoring"), &json!(250_000))
    );
    let calls = site.google.calls().await;
    assert!(calls.iter().all(|call| call.access_token.starts_with("token-")), "with credentials of the standard kind");

    let inventory = site.sweeper.json(&["inventory"]).await;
    let kinds: Vec<&str> =
        inventory["resources"].as_array().unwrap().iter().map(|line| line["kind"].as_str().unwrap()).collect();
    let count = |kind: &str| kinds.iter().filter(|one| **one == kind).count();
    assert_eq!((count("instance"), count("volume"), count("address"), count("auto_scaling_group")), (8, 2, 2, 2));
    assert_eq!(inventory["not_known"], json!([]));

    site.delete().await;
    let (code, report) = site.sweeper.sweep().await;
    assert_eq!((code, &report["closed"]), (0, &json!([site.finding])), "{report}");
}

#[tokio::test]
async fn what_a_sweep_cannot_read_closes_no_finding_and_ends_no_history() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::new(folder.path()).await;
    site.delete().await;
    let key = format!("gcp:{PROJECT}:europe-west3-a:1000");
    let lasts = async || {
        let inventory = site.sweeper.json(&["inventory", "--kind", "instance"]).await;
        let not_known: Vec<String> = inventory["not_known"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["region"].as_str().unwrap().to_owned())
            .collect();
        (inventory["resources"].as_array().unwrap().iter().any(|line| line["resource"] == key), not_known)
    };
    for how in ["unreachables", "warning"] {
        let silent = Unreachable { kind: "instances".into(), place: HERE.into(), how: how.into() };
        site.google.unreachable(&[silent]).await;
        site.stays_open("compute.instances.aggregatedList: unreachable: ").await;
        assert_eq!(lasts().await, (true, vec!["europe-west3-a".to_owned()]), "{how}");
    }
    site.google.unreachable(&[]).await;
    site.google.fail(&[fault(INSTANCES, 403, "forbidden")]).await;
    site.stays_open("compute.instances.aggregatedList: denied: forbidden").await;
    assert!(lasts().await.0);
    site.google.fail(&[]).await;
    site.google.page_size(1).await;
    site.google.repeat_page_tokens(1).await;
    site.stays_open("malformed answer: a page token came twice").await;
    site.google.page_size(500).await;
    site.google.say(INSTANCES, Some(&json!({}))).await;
    site.stays_open("malformed answer: an answer names no zone").await;
    site.google.say(INSTANCES, None).await;

    // Another zone's silence is another matter.
    let silent = Unreachable { kind: "instances".into(), place: THERE.into(), how: "unreachables".into() };
    site.google.unreachable(&[silent]).await;
    let (code, report) = site.sweeper.sweep().await;
    assert_eq!((code, &report["closed"]), (3, &json!([site.finding])), "{report}");
    assert_eq!(lasts().await, (false, vec!["europe-west3-b".to_owned()]));
    site.google.unreachable(&[]).await;
    assert_eq!(site.sweeper.sweep().await.0, 0);
    assert_eq!(lasts().await, (false, vec![]), "the zone that answers again is known again");
}

#[tokio::test]
async fn without_credentials_nobody_is_asked_unless_that_is_demanded() {
    let folder = tempfile::tempdir().unwrap();
    let scope = Scope { provider: Provider::Gcp, account: PROJECT.into(), region: Scope::EVERYWHERE.into() };
    for (enabled, code) in [("auto", 0), ("yes", 3), ("no", 0)] {
        let folder = folder.path().join(enabled);
        let config = format!(
            "[aws]\nenabled = \"no\"\n[gcp]\nenabled = \"{enabled}\"\nprojects = [\"{}\"]\n[sweep]\nschedule = \"0 0 0 1 1 *\"\n",
            scope.account
        );
        let home = folder.display().to_string();
        // No metadata service listens there.
        let environment = [("HOME", home.as_str()), ("GCE_METADATA_HOST", "127.0.0.1:1")];
        let mut sweeper = Sweeper::start(&folder, &config, &environment).await;
        sweeper.stop().await;
        let (exit, report) = sweeper.sweep().await;
        assert_eq!(exit, code, "{enabled}: {report}");
        let failed = report["scopes"].as_array().unwrap().iter().filter_map(|scope| scope["failed"].as_str());
        assert_eq!(failed.filter(|failed| failed.contains("credentials")).count(), usize::from(code == 3), "{report}");
    }
}
