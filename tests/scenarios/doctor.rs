//! `sweeper doctor` tells what is broken before anybody waits for it, and what is well only where it was tried.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use lab::{
    aws::{
        ACCOUNT, Fault, Instance, Moto, Role,
        estate::{environment, job, queue},
    },
    binaries,
    postgres::Postgres,
    slack::{Fault as SlackFault, Hears, Slack},
    smtp::Smtp,
    sweeper::Sweeper,
    wait,
};
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
    path::Path,
    time::Duration,
};
use tempfile::TempDir;

const REGION: &str = "us-east-1";
const TIMEOUT: Duration = Duration::from_secs(60);
const ACTS: &str = "arn:aws:iam::123456789012:role/cloud-sweeper-act";

lab::on_both_databases! {
    what_is_as_it_must_be_is_tried_and_nothing_is_changed,
    each_thing_that_is_broken_is_named_with_what_mends_it,
    whether_jobs_may_be_terminated_is_tried_on_one_that_runs,
}

struct Site {
    moto: Moto,
    slack: Slack,
    smtp: Smtp,
    sweeper: Sweeper,
    folder: TempDir,
}

impl Site {
    async fn start(url: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("aws");
        let (moto, slack, smtp) = tokio::join!(Moto::start(&at), Slack::start(), Smtp::start());
        moto.roles(&[Role { arn: ACTS.to_owned(), ..Role::default() }]).await;
        moto.run(REGION, &[Instance::named("m5.large", "align-7")]).await;
        let policy = folder.path().join("policy.toml");
        fs::write(&policy, "[[rule]]\nname = \"anybody\"\napprovers = [\"*\"]\n").unwrap();
        let config = format!(
            "[store]\nurl = \"{url}\"\n[aws]\nregions = [\"{REGION}\", \"eu-central-1\"]\ncloudwatch = true\ncloudtrail = true\n\
             [sweep]\nschedule = \"0 0 0 1 1 *\"\n[approvals]\npolicy_file = {policy:?}\n{slack}\
             [email]\nhost = \"{host}\"\nport = {port}\nusername = \"{user}\"\npassword = \"{password}\"\nfrom = \"sweeper@example.org\"\n\
             to = [\"ops@example.org\"]\ntls = \"starttls\"\nca_file = {ca:?}\n\
             [act]\nscopes = [\"{ACCOUNT}:{REGION}\"]\nroles = [{{ role_arn = \"{ACTS}\" }}]\n",
            slack = slack.config(Hears::Sockets),
            host = smtp.host(),
            port = smtp.port(),
            user = Smtp::USERNAME,
            password = Smtp::PASSWORD,
            ca = smtp.ca_file(),
        );
        let environment = moto.environment();
        let environment: Vec<_> = environment.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let sweeper = Sweeper::prepare(&folder.path().join("sweeper"), &config, &environment);
        fs::set_permissions(sweeper.folder().join("sweeper.toml"), Permissions::from_mode(0o600)).unwrap();
        Self { moto, slack, smtp, sweeper, folder }
    }

    /// Says something else in the configuration.
    fn configure(&self, from: &str, to: &str) {
        let file = self.sweeper.folder().join("sweeper.toml");
        let config = fs::read_to_string(&file).unwrap();
        assert!(config.contains(from), "{config}");
        fs::write(&file, config.replace(from, to)).unwrap();
    }

    /// How it ended, and its report.
    async fn doctor(&self, arguments: &[&str]) -> (i32, Value) {
        let output = self.sweeper.run(&[&["doctor", "--output", "json"], arguments].concat()).await;
        let report = serde_json::from_slice(&output.stdout);
        let report = report.unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
        (output.status.code().unwrap(), report)
    }
}

/// The one check of that name, in its part.
fn check<'a>(report: &'a Value, part: &str, name: &str) -> &'a Value {
    let checks = report["checks"].as_array().unwrap().iter();
    let found: Vec<_> = checks.filter(|check| check["part"] == part && check["name"] == name).collect();
    let [check] = found.as_slice() else { panic!("{part} {name}: {report:#}") };
    check
}

