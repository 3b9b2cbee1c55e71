//! What machines cost as charges of FOCUS 1.2 (<https://focus.finops.org/focus-specification/v1-2/>): for each machine, each day (UTC) and each price a row.
//!
//! Charges are those of a provider's bill at list prices: nothing is split over what used the machine, and together they come to the bill of `sweeper costs` to the micro-dollar. Time of which nobody knows
//! what it cost has no row, since no row may be without an amount: [`Told`] says how much of it there is, and why.

use super::{
    HOUR, Question, Settings,
    machines::{self, Machine},
};
use crate::{
    inventory::Instance,
    pricing::PriceKey,
    store::{Store, StoreError},
};
use costs::{Billed, Place, apportion};
use jiff::{Timestamp, civil::Date, tz::TimeZone};
use model::{HourlyRate, Provider, ResourceKey};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

const DAY_S: i64 = 86_400;
/// Nobody says it, or it does not apply.
const NULL: &str = "";

/// What was told, and what could not be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// How many charges.
    pub charges: u64,
    /// What they come to.
    pub micro_usd: u64,
    /// Seconds of machines whose cost is not known.
    pub not_known_seconds: u64,
    /// These by why, in words.
    pub not_known: BTreeMap<Arc<str>, u64>,
}

/// A column, and what it says of a charge.
type Column = (&'static str, fn(&Charge<'_>) -> String);

/// All columns that a dataset must have of which something may be known here, by name.
pub const COLUMNS: &[Column] = &[
    ("AvailabilityZone", |of| of.instance.and_then(|instance| instance.availability_zone.clone()).unwrap_or_default()),
    ("BilledCost", usd),
    // Who pays for the account is not known: the account stands for it.
    ("BillingAccountId", account),
    ("BillingAccountName", |_| NULL.into()),
    ("BillingAccountType", |of| words(of).account.into()),
    ("BillingCurrency", |_| "USD".into()),
    ("BillingPeriodEnd", |of| time(month(of, 1))),
    ("BillingPeriodStart", |of| time(month(of, 0))),
    ("ChargeCategory", |_| "Usage".into()),
    ("ChargeClass", |_| NULL.into()),
    ("ChargeDescription", |of| match &of.instance_type {
        Some(instance_type) => format!("{instance_type} in {}, on demand", of.key.location),
        None => "a machine at its configured price".into(),
    }),
    ("ChargeFrequency", |_| "Usage-Based".into()),
    ("ChargePeriodEnd", |of| time(of.until_s)),
    ("ChargePeriodStart", |of| time(of.from_s)),
    ("ConsumedQuantity", hours),
    ("ConsumedUnit", |_| "Hours".into()),
    ("ContractedCost", usd),
    ("ContractedUnitPrice", unit_price),
    ("EffectiveCost", usd),
    // No invoice is known.
    ("InvoiceId", |_| NULL.into()),
    ("InvoiceIssuerName", |of| words(of).provider.into()),
    ("ListCost", usd),
    ("ListUnitPrice", unit_price),
    ("PricingCategory", |_| "Standard".into()),
    ("PricingCurrency", |_| "USD".into()),
    ("PricingCurrencyContractedUnitPrice", unit_price),
    ("PricingCurrencyEffectiveCost", usd),
    ("PricingCurrencyListUnitPrice", unit_price),
    ("PricingQuantity", hours),
    ("PricingUnit", |_| "Hours".into()),
    ("ProviderName", |of| words(of).provider.into()),
    ("PublisherName", |of| words(of).provider.into()),
    ("RegionId", |of| of.key.location.clone()),
    ("RegionName", |of| of.key.location.clone()),
    ("ResourceId", |of| of.key.id.clone()),
    ("ResourceName", |of| of.instance.and_then(|instance| instance.name.clone()).unwrap_or_else(|| of.key.id.clone())),
    ("ResourceType", |_| "Instance".into()),
    ("ServiceCategory", |_| "Compute".into()),
    ("ServiceName", |of| words(of).service.into()),
    ("ServiceSubcategory", |_| "Virtual Machines".into()),
    ("SkuId", |of| of.source_rows.clone()),
    ("SkuMeter", |_| "Instance hours".into()),
    ("SkuPriceDetails", |of| {
        of.instance_type
            .as_ref()
            .map_or_else(String::new, |name| serde_json::json!({ "InstanceType": name }).to_string())
    }),
    ("SkuPriceId", |of| of.source_rows.clone()),
    ("SubAccountId", account),
    // What people call it is not known.
    ("SubAccountName", account),
    ("SubAccountType", |of| words(of).account.into()),
    ("Tags", |of| {
        let tags = of.instance.map(|instance| &instance.tags);
        serde_json::to_string(&tags.cloned().unwrap_or_default()).unwrap_or_default()
    }),
    ("x_InstanceType", |of| of.instance_type.clone().unwrap_or_default()),
    ("x_ResourceKey", |of| of.key.to_string()),
    ("x_Team", |of| of.place.and_then(|place| place.team.as_deref()).unwrap_or_default().to_owned()),
    ("x_User", |of| of.place.and_then(|place| place.user.as_deref()).unwrap_or_default().to_owned()),
];

