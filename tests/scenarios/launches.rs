//! Who started a machine is told where CloudTrail may be read, and is not known where it may not.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use jiff::{SignedDuration, Timestamp};
use lab::{
    aws::{ACCOUNT, Call, Fault, Instance, Launch, Moto},
    sweeper::Sweeper,
};
use model::Provider;
use serde_json::{Value, json};
use std::collections::HashSet;
use sweeper::inventory::{
    Failure, FailureKind, Launched, RetryPolicy, Scope, Silent,
    aws::{self, Accounts, Launches, Options, Session, Sought},
};
use tempfile::TempDir;

const REGION: &str = "us-east-1";
const ASKED: &str = "LookupEvents";
const CONFIG: &str = "[aws]\nregions = [\"us-east-1\"]\ncloudtrail = true\n[pricing]\nsource = \"none\"\n";

/// An account whose machines no agent reports from, and a sweeper that reads its trail.
struct Site {
    moto: Moto,
    sweeper: Sweeper,
    _folder: TempDir,
}

impl Site {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let moto = Moto::start(&folder.path().join("aws")).await;
        let environment = moto.environment();
        let environment: Vec<_> = environment.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        // A server would sweep by itself; each sweep here is one on demand.
        let nobody = "[aws]\nenabled = \"no\"\n[pricing]\nsource = \"none\"\n";
        let mut sweeper = Sweeper::start(&folder.path().join("sweeper"), nobody, &environment).await;
        sweeper.stop().await;
        std::fs::write(sweeper.folder().join("sweeper.toml"), CONFIG).unwrap();
        Self { moto, sweeper, _folder: folder }
    }

    async fn run(&self, names: &[&str]) -> Vec<String> {
        let instances: Vec<_> = names.iter().map(|name| Instance::named("m5.large", name)).collect();
        self.moto.run(REGION, &instances).await
    }

    async fn asked(&self) -> Vec<Call> {
        self.moto.calls().await.into_iter().filter(|call| call.action == ASKED).collect()
    }
}

fn ago(minutes: i64) -> Timestamp {
    Timestamp::from_second(Timestamp::now().as_second()).unwrap() - SignedDuration::from_mins(minutes)
}

fn role(name: &str) -> Value {
    json!({
        "type": "AssumedRole",
        "principalId": "AROAEXAMPLE:alice",
        "arn": format!("arn:aws:sts::{ACCOUNT}:assumed-role/{name}/alice"),
        "accountId": ACCOUNT,
        "accessKeyId": "ASIAEXAMPLE",
        "sessionContext": {"sessionIssuer": {"type": "Role", "arn": format!("arn:aws:iam::{ACCOUNT}:role/{name}")}},
    })
}

fn launched_by(report: &Value, name: &str) -> Value {
    let lines = report["blind_spots"].as_array().unwrap();
    lines.iter().find(|line| line["name"] == name).unwrap_or_else(|| panic!("{name}: {report:#}"))["launched_by"]
        .clone()
}

fn listing(report: &Value) -> &Value {
    report["scopes"].as_array().unwrap().iter().find(|scope| scope["kind"] == "launch").unwrap()
}

#[tokio::test]
async fn whoever_started_a_machine_is_named_with_the_service_that_did_it() {
    let site = Site::new().await;
    let ids = site.run(&["by-role", "by-user", "by-root", "by-group", "failed", "odd", "nobody"]).await;
    let of = |n: usize| &ids[n..=n];
    let user = json!({"type": "IAMUser", "arn": format!("arn:aws:iam::{ACCOUNT}:user/ada"), "userName": "ada"});
    let root = json!({"type": "Root", "arn": format!("arn:aws:iam::{ACCOUNT}:root"), "accountId": ACCOUNT});
    let mut group = role("AWSServiceRoleForAutoScaling");
    group["invokedBy"] = "autoscaling.amazonaws.com".into();
    let group = Launch { source: Some("autoscaling.amazonaws.com".into()), ..Launch::by(group, ago(5), of(3)) };
    let failed =
        Launch { error_code: Some("Client.UnauthorizedOperation".into()), ..Launch::by(role("Eve"), ago(4), &[]) };
    let odd = Launch { raw: Some("{\"userIdentity\": \"\u{202e}".into()), ..Launch::by(json!({}), ago(3), of(5)) };
    let by_role = Launch::by(role("Admin"), ago(60 * 24 * 80), of(0));
    let too_old = Launch::by(role("Admin"), ago(60 * 24 * 91), of(6));
    let events =
        [by_role, Launch::by(user, ago(90), of(1)), Launch::by(root, ago(80), of(2)), group, failed, odd, too_old];
    site.moto.launched(REGION, &events).await;

    let (exit, report) = site.sweeper.sweep().await;
    assert_eq!(exit, 0, "{report:#}");
    assert_eq!(listing(&report)["listed"], 5, "{report:#}");
    let principal = |name| launched_by(&report, name)["principal"].clone();
    assert_eq!(principal("by-role"), format!("arn:aws:sts::{ACCOUNT}:assumed-role/Admin/alice"));
    assert_eq!(principal("by-user"), format!("arn:aws:iam::{ACCOUNT}:user/ada"));
    assert_eq!(principal("by-root"), format!("arn:aws:iam::{ACCOUNT}:root"));
    assert_eq!(launched_by(&report, "by-group")["via"], "autoscaling.amazonaws.com");
    assert_eq!(launched_by(&report, "by-role")["at"], events[0].at.to_string());
    assert_eq!(launched_by(&report, "odd")["principal"], Value::Null, "its event names the machine and nobody");
    for unknown in ["failed", "nobody"] {
        assert_eq!(launched_by(&report, unknown), Value::Null, "no event that is left tells of it");
    }
    assert!(!report.to_string().contains("203.0.113.7"), "where from is nobody's business");
    let table = String::from_utf8(site.sweeper.run(&["sweep"]).await.stdout).unwrap();
    assert!(table.contains("alice, through autoscaling.amazonaws.com, at "), "{table}");
}

