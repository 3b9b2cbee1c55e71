//! A price list that cannot be read.

use super::{OTHER, REGION, Site};
use jiff::Timestamp;
use lab::aws::{Call, Fault};
use model::plan::{Charge, ChargeCost, Plan, Saving};
use sea_orm::ConnectionTrait as _;
use serde_json::{Value, json};
use sweeper::{findings::Finding, pricing::Cost};

#[tokio::test]
async fn a_price_that_cannot_be_read_today_is_told_as_of_its_day_and_changes_no_plan() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::with_prices(folder.path(), "api").await;
    let swept = async || {
        let (_, report) = site.sweeper.sweep().await;
        assert_eq!(report["findings"][0]["id"], site.finding, "{report:#}");
        site.store.open_findings().await.unwrap().remove(0)
    };
    let is_of_machine =
        |call: &&Call| call.action == "GetProducts" && call.parameters.to_string().contains("instanceType");
    let asked = async || site.moto.calls().await.iter().filter(is_of_machine).count();
    let as_of = |finding: &Finding| match &finding.cost {
        Cost::Known { as_of, .. } => *as_of,
        Cost::Unknown { why } => panic!("{why}"),
    };
    let hash = |finding: &Finding| finding.plan.as_ref().map(|plan| plan.content_hash().clone());
    let planned = swept().await;
    assert!(planned.plan.is_some() && as_of(&planned).is_none(), "{planned:?}");
    assert_eq!(asked().await, 1, "once for all sweeps of a day");

    let days_pass = async |days: i64| {
        let update = format!("UPDATE prices SET read_unix_ms = read_unix_ms - {}", days * 86_400_000);
        site.store.connection().execute_unprepared(&update).await.unwrap();
    };
    days_pass(2).await;
    let denied =
        Fault { service: Some("pricing".into()), code: Some("AccessDeniedException".into()), ..Fault::default() };
    site.moto.fail(std::slice::from_ref(&denied)).await;
    let dated = swept().await;
    assert_eq!((planned.cost.rate(), hash(&planned)), (dated.cost.rate(), hash(&dated)));
    let age_h = Timestamp::now().duration_since(as_of(&dated).unwrap()).as_hours();
    assert!((48..50).contains(&age_h), "{age_h} h old");
    let explained = site.sweeper.run(&["explain", &site.finding]).await;
    let explained = String::from_utf8(explained.stdout).unwrap();
    assert!(explained.contains("it cannot be read today"), "{explained}");
    let arn = format!("arn:aws:ec2:{REGION}:{OTHER}:instance/{}", site.instance);
    assert!(explained.contains(&arn), "{explained}");
    assert_eq!(swept().await.recorded.count, dated.recorded.count, "the same once more is no news");

    site.moto.fail(&[]).await;
    let read_again = swept().await;
    assert_eq!((as_of(&read_again), hash(&read_again)), (None, hash(&planned)));

    days_pass(31).await;
    site.moto.fail(&[denied]).await;
    let unknown = swept().await;
    assert!(
        matches!(&unknown.cost, Cost::Unknown { why } if why.contains("pricing:GetProducts: denied")),
        "{:?}",
        unknown.cost
    );
    assert_ne!(hash(&unknown), hash(&planned), "a saving that is not known any more is told so");
    site.sweeper.replays().await;
}

