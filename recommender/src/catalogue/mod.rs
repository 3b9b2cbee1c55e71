//! The machine types that one zone offers, with what each can do and what it costs there.
//!
//! Everything is the provider's word: there is no list of types and no price in this code. What the provider did not say is `None`, and then no
//! recommendation rests on it. A catalogue is made for one machine or for those that are billed alike: prices are of its own operating system, tenancy and licence.

mod machine_type;
mod rate;

pub use machine_type::{Accelerator, Architecture, Burst, Limits, MachineType, Platform};
pub(crate) use rate::minus;
pub use rate::{Prices, Rate, Saving, Worth};

use serde::{Deserialize, Serialize};

/// What one zone offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Catalogue {
    /// For example `eu-central-1`.
    pub region: String,
    /// For example `eu-central-1a`: a type may be offered in one zone of a region and not in another one.
    pub zone: String,
    /// The types that it offers. One that is not there is not offered.
    pub offers: Vec<Offer>,
}

/// A type that is offered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// What it is.
    pub machine_type: MachineType,
    /// What it costs.
    pub prices: Prices,
}

impl Catalogue {
    /// The offer of this type.
    #[must_use]
    pub fn offer(&self, name: &str) -> Option<&Offer> {
        self.offers.iter().find(|offer| offer.machine_type.name == name)
    }

    /// The offers whose list price is known, the cheapest first; of the same price the larger one first, then by name, so that the order is one and the same
    /// however the offers are given.
    #[must_use]
    pub fn cheapest_first(&self) -> Vec<&Offer> {
        let mut offers: Vec<_> =
            self.offers.iter().filter_map(|offer| Some((offer.prices.list.known()?, offer))).collect();
        offers.sort_by(|(one_costs, one), (other_costs, other)| {
            let size = |offer: &Offer| (offer.machine_type.vcpus, offer.machine_type.memory_mib);
            let by_name = || one.machine_type.name.cmp(&other.machine_type.name);
            one_costs.cmp(other_costs).then_with(|| size(other).cmp(&size(one))).then_with(by_name)
        });
        offers.into_iter().map(|(_, offer)| offer).collect()
    }
}
