//! What CloudWatch measured of machines without an agent is shown as weak evidence, asked for once in its time, and never taken for more.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use model::{Provider, ResourceKind};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use lab::{
    aws::{ACCOUNT, Call, Fault, Instance, Moto, Series},
    sweeper::Sweeper,
};
use serde_json::Value;
use sweeper::{
    inventory::{
        Launched, LaunchedBy, RetryPolicy, Scope, Silent, Trail, Usage, UsageAnswer, UsageSource, UsageWindow,
        aws::{self, Accounts, Measured, Options, Session},
    },
    store::Store,
};
use tempfile::TempDir;

lab::on_both_databases! {
    what_providers_told_is_kept_and_replaced,
}

const REGION: &str = "us-east-1";
const HOURS: usize = 14 * 24;
const ASKED: &str = "GetMetricData";

/// An account with machines that no agent reports from, and a sweeper that asks CloudWatch of them.
struct Site {
    moto: Moto,
    sweeper: Sweeper,
    _folder: TempDir,
}

const CONFIG: &str = "[aws]\nregions = [\"us-east-1\"]\ncloudwatch = true\n[pricing]\nsource = \"none\"\n";

impl Site {
    async fn new(more: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let moto = Moto::start(&folder.path().join("aws")).await;
        let environment = moto.environment();
        let environment: Vec<_> = environment.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        // A server would sweep by itself; each sweep here is one on demand.
        let nobody = "[aws]\nenabled = \"no\"\n[pricing]\nsource = \"none\"\n";
        let mut sweeper = Sweeper::start(&folder.path().join("sweeper"), nobody, &environment).await;
        sweeper.stop().await;
        let site = Self { moto, sweeper, _folder: folder };
        site.configure(&CONFIG.replace("cloudwatch = true", &format!("cloudwatch = true\n{more}")));
        site
    }

    fn configure(&self, config: &str) {
        std::fs::write(self.sweeper.folder().join("sweeper.toml"), config).unwrap();
    }

    /// Starts machines of these names.
    async fn run(&self, names: &[&str]) -> Vec<String> {
        let instances: Vec<_> = names.iter().map(|name| Instance::named("m5.large", name)).collect();
        self.moto.run(REGION, &instances).await
    }

    /// How CloudWatch was asked so far.
    async fn asked(&self) -> Vec<Call> {
        self.moto.calls().await.into_iter().filter(|call| call.action == ASKED).collect()
    }

    async fn fail(&self, code: &str, times: Option<u32>) {
        let fault = Fault {
            service: Some("cloudwatch".into()),
            action: Some(ASKED.into()),
            code: Some(code.into()),
            times,
            ..Fault::default()
        };
        self.moto.fail(&[fault]).await;
    }
}

/// The begin of so many hours up to now.
fn hours_ago(hours: usize) -> Timestamp {
    let now = Timestamp::now().as_second();
    Timestamp::from_second(now - now % 3_600).unwrap() - SignedDuration::from_hours(i64::try_from(hours).unwrap())
}

fn line<'a>(report: &'a Value, list: &str, name: &str) -> &'a Value {
    let lines = report[list].as_array().unwrap();
    lines.iter().find(|line| line["name"] == name).unwrap_or_else(|| panic!("{name}: {report:#}"))
}

fn listing(report: &Value) -> &Value {
    report["scopes"].as_array().unwrap().iter().find(|scope| scope["kind"] == "usage").unwrap()
}

