//! What a person approved is done to a machine of Google Cloud once, if nothing speaks against it at the last moment, and never otherwise.

use lab::{
    answering::Says,
    gcp::{Fault, PROJECT},
    wait,
};
use serde_json::{Value, json};
use std::{collections::BTreeSet, fs, time::Duration};

use super::{
    acting::{Acting, CALLS, NUMBER, SWITCHED_ON, TIMEOUT},
    estate::HERE,
    fault,
};

lab::on_both_databases! {
    an_approved_stop_is_carried_out_and_undone,
    what_has_changed_since_the_approval_voids_it,
    what_others_rest_on_is_left_alone,
    a_dry_run_is_all_where_acting_is_not_switched_on,
    without_the_right_nothing_is_called,
    an_error_after_having_acted_is_looked_into,
    killed_after_the_call_has_left_it_looks_and_calls_nothing,
    what_finds_no_room_is_started_later,
}

/// The permissions that a page names in the paragraph that begins so.
fn documented(begins: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(lab::binaries::checkout().join("docs/approvals.md")).unwrap();
    let paragraph = text.lines().find(|line| line.starts_with(begins)).unwrap();
    paragraph.split('`').filter(|part| part.starts_with("compute.")).map(str::to_owned).collect()
}

async fn an_approved_stop_is_carried_out_and_undone(url: String) {
    let site = Acting::start(&url).await;
    let (plan, ada) = (site.plan().await, site.enrol("ada").await);
    let token = ada.to_str().unwrap();
    let finding = site.sweeper.json(&["plans"]).await[0]["finding"].as_str().unwrap().to_owned();
    let shown = site.run(&["explain", &finding]).await.said;
    let command = format!("gcloud compute instances stop {NUMBER} --project {PROJECT} --zone europe-west3-a");
    assert!(shown.contains(&command) && shown.contains("Google's catalogue: it names no machine's price"), "{shown}");
    let target = json!({"name": "web", "instances": []});
    site.google.resources(PROJECT, "targetPools", "regions/europe-west3", &[target]).await;
    let group = json!({"name": "endpoints"});
    site.google.resources(PROJECT, "networkEndpointGroups", HERE, &[group]).await;

    let approved = site.run(&["approve", &plan, "--token-file", token, "--wait"]).await;
    assert_eq!(approved.code, 0, "{approved:?}\n{}", site.sweeper.log());
    assert!(approved.said.ends_with("done: the machine is stopped\n"), "{approved:?}");
    assert_eq!(site.status().await, "TERMINATED");
    let calls = site.google.calls().await;
    let stops: Vec<_> = calls.iter().filter(|call| call.method == CALLS[0]).collect();
    let [stop] = stops.as_slice() else { panic!("{calls:#?}") };
    // The very machine, by its number, once, in ada's name, and nothing is thrown away.
    assert_eq!(stop.path["instance"], NUMBER);
    let id: uuid::Uuid = stop.query["requestId"].as_str().unwrap().parse().unwrap();
    assert_eq!((stop.query.as_object().unwrap().len(), id.is_nil()), (1, false));
    assert_eq!(stop.reason.as_deref(), Some("Cloud Sweeper, for ada"));
    let by_who_acts = |acts: bool| -> BTreeSet<String> {
        let of = calls.iter().filter(|call| call.access_token.starts_with("token-acts-") == acts);
        of.map(|call| call.method.clone()).collect()
    };
    let may = "compute.instances.testIamPermissions".to_owned();
    assert_eq!(by_who_acts(true), [CALLS[0].to_owned(), may].into(), "what acts reads nothing");
    let read = by_who_acts(false);
    assert!(read.is_disjoint(&CALLS.map(str::to_owned).into()), "what reads does not act");
    site.sweeper.sweep().await;
    assert_eq!(site.sweeper.json(&["plans"]).await, json!([]), "what it found is over");

    let undone = site.run(&["undo", &plan, "--token-file", token, "--wait"]).await;
    assert!(undone.code == 0 && undone.said.contains("done: the machine is running"), "{undone:?}");
    assert_eq!(site.status().await, "RUNNING");
    let [start] = site.called().await.try_into().unwrap();
    assert_eq!((start.method.as_str(), start.reason.as_deref()), (CALLS[1], Some("Cloud Sweeper, for ada")));
    assert_ne!(start.query["requestId"], stop.query["requestId"]);
    let again = site.run(&["undo", &plan, "--token-file", token]).await;
    assert!(again.code == 1 && again.error.contains("it is being undone, or was"), "{again:?}");
    let listed = site.run(&["actions"]).await.said;
    assert!(listed.contains(&format!("undone by ada: nothing more is done in {PROJECT} until")), "{listed}");
    assert_eq!(site.run(&["audit", "verify"]).await.code, 0);

    // The documentation names what is called, in both directions; lists of endpoints need the right to read their group, and operations are read where one did not come about at once.
    let mut acts: BTreeSet<String> = CALLS.map(str::to_owned).into();
    // Google asks it of whoever asks about rights.
    acts.insert("compute.instances.list".to_owned());
    assert_eq!(documented("Who acts in Google Cloud needs"), acts);
    let mut beside = documented("What reads in Google Cloud needs beside");
    let lists = ["instances", "disks", "addresses", "instanceGroupManagers"]
        .map(|kind| format!("compute.{kind}.aggregatedList"));
    let others = ["compute.machineTypes.get", "monitoring.projects.timeSeries.list"].map(str::to_owned);
    let called: BTreeSet<String> =
        read.into_iter().filter(|call| !lists.contains(call) && !others.contains(call)).collect();
    assert!(beside.remove("compute.networkEndpointGroups.get"));
    beside.insert("compute.networkEndpointGroups.listNetworkEndpoints".to_owned());
    assert_eq!(called, beside);
}

