//! What a Spot instance costs: the price of its zone, which changes by itself, in EC2's own words. Pure.
//!
//! EC2 bills a running Spot instance the Spot price of its zone that is in effect; it tells each change with its moment. The last change is the price. What is not told is not known, and never the on-demand price.

use super::{PriceKey, Unpriced};
use crate::inventory::{Failure, FailureKind, Instance, Lifecycle, Tenancy, aws::SpotTold};
use jiff::Timestamp;
use model::{HourlyRate, Usd};
use std::{collections::BTreeMap, fmt};

/// What makes two Spot instances cost the same. Zones are named differently in each account.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpotKey {
    /// Whose zone names these are.
    pub account: String,
    /// `eu-central-1a`
    pub zone: String,
    /// `m5.large`
    pub instance_type: String,
    /// EC2's product description: `Linux/UNIX`
    pub product: String,
}

/// EC2's platform details of a machine that are a product description of a Spot price, too:
/// <https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeSpotPriceHistory.html>.
const PRODUCTS: [&str; 4] = ["Linux/UNIX", "Red Hat Enterprise Linux", "SUSE Linux", "Windows"];

impl SpotKey {
    /// The key of what a *running* Spot instance costs.
    ///
    /// # Errors
    /// The reason why it cannot be told which price is its.
    pub fn of(instance: &Instance) -> Result<Self, Unpriced> {
        match &instance.tenancy {
            Tenancy::Shared => {}
            Tenancy::Dedicated | Tenancy::Host => {
                return Err(Unpriced::NotOnDemand("spot, on hardware of one customer".to_owned()));
            }
            Tenancy::Other(word) => return Err(Unpriced::NotKnown { what: "tenancy", word: word.clone() }),
            Tenancy::Unknown => return Err(Unpriced::FactUnknown("tenancy")),
        }
        if instance.on_outpost {
            return Err(Unpriced::Outpost);
        }
        let platform = instance.platform_details.as_deref().ok_or(Unpriced::FactUnknown("platform"))?;
        if !PRODUCTS.contains(&platform) {
            return Err(Unpriced::NotKnown { what: "platform", word: platform.to_owned() });
        }
        Ok(Self {
            account: instance.id.account.clone(),
            zone: instance.availability_zone.clone().ok_or(Unpriced::FactUnknown("availability zone"))?,
            instance_type: instance.instance_type.clone().ok_or(Unpriced::FactUnknown("instance type"))?,
            product: platform.to_owned(),
        })
    }
}

impl fmt::Display for SpotKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { zone, instance_type, product, .. } = self;
        write!(f, "{instance_type}, {product}, in {zone}")
    }
}

/// Which price is a machine's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MachinePrice {
    /// That of a price list: of AWS the one on demand, of Google Cloud that of Spot, too.
    Listed(PriceKey),
    /// EC2's Spot price.
    Spot(SpotKey),
}

impl MachinePrice {
    /// Of a *running* instance; a stopped one costs only what is attached to it.
    ///
    /// # Errors
    /// The reason why there is none, or why it cannot be told which.
    pub fn of(instance: &Instance) -> Result<Self, Unpriced> {
        match (&instance.lifecycle, PriceKey::of(instance)) {
            (Lifecycle::Spot, Err(Unpriced::Spot)) => SpotKey::of(instance).map(Self::Spot),
            (_, key) => key.map(Self::Listed),
        }
    }
}

/// A price from a moment on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpotChange {
    /// Whose.
    pub key: SpotKey,
    /// From when on.
    pub at: Timestamp,
    /// By the hour.
    pub per_hour: HourlyRate,
}

impl SpotChange {
    /// What was told in an account.
    ///
    /// # Errors
    /// If its price is none.
    pub fn told(account: &str, told: SpotTold) -> Result<Self, Failure> {
        let SpotTold { zone, instance_type, product, at, price } = told;
        let no_price = |why: String| Failure {
            kind: FailureKind::Malformed,
            message: format!("a Spot price is `{price}`: {why}"),
        };
        let per_hour = match price.parse::<HourlyRate>() {
            Ok(per_hour) => per_hour,
            Err(error) => return Err(no_price(error.to_string())),
        };
        if per_hour.per_hour() <= Usd::from_micros(0) {
            return Err(no_price("nothing is free".to_owned()));
        }
        Ok(Self { key: SpotKey { account: account.to_owned(), zone, instance_type, product }, at, per_hour })
    }
}

