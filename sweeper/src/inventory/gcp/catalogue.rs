//! The catalogue of what Compute Engine bills, and at which price: Google's own words, typed.
//!
//! It is public and the same for all projects. Reading it needs no permission, only credentials, and the Cloud Billing API switched
//! on in the project that these are of (<https://cloud.google.com/billing/v1/how-tos/catalog-api>). Tens of
//! thousands of SKUs, 5,000 a page; of a page only what is wanted is kept before the next one is asked for.

use jiff::Timestamp;
use model::Provider;
use reqwest::Method;
use serde::{Deserialize, Serialize};

use super::{Session, place::Place, plain};
use crate::inventory::{
    Failure, Scope, Silent,
    reader::{Api, Refused},
};

const SKUS: Api = Api::google("cloudbilling.services.skus.list", "cloudbilling");
/// Compute Engine's number among Google's services.
const COMPUTE_ENGINE: &str = "services/6F81-5844-456A";
/// The most that Google gives.
const PAGE_SIZE: u32 = 5_000;

/// What is billed, as the catalogue has it.
/// <https://cloud.google.com/billing/docs/reference/rest/v1/services.skus>
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sku {
    /// `2922-40C5-B19F`
    pub sku_id: String,
    /// In Google's words: `A2 Instance Core running in Americas`.
    #[serde(default)]
    pub description: String,
    #[serde(default)]
    category: Category,
    /// The regions where it is billed: `europe-west3`.
    #[serde(default)]
    pub service_regions: Vec<String>,
    #[serde(default)]
    pricing_info: Vec<PricingInfo>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Category {
    #[serde(default)]
    usage_type: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PricingInfo {
    pricing_expression: Option<PricingExpression>,
    effective_time: Option<Timestamp>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PricingExpression {
    #[serde(default)]
    usage_unit: String,
    base_unit_conversion_factor: Option<serde_json::Number>,
    #[serde(default)]
    tiered_rates: Vec<TierRate>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TierRate {
    start_usage_amount: Option<serde_json::Number>,
    unit_price: Option<Money>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Money {
    #[serde(default)]
    currency_code: String,
    /// Google leaves out what is nothing.
    #[serde(default)]
    units: Option<String>,
    #[serde(default)]
    nanos: i64,
}

/// The one price of a SKU, in the list's own unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    /// In billionths of a dollar per unit, which is exact: Google's prices are whole billionths.
    pub nano_usd: u64,
    /// `h`, `GiBy.h`, `GiBy.mo`
    pub unit: String,
    /// For so many hours: of a price by the month as many as the list's own factor says, which differs from month to month; else 1.
    pub hours: u64,
    /// As of when, by Google's word: `effectiveTime` of a question about no time is a moment of the last twelve hours, and not since when the price is so.
    pub as_of: Timestamp,
}

impl Sku {
    /// How it is bought: `OnDemand`, `Preemptible`, `Commit1Yr`, …
    #[must_use]
    pub fn usage_type(&self) -> &str {
        &self.category.usage_type
    }

    /// Its one price, without tiers, in dollars.
    ///
    /// # Errors
    /// Why it has none.
    pub fn rate(&self) -> Result<Rate, String> {
        let [pricing] = self.pricing_info.as_slice() else {
            return Err(format!("it has {} prices", self.pricing_info.len()));
        };
        let expression = pricing.pricing_expression.as_ref().ok_or("it has no price")?;
        let [tier] = expression.tiered_rates.as_slice() else {
            return Err(format!("its price has {} tiers", expression.tiered_rates.len()));
        };
        let starts = tier.start_usage_amount.as_ref().map_or_else(|| "0".to_owned(), ToString::to_string);
        if !matches!(starts.as_str(), "0" | "0.0") {
            return Err(format!("its price begins at an amount of {starts}"));
        }
        let price = tier.unit_price.as_ref().ok_or("its tier has no price")?;
        if price.currency_code != "USD" {
            return Err(format!("its price is in `{}`, not in USD", price.currency_code));
        }
        let as_of = pricing.effective_time.ok_or("it does not say as of when its price is")?;
        let hours = expression.hours()?;
        match price.nano_usd() {
            None => Err("its price is no amount".to_owned()),
            Some(0) => Err("its price is zero, so it is billed elsewhere".to_owned()),
            Some(nano_usd) => Ok(Rate { nano_usd, unit: expression.usage_unit.clone(), hours, as_of }),
        }
    }
}

/// Of a GiB, in bytes, for an hour, in seconds.
const GIB_HOUR: u64 = (1 << 30) * 3_600;

impl PricingExpression {
    /// For how many hours the price of a unit is.
    fn hours(&self) -> Result<u64, String> {
        if self.usage_unit != "GiBy.mo" {
            return Ok(1);
        }
        // JSON has it with an exponent.
        let factor = self.base_unit_conversion_factor.as_ref().map(ToString::to_string).unwrap_or_default();
        let seconds: Option<u64> = factor.strip_suffix(".0").unwrap_or(&factor).parse().ok();
        let hours = seconds.filter(|seconds| seconds % GIB_HOUR == 0).map(|seconds| seconds / GIB_HOUR);
        // Of 28 days to 31.
        hours
            .filter(|hours| (672..=744).contains(hours))
            .ok_or_else(|| format!("its month is of `{factor}` byte seconds a GiB, which is no month"))
    }
}

impl Money {
    fn nano_usd(&self) -> Option<u64> {
        let units: u64 = self.units.as_deref().unwrap_or("0").parse().ok()?;
        let nanos = u64::try_from(self.nanos).ok().filter(|nanos| *nanos < 1_000_000_000)?;
        units.checked_mul(1_000_000_000)?.checked_add(nanos)
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    #[serde(default)]
    skus: Vec<Sku>,
    next_page_token: Option<String>,
}

/// What is kept of each SKU of the catalogue.
///
/// # Errors
/// What nothing helped against; half a catalogue is never given.
pub async fn catalogue<T>(session: &Session, keep: impl Fn(Sku) -> Option<T>) -> Result<Vec<T>, Failure> {
    let scope = everywhere();
    let place = Place::new(session, &scope, &Silent);
    let (place, keep) = (&place, &keep);
    let read = place.pages(SKUS, |token| async move {
        let Page { skus, next_page_token } = page(place, PAGE_SIZE, token).await?;
        Ok((skus.into_iter().filter_map(keep).collect(), next_page_token))
    });
    read.await
}

/// Asks for one SKU of any kind: whether the catalogue may be read at all.
///
/// # Errors
/// Why not.
pub async fn may_read_catalogue(session: &Session) -> Result<(), Failure> {
    let scope = everywhere();
    let place = Place::new(session, &scope, &Silent);
    let place = &place;
    let read = place.pages(SKUS, |_| async move { Ok((page(place, 1, None).await?.skus, None)) });
    read.await.map(drop)
}

async fn page(place: &Place<'_>, size: u32, token: Option<String>) -> Result<Page, Refused> {
    let url = format!("{}/v1/{COMPUTE_ENGINE}/skus", place.options().billing());
    let mut query = vec![("currencyCode", "USD".to_owned()), ("pageSize", size.to_string())];
    query.extend(token.map(|token| ("pageToken", token)));
    let page: Option<Page> = plain::call(place, &Method::GET, &url, &query).await?;
    let mut page = page.ok_or_else(|| Refused::malformed("the catalogue of Compute Engine is not there"))?;
    // Google's last page has an empty token.
    page.next_page_token = page.next_page_token.filter(|token| !token.is_empty());
    Ok(page)
}

/// It is of no project.
fn everywhere() -> Scope {
    Scope { provider: Provider::Gcp, account: String::new(), region: Scope::EVERYWHERE.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn sku(change: impl FnOnce(&mut Value)) -> Result<Rate, String> {
        let mut record = json!({
            "name": "services/6F81-5844-456A/skus/2922-40C5-B19F", "skuId": "2922-40C5-B19F",
            "description": "A2 Instance Core running in Americas", "serviceRegions": ["us-central1"],
            "category": {"resourceFamily": "Compute", "resourceGroup": "CPU", "usageType": "OnDemand"},
            "pricingInfo": [{"effectiveTime": "2023-03-24T10:52:50.681Z", "pricingExpression": {
                "usageUnit": "h", "displayQuantity": 1, "baseUnitConversionFactor": 3600,
                "tieredRates": [{"startUsageAmount": 0,
                                 "unitPrice": {"currencyCode": "USD", "units": "0", "nanos": 31_611_000}}]}}],
        });
        change(&mut record);
        serde_json::from_value::<Sku>(record).expect("a SKU").rate()
    }

    fn tier(record: &mut Value) -> &mut Value {
        &mut record["pricingInfo"][0]["pricingExpression"]["tieredRates"][0]
    }

    #[test]
    fn a_price_is_its_units_and_its_billionths() {
        let rate = sku(|_| {}).expect("a price");
        assert_eq!((rate.nano_usd, rate.unit.as_str()), (31_611_000, "h"));
        assert_eq!((rate.hours, rate.as_of), (1, "2023-03-24T10:52:50.681Z".parse().expect("a time")));
        let of = |price: Value| sku(|record| tier(record)["unitPrice"] = price).map(|rate| rate.nano_usd);
        assert_eq!(of(json!({"currencyCode": "USD", "units": "2", "nanos": 933_908_000})), Ok(2_933_908_000));
        assert_eq!(of(json!({"currencyCode": "USD", "units": "3"})), Ok(3_000_000_000));
        assert_eq!(of(json!({"currencyCode": "USD", "nanos": 1})), Ok(1));
        assert_eq!(
            sku(|record| tier(record)["startUsageAmount"] = json!(0.0)).map(|rate| rate.nano_usd),
            Ok(31_611_000)
        );
    }

    #[test]
    fn what_is_not_one_price_in_dollars_is_none() {
        let of = |price: Value| sku(|record| tier(record)["unitPrice"] = price).expect_err("no price");
        assert!(of(json!({"currencyCode": "IDR", "units": "508", "nanos": 934_997_455})).contains("`IDR`"));
        assert!(of(json!({"currencyCode": "USD", "units": "0", "nanos": 0})).contains("zero"));
        for wrong in [
            json!({"currencyCode": "USD", "units": "-1"}),
            json!({"currencyCode": "USD", "nanos": -1}),
            json!({"currencyCode": "USD", "nanos": 1_000_000_000}),
            json!({"currencyCode": "USD", "units": "99999999999"}),
        ] {
            assert_eq!(of(wrong), "its price is no amount");
        }
        assert!(
            sku(|record| tier(record)["startUsageAmount"] = json!(720))
                .expect_err("none")
                .contains("begins at an amount of 720")
        );
        let tiers = |record: &mut Value| {
            let again = tier(record).clone();
            record["pricingInfo"][0]["pricingExpression"]["tieredRates"].as_array_mut().expect("tiers").push(again);
        };
        assert!(sku(tiers).expect_err("none").contains("2 tiers"));
        assert!(sku(|record| record["pricingInfo"] = json!([])).expect_err("none").contains("0 prices"));
        let undated =
            |record: &mut Value| drop(record["pricingInfo"][0].as_object_mut().expect("one").remove("effectiveTime"));
        assert!(sku(undated).expect_err("none").contains("as of when"));
    }

    #[test]
    fn a_month_has_as_many_hours_as_the_list_says() {
        let of = |factor: Value| {
            let monthly = |record: &mut Value| {
                let expression = &mut record["pricingInfo"][0]["pricingExpression"];
                (expression["usageUnit"], expression["baseUnitConversionFactor"]) = (json!("GiBy.mo"), factor);
            };
            sku(monthly).map(|rate| rate.hours)
        };
        // As recorded of months of 31 days, and in the form of a whole number.
        assert_eq!(of(json!(2.875_910_101_401_6e15)), Ok(744));
        assert_eq!(of(json!(2_821_793_513_472_000_u64)), Ok(730));
        for none in [json!(3_600), json!(2_821_793_513_472_001_u64), json!(1e300), json!(-1), Value::Null] {
            assert!(of(none).is_err_and(|why| why.contains("which is no month")));
        }
    }
}