async fn what_has_changed_since_the_approval_voids_it(url: String) {
    let site = Acting::start(&url).await;
    let ada = site.enrol("ada").await;
    let before = site.google.machine(HERE, NUMBER).await;
    let spot = json!({"provisioningModel": "SPOT", "preemptible": true});
    let disks = json!([before["disks"][0], {"type": "SCRATCH"}]);
    let policy = format!("projects/{PROJECT}/regions/europe-west3/resourcePolicies/office-hours");
    let type_ = before["machineType"].as_str().unwrap().replace("standard-8", "standard-16");
    let reserved = json!({"consumeReservationType": "SPECIFIC_RESERVATION", "values": ["nightly"]});
    let metadata =
        json!({"items": [{"key": "created-by", "value": "projects/42/zones/z/instanceGroupManagers/workers"}]});
    for (change, words) in [
        (json!({"labels": {"owner": "ada", "cloud-sweeper-exempt": "true"}}), "it is exempt by the tag"),
        (json!({"labels": {"owner": "grace"}}), "its owner was ada when it was found, and is grace now"),
        (json!({"labels": {"owner": "ada", "goog-gke-node": ""}}), "GKE cluster"),
        (json!({"metadata": metadata}), "group or service that made it, workers"),
        (json!({"deletionProtection": true}), "it is under deletion protection"),
        (json!({"lastStartTimestamp": "2026-02-04T04:05:06.789-08:00"}), "and again at"),
        (json!({"scheduling": spot}), "it is a Spot or preemptible machine"),
        (json!({"disks": disks}), "local SSDs"),
        (json!({"resourcePolicies": [policy]}), "the resource policy office-hours"),
        (json!({"reservationAffinity": reserved}), "the capacity reservation nightly"),
        (json!({"machineType": type_}), "it was a n2-standard-8 when the plan was made"),
        (json!({"status": "SUSPENDED"}), "its state is `suspended`"),
    ] {
        let plan = site.plan().await;
        // It cannot be decided until the node has spoken.
        site.answers.say(Says::Nothing);
        site.approve(&plan, &ada).await;
        site.action(&plan, "do", &["asking"]).await;
        site.change(change.clone()).await;
        site.answers.say(Says::Quiet);
        let ended = site.ended(&plan).await;
        let told = ended["outcome"].as_str().unwrap_or_default();
        assert!(ended["state"] == "voided" && told.contains(words), "`{words}` is not in {ended:#}");
        let mut back = change;
        for (name, value) in back.as_object_mut().unwrap() {
            *value = before.get(name).cloned().unwrap_or(Value::Null);
        }
        site.change(back).await;
        site.sweeper.sweep().await;
        assert_ne!(site.plan().await, plan, "{words}: another plan takes its place");
    }
    // A group has taken it up, which its metadata do not tell.
    let workers = format!("https://www.googleapis.com/compute/v1/projects/{PROJECT}/{HERE}/instanceGroups/workers");
    site.google.referrers(NUMBER, &[&workers]).await;
    site.is_refused("group of instances workers", &ada).await;
    site.google.referrers(NUMBER, &[]).await;
    site.google.fail(&[fault("compute.instances.listReferrers", 403, "forbidden")]).await;
    site.is_refused("which groups it is a member of is not known", &ada).await;
    site.google.fail(&[]).await;
    // Somebody works there.
    site.answers.say(Says::Works);
    site.is_refused("it is not idle any more", &ada).await;
    assert_eq!((site.called().await.len(), site.status().await.as_str()), (0, "RUNNING"));
}