/// The names of what stands so, with their parts.
fn of_status(report: &Value, status: &str) -> Vec<String> {
    let checks = report["checks"].as_array().unwrap().iter().filter(|check| check["status"] == status);
    checks.map(|check| format!("{} {}", check["part"].as_str().unwrap(), check["name"].as_str().unwrap())).collect()
}

/// All actions of the first policy that a page shows.
fn policy(page: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(binaries::checkout().join(page)).unwrap();
    let block = text.split("```json").nth(1).unwrap().split("```").next().unwrap();
    let policy: Value = serde_json::from_str(block).unwrap();
    let actions = policy["Statement"][0]["Action"].as_array().unwrap().clone();
    actions.iter().map(|action| action.as_str().unwrap().to_owned()).collect()
}

async fn what_is_as_it_must_be_is_tried_and_nothing_is_changed(url: String) {
    let mut site = Site::start(&url).await;
    site.sweeper.sweep().await;
    site.sweeper.start_again().await;
    wait::until("the sweeper to have said that it serves", TIMEOUT, || async {
        (check(&site.doctor(&[]).await.1, "service", "serve")["status"] == "ok").then_some(())
    })
    .await;
    let before = site.moto.calls().await.len();
    let (code, report) = site.doctor(&[]).await;
    assert_eq!((code, &report["ok"], of_status(&report, "broken")), (0, &json!(true), vec![]), "{report:#}");
    for (part, name, found) in [
        ("database", "database", "its clock agrees with this host's"),
        ("database", "schema", "of this version"),
        ("service", "serve", "one sweeper serves"),
        ("service", "sweeps", "3 scopes were read whole"),
        ("prices", "price list", "answers in us-east-1"),
        ("approvals", "policy", "1 rules"),
        ("approvals", ACTS, "could stop and start i-"),
        ("approvals", "kill switch", "off"),
        ("slack", "token", "speaks for sweeper in Lab"),
        ("slack", "buttons", "heard over Socket Mode"),
        ("email", "server", "takes the connection and the login"),
    ] {
        let check = check(&report, part, name);
        assert!(check["status"] == "ok" && check["found"].as_str().unwrap().contains(found), "{check:#}");
    }
    // Nobody knows whether what was not tried works.
    let untried = format!("aws {ACCOUNT} elasticloadbalancing:DescribeTargetHealth");
    assert_eq!(
        of_status(&report, "not_checked"),
        [&*untried, "google projects", "slack #waste", "email recipients", "agents nodes"].map(str::to_owned),
        "{report:#}"
    );
    assert_eq!(of_status(&report, "warning"), ["approvals approvers"], "nobody is enrolled: {report:#}");

    // What the pages let it read is what is tried.
    let calls = site.moto.calls().await.split_off(before);
    let service = |service: &str| match service {
        "elbv2" | "elb" => "elasticloadbalancing".to_owned(),
        other => other.to_owned(),
    };
    let called: BTreeSet<String> =
        calls.iter().map(|call| format!("{}:{}", service(&call.service), call.action)).collect();
    let mut expected = policy("README.md");
    // Regions are named here: a role that lacks this is as it must be.
    assert!(expected.remove("ec2:DescribeRegions"));
    expected
        .extend(["cloudwatch:GetMetricData", "cloudtrail:LookupEvents", "ec2:DescribeRouteTables"].map(str::to_owned));
    expected.extend(["ec2:DescribeAddressesAttribute", "ec2:DescribeAddressTransfers"].map(str::to_owned));
    expected.extend(
        ["elasticloadbalancing:DescribeTargetGroups", "elasticloadbalancing:DescribeLoadBalancers"].map(str::to_owned),
    );
    expected.extend(
        ["sts:GetCallerIdentity", "sts:AssumeRole", "ec2:StopInstances", "ec2:StartInstances"].map(str::to_owned),
    );
    assert_eq!(called, expected);
    for call in calls.iter().filter(|call| ["StopInstances", "StartInstances"].contains(&call.action.as_str())) {
        assert_eq!(call.parameters["DryRun"], "true", "{call:?}");
    }
    assert!(site.slack.messages().is_empty() && site.smtp.delivered().is_empty(), "nothing was sent");

    let (code, report) = site.doctor(&["--send-test"]).await;
    assert_eq!((code, of_status(&report, "broken")), (0, vec![]), "{report:#}");
    let [message] = &site.slack.messages()[..] else { panic!("{:#?}", site.slack.messages()) };
    assert!(message["text"].as_str().unwrap().starts_with("This is a test of Cloud Sweeper"), "{message:#}");
    let [mail] = &site.smtp.delivered()[..] else { panic!("{:?}", site.smtp.delivered()) };
    let mail = String::from_utf8_lossy(mail);
    assert!(mail.contains("Subject: [Cloud Sweeper] a test") && mail.contains("To: ops@example.org"), "{mail}");
}

