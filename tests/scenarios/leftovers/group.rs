//! An Auto Scaling group of which each machine is idle is found once, and until one of them works or the group keeps none; so is what starts machines
//! over and over that nobody uses.

use jiff::{SignedDuration, Timestamp};
use lab::{
    aws::{ACCOUNT, Fault, Group, Instance, Member, Moto},
    sample,
    sweeper::Sweeper,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use sweeper::{detectors::Class, store::Store};
use tempfile::TempDir;

lab::on_both_databases! {
    a_group_whose_machines_are_all_idle_is_found_until_one_of_them_works,
    a_group_is_found_that_starts_one_machine_after_the_other_for_nobody,
    a_launch_template_is_found_that_machines_are_started_from_for_nobody,
}

const REGION: &str = "us-east-1";
/// Half-minutes of heartbeats: an hour.
const BEATS: u64 = 120;

/// A sweeper over machines of EC2, with their agents' heartbeats.
struct Site {
    moto: Moto,
    sweeper: Sweeper,
    store: Store,
    machines: Vec<String>,
    _folder: TempDir,
}

impl Site {
    /// These machines, in groups of which some of them are members, swept once.
    async fn start(url: &str, machines: &[Instance], groups: impl FnOnce(&[String]) -> Vec<Group>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let moto = Moto::start(&folder.path().join("aws")).await;
        let machines = moto.run(REGION, machines).await;
        moto.groups(REGION, &groups(&machines)).await;
        let config = format!("[store]\nurl = \"{url}\"\n[aws]\nregions = [\"{REGION}\"]\n");
        let environment = moto.environment();
        let environment: Vec<_> = environment.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let sweeper = Sweeper::prepare(&folder.path().join("sweeper"), &config, &environment);
        sweeper.sweep().await;
        let store = Store::connect(url).await.unwrap();
        Self { moto, sweeper, store, machines, _folder: folder }
    }

    /// So many of them have done nothing for an hour, by their agents.
    async fn quiet(&self, count: usize) {
        for id in &self.machines[..count] {
            sample::report(&self.store, &key(id).parse().unwrap(), sample::boot(1), 1..=BEATS, sample::quiet).await;
        }
    }

    /// Somebody ends these, and a sweep sees that, and the next one what has become of all.
    async fn end(&self, machines: &[usize]) -> Value {
        let mut call = vec![("Action".to_owned(), "TerminateInstances".to_owned())];
        let ids = machines.iter().map(|at| self.machines[*at].clone());
        call.extend(ids.zip(1..).map(|(id, number)| (format!("InstanceId.{number}"), id)));
        let call: Vec<_> = call.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        self.moto.query("ec2", REGION, &call).await;
        self.sweeper.sweep().await;
        self.sweeper.sweep().await.1
    }

    async fn explained(&self, finding: &Value) -> String {
        String::from_utf8(self.sweeper.run(&["explain", finding["id"].as_str().unwrap()]).await.stdout).unwrap()
    }

    /// Why the finding of that class was closed.
    async fn closed_because(&self, class: &str) -> Value {
        let closed = self.sweeper.json(&["findings", "--closed"]).await;
        let closed = closed.as_array().unwrap().iter().find(|one| one["class"] == class).unwrap();
        closed["status"]["because"].clone()
    }
}

fn key(id: &str) -> String {
    format!("aws:{ACCOUNT}:{REGION}:{id}")
}

fn says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
}

fn relaunching(report: &Value) -> Vec<Value> {
    let findings = report["findings"].as_array().unwrap().iter();
    findings.filter(|one| one["class"] == "relaunching_group").cloned().collect()
}

fn found(report: &Value) -> Vec<(&str, &str)> {
    let findings = report["findings"].as_array().unwrap().iter();
    let found = findings.map(|one| (one["class"].as_str().unwrap(), one["resource"].as_str().unwrap()));
    let mut found: Vec<_> = found.collect();
    found.sort_unstable();
    found
}