/// What a machine cost within a day at one price.
pub struct Charge<'a> {
    key: &'a ResourceKey,
    /// As it was in the last of its time.
    instance: Option<&'a Instance>,
    place: Option<&'a Place>,
    instance_type: Option<String>,
    /// Of the list that says the price, or the setting.
    source_rows: String,
    per_hour: HourlyRate,
    /// Begin and end of the day, or of the part of it that is asked about.
    from_s: i64,
    until_s: i64,
    billed_s: u64,
    micros: u64,
}

/// What a provider calls itself and its own.
struct Words {
    provider: &'static str,
    service: &'static str,
    account: &'static str,
}

fn words(of: &Charge<'_>) -> Words {
    match of.key.provider {
        Provider::Aws => Words { provider: "AWS", service: "Amazon Elastic Compute Cloud", account: "Account" },
        Provider::Gcp => Words { provider: "Google Cloud", service: "Compute Engine", account: "Project" },
        Provider::OnPrem => Words { provider: "on premises", service: "machines", account: "Site" },
    }
}

fn account(of: &Charge<'_>) -> String {
    if of.key.account.is_empty() { "on premises".into() } else { of.key.account.clone() }
}

fn usd(of: &Charge<'_>) -> String {
    decimal(of.micros)
}

fn unit_price(of: &Charge<'_>) -> String {
    decimal(of.per_hour.per_hour().micros().unsigned_abs())
}

