//! Machines cost what Google's catalogue says, by exactly one SKU for each part, and where it cannot be read what it last said.

use lab::gcp::{Fault, Google};
use sea_orm::{ConnectionTrait as _, DbBackend, Statement};
use serde_json::{Value, json};
use sweeper::{
    inventory::{FailureKind, gcp},
    pricing::{Cost, SkuFilter, SkuList},
};

use super::{estate::HERE, fault, options, swept::Site};

const SKUS: &str = "cloudbilling.services.skus.list";
/// 8 cores at $0.040734 and 32 GiB at $0.005458.
pub(super) const IDLE: i64 = 8 * 40_734 + 32 * 5_458;
/// The same of spare capacity.
const SPOT: i64 = 8 * 9_840 + 32 * 1_319;

/// A SKU of Frankfurt in the form that Google has it.
fn sku(id: &str, description: &str, usage_type: &str, (unit, nanos): (&str, u32)) -> Value {
    let (group, base, factor) = if unit == "h" { ("CPU", "s", 3_600_u64) } else { ("RAM", "By.s", 3_865_470_566_400) };
    json!({
        "name": format!("services/6F81-5844-456A/skus/{id}"), "skuId": id, "description": description,
        "category": {"serviceDisplayName": "Compute Engine", "resourceFamily": "Compute", "resourceGroup": group,
                     "usageType": usage_type},
        "serviceRegions": ["europe-west3"],
        "pricingInfo": [{
            "summary": "",
            "pricingExpression": {
                "usageUnit": unit, "displayQuantity": 1, "baseUnit": base, "baseUnitConversionFactor": factor,
                "tieredRates": [{"startUsageAmount": 0, "unitPrice": {"currencyCode": "USD", "units": "0", "nanos": nanos}}],
            },
            "currencyConversionRate": 1, "effectiveTime": "2026-11-26T22:49:22.905126Z",
        }],
        "serviceProviderName": "Google", "geoTaxonomy": {"type": "REGIONAL", "regions": ["europe-west3"]},
    })
}

/// What N2 is billed for there, among what looks like it.
pub(super) fn skus() -> Vec<Value> {
    let (h, gib) = (|nanos| ("h", nanos), |nanos| ("GiBy.h", nanos));
    vec![
        sku("0001-0000-0001", "Commitment v1: N2 Cpu in Frankfurt for 1 Year", "Commit1Yr", h(25_662_000)),
        sku("0001-0000-0002", "N2 Instance Core running in Frankfurt", "OnDemand", h(40_734_000)),
        sku("0001-0000-0003", "N2 Sole Tenancy Instance Core running in Frankfurt", "OnDemand", h(40_734_000)),
        sku("0001-0000-0004", "N2 Custom Instance Core running in Frankfurt", "OnDemand", h(42_771_000)),
        sku("0001-0000-0005", "N2 Instance Ram running in Frankfurt", "OnDemand", gib(5_458_000)),
        sku("0001-0000-0006", "Spot Preemptible N2 Instance Core running in Frankfurt", "Preemptible", h(9_840_000)),
        sku("0001-0000-0007", "Spot Preemptible N2 Instance Ram running in Frankfurt", "Preemptible", gib(1_319_000)),
        sku("0001-0000-0008", "N2D AMD Instance Core running in Frankfurt", "OnDemand", h(35_432_000)),
    ]
}

/// What the price of each machine rests on, as it is kept.
async fn rows(site: &Site) -> Vec<(String, String, i64)> {
    let text = "SELECT capacity_status, source_rows, micro_usd_per_hour FROM prices ORDER BY capacity_status";
    let statement = Statement::from_string(DbBackend::Sqlite, text);
    let rows = site.store.connection().query_all_raw(statement).await.unwrap();
    rows.iter()
        .map(|row| {
            row.try_get_many("", &["capacity_status", "source_rows", "micro_usd_per_hour"].map(str::to_owned)).unwrap()
        })
        .collect()
}