async fn a_group_whose_machines_are_all_idle_is_found_until_one_of_them_works(url: String) {
    let group = |name: &str, members: &[String]| Group {
        name: name.into(),
        min: 0,
        max: 4,
        desired: 2,
        members: members.iter().map(|id| Member::of(id)).collect(),
        tags: [("owner".to_owned(), "genomics".to_owned())].into(),
        ..Group::default()
    };
    let four = Instance { count: Some(4), ..Instance::named("m5.large", "") };
    let groups = |machines: &[String]| vec![group("left", &machines[..2]), group("half", &machines[2..])];
    let site = Site::start(&url, &[four], groups).await;
    // Nobody knows what the last one does.
    site.quiet(3).await;

    let keys: Vec<String> = site.machines.iter().map(|id| key(id)).collect();
    let left = key("group/left");
    let mut expected: Vec<_> = keys[..3].iter().map(|key| ("idle_node", key.as_str())).collect();
    expected.push(("idle_group", &left));
    expected.sort_unstable();
    let (_, told) = site.sweeper.sweep().await;
    assert_eq!(found(&told), expected, "{told:#}");
    let finding = told["findings"].as_array().unwrap().iter().find(|one| one["class"] == "idle_group").unwrap();
    assert_eq!([&finding["name"], &finding["described"]], ["left", "keeps 2 machines up from left"]);
    assert_eq!(finding["plan"], Value::Null);
    let why = finding["cost_unknown_because"].as_str().unwrap();
    assert_eq!(why, "each of its machines is a finding of its own, together $0.192/h");
    says(
        &site.explained(finding).await,
        &[
            "left has had nothing but idle machines for 59 min ",
            "each of its 2 machines is idle, all at once since ",
            "one that is ended alone is started again",
            "no plan changes a group as a whole",
            "decided again from the kept evidence just now: the same",
        ],
    );

    let first = keys[0].parse().unwrap();
    sample::report(&site.store, &first, sample::boot(1), BEATS + 1..=BEATS + 1, sample::worked).await;
    let (_, worked) = site.sweeper.sweep().await;
    assert!(found(&worked).iter().all(|(class, _)| *class == "idle_node"), "{worked:#}");
    assert_eq!(site.closed_because("idle_group").await, json!(format!("{} of it works", site.machines[0])));
    let (decisions, _) = site.sweeper.replays().await;
    assert!(decisions >= 4, "{decisions}");
}

/// Three machines that have just been started, or that worked for a day before they were idle.
fn three(launched_at: Option<Timestamp>, tags: BTreeMap<String, String>) -> Instance {
    let named = Instance::named("m5.large", "");
    Instance { count: Some(3), launched_at, tags: named.tags.clone().into_iter().chain(tags).collect(), ..named }
}

