//! The same through the real binary, with its findings, its history and what it says.

use model::Provider;
use std::path::Path;

use heartbeat::NodeId;
use jiff::Timestamp;
use lab::{
    gcp::{Google, PROJECT, Unreachable},
    sample,
    sweeper::Sweeper,
};
use serde_json::{Value, json};
use sweeper::{
    detectors::Class,
    findings::Finding,
    inventory::Scope,
    store::{Store, TokenHash},
};

use super::{
    estate::{HERE, INSTANCES, THERE, furnish, machine},
    fault,
    priced::{IDLE, skus},
};

/// One idle machine with an open finding, swept by the real binary.
pub(super) struct Site {
    pub(super) google: Google,
    pub(super) sweeper: Sweeper,
    pub(super) store: Store,
    finding: String,
}

impl Site {
    pub(super) async fn new(folder: &Path) -> Self {
        let google = Google::start(&folder.join("google")).await;
        furnish(&google).await;
        google.skus(&skus()).await;
        let config = format!(
            "[aws]\nenabled = \"no\"\n{}[verdict]\nidle_after = \"5m\"\nmissed_heartbeats = 60\nleftover_after = \"0s\"\n\
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

    /// The open findings on machines.
    pub(super) async fn idle(&self) -> Vec<Finding> {
        let mut open = self.store.open_findings().await.unwrap();
        open.retain(|finding| finding.class == Class::IdleNode);
        open
    }

    /// A sweep closes nothing and says what it could not read.
    async fn stays_open(&self, because: &str) {
        let (code, report) = self.sweeper.sweep().await;
        assert_eq!((code, report["complete"].as_bool()), (3, Some(false)), "{because}: {report}");
        assert_eq!(report["closed"], json!([]), "{because}");
        let failed = report["scopes"].as_array().unwrap().iter().filter_map(|scope| scope["failed"].as_str());
        assert!(failed.clone().any(|failed| failed.contains(because)), "{because}: {:?}", failed.collect::<Vec<_>>());
        let open = self.idle().await;
        assert_eq!(open.iter().map(|finding| finding.id.0.as_str()).collect::<Vec<_>>(), [&self.finding]);
        assert!(open[0].plan.is_none());
    }
}

#[tokio::test]
async fn an_idle_machine_is_found_with_its_price_and_without_a_plan() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::new(folder.path()).await;
    let hour = Timestamp::now().as_second() / 3_600 * 3_600;
    let cpu = json!({"metric": "compute.googleapis.com/instance/cpu/utilization", "zone": "europe-west3-b", "instance": "2000",
        "points": [[hour, 0.25]]});
    site.google.series(PROJECT, &[cpu]).await;
    let (code, report) = site.sweeper.sweep().await;
    assert_eq!(code, 0, "{report}");
    let found = report["findings"].as_array().unwrap().iter();
    let (idle, left): (Vec<&Value>, Vec<&Value>) = found.partition(|finding| finding["class"] == "idle_node");
    let [finding] = idle.as_slice() else { panic!("{report}") };
    assert_eq!(finding["resource"], format!("gcp:{PROJECT}:europe-west3-a:1000"));
    assert_eq!(
        (finding["class"].as_str(), finding["instance_type"].as_str()),
        (Some("idle_node"), Some("n2-standard-8"))
    );
    assert_eq!(finding["cost_micro_usd_per_hour"], IDLE);
    assert_eq!(finding["plan"], Value::Null);
    // The disk itself says since when it is unused; of the address two lists do.
    let told = |finding: &&Value| ["class", "resource", "cost_unknown_because"].map(|key| finding[key].clone());
    let mut left: Vec<_> = left.iter().map(|finding| (told(finding), finding["since"].clone())).collect();
    left.sort_by_key(|(told, _)| told[0].to_string());
    let [(disk, since), (address, _)] = left.as_slice() else { panic!("{left:?}") };
    let why = json!("of Google Cloud only machines' prices are read yet");
    let key = |id: &str| json!(format!("gcp:{PROJECT}:{id}"));
    assert_eq!(
        (disk, since),
        (
            &[json!("unattached_volume"), key("europe-west3-a:disk/data"), why.clone()],
            &json!("2026-01-02T11:04:05.678Z")
        )
    );
    assert_eq!(address, &[json!("unused_address"), key("global:address/web"), why]);
    let open = site.idle().await;
    assert_eq!(open[0].confirmed_sweeps, 2);
    // Whether it is protected nobody has said.
    let unknown = "whether it is protected is not known: Google does not say";
    assert_eq!(open[0].no_plan_because.as_deref(), Some(unknown));
    assert_eq!(report["counts"]["not_running"], 3, "{report}");
    let blind: Vec<&str> =
        report["blind_spots"].as_array().unwrap().iter().map(|line| line["resource"].as_str().unwrap()).collect();
    assert_eq!(blind.len(), 4, "starting, in repair, about to stop, and running without an agent: {blind:?}");
    let seen = report["blind_spots"].as_array().unwrap().iter().find(|line| line["name"] == "align-2000").unwrap();
    assert_eq!(
        (&seen["usage"]["source"], &seen["usage"]["busiest_cpu_millionths"]),
        (&json!("cloud_monitoring"), &json!(250_000))
    );
    assert_eq!(site.sweeper.replays().await.1, 0, "no plan is made there");
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
    for (enabled, code, not_asked) in [("auto", 0, &["aws", "gcp"][..]), ("yes", 3, &[]), ("no", 0, &[])] {
        let folder = folder.path().join(enabled);
        let config = format!(
            "[aws]\nenabled = \"{enabled}\"\n[gcp]\nenabled = \"{enabled}\"\nprojects = [\"{}\"]\n[sweep]\nschedule = \"0 0 0 1 1 *\"\n",
            scope.account
        );
        let home = folder.display().to_string();
        // No metadata service listens there.
        let environment = [
            ("HOME", home.as_str()),
            ("GCE_METADATA_HOST", "127.0.0.1:1"),
            ("AWS_EC2_METADATA_DISABLED", "false"),
            ("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:1"),
        ];
        let mut sweeper = Sweeper::start(&folder, &config, &environment).await;
        sweeper.stop().await;
        let (exit, report) = sweeper.sweep().await;
        assert_eq!(exit, code, "{enabled}: {report}");
        let failed = report["scopes"].as_array().unwrap().iter().filter_map(|scope| scope["failed"].as_str());
        let of_credentials = failed.filter(|failed| failed.starts_with("finding credentials: "));
        assert_eq!(of_credentials.count(), if code == 3 { 2 } else { 0 }, "{report}");
        let named = report["not_asked"].as_array().unwrap().iter().map(|one| one["provider"].as_str().unwrap());
        assert_eq!(named.collect::<Vec<_>>(), not_asked, "{report}");

        let swept = sweeper.run(&["sweep"]).await;
        let (told, errors) = (String::from_utf8_lossy(&swept.stdout), String::from_utf8_lossy(&swept.stderr));
        assert_eq!(errors, "", "what the report says is not said a second time, in the words of a library");
        for provider in ["aws", "gcp"] {
            let line = format!("not asked: {provider}: finding credentials: none found; set ");
            assert_eq!(told.contains(&line), not_asked.contains(&provider), "{told}");
        }
    }
}
