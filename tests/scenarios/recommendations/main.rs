//! A machine that is larger than it needs to be is told with the cheaper type that would have done, through the real program, on both databases; all others with the
//! reasons why nothing is recommended.
//!
//! What is expected is worked out by hand: [`work`] says how.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod work;

use jiff::{SignedDuration, Timestamp};
use lab::{
    aws::{ACCOUNT, Call, Instance, Moto},
    rollups, sample,
    sweeper::Sweeper,
};
use sea_orm::{ConnectionTrait as _, Statement};
use serde_json::{Value, json};
use sweeper::store::{Store, TokenHash};
use work::Memory;

lab::on_both_databases! {
    an_oversized_machine_is_told_with_the_cheaper_type_and_all_others_with_the_reasons,
}

const REGION: &str = "us-east-1";
const ZONE: &str = "us-east-1a";
/// The names of the machines, how many days each was watched, and what of its memory is told.
const FLEET: [(&str, u64, Memory); 4] = [
    ("oversized", 9, Memory::Steady),
    ("spiky", 9, Memory::SpikeOnceADay),
    ("young", 3, Memory::Steady),
    ("unmeasured", 9, Memory::NotSampled),
];

struct Site {
    moto: Moto,
    sweeper: Sweeper,
    store: Store,
    ids: Vec<String>,
    _folder: tempfile::TempDir,
}

impl Site {
    /// Machines of one type that were started ten days ago, of which nobody has heard.
    async fn new(url: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let moto = Moto::start(folder.path()).await;
        let launched_at = Some(Timestamp::now() - SignedDuration::from_hours(10 * 24));
        let mut machines = FLEET.map(|(name, ..)| Instance { launched_at, ..Instance::named("m5.xlarge", name) });
        machines[0].tags.insert("owner".to_owned(), "lena".to_owned());
        machines.iter_mut().for_each(|machine| {
            (machine.disable_api_stop, machine.disable_api_termination) = (Some(false), Some(false));
        });
        let ids = moto.run(REGION, &machines).await;
        moto.offer(REGION, ZONE, "m5a.large", false).await;
        let config = format!(
            "[store]\nurl = \"{url}\"\nheartbeat_retention = \"40d\"\n[aws]\nenabled = \"yes\"\nregions = [\"{REGION}\"]\n\
             [sweep]\nschedule = \"0 0 0 1 1 *\"\n"
        );
        let environment = moto.environment();
        let environment: Vec<_> = environment.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let sweeper = Sweeper::start(&folder.path().join("sweeper"), &config, &environment).await;
        let store = Store::connect(url).await.unwrap();
        Self { moto, sweeper, store, ids, _folder: folder }
    }

    /// Puts in what the agents of all machines told up to the last full hour.
    async fn tell(&self) {
        for ((_, days, memory), id) in FLEET.iter().zip(&self.ids) {
            let node = format!("aws:{ACCOUNT}:{REGION}:{id}").parse().unwrap();
            let begin = work::last() - SignedDuration::from_hours(24 * i64::try_from(*days).unwrap());
            let joined_at = begin - SignedDuration::from_hours(1);
            self.store.join_node(&sample::join(&node, sample::boot(1)), &TokenHash::of(id), joined_at).await.unwrap();
            sample::store_all(&self.store, &node, sample::boot(1), &work::beats(*days, *memory)).await;
        }
        rollups::make_all(&self.store).await;
    }

    async fn sweep(&self) {
        let (code, report) = self.sweeper.sweep().await;
        assert_eq!(code, 0, "{report:#}");
    }

    /// The calls by this name that asked for a first page.
    async fn called(&self, action: &str) -> Vec<Call> {
        let mut calls = self.moto.calls().await;
        calls.retain(|call| call.action == action && call.parameters["NextToken"].is_null());
        calls
    }

    /// How often the prices of all types were asked for: without one of them as a filter.
    async fn lists_asked(&self) -> usize {
        let calls = self.called("GetProducts").await;
        let of = |call: &&Call| {
            let asked = call.parameters.to_string();
            asked.contains("operatingSystem") && !asked.contains("instanceType")
        };
        calls.iter().filter(of).count()
    }

    /// How often the price of one type of machine was asked for.
    async fn singly_asked(&self) -> usize {
        let calls = self.called("GetProducts").await;
        calls.iter().filter(|call| call.parameters.to_string().contains("instanceType")).count()
    }

    /// As if a day had passed since what zones offer was read.
    async fn forget_the_catalogue(&self) {
        let update = "UPDATE catalogues SET read_unix_ms = read_unix_ms - 86400001";
        self.store.connection().execute_unprepared(update).await.unwrap();
    }