#[tokio::test]
async fn whoever_started_a_machine_tells_whose_it_is() {
    let site = Site::new().await;
    let ids = site.run(&["by-role", "by-user", "nobody"]).await;
    let user = json!({"type": "IAMUser", "arn": format!("arn:aws:iam::{ACCOUNT}:user/ada"), "userName": "ada"});
    let events = [Launch::by(role("Genomics"), ago(90), &ids[..1]), Launch::by(user, ago(80), &ids[1..2])];
    site.moto.launched(REGION, &events).await;
    assert_eq!(site.sweeper.sweep().await.0, 0);
    let teams = r##"
        [slack]
        token = "xoxb-1"
        channel = "#waste"
        [[slack.teams]]
        name = "genomics"
        channel = "#genomics"
        launchers = ["assumed-role/Genomics/*"]
        [[slack.teams]]
        name = "ada"
        channel = "#ada"
        launchers = ["ada"]
    "##;
    std::fs::write(site.sweeper.folder().join("sweeper.toml"), format!("{CONFIG}{teams}")).unwrap();
    for (id, told_in, because) in [
        (&ids[0], "#genomics", "it is a finding of `genomics`: it was started by assumed-role/Genomics/*"),
        (&ids[1], "#ada", "it is a finding of `ada`: it was started by ada"),
        (&ids[2], "#waste", "who started it is not known, which `genomics`, `ada` ask for, and it is no other team's"),
    ] {
        let told = site.sweeper.json(&["routes", id]).await;
        assert_eq!((&told["told_in"], &told["because"]), (&json!(told_in), &json!(because)), "{told:#}");
    }
}

#[tokio::test]
async fn the_trail_is_read_on_from_the_latest_event_and_never_for_one_machine() {
    let site = Site::new().await;
    let ids = site.run(&["first", "second"]).await;
    let others = |n: i64| Launch::by(role("Batch"), ago(100 + n), &[format!("i-gone{n}")]);
    let mut events: Vec<_> = (0..120).map(others).collect();
    events.push(Launch::by(role("Admin"), ago(5_000), &ids));
    site.moto.launched(REGION, &events).await;

    let (_, report) = site.sweeper.sweep().await;
    assert_eq!(launched_by(&report, "second")["principal"], format!("arn:aws:sts::{ACCOUNT}:assumed-role/Admin/alice"));
    let first = site.asked().await;
    assert_eq!(first.len(), 3, "121 events");
    assert!(first.iter().all(|call| call.parameters["MaxResults"] == 50), "{first:?}");

    let third = site.run(&["third"]).await;
    site.moto.launched(REGION, &[Launch::by(role("Ops"), ago(0), &third)]).await;
    let (_, report) = site.sweeper.sweep().await;
    assert_eq!(launched_by(&report, "third")["principal"], format!("arn:aws:sts::{ACCOUNT}:assumed-role/Ops/alice"));
    assert!(launched_by(&report, "first")["principal"].is_string(), "what was read once is known");
    let calls = site.asked().await;
    assert_eq!(calls.len(), 4, "one more page");
    let since = |call: &Call| call.parameters["StartTime"].as_f64().unwrap();
    assert!(since(&calls[3]) > since(&calls[0]) + 86_400.0 * 80.0, "from the latest on");
}