/// What `sweeper doctor` says of the catalogue.
async fn examined(site: &Site) -> String {
    let output = site.sweeper.run(&["doctor", "--output", "json"]).await;
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    let checks = told.as_array().or_else(|| told["checks"].as_array()).unwrap();
    let found: Vec<&Value> = checks.iter().filter(|it| it["part"] == "google" && it["name"] == "prices").collect();
    let [check] = found.as_slice() else { panic!("{told:#}") };
    format!("{}: {}", check["status"].as_str().unwrap(), check["found"].as_str().unwrap())
}

async fn pages(site: &Site) -> usize {
    site.google.calls().await.iter().filter(|call| call.method == SKUS).count()
}

async fn change(site: &Site, statement: &str) {
    site.store.connection().execute_unprepared(statement).await.unwrap();
}

#[tokio::test]
async fn a_machine_costs_what_the_catalogue_says_and_costs_tell_so() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::new(folder.path()).await;
    assert_eq!(pages(&site).await, 1, "the catalogue is read once, for both zones");
    let told = |[core, ram]: [(&str, u32); 2]| {
        let part = |(sku, nanos), amount, unit| format!("{sku}: {amount} × {nanos} billionths of a dollar per {unit}");
        format!("{}; {}; as of 2026-11-26T22:49:22.905126Z", part(core, 8, "h"), part(ram, 32, "GiBy.h"))
    };
    let kept = [
        ("OnDemand".to_owned(), told([("0001-0000-0002", 40_734_000), ("0001-0000-0005", 5_458_000)]), IDLE),
        ("Preemptible".to_owned(), told([("0001-0000-0006", 9_840_000), ("0001-0000-0007", 1_319_000)]), SPOT),
    ];
    assert_eq!(rows(&site).await, kept);
    let (code, report) = site.sweeper.sweep().await;
    assert_eq!((code, pages(&site).await), (0, 0), "what was read today is not asked again");
    let spot = report["blind_spots"].as_array().unwrap().iter().find(|line| line["name"] == "align-2000").unwrap();
    assert_eq!(spot["cost_micro_usd_per_hour"], SPOT);

    let costs = site.sweeper.json(&["costs", "--by", "instance"]).await;
    let of = |number: &str| -> u64 {
        let lines = costs["lines"].as_array().unwrap().iter();
        let its =
            lines.filter(|line| line["of"]["instance"].as_str().is_some_and(|instance| instance.ends_with(number)));
        its.filter_map(|line| line["micro_usd"].as_u64()).sum()
    };
    // The first price that was ever read counts for the day before.
    let hours = |rate: i64| u64::try_from(rate).unwrap() * 23..=u64::try_from(rate).unwrap() * 24;
    assert!(hours(IDLE).contains(&of(":1000")) && hours(SPOT).contains(&of(":2000")), "{costs:#}");

    change(&site, "DELETE FROM prices").await;
    site.google.page_size(3).await;
    assert_eq!(site.sweeper.sweep().await.0, 0);
    assert_eq!((pages(&site).await, rows(&site).await.as_slice()), (3, kept.as_slice()), "a page after the other");
}