async fn what_others_rest_on_is_left_alone(url: String) {
    let mut site = Acting::start(&url).await;
    let ada = site.enrol("ada").await;
    let url = format!("https://www.googleapis.com/compute/v1/projects/{PROJECT}/{HERE}/instances/align-{NUMBER}");
    let kinds = [
        ("routes", "global", json!({"name": "through", "nextHopInstance": url}), "the route through"),
        ("targetPools", "regions/europe-west3", json!({"name": "web", "instances": [url]}), "the target pool web"),
        ("targetInstances", HERE, json!({"name": "vpn", "instance": url}), "the target instance vpn"),
    ];
    for (kind, place, one, words) in kinds {
        site.google.resources(PROJECT, kind, place, &[one]).await;
        site.is_refused(words, &ada).await;
        site.google.resources(PROJECT, kind, place, &[]).await;
    }
    let endpoint =
        json!({"networkEndpoint": {"instance": format!("align-{NUMBER}"), "ipAddress": "10.0.0.7", "port": 80}});
    site.google.resources(PROJECT, "networkEndpointGroups", HERE, &[json!({"name": "api"})]).await;
    site.google.resources(PROJECT, "networkEndpoints", &format!("{HERE}/api"), &[endpoint]).await;
    site.is_refused("the network endpoint group api", &ada).await;
    site.google.resources(PROJECT, "networkEndpointGroups", HERE, &[]).await;
    site.change(json!({"canIpForward": true})).await;
    site.is_refused("it forwards packets that are not for it", &ada).await;
    site.change(json!({"canIpForward": false})).await;
    // What rests on it cannot be read.
    site.google.fail(&[fault("compute.routes.list", 403, "forbidden")]).await;
    site.is_refused("what rests on it could not be read: compute.routes.list", &ada).await;
    site.google.fail(&[]).await;
    // It is the sweeper's own.
    site.sweeper.stop().await;
    let file = site.sweeper.folder().join("sweeper.toml");
    let config = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{config}own_instances = [\"{NUMBER}\"]\n")).unwrap();
    site.sweeper.start_again().await;
    site.is_refused("the sweeper itself needs this machine", &ada).await;
    assert_eq!((site.called().await.len(), site.status().await.as_str()), (0, "RUNNING"));
}

async fn a_dry_run_is_all_where_acting_is_not_switched_on(url: String) {
    let mut site = Acting::start_with(&url, "", true).await;
    let (plan, ada) = (site.plan().await, site.enrol("ada").await);
    let approved = site.run(&["approve", &plan, "--token-file", ada.to_str().unwrap(), "--wait"]).await;
    assert!(approved.code == 1 && approved.said.contains("A dry run is all that is done"), "{approved:?}");
    let ended = site.ended(&plan).await;
    let told = ended["outcome"].as_str().unwrap();
    assert!(ended["state"] == "voided" && told.starts_with("a dry run: nothing stands in the way"), "{ended:#}");
    // Nobody acts there, as is the default.
    site.sweeper.stop().await;
    let file = site.sweeper.folder().join("sweeper.toml");
    let config = fs::read_to_string(&file).unwrap();
    let is_kept = |line: &&str| !line.contains("credentials_file");
    let without: Vec<&str> = config.lines().filter(is_kept).collect();
    assert_eq!(without.len() + 1, config.lines().count(), "{config}");
    fs::write(&file, without.join("\n")).unwrap();
    site.sweeper.start_again().await;
    site.sweeper.sweep().await;
    let plan = site.plan().await;
    site.approve(&plan, &ada).await;
    let ended = site.ended(&plan).await;
    let told = ended["outcome"].as_str().unwrap();
    assert!(ended["state"] == "voided" && told.starts_with("a dry run: nobody acts in project"), "{ended:#}");
    assert_eq!((site.called().await.len(), site.status().await.as_str()), (0, "RUNNING"));
}

/// What `sweeper doctor` says of who acts.
async fn examined(site: &Acting) -> String {
    let told = site.run(&["doctor", "--output", "json"]).await.said;
    let told: Value = serde_json::from_str(&told).unwrap();
    let checks = told.as_array().cloned().unwrap_or_else(|| told["checks"].as_array().unwrap().clone());
    let of_it = |check: &&Value| check["part"] == "approvals" && check["name"] == PROJECT;
    let found: Vec<&Value> = checks.iter().filter(of_it).collect();
    let [check] = found.as_slice() else { panic!("{told:#}") };
    format!("{} {}", check["status"].as_str().unwrap(), check["found"].as_str().unwrap())
}