#[tokio::test]
async fn a_denied_trail_is_a_failed_listing_and_only_where_it_is_asked_for() {
    let site = Site::new().await;
    let ids = site.run(&["known", "new"]).await;
    site.moto.launched(REGION, &[Launch::by(role("Admin"), ago(9), &ids[..1])]).await;
    let (exit, report) = site.sweeper.sweep().await;
    assert_eq!((exit, &listing(&report)["listed"]), (0, &1.into()));

    site.moto.launched(REGION, &[Launch::by(role("Admin"), ago(8), &ids[1..])]).await;
    let denied = Fault {
        service: Some("cloudtrail".into()),
        action: Some(ASKED.into()),
        code: Some("AccessDeniedException".into()),
        ..Fault::default()
    };
    site.moto.fail(&[denied]).await;
    let (exit, report) = site.sweeper.sweep().await;
    assert_eq!((exit, &report["complete"]), (3, &false.into()));
    let failed = listing(&report)["failed"].as_str().unwrap();
    assert!(failed.starts_with("cloudtrail:LookupEvents: denied: AccessDeniedException"), "{failed}");
    let others: Vec<_> = report["scopes"].as_array().unwrap().iter().filter(|s| s["kind"] != "launch").collect();
    assert!(others.len() >= 5 && others.iter().all(|scope| scope["failed"].is_null()), "{report:#}");
    assert_eq!(launched_by(&report, "new"), Value::Null);
    assert!(launched_by(&report, "known")["principal"].is_string());

    let before = site.asked().await.len();
    std::fs::write(site.sweeper.folder().join("sweeper.toml"), CONFIG.replace("cloudtrail = true\n", "")).unwrap();
    let (exit, _) = site.sweeper.sweep().await;
    assert_eq!((exit, site.asked().await.len()), (0, before), "nobody asks, nobody is refused");
}

/// One attempt, with fresh clients and buckets.
async fn read(moto: &Moto, ids: &[String]) -> Result<Launches, Failure> {
    let retry = RetryPolicy { attempts: 1, ..RetryPolicy::default() };
    let options = Options { regions: vec![REGION.into()], retry, ..Options::default() };
    let session = Session::open_with(moto.loader(), &options).await.unwrap().unwrap();
    let accounts = Accounts::open(&session, &options).await;
    let scope = Scope { provider: Provider::Aws, account: ACCOUNT.into(), region: REGION.into() };
    let listed: HashSet<String> = ids.iter().cloned().collect();
    let sought = Sought { what: Launched::Machine, missing: listed.clone(), listed, since: None };
    aws::launches(&accounts, &scope, &sought, None, Timestamp::now(), &Silent).await
}

#[tokio::test]
async fn an_event_of_a_later_day_breaks_no_list_and_invents_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let moto = Moto::start(folder.path()).await;
    let ids = ["i-1".to_owned(), "i-2".to_owned()];
    let events = [Launch::by(role("Admin"), ago(50), &ids[..1]), Launch::by(role("Ops"), ago(40), &ids[1..])];
    moto.launched(REGION, &events).await;
    let whole = read(&moto, &ids).await.unwrap().found;
    assert_eq!(whole.len(), 2);
    let places = moto.places("cloudtrail", ASKED).await;
    assert!(places.len() > 20, "{places:?}");
    for place in &places {
        for how in ["remove", "word", "extra"] {
            if (how == "extra") != (place.holds == "structure") || (how != "extra" && place.path.is_empty()) {
                continue;
            }
            moto.change_answers("cloudtrail", ASKED, place, how).await;
            let later = read(&moto, &ids).await;
            let case = format!("{how} {:?}: {later:?}", place.path);
            let found = match later {
                Ok(later) => later.found,
                // No list of events, or something that is not of its type.
                Err(why) => {
                    let no_list = how == "remove" && place.path == ["Events"];
                    assert!(no_list || (how == "word" && place.holds != "text"), "{case}");
                    assert_eq!(why.kind, FailureKind::Malformed, "{case}");
                    continue;
                }
            };
            if how == "extra" {
                assert_eq!(found, whole, "{case}");
            }
            for (id, by) in found {
                let known = whole.get(&id).unwrap_or_else(|| panic!("{case}"));
                let fits = |now: &Option<String>, then: &Option<String>| {
                    now.is_none() || now == then || now.as_deref() == Some("brand-new")
                };
                assert!(fits(&by.principal, &known.principal) && fits(&by.via, &known.via), "{case}");
                assert!(fits(&by.event, &known.event) && (by.at.is_none() || by.at == known.at), "{case}");
            }
        }
    }
}
