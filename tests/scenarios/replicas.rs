//! Several `sweeper serve` over one PostgreSQL share the scopes of one account: each scope is swept once for each tick,
//! whoever is killed or stopped meanwhile, and every finding is told once.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use jiff::Timestamp;
use lab::{
    aws::{ACCOUNT, Fault, Instance, Moto},
    postgres::Postgres,
    quiet,
    slack::Slack,
    sweeper::Sweeper,
    wait,
};
use rustix::process::Signal;
use serde_json::Value;
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use sweeper::store::{FinishedSweep, Store};
use tempfile::TempDir;
use tokio::sync::{Mutex, MutexGuard};

const REGIONS: [&str; 5] = ["ap-south-1", "eu-central-1", "eu-west-1", "us-east-1", "us-west-2"];
/// The region whose answers are late.
const SLOW: &str = "eu-west-1";
/// The regions, and the nodes that no scope covers.
const SCOPES: usize = REGIONS.len() + 1;
/// Its only tick so far was at the beginning of the year: it is due for each new scope, and no other comes.
const YEARLY: &str = "0 0 0 1 1 *";
const TIMEOUT: Duration = Duration::from_secs(120);
/// Leases of three seconds and ticks of ten are kept by machines that are not too busy: one scenario at a time, then.
static MACHINE: Mutex<()> = Mutex::const_new(());

/// An account with an idle machine in each region, and a first sweeper that took in their heartbeats and has not looked at AWS.
struct Site {
    moto: Moto,
    slack: Slack,
    url: String,
    store: Store,
    first: Sweeper,
    folder: TempDir,
    _postgres: Arc<Postgres>,
    _alone: MutexGuard<'static, ()>,
}

impl Site {
    async fn new() -> Self {
        let alone = MACHINE.lock().await;
        let folder = tempfile::tempdir().unwrap();
        let (moto, slack) = (Moto::start(folder.path()).await, Slack::start_https().await);
        let postgres = Postgres::shared().await;
        let url = postgres.database().await;
        let first = start(&folder, "first", &config(&url, &slack, YEARLY, "no"), &moto, &slack).await;
        let store = Store::connect(&url).await.unwrap();
        wait::until("the first sweep of nothing", TIMEOUT, || async {
            (store.last_sweeps(1).await.unwrap().len() == 1).then_some(())
        })
        .await;
        for region in REGIONS {
            let id = moto.run(region, &[Instance::named("m5.large", region)]).await.remove(0);
            quiet::report_as(&first, &format!("aws:{ACCOUNT}:{region}:{id}"), region, |_| {}).await;
        }
        Self { moto, slack, url, store, first, folder, _postgres: postgres, _alone: alone }
    }

    async fn replica(&self, name: &str, schedule: &str) -> Sweeper {
        start(&self.folder, name, &config(&self.url, &self.slack, schedule, "yes"), &self.moto, &self.slack).await
    }

    /// From now on the next answer about the slow region takes so long.
    async fn delay(&self, seconds: u32) {
        let fault = Fault {
            service: Some("ec2".into()),
            action: Some("DescribeInstances".into()),
            region: Some(SLOW.into()),
            delay_s: Some(seconds),
            times: Some(1),
            ..Fault::default()
        };
        self.moto.fail(&[fault]).await;
    }

    /// The scopes as a replica tells them to who holds the operator token.
    async fn scopes(&self) -> Vec<Value> {
        let request = reqwest::Client::new().get(format!("{}/v1/scopes", self.first.url()));
        let answer = request.bearer_auth(self.first.operator_token()).send().await.unwrap();
        assert!(answer.status().is_success(), "{answer:?}");
        answer.json().await.unwrap()
    }

    async fn slow_scope(&self) -> Value {
        self.scopes().await.into_iter().find(|scope| scope["region"] == SLOW).unwrap_or_default()
    }

    /// Waits until a replica holds the slow scope while all others are swept and their findings told.
    async fn until_only_the_slow_one_is_left(&self) -> Value {
        wait::until("a replica that waits for the slow region", TIMEOUT, || async {
            let slow = self.slow_scope().await;
            let told = self.told(&REGIONS) == REGIONS.len() - 1;
            (told && slow["swept_by"].is_string() && slow["swept_for"].is_null()).then_some(slow)
        })
        .await
    }

    /// The messages that begin a thread: a finding was opened.
    fn openings(&self) -> Vec<String> {
        let messages = self.slack.messages().into_iter();
        messages.filter(|message| message["thread_ts"].is_null()).map(|message| message.to_string()).collect()
    }

    /// How many of these names the messages have that begin a thread: one may tell of several findings.
    fn told(&self, names: &[&str]) -> usize {
        let openings = self.openings();
        names.iter().filter(|name| openings.iter().any(|message| message.contains(**name))).count()
    }

