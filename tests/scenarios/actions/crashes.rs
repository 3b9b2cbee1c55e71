//! A sweeper that dies or is suspended anywhere on the way, and a provider that answers late, or otherwise than it acted: one call for one approval at most.

use crate::site::{REGION, Says, Site, TIMEOUT};
use lab::{
    aws::{Fault, Instance},
    sweeper::Sweeper,
    wait,
};
use rustix::process::Signal;
use sea_orm::{ConnectionTrait as _, Statement};
use serde_json::Value;
use std::{path::PathBuf, time::Duration};

lab::on_both_databases! {
    killed_before_the_call_it_begins_anew,
    killed_while_the_node_is_asked_it_asks_anew,
    killed_after_the_call_has_left_it_looks_and_calls_nothing,
    killed_while_the_machine_stops_it_sees_it_stopped,
    an_error_after_having_acted_is_looked_into,
    a_call_that_never_arrived_is_not_repeated,
    suspended_behind_the_answer_it_calls_nothing,
    of_three_sweepers_one_calls,
    what_stops_late_can_be_undone,
}

/// A call that stops the machine, dry or not, goes wrong once.
fn stop(is_dry: bool) -> Fault {
    let mut fault =
        Fault { service: Some("ec2".into()), action: Some("StopInstances".into()), times: Some(1), ..Fault::default() };
    if is_dry {
        fault.parameters.insert("DryRun".to_owned(), "true".to_owned());
    } else {
        // Both dry runs pass first.
        fault.after = Some(2);
    }
    fault
}

/// How many stops were asked for, and what became of the action.
async fn outcome(site: &Site, plan: &str) -> (usize, Value) {
    let ended = site.ended(plan).await;
    (site.called("StopInstances").await.len(), ended)
}

fn is_done(calls: usize, ended: &Value) {
    assert_eq!((calls, ended["state"].as_str()), (1, Some("done")), "{ended:#}");
}

async fn killed_before_the_call_it_begins_anew(url: String) {
    let mut site = Site::start(&url).await;
    let (plan, ada) = (site.plan().await, site.enrol("ada").await);
    site.moto.fail(&[Fault { delay_s: Some(20), ..stop(true) }]).await;
    site.approve(&plan, &ada).await;
    site.action(&plan, "do", &["claimed"]).await;
    site.sweeper.kill();
    site.sweeper.start_again().await;
    let (calls, ended) = outcome(&site, &plan).await;
    is_done(calls, &ended);
    assert_eq!(ended["epoch"], 2, "{ended:#}");
}

async fn killed_while_the_node_is_asked_it_asks_anew(url: String) {
    let mut site = Site::start(&url).await;
    let (plan, ada) = (site.plan().await, site.enrol("ada").await);
    site.node_says(Says::Nothing);
    site.approve(&plan, &ada).await;
    site.action(&plan, "do", &["asking"]).await;
    site.sweeper.kill();
    // What is answered to a question of before is nobody's.
    site.node_says(Says::Quiet);
    site.sweeper.start_again().await;
    let (calls, ended) = outcome(&site, &plan).await;
    is_done(calls, &ended);
    assert!(site.count("SELECT COUNT(*) AS told FROM questions").await >= 2, "it is asked anew");
}

async fn killed_after_the_call_has_left_it_looks_and_calls_nothing(url: String) {
    let mut site = Site::start(&url).await;
    let (plan, ada) = (site.plan().await, site.enrol("ada").await);
    // EC2 takes its time, and does it.
    site.moto.fail(&[Fault { delay_s: Some(15), ..stop(false) }]).await;
    site.approve(&plan, &ada).await;
    wait::until("the call to leave", TIMEOUT, || async {
        (!site.called("StopInstances").await.is_empty()).then_some(())
    })
    .await;
    site.sweeper.kill();
    assert_eq!(site.action(&plan, "do", &["calling"]).await["epoch"], 1);
    site.sweeper.start_again().await;
    let (calls, ended) = outcome(&site, &plan).await;
    is_done(calls, &ended);
    assert!(ended["outcome"].as_str().unwrap().contains("whether by this call, nobody knows"), "{ended:#}");
}