#[tokio::test]
async fn where_the_catalogue_cannot_be_read_the_last_price_counts_and_then_none() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::new(folder.path()).await;
    let older = |days: i64| format!("UPDATE prices SET read_unix_ms = read_unix_ms - {}", days * 86_400_000);
    let cost = async || {
        let (code, report) = site.sweeper.sweep().await;
        assert_eq!((code, report["complete"].as_bool()), (0, Some(true)), "no sweep fails for a price: {report}");
        site.idle().await.remove(0).cost
    };
    assert_eq!(examined(&site).await, "ok: the catalogue can be read");
    site.google.fail(&[fault(SKUS, 403, "SERVICE_DISABLED")]).await;
    let broken = examined(&site).await;
    assert!(broken.starts_with("broken: cloudbilling.services.skus.list: denied: SERVICE_DISABLED"), "{broken}");
    change(&site, &older(2)).await;
    assert!(matches!(cost().await, Cost::Known { per_hour, as_of: Some(_) } if per_hour.per_hour().micros() == IDLE));
    change(&site, &older(29)).await;
    let unknown = cost().await;
    let Cost::Unknown { why } = &unknown else { panic!("{unknown:?}") };
    assert!(why.contains("Google's catalogue: denied: SERVICE_DISABLED"), "{why}");

    site.google.fail(&[]).await;
    site.google.skus(&[]).await;
    assert!(matches!(cost().await, Cost::Unknown { why } if why.contains("names no machine's price")));
    let twice = sku("0001-0000-0009", "N2 Instance Core running in Germany", "OnDemand", ("h", 40_734_000));
    site.google.skus(&[skus(), vec![twice]].concat()).await;
    assert!(matches!(cost().await, Cost::Unknown { why } if why.contains("has 2 rows for N2 Instance Core")));
    site.google.skus(&skus()).await;
    assert!(matches!(cost().await, Cost::Known { as_of: None, .. }));
    // A price of two days ago is no answer to a list that has two.
    change(&site, &older(2)).await;
    let twice = sku("0001-0000-0009", "N2 Instance Core running in Germany", "OnDemand", ("h", 40_734_000));
    site.google.skus(&[skus(), vec![twice]].concat()).await;
    assert!(matches!(cost().await, Cost::Unknown { why } if why.contains("has 2 rows for N2 Instance Core")));
    site.google.skus(&skus()).await;
    assert!(matches!(cost().await, Cost::Known { as_of: None, .. }));

    let licensed = json!({"disks": [{"type": "PERSISTENT", "boot": true, "deviceName": "boot",
        "licenses": ["https://www.googleapis.com/compute/v1/projects/windows-cloud/global/licenses/windows-server-2022-dc"]}]});
    site.google.change(HERE, "1000", &licensed).await;
    let unknown = cost().await;
    let Cost::Unknown { why } = &unknown else { panic!("{unknown:?}") };
    assert!(why.contains("the licence `windows-cloud/windows-server-2022-dc` is billed besides"), "{why}");
}

#[tokio::test]
async fn the_catalogue_is_read_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let google = Google::start(folder.path()).await;
    google.skus(&skus()).await;
    google.page_size(2).await;
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let anonymous = || Ok(google_cloud_auth::credentials::anonymous::Builder::new().build());
    let session = gcp::Session::open_with(anonymous, &options(&google)).await.unwrap();
    let filter = SkuFilter::default();
    let read = async || gcp::catalogue(&session, |sku| filter.keep(sku)).await.map(SkuList::from_iter);
    // N2 cores and memory of both ways, custom cores, and N2D's cores.
    assert_eq!(read().await.unwrap().len(), 6);
    let calls = google.calls().await;
    assert!(
        calls.iter().all(|call| call.query["pageSize"] == "5000" && call.query["currencyCode"] == "USD"),
        "{calls:?}"
    );
    assert_eq!(calls.len(), 4);
    assert!(gcp::may_read_catalogue(&session).await.is_ok());

    let third = |fault: Fault| Fault { token: Some("page-4".into()), ..fault };
    google.fail(&[third(Fault { times: Some(1), ..fault(SKUS, 503, "backendError") })]).await;
    assert_eq!(read().await.unwrap().len(), 6, "what passes is waited out");
    google.fail(&[third(fault(SKUS, 403, "forbidden"))]).await;
    assert_eq!(read().await.unwrap_err().kind, FailureKind::Denied);
    google.fail(&[]).await;
    google.repeat_page_tokens(2).await;
    assert_eq!(read().await.unwrap_err().kind, FailureKind::Malformed);
    google.page_size(500).await;
    google.say(SKUS, Some(&json!({"skus": [{"description": "without an id"}]}))).await;
    assert_eq!(read().await.unwrap_err().kind, FailureKind::Malformed);
}
