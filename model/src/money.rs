//! Money in whole micro-dollars, so that sums are exact and two machines agree on them.
//!
//! It refuses floats, other currencies and negative prices. Providers quote at most ten decimals; a price that does not
//! fit whole micro-dollars is rounded half up, an error of at most $0.000 000 5 per hour ($0.004 per year).

use std::{fmt, str::FromStr};

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

/// The hours in a month, as the large providers count them (365 days × 24 h ÷ 12).
pub const HOURS_PER_MONTH: i64 = 730;

pub(crate) const MICROS_PER_DOLLAR: u64 = 1_000_000;

/// An amount of United States dollars in whole micro-dollars.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Usd {
    micros: i64,
}

impl Usd {
    /// An amount of so many micro-dollars.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self { micros }
    }

    /// The amount in micro-dollars.
    #[must_use]
    pub const fn micros(self) -> i64 {
        self.micros
    }

    /// The amount to the nearest cent, for people: a sum over hours has no meaning beyond that. What is not nothing does
    /// not read as nothing: `<$0.01`.
    #[must_use]
    pub fn in_cents(self) -> String {
        const CENT: i64 = 10_000;
        let up = if self.micros < 0 { -CENT / 2 } else { CENT / 2 };
        match self.micros.saturating_add(up) / CENT * CENT {
            0 if self.micros > 0 => "<$0.01".to_owned(),
            micros => Self { micros }.to_string(),
        }
    }

    /// The sum, which stops at the largest amount that fits ($9.2 trillion).
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self { micros: self.micros.saturating_add(other.micros) }
    }
}

/// `$12.34`: two decimals, up to six where they are not zero.
impl fmt::Display for Usd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.micros < 0 { "-" } else { "" };
        let micros = self.micros.unsigned_abs();
        let decimals = format!("{:06}", micros % MICROS_PER_DOLLAR);
        let needed = decimals.trim_end_matches('0').len().max(2);
        write!(f, "{sign}${}.{}", micros / MICROS_PER_DOLLAR, &decimals[..needed])
    }
}

/// Why a text is not an amount of dollars.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MoneyError {
    /// Something other than digits with at most one decimal point.
    #[error("`{0}` is not an amount; expected digits with at most one decimal point, such as 0.0104")]
    NotADecimal(String),
    /// More than $9.2 trillion, or than $922 million a unit.
    #[error("`{0}` is more than can be counted")]
    TooLarge(String),
    /// A price per unit that is not whole ten-billionths of a dollar.
    #[error("`{0}` has more than ten decimals")]
    TooFine(String),
}

/// Reads a plain decimal such as `0.0104000000` digit by digit; the seventh decimal rounds half up.
impl FromStr for Usd {
    type Err = MoneyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // A hostile text is repeated only in part.
        let shown = || text.chars().take(40).collect::<String>();
        let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
        let digits_only = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
        if (whole.is_empty() && decimals.is_empty()) || !digits_only(whole) || !digits_only(decimals) {
            return Err(MoneyError::NotADecimal(shown()));
        }
        let too_large = || MoneyError::TooLarge(shown());
        let mut digits = whole.bytes().chain(decimals.bytes().chain(std::iter::repeat(b'0')).take(6));
        let mut micros = digits
            .try_fold(0_i64, |sum, digit| sum.checked_mul(10)?.checked_add(i64::from(digit - b'0')))
            .ok_or_else(too_large)?;
        if decimals.as_bytes().get(6).is_some_and(|digit| *digit >= b'5') {
            micros = micros.checked_add(1).ok_or_else(too_large)?;
        }
        Ok(Self { micros })
    }
}

/// What a resource costs per hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HourlyRate(Usd);

impl HourlyRate {
    /// So many dollars per hour.
    #[must_use]
    pub const fn new(per_hour: Usd) -> Self {
        Self(per_hour)
    }

    /// So many micro-dollars per hour.
    #[must_use]
    pub const fn from_micros(micros_per_hour: i64) -> Self {
        Self(Usd::from_micros(micros_per_hour))
    }

    /// What one hour costs.
    #[must_use]
    pub const fn per_hour(self) -> Usd {
        self.0
    }

    /// What a month of [`HOURS_PER_MONTH`] costs.
    #[must_use]
    pub const fn per_month(self) -> Usd {
        Usd::from_micros(self.0.micros().saturating_mul(HOURS_PER_MONTH))
    }

