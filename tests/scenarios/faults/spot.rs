//! What Spot instances cost: the price of their own zone that is in effect, and nothing that was not told.

use super::REGION;
use jiff::{SignedDuration, Timestamp};
use lab::{
    aws::{ACCOUNT, Fault, Instance, Moto, SpotChange},
    sweeper::Sweeper,
};
use sea_orm::ConnectionTrait as _;
use serde_json::Value;
use sweeper::store::Store;

const ZONE: &str = "us-east-1a";

lab::on_both_databases! {
    a_spot_instance_costs_what_its_zone_costs_now,
}

/// What each machine of a report costs by the hour in micro-dollars, or why that is not known, by its name.
fn costs(report: &Value) -> Vec<(String, Result<i64, String>)> {
    let machines = report["blind_spots"].as_array().unwrap().iter();
    let cost = |machine: &Value| match machine["cost_micro_usd_per_hour"].as_i64() {
        Some(micros) => Ok(micros),
        None => Err(machine["cost_unknown_because"].as_str().unwrap().to_owned()),
    };
    let mut costs: Vec<_> = machines.map(|one| (one["name"].as_str().unwrap().to_owned(), cost(one))).collect();
    costs.sort();
    costs
}

async fn a_spot_instance_costs_what_its_zone_costs_now(url: String) {
    let folder = tempfile::tempdir().unwrap();
    let moto = Moto::start(&folder.path().join("aws")).await;
    let spot = |instance_type: &str, name: &str| Instance {
        lifecycle: Some("spot".to_owned()),
        ..Instance::named(instance_type, name)
    };
    let windows =
        Instance { platform_details: Some("Windows with SQL Server Enterprise".to_owned()), ..spot("m5.large", "c") };
    moto.run(REGION, &[spot("m5.large", "a"), spot("c5.large", "b"), windows, Instance::named("m5.large", "d")]).await;
    let ago = |minutes: i64| Timestamp::now() - SignedDuration::from_mins(minutes);
    let change = |zone: &str, minutes: i64, price: &str| SpotChange::new(zone, "m5.large", ago(minutes), price);
    let ahead = SpotChange::new(ZONE, "m5.large", ago(-60), "0.000002");
    let of_windows = SpotChange { product: "Windows".to_owned(), ..change(ZONE, 1, "0.000003") };
    let changes = [
        change(ZONE, 300, "0.041100"),
        change(ZONE, 20, "0.042300"),
        change("us-east-1b", 10, "0.000001"),
        ahead,
        of_windows,
    ];
    moto.spot_prices(ACCOUNT, REGION, &changes).await;
    moto.spot_prices("111122223333", REGION, &[change(ZONE, 5, "0.000004")]).await;
    let config = format!("[store]\nurl = \"{url}\"\n[aws]\nregions = [\"{REGION}\"]\n");
    let environment = moto.environment();
    let environment: Vec<_> = environment.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    let sweeper = Sweeper::prepare(&folder.path().join("sweeper"), &config, &environment);
    let named = |name: &str, cost: Result<i64, &str>| (name.to_owned(), cost.map_err(str::to_owned));
    let no_row = "EC2 tells no Spot price of c5.large, Linux/UNIX, in us-east-1a";
    let sql = "its platform `Windows with SQL Server Enterprise` is not in the table of known ones";
    let now = |micros: Result<i64, &str>| {
        [named("a", micros), named("b", Err(no_row)), named("c", Err(sql)), named("d", Ok(96_000))]
    };
    let (code, report) = sweeper.sweep().await;
    assert_eq!((code, costs(&report)), (0, now(Ok(42_300)).to_vec()), "{report:#}");
    assert_eq!(report["overview"]["running"]["priced"], 2, "{report:#}");

    // Within the hour nobody is asked again of what is known.
    moto.spot_prices(ACCOUNT, REGION, &[change(ZONE, 0, "0.050000")]).await;
    assert_eq!(costs(&sweeper.sweep().await.1), now(Ok(42_300)));
    let store = Store::connect(&url).await.unwrap();
    let hours_pass = async |hours: i64| {
        let update = format!("UPDATE spot_prices SET read_unix_ms = read_unix_ms - {}", hours * 3_600_000);
        store.connection().execute_unprepared(&update).await.unwrap();
    };
    hours_pass(2).await;
    assert_eq!(costs(&sweeper.sweep().await.1), now(Ok(50_000)), "the last change, an hour later");

    // What cannot be read is told as of the last time, for a day. It makes no sweep incomplete.
    let action = Some("DescribeSpotPriceHistory".to_owned());
    let denied = Fault { action, code: Some("UnauthorizedOperation".to_owned()), ..Fault::default() };
    moto.fail(&[denied]).await;
    hours_pass(2).await;
    let (code, report) = sweeper.sweep().await;
    let [(_, a), (_, b), ..] = &costs(&report)[..] else { panic!("{report:#}") };
    assert_eq!((code, a), (0, &Ok(50_000)), "{report:#}");
    assert!(b.as_ref().unwrap_err().contains("ec2:DescribeSpotPriceHistory: denied"), "{report:#}");
    hours_pass(24).await;
    let unknown = costs(&sweeper.sweep().await.1);
    assert!(unknown[0].1.as_ref().unwrap_err().contains("ec2:DescribeSpotPriceHistory: denied"), "{unknown:?}");

    // Two prices of one moment are none, though another one was read two hours ago.
    moto.fail(&[]).await;
    moto.spot_prices(ACCOUNT, REGION, &[change(ZONE, 0, "0.060000")]).await;
    assert_eq!(costs(&sweeper.sweep().await.1), now(Ok(60_000)));
    // EC2's clock may be a moment ahead.
    let moment = ago(-1);
    let two = ["0.061000", "0.062000"].map(|price| SpotChange::new(ZONE, "m5.large", moment, price));
    moto.spot_prices(ACCOUNT, REGION, &two).await;
    hours_pass(2).await;
    let none = "EC2 tells no Spot price of m5.large, Linux/UNIX, in us-east-1a";
    assert_eq!(costs(&sweeper.sweep().await.1), now(Err(none)));
}
