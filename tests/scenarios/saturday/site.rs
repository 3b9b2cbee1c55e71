//! A sweeper that may act, with Slack, over one machine of EC2's.

use crate::machine::{Image, Machine};
use heartbeat::{NodeId, wire};
use jiff::Timestamp;
use lab::{
    aws::{ACCOUNT, Call, Instance, Moto, Role},
    binaries,
    ec2_signature::Signer,
    imds::{Identity, Imds},
    microvm::HOST,
    slack::{Hears, Slack},
    sweeper::Sweeper,
    wait,
};
use serde_json::{Value, json};
use std::{fs, path::PathBuf, process::Stdio, sync::Arc, time::Duration};
use sweeper::store::{Store, StoredHeartbeat};
use tempfile::TempDir;

const REGION: &str = "us-east-1";
const ACTS: &str = "arn:aws:iam::123456789012:role/cloud-sweeper-act";
const EXTERNAL_ID: &str = "laboratory";
/// The next heartbeat comes half an interval behind an answer at the earliest: not within the five seconds in which that is acted on, since one that does voids it.
const INTERVAL_S: u32 = 10;
/// Their accounts of Slack.
pub(crate) const ADA: &str = "U0ADA1";
pub(crate) const GRACE: &str = "U0GRACE1";
/// Longest that something takes on a busy host, the emulated machine's boot and its window included.
const TIMEOUT: Duration = Duration::from_secs(300);

pub(crate) struct Site {
    hears: Hears,
    pub(crate) machine: Machine,
    pub(crate) sweeper: Sweeper,
    pub(crate) slack: Slack,
    moto: Arc<Moto>,
    store: Store,
    instance: String,
    folder: TempDir,
}