#[tokio::test]
async fn what_was_measured_of_a_blind_spot_is_shown_and_what_was_not_stays_unknown() {
    let site = Site::new("").await;
    let ids = site.run(&["quiet", "busy", "dark", "young", "stopped"]).await;
    let stopped = Instance { state: Some("stopped".into()), ..Instance::default() };
    site.moto.change(REGION, &ids[4], &stopped).await;
    let mut busy = Series::steady(&ids[1..2], hours_ago(HOURS), HOURS, 1.0, 3.6e6);
    busy.metrics.get_mut("CPUUtilization").unwrap()[100] = Some(97.53);
    let quiet = Series::steady(&ids[..1], hours_ago(HOURS), HOURS, 1.19, 5.4e6);
    let young = Series {
        metrics: [("CPUUtilization".to_owned(), vec![Some(0.0); 5])].into(),
        ..Series::steady(&ids[3..4], hours_ago(5), 5, 0.0, 0.0)
    };
    site.moto.measured(REGION, &[quiet, busy, young]).await;
    // Pages that end in the midst of a series.
    site.moto.metrics_page(500).await;

    let (code, report) = site.sweeper.sweep().await;
    assert_eq!(code, 0, "{report:#}");
    assert_eq!(listing(&report)["listed"], 3, "{report:#}");
    let usage = |name| line(&report, "blind_spots", name)["usage"].clone();
    assert_eq!(usage("quiet")["busiest_cpu_millionths"], 11_900);
    assert_eq!(usage("quiet")["busiest_network_bytes_per_s"], 3_000);
    assert_eq!((&usage("quiet")["periods"], &usage("quiet")["source"]), (&HOURS.into(), &"cloud_watch".into()));
    assert_eq!(usage("busy")["busiest_cpu_millionths"], 975_300);
    assert_eq!(usage("dark"), Value::Null, "nothing measured is not zero");
    assert_eq!((&usage("young")["periods"], &usage("young")["busiest_network_bytes_per_s"]), (&5.into(), &Value::Null));
    for name in ["quiet", "busy", "dark", "young"] {
        assert_eq!(line(&report, "blind_spots", name)["verdict"], "unknown", "weak evidence is no verdict");
    }
    let calls = site.asked().await;
    let queries = |call: &Call| call.parameters["MetricDataQueries"].as_array().unwrap().len();
    assert!(calls.iter().all(|call| queries(call) == 12), "a stopped machine is asked of nobody");
    assert!(calls.len() > 1, "the answer has more than one page");

    let table = String::from_utf8(site.sweeper.run(&["sweep"]).await.stdout).unwrap();
    let words = "CloudWatch: no hour above 1.2 % CPU and 2.9 KiB/s network in 14 d (weak evidence)";
    assert!(table.contains(words), "{table}");
    assert!(table.contains("network not measured, measured in 5 of 336 hours"), "{table}");
}

#[tokio::test]
async fn a_machine_is_asked_of_once_in_the_time_however_often_is_swept() {
    let site = Site::new("").await;
    let ids = site.run(&["one", "two"]).await;
    site.moto.measured(REGION, &[Series::steady(&ids[..1], hours_ago(HOURS), HOURS, 1.0, 3_600.0)]).await;
    let (_, first) = site.sweeper.sweep().await;
    assert_eq!(site.asked().await.len(), 1);
    let (_, second) = site.sweeper.sweep().await;
    assert_eq!(site.asked().await.len(), 1, "what is known is not paid for again, nor what is known to be nothing");
    let usage = |report: &Value, name| line(report, "blind_spots", name)["usage"].clone();
    assert_eq!((usage(&second, "one"), usage(&second, "two")), (usage(&first, "one"), Value::Null));
    assert_eq!(listing(&second)["listed"], 1);

    site.run(&["three"]).await;
    site.sweeper.sweep().await;
    let calls = site.asked().await;
    assert_eq!(
        (calls.len(), calls[1].parameters["MetricDataQueries"].as_array().unwrap().len()),
        (2, 3),
        "the new one"
    );

    let hasty = Site::new("cloudwatch_every = \"1ms\"").await;
    hasty.run(&["one"]).await;
    hasty.sweeper.sweep().await;
    hasty.sweeper.sweep().await;
    assert_eq!(hasty.asked().await.len(), 2);
}

#[tokio::test]
async fn nobody_is_asked_unless_it_is_switched_on() {
    let site = Site::new("").await;
    site.run(&["one"]).await;
    site.configure(&CONFIG.replace("cloudwatch = true", ""));
    let (code, report) = site.sweeper.sweep().await;
    assert_eq!((code, site.asked().await.len()), (0, 0));
    assert!(report["scopes"].as_array().unwrap().iter().all(|scope| scope["kind"] != "usage"));
}

