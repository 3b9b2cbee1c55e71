//! A person says yes to exactly one plan, once, as far as the policy lets them; who said what is in a log of which nothing can be changed unseen.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod alone;
mod log;

use jiff::{SignedDuration, Timestamp};
use lab::{
    aws::{ACCOUNT, Instance, Moto},
    sample,
    sweeper::Sweeper,
};
use sea_orm::{ConnectionTrait as _, Statement};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};
use sweeper::store::Store;
use tempfile::TempDir;

lab::on_both_databases! {
    a_yes_is_one_persons_to_one_plan_once,
    a_no_ends_a_plan_whoever_approved_it,
    two_people_must_approve_where_the_policy_says_so,
    who_may_not_approve_is_told_why,
    a_plan_that_is_over_cannot_be_approved,
    what_somebody_tags_afterwards_gives_nobody_a_say,
    of_many_answers_at_once_each_persons_counts_once,
}

const REGION: &str = "us-east-1";
/// Half-minutes of heartbeats: an hour.
const BEATS: u64 = 120;
/// Whoever is enrolled may approve alone.
const ANYBODY: &str = "[[rule]]\nname = \"anybody\"\napprovers = [\"*\"]\n";

/// A sweeper over one idle machine with a plan.
struct Site {
    sweeper: Sweeper,
    store: Store,
    moto: Moto,
    machine: String,
    folder: TempDir,
}

/// How a command ended, and what it said.
#[derive(Debug)]
struct Ended {
    code: i32,
    said: String,
    error: String,
}

impl Site {
    async fn start(url: &str, policy: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("policy.toml"), policy).unwrap();
        let moto = Moto::start(&folder.path().join("aws")).await;
        let mut machine = Instance::named("m5.large", "align-7");
        machine.tags.insert("team".to_owned(), "genomics".to_owned());
        // Started long before, so that the hour of heartbeats is of this boot.
        machine.launched_at = Some(Timestamp::now() - SignedDuration::from_hours(30));
        let machine = moto.run(REGION, &[machine]).await.remove(0);
        let config = format!(
            "[store]\nurl = \"{url}\"\n[aws]\nregions = [\"{REGION}\"]\n[approvals]\npolicy_file = {:?}\n",
            folder.path().join("policy.toml")
        );
        let environment = moto.environment();
        let environment: Vec<_> = environment.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let sweeper = Sweeper::prepare(&folder.path().join("sweeper"), &config, &environment);
        sweeper.sweep().await;
        let store = Store::connect(url).await.unwrap();
        let site = Self { sweeper, store, moto, machine, folder };
        sample::report(&site.store, &site.key(), sample::boot(1), 1..=BEATS, sample::quiet).await;
        site.sweeper.sweep().await;
        site.sweeper.sweep().await;
        site
    }

    fn key(&self) -> heartbeat::NodeId {
        format!("aws:{ACCOUNT}:{REGION}:{}", self.machine).parse().unwrap()
    }

    async fn run(&self, arguments: &[&str]) -> Ended {
        let output = self.sweeper.run(arguments).await;
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Ended { code: output.status.code().unwrap(), said: text(output.stdout), error: text(output.stderr) }
    }

    /// The only plan.
    async fn plan(&self) -> Value {
        let plans = self.sweeper.json(&["plans"]).await;
        let [plan] = plans.as_array().unwrap().as_slice() else { panic!("{plans:#}") };
        plan.clone()
    }

    async fn hash(&self) -> String {
        self.plan().await["plan"].as_str().unwrap().to_owned()
    }

    /// Enrols somebody, and makes them a token.
    async fn enrol(&self, name: &str) -> PathBuf {
        let enrolled = self.run(&["approvers", "add", name]).await;
        assert_eq!(enrolled.code, 0, "{enrolled:?}");
        let token = self.run(&["approvers", "token", name]).await;
        assert!(token.code == 0 && token.said.starts_with("csa_"), "{token:?}");
        let file = self.folder.path().join(name);
        fs::write(&file, token.said).unwrap();
        file
    }

    /// Somebody answers with their token.
    async fn answer(&self, answer: &str, plan: &str, token: &Path) -> Ended {
        self.run(&[answer, plan, "--token-file", token.to_str().unwrap()]).await
    }

    async fn change(&self, statement: &str) {
        self.store.connection().execute_unprepared(statement).await.unwrap();
    }
}

fn refused(ended: &Ended, words: &str) {
    assert!(ended.code == 1 && ended.error.contains(words), "`{words}` is not in {ended:?}");
}