#[tokio::test]
async fn what_goes_on_to_be_billed_has_its_price_and_one_that_is_missing_makes_no_new_plan() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::with_prices(folder.path(), "api").await;
    let planned = async || {
        let (_, report) = site.sweeper.sweep().await;
        assert_eq!(report["findings"][0]["id"], site.finding, "{report:#}");
        let finding = site.store.open_findings().await.unwrap().remove(0);
        let charges: Vec<_> = finding.plan.iter().flat_map(Plan::charges).collect();
        let volume = charges.iter().find(|(charge, _)| matches!(charge, Charge::Volume { .. })).unwrap().1;
        (finding.plan.clone().unwrap(), volume.unwrap().cost.clone(), finding.recorded.count)
    };
    let change = async |statement: &str| {
        site.store.connection().execute_unprepared(statement).await.unwrap();
    };
    let (plan, volume, _) = planned().await;
    let ChargeCost::Known { per_month, as_of: None } = volume else { panic!("{volume:?}") };
    assert!(per_month.micros() > 0);
    // $0.096 of the machine and $0.005 of the address that it gives back.
    let Saving::Known { per_hour, basis, .. } = &plan.content().net_saving else { panic!("{plan:?}") };
    assert_eq!(per_hour.to_string(), "$0.101/h", "{basis}");
    let explained = async || String::from_utf8(site.sweeper.run(&["explain", &site.finding]).await.stdout).unwrap();
    let told = explained().await;
    assert!(told.contains(&format!(": {} a month", per_month.in_cents())), "{told}");

    let denied =
        Fault { service: Some("pricing".into()), code: Some("AccessDeniedException".into()), ..Fault::default() };
    site.moto.fail(std::slice::from_ref(&denied)).await;
    change(&format!("UPDATE unit_prices SET read_unix_ms = read_unix_ms - {}", 2 * 86_400_000)).await;
    let (dated, volume, recorded) = planned().await;
    assert_eq!(dated.content_hash(), plan.content_hash());
    assert!(
        matches!(volume, ChargeCost::Known { as_of: Some(_), per_month: still } if still == per_month),
        "{volume:?}"
    );
    assert!(explained().await.contains(" a month (price of "));

    change("DELETE FROM unit_prices WHERE usage_type LIKE 'EBS:%'").await;
    let (missing, volume, recorded_later) = planned().await;
    assert_eq!((missing.content_hash(), recorded_later), (plan.content_hash(), recorded), "no new plan, and no news");
    assert!(
        matches!(&volume, ChargeCost::Unknown { why } if why.contains("pricing:GetProducts: denied")),
        "{volume:?}"
    );
    assert!(explained().await.contains("its price is not known: "));

    site.moto.fail(&[]).await;
    let (again, volume, _) = planned().await;
    assert_eq!((again.content_hash(), volume), (plan.content_hash(), ChargeCost::Known { per_month, as_of: None }));
    site.sweeper.replays().await;
}