#[tokio::test]
async fn a_denied_question_is_a_failed_listing_and_leaves_all_else_alone() {
    let site = Site::new("").await;
    let ids = site.run(&["one"]).await;
    site.moto.measured(REGION, &[Series::steady(&ids, hours_ago(HOURS), HOURS, 1.0, 3_600.0)]).await;
    for (code, why) in [("AccessDenied", "denied"), ("InvalidClientTokenId", "credentials")] {
        site.fail(code, None).await;
        let (exit, report) = site.sweeper.sweep().await;
        assert_eq!((exit, &report["complete"]), (3, &false.into()));
        let failed = listing(&report)["failed"].as_str().unwrap();
        assert!(failed.starts_with(&format!("cloudwatch:GetMetricData: {why}: {code}")), "{failed}");
        let others: Vec<_> = report["scopes"].as_array().unwrap().iter().filter(|s| s["kind"] != "usage").collect();
        assert!(others.len() >= 5 && others.iter().all(|scope| scope["failed"].is_null()), "{report:#}");
        assert_eq!(line(&report, "blind_spots", "one")["usage"], Value::Null);
    }
    let table = String::from_utf8(site.sweeper.run(&["sweep"]).await.stdout).unwrap();
    assert!(table.contains("us-east-1 usage: cloudwatch:GetMetricData: credentials"), "{table}");
    site.moto.fail(&[]).await;
    let (exit, report) = site.sweeper.sweep().await;
    assert_eq!(exit, 0);
    assert_eq!(line(&report, "blind_spots", "one")["usage"]["busiest_cpu_millionths"], 10_000);
}

#[tokio::test]
async fn too_many_calls_are_waited_out_and_silence_is_not() {
    let site = Site::new("listing_timeout = \"8s\"").await;
    let ids = site.run(&["one"]).await;
    site.moto.measured(REGION, &[Series::steady(&ids, hours_ago(HOURS), HOURS, 1.0, 3_600.0)]).await;
    let slow = Fault { action: Some(ASKED.into()), delay_s: Some(12), times: Some(1), ..Fault::default() };
    site.moto.fail(&[slow]).await;
    let (exit, report) = site.sweeper.sweep().await;
    assert_eq!(exit, 3);
    let failed = listing(&report)["failed"].as_str().unwrap();
    assert!(failed.contains("timed out: not read to its end within 8 s"), "{failed}");

    site.configure(CONFIG);
    let before = site.asked().await.len();
    site.fail("ThrottlingException", Some(1)).await;
    let (exit, report) = site.sweeper.sweep().await;
    assert_eq!(exit, 0, "{report:#}");
    assert_eq!(line(&report, "blind_spots", "one")["usage"]["busiest_cpu_millionths"], 10_000);
    assert_eq!(site.asked().await.len() - before, 2, "one was refused");
}

#[tokio::test]
async fn a_metric_that_is_not_complete_makes_its_machine_unknown_and_no_other() {
    for (status, why) in [("Forbidden", "denied"), ("InternalError", "provider error")] {
        let site = Site::new("").await;
        let ids = site.run(&["whole", "partly"]).await;
        let whole = Series::steady(&ids[..1], hours_ago(HOURS), HOURS, 1.0, 3_600.0);
        let partly = Series {
            statuses: [("NetworkOut".to_owned(), status.to_owned())].into(),
            ..Series::steady(&ids[1..], hours_ago(HOURS), HOURS, 1.0, 3_600.0)
        };
        site.moto.measured(REGION, &[whole, partly]).await;
        let (exit, report) = site.sweeper.sweep().await;
        assert_eq!(exit, 3);
        let failed = listing(&report)["failed"].as_str().unwrap();
        let expected = format!(
            "cloudwatch:GetMetricData: {why}: not known of 1 of 2 machines: NetworkOut of {}: {status}",
            ids[1]
        );
        assert_eq!(failed, expected);
        assert_eq!(line(&report, "blind_spots", "whole")["usage"]["busiest_cpu_millionths"], 10_000);
        assert_eq!(line(&report, "blind_spots", "partly")["usage"], Value::Null);
        site.sweeper.sweep().await;
        let calls = site.asked().await;
        let again = calls[1].parameters["MetricDataQueries"].as_array().unwrap().len();
        assert_eq!(again, 3, "only what is not known is asked and paid for again");
    }
}

#[tokio::test]
async fn twelve_hundred_machines_are_eight_calls() {
    let site = Site::new("").await;
    let many = Instance { count: Some(1_200), ..Instance::default() };
    let ids = site.moto.run(REGION, &[many]).await;
    site.moto.measured(REGION, &[Series::steady(&ids, hours_ago(24), 24, 1.0, 3_600.0)]).await;
    let began = std::time::Instant::now();
    let (exit, report) = site.sweeper.sweep().await;
    assert_eq!(exit, 0, "{report:#}");
    assert!(began.elapsed() < Duration::from_secs(120), "{:?}", began.elapsed());
    assert_eq!(listing(&report)["listed"], 1_200);
    let calls = site.asked().await;
    let sizes: Vec<usize> = calls.iter().map(|c| c.parameters["MetricDataQueries"].as_array().unwrap().len()).collect();
    assert_eq!((sizes.len(), sizes.iter().max(), sizes.iter().sum()), (8, Some(&498), 3_600));
}

