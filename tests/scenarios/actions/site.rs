//! A sweeper that may act, over one idle machine with a plan, whose node answers as it is told to.

use heartbeat::NodeId;
use jiff::{SignedDuration, Timestamp};
pub(crate) use lab::answering::Says;
use lab::{
    answering::{Answers, BEATS, Beat, counts_approvals, last_end, quiet},
    aws::{ACCOUNT, Address, Call, Group, Instance, Member, Moto, Role, Volume},
    sample,
    slack::{Hears, Slack},
    stuck_job,
    sweeper::Sweeper,
    wait,
};
use sea_orm::ConnectionTrait as _;
use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};
use sweeper::store::Store;
use tempfile::TempDir;

pub(crate) const REGION: &str = "us-east-1";
/// An Auto Scaling group.
pub(crate) const WORKERS: &str = "workers";
/// Whoever is enrolled may approve alone.
pub(crate) const ANYBODY: &str = "[[rule]]\nname = \"anybody\"\napprovers = [\"*\"]\n";
/// Where acting is switched on.
pub(crate) const SWITCHED_ON: &str = "scopes = [\"123456789012:us-east-1\"]\n";
/// The role that acts, and what its trust policy asks for.
const ACTS: &str = "arn:aws:iam::123456789012:role/cloud-sweeper-act";
const EXTERNAL_ID: &str = "laboratory";
/// Longest that an action takes on a busy host.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) struct Site {
    pub(crate) sweeper: Sweeper,
    pub(crate) store: Store,
    pub(crate) moto: Moto,
    pub(crate) slack: Slack,
    pub(crate) machine: String,
    /// Elastic IP addresses, by their allocations.
    pub(crate) addresses: Vec<String>,
    /// Volumes that are attached to nothing.
    pub(crate) volumes: Vec<String>,
    pub(crate) folder: TempDir,
    answers: Answers,
}

/// How a command ended, and what it said.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) said: String,
    pub(crate) error: String,
}

/// What there is beside the one machine.
#[derive(Default)]
struct Beside<'a> {
    others: &'a [&'a str],
    addresses: &'a [Address],
    volumes: &'a [Volume],
    is_grouped: bool,
    beat: Option<Beat>,
}

impl Site {
    /// One in which acting is switched on.
    pub(crate) async fn start(url: &str) -> Self {
        Self::start_with(url, ANYBODY, SWITCHED_ON).await
    }

    pub(crate) async fn start_with(url: &str, policy: &str, act: &str) -> Self {
        Self::start_hearing(url, policy, act, Hears::Requests).await
    }

    pub(crate) async fn start_hearing(url: &str, policy: &str, act: &str, hears: Hears) -> Self {
        Self::start_among(url, policy, act, hears, &[]).await
    }

    /// With other machines of the same owner, by their names, which rest as well; their nodes answer nothing.
    pub(crate) async fn start_among(url: &str, policy: &str, act: &str, hears: Hears, others: &[&str]) -> Self {
        Self::start_routed(url, policy, act, hears, others, "[]").await
    }

    /// Where these teams are told in channels of their own.
    pub(crate) async fn start_routed(
        url: &str,
        policy: &str,
        act: &str,
        hears: Hears,
        others: &[&str],
        teams: &str,
    ) -> Self {
        Self::start_beside(url, policy, act, hears, Beside { others, ..Beside::default() }, teams).await
    }

    /// With addresses and volumes that nobody uses: each is found at once.
    pub(crate) async fn start_leaving(
        url: &str,
        policy: &str,
        act: &str,
        addresses: &[Address],
        volumes: &[Volume],
    ) -> Self {
        let beside = Beside { addresses, volumes, ..Beside::default() };
        Self::start_beside(url, policy, act, Hears::Requests, beside, "[]").await
    }

    /// With two other machines, of which none works either, in the Auto Scaling group [`WORKERS`], which may go down to one.
    pub(crate) async fn start_grouped(url: &str, policy: &str, act: &str) -> Self {
        let beside = Beside { others: &["align-8", "align-9"], is_grouped: true, ..Beside::default() };
        Self::start_beside(url, policy, act, Hears::Requests, beside, "[]").await
    }

    /// Whose machine runs a job of AWS Batch, which does nothing; [`stuck_job::beat`] is what its agent says.
    pub(crate) async fn start_with_job(url: &str, policy: &str, act: &str) -> Self {
        let beside = Beside { beat: Some(stuck_job::beat), ..Beside::default() };
        Self::start_beside(url, policy, act, Hears::Requests, beside, "[]").await
    }