async fn a_yes_is_one_persons_to_one_plan_once(url: String) {
    let site = Site::start(&url, ANYBODY).await;
    let plan = site.plan().await;
    assert_eq!([&plan["answers"], &plan["saving"]], [&json!([]), &json!("$0.101/h")], "{plan:#}");
    let hash = plan["plan"].as_str().unwrap();
    let explained = site.run(&["explain", plan["finding"].as_str().unwrap()]).await.said;
    for part in [
        "Plan: Stop the idle m5.large instance",
        &format!("aws ec2 stop-instances --region {REGION} --instance-ids {} --dry-run", site.machine),
        &format!("aws ec2 start-instances --region {REGION} --instance-ids {}", site.machine),
        hash,
    ] {
        assert!(explained.contains(part), "`{part}` is not in:\n{explained}");
    }
    refused(&site.run(&["approve", hash]).await, "who are you?");
    let token = site.enrol("ada").await;
    let approved = site.answer("approve", &hash[..12], &token).await;
    let expected = format!(
        "Approved: {}. A dry run is all that is done: acting is not switched on for {ACCOUNT}:{REGION} (`act.scopes`).\n",
        plan["title"].as_str().unwrap()
    );
    assert_eq!((approved.code, approved.said.as_str()), (0, expected.as_str()), "{approved:?}");
    refused(&site.answer("approve", hash, &token).await, "you have said so already");
    // Nothing happens by it.
    site.sweeper.sweep().await;
    assert!(site.moto.calls().await.iter().all(|call| !call.action.starts_with("Stop")), "no machine is stopped");
    let plan = site.plan().await;
    assert_eq!(plan["plan"], hash, "a sweep that sees the same keeps the plan");
    let answers = plan["answers"].as_array().unwrap();
    assert_eq!([&answers[0]["answer"], &answers[0]["approver"], &answers[0]["way"]], ["approve", "ada", "shell"]);
    let table = site.run(&["plans"]).await.said;
    assert!(table.contains(&hash[..12]) && table.contains("yes of ada"), "{table}");
    // A plan that is made anew is another one.
    let mut finding: Value =
        serde_json::from_str(&site.text("SELECT plan AS told FROM findings WHERE plan IS NOT NULL").await).unwrap();
    finding["valid_until"] = json!("2026-01-01T00:00:00Z");
    site.write("UPDATE findings SET plan = $1 WHERE plan IS NOT NULL", &finding.to_string()).await;
    site.sweeper.sweep().await;
    let anew = site.plan().await;
    assert_ne!(anew["plan"], hash);
    assert_eq!(anew["answers"], json!([]), "a yes to the plan before is none to this one");
    refused(&site.answer("approve", hash, &site.enrol("grace").await).await, "another plan has taken its place");
}

impl Site {
    async fn text(&self, sql: &str) -> String {
        let connection = self.store.connection();
        let row = connection.query_one_raw(Statement::from_string(connection.get_database_backend(), sql)).await;
        row.unwrap().unwrap().try_get("", "told").unwrap()
    }

    async fn of_plans(&self, column: &str) -> Value {
        serde_json::from_str(&self.text(&format!("SELECT {column} AS told FROM plans")).await).unwrap()
    }

    async fn write(&self, sql: &str, text: &str) {
        let connection = self.store.connection();
        let backend = connection.get_database_backend();
        connection.execute_raw(Statement::from_sql_and_values(backend, sql, [text.into()])).await.unwrap();
    }
}

async fn a_no_ends_a_plan_whoever_approved_it(url: String) {
    let site = Site::start(&url, ANYBODY).await;
    let hash = site.hash().await;
    let (ada, grace) = (site.enrol("ada").await, site.enrol("grace").await);
    assert_eq!(site.answer("approve", &hash, &ada).await.code, 0);
    let because = "Monday's benchmark needs it";
    let denied = site.run(&["deny", &hash, "--because", because, "--token-file", grace.to_str().unwrap()]).await;
    assert!(denied.code == 0 && denied.said.starts_with("Denied: Stop the idle"), "{denied:?}");
    let mary = site.enrol("mary").await;
    refused(&site.answer("approve", &hash, &mary).await, "grace has said no to it");
    let answers = site.plan().await["answers"].clone();
    assert_eq!([&answers[1]["answer"], &answers[1]["because"]], [&json!("deny"), &json!(because)]);
    let log = site.sweeper.json(&["audit"]).await;
    let said = log.as_array().unwrap().iter().find(|entry| entry["did"] == "denied").unwrap();
    assert_eq!(said["detail"]["policy_sha256"], sweeper::audit::hash(ANYBODY), "under which policy");
    assert_eq!(
        [&said["who"], &said["on"], &said["detail"]["because"]],
        [&json!("grace"), &json!(hash), &json!(because)]
    );
}