    async fn text(&self, arguments: &[&str]) -> String {
        let output = self.sweeper.run(&[&["recommendations"], arguments].concat()).await;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

/// The reasons and the types that were considered of the machine of this name.
fn refused<'a>(answer: &'a Value, name: &str) -> (Vec<&'a str>, Vec<(&'a str, &'a str)>) {
    let all = answer["not_recommended"].as_array().unwrap();
    let one = all.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("{name} is not in {answer:#}"));
    let reasons = one["reasons"].as_array().unwrap().iter().map(|reason| reason.as_str().unwrap());
    let considered = one["considered"].as_array().unwrap().iter();
    let considered = considered.map(|one| (one["machine_type"].as_str().unwrap(), one["why_not"].as_str().unwrap()));
    (reasons.collect(), considered.collect())
}

fn is_part(texts: &[&str], part: &str) -> bool {
    texts.iter().any(|text| text.contains(part))
}

async fn an_oversized_machine_is_told_with_the_cheaper_type_and_all_others_with_the_reasons(url: String) {
    let site = Site::new(&url).await;
    site.sweep().await;
    assert_eq!(site.called("DescribeInstanceTypeOfferings").await.len(), 0, "nothing was watched for a week");
    assert_eq!(site.lists_asked().await, 0);
    let unwatched = site.sweeper.json(&["recommendations"]).await;
    let (reasons, _) = refused(&unwatched, "oversized");
    for part in
        ["too early to say: 0 days", "memory in use was not measured", "what its zone offers (a sweep reads it once"]
    {
        assert!(is_part(&reasons, part), "`{part}` is not in {reasons:?}");
    }

    site.tell().await;
    for _ in 0..2 {
        site.sweep().await;
    }
    let asked = (site.called("DescribeInstanceTypeOfferings").await.len(), site.lists_asked().await);
    assert_eq!(asked, (1, 1), "once a day");
    let before = site.moto.calls().await.len();
    let answer = site.sweeper.json(&["recommendations"]).await;
    recommended(&answer, &site);
    not_recommended(&answer);
    in_words(&site).await;
    by_the_api(&site, answer).await;
    assert_eq!(site.moto.calls().await.len(), before, "the command asks no provider");

    only_what_is_offered_protected_and_known(&site).await;
}

/// The one machine, with the figures of [`work`].
fn recommended(answer: &Value, site: &Site) {
    let [one] = &answer["recommendations"].as_array().unwrap()[..] else { panic!("{answer:#}") };
    assert_eq!(one["resource"], format!("aws:{ACCOUNT}:{REGION}:{}", site.ids[0]));
    assert_eq!((&one["name"], &one["owner"], &one["rank"]), (&json!("oversized"), &json!("lena"), &json!(1)));
    assert_eq!(one["change"], json!({"change": "rightsize", "from": "m5.xlarge", "to": "m5.large"}), "{one:#}");
    assert_eq!(one["list_micro_usd_per_month"], work::SAVED, "{one:#}");
    assert_eq!(
        (&one["effective_micro_usd_per_month"], &one["confidence"]),
        (&Value::Null, &json!("medium")),
        "{one:#}"
    );
    assert_eq!(one["observed"], json!({"days": 9, "hours": 216, "gaps": 0}), "{one:#}");
    assert_eq!((&answer["saving_micro_usd_per_month"], &answer["is_action"]), (&json!(work::SAVED), &json!(false)));
    let evidence: Vec<_> = one["evidence"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    for line in work::EVIDENCE {
        assert!(evidence.contains(&line), "`{line}` is not in {evidence:#?}");
    }
}

fn not_recommended(answer: &Value) {
    let (reasons, considered) = refused(answer, "spiky");
    assert!(is_part(&reasons, "none of the types that us-east-1a offers costs less and can take over"), "{reasons:?}");
    // What is not offered there, and what has no price or two, is not considered at all.
    let names: Vec<_> = considered.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["t3.micro", "c5.large", "m5.large"], "{considered:?}");
    let (_, why_not) = considered[2];
    assert!(why_not.contains("memory") && why_not.contains(&work::SPIKE.to_string()), "{why_not}");

    let (reasons, _) = refused(answer, "young");
    assert!(is_part(&reasons, "too early to say: 3 days were observed"), "{reasons:?}");
    let (reasons, considered) = refused(answer, "unmeasured");
    assert_eq!((reasons, considered), (vec!["memory in use was not measured"], vec![]));
    assert_eq!(answer["not_recommended"].as_array().unwrap().len(), 3, "{answer:#}");
}

