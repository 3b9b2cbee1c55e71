//! Reads the AWS price list, in all three shapes in which people have it.
//!
//! - one product per line, as in the elements of `GetProducts`' `PriceList`;
//! - `GetProducts`' whole answer, as `aws pricing get-products` prints it;
//! - a region's offer file (`…/offers/v1.0/aws/AmazonEC2/current/eu-central-1/index.json`,
//!   read as a stream: only what has a key here, and its on-demand terms, are kept); addresses are in that of `AmazonVPC`.
//!
//! Several may follow each other. Rows of other products, reserved terms and market options other than on demand are passed over. A row that has a key
//! but states no single price in USD, per the unit of that key, is kept as what it is: a row without a price.

use model::{HourlyRate, Provider, UnitPrice, Usd};
use std::{collections::BTreeMap, fmt, io};

use serde::{
    Deserialize,
    de::{Deserializer, MapAccess, Visitor},
};

use crate::pricing::{PriceKey, UnitKey, Usage, table::Row};

/// Why a text is not a price list.
#[derive(Debug, thiserror::Error)]
pub(in crate::pricing) enum ListError {
    /// The text is not JSON, or has other types than a price list has.
    #[error("not a price list: {0}")]
    Json(#[from] serde_json::Error),
    /// It has none of the known shapes.
    #[error("document {0} is neither a product, nor an answer of GetProducts, nor a region's offer file")]
    Shape(usize),
}

/// The rows of a price list.
#[derive(Clone, Debug, Default)]
pub(in crate::pricing) struct Rows {
    /// What machines cost by the hour.
    pub(in crate::pricing) machines: Vec<Row>,
    /// What is billed by its amount.
    pub(in crate::pricing) units: Vec<Row<UnitKey, UnitPrice>>,
}

impl Rows {
    pub(in crate::pricing) fn extend(&mut self, other: Self) {
        self.machines.extend(other.machines);
        self.units.extend(other.units);
    }

    fn take(&mut self, product: &Product, terms: &[Term]) {
        self.machines.extend(machine(product, terms));
        self.units.extend(unit(product, terms));
    }
}

/// Reads a price list.
pub(in crate::pricing) fn read(reader: impl io::Read) -> Result<Rows, ListError> {
    let mut rows = Rows::default();
    for (n, document) in serde_json::Deserializer::from_reader(reader).into_iter::<Document>().enumerate() {
        collect(document?, n + 1, &mut rows)?;
    }
    Ok(rows)
}

fn collect(document: Document, number: usize, rows: &mut Rows) -> Result<(), ListError> {
    match document {
        Document { product: Some(product), terms, .. } => {
            let terms = terms.on_demand.into_values().filter_map(|term| match term {
                TermOrTerms::Term(term) => Some(term),
                TermOrTerms::BySku(_) => None,
            });
            rows.take(&product, &terms.collect::<Vec<_>>());
        }
        Document { products: Some(products), terms, .. } => {
            let mut by_sku = terms.on_demand;
            for product in products.0 {
                let terms = match product.sku.as_ref().and_then(|sku| by_sku.remove(sku)) {
                    Some(TermOrTerms::BySku(terms)) => terms.into_values().collect(),
                    Some(TermOrTerms::Term(_)) | None => Vec::new(),
                };
                rows.take(&product, &terms);
            }
        }
        Document { price_list: Some(elements), .. } => {
            for element in elements {
                match element {
                    Element::Text(text) => collect(serde_json::from_str(&text)?, number, rows)?,
                    Element::Document(document) => collect(*document, number, rows)?,
                }
            }
        }
        Document { .. } => return Err(ListError::Shape(number)),
    }
    Ok(())
}

/// None for what is not an instance on demand, or lacks a part of the key.
fn machine(product: &Product, terms: &[Term]) -> Option<Row> {
    if !product.is_instance() {
        return None;
    }
    let of = &product.attributes;
    if of.market_option.as_deref().is_some_and(|option| option != "OnDemand") {
        return None;
    }
    Some(Row {
        key: PriceKey {
            provider: Provider::Aws,
            region: of.region_code.clone()?,
            instance_type: of.instance_type.clone()?,
            operating_system: of.operating_system.clone()?,
            tenancy: of.tenancy.clone()?,
            license_model: of.license_model.clone()?,
            preinstalled_software: of.preinstalled_software.clone()?,
            capacity_status: of.capacity_status.clone()?,
        },
        sku: product.sku.clone()?,
        rate: hourly(terms),
    })
}

/// None for what has no key here: an unknown usage, one in the customer's own building, or a row that does not say its region.
fn unit(product: &Product, terms: &[Term]) -> Option<Row<UnitKey, UnitPrice>> {
    let of = &product.attributes;
    let usage = product.usage()?;
    let words = usage.words();
    // A volume's rows say its type, each of its kinds in the same words.
    let type_fits = words.asked_by.0 != "volumeApiName" || of.volume_api_name.as_deref() == Some(words.asked_by.1);
    let is_here = of.service_code.as_deref() == Some(words.service) && of.location_type.as_deref() != Some(OUTPOSTS);
    if !type_fits || !is_here {
        return None;
    }
    Some(Row {
        key: UnitKey { provider: Provider::Aws, region: of.region_code.clone()?, usage },
        sku: product.sku.clone()?,
        rate: per_unit(terms, words.units),
    })
}

/// `locationType` of what stands in the customer's own building.
const OUTPOSTS: &str = "AWS Outposts";

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

const FREE: &str = "its price is zero, so it is billed elsewhere";

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
struct Document {
    product: Option<Product>,
    products: Option<Products>,
    #[serde(rename = "PriceList")]
    price_list: Option<Vec<Element>>,
    #[serde(default)]
    terms: Terms,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Element {
    Text(String),
    Document(Box<Document>),
}

#[derive(Deserialize)]
struct Product {
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

#[derive(Default, Deserialize)]
struct Terms {
    #[serde(rename = "OnDemand", default)]
    on_demand: BTreeMap<String, TermOrTerms>,
}

/// A product has its terms by their own code; an offer file has them by SKU first.
#[derive(Deserialize)]
#[serde(untagged)]
enum TermOrTerms {
    Term(Term),
    BySku(BTreeMap<String, Term>),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Term {
    price_dimensions: BTreeMap<String, Dimension>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Dimension {
    unit: String,
    price_per_unit: BTreeMap<String, String>,
}

/// Of an offer file's products only what has a key here, so that the others take no memory.
struct Products(Vec<Product>);

impl<'de> Deserialize<'de> for Products {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keep;
        impl<'de> Visitor<'de> for Keep {
            type Value = Products;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("products by SKU")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Products, A::Error> {
                let mut kept = Vec::new();
                while let Some((sku, mut product)) = map.next_entry::<String, Product>()? {
                    if product.is_instance() || product.usage().is_some() {
                        product.sku.get_or_insert(sku);
                        kept.push(product);
                    }
                }
                Ok(Products(kept))
            }
        }
        deserializer.deserialize_map(Keep)
    }
}

#[cfg(test)]
mod tests;
