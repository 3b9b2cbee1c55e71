//! What machines cost is split over what used them, to the micro-dollar, through the real program, on both databases: in a table, in JSON, in CSV and over HTTP.
//!
//! The figures are worked out by hand: [`work`] says how.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod days;
mod focus;
mod work;

use days::days_that_are_over_are_added_up_and_questions_are_answered_from_them;
use jiff::{SignedDuration, Timestamp};
use lab::{
    aws::{ACCOUNT, Instance, Moto},
    rollups, sample,
    sweeper::Sweeper,
};
use serde_json::Value;
use std::collections::BTreeMap;
use sweeper::store::{Store, TokenHash};

lab::on_both_databases! {
    every_micro_dollar_is_told_once_by_any_dimension_and_in_any_form,
    days_that_are_over_are_added_up_and_questions_are_answered_from_them,
}

const REGION: &str = "us-east-1";
/// A tag that would be a formula in a spreadsheet.
const TEAM: &str = "=cmd|'/C calc'!A0,\"x\"";

/// The begin of the first of three hours the last of which has been over for an hour: by then its rollup is made.
fn begin() -> Timestamp {
    let hour = Timestamp::now().as_second() / 3_600 * 3_600;
    Timestamp::from_second(hour - 4 * 3_600).unwrap()
}

fn config(url: &str) -> String {
    format!(
        "[store]\nurl = \"{url}\"\n[aws]\nenabled = \"yes\"\nregions = [\"{REGION}\"]\n[sweep]\nschedule = \"0 0 0 1 1 *\"\n\
         [costs]\naccount_teams = {{ \"{ACCOUNT}\" = \"platform\" }}\n"
    )
}

/// One machine that an agent watches for an hour and a half, one without an agent, one that was started in mid-hour, and one whose price nobody knows.
async fn fleet(moto: &Moto, begin: Timestamp) -> Vec<String> {
    let before = begin - SignedDuration::from_hours(5);
    let of = |instance_type: &str, name: &str, at| Instance {
        launched_at: Some(at),
        ..Instance::named(instance_type, name)
    };
    let mut watched = of("m5.large", "align-1", before);
    watched.tags.insert("Team".into(), TEAM.into());
    let spot = Instance { lifecycle: Some("spot".into()), ..of("m5.large", "align-4", before) };
    let late = of("t3.micro", "align-3", begin + SignedDuration::from_mins(90));
    moto.run(REGION, &[watched, of("m5.large", "align-2", before), late, spot]).await
}

/// Puts in what the agent of the first machine told.
async fn tell(url: &str, instance: &str, begin: Timestamp) {
    let store = Store::connect(url).await.unwrap();
    let node = format!("aws:{ACCOUNT}:{REGION}:{instance}").parse().unwrap();
    let request = sample::join(&node, sample::boot(1));
    store.join_node(&request, &TokenHash::of("a token"), Timestamp::now()).await.unwrap();
    store.store_heartbeats(&sample::checked(&work::envelope(&node, begin)), Timestamp::now()).await.unwrap();
    rollups::make_all(&store).await;
}

/// Amounts by value and kind.
fn lines(answer: &Value, dimension: &str) -> BTreeMap<(String, String), u64> {
    let line = |line: &Value| {
        let value = line["of"][dimension].as_str().unwrap_or("-").to_owned();
        Some(((value, line["kind"].as_str()?.to_owned()), line["micro_usd"].as_u64()?))
    };
    answer["lines"].as_array().unwrap().iter().filter_map(line).collect()
}

fn expected(of: &[(&str, &str, u64)]) -> BTreeMap<(String, String), u64> {
    of.iter().map(|(value, kind, micros)| (((*value).to_owned(), (*kind).to_owned()), *micros)).collect()
}