    async fn until_all_is_swept(&self) {
        wait::until("all scopes to be swept", TIMEOUT, || async {
            let scopes = self.scopes().await;
            let done = |scope: &Value| scope["complete"] == true && scope["swept_by"].is_null();
            (scopes.len() == SCOPES && scopes.iter().all(done)).then_some(())
        })
        .await;
    }

    /// How often each scope was swept for each tick.
    async fn sweeps(&self) -> BTreeMap<(Timestamp, String), usize> {
        let mut sweeps = BTreeMap::new();
        for FinishedSweep { scope, swept_for, .. } in self.store.last_sweeps(10_000).await.unwrap() {
            *sweeps.entry((swept_for.unwrap(), scope.unwrap())).or_default() += 1;
        }
        sweeps
    }

    /// One open finding for each machine, none closed, and each told once.
    async fn assert_each_finding_is_there_and_told_once(&self) {
        wait::until("the last message", TIMEOUT, || async {
            let counts = self.store.outbox_counts().await.unwrap();
            (counts.pending == 0).then_some(())
        })
        .await;
        let mut names: Vec<_> = self.store.open_findings().await.unwrap();
        names.sort_by_key(|finding| finding.name().unwrap().to_owned());
        assert_eq!(names.iter().map(|finding| finding.name().unwrap()).collect::<Vec<_>>(), REGIONS);
        assert!(self.store.closed_findings(10).await.unwrap().is_empty());
        let said = self.openings();
        assert!((1..=REGIONS.len()).contains(&said.len()), "{said:?}");
        for finding in &names {
            let told = said.iter().filter(|message| message.contains(&finding.id.0)).count();
            assert_eq!(told, 1, "{}", finding.id);
            // And its plan, if it has one by now, once in the thread of that.
            let plans = self.slack.messages().into_iter().map(|message| message.to_string());
            let is_plan =
                |message: &String| message.contains("A plan would end") || message.contains("Plans would end");
            let plans = plans.filter(|message| message.contains(&finding.id.0) && is_plan(message));
            assert_eq!(plans.count(), usize::from(finding.plan.is_some()), "{}", finding.id);
        }
    }
}

fn config(url: &str, slack: &Slack, schedule: &str, aws: &str) -> String {
    format!(
        r#"
        [store]
        url = "{url}"
        [aws]
        enabled = "{aws}"
        regions = {REGIONS:?}
        [pricing]
        source = "none"
        [sweep]
        schedule = "{schedule}"
        lease = "3s"
        [slack]
        token = "{token}"
        channel = "{channel}"
        api_url = "{api_url}"
        [outbox]
        base_delay = "200ms"
        max_delay = "1s"
        gather = "1s"
        "#,
        token = Slack::TOKEN,
        channel = Slack::CHANNEL,
        api_url = slack.api_url(),
    )
}

async fn start(folder: &TempDir, name: &str, config: &str, moto: &Moto, slack: &Slack) -> Sweeper {
    let roots = slack.ca_file().display().to_string();
    let mut environment = moto.environment();
    environment.push(("SSL_CERT_FILE".to_owned(), roots));
    let environment: Vec<_> = environment.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    Sweeper::start(&folder.path().join(name), config, &environment).await
}

