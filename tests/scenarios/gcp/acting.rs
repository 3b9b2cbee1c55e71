//! A sweeper that may act, over one idle machine of Google Cloud with a plan, whose node answers as it is told to.

use heartbeat::NodeId;
use lab::{
    answering::{Answers, BEATS, counts_approvals, last_end, quiet},
    gcp::{Call, Google, PROJECT},
    sample,
    sweeper::Sweeper,
    wait,
};
use sea_orm::ConnectionTrait as _;
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};
use sweeper::store::Store;
use tempfile::TempDir;

use super::estate::{HERE, machine};

/// The machine's number.
pub(super) const NUMBER: &str = "1000";
/// Where acting is switched on.
pub(super) const SWITCHED_ON: &str = "scopes = [\"omics-prod-1:europe-west3-a\"]\n";
/// Whoever is enrolled may approve alone.
const ANYBODY: &str = "[[rule]]\nname = \"anybody\"\napprovers = [\"*\"]\n";
/// Longest that an action takes on a busy host.
pub(super) const TIMEOUT: Duration = Duration::from_secs(60);
/// What changes something.
pub(super) const CALLS: [&str; 2] = ["compute.instances.stop", "compute.instances.start"];

pub(super) struct Acting {
    pub(super) sweeper: Sweeper,
    pub(super) google: Google,
    pub(super) answers: Answers,
    pub(super) folder: TempDir,
}

/// How a command ended, and what it said.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) code: i32,
    pub(super) said: String,
    pub(super) error: String,
}

impl Acting {
    /// One in which acting is switched on.
    pub(super) async fn start(url: &str) -> Self {
        Self::start_with(url, SWITCHED_ON, true).await
    }

    pub(super) async fn start_with(url: &str, switched_on: &str, somebody_acts: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let google = Google::start(&folder.path().join("google")).await;
        let mut machine = machine(HERE, 1_000, "RUNNING");
        let plain = json!({"deletionProtection": false, "canIpForward": false, "labels": {"owner": "ada"}});
        machine.as_object_mut().unwrap().extend(plain.as_object().unwrap().clone());
        google.resources(PROJECT, "instances", HERE, &[machine]).await;
        let shape = json!({"name": "n2-standard-8", "guestCpus": 8, "memoryMb": 32_768, "isSharedCpu": false});
        google.types(PROJECT, HERE, &[shape]).await;
        let policy = folder.path().join("policy.toml");
        fs::write(&policy, ANYBODY).unwrap();
        let acts = google.acting(folder.path());
        let projects = format!("projects = [{{ project = \"{PROJECT}\", credentials_file = {acts:?} }}]\n");
        let projects = if somebody_acts { projects } else { String::new() };
        let config = format!(
            "[store]\nurl = \"{url}\"\n[aws]\nenabled = \"no\"\n{}[sweep]\nschedule = \"0 0 0 1 1 *\"\n\
             [approvals]\npolicy_file = {policy:?}\n[act]\n{switched_on}{projects}",
            google.config(&[PROJECT])
        );
        let environment = google.environment(folder.path());
        let environment: Vec<(&str, &str)> = environment.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        let mut sweeper = Sweeper::prepare(&folder.path().join("sweeper"), &config, &environment);
        sweeper.sweep().await;
        let store = Store::connect(url).await.unwrap();
        let node: NodeId = format!("gcp:{PROJECT}:europe-west3-a:{NUMBER}").parse().unwrap();
        sample::report(&store, &node, sample::boot(1), 1..=BEATS, quiet).await;
        let reported_at = last_end(&store, &node).await;
        store.connection().execute_unprepared("UPDATE nodes SET attestation = 'gcp_token'").await.unwrap();
        sweeper.sweep().await;
        sweeper.sweep().await;
        sweeper.start_again().await;
        counts_approvals(&store).await;
        let answers = Answers::of(store, node, reported_at);
        google.calls().await;
        Self { sweeper, google, answers, folder }
    }

    pub(super) async fn run(&self, arguments: &[&str]) -> Ended {
        let mut command = tokio::process::Command::from(self.sweeper.command());
        let output = command.args(arguments).stdin(Stdio::null()).kill_on_drop(true).output();
        let output = tokio::time::timeout(TIMEOUT, output).await.expect("a command that ends").unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Ended { code: output.status.code().unwrap(), said: text(output.stdout), error: text(output.stderr) }
    }

    /// The hash of the only plan.
    pub(super) async fn plan(&self) -> String {
        let plans = self.sweeper.json(&["plans"]).await;
        let [plan] = plans.as_array().unwrap().as_slice() else { panic!("{plans:#}\n{}", self.sweeper.log()) };
        plan["plan"].as_str().unwrap().to_owned()
    }

    /// Enrols somebody, and makes them a token.
    pub(super) async fn enrol(&self, name: &str) -> PathBuf {
        let enrolled = self.run(&["approvers", "add", name]).await;
        assert_eq!(enrolled.code, 0, "{enrolled:?}");
        let token = self.run(&["approvers", "token", name]).await;
        assert!(token.code == 0 && token.said.starts_with("csa_"), "{token:?}");
        let file = self.folder.path().join(name);
        fs::write(&file, token.said).unwrap();
        file
    }

    /// Somebody approves a plan.
    pub(super) async fn approve(&self, plan: &str, token: &Path) {
        let approved = self.run(&["approve", plan, "--token-file", token.to_str().unwrap()]).await;
        assert!(approved.code == 0 && approved.said.starts_with("Approved"), "{approved:?}");
    }

    /// The last action on a plan, once it is so far.
    pub(super) async fn action(&self, plan: &str, direction: &str, states: &[&str]) -> Value {
        wait::until(&format!("{direction} {states:?}"), TIMEOUT, || async {
            let all = self.sweeper.json(&["actions"]).await;
            let is_it = |action: &&Value| action["plan"] == plan && action["direction"] == direction;
            let action = all.as_array().unwrap().iter().find(is_it)?.clone();
            states.contains(&action["state"].as_str().unwrap()).then_some(action)
        })
        .await
    }

    /// The last action on a plan, once it has ended.
    pub(super) async fn ended(&self, plan: &str) -> Value {
        self.action(plan, "do", &["done", "voided", "failed"]).await
    }

    /// A plan that is approved now comes to nothing, for this reason; another one takes its place.
    pub(super) async fn is_refused(&self, words: &str, token: &Path) {
        let plan = self.plan().await;
        self.approve(&plan, token).await;
        let ended = self.ended(&plan).await;
        let told = ended["outcome"].as_str().unwrap_or_default();
        assert!(ended["state"] == "voided" && told.contains(words), "`{words}` is not in {ended:#}");
        self.sweeper.sweep().await;
    }

    /// In Google's words.
    pub(super) async fn status(&self) -> String {
        let machine = self.google.machine(HERE, NUMBER).await;
        machine["status"].as_str().unwrap().to_owned()
    }

    pub(super) async fn change(&self, with: Value) {
        self.google.change(HERE, NUMBER, &with).await;
    }

    /// What changes something and was called since the last time that this was asked.
    pub(super) async fn called(&self) -> Vec<Call> {
        let calls = self.google.calls().await;
        calls.into_iter().filter(|call| CALLS.contains(&call.method.as_str())).collect()
    }
}