/// `0.104167`: dollars with all six decimals.
pub(crate) fn decimal(micros: u64) -> String {
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

/// Nine decimals: the seconds can be told from them.
fn hours(of: &Charge<'_>) -> String {
    let billionths = u128::from(of.billed_s) * 1_000_000_000 / 3_600;
    format!("{}.{:09}", billionths / 1_000_000_000, billionths % 1_000_000_000)
}

/// The begin of its month, or of one behind it.
fn month(of: &Charge<'_>, behind: i32) -> i64 {
    let first: Date = day_of(of.from_s).first_of_month();
    let month = first.checked_add(jiff::Span::new().months(behind)).unwrap_or(Date::MAX);
    month.to_zoned(TimeZone::UTC).map_or(i64::MAX, |begin| begin.timestamp().as_second())
}

fn day_of(second: i64) -> Date {
    Timestamp::from_second(second).unwrap_or(Timestamp::MIN).to_zoned(TimeZone::UTC).date()
}

/// `2026-11-27T00:00:00Z`
fn time(second: i64) -> String {
    Timestamp::from_second(second).unwrap_or(Timestamp::MAX).to_string()
}

/// Tells each charge of the time that is asked about, machine by machine.
///
/// # Errors
/// If the database does not answer.
pub async fn charges(
    store: &Store,
    settings: &Settings,
    question: &Question,
    mut tell: impl FnMut(&Charge<'_>),
) -> Result<Told, StoreError> {
    let (from_s, to_s) = (question.from.as_second(), question.to.as_second());
    let now_s = store.now().await?.as_second();
    let mut rows = HashMap::<(PriceKey, i64), String>::new();
    for kept in store.kept_prices(settings.source.as_str()).await? {
        let micros = kept.known.price.per_hour().micros();
        rows.extend(kept.source_rows.map(|source_rows| ((kept.key, micros), source_rows)));
    }
    let mut told = Told::default();
    let mut listed = HashSet::new();
    let mut take = |machine: &Machine, instances: &[Option<Instance>]| {
        of_machine(machine, instances, &rows, (from_s, to_s), &mut told, &mut tell);
    };
    let nodes = machines::each(store, settings, (from_s, now_s), |machine, instances| {
        take(&machine, instances);
        listed.insert(machine.key);
    })
    .await?;
    nodes.values().filter(|node| !listed.contains(&node.key)).for_each(|node| take(node, &[]));
    Ok(told)
}

/// A part of a machine's day at one price.
#[derive(Default)]
struct Sum {
    billed_s: u64,
    micros: u64,
    version: usize,
}

fn of_machine(
    machine: &Machine,
    instances: &[Option<Instance>],
    rows: &HashMap<(PriceKey, i64), String>,
    (from_s, to_s): (i64, i64),
    told: &mut Told,
    tell: &mut impl FnMut(&Charge<'_>),
) {
    let instance = |version: usize| instances.get(version).and_then(Option::as_ref);
    let mut sums = BTreeMap::<(i64, Option<&str>, i64), Sum>::new();
    for hour in machine.hours(from_s, to_s) {
        for (why, seconds) in hour.not_known {
            told.not_known_seconds += seconds;
            *told.not_known.entry(why).or_default() += seconds;
        }
        // An hour's bill is rounded once; at several prices, each has its part of it.
        let end_s = (hour.start_s + HOUR.as_secs()).min(to_s);
        let mut parts = Vec::new();
        for stretch in machine.within(hour.start_s.max(from_s), end_s) {
            if let Billed::At(per_hour) = stretch.billed {
                let seconds = (stretch.until_s - stretch.from_s).unsigned_abs();
                parts.push((per_hour.per_hour().micros(), seconds, stretch.version));
            }
        }
        let weight =
            |(micros, seconds, _): &(i64, u64, usize)| u128::from(micros.unsigned_abs()) * u128::from(*seconds);
        let micros = apportion(hour.micros, &parts.iter().map(weight).collect::<Vec<_>>());
        for ((per_hour, seconds, version), micros) in parts.into_iter().zip(micros) {
            let instance_type = instance(version).and_then(|instance| instance.instance_type.as_deref());
            let sum = sums.entry((hour.start_s.div_euclid(DAY_S), instance_type, per_hour)).or_default();
            sum.billed_s += seconds;
            sum.micros = sum.micros.saturating_add(micros);
            sum.version = sum.version.max(version);
        }
    }
    // Whatever has a price has a key that this version knows: the price was found by it.
    let Ok(key) = machine.key.parse::<ResourceKey>() else { return };
    for ((day, instance_type, per_hour), Sum { billed_s, micros, version }) in sums {
        let instance = instance(version);
        let price_key = instance.and_then(|instance| PriceKey::of(instance).ok());
        let source_rows = match price_key {
            Some(key) => rows.get(&(key.clone(), per_hour)).cloned().unwrap_or_else(|| key.to_string()),
            None => "onprem.hourly_usd".to_owned(),
        };
        told.charges += 1;
        told.micro_usd = told.micro_usd.saturating_add(micros);
        tell(&Charge {
            key: &key,
            instance,
            place: machine.place(version),
            instance_type: instance_type.map(str::to_owned),
            source_rows,
            per_hour: HourlyRate::from_micros(per_hour),
            from_s: (day * DAY_S).max(from_s),
            until_s: ((day + 1) * DAY_S).min(to_s),
            billed_s,
            micros,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn charge<'a>(key: &'a ResourceKey, (from_s, until_s): (i64, i64), billed_s: u64, micros: u64) -> Charge<'a> {
        Charge {
            key,
            instance: None,
            place: None,
            instance_type: None,
            source_rows: "onprem.hourly_usd".to_owned(),
            per_hour: HourlyRate::from_micros(1_500_000),
            from_s,
            until_s,
            billed_s,
            micros,
        }
    }

    fn told(charge: &Charge<'_>) -> BTreeMap<&'static str, String> {
        COLUMNS.iter().map(|(name, of)| (*name, of(charge))).collect()
    }

    #[test]
    fn a_charge_lies_in_its_month_and_its_amounts_have_all_decimals() {
        let key = "host:rack-7".parse().expect("a key");
        let at = |text: &str| text.parse::<Timestamp>().expect("a time").as_second();
        let day = (at("2026-12-31T00:00:00Z"), at("2027-01-01T00:00:00Z"));
        let told = told(&charge(&key, day, 3_601, 1_500_417));
        for (column, expected) in [
            ("BillingPeriodStart", "2026-12-01T00:00:00Z"),
            ("BillingPeriodEnd", "2027-01-01T00:00:00Z"),
            ("ChargePeriodStart", "2026-12-31T00:00:00Z"),
            ("ChargePeriodEnd", "2027-01-01T00:00:00Z"),
            ("BilledCost", "1.500417"),
            ("ListUnitPrice", "1.500000"),
            ("PricingQuantity", "1.000277777"),
            ("Tags", "{}"),
            ("SkuId", "onprem.hourly_usd"),
            ("ResourceId", "rack-7"),
            ("BillingAccountId", "on premises"),
        ] {
            assert_eq!(told[column], expected, "{column}");
        }
    }

    #[test]
    fn no_column_is_told_twice_and_own_ones_say_that_they_are() {
        let names: HashSet<_> = COLUMNS.iter().map(|(name, _)| *name).collect();
        assert_eq!(names.len(), COLUMNS.len());
        assert!(COLUMNS.is_sorted_by_key(|(name, _)| name.to_lowercase()), "by name, so that files can be compared");
    }
}
