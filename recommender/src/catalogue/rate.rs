//! What something costs by the hour, and what a change saves.

use model::{HourlyRate, Usd};
use serde::{Deserialize, Serialize};

/// A price of an hour, or why it is not known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rate {
    /// In whole micro-dollars.
    Known(HourlyRate),
    /// Not known, and why. That is not zero.
    Unknown(String),
}

impl Rate {
    /// The rate, if it is known.
    #[must_use]
    pub const fn known(&self) -> Option<HourlyRate> {
        match self {
            Self::Known(rate) => Some(*rate),
            Self::Unknown(_) => None,
        }
    }
}

/// What an hour of a machine costs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prices {
    /// On demand, by the list.
    pub list: Rate,
    /// What the bill grows by with one more hour: reservations and savings plans that cover the machine are taken off, whoever it is that they would cover
    /// otherwise. Of an hour that is paid for in any case it is zero.
    pub effective: Rate,
}

/// What something saves in a month of 730 hours, or why that is not known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Worth {
    /// In whole micro-dollars; less than nothing if it costs.
    Known(Usd),
    /// Not known, and why. That is not zero.
    Unknown(String),
}

/// What a change saves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saving {
    /// In a month of 730 hours, at list prices, less what the change itself costs each month.
    pub list_per_month: Usd,
    /// The same by what the bill is lower by.
    pub effective_per_month: Worth,
    /// What the change costs once.
    pub once: Usd,
}

impl Saving {
    /// What is saved each month, at list prices and by the bill, if an hour costs these prices instead of those; nothing is paid once.
    ///
    /// # Errors
    /// Why a list price is not known.
    pub fn between(now: &Prices, then: &Prices) -> Result<Self, String> {
        let difference = |now: &Rate, then: &Rate| match (now, then) {
            (Rate::Known(now), Rate::Known(then)) => Ok(minus(now.per_month(), then.per_month())),
            (Rate::Unknown(why), _) | (_, Rate::Unknown(why)) => Err(why.clone()),
        };
        Ok(Self {
            list_per_month: difference(&now.list, &then.list)?,
            effective_per_month: match difference(&now.effective, &then.effective) {
                Ok(saved) => Worth::Known(saved),
                Err(why) => Worth::Unknown(why),
            },
            once: Usd::from_micros(0),
        })
    }

    /// The same, less so much each month and so much once.
    #[must_use]
    pub fn less(self, per_month: Usd, once: Usd) -> Self {
        let once = self.once.saturating_add(once);
        Self { once, ..self.map(|saved| minus(saved, per_month)) }
    }

    /// The same with each monthly amount replaced.
    #[must_use]
    pub fn map(self, replace: impl Fn(Usd) -> Usd) -> Self {
        Self {
            list_per_month: replace(self.list_per_month),
            effective_per_month: match self.effective_per_month {
                Worth::Known(saved) => Worth::Known(replace(saved)),
                unknown @ Worth::Unknown(_) => unknown,
            },
            once: self.once,
        }
    }

    /// What is surely saved in a month: by the bill where that is known, and never more than by the list.
    #[must_use]
    pub fn surely(&self) -> Usd {
        match self.effective_per_month {
            Worth::Known(saved) => saved.min(self.list_per_month),
            Worth::Unknown(_) => self.list_per_month,
        }
    }
}

pub(crate) const fn minus(from: Usd, what: Usd) -> Usd {
    Usd::from_micros(from.micros().saturating_sub(what.micros()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prices(list: i64, effective: Option<i64>) -> Prices {
        let unknown = || Rate::Unknown("not read".to_owned());
        let known = |micros| Rate::Known(HourlyRate::from_micros(micros));
        Prices { list: known(list), effective: effective.map_or_else(unknown, known) }
    }

    #[test]
    fn a_saving_is_of_730_hours_and_what_is_not_known_of_the_bill_stays_so() {
        let saving = Saving::between(&prices(192_000, Some(0)), &prices(96_000, Some(96_000))).expect("known");
        assert_eq!(saving.list_per_month, Usd::from_micros(70_080_000));
        assert_eq!(saving.effective_per_month, Worth::Known(Usd::from_micros(-70_080_000)), "it is reserved");
        assert_eq!(saving.surely(), Usd::from_micros(-70_080_000));
        let saving = Saving::between(&prices(192_000, None), &prices(96_000, Some(96_000))).expect("known");
        assert_eq!(saving.effective_per_month, Worth::Unknown("not read".to_owned()));
        let saving = saving.less(Usd::from_micros(80_000), Usd::from_micros(5));
        assert_eq!((saving.surely(), saving.once), (Usd::from_micros(70_000_000), Usd::from_micros(5)));
        // What the bill falls by above the list price is not counted on.
        let more = Saving::between(&prices(2, Some(9)), &prices(1, Some(1))).expect("known");
        assert_eq!((more.surely(), more.list_per_month), (Usd::from_micros(730), Usd::from_micros(730)));
        let unknown = Prices { list: Rate::Unknown("no row".to_owned()), ..prices(1, Some(1)) };
        assert_eq!(Saving::between(&unknown, &prices(1, None)), Err("no row".to_owned()));
    }
}
