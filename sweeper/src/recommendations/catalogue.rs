//! What the zone of a machine offers at the machine's own billing.
//!
//! A price is known if the price list was read as a whole within the last 30 days, and had exactly one row for it then. Anything else is not known,
//! with its reason.

use crate::{
    config::PricingSource,
    inventory::{Instance, Offered, OfferedType},
    pricing::{GOOD_FOR, PriceKey, PriceList, Unpriced},
    store::{KnownPrice, StoreError},
};
use jiff::{SignedDuration, Timestamp};
use recommender::catalogue::{Catalogue, Offer, Prices, Rate};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What a zone offers may have changed after so long.
const CATALOGUE_GOOD_FOR: SignedDuration = SignedDuration::from_hours(7 * 24);
/// What a reservation or a savings plan covers nobody reads yet.
const NOT_READ: &str = "reservations and savings plans are not read yet";

/// The prices of a list, as they were read.
#[derive(Debug)]
pub(super) struct ListPrices {
    /// Which list.
    pub(super) source: PricingSource,
    /// Of each key as they came into effect.
    pub(super) history: HashMap<PriceKey, Vec<KnownPrice>>,
    /// When all prices of one kind were last read together.
    pub(super) read_at: BTreeMap<PriceList, Timestamp>,
    /// As of when prices are asked for.
    pub(super) at: Timestamp,
}

impl ListPrices {
    /// What an hour of a type costs that is billed so.
    fn rate(&self, list: &PriceList, instance_type: &str) -> Rate {
        let unknown = |why: String| Rate::Unknown(why);
        if self.source == PricingSource::None {
            return unknown(Unpriced::Off.to_string());
        }
        let Some(read_at) = self.read_at.get(list) else {
            return unknown(format!("the prices of {list} have not been read as a whole"));
        };
        let key = list.of_type(instance_type);
        let known = self.history.get(&key).map_or(&[][..], Vec::as_slice);
        let after = known.partition_point(|price| price.effective_from <= self.at);
        // The first one is taken to have been in force before it was read.
        let price = known.get(after.saturating_sub(1));
        // One that another has taken the place of since was on the list for as long.
        let is_listed = |price: &&KnownPrice| known.len() > after.max(1) || price.read_at >= *read_at;
        let is_good = |price: &&KnownPrice| self.at.duration_since(price.read_at) <= GOOD_FOR;
        match price.filter(is_listed).filter(is_good) {
            Some(price) => Rate::Known(price.price),
            None => unknown(Unpriced::NoRow(key.to_string()).to_string()),
        }
    }
}

/// What was kept of a scope's catalogue, or why it is not known. What one scope's row holds ends the answers for no other scope.
pub(super) fn known(
    kept: Result<Option<(Timestamp, Offered)>, StoreError>,
    at: Timestamp,
) -> Result<Result<(Timestamp, Offered), String>, StoreError> {
    Ok(match kept {
        Ok(Some((read_at, _))) if at.duration_since(read_at) > CATALOGUE_GOOD_FOR => {
            Err(format!("it was last read at {read_at}, more than a week ago"))
        }
        Ok(Some(offered)) => Ok(offered),
        Ok(None) => {
            Err("a sweep reads it once a machine of its account and region has been watched for 7 days".to_owned())
        }
        Err(error @ StoreError::Corrupt { .. }) => {
            tracing::error!(%error, "a catalogue is taken for not known");
            Err("what was kept of it cannot be read by this version".to_owned())
        }
        Err(error) => return Err(error),
    })
}

/// What the machine's zone offers it. Types that do not boot all that its own type boots are left out.
pub(super) fn of(instance: &Instance, offered: &Offered, prices: &ListPrices) -> Catalogue {
    let zone = instance.availability_zone.clone().unwrap_or_default();
    let nothing = BTreeSet::new();
    let in_zone = offered.zones.get(&zone).unwrap_or(&nothing);
    let is_own = |one: &&OfferedType| Some(&one.machine_type.name) == instance.instance_type.as_ref();
    let own = offered.types.iter().find(is_own);
    let boots = |one: &&OfferedType| is_own(one) || own.is_some_and(|own| one.boots_all_of(own));
    let list = PriceKey::of(instance).map(|key| key.list());
    let rate = |name: &str| match &list {
        Ok(list) => prices.rate(list, name),
        Err(why) => Rate::Unknown(why.to_string()),
    };
    let types = offered.types.iter().filter(|one| in_zone.contains(&one.machine_type.name)).filter(boots);
    let offer = |one: &OfferedType| Offer {
        prices: Prices { list: rate(&one.machine_type.name), effective: Rate::Unknown(NOT_READ.to_owned()) },
        machine_type: one.machine_type.clone(),
    };
    Catalogue { region: instance.id.location.clone(), zone, offers: types.map(offer).collect() }
}

#[cfg(test)]
mod tests;