#[tokio::test]
async fn a_price_is_told_with_the_row_that_says_it_and_compared_with_what_the_list_says_now() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::with_prices(folder.path(), "api").await;
    let asked = async || site.moto.calls().await.iter().filter(|call| call.action == "GetProducts").count();
    let told = async |arguments: &[&str]| {
        let output = site.sweeper.run(&[&["prices"], arguments].concat()).await;
        let text = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).concat();
        (output.status.code().unwrap(), text)
    };
    let as_json = async |arguments: &[&str]| {
        let (code, text) = told(&[arguments, &["--output", "json"]].concat()).await;
        (code, serde_json::from_str::<Value>(&text).unwrap_or_else(|error| panic!("{error}: {text}")))
    };
    let change = async |statement: &str| {
        site.store.connection().execute_unprepared(statement).await.unwrap();
    };
    site.sweeper.sweep().await;

    let before = asked().await;
    let (code, answer) = as_json(&[]).await;
    assert_eq!((code, asked().await), (0, before), "nobody is asked");
    let price = &answer["prices"][0];
    // The list's row of m5.large by its words, not by the sweeper's (tests/lab/aws/price_list.jsonl).
    assert_eq!((&price["source_rows"], &price["micro_usd_per_hour"]), (&json!("LAB0000000000002"), &json!(96_000)));
    let machine = format!("aws:{OTHER}:{REGION}:{}", site.instance);
    assert!(price["machines"].as_array().unwrap().contains(&json!(machine)), "{answer:#}");
    assert!(answer["per_unit"].as_array().is_some_and(|units| !units.is_empty()), "{answer:#}");
    let (code, same) = told(&["check"]).await;
    assert!(code == 0 && same.contains("the same as kept, 0 otherwise."), "{same}");
    assert!(asked().await > before, "the list was asked");

    // What was read a week ago was another price.
    change(
        "UPDATE prices SET micro_usd_per_hour = 95000, effective_unix_ms = effective_unix_ms - 604800000, \
         read_unix_ms = read_unix_ms - 604800000",
    )
    .await;
    let kept = as_json(&[]).await;
    let (code, checked) = as_json(&["check"]).await;
    let of_machine = |checked: &Value| {
        let all = checked["prices"].as_array().unwrap();
        let one = all.iter().find(|one| one["of"].as_str().unwrap().starts_with("m5.large")).unwrap();
        (one["usd_kept"].clone(), one["usd_now"].clone())
    };
    assert_eq!((code, of_machine(&checked)), (1, (json!("0.095"), json!("0.096"))), "{checked:#}");
    assert_eq!(as_json(&[]).await.1["prices"], kept.1["prices"], "a check changes nothing");
    let (code, refreshed) = as_json(&["refresh"]).await;
    assert_eq!((code, of_machine(&refreshed), &refreshed["kept"]), (0, of_machine(&checked), &json!(true)));
    let (code, of_type) = told(&["m5.large"]).await;
    assert!(
        code == 0 && of_type.starts_with("$0.096/h m5.large, Linux, Shared, in us-east-1; 5 machines"),
        "{of_type}"
    );
    assert!(of_type.contains("LAB0000000000002") && of_type.contains("$0.095/h since "), "{of_type}");
    assert_eq!(told(&[&site.instance]).await, (0, of_type.replace("; 5 machines", "; 1 machine")));
    let (code, nothing) = told(&["zz9.none"]).await;
    assert!(code == 1 && nothing.contains("no machine that runs is `zz9.none`"), "{nothing}");

    let denied =
        Fault { service: Some("pricing".into()), code: Some("AccessDeniedException".into()), ..Fault::default() };
    site.moto.fail(&[denied]).await;
    let kept = as_json(&[]).await.1["prices"].clone();
    for command in ["check", "refresh"] {
        let (code, text) = told(&[command]).await;
        assert!(code == 1 && text.contains("not known") && text.contains("pricing:GetProducts: denied"), "{text}");
        assert_eq!(as_json(&[]).await.1["prices"], kept, "what cannot be read takes nothing away");
    }
    for table in ["prices", "unit_prices"] {
        change(&format!("UPDATE {table} SET read_unix_ms = read_unix_ms - {}", 31 * 86_400_000_i64)).await;
    }
    let old = as_json(&[]).await.1;
    assert_eq!(old["per_unit"], json!([]), "{old:#}");
    assert!(old["not_known"][0]["why"].as_str().unwrap().contains("too long ago"), "{old:#}");
    let machines = old["not_known"][0]["machines"].as_array().unwrap();
    assert_eq!((machines.len(), machines.contains(&json!(machine)), &old["prices"]), (5, true, &json!([])));
}

#[tokio::test]
async fn what_a_file_has_no_price_of_any_more_is_not_known_and_a_file_that_is_away_says_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let list = include_str!("../../lab/aws/price_list.jsonl");
    let file = folder.path().join("list.jsonl");
    std::fs::write(&file, list).unwrap();
    let site = Site::with_prices(folder.path(), &format!("file\"\nfile = \"{}", file.display())).await;
    site.sweeper.sweep().await;
    let told = async || {
        let answer = site.sweeper.json(&["prices"]).await;
        let of = |price: &Value| price["micro_usd_per_hour"].as_i64().unwrap();
        let prices: Vec<i64> = answer["prices"].as_array().unwrap().iter().map(of).collect();
        (prices, answer["not_known"][0]["why"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(told().await, (vec![96_000], String::new()));
    let check = async || site.sweeper.run(&["prices", "check"]).await.status.code();
    assert_eq!(check().await, Some(0), "the file is compared with what is kept");
    let others: Vec<&str> = list.lines().filter(|row| !row.contains("LAB0000000000002\"")).collect();
    std::fs::write(&file, others.join("\n")).unwrap();
    let (prices, why) = told().await;
    assert!(prices.is_empty() && why.contains("has no row for m5.large, Linux"), "{prices:?}: {why}");
    assert_eq!(check().await, Some(1));
    std::fs::remove_file(&file).unwrap();
    assert_eq!(told().await, (vec![96_000], String::new()), "as sweeps take it");
}