    async fn start_beside(
        url: &str,
        policy: &str,
        act: &str,
        hears: Hears,
        Beside { others, addresses, volumes, is_grouped, beat }: Beside<'_>,
        teams: &str,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("policy.toml"), policy).unwrap();
        let slack = async {
            match hears {
                Hears::Requests => Slack::start().await,
                Hears::Sockets => Slack::start_https().await,
            }
        };
        let (moto, slack) = tokio::join!(async { Moto::start(&folder.path().join("aws")).await }, slack);
        moto.roles(&[Role { arn: ACTS.to_owned(), external_id: Some(EXTERNAL_ID.to_owned()), account: None }]).await;
        let machine = |name: &str| {
            let mut machine = Instance::named("m5.large", name);
            machine.tags.insert("owner".to_owned(), "ada".to_owned());
            // Started long before, so that the hour of heartbeats is of this boot.
            machine.launched_at = Some(Timestamp::now() - SignedDuration::from_hours(30));
            machine
        };
        let others: Vec<Instance> = others.iter().map(|name| machine(name)).collect();
        let others = if others.is_empty() { Vec::new() } else { moto.run(REGION, &others).await };
        let machine = moto.run(REGION, &[machine("align-7")]).await.remove(0);
        if is_grouped {
            let all = others.iter().chain([&machine]);
            let members: Vec<Member> = all.map(|id| Member::of(id)).collect();
            let group = Group {
                name: WORKERS.to_owned(),
                min: 1,
                max: 4,
                desired: 3,
                members,
                tags_members: true,
                ..Group::default()
            };
            moto.groups(REGION, &[group]).await;
        }
        if beat.is_some() {
            moto.batch(REGION, stuck_job::estate(&machine)).await;
        }
        let addresses = moto.addresses(REGION, addresses).await;
        let volumes = moto.volumes(REGION, volumes).await;
        // What comes last is what scenarios add to.
        let config = format!(
            "[store]\nurl = \"{url}\"\n[aws]\nregions = [\"{REGION}\"]\n[sweep]\nschedule = \"0 0 0 1 1 *\"\n[approvals]\npolicy_file = {:?}\n\
             {}[outbox]\ngather = \"0s\"\n[verdict]\nleftover_after = \"0s\"\n\
             [act]\n{act}roles = [{{ role_arn = \"{ACTS}\", external_id = \"{EXTERNAL_ID}\" }}]\n",
            folder.path().join("policy.toml"),
            slack.config(hears),
        );
        let mut environment = moto.environment();
        environment.push(("SWEEPER_SLACK__TEAMS".to_owned(), teams.to_owned()));
        if hears == Hears::Sockets {
            environment.push(("SSL_CERT_FILE".to_owned(), slack.ca_file().display().to_string()));
        }
        let environment: Vec<_> = environment.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let mut sweeper = Sweeper::prepare(&folder.path().join("sweeper"), &config, &environment);
        sweeper.sweep().await;
        let store = Store::connect(url).await.unwrap();
        let node: NodeId = format!("aws:{ACCOUNT}:{REGION}:{machine}").parse().unwrap();
        let said = |sequence, end| beat.map_or_else(|| quiet(sequence, end), |beat| beat(Says::Quiet, sequence, end));
        sample::report(&store, &node, sample::boot(1), 1..=BEATS, said).await;
        for (boot, other) in (2..).zip(&others) {
            let node: NodeId = format!("aws:{ACCOUNT}:{REGION}:{other}").parse().unwrap();
            sample::report(&store, &node, sample::boot(boot), 1..=BEATS, quiet).await;
        }
        let reported_at = last_end(&store, &node).await;
        store.connection().execute_unprepared("UPDATE nodes SET attestation = 'aws_iid'").await.unwrap();
        sweeper.sweep().await;
        sweeper.sweep().await;
        sweeper.start_again().await;
        counts_approvals(&store).await;
        let answers = match beat {
            Some(beat) => Answers::with(store.clone(), node, reported_at, beat),
            None => Answers::of(store.clone(), node, reported_at),
        };
        Self { sweeper, store, moto, slack, machine, addresses, volumes, folder, answers }
    }

    pub(crate) fn node_says(&self, says: Says) {
        self.answers.say(says);
    }

    pub(crate) async fn run(&self, arguments: &[&str]) -> Ended {
        let mut command = tokio::process::Command::from(self.sweeper.command());
        let output = command.args(arguments).stdin(Stdio::null()).kill_on_drop(true).output();
        let output = tokio::time::timeout(TIMEOUT, output).await.expect("a command that ends").unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Ended { code: output.status.code().unwrap(), said: text(output.stdout), error: text(output.stderr) }
    }

    /// The hash of the only plan.
    pub(crate) async fn plan(&self) -> String {
        let plans = self.sweeper.json(&["plans"]).await;
        let [plan] = plans.as_array().unwrap().as_slice() else { panic!("{plans:#}") };
        plan["plan"].as_str().unwrap().to_owned()
    }

    /// The hash of the only plan whose title says so.
    pub(crate) async fn plan_to(&self, what: &str) -> String {
        let plans = self.sweeper.json(&["plans"]).await;
        let is_it = |plan: &&Value| plan["title"].as_str().unwrap().contains(what);
        let found: Vec<&Value> = plans.as_array().unwrap().iter().filter(is_it).collect();
        let [plan] = found.as_slice() else { panic!("{what}: {plans:#}") };
        plan["plan"].as_str().unwrap().to_owned()
    }

    /// Enrols somebody, and makes them a token.
    pub(crate) async fn enrol(&self, name: &str) -> PathBuf {
        let enrolled = self.run(&["approvers", "add", name]).await;
        assert_eq!(enrolled.code, 0, "{enrolled:?}");
        let token = self.run(&["approvers", "token", name]).await;
        assert!(token.code == 0 && token.said.starts_with("csa_"), "{token:?}");
        let file = self.folder.path().join(name);
        fs::write(&file, token.said).unwrap();
        file
    }

    /// Somebody approves a plan.
    pub(crate) async fn approve(&self, plan: &str, token: &Path) {
        let approved = self.run(&["approve", plan, "--token-file", token.to_str().unwrap()]).await;
        assert!(approved.code == 0 && approved.said.starts_with("Approved"), "{approved:?}");
    }

    /// The last action on a plan, once it is so far.
    pub(crate) async fn action(&self, plan: &str, direction: &str, states: &[&str]) -> Value {
        wait::until(&format!("{direction} {states:?}"), TIMEOUT, || async {
            let all = self.sweeper.json(&["actions"]).await;
            let is_it = |action: &&Value| action["plan"] == plan && action["direction"] == direction;
            let action = all.as_array().unwrap().iter().find(is_it)?.clone();
            states.contains(&action["state"].as_str().unwrap()).then_some(action)
        })
        .await
    }

    /// The last action on a plan, once it has ended.
    pub(crate) async fn ended(&self, plan: &str) -> Value {
        self.action(plan, "do", &["done", "voided", "failed"]).await
    }

    /// The message of the channel that says so, once there is one.
    pub(crate) async fn hears(&self, text: &str) -> Value {
        wait::until(&format!("a message that says: {text}"), TIMEOUT, || async {
            self.slack.messages().into_iter().find(|message| message.to_string().contains(text))
        })
        .await
    }

    /// The calls of EC2 by this name that were not dry runs.
    pub(crate) async fn called(&self, action: &str) -> Vec<Call> {
        self.moto.called(action).await
    }

    /// How many dry runs of a stop EC2 has seen.
    pub(crate) async fn dry_runs(&self) -> usize {
        let calls = self.moto.calls().await;
        let is_dry = |call: &&Call| call.action == "StopInstances" && call.parameters["DryRun"] == "true";
        calls.iter().filter(is_dry).count()
    }

    /// Waits until the sweeper has looked for work twice: in each search it takes over what nobody holds, before it claims what is approved.
    pub(crate) async fn searched_twice(&self) {
        for digit in ["1", "2"] {
            let plan = digit.repeat(64);
            let resource = format!("aws:{ACCOUNT}:{REGION}:{}", self.machine);
            self.change(&format!(
                "INSERT INTO actions (plan_hash, direction, attempt, finding_id, resource, account, class, asked_by, state, epoch, holder, \
                 held_until_unix_ms, claimed_unix_ms, changed_unix_ms) VALUES \
                 ('{plan}', 'undo', 1, 'f-1', '{resource}', '{ACCOUNT}', 'reversible', '', 'awaiting', 1, '', 0, 0, 0)"
            ))
            .await;
            // There is no such plan.
            self.action(&plan, "undo", &["failed"]).await;
        }
    }

    /// In EC2's words.
    pub(crate) async fn state(&self) -> String {
        self.moto.instance_state(REGION, &self.machine).await
    }

    pub(crate) async fn tag(&self, action: &str, key: &str, value: &str) {
        let call = [
            ("Action", action),
            ("Version", "2016-11-15"),
            ("ResourceId.1", self.machine.as_str()),
            ("Tag.1.Key", key),
            ("Tag.1.Value", value),
        ];
        self.moto.query("ec2", REGION, &call).await;
    }

    pub(crate) async fn balancing(&self, call: &[(&str, &str)]) -> String {
        let call: Vec<_> = call.iter().copied().chain([("Version", "2015-12-01")]).collect();
        self.moto.query("elasticloadbalancing", REGION, &call).await
    }

    /// Makes a group of targets of a load balancer, and returns its ARN.
    pub(crate) async fn target_group(&self, name: &str) -> String {
        let vpcs = self.moto.query("ec2", REGION, &[("Action", "DescribeVpcs"), ("Version", "2016-11-15")]).await;
        let vpc = vpcs.split_once("<vpcId>").unwrap().1.split_once("</vpcId>").unwrap().0;
        let call =
            [("Action", "CreateTargetGroup"), ("Name", name), ("Protocol", "HTTP"), ("Port", "80"), ("VpcId", vpc)];
        let made = self.balancing(&call).await;
        made.split_once("<TargetGroupArn>").unwrap().1.split_once("</TargetGroupArn>").unwrap().0.to_owned()
    }

    pub(crate) async fn change(&self, statement: &str) {
        self.store.connection().execute_unprepared(statement).await.unwrap();
    }
}