async fn two_people_must_approve_where_the_policy_says_so(url: String) {
    let site = Site::start(&url, &format!("{ANYBODY}needs = 2\n")).await;
    let hash = site.hash().await;
    let (ada, grace) = (site.enrol("ada").await, site.enrol("grace").await);
    let first = site.answer("approve", &hash, &ada).await;
    assert!(first.said.starts_with("Approved by 1 of 2: "), "{first:?}");
    // A second token is no second person.
    let again = site.folder.path().join("again");
    fs::write(&again, site.run(&["approvers", "token", "ada"]).await.said).unwrap();
    refused(&site.answer("approve", &hash, &again).await, "you have said so already");
    let second = site.answer("approve", &hash, &grace).await;
    assert!(second.said.starts_with("Approved: "), "{second:?}");
    // Who was taken off the list does not count any more, and is asked anew when they come back.
    assert_eq!(site.run(&["approvers", "remove", "ada"]).await.code, 0);
    refused(&site.answer("approve", &hash, &ada).await, "the token is nobody's");
    assert_eq!(site.run(&["approvers", "remove", "grace"]).await.code, 0);
    let (ada, mary) = (site.enrol("ada").await, site.enrol("mary").await);
    let third = site.answer("approve", &hash, &mary).await;
    assert!(third.said.starts_with("Approved by 1 of 2: "), "mary alone: {third:?}");
    let fourth = site.answer("approve", &hash, &ada).await;
    assert!(fourth.said.starts_with("Approved: "), "mary, and ada anew: {fourth:?}");
}

async fn who_may_not_approve_is_told_why(url: String) {
    let policy = "[[rule]]\nname = \"genomics\"\napprovers = [\"ada\"]\ntags = { team = \"genomics\" }\n";
    let mut site = Site::start(&url, policy).await;
    let hash = site.hash().await;
    let (ada, mallory) = (site.enrol("ada").await, site.enrol("mallory").await);
    refused(&site.answer("approve", &hash, &mallory).await, "the rule `genomics` does not name mallory");
    let tested = site.run(&["policy", "test", "--as", "mallory", "--plan", &hash]).await;
    assert_eq!(tested.said, "mallory may not approve it: the rule `genomics` does not name mallory.\n");
    let tested = site.run(&["policy", "test", "--as", "ada", "--plan", &hash]).await;
    assert_eq!(tested.said, "ada may approve it, by the rule `genomics`; nobody else needs to.\n");
    let nobody = site.sweeper.json(&["policy", "test", "--as", "nobody", "--plan", &hash]).await;
    assert_eq!([&nobody["allowed"], &nobody["why_not"]], [&json!(false), &json!("nobody is not enrolled")]);
    refused(&site.answer("approve", "abc", &ada).await, "there is no plan `abc`");
    refused(&site.answer("approve", &"0".repeat(64), &ada).await, "there is no plan");
    refused(&site.answer("approve", "%%%%", &ada).await, "there is no plan `%%%%`");
    let forged = site.folder.path().join("forged");
    fs::write(&forged, format!("csa_{}", "0".repeat(64))).unwrap();
    refused(&site.answer("approve", &hash, &forged).await, "the token is nobody's");
    // Neither do those by which machines join, and operators read.
    site.sweeper.start_again().await;
    let [fleet, operator] = [site.sweeper.join_token(), site.sweeper.operator_token()];
    site.sweeper.stop().await;
    for other in [fleet, operator, site.run(&["nodes", "token"]).await.said] {
        fs::write(&forged, other).unwrap();
        refused(&site.answer("approve", &hash, &forged).await, "the token is nobody's");
    }
    site.change("UPDATE approver_tokens SET expires_unix_ms = 1 WHERE approver = 'ada'").await;
    refused(&site.answer("approve", &hash, &ada).await, "has expired");
    assert_eq!(site.plan().await["answers"], json!([]));
    // Without a policy nobody may, and one that cannot be read lets nobody.
    let ada = site.folder.path().join("ada-again");
    fs::write(&ada, site.run(&["approvers", "token", "ada"]).await.said).unwrap();
    for (policy, words) in [("", "no rule of the policy is about this plan"), ("rules = []", "cannot be read")] {
        fs::write(site.folder.path().join("policy.toml"), policy).unwrap();
        refused(&site.answer("approve", &hash, &ada).await, words);
    }
    assert_eq!(site.plan().await["answers"], json!([]));
}