async fn each_thing_that_is_broken_is_named_with_what_mends_it(url: String) {
    let site = Site::start(&url).await;
    site.sweeper.sweep().await;
    let denied = |service: &str, action: &str, code: &str| Fault {
        service: Some(service.to_owned()),
        action: Some(action.to_owned()),
        status: Some(403),
        code: Some(code.to_owned()),
        message: Some("You are not authorized to perform this operation.".to_owned()),
        ..Fault::default()
    };
    site.moto
        .fail(&[
            denied("ec2", "DescribeSnapshots", "UnauthorizedOperation"),
            denied("batch", "ListJobs", "AccessDeniedException"),
            denied("ecs", "DescribeTasks", "AccessDeniedException"),
            denied("pricing", "GetProducts", "AccessDeniedException"),
            denied("ec2", "StopInstances", "UnauthorizedOperation"),
        ])
        .await;
    site.slack.people(&json!({ "U0LAB": "error" }));
    site.configure(Smtp::PASSWORD, "another password");
    fs::write(site.folder.path().join("policy.toml"), "[[rule]]\nname = 1\n").unwrap();
    let closed = site.sweeper.run(&["kill-switch", "on", "--because", "we move"]).await;
    assert!(closed.status.success());
    let (code, report) = site.doctor(&[]).await;
    assert_eq!((code, &report["ok"]), (1, &json!(false)), "{report:#}");
    let broken = [
        ("aws", format!("{ACCOUNT} ec2:DescribeSnapshots"), "UnauthorizedOperation", "policy of the role that reads"),
        ("aws", format!("{ACCOUNT} batch:ListJobs"), "AccessDeniedException", "policy of the role that reads"),
        ("aws", format!("{ACCOUNT} ecs:DescribeTasks"), "AccessDeniedException", "policy of the role that reads"),
        ("aws", ACCOUNT.to_owned(), "actions that read are allowed", ""),
        ("prices", "price list".to_owned(), "pricing:GetProducts: denied", "allow it"),
        ("approvals", "policy".to_owned(), "policy.toml", "nobody may approve anything"),
        ("slack", "token".to_owned(), "user_not_found", ""),
        ("email", "server".to_owned(), "535", ""),
    ];
    for (part, name, found, remedy) in &broken {
        let check = check(&report, part, name);
        assert_eq!(check["status"], "broken", "{check:#}");
        let said = |key: &str, text: &str| check[key].as_str().unwrap().contains(text);
        assert!(said("found", found) && said("remedy", remedy), "{check:#}");
    }
    assert_eq!(of_status(&report, "broken").len(), broken.len(), "{report:#}");
    let warnings = ["service serve", &format!("approvals {ACTS}"), "approvals kill switch"].map(str::to_owned);
    for warning in warnings {
        assert!(of_status(&report, "warning").contains(&warning), "{warning}: {report:#}");
    }

    // For people: the same, without a colour where nobody sees it.
    let output = site.sweeper.run(&["doctor"]).await;
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("BROKEN  UnauthorizedOperation") || text.contains("BROKEN  denied"), "{text}");
    assert!(!text.contains('\u{1b}') && text.contains("8 broken"), "{text}");

    // No credentials, no token: what rests on it is not said to be well.
    site.moto
        .fail(&[denied("sts", "GetCallerIdentity", "AccessDenied"), denied("sts", "AssumeRole", "AccessDenied")])
        .await;
    site.slack.fail_next(&[SlackFault::Error("invalid_auth")]);
    let (code, report) = site.doctor(&[]).await;
    assert_eq!(code, 1, "{report:#}");
    assert_eq!(check(&report, "aws", "own account")["status"], "broken");
    assert!(!of_status(&report, "ok").iter().any(|name| name.contains(ACCOUNT)), "{report:#}");
}