/// EC2 cannot be asked what became of a call: the machine is read once before the node is asked, and once behind its answer.
fn unread() -> Fault {
    Fault {
        service: Some("ec2".into()),
        action: Some("DescribeInstances".into()),
        code: Some("RequestLimitExceeded".into()),
        status: Some(503),
        after: Some(2),
        ..Fault::default()
    }
}

/// A sweeper that died while a machine stopped as a plan said, and whoever approved that.
async fn killed_while_it_stops(url: &str) -> (Site, String, PathBuf) {
    let mut site = Site::start(url).await;
    let (plan, ada) = (site.plan().await, site.enrol("ada").await);
    site.moto.fail(&[unread()]).await;
    site.approve(&plan, &ada).await;
    site.action(&plan, "do", &["awaiting"]).await;
    site.sweeper.kill();
    (site, plan, ada)
}

async fn killed_while_the_machine_stops_it_sees_it_stopped(url: String) {
    let (mut site, plan, _) = killed_while_it_stops(&url).await;
    site.moto.fail(&[]).await;
    site.sweeper.start_again().await;
    let (calls, ended) = outcome(&site, &plan).await;
    is_done(calls, &ended);
    assert_eq!(ended["epoch"], 2, "{ended:#}");
}

async fn what_stops_late_can_be_undone(url: String) {
    let (mut site, plan, ada) = killed_while_it_stops(&url).await;
    // Its system is slow to shut down, and a quarter of an hour is over.
    let is = |state: &str| Instance { state: Some(state.to_owned()), tags: [].into(), ..Instance::default() };
    site.moto.change(REGION, &site.machine, &is("stopping")).await;
    site.change("UPDATE actions SET called_unix_ms = called_unix_ms - 1000000").await;
    site.moto.fail(&[]).await;
    site.sweeper.start_again().await;
    let ended = site.ended(&plan).await;
    let told = ended["outcome"].as_str().unwrap();
    assert!(ended["state"] == "failed" && told.contains("undoing this starts it again"), "{ended:#}");
    let undo = ["undo", &plan, "--token-file", ada.to_str().unwrap(), "--wait"];
    let early = site.run(&undo).await;
    assert!(early.code == 1 && early.said.contains("its state is `stopping`, not `stopped`"), "{early:?}");
    site.moto.change(REGION, &site.machine, &is("stopped")).await;
    let undone = site.run(&undo).await;
    assert!(undone.code == 0 && undone.said.contains("done: the machine is running"), "{undone:?}");
}

async fn an_error_after_having_acted_is_looked_into(url: String) {
    let site = Site::start(&url).await;
    let (plan, ada) = (site.plan().await, site.enrol("ada").await);
    let fault = Fault { acts: true, code: Some("InternalError".into()), status: Some(500), ..stop(false) };
    site.moto.fail(&[fault]).await;
    site.approve(&plan, &ada).await;
    let (calls, ended) = outcome(&site, &plan).await;
    is_done(calls, &ended);
    assert_eq!(site.state().await, "stopped");
    let log = site.sweeper.json(&["audit"]).await;
    let did: Vec<&str> = log.as_array().unwrap().iter().filter_map(|entry| entry["did"].as_str()).collect();
    assert_eq!(did[did.len() - 3..], ["called", "lost", "done"], "{log:#}");
}

async fn a_call_that_never_arrived_is_not_repeated(url: String) {
    let site = Site::start(&url).await;
    let (plan, ada) = (site.plan().await, site.enrol("ada").await);
    let fault = Fault { code: Some("Unavailable".into()), status: Some(503), ..stop(false) };
    site.moto.fail(&[fault]).await;
    site.approve(&plan, &ada).await;
    site.action(&plan, "do", &["reconciling"]).await;
    let ended = wait::until("its end", Duration::from_secs(200), || async {
        let all = site.sweeper.json(&["actions"]).await;
        (all[0]["state"] != "reconciling").then(|| all[0].clone())
    })
    .await;
    assert_eq!(ended["state"], "failed", "{ended:#}");
    assert_eq!(ended["outcome"], "the call has not reached EC2: the machine is running");
    assert_eq!((site.called("StopInstances").await.len(), site.state().await.as_str()), (1, "running"));
}