#[tokio::test]
async fn a_quiet_instance_is_a_finding_that_nobody_acts_on_and_ends_when_it_works() {
    let site = Site::new("cloudwatch_every = \"1ms\"").await;
    let ids = site.run(&["quiet", "busy", "young"]).await;
    let steady = |n: usize, hours: usize, cpu| Series::steady(&ids[n..=n], hours_ago(hours), hours, cpu, 36_000.0);
    site.moto.measured(REGION, &[steady(0, HOURS, 0.5), steady(1, HOURS, 30.0), steady(2, 100, 0.5)]).await;
    let (_, first) = site.sweeper.sweep().await;
    let [finding] = first["findings"].as_array().unwrap().as_slice() else { panic!("{first:#}") };
    assert_eq!((&finding["class"], &finding["name"]), (&"quiet_instance".into(), &"quiet".into()));
    assert_eq!(finding["since"], hours_ago(HOURS).to_string());
    for _ in 0..2 {
        let (_, again) = site.sweeper.sweep().await;
        assert_eq!(again["findings"][0]["id"], finding["id"]);
        assert_eq!(again["findings"][0]["plan"], Value::Null, "weak evidence is nothing to act on");
    }
    let id = finding["id"].as_str().unwrap();
    let explained = site.sweeper.json(&["explain", id]).await;
    assert_eq!(explained["replays"], true);
    assert_eq!(explained["finding"]["confirmed_sweeps"], 3);
    let text = String::from_utf8(site.sweeper.run(&["explain", id]).await.stdout).unwrap();
    for words in
        ["quiet has looked unused from outside for 14 d", "CloudWatch: no hour above 0.5 % CPU", "(threshold 2.0 %)"]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(text.contains("No plan") && text.contains("weak evidence"), "{text}");
    let table = String::from_utf8(site.sweeper.run(&["sweep"]).await.stdout).unwrap();
    assert!(table.contains("No idle machines found.") && table.contains("QUIET FOR"), "{table}");

    site.fail("AccessDenied", None).await;
    let (_, denied) = site.sweeper.sweep().await;
    assert_eq!((&denied["findings"][0]["id"], &denied["closed"]), (&finding["id"], &Value::Array(Vec::new())));
    assert_eq!(site.sweeper.json(&["explain", id]).await["finding"]["confirmed_sweeps"], 0, "not confirmed either");

    site.moto.fail(&[]).await;
    site.moto.measured(REGION, &[steady(0, HOURS, 80.0)]).await;
    let (_, busy) = site.sweeper.sweep().await;
    assert_eq!((&busy["closed"][0], busy["findings"].as_array().unwrap().len()), (&finding["id"], 0));
    let closed = site.sweeper.json(&["findings", "--closed"]).await;
    let because = closed[0]["status"]["because"].as_str().unwrap();
    assert!(because.starts_with("busy: CPU in the busiest period: 80.0 %"), "{because}");
    let (decisions, plans) = site.sweeper.replays().await;
    assert_eq!((decisions, plans), (3, 0), "opened, not known while it was refused, closed");
}

