//! Prices of what is billed by its amount, as far as they are known.

use super::{UnitKey, Unpriced};
use jiff::Timestamp;
use model::UnitPrice;
use std::collections::BTreeMap;

/// A price per unit, and when the price list last said so where it cannot be read today; or why it is not known.
pub type UnitPriced = Result<(UnitPrice, Option<Timestamp>), Unpriced>;

/// Prices per unit, for each key that was asked for.
#[derive(Clone, Debug, Default)]
pub struct UnitPrices(BTreeMap<UnitKey, UnitPriced>);

impl UnitPrices {
    /// The price of a key.
    ///
    /// # Errors
    /// The reason why it is not known.
    pub fn of(&self, key: &UnitKey) -> UnitPriced {
        self.0.get(key).cloned().unwrap_or_else(|| Err(Unpriced::NoRow(key.to_string())))
    }
}

impl FromIterator<(UnitKey, UnitPriced)> for UnitPrices {
    fn from_iter<T: IntoIterator<Item = (UnitKey, UnitPriced)>>(prices: T) -> Self {
        Self(prices.into_iter().collect())
    }
}