async fn whether_jobs_may_be_terminated_is_tried_on_one_that_runs(url: String) {
    let site = Site::start(&url).await;
    site.sweeper.sweep().await;
    site.configure("[act]\n", "[act]\nterminate_jobs = true\n");
    let name = format!("{ACTS}, jobs");
    let told = async || check(&site.doctor(&[]).await.1, "approvals", &name).clone();
    let none = told().await;
    assert_eq!(
        (&none["status"], &none["found"]),
        (&json!("not_checked"), &json!("no job of AWS Batch runs on which to try it"))
    );
    let put = json!({
        "environments": [environment("own", "MANAGED", "ECS", "EC2")],
        "queues": [queue("own", "own")],
        "jobs": [job("j1", "own", "RUNNING", json!({})), job("j2", "own", "SUCCEEDED", json!({}))],
    });
    site.moto.batch(REGION, put).await;
    let heard = told().await;
    assert!(heard["status"] == "ok" && heard["found"].as_str().unwrap().contains("of the job j1"), "{heard:#}");
    let denied = Fault {
        service: Some("batch".to_owned()),
        action: Some("ListTagsForResource".to_owned()),
        status: Some(403),
        code: Some("AccessDeniedException".to_owned()),
        ..Fault::default()
    };
    site.moto.fail(&[denied]).await;
    let refused = told().await;
    assert!(
        refused["status"] == "warning" && refused["remedy"].as_str().unwrap().contains("act.terminate_jobs"),
        "{refused:#}"
    );
    assert!(site.moto.calls().await.iter().all(|call| call.action != "TerminateJob"), "nothing is done");
}

#[tokio::test]
async fn a_database_that_is_not_there_is_not_made_and_one_that_does_not_answer_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let doctor = async |config: &str, name: &str| {
        let sweeper = Sweeper::prepare(&folder.path().join(name), config, &[]);
        let output = sweeper.run(&["doctor", "--output", "json"]).await;
        (
            output.status.code().unwrap(),
            serde_json::from_slice::<Value>(&output.stdout).unwrap(),
            sweeper.folder().to_owned(),
        )
    };
    let (code, report, at) = doctor("[aws]\nenabled = \"no\"\n", "none").await;
    assert_eq!((code, &check(&report, "database", "database")["status"]), (0, &json!("not_checked")), "{report:#}");
    let is_database = |file: &Path| file.extension().is_some_and(|extension| extension == "db");
    let mut files = fs::read_dir(&at).unwrap().chain(fs::read_dir(at.join("data")).into_iter().flatten());
    assert!(!files.any(|file| is_database(&file.unwrap().path())), "it was made in passing");

    let nobody = format!(
        "[aws]\nenabled = \"no\"\n[store]\nurl = \"postgres://ada:hunter2@127.0.0.1:{}/x\"\n",
        lab::port::free()
    );
    let (code, report, _) = doctor(&nobody, "silent").await;
    let told = check(&report, "database", "database");
    assert_eq!((code, &told["status"]), (1, &json!("broken")), "{report:#}");
    assert!(!report.to_string().contains("hunter2"), "{report:#}");

    // Of another version.
    let server = Postgres::shared().await;
    let url = server.database().await;
    let store = sweeper::store::Store::connect(&url).await.unwrap();
    store.migrate().await.unwrap();
    drop(store);
    let named = format!("[aws]\nenabled = \"no\"\n[store]\nurl = \"{url}\"\n");
    let (code, report, _) = doctor(&named, "current").await;
    assert_eq!((code, &check(&report, "database", "schema")["status"]), (0, &json!("ok")), "{report:#}");
}