/// The last change of each key up to a moment; none of a key of which two changes of that moment contradict each other.
#[must_use]
pub fn in_effect(changes: &[SpotChange], now: Timestamp) -> BTreeMap<SpotKey, SpotChange> {
    let mut last: BTreeMap<&SpotKey, Vec<&SpotChange>> = BTreeMap::new();
    for change in changes.iter().filter(|change| change.at <= now) {
        let latest = last.entry(&change.key).or_default();
        match latest.first().map(|first| first.at) {
            Some(at) if at > change.at => {}
            Some(at) if at == change.at => latest.push(change),
            _ => *latest = vec![change],
        }
    }
    let agreed = last.into_iter().filter(|(_, latest)| latest.iter().all(|one| one.per_hour == latest[0].per_hour));
    agreed.map(|(key, latest)| (key.clone(), latest[0].clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inventory::sample;

    fn at(minute: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_mins(minute)
    }

    fn key(zone: &str) -> SpotKey {
        let text = str::to_owned;
        SpotKey {
            account: text("123456789012"),
            zone: text(zone),
            instance_type: text("m5.large"),
            product: text("Linux/UNIX"),
        }
    }

    fn change(zone: &str, minute: i64, micros: i64) -> SpotChange {
        SpotChange { key: key(zone), at: at(minute), per_hour: HourlyRate::from_micros(micros) }
    }

    #[test]
    fn the_last_change_is_the_price_of_its_own_zone() {
        let changes = [change("a", 10, 38_900), change("a", 30, 42_300), change("b", 20, 43_700), change("a", 20, 1)];
        let at_25: Vec<_> = in_effect(&changes, at(25)).into_values().collect();
        assert_eq!(at_25, [change("a", 20, 1), change("b", 20, 43_700)]);
        let at_30: Vec<_> = in_effect(&changes, at(30)).into_values().collect();
        assert_eq!(at_30, [change("a", 30, 42_300), change("b", 20, 43_700)], "a change holds from its moment on");
        assert!(in_effect(&changes, at(9)).is_empty(), "nothing is known of before");
    }

    #[test]
    fn two_prices_of_one_moment_are_none() {
        let same = [change("a", 10, 5), change("a", 10, 5)];
        assert_eq!(in_effect(&same, at(11)).len(), 1);
        let contradicting = [change("a", 10, 5), change("a", 10, 6), change("b", 10, 7), change("a", 9, 4)];
        assert_eq!(in_effect(&contradicting, at(11)).into_keys().collect::<Vec<_>>(), [key("b")]);
        let settled = [change("a", 10, 5), change("a", 10, 6), change("a", 11, 7)];
        assert_eq!(in_effect(&settled, at(11)).into_values().collect::<Vec<_>>(), [change("a", 11, 7)]);
    }

    #[test]
    fn only_a_spot_instance_whose_every_part_is_known_has_a_spot_price() {
        let spot = |change: &dyn Fn(&mut Instance)| {
            let mut instance = sample::instance();
            instance.lifecycle = Lifecycle::Spot;
            instance.platform_details = Some("Linux/UNIX".to_owned());
            change(&mut instance);
            MachinePrice::of(&instance)
        };
        assert!(matches!(spot(&|_| {}), Ok(MachinePrice::Spot(key)) if key.product == "Linux/UNIX"));
        assert!(matches!(spot(&|it| it.lifecycle = Lifecycle::OnDemand), Ok(MachinePrice::Listed(_))));
        assert_eq!(spot(&|it| it.availability_zone = None), Err(Unpriced::FactUnknown("availability zone")));
        assert_eq!(spot(&|it| it.instance_type = None), Err(Unpriced::FactUnknown("instance type")));
        assert_eq!(spot(&|it| it.tenancy = Tenancy::Unknown), Err(Unpriced::FactUnknown("tenancy")));
        assert_eq!(spot(&|it| it.platform_details = None), Err(Unpriced::FactUnknown("platform")));
        assert_eq!(spot(&|it| it.on_outpost = true), Err(Unpriced::Outpost));
        let dear = "Windows with SQL Server Enterprise";
        let why = spot(&|it| it.platform_details = Some(dear.to_owned()));
        assert_eq!(
            why,
            Err(Unpriced::NotKnown { what: "platform", word: dear.to_owned() }),
            "no Spot price is told of it"
        );
    }
}