#[tokio::test(flavor = "multi_thread")]
async fn each_scope_is_swept_once_for_each_tick() {
    const TICKS: usize = 4;
    let site = Site::new().await;
    let every_ten_seconds = "*/10 * * * * *";
    let names = ["one", "two", "three"];
    let mut replicas = Vec::new();
    for name in names {
        replicas.push(site.replica(name, every_ten_seconds).await);
    }
    let complete_ticks = wait::until("some ticks of all scopes", TIMEOUT, || async {
        let mut ticks: BTreeMap<Timestamp, usize> = BTreeMap::new();
        for (tick, _) in site.sweeps().await.into_keys() {
            *ticks.entry(tick).or_default() += 1;
        }
        let complete: Vec<_> =
            ticks.into_iter().filter(|(_, scopes)| *scopes == SCOPES).map(|(tick, _)| tick).collect();
        (complete.len() >= TICKS).then_some(complete)
    })
    .await;
    let scopes = site.scopes().await;
    for replica in &mut replicas {
        replica.stop().await;
    }
    let sweeps = site.sweeps().await;
    assert!(sweeps.values().all(|times| *times == 1), "a scope was swept twice for a tick: {sweeps:#?}");
    for tick in &complete_ticks {
        assert_eq!(tick.as_second() % 10, 0, "{tick} is no time of the schedule");
    }
    let gaps = complete_ticks.windows(2).filter(|pair| pair[1].as_second() - pair[0].as_second() != 10).count();
    assert_eq!(gaps, 0, "a tick was left out: {complete_ticks:?}");

    // Whoever swept says so in its log, and nobody else does.
    let logged: usize = replicas.iter().map(|replica| replica.log().matches(" swept scope=").count()).sum();
    assert_eq!(logged, sweeps.len() - 1, "all but that of the first sweeper");
    assert_eq!(scopes.len(), SCOPES);
    assert!(scopes.iter().any(|scope| scope["provider"] == "none" && scope["region"].is_null()), "{scopes:#?}");
    site.assert_each_finding_is_there_and_told_once().await;

    let metrics = site.first.metrics().await;
    let labels = format!(r#"{{provider="aws",account="{ACCOUNT}",region="{SLOW}"}}"#);
    let line = metrics.lines().find(|line| line.starts_with(&format!("scope_last_sweep_complete{labels}")));
    assert!(line.is_some_and(|line| line.ends_with(" 1")), "{metrics}");
    let age = metrics.lines().find(|line| line.starts_with("scope_last_complete_sweep_age_seconds{"));
    assert!(age.is_some(), "{metrics}");
    // The command tells people the same.
    let table = site.first.run(&["scopes"]).await;
    let table = String::from_utf8_lossy(&table.stdout).into_owned();
    for region in REGIONS {
        assert!(table.contains(&format!("aws {ACCOUNT} {region}")), "{table}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scope_with_a_schedule_of_its_own_follows_that_one_alone() {
    const OWN: &str = "us-east-1";
    const TICKS: usize = 3;
    let site = Site::new().await;
    let own = format!("[[sweep.schedules]]\nregion = \"{OWN}\"\nschedule = \"*/10 * * * * *\"\n");
    let config = format!("{}{own}", config(&site.url, &site.slack, YEARLY, "yes"));
    let replicas = [
        start(&site.folder, "one", &config, &site.moto, &site.slack).await,
        start(&site.folder, "two", &config, &site.moto, &site.slack).await,
    ];
    let swept = wait::until("some ticks of one scope", TIMEOUT, || async {
        let mut swept: BTreeMap<String, Vec<Timestamp>> = BTreeMap::new();
        for ((tick, scope), times) in site.sweeps().await {
            assert_eq!(times, 1, "{scope} for {tick}");
            swept.entry(scope).or_default().push(tick);
        }
        let own = swept.iter().find(|(scope, _)| scope.contains(OWN)).map_or(0, |(_, ticks)| ticks.len());
        (own >= TICKS && swept.len() == SCOPES).then_some(swept)
    })
    .await;
    for (scope, ticks) in &swept {
        if scope.contains(OWN) {
            assert!(ticks.iter().all(|tick| tick.as_second() % 10 == 0), "{ticks:?}");
            assert!(ticks.windows(2).all(|pair| pair[1].as_second() - pair[0].as_second() == 10), "{ticks:?}");
        } else {
            assert_eq!(ticks.len(), 1, "{scope}: {ticks:?}");
        }
    }
    // People are told when each comes next.
    let told = replicas[0].json(&["scopes"]).await;
    for scope in told.as_array().unwrap() {
        let next = scope["next_at"].as_str().unwrap();
        assert_eq!(next.ends_with("-01-01T00:00:00Z"), scope["region"] != OWN, "{scope:#}");
    }
    site.assert_each_finding_is_there_and_told_once().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_scope_waits_at_the_next_tick_for_the_slowest_of_this_one() {
    let site = Site::new().await;
    // Longer than it takes to the second tick.
    site.delay(25).await;
    let mut replica = site.replica("only", "*/10 * * * * *").await;
    wait::until("a second tick of the others before the slow region was swept for the first", TIMEOUT, || async {
        let sweeps = site.sweeps().await;
        let of = |region: &str| sweeps.keys().filter(|(_, scope)| scope.contains(region)).count();
        REGIONS.into_iter().all(|region| if region == SLOW { of(region) == 0 } else { of(region) >= 2 }).then_some(())
    })
    .await;
    site.until_all_is_swept().await;
    replica.stop().await;
    let sweeps = site.sweeps().await;
    assert!(sweeps.values().all(|times| *times == 1), "{sweeps:#?}");
    site.assert_each_finding_is_there_and_told_once().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scope_whose_replica_is_killed_is_taken_over() {
    let site = Site::new().await;
    site.delay(25).await;
    let mut killed = site.replica("killed", YEARLY).await;
    let slow = site.until_only_the_slow_one_is_left().await;
    let others = [site.replica("two", YEARLY).await, site.replica("three", YEARLY).await];

    // Who sweeps on demand meanwhile waits for a lease's length, and is then told who has the scope.
    let (code, report) = others[0].sweep().await;
    assert_eq!(code, 3, "{report:#}");
    let failed: Vec<_> =
        report["scopes"].as_array().unwrap().iter().filter(|line| line["failed"].is_string()).collect();
    assert_eq!((failed.len(), &failed[0]["region"]), (1, &Value::from(SLOW)), "{report:#}");
    let holder = slow["swept_by"].as_str().unwrap();
    assert!(failed[0]["failed"].as_str().unwrap().starts_with(holder), "{report:#}");
    let still = site.slow_scope().await;
    assert_eq!((&still["swept_by"], &still["lease_epoch"]), (&slow["swept_by"], &slow["lease_epoch"]));

    killed.kill();
    site.until_all_is_swept().await;
    let after = site.slow_scope().await;
    assert_eq!(after["lease_epoch"].as_i64(), slow["lease_epoch"].as_i64().map(|epoch| epoch + 1), "{after:#}");
    let taken =
        others.iter().map(|other| other.log()).filter(|log| log.contains("took over a scope")).collect::<Vec<_>>();
    assert_eq!(taken.len(), 1, "one of them: {taken:?}");
    assert!(taken[0].contains(holder), "{}", taken[0]);
    let sweeps = site.sweeps().await;
    assert!(sweeps.values().all(|times| *times == 1), "{sweeps:#?}");
    site.assert_each_finding_is_there_and_told_once().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_was_stopped_past_its_lease_writes_nothing_late() {
    let site = Site::new().await;
    site.delay(25).await;
    let mut stopped = site.replica("stopped", YEARLY).await;
    let slow = site.until_only_the_slow_one_is_left().await;
    stopped.signal(Signal::STOP);
    let other = site.replica("other", YEARLY).await;
    site.until_all_is_swept().await;
    let after = site.slow_scope().await;
    assert_eq!(after["lease_epoch"].as_i64(), slow["lease_epoch"].as_i64().map(|epoch| epoch + 1), "{after:#}");
    assert!(other.log().contains("took over a scope"), "{}", other.log());
    let before = site.sweeps().await;

    // It goes on with an answer that is older than its lease.
    stopped.signal(Signal::CONT);
    wait::until("the stopped replica to notice", TIMEOUT, || async {
        stopped.log().contains("nothing of that sweep is written").then_some(())
    })
    .await;
    // In good order: whatever it was doing has ended by then.
    stopped.stop().await;
    assert_eq!((site.sweeps().await, site.slow_scope().await), (before, after));
    site.assert_each_finding_is_there_and_told_once().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn findings_pass_to_the_scopes_of_their_machines_and_outlive_credentials_that_are_refused() {
    let site = Site::new().await;
    // Nobody has asked AWS yet: these are nodes that no scope covers.
    let report = site.first.json(&["sweep"]).await;
    let classes = |report: &Value, class: &str| {
        report["findings"].as_array().unwrap().iter().filter(|finding| finding["class"] == class).count()
    };
    assert_eq!(classes(&report, "idle_node"), REGIONS.len(), "{report:#}");
    let opened: Vec<String> = site.store.open_findings().await.unwrap().into_iter().map(|open| open.id.0).collect();
    let replica = site.replica("replica", YEARLY).await;
    site.until_all_is_swept().await;
    let open = site.store.open_findings().await.unwrap();
    assert!(open.iter().all(|finding| finding.class.as_str() == "idle_node" && finding.evidence.machine().is_some()));
    assert_eq!(open.into_iter().map(|finding| finding.id.0).collect::<Vec<_>>(), opened, "the same, told once");
    assert_eq!(site.store.closed_findings(10).await.unwrap().len(), 0);

    // Now AWS refuses to say whose account it is: every known scope is unknown, and nothing in it is gone.
    let refused =
        Fault { service: Some("sts".into()), status: Some(403), code: Some("AccessDenied".into()), ..Fault::default() };
    site.moto.fail(&[refused]).await;
    let (code, report) = replica.sweep().await;
    assert_eq!(code, 3, "{report:#}");
    assert_eq!(report["scopes"].as_array().unwrap().len(), 1, "one failure, told once: {report:#}");
    assert_eq!((classes(&report, "idle_node"), &report["closed"]), (REGIONS.len(), &Value::Array(vec![])));
    // A plan that was made stays, and nobody acts on it while its finding is not confirmed.
    assert!(report["findings"].as_array().unwrap().iter().all(|finding| finding["plan"].is_string()), "{report:#}");
    let open = site.store.open_findings().await.unwrap();
    assert!(open.iter().all(|finding| finding.confirmed_sweeps == 0), "{open:#?}");
    for scope in site.scopes().await {
        assert!(scope["complete"] == false && scope["failed"].as_str().unwrap().contains("sts:"), "{scope:#}");
    }
    replica.replays().await;
}