impl Site {
    /// With a policy that asks so many people. Its machine boots.
    pub(crate) async fn start(url: &str, needs: u32, hears: Hears) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("policy.toml"), format!("[[rule]]\nname = \"anybody\"\napprovers = [\"*\"]\nneeds = {needs}\n"))
            .unwrap();
        let (moto, slack) = tokio::join!(async { Moto::start(&path("aws")).await }, Slack::start());
        moto.roles(&[Role { arn: ACTS.to_owned(), external_id: Some(EXTERNAL_ID.to_owned()), account: None }]).await;
        let launched = Instance { launched_at: Some(Timestamp::now()), ..Instance::named("m5.large", "align-7") };
        let instance = moto.run(REGION, &[launched]).await.remove(0);
        let signer = Arc::new(Signer::generate());
        fs::create_dir(path("certificates")).unwrap();
        fs::write(path("certificates").join(format!("{REGION}.pem")), signer.certificate_pem()).unwrap();
        let config = format!(
            "[store]\nurl = \"{url}\"\n[aws]\nregions = [\"{REGION}\"]\n[pricing]\nsource = \"none\"\n[sweep]\nschedule = \"0 0 0 1 1 *\"\n\
             [identity]\naccounts = [\"{ACCOUNT}\"]\naws_certificates = {:?}\n[approvals]\npolicy_file = {:?}\n\
             [verdict]\nboot_grace = \"20s\"\nidle_after = \"60s\"\nmissed_heartbeats = 10\n[outbox]\ngather = \"0s\"\n\
             {}\
             [act]\nscopes = [\"{ACCOUNT}:{REGION}\"]\nroles = [{{ role_arn = \"{ACTS}\", external_id = \"{EXTERNAL_ID}\" }}]\n",
            path("certificates"),
            path("policy.toml"),
            slack.config(hears),
        );
        let environment = moto.environment();
        let environment: Vec<_> = environment.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let sweeper = Sweeper::start(&path("sweeper"), &config, &environment).await;
        let store = Store::connect(url).await.unwrap();
        let identity = Identity {
            account: ACCOUNT.into(),
            region: REGION.into(),
            instance: instance.clone(),
            instance_type: "m5.large".into(),
            life_cycle: "on-demand".into(),
        };
        let agent_config = format!(
            "sweeper_url = \"http://{HOST}:{}\"\njoin_token = \"{}\"\nstate_dir = \"/run/agent\"\nidentity = \"aws\"\ninterval = \"{INTERVAL_S}s\"\n\
             max_cpu_percent_of_host = 100\n",
            sweeper.port(),
            sweeper.join_token()
        );
        let image = Image {
            folder: path("machine"),
            metadata: Imds::start_signed(identity, signer),
            agent_config,
            work: binaries::compiled("work.c", folder.path()),
        };
        let moto = Arc::new(moto);
        let machine = Machine::of(Arc::clone(&moto), REGION, instance.clone(), image);
        let site = Self { hears, machine, sweeper, slack, moto, store, instance, folder };
        for (name, user) in [("ada", ADA), ("grace", GRACE)] {
            site.run(&["approvers", "add", name]).await;
            fs::write(site.token(name), site.run(&["approvers", "token", name]).await).unwrap();
            site.run(&["approvers", "link", name, &format!("{}/{user}", Slack::TEAM)]).await;
        }
        site
    }

    /// Where somebody's token is.
    pub(crate) fn token(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs a command that succeeds, and returns what it says.
    pub(crate) async fn run(&self, arguments: &[&str]) -> String {
        let mut command = tokio::process::Command::from(self.sweeper.command());
        let output = command.args(arguments).stdin(Stdio::null()).kill_on_drop(true).output();
        let output = tokio::time::timeout(TIMEOUT, output).await.expect("a command that ends").unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}\n{}", self.sweeper.log());
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) async fn until<T, F: Future<Output = Option<T>>>(&self, what: &str, ask: impl FnMut() -> F) -> T {
        wait::until(what, TIMEOUT, ask).await
    }

    /// Sweeps until there is an answer.
    pub(crate) async fn swept_until<T>(&self, what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
        let sweeps = async {
            loop {
                let before = self.heartbeats().await;
                self.sweeper.sweep().await;
                if let Some(answer) = ask().await {
                    return answer;
                }
                self.until("another heartbeat", || async { (self.heartbeats().await > before).then_some(()) }).await;
            }
        };
        let answer = tokio::time::timeout(TIMEOUT, sweeps).await;
        answer
            .unwrap_or_else(|_| panic!("waited in vain for {what}; the machine's console:\n{}", self.machine.console()))
    }

    /// The message that asks about a plan, after the one with that time.
    pub(crate) async fn asked(&self, after: &str) -> Value {
        self.swept_until("a message that asks", async || {
            let asks = |message: &Value| {
                message["ts"].as_str() > Some(after) && message.to_string().contains("\"action_id\":\"approve\"")
            };
            self.slack.messages().into_iter().find(asks)
        })
        .await
    }

    /// The hash of the only plan that nobody has acted on.
    pub(crate) async fn plan(&self) -> String {
        let plans = self.sweeper.json(&["plans"]).await;
        let [plan] = plans.as_array().unwrap().as_slice() else { panic!("{plans:#}") };
        plan["plan"].as_str().unwrap().to_owned()
    }

    /// Somebody presses *Stop it*.
    pub(crate) async fn press(&self, message: &Value, user: &str) {
        let press = json!({ "secret": Slack::SECRET, "message": message, "action_id": "approve", "user": user });
        match self.hears {
            Hears::Requests => {
                let status = Slack::press(&format!("{}/v1/slack/interactions", self.sweeper.url()), &press).await;
                assert_eq!(status, 200);
            }
            Hears::Sockets => assert!(self.until("a socket", || self.slack.press_over_a_socket(&press)).await),
        }
    }

    /// What was said to somebody alone, once it is so much.
    pub(crate) async fn whispered(&self, count: usize) -> String {
        self.until(&format!("{count} whispers"), || async {
            let all = self.slack.whispers();
            all.get(count - 1).map(|whisper| whisper["text"].as_str().unwrap().to_owned())
        })
        .await
    }

    /// The action on a plan, once it has ended.
    pub(crate) async fn ended(&self, plan: &str) -> Value {
        self.until("the action to end", || async {
            let all = self.sweeper.json(&["actions"]).await;
            let is_it = |action: &&Value| action["plan"] == plan && action["direction"] == "do";
            let action = all.as_array().unwrap().iter().find(is_it)?.clone();
            ["done", "voided", "failed"].contains(&action["state"].as_str().unwrap()).then_some(action)
        })
        .await
    }

    /// The message that says so, once there is one.
    pub(crate) async fn hears(&self, text: &str) -> Value {
        self.until(&format!("a message that says: {text}"), || async {
            self.slack.messages().into_iter().find(|message| message.to_string().contains(text))
        })
        .await
    }

    /// A message as it was last updated, once that shows this text.
    pub(crate) async fn updated(&self, message: &Value, text: &str) -> Value {
        self.until(&format!("an update that shows: {text}"), || async {
            let last = self.slack.updates().into_iter().rev().find(|update| update["ts"] == message["ts"])?;
            last.to_string().contains(text).then_some(last)
        })
        .await
    }

    /// The calls of EC2 by this name that were not dry runs.
    pub(crate) async fn called(&self, action: &str) -> Vec<Call> {
        self.moto.called(action).await
    }

    /// In EC2's words.
    pub(crate) async fn state(&self) -> String {
        self.moto.instance_state(REGION, &self.instance).await
    }

    pub(crate) async fn node(&self) -> Value {
        self.sweeper.json(&["nodes", &format!("aws:{ACCOUNT}:{REGION}:{}", self.instance)]).await
    }

    async fn reported(&self) -> Vec<StoredHeartbeat> {
        let node: NodeId = format!("aws:{ACCOUNT}:{REGION}:{}", self.instance).parse().unwrap();
        self.store.heartbeats(&node, Timestamp::MIN, Timestamp::MAX).await.unwrap()
    }

    /// How many heartbeats there are of it.
    pub(crate) async fn heartbeats(&self) -> usize {
        self.reported().await.len()
    }

    /// What the machine's CPU did, interval by interval, in milliseconds: by which numbers it was judged when it was asked.
    pub(crate) async fn cpu_times(&self) -> String {
        let mut before: Option<(Timestamp, Vec<i64>)> = None;
        let mut lines = String::from("until, length: busy, user, system; of rows, of each class of them\n");
        for beat in self.reported().await {
            let (interval, host) = (beat.heartbeat.interval.unwrap(), beat.heartbeat.counters.unwrap());
            let rows = |class: Option<wire::Class>| {
                let of =
                    beat.heartbeat.workloads.iter().filter(|row| class.is_none_or(|class| row.class == class as i32));
                of.filter_map(|row| row.cpu_ns).sum()
            };
            let classes = [
                None,
                Some(wire::Class::Workload),
                Some(wire::Class::Housekeeping),
                Some(wire::Class::Kernel),
                Some(wire::Class::Self_),
            ];
            let counters = [host.cpu_busy_ns, host.cpu_user_ns, host.cpu_system_ns].map(Option::unwrap_or_default);
            let all = [interval.end_boottime_ns].into_iter().chain(counters).chain(classes.map(rows));
            let now: Vec<_> = all.map(|ns| i64::try_from(ns / 1_000_000).unwrap()).collect();
            let until = Timestamp::from_millisecond(interval.end_unix_ms).unwrap();
            if let Some((_, before)) = &before {
                let since: Vec<_> = now.iter().zip(before).map(|(now, before)| now - before).collect();
                lines.push_str(&format!(
                    "{until}: {since:?} nobody's {} {}\n",
                    since[1] - since[4],
                    beat.heartbeat.answers
                ));
            }
            before = Some((until, now));
        }
        lines
    }

    /// The chain of the audit log is whole.
    pub(crate) async fn audit_holds(&self) {
        self.run(&["audit", "verify"]).await;
    }
}
