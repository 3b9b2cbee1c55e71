//! Rows of a price list, by key. Pure.

use model::{HourlyRate, UnitPrice};
use std::{collections::HashMap, fmt::Display, hash::Hash};

use super::{PriceKey, UnitKey, Unpriced};

/// The rows of a price list that may be asked for: prices of machines, or per unit. A look-up is one hash.
#[derive(Clone, Debug)]
pub struct PriceTable<K = PriceKey, P = HourlyRate> {
    rows: HashMap<K, Vec<Row<K, P>>>,
    failed: HashMap<K, Unpriced>,
    failed_as_a_whole: Option<Unpriced>,
}

/// Prices per unit.
pub type UnitTable = PriceTable<UnitKey, UnitPrice>;

/// Tables that know no price, for one reason.
#[must_use]
pub fn unavailable(why: Unpriced) -> (PriceTable, UnitTable) {
    (PriceTable::unavailable(why.clone()), UnitTable::unavailable(why))
}

/// One row of a price list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row<K = PriceKey, P = HourlyRate> {
    pub(super) key: K,
    pub(super) sku: String,
    /// Or what is wrong with the row.
    pub(super) rate: Result<P, String>,
}

/// A price of a machine's hour, as a list says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadPrice {
    /// The price.
    pub per_hour: HourlyRate,
    /// The rows of the list that it rests on, in the list's own words: a SKU of AWS's, or SKUs of Google's with their amounts.
    pub source_rows: String,
}

impl PriceTable {
    /// A price that was read, in the place of a row.
    pub(crate) fn put(&mut self, key: PriceKey, ReadPrice { per_hour, source_rows }: ReadPrice) {
        self.add(Row { key, sku: source_rows, rate: Ok(per_hour) });
    }

    /// The on-demand price, and the row that says it.
    ///
    /// # Errors
    /// The reason why the price is not known.
    pub fn read(&self, key: &PriceKey) -> Result<ReadPrice, Unpriced> {
        let per_hour = self.on_demand(key)?;
        // Exactly one has a price that is known.
        let row = self.rows.get(key).and_then(|rows| rows.first()).ok_or_else(|| Unpriced::NoRow(key.to_string()))?;
        Ok(ReadPrice { per_hour, source_rows: row.sku.clone() })
    }
}

impl<K, P> Default for PriceTable<K, P> {
    fn default() -> Self {
        Self { rows: HashMap::new(), failed: HashMap::new(), failed_as_a_whole: None }
    }
}

impl<K: Clone + Display + Eq + Hash, P: Clone + PartialEq> PriceTable<K, P> {
    /// A table that knows no price, for one reason.
    #[must_use]
    pub fn unavailable(why: Unpriced) -> Self {
        Self { failed_as_a_whole: Some(why), ..Self::default() }
    }

    pub(super) fn add(&mut self, row: Row<K, P>) {
        let rows = self.rows.entry(row.key.clone()).or_default();
        // The same row may come twice, once per page or file; two different rows for a key are ambiguous.
        if !rows.contains(&row) {
            rows.push(row);
        }
    }

    pub(crate) fn fail(&mut self, key: K, why: Unpriced) {
        self.failed.insert(key, why);
    }

    /// Each price that is known: of the keys that have exactly one row, which states a price.
    pub fn known(&self) -> impl Iterator<Item = (&K, P)> {
        let rows = self.rows.keys().filter(|_| self.failed_as_a_whole.is_none());
        rows.filter_map(|key| Some((key, self.on_demand(key).ok()?)))
    }

    /// So many keys have at least one row.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// True if no key has a row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The on-demand price: that of the one row which has exactly this key.
    ///
    /// # Errors
    /// The reason why the price is not known. It is never zero: a row that says so is not a price.
    pub fn on_demand(&self, key: &K) -> Result<P, Unpriced> {
        if let Some(why) = self.failed_as_a_whole.as_ref().or_else(|| self.failed.get(key)) {
            return Err(why.clone());
        }
        match self.rows.get(key).map_or(&[][..], Vec::as_slice) {
            [] => Err(Unpriced::NoRow(key.to_string())),
            [row] => row.rate.clone().map_err(|why| Unpriced::Row { sku: row.sku.clone(), why }),
            rows => Err(Unpriced::Ambiguous { key: key.to_string(), rows: rows.len() }),
        }
    }
}
