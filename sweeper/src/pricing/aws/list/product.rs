//! One product of the list: of which key its row is, and what its terms say that it costs.

use crate::pricing::{PriceKey, UnitKey, Usage, table::Row};
use model::{HourlyRate, Provider, UnitPrice, Usd};
use serde::Deserialize;
use std::collections::BTreeMap;

use super::{Rows, Wanted};

/// `locationType` of what stands in the customer's own building.
const OUTPOSTS: &str = "AWS Outposts";
const FREE: &str = "its price is zero, so it is billed elsewhere";

/// A product with a key that is asked for. The rest of it is not kept: an offer file has half a million.
pub(super) struct Found {
    sku: String,
    machine: Option<PriceKey>,
    unit: Option<(UnitKey, &'static [&'static str])>,
}

impl Found {
    /// None for what has no key here, or none that is asked for. `sku`: by which name its list has it, if it does not say that itself.
    pub(super) fn of(product: Product, sku: Option<String>, wanted: &Wanted<'_>) -> Option<Self> {
        let machine = machine(&product).filter(|key| (wanted.machines)(key));
        let unit = unit(&product).filter(|(key, _)| (wanted.units)(key));
        let sku = product.sku.or(sku).filter(|_| machine.is_some() || unit.is_some())?;
        Some(Self { sku, machine, unit })
    }

    pub(super) fn sku(&self) -> &str {
        &self.sku
    }

    /// Its rows, by its on-demand terms.
    pub(super) fn rows(self, terms: &[Term], rows: &mut Rows) {
        let Self { sku, machine, unit } = self;
        if let Some(key) = machine {
            rows.machines.push(Row { key, sku: sku.clone(), rate: hourly(terms) });
        }
        if let Some((key, units)) = unit {
            rows.units.push(Row { key, sku, rate: per_unit(terms, units) });
        }
    }
}

/// None for what is not an instance on demand, or lacks a part of the key.
fn machine(product: &Product) -> Option<PriceKey> {
    if !product.is_instance() {
        return None;
    }
    let of = &product.attributes;
    if of.market_option.as_deref().is_some_and(|option| option != "OnDemand") {
        return None;
    }
    Some(PriceKey {
        provider: Provider::Aws,
        region: of.region_code.clone()?,
        instance_type: of.instance_type.clone()?,
        operating_system: of.operating_system.clone()?,
        tenancy: of.tenancy.clone()?,
        license_model: of.license_model.clone()?,
        preinstalled_software: of.preinstalled_software.clone()?,
        capacity_status: of.capacity_status.clone()?,
    })
}

/// The key, and the units that it is billed by; none for what has no key here: an unknown usage, one in the customer's own building, or a row that does not say its region.
fn unit(product: &Product) -> Option<(UnitKey, &'static [&'static str])> {
    let of = &product.attributes;
    let usage = product.usage()?;
    let words = usage.words();
    // A volume's rows say its type, each of its kinds in the same words.
    let type_fits = words.asked_by.0 != "volumeApiName" || of.volume_api_name.as_deref() == Some(words.asked_by.1);
    let is_here = of.service_code.as_deref() == Some(words.service) && of.location_type.as_deref() != Some(OUTPOSTS);
    if !type_fits || !is_here {
        return None;
    }
    Some((UnitKey { provider: Provider::Aws, region: of.region_code.clone()?, usage }, words.units))
}

fn hourly(terms: &[Term]) -> Result<HourlyRate, String> {
    let rate: HourlyRate = amount(terms, &["Hrs"])?.parse().map_err(|error| format!("{error}"))?;
    if rate.per_hour() <= Usd::from_micros(0) {
        return Err(FREE.to_owned());
    }
    Ok(rate)
}

fn per_unit(terms: &[Term], units: &[&str]) -> Result<UnitPrice, String> {
    let price: UnitPrice = amount(terms, units)?.parse().map_err(|error| format!("{error}"))?;
    if price.ten_billionths() == 0 {
        return Err(FREE.to_owned());
    }
    Ok(price)
}

/// The one amount in USD, which is per one of these units.
fn amount<'a>(terms: &'a [Term], units: &[&str]) -> Result<&'a str, String> {
    let [term] = terms else { return Err(format!("it has {} on-demand terms", terms.len())) };
    let mut dimensions = term.price_dimensions.values();
    let (Some(dimension), None) = (dimensions.next(), dimensions.next()) else {
        return Err(format!("its on-demand term has {} prices", term.price_dimensions.len()));
    };
    if !units.contains(&dimension.unit.as_str()) {
        let per = if units == ["Hrs"] { "hour".to_owned() } else { format!("`{}`", units.join("` or `")) };
        return Err(format!("its price is per `{}`, not per {per}", dimension.unit));
    }
    dimension.price_per_unit.get("USD").map(String::as_str).ok_or_else(|| {
        let currencies: Vec<_> = dimension.price_per_unit.keys().map(String::as_str).collect();
        format!("its price is in {}, not in USD", currencies.join(", "))
    })
}

#[derive(Deserialize)]
pub(super) struct Product {
    sku: Option<String>,
    #[serde(rename = "productFamily")]
    family: Option<String>,
    #[serde(default)]
    attributes: Attributes,
}

impl Product {
    fn is_instance(&self) -> bool {
        self.family.as_deref().is_some_and(|family| family.starts_with("Compute Instance"))
    }

    fn usage(&self) -> Option<Usage> {
        self.attributes.usage_type.as_deref().and_then(Usage::of_row)
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Attributes {
    region_code: Option<String>,
    instance_type: Option<String>,
    operating_system: Option<String>,
    tenancy: Option<String>,
    license_model: Option<String>,
    #[serde(rename = "preInstalledSw")]
    preinstalled_software: Option<String>,
    #[serde(rename = "capacitystatus")]
    capacity_status: Option<String>,
    #[serde(rename = "marketoption")]
    market_option: Option<String>,
    #[serde(rename = "servicecode")]
    service_code: Option<String>,
    #[serde(rename = "usagetype")]
    usage_type: Option<String>,
    volume_api_name: Option<String>,
    location_type: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Term {
    price_dimensions: BTreeMap<String, Dimension>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Dimension {
    unit: String,
    price_per_unit: BTreeMap<String, String>,
}