async fn without_the_right_nothing_is_called(url: String) {
    let site = Acting::start(&url).await;
    let (plan, ada) = (site.plan().await, site.enrol("ada").await);
    assert_eq!(examined(&site).await, "ok could stop and start 1000, by what Google says of the right to it");
    site.google.deny(&[CALLS[1]]).await;
    let refused = examined(&site).await;
    assert!(refused.starts_with("warning") && refused.contains("does not have compute.instances.start"), "{refused}");
    site.google.deny(&["compute.instances.list"]).await;
    let unheard = examined(&site).await;
    assert!(unheard.starts_with("warning") && unheard.contains("compute.instances.list"), "{unheard}");
    site.google.deny(&[CALLS[0]]).await;
    site.approve(&plan, &ada).await;
    let ended = site.ended(&plan).await;
    let told = ended["outcome"].as_str().unwrap();
    assert!(ended["state"] == "failed" && told.contains("does not have compute.instances.stop there"), "{ended:#}");
    assert_eq!((site.called().await.len(), site.status().await.as_str()), (0, "RUNNING"));
}

async fn an_error_after_having_acted_is_looked_into(url: String) {
    let site = Acting::start(&url).await;
    let (plan, ada) = (site.plan().await, site.enrol("ada").await);
    site.google.fail(&[Fault { acted: true, times: Some(1), ..fault(CALLS[0], 503, "backendError") }]).await;
    site.approve(&plan, &ada).await;
    let ended = site.ended(&plan).await;
    let told = ended["outcome"].as_str().unwrap();
    assert!(ended["state"] == "done" && told.contains("whether by this call, nobody knows"), "{ended:#}");
    assert_eq!((site.called().await.len(), site.status().await.as_str()), (1, "TERMINATED"));
}

async fn killed_after_the_call_has_left_it_looks_and_calls_nothing(url: String) {
    let mut site = Acting::start(&url).await;
    let (plan, ada) = (site.plan().await, site.enrol("ada").await);
    // Google takes its time, and does it.
    let late = Fault { method: Some(CALLS[0].into()), delay_s: Some(15), times: Some(1), ..Fault::default() };
    site.google.fail(&[late]).await;
    site.approve(&plan, &ada).await;
    let mut called = 0;
    for _ in 0..600 {
        called += site.called().await.len();
        if called > 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    site.sweeper.kill();
    assert_eq!(site.action(&plan, "do", &["calling"]).await["epoch"], 1);
    site.sweeper.start_again().await;
    let ended = site.ended(&plan).await;
    assert!(ended["state"] == "done" && ended["epoch"] == 2, "{ended:#}");
    assert!(ended["outcome"].as_str().unwrap().contains("whether by this call, nobody knows"), "{ended:#}");
    called += site.called().await.len();
    assert_eq!((called, site.status().await.as_str()), (1, "TERMINATED"));
}

async fn what_finds_no_room_is_started_later(url: String) {
    let site = Acting::start(&url).await;
    let (plan, ada) = (site.plan().await, site.enrol("ada").await);
    site.approve(&plan, &ada).await;
    assert_eq!(site.ended(&plan).await["state"], "done");
    site.called().await;
    // Google takes the call, and finds no room afterwards.
    site.google.full(1).await;
    let undone = site.run(&["undo", &plan, "--token-file", ada.to_str().unwrap()]).await;
    assert_eq!(undone.code, 0, "{undone:?}");
    let attempts = wait::until("the machine to be started", TIMEOUT, || async {
        let all = site.sweeper.json(&["actions"]).await;
        let undo = |action: &&Value| action["direction"] == "undo";
        let undone: Vec<Value> = all.as_array().unwrap().iter().filter(undo).cloned().collect();
        undone.iter().any(|action| action["state"] == "done").then_some(undone)
    })
    .await;
    let failed = attempts.iter().find(|action| action["state"] == "failed").unwrap();
    let told = failed["outcome"].as_str().unwrap();
    assert!(told.contains("ZONE_RESOURCE_POOL_EXHAUSTED") && told.contains("it is tried again in 15 s"), "{told}");
    let calls = site.called().await;
    let ids: BTreeSet<String> = calls.iter().map(|call| call.query["requestId"].to_string()).collect();
    assert_eq!(
        (calls.len(), ids.len(), site.status().await.as_str()),
        (2, 2, "RUNNING"),
        "each try is a request of its own"
    );
}

/// The keys of `[act]` that cannot work are refused before anything is done.
#[tokio::test]
async fn a_scope_where_nobody_acts_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}?mode=rwc", folder.path().join("sweeper.db").display());
    let site = Acting::start(&url).await;
    let file = site.sweeper.folder().join("sweeper.toml");
    let config = fs::read_to_string(&file).unwrap();
    for (with, words) in [
        ("scopes = [\"omics-dev-1:europe-west3-a\"]\n", "no `act.projects` is of omics-dev-1"),
        ("scopes = [\"omics-prod-1:europe-west3\"]\n", "is not a project and a zone"),
    ] {
        fs::write(&file, config.replace(SWITCHED_ON, with)).unwrap();
        let refused = site.run(&["scopes"]).await;
        assert!(refused.code != 0 && refused.error.contains(words), "{refused:?}");
    }
}