async fn in_words(site: &Site) {
    let text = site.text(&[]).await;
    for part in [
        "1. oversized (aws:123456789012:us-east-1:i-",
        "), of lena\n   m5.xlarge → m5.large, saves $70.08 a month at list prices\n",
        "stop the machine, make it a m5.xlarge again, start it",
        "the machine is stopped for some minutes",
        "Of 3 other machines nothing is recommended",
        "A change of type cannot be approved here yet",
    ] {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
    let text = site.text(&["unmeasured"]).await;
    assert!(text.contains("nothing is recommended\n   memory in use was not measured"), "{text}");
    let text = site.text(&[&site.ids[0]]).await;
    assert!(text.contains("1. oversized") && !text.contains("other machine"), "{text}");
    // Before the first list was read nobody knows what there was.
    for arguments in
        [["recommendations", "nowhere", "--output", "table"], ["recommendations", "oversized", "--at", "2026-01-01"]]
    {
        let output = site.sweeper.run(&arguments).await;
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && error.contains("no list has a machine"), "{error}");
    }
}

/// The same for programs, and only for those who hold the operator token.
async fn by_the_api(site: &Site, mut expected: Value) {
    let (url, client) = (format!("{}/v1/recommendations", site.sweeper.url()), site.sweeper.client());
    let ask = async |query: &[(&str, &str)], token: &str| {
        let answer = client.get(&url).query(query).bearer_auth(token).send().await.unwrap();
        (answer.status().as_u16(), answer.json::<Value>().await.unwrap())
    };
    let operator = site.sweeper.operator_token();
    let (status, mut told) = ask(&[], &operator).await;
    assert_eq!(status, 200, "{told:#}");
    for answer in [&mut told, &mut expected] {
        answer["at"].take();
    }
    assert_eq!(told, expected);
    let (status, told) = ask(&[("resource", "young")], &operator).await;
    assert_eq!((status, told["not_recommended"].as_array().map(Vec::len)), (200, Some(1)), "{told:#}");
    assert_eq!(told["recommendations"], json!([]));
    assert_eq!(ask(&[("resource", "nowhere")], &operator).await.0, 404);
    assert_eq!(ask(&[("at", "yesterday")], &operator).await.0, 422);
    assert_eq!(ask(&[], &site.sweeper.join_token()).await.0, 401);
}

/// The same machine, once its zone offers a still cheaper type; once somebody has protected it; and once its prices are gone from the list.
async fn only_what_is_offered_protected_and_known(site: &Site) {
    site.moto.offer(REGION, ZONE, "m5a.large", true).await;
    let change = async || {
        let answer = site.sweeper.json(&["recommendations", "oversized"]).await;
        answer["recommendations"][0]["change"]["to"].as_str().map(str::to_owned)
    };
    site.sweep().await;
    assert_eq!(change().await.as_deref(), Some("m5.large"), "what was read yesterday counts");
    site.forget_the_catalogue().await;
    site.sweep().await;
    assert_eq!(change().await.as_deref(), Some("m5a.large"));

    let execute = async |statement: &str| {
        site.store.connection().execute_unprepared(statement).await.unwrap();
    };
    // As if the list that was read last had two rows for it, or none.
    execute("UPDATE prices SET read_unix_ms = read_unix_ms - 1 WHERE instance_type = 'm5a.large'").await;
    assert_eq!(change().await.as_deref(), Some("m5.large"), "unknown is never cheapest");
    execute("UPDATE prices SET read_unix_ms = read_unix_ms - 1 WHERE instance_type = 'm5.xlarge'").await;
    let answer = site.sweeper.json(&["recommendations", "oversized"]).await;
    let (reasons, _) = refused(&answer, "oversized");
    assert!(is_part(&reasons, "what it saves is not known: the price list has no row for m5.xlarge"), "{reasons:?}");

    let id = &site.ids[0];
    site.moto.change(REGION, id, &Instance { disable_api_stop: Some(true), ..Instance::default() }).await;
    // Its turn to be asked about has come again.
    execute("UPDATE protection_answers SET read_unix_ms = read_unix_ms - 43200001, queued_unix_ms = queued_unix_ms - 43200001").await;
    site.sweep().await;
    let answer = site.sweeper.json(&["recommendations", id]).await;
    let (reasons, _) = refused(&answer, "oversized");
    assert!(is_part(&reasons, "stop protection"), "{reasons:?}");

    // What is read with a whole list is not asked for by itself as well, and each price says which row it is of.
    execute("DELETE FROM prices").await;
    execute("DELETE FROM price_lists").await;
    let asked = site.singly_asked().await;
    let lists = site.lists_asked().await;
    site.sweep().await;
    assert_eq!((site.singly_asked().await, site.lists_asked().await), (asked, lists + 1));
    let kept = "SELECT COUNT(*) AS prices, COUNT(source_rows) AS traced FROM prices";
    let backend = site.store.connection().get_database_backend();
    let row = site.store.connection().query_one_raw(Statement::from_string(backend, kept)).await.unwrap().unwrap();
    let (prices, traced): (i64, i64) = (row.try_get("", "prices").unwrap(), row.try_get("", "traced").unwrap());
    assert!(prices > 1 && traced == prices, "{traced} of {prices}");
}