async fn a_plan_that_is_over_cannot_be_approved(url: String) {
    let site = Site::start(&url, ANYBODY).await;
    let (hash, ada) = (site.hash().await, site.enrol("ada").await);
    // It is too late.
    let mut kept = site.of_plans("content").await;
    let valid_until = kept["valid_until"].clone();
    kept["valid_until"] = json!("2026-01-01T00:00:00Z");
    site.write("UPDATE plans SET content = $1", &kept.to_string()).await;
    refused(&site.answer("approve", &hash, &ada).await, "the plan was valid until 2026-01-01T00:00:00Z");
    // It is another one than was sealed.
    kept["valid_until"] = valid_until;
    let resource = kept["resource"].clone();
    kept["resource"] = json!(format!("aws:{ACCOUNT}:{REGION}:i-00000000000000000"));
    site.write("UPDATE plans SET content = $1", &kept.to_string()).await;
    refused(&site.answer("approve", &hash, &ada).await, "its content hashes to");
    kept["resource"] = resource;
    site.write("UPDATE plans SET content = $1", &kept.to_string()).await;
    // Work is seen.
    sample::report(&site.store, &site.key(), sample::boot(1), BEATS + 1..=BEATS + 1, sample::worked).await;
    site.sweeper.sweep().await;
    assert_eq!(site.sweeper.json(&["plans"]).await, json!([]));
    // Nobody has approved it, and it would have been wrong.
    let savings = site.sweeper.json(&["savings"]).await;
    let shadow = json!({ "worked": 1, "rested": 0, "too_early": 0, "not_known": 0 });
    assert_eq!(savings["plans"]["shadow"], shadow, "{savings:#}");
    let told = site.run(&["savings"]).await.said;
    assert!(
        told.contains("Of 1 resource with a plan that nobody approved, 1 worked or was used again within a day"),
        "{told}"
    );
    refused(&site.answer("approve", &hash, &ada).await, "that has ended, or another plan has taken its place");
}

async fn what_somebody_tags_afterwards_gives_nobody_a_say(url: String) {
    let policy = "[[rule]]\nname = \"physics\"\napprovers = [\"mallory\"]\ntags = { team = \"physics\" }\n\
                  [[rule]]\nname = \"others\"\napprovers = [\"ada\"]\n";
    let site = Site::start(&url, policy).await;
    let (mallory, ada) = (site.enrol("mallory").await, site.enrol("ada").await);
    let call = [
        ("Action", "CreateTags"),
        ("ResourceId.1", site.machine.as_str()),
        ("Tag.1.Key", "team"),
        ("Tag.1.Value", "physics"),
    ];
    site.moto.query("ec2", REGION, &call).await;
    site.sweeper.sweep().await;
    let hash = site.hash().await;
    refused(&site.answer("approve", &hash, &mallory).await, "the rule `others` does not name mallory");
    let approved = site.answer("approve", &hash, &ada).await;
    assert_eq!(approved.code, 0, "{approved:?}");
}

async fn of_many_answers_at_once_each_persons_counts_once(url: String) {
    let site = Site::start(&url, &format!("{ANYBODY}needs = 3\n")).await;
    let hash = site.hash().await;
    let tokens = [site.enrol("ada").await, site.enrol("grace").await];
    let all = (0..12).map(|number| site.answer("approve", &hash, &tokens[number % 2]));
    let ended = futures::future::join_all(all).await;
    let mut counted: BTreeMap<&str, usize> = BTreeMap::new();
    for one in &ended {
        let said = if one.code == 0 { &one.said } else { &one.error };
        let word = ["Approved by 1 of 3", "Approved by 2 of 3", "you have said so already"];
        let word = word.into_iter().find(|word| said.contains(word)).unwrap_or_else(|| panic!("{one:?}"));
        *counted.entry(word).or_default() += 1;
    }
    let expected =
        BTreeMap::from([("Approved by 1 of 3", 1), ("Approved by 2 of 3", 1), ("you have said so already", 10)]);
    assert_eq!(counted, expected);
    let verified = site.sweeper.json(&["audit", "verify"]).await;
    // Two people, each enrolled, with a token and one yes.
    assert_eq!([&verified["whole"], &verified["entries"]], [&json!(true), &json!(6)]);
}