    /// What so much time costs, rounded down to whole micro-dollars. A negative span costs nothing.
    #[must_use]
    pub fn over(self, span: SignedDuration) -> Usd {
        let millis = span.as_millis().max(0);
        let micros = i128::from(self.0.micros()).saturating_mul(millis) / 3_600_000;
        Usd::from_micros(i64::try_from(micros).unwrap_or(i64::MAX))
    }
}

/// Amounts in sum, and how many there are that nobody knows: these are counted, and never taken for zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sum {
    /// Of those that are known.
    pub known: Usd,
    /// So many are.
    pub count: usize,
    /// So many are not.
    pub unknown: usize,
}

impl Sum {
    /// Of these.
    #[must_use]
    pub fn of(amounts: impl Iterator<Item = Option<Usd>>) -> Self {
        let none = Self { known: Usd::from_micros(0), count: 0, unknown: 0 };
        amounts.fold(none, |sum, amount| match amount {
            Some(amount) => Self { known: sum.known.saturating_add(amount), count: sum.count + 1, ..sum },
            None => Self { unknown: sum.unknown + 1, ..sum },
        })
    }
}

/// `$0.096/h`.
impl fmt::Display for HourlyRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/h", self.0)
    }
}

impl FromStr for HourlyRate {
    type Err = MoneyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_not_known_is_counted_and_not_summed() {
        let sum = Sum::of([Some(Usd::from_micros(5)), None, Some(Usd::from_micros(7)), None].into_iter());
        assert_eq!(sum, Sum { known: Usd::from_micros(12), count: 2, unknown: 2 });
    }

    #[test]
    fn sums_are_shown_to_the_cent() {
        for (micros, shown) in
            [(1_233_175, "$1.23"), (1_235_000, "$1.24"), (4_999, "<$0.01"), (0, "$0.00"), (-1_236_000, "-$1.24")]
        {
            assert_eq!(Usd::from_micros(micros).in_cents(), shown);
        }
    }

    #[test]
    fn prices_are_read_to_the_micro_dollar() {
        for (text, micros) in [
            ("0.0104000000", 10_400),
            ("0.096", 96_000),
            ("32.7726", 32_772_600),
            ("7", 7_000_000),
            ("7.", 7_000_000),
            (".5", 500_000),
            ("0.0000014999", 1),
            ("0.0000015000", 2),
            ("0.0000000000", 0),
            ("9223372036854.775807", i64::MAX),
        ] {
            assert_eq!(text.parse(), Ok(Usd::from_micros(micros)), "{text}");
        }
    }

    #[test]
    fn what_is_not_a_plain_decimal_is_refused() {
        for text in ["", ".", "-1", "+1", "1e3", "1,000", " 1", "1.2.3", "NaN", "0x1", "٣", "9223372036854.775808"] {
            assert!(text.parse::<Usd>().is_err(), "{text}");
        }
    }

    #[test]
    fn amounts_show_two_to_six_decimals() {
        for (micros, text) in [
            (96_000, "$0.096/h"),
            (100_000, "$0.10/h"),
            (4_000_000, "$4.00/h"),
            (10_401, "$0.010401/h"),
            (-250_000, "-$0.25/h"),
        ] {
            assert_eq!(HourlyRate::from_micros(micros).to_string(), text);
        }
        assert_eq!(HourlyRate::from_micros(96_000).per_month().to_string(), "$70.08");
    }

    #[test]
    fn time_costs_in_proportion() {
        let rate = HourlyRate::from_micros(96_000);
        assert_eq!(rate.over(SignedDuration::from_mins(90)), Usd::from_micros(144_000));
        assert_eq!(rate.over(SignedDuration::from_millis(1)), Usd::from_micros(0));
        assert_eq!(rate.over(SignedDuration::from_hours(-1)), Usd::from_micros(0));
        assert_eq!(HourlyRate::from_micros(i64::MAX).over(SignedDuration::MAX), Usd::from_micros(i64::MAX));
    }

    proptest! {
        #[test]
        fn what_is_shown_can_be_read_back(micros in 0..i64::MAX) {
            let text = Usd::from_micros(micros).to_string();
            prop_assert_eq!(text[1..].parse(), Ok(Usd::from_micros(micros)));
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in ".{0,60}") {
            let _ = text.parse::<Usd>();
        }
    }
}