impl Site {
    pub(crate) async fn count(&self, sql: &str) -> i64 {
        let connection = self.store.connection();
        let row = connection.query_one_raw(Statement::from_string(connection.get_database_backend(), sql)).await;
        row.unwrap().unwrap().try_get("", "told").unwrap()
    }
}

/// An answer is good for five seconds: so much longer the process is suspended, whatever its own clocks say.
const SUSPENDED_FOR: Duration = Duration::from_secs(6);

async fn suspended_behind_the_answer_it_calls_nothing(url: String) {
    let mut site = Site::start(&url).await;
    let (plan, ada) = (site.plan().await, site.enrol("ada").await);
    // The second dry run is made once the node has answered.
    site.moto.fail(&[Fault { delay_s: Some(2), after: Some(1), ..stop(true) }]).await;
    site.approve(&plan, &ada).await;
    wait::until("the second dry run", TIMEOUT, || async { (site.dry_runs().await == 2).then_some(()) }).await;
    site.sweeper.signal(Signal::STOP);
    tokio::time::sleep(SUSPENDED_FOR).await;
    site.sweeper.signal(Signal::CONT);
    let (calls, ended) = outcome(&site, &plan).await;
    assert_eq!((calls, ended["state"].as_str(), site.state().await.as_str()), (0, Some("voided"), "running"));
    assert_eq!(ended["outcome"], "its node's answer is older than 5 s");
}

/// The row says `calling`, and the process is suspended before the call leaves: by a trigger that takes its time.
const SLOW: [&str; 2] = [
    "CREATE FUNCTION slow() RETURNS trigger AS $$ BEGIN IF NEW.state = 'calling' THEN PERFORM pg_sleep(2); END IF; RETURN NEW; END $$ LANGUAGE plpgsql",
    "CREATE TRIGGER slow BEFORE UPDATE ON actions FOR EACH ROW EXECUTE FUNCTION slow()",
];
const SLEEPS: &str =
    "SELECT COUNT(*) AS told FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()";

/// On PostgreSQL alone, which tells that it is at it; that nothing leaves behind a deadline is a unit test of its own, too.
#[tokio::test]
async fn suspended_while_it_writes_that_it_calls_it_calls_nothing() {
    let server = lab::postgres::Postgres::shared().await;
    let mut site = Site::start(&server.database().await).await;
    let (plan, ada) = (site.plan().await, site.enrol("ada").await);
    for statement in SLOW {
        site.change(statement).await;
    }
    site.approve(&plan, &ada).await;
    wait::until("the trigger", TIMEOUT, || async { (site.count(SLEEPS).await == 1).then_some(()) }).await;
    site.sweeper.signal(Signal::STOP);
    tokio::time::sleep(SUSPENDED_FOR).await;
    site.sweeper.signal(Signal::CONT);
    let (calls, ended) = outcome(&site, &plan).await;
    assert_eq!((calls, ended["state"].as_str(), site.state().await.as_str()), (0, Some("voided"), "running"));
    assert!(ended["outcome"].as_str().unwrap().contains("did not leave within 5 s"), "{ended:#}");
}

async fn of_three_sweepers_one_calls(url: String) {
    let site = Site::start(&url).await;
    let environment = site.moto.environment();
    let environment: Vec<_> = environment.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    let config = std::fs::read_to_string(site.sweeper.folder().join("sweeper.toml")).unwrap();
    let mut others = Vec::new();
    for name in ["second", "third"] {
        others.push(Sweeper::start(&site.folder.path().join(name), &config, &environment).await);
    }
    let (plan, ada) = (site.plan().await, site.enrol("ada").await);
    site.approve(&plan, &ada).await;
    let (calls, ended) = outcome(&site, &plan).await;
    is_done(calls, &ended);
    assert_eq!(ended["epoch"], 1, "nobody takes over what is held: {ended:#}");
    let dry: Vec<_> = site.moto.calls().await;
    let dry = dry.iter().filter(|call| call.action == "StopInstances" && call.region == REGION).count();
    assert_eq!(dry, 3, "two dry runs, and the call");
    for mut other in others {
        other.stop().await;
    }
    assert_eq!(site.run(&["audit", "verify"]).await.code, 0);
}