async fn a_group_is_found_that_starts_one_machine_after_the_other_for_nobody(url: String) {
    let day_ago = Some(Timestamp::now() - SignedDuration::from_hours(24));
    let group = |name: &str, members: &[String]| Group {
        name: name.into(),
        min: 0,
        max: 4,
        desired: 3,
        members: members.iter().map(|id| Member::of(id)).collect(),
        ..Group::default()
    };
    let groups = |machines: &[String]| vec![group("nightly", &machines[..3]), group("worked", &machines[3..])];
    let both = [three(None, BTreeMap::new()), three(day_ago, BTreeMap::new())];
    let site = Site::start(&url, &both, groups).await;
    site.quiet(6).await;
    site.sweeper.sweep().await;

    // Somebody ends two of them, which is no habit yet, and all of another group.
    let told = site.end(&[0, 1, 3, 4, 5]).await;
    assert_eq!(relaunching(&told), Vec::<Value>::new(), "{told:#}");
    let told = site.end(&[2]).await;
    let found = relaunching(&told);
    let [finding] = found.as_slice() else { panic!("{told:#}") };
    assert_eq!(finding["resource"], key("group/nightly"));
    assert_eq!(finding["plan"], Value::Null);
    let why = finding["cost_unknown_because"].as_str().unwrap();
    assert_eq!(why, "what it starts next nobody knows; what it had started cost $0.29 while it was idle");
    says(
        &site.explained(finding).await,
        &[
            "nightly has started machines that nobody used for ",
            "3 machines that it had started were found idle within a week and have ended, the last was idle until ",
            // 59.5 minutes of each at $0.096/h.
            "together they were idle for 2 h 58 min, which cost $0.29",
            "no plan changes a group as a whole",
            "decided again from the kept evidence just now: the same",
        ],
    );
    let table = String::from_utf8(site.sweeper.run(&["findings"]).await.stdout).unwrap();
    says(&table, &["Relaunching groups and launch templates: what they started within a week was idle until it ended"]);

    // It may start none any more.
    let call = [
        ("Action", "UpdateAutoScalingGroup"),
        ("AutoScalingGroupName", "nightly"),
        ("MinSize", "0"),
        ("MaxSize", "0"),
        ("DesiredCapacity", "0"),
    ];
    site.moto.query("autoscaling", REGION, &call).await;
    let (_, over) = site.sweeper.sweep().await;
    assert_eq!(relaunching(&over), Vec::<Value>::new(), "{over:#}");
    assert_eq!(site.closed_because("relaunching_group").await, "it may start no machine any more");
    let (decisions, plans) = site.sweeper.replays().await;
    assert!(decisions >= 5 && plans == 0, "{decisions} {plans}");
}

/// Machines that somebody's script starts from a template, and that no group keeps up; beside them those of a template of which two only have ended, and of
/// one whose machines had worked.
async fn a_launch_template_is_found_that_machines_are_started_from_for_nobody(url: String) {
    let day_ago = Some(Timestamp::now() - SignedDuration::from_hours(24));
    let from = |id: &str| BTreeMap::from([("aws:ec2launchtemplate:id".to_owned(), id.to_owned())]);
    let machines = [three(None, from("lt-1")), three(None, from("lt-2")), three(day_ago, from("lt-3"))];
    let site = Site::start(&url, &machines, |_| Vec::new()).await;
    site.quiet(9).await;
    site.sweeper.sweep().await;

    let told = site.end(&[0, 1, 2, 3, 4, 6, 7, 8]).await;
    let found = relaunching(&told);
    let [finding] = found.as_slice() else { panic!("{told:#}") };
    assert_eq!(finding["resource"], key("launch-template/lt-1"));
    assert_eq!(finding["plan"], Value::Null);
    says(
        &site.explained(finding).await,
        &[
            "has been used to start machines that nobody used for ",
            "3 machines that were started from it were found idle within a week and have ended, the last was idle until ",
            "no plan changes what starts machines from a launch template",
            "decided again from the kept evidence just now: the same",
        ],
    );
    // While machines cannot be listed nobody knows whether they have ended.
    let fault = Fault {
        service: Some("ec2".into()),
        action: Some("DescribeInstances".into()),
        code: Some("UnauthorizedOperation".into()),
        status: Some(403),
        ..Fault::default()
    };
    site.moto.fail(&[fault]).await;
    let (_, blind) = site.sweeper.sweep().await;
    assert_eq!(relaunching(&blind).len(), 1, "{blind:#}");
    let open = site.store.open_findings().await.unwrap();
    let unconfirmed = open.iter().filter(|one| one.class == Class::RelaunchingGroup && one.confirmed_sweeps == 0);
    assert_eq!(unconfirmed.count(), 1, "{open:#?}");
    site.moto.fail(&[]).await;
    let (_, told) = site.sweeper.sweep().await;
    assert_eq!(relaunching(&told).len(), 1, "{told:#}");
    let (decisions, plans) = site.sweeper.replays().await;
    assert!(decisions >= 10, "{decisions}");
    assert_eq!(plans, 1, "of the machine that still runs");
}
