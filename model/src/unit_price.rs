//! What one unit of something costs: a GiB for a month, an hour of an address.
//!
//! Exact to the ten decimals that providers quote; a price with more is refused. Only what a whole quantity comes to is rounded, half up, to whole
//! micro-dollars: a GiB of a cheap disk for a month would lose its price otherwise.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{
    HourlyRate, Usd,
    money::{MICROS_PER_DOLLAR, MoneyError},
};

/// Decimals that are kept.
const DECIMALS: usize = 10;
/// A micro-dollar in ten-billionths of a dollar.
const PER_MICRO: i64 = 10_000;

/// A price per unit in whole ten-billionths of a dollar; never negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnitPrice {
    ten_billionths: i64,
}

/// How many units, in whole 1,024ths: prices are per GiB, and amounts may be in MiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quantity {
    of_1024: u64,
}

impl Quantity {
    /// So many whole units.
    #[must_use]
    pub const fn whole(units: u64) -> Self {
        Self { of_1024: units.saturating_mul(1_024) }
    }

    /// So many 1,024ths of a unit.
    #[must_use]
    pub const fn of_1024(parts: u64) -> Self {
        Self { of_1024: parts }
    }
}

impl UnitPrice {
    /// A price of so many ten-billionths of a dollar.
    #[must_use]
    pub const fn from_ten_billionths(ten_billionths: i64) -> Self {
        Self { ten_billionths }
    }

    /// The price in ten-billionths of a dollar.
    #[must_use]
    pub const fn ten_billionths(self) -> i64 {
        self.ten_billionths
    }

    /// The price of an hour, if a unit is an hour; none if it does not fit whole micro-dollars.
    #[must_use]
    pub const fn per_hour(self) -> Option<HourlyRate> {
        if self.ten_billionths % PER_MICRO == 0 {
            Some(HourlyRate::from_micros(self.ten_billionths / PER_MICRO))
        } else {
            None
        }
    }

    /// What all these come to together, rounded once; none if it is more than can be counted.
    #[must_use]
    pub fn total(parts: impl IntoIterator<Item = (Self, Quantity)>) -> Option<Usd> {
        const UNITS_PER_MICRO: i128 = 1_024 * 10_000;
        let exact = parts.into_iter().try_fold(0_i128, |sum, (price, quantity)| {
            sum.checked_add(i128::from(price.ten_billionths).checked_mul(i128::from(quantity.of_1024))?)
        })?;
        let micros = exact.checked_add(UNITS_PER_MICRO / 2)?.div_euclid(UNITS_PER_MICRO);
        i64::try_from(micros).ok().map(Usd::from_micros)
    }
}

/// `$0.08`: two decimals, up to ten where they are not zero.
impl fmt::Display for UnitPrice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let per_dollar = MICROS_PER_DOLLAR * PER_MICRO.unsigned_abs();
        let price = self.ten_billionths.unsigned_abs();
        let decimals = format!("{:010}", price % per_dollar);
        let needed = decimals.trim_end_matches('0').len().max(2);
        write!(f, "${}.{}", price / per_dollar, &decimals[..needed])
    }
}

/// Reads a plain decimal such as `0.0800000000` digit by digit.
impl FromStr for UnitPrice {
    type Err = MoneyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // A hostile text is repeated only in part.
        let shown = || text.chars().take(40).collect::<String>();
        let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
        let digits_only = |part: &str| part.bytes().all(|digit| digit.is_ascii_digit());
        if (whole.is_empty() && decimals.is_empty()) || !digits_only(whole) || !digits_only(decimals) {
            return Err(MoneyError::NotADecimal(shown()));
        }
        let decimals = decimals.trim_end_matches('0');
        if decimals.len() > DECIMALS {
            return Err(MoneyError::TooFine(shown()));
        }
        let mut digits = whole.bytes().chain(decimals.bytes().chain(std::iter::repeat(b'0')).take(DECIMALS));
        let ten_billionths = digits
            .try_fold(0_i64, |sum, digit| sum.checked_mul(10)?.checked_add(i64::from(digit - b'0')))
            .ok_or_else(|| MoneyError::TooLarge(shown()))?;
        Ok(Self { ten_billionths })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn price(text: &str) -> UnitPrice {
        text.parse().expect("a price")
    }

    #[test]
    fn prices_are_read_exactly_or_not_at_all() {
        for (text, ten_billionths, shown) in [
            ("0.0800000000", 800_000_000, "$0.08"),
            ("0.0000000500", 500, "$0.00000005"),
            ("0.0000000001", 1, "$0.0000000001"),
            ("0.08000000000000", 800_000_000, "$0.08"),
            ("40.96", 409_600_000_000, "$40.96"),
            ("922337203.6854775807", i64::MAX, "$922337203.6854775807"),
        ] {
            assert_eq!(text.parse(), Ok(UnitPrice::from_ten_billionths(ten_billionths)), "{text}");
            assert_eq!(price(text).to_string(), shown);
        }
        assert!(matches!("0.00000000001".parse::<UnitPrice>(), Err(MoneyError::TooFine(_))), "no zero of it");
        assert!(matches!("922337203.6854775808".parse::<UnitPrice>(), Err(MoneyError::TooLarge(_))));
        for text in ["", ".", "-1", "+1", "1e-3", "1,000", " 1", "1.2.3", "NaN", "٣"] {
            assert!(matches!(text.parse::<UnitPrice>(), Err(MoneyError::NotADecimal(_))), "{text}");
        }
    }

    #[test]
    fn a_quantity_is_rounded_once_and_half_up() {
        let of = |parts: &[(&str, Quantity)]| {
            UnitPrice::total(parts.iter().map(|(text, quantity)| (price(text), *quantity)))
        };
        assert_eq!(of(&[("0.08", Quantity::whole(100))]), Some(Usd::from_micros(8_000_000)));
        // 125 MiB a second at $40.96 for a GiB.
        assert_eq!(of(&[("40.96", Quantity::of_1024(125))]), Some(Usd::from_micros(5_000_000)));
        assert_eq!(of(&[("0.0000000500", Quantity::whole(10))]), Some(Usd::from_micros(1)), "half a micro-dollar");
        assert_eq!(of(&[("0.0000000499", Quantity::whole(10))]), Some(Usd::from_micros(0)));
        let tenth = ("0.0000001", Quantity::whole(1));
        assert_eq!(of(&[tenth; 6]), Some(Usd::from_micros(1)), "a tenth six times is more than a half");
        assert_eq!(of(&[]), Some(Usd::from_micros(0)));
        assert_eq!(of(&[("900000000", Quantity::whole(u64::MAX / 1_024))]), None);
    }

    #[test]
    fn an_hour_has_whole_micro_dollars_or_no_rate() {
        assert_eq!(price("0.005").per_hour(), Some(HourlyRate::from_micros(5_000)));
        assert_eq!(price("0.0000005").per_hour(), None);
    }

    proptest! {
        #[test]
        fn what_is_shown_can_be_read_back(ten_billionths in 0..i64::MAX) {
            let text = UnitPrice::from_ten_billionths(ten_billionths).to_string();
            prop_assert_eq!(text[1..].parse(), Ok(UnitPrice::from_ten_billionths(ten_billionths)));
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in ".{0,60}") {
            let _ = text.parse::<UnitPrice>();
        }
    }
}