async fn every_micro_dollar_is_told_once_by_any_dimension_and_in_any_form(url: String) {
    let folder = tempfile::tempdir().unwrap();
    let moto = Moto::start(folder.path()).await;
    let begin = begin();
    let ids = fleet(&moto, begin).await;
    let environment = moto.environment();
    let environment: Vec<_> = environment.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    let sweeper = Sweeper::start(&folder.path().join("sweeper"), &config(&url), &environment).await;
    assert_eq!(sweeper.sweep().await.0, 0);
    tell(&url, &ids[0], begin).await;

    let (from, to) = (begin.to_string(), (begin + SignedDuration::from_hours(3)).to_string());
    let ask = |by: &'static str| ["costs", "--by", by, "--from", &from, "--to", &to].map(str::to_owned);
    let json = async |by: &'static str| {
        let asked = ask(by);
        sweeper.json(&asked.iter().map(String::as_str).collect::<Vec<_>>()).await
    };

    // By tool: what the two tools used, what nobody used, and what nobody saw.
    let tools = json("tool").await;
    assert_eq!((&tools["bill_micro_usd"], &tools["not_known_seconds"]), (&591_600.into(), &10_800.into()), "{tools:#}");
    let of_tools = expected(&[
        ("bwa", "used", work::BWA),
        (work::HOSTILE_TOOL, "used", work::SAMTOOLS),
        ("-", "used", work::RUN + work::OUTSIDE),
        ("-", "system", work::SYSTEM),
        ("-", "unowned", work::UNOWNED),
        ("-", "idle", work::IDLE),
        ("-", "unattributed", work::UNATTRIBUTED + 288_000 + 15_600),
    ]);
    assert_eq!(lines(&tools, "tool"), of_tools, "{tools:#}");
    let whys: Vec<_> = tools["reasons"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["why"].as_str().unwrap(), one["machines"].as_u64().unwrap(), one["seconds"].as_u64().unwrap()))
        .collect();
    for why in [
        ("no agent has joined from the machine", 2, 3 * 3_600 + 5_400),
        (
            "no rollup of the hour is kept: the agent of the machine reported nothing, or it is past store.rollup_retention",
            1,
            3_600,
        ),
        ("no agent reported in this part of the hour", 1, 1_800),
        ("a Spot instance does not cost the on-demand price", 1, 10_800),
    ] {
        assert!(whys.contains(&why), "{why:?} in {whys:?}");
    }

    // By pipeline, task and machine, by team and account: the same money.
    let pipelines = json("pipeline").await;
    let of_pipeline = lines(&pipelines, "pipeline")[&("rnaseq".to_owned(), "used".to_owned())];
    assert_eq!(of_pipeline, work::BWA + work::SAMTOOLS + work::RUN);
    assert_eq!(
        lines(&json("task").await, "task")[&("align".to_owned(), "used".to_owned())],
        work::BWA + work::SAMTOOLS
    );
    let teams = lines(&json("team").await, "team");
    let of_team =
        |team: &str| teams.iter().filter(|((value, _), _)| value == team).map(|(_, micros)| micros).sum::<u64>();
    assert_eq!((of_team(TEAM), of_team("platform")), (288_000, 288_000 + 15_600));
    for by in ["instance", "run,day", "workload", "user", "account,region", "provider", "instance,tool"] {
        let answer = json(by).await;
        let sum: u64 = answer["lines"].as_array().unwrap().iter().filter_map(|line| line["micro_usd"].as_u64()).sum();
        assert_eq!(sum, 591_600, "{by}: {answer:#}");
    }
    let workloads = lines(&json("workload").await, "workload");
    assert_eq!(workloads[&(work::HOUSEKEEPING.to_owned(), "system".to_owned())], work::SYSTEM_OF_WORKLOADS);

    in_other_forms(&sweeper, &ask("tool"), &ask("team"), &tools).await;
    focus::charges_come_to_the_bill(&sweeper, folder.path(), (&from, &to)).await;
    refusals(&sweeper).await;
}

/// The table, CSV and HTTP tell the same.
async fn in_other_forms(sweeper: &Sweeper, by_tool: &[String], by_team: &[String], tools: &Value) {
    let run = async |asked: &[String], more: &[&str]| {
        let arguments: Vec<&str> = asked.iter().map(String::as_str).chain(more.iter().copied()).collect();
        let output = sweeper.run(&arguments).await;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let table = run(by_tool, &[]).await;
    assert!(table.contains("$0.5916 for 7.500 machine hours = "), "{table}");
    assert!(table.contains("what 3.000 machine hours more cost") && !table.contains('█'), "{table}");
    assert!(table.contains("(unattributed)") && table.contains("bwa"), "{table}");

    let csv = run(by_tool, &["--output", "csv"]).await;
    assert!(csv.starts_with("tool,kind,usd,hours_not_known\n"), "{csv}");
    assert!(
        csv.contains(&format!("\nbwa,used,0.{:06},\n", work::BWA)) && csv.contains("\n,not_known,,3.000\n"),
        "{csv}"
    );
    // Quotes are doubled, and neither `-` nor `=` begins a cell.
    assert!(csv.contains("\n\"'-samtools,\"\"x\"\"\",used,"), "{csv}");
    let csv = run(by_team, &["--output", "csv"]).await;
    assert!(csv.contains("\n\"'=cmd|'/C calc'!A0,\"\"x\"\"\","), "{csv}");

    let client = sweeper.client();
    let from_to = [("by", "tool"), ("from", &by_tool[4]), ("to", &by_tool[6])];
    let url = format!("{}/v1/costs", sweeper.url());
    let answer = client.get(&url).query(&from_to).bearer_auth(sweeper.operator_token()).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    let text = answer.text().await.unwrap();
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), *tools);
    let denied = client.get(&url).query(&from_to).bearer_auth(sweeper.join_token()).send().await.unwrap();
    assert_eq!(denied.status(), 401);
    let wrong = client.get(&url).query(&[("by", "colour")]).bearer_auth(sweeper.operator_token()).send().await.unwrap();
    assert_eq!(wrong.status(), 422);
    assert!(wrong.text().await.unwrap().contains("`colour` is no dimension"));
}

async fn refusals(sweeper: &Sweeper) {
    for (arguments, code, why) in [
        (vec!["--by", "colour"], 2, "`colour` is no dimension"),
        (vec!["--by", "workload,tool"], 2, "two views of the same work"),
        (vec!["--from", "2026-11-17", "--to", "2026-11-17"], 1, "nothing lies between"),
    ] {
        let output = sweeper.run(&[vec!["costs"], arguments].concat()).await;
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(code) && error.contains(why), "{error}");
    }
}
