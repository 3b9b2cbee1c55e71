//! An offer file, as a stream: of its products only those with a key that is asked for, and of its terms only theirs.

use super::{
    Rows, Wanted,
    product::{Found, Product, Term},
};
use serde::{
    Deserialize,
    de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor},
};
use std::{
    collections::{BTreeMap, HashMap},
    fmt,
};

/// By SKU.
pub(super) type BySku = HashMap<String, Vec<Found>>;

/// Reads the products.
pub(super) struct Products<'a> {
    pub(super) wanted: &'a Wanted<'a>,
}

impl<'de> DeserializeSeed<'de> for Products<'_> {
    type Value = BySku;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<BySku, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Products<'_> {
    type Value = BySku;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("products by SKU")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<BySku, A::Error> {
        let mut kept = BySku::new();
        while let Some((sku, product)) = map.next_entry::<String, Product>()? {
            if let Some(found) = Found::of(product, Some(sku), self.wanted) {
                kept.entry(found.sku().to_owned()).or_default().push(found);
            }
        }
        Ok(kept)
    }
}

/// Reads the terms, of which only those on demand count.
pub(super) struct OnDemand<'a> {
    /// What was found; those whose terms are met go.
    pub(super) found: &'a mut BySku,
    pub(super) rows: &'a mut Rows,
}

#[derive(Deserialize)]
#[serde(field_identifier)]
enum Kind {
    OnDemand,
    #[serde(other)]
    Other,
}

impl<'de> DeserializeSeed<'de> for OnDemand<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for OnDemand<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("terms by their kind")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { found, rows } = self;
        while let Some(kind) = map.next_key()? {
            match kind {
                Kind::OnDemand => map.next_value_seed(Of { found: &mut *found, rows: &mut *rows })?,
                Kind::Other => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

struct Of<'a> {
    found: &'a mut BySku,
    rows: &'a mut Rows,
}

impl<'de> DeserializeSeed<'de> for Of<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Of<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("terms by SKU")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(sku) = map.next_key::<String>()? {
            let Some(found) = self.found.remove(&sku) else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let terms: Vec<Term> = map.next_value::<BTreeMap<String, Term>>()?.into_values().collect();
            found.into_iter().for_each(|found| found.rows(&terms, self.rows));
        }
        Ok(())
    }
}