async fn what_providers_told_is_kept_and_replaced(url: String) {
    let store = Store::connect(&url).await.unwrap();
    store.migrate().await.unwrap();
    let scope = Scope { provider: Provider::Aws, account: ACCOUNT.into(), region: REGION.into() };
    let at = |second: i64| Timestamp::from_second(1_790_000_000 + second).unwrap();
    let answer = |number: u32, asked: i64| {
        let id = scope.key(ResourceKind::Instance, format!("i-{number:04}"));
        let usage = Usage {
            id: id.clone(),
            source: UsageSource::CloudWatch,
            from: at(0),
            until: at(7_200),
            period_s: 3_600,
            periods: 2,
            busiest_cpu_millionths: Some(number),
            busiest_network_bytes_per_s: None,
        };
        let usage = number.is_multiple_of(2).then_some(usage);
        UsageAnswer { id, source: UsageSource::CloudWatch, asked_at: at(asked), usage }
    };
    // More than one statement takes.
    let first: Vec<_> = (0..2_500).map(|number| answer(number, 1)).collect();
    store.put_usage_answers(&scope, &first, at(0)).await.unwrap();
    store.put_usage_answers(&scope, &[answer(7, 2), answer(8, 2)], at(0)).await.unwrap();
    let mut kept = store.usage_answers(&scope, at(0)).await.unwrap();
    kept.sort_by(|a, b| a.id.cmp(&b.id));
    let newer = |number| if number == 7 || number == 8 { answer(number, 2) } else { answer(number, 1) };
    assert!(kept == (0..2_500).map(newer).collect::<Vec<_>>());
    store.put_usage_answers(&scope, &[answer(9, 3)], at(2)).await.unwrap();
    assert_eq!(store.usage_answers(&scope, at(0)).await.unwrap().len(), 3, "the others were asked too long ago");

    let by = |name: &str| LaunchedBy { principal: Some(name.into()), at: Some(at(1)), ..LaunchedBy::default() };
    let found = (0..2_500).map(|number| (format!("i-{number:04}"), by("ada"))).collect();
    store
        .put_launches(&scope, Launched::Machine, &found, Trail { from: at(0), until: at(9) }, &[].into())
        .await
        .unwrap();
    let again = [("i-0001".to_owned(), by("eve"))].into();
    let gone = (100..2_500).map(|number| format!("i-{number:04}")).collect();
    store.put_launches(&scope, Launched::Machine, &again, Trail { from: at(-9), until: at(19) }, &gone).await.unwrap();
    let (kept, trail) = store.launches(&scope, Launched::Machine).await.unwrap();
    assert_eq!((kept.len(), trail), (100, Some(Trail { from: at(-9), until: at(19) })));
    assert_eq!(kept["i-0001"], by("ada"), "a machine is started once");
}

/// One attempt, with fresh clients and buckets.
async fn measure(moto: &Moto, ids: &[String], now: Timestamp) -> Measured {
    let retry = RetryPolicy { attempts: 1, ..RetryPolicy::default() };
    let options = Options { regions: vec![REGION.into()], retry, ..Options::default() };
    let session = Session::open_with(moto.loader(), &options).await.unwrap().unwrap();
    let accounts = Accounts::open(&session, &options).await;
    let scope = Scope { provider: Provider::Aws, account: ACCOUNT.into(), region: REGION.into() };
    let machines: Vec<_> = ids.iter().map(|id| scope.key(ResourceKind::Instance, id)).collect();
    let window = UsageWindow::hours_before(now, SignedDuration::from_hours(24));
    aws::usage(&accounts, &scope, &machines, &window, now, &Silent).await
}

#[tokio::test]
async fn an_answer_of_a_later_day_makes_a_machine_unknown_or_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let moto = Moto::start(folder.path()).await;
    let (ids, now) = (["i-1".to_owned(), "i-2".to_owned()], Timestamp::now());
    moto.measured(REGION, &[Series::steady(&ids[..1], hours_ago(3), 2, 7.0, 7_200.0)]).await;
    let whole = measure(&moto, &ids, now).await;
    assert_eq!((whole.answers.len(), &whole.failed), (2, &None));
    let places = moto.places("cloudwatch", ASKED).await;
    assert!(places.len() > 40, "{places:?}");
    let mut unknown = 0;
    for place in &places {
        for how in ["remove", "word", "extra"] {
            if (how == "extra") != (place.holds == "structure") || (how != "extra" && place.path.is_empty()) {
                continue;
            }
            moto.change_answers("cloudwatch", ASKED, place, how).await;
            let later = measure(&moto, &ids, now).await;
            let case = format!("{how} {:?}: {later:?}", place.path);
            assert!(later.answers.iter().all(|answer| whole.answers.contains(answer)), "nothing is invented: {case}");
            assert_eq!(later.failed.is_none(), later.answers.len() == 2, "what lacks is said: {case}");
            if how == "extra" || place.path.last().is_some_and(|name| name == "Label") {
                assert_eq!(later, whole, "{case}");
            }
            unknown += usize::from(later.failed.is_some());
        }
    }
    assert!(unknown > 20, "{unknown}");
}
