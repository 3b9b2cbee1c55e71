//! Reads the AWS price list, in all three shapes in which people have it.
//!
//! - one product per line, as in the elements of `GetProducts`' `PriceList`;
//! - `GetProducts`' whole answer, as `aws pricing get-products` prints it;
//! - a region's offer file (`…/offers/v1.0/aws/AmazonEC2/current/eu-central-1/index.json`); addresses are in that of `AmazonVPC`. The file of all regions is of the same shape, and has gigabytes.
//!
//! Several may follow each other. All are read as streams: of an offer file only the keys that are asked for take memory, since its products come before its terms. Where they come behind them all on-demand terms do.
//! Rows of other products, reserved terms and market options other than on demand are passed over. A row that has a key
//! but states no single price in USD, per the unit of that key, is kept as what it is: a row without a price.

mod offer;
mod product;

use model::UnitPrice;
use offer::{OnDemand, Products};
use product::{Found, Term};
use serde::{
    Deserialize,
    de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use std::{
    collections::{BTreeMap, HashMap},
    fmt, io,
};

use crate::pricing::{PriceKey, UnitKey, table::Row};

/// Why a text is not a price list: it is not JSON, has other types than a price list has, or none of the known shapes.
#[derive(Debug, thiserror::Error)]
#[error("not a price list: {0}")]
pub(in crate::pricing) struct ListError(#[from] serde_json::Error);

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
}

/// Which rows are asked for.
#[derive(Clone, Copy)]
pub(in crate::pricing) struct Wanted<'a> {
    /// Of machines.
    pub(in crate::pricing) machines: &'a dyn Fn(&PriceKey) -> bool,
    /// Of what is billed by its amount.
    pub(in crate::pricing) units: &'a dyn Fn(&UnitKey) -> bool,
}

impl Wanted<'_> {
    /// All of them.
    pub(in crate::pricing) const ALL: Wanted<'static> = Wanted { machines: &|_| true, units: &|_| true };
}

/// Reads what is asked for of a price list.
pub(in crate::pricing) fn read(reader: impl io::Read, wanted: &Wanted<'_>) -> Result<Rows, ListError> {
    let mut rows = Rows::default();
    let mut left = serde_json::Deserializer::from_reader(reader);
    for number in 1.. {
        match left.end() {
            Ok(()) => break,
            Err(error) if error.is_io() => return Err(error.into()),
            // There is more.
            Err(_) => Document { number, wanted, rows: &mut rows }.deserialize(&mut left)?,
        }
    }
    Ok(rows)
}

/// Reads one document, and keeps its rows.
struct Document<'a> {
    /// Which, from 1.
    number: usize,
    wanted: &'a Wanted<'a>,
    rows: &'a mut Rows,
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum Member {
    Product,
    Products,
    #[serde(rename = "PriceList")]
    PriceList,
    Terms,
    #[serde(other)]
    Other,
}

/// Which shape a document has.
enum Shape {
    Product(Option<Found>),
    /// By SKU: those whose terms were not met yet.
    Offer(HashMap<String, Vec<Found>>),
    Answer,
}

const SHAPES: &str = "a product, an answer of GetProducts, or an offer file";

impl<'de> DeserializeSeed<'de> for Document<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Document<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(SHAPES)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { number, wanted, rows } = self;
        let (mut shape, mut terms) = (None, Terms::default());
        while let Some(member) = map.next_key()? {
            let is_shape = matches!(member, Member::Product | Member::Products | Member::PriceList);
            if is_shape && shape.is_some() {
                return Err(A::Error::custom(format_args!("document {number} is more than one of: {SHAPES}")));
            }
            match (member, &mut shape) {
                (Member::Product, _) => shape = Some(Shape::Product(Found::of(map.next_value()?, None, wanted))),
                (Member::Products, _) => shape = Some(Shape::Offer(map.next_value_seed(Products { wanted })?)),
                (Member::PriceList, _) => {
                    map.next_value_seed(Answer { number, wanted, rows: &mut *rows })?;
                    shape = Some(Shape::Answer);
                }
                (Member::Terms, Some(Shape::Offer(found))) => {
                    map.next_value_seed(OnDemand { found, rows: &mut *rows })?;
                }
                (Member::Terms, _) => terms = map.next_value()?,
                (Member::Other, _) => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        match shape {
            None => return Err(A::Error::custom(format_args!("document {number} is none of: {SHAPES}"))),
            Some(Shape::Answer | Shape::Product(None)) => {}
            Some(Shape::Product(Some(found))) => {
                let of_product = |term| match term {
                    TermOrTerms::Term(term) => Some(term),
                    TermOrTerms::BySku(_) => None,
                };
                found.rows(&terms.on_demand.into_values().filter_map(of_product).collect::<Vec<_>>(), rows);
            }
            Some(Shape::Offer(found)) => {
                for (sku, found) in found {
                    let terms: Vec<Term> = match terms.on_demand.remove(&sku) {
                        Some(TermOrTerms::BySku(terms)) => terms.into_values().collect(),
                        Some(TermOrTerms::Term(_)) | None => Vec::new(),
                    };
                    found.into_iter().for_each(|found| found.rows(&terms, rows));
                }
            }
        }
        Ok(())
    }
}

/// The elements of an answer of `GetProducts`: each a document, or the text of one.
struct Answer<'a> {
    number: usize,
    wanted: &'a Wanted<'a>,
    rows: &'a mut Rows,
}

impl<'de> DeserializeSeed<'de> for Answer<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Answer<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("products")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let Self { number, wanted, rows } = self;
        while seq.next_element_seed(Element(Document { number, wanted, rows: &mut *rows }))?.is_some() {}
        Ok(())
    }
}

struct Element<'a>(Document<'a>);

impl<'de> DeserializeSeed<'de> for Element<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Element<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a product, or the text of one")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        let mut left = serde_json::Deserializer::from_str(text);
        self.0.deserialize(&mut left).and_then(|()| left.end()).map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        self.0.visit_map(map)
    }
}

/// A product has its terms by their own code; an offer file has them by SKU first.
#[derive(Deserialize)]
#[serde(untagged)]
enum TermOrTerms {
    Term(Term),
    BySku(BTreeMap<String, Term>),
}

#[derive(Default, Deserialize)]
struct Terms {
    #[serde(rename = "OnDemand", default)]
    on_demand: BTreeMap<String, TermOrTerms>,
}

#[cfg(test)]
mod tests;
