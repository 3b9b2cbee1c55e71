//! A price list that cannot be read.

use super::{OTHER, REGION, Site};
use jiff::Timestamp;
use lab::aws::{Call, Fault};
use model::plan::{Charge, ChargeCost, Plan, Saving};
use sea_orm::ConnectionTrait as _;
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
