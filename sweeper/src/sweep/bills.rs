//! What volumes, addresses and snapshots cost a month, by the prices per unit that are known. Pure.

use crate::{
    inventory::{Address, Instance, Inventory, PublicIpv4, Snapshot, UsedBy, Volume},
    pricing::{self, Cost, Part, UnitKey, UnitPrices, Unpriced, Usage},
    snapshot::Billed,
};
use jiff::Timestamp;
use model::{
    HOURS_PER_MONTH, HourlyRate, Provider, Quantity, ResourceKey, Usd,
    plan::{Charge, ChargeCost, ChargePrice},
};
use recommender::rules::stop;
use std::collections::{BTreeSet, HashMap};

/// What a month costs, and when the price list last said so where it cannot be read today; or why it is not known.
pub(super) type Monthly = Result<(Usd, Option<Timestamp>), Unpriced>;

/// The prices that an inventory asks for.
pub(super) fn keys(inventory: &Inventory) -> BTreeSet<UnitKey> {
    let volumes = inventory.volumes.iter().filter_map(|volume| pricing::volume(volume).ok()).flatten();
    let snapshots = inventory.snapshots.iter().filter_map(|snapshot| pricing::snapshot_at_most(snapshot).ok());
    let addresses = inventory.addresses.iter().filter_map(|address| pricing::address(address, Usage::AddressIdle).ok());
    let lent = inventory.instances.iter().filter(|instance| lent_ipv4(instance).next().is_some());
    let lent = lent.filter_map(|instance| pricing::lent_address(instance).ok());
    // Who deletes a volume that nothing uses has a snapshot of it made.
    let unused = inventory.volumes.iter().filter(|volume| volume.used_by() == UsedBy::Nothing);
    let copies = unused.filter_map(|volume| pricing::snapshot_of_at_most(volume).ok());
    volumes.chain(snapshots).chain(copies).map(|part| part.key).chain(addresses).chain(lent).collect()
}

/// The addresses that a stop gives back.
fn lent_ipv4(instance: &Instance) -> impl Iterator<Item = &PublicIpv4> {
    instance.public_ipv4.iter().filter(|ip| ip.elastic == Some(false))
}

/// What each thing of an inventory costs.
pub(super) struct Bills<'a> {
    prices: &'a UnitPrices,
    /// By `vol-…`.
    volumes: HashMap<&'a str, &'a Volume>,
    /// By their numbers.
    addresses: HashMap<&'a str, &'a Address>,
    /// What may be left over, of any provider.
    left: HashMap<&'a ResourceKey, Billed<'a>>,
}

impl<'a> Bills<'a> {
    pub(super) fn of(inventory: &'a Inventory, prices: &'a UnitPrices) -> Self {
        let of_aws = |provider| provider == Provider::Aws;
        let volumes = inventory.volumes.iter().filter(|volume| of_aws(volume.id.provider));
        let addresses = inventory.addresses.iter().filter(|address| of_aws(address.id.provider));
        Self {
            left: Billed::all(inventory).map(|billed| (billed.id(), billed)).collect(),
            prices,
            volumes: volumes.map(|volume| (volume.id.id.as_str(), volume)).collect(),
            addresses: addresses.filter_map(|address| Some((address.public_ipv4.as_deref()?, address))).collect(),
        }
    }

    /// An address of EC2's or Google's that the inventory has.
    pub(super) fn address(&self, id: &ResourceKey) -> Option<&'a Address> {
        match self.left.get(id) {
            Some(Billed::Address(address)) => Some(address),
            _ => None,
        }
    }

    /// A volume of EC2's or a disk of Google's that the inventory has.
    pub(super) fn disk(&self, id: &ResourceKey) -> Option<&'a Volume> {
        match self.left.get(id) {
            Some(Billed::Volume(volume)) => Some(volume),
            _ => None,
        }
    }

    /// The most that a snapshot of a volume may cost by the hour.
    pub(super) fn snapshot_of(&self, volume: &Volume) -> Cost {
        hourly(pricing::snapshot_of_at_most(volume).and_then(|part| self.month(&[part])))
    }

    pub(super) fn volume(&self, volume: &Volume) -> Monthly {
        self.month(&pricing::volume(volume)?)
    }

    /// An address that is tied to nothing, or to a machine that does not run.
    pub(super) fn idle_address(&self, address: &Address) -> Monthly {
        let key = pricing::address(address, Usage::AddressIdle)?;
        let hours = Quantity::whole(HOURS_PER_MONTH.unsigned_abs());
        self.month(&[Part { key, quantity: hours }])
    }

    /// What something that nothing uses costs by the hour.
    pub(super) fn leftover(&self, id: &ResourceKey) -> Cost {
        let monthly = match self.left.get(id) {
            Some(Billed::Volume(volume)) => self.volume(volume),
            Some(Billed::Address(address)) => self.idle_address(address),
            Some(Billed::Snapshot(snapshot)) => return self.shared(snapshot),
            Some(Billed::Instance(instance)) => self.stopped(instance),
            None => Err(Unpriced::NotListed(id.kind.names().1)),
        };
        hourly(monthly)
    }

    /// What a machine that is stopped costs: its volumes and the addresses that it keeps, all of them or none.
    fn stopped(&self, instance: &Instance) -> Monthly {
        if instance.id.provider != Provider::Aws {
            return Err(Unpriced::Google);
        }
        // One that can be stopped has a root volume at least: none told is not none, and no price of zero.
        if instance.volumes.is_empty() {
            return Err(Unpriced::FactUnknown("volumes"));
        }
        let volumes = instance.volumes.iter().map(|volume| match self.volumes.get(volume.id.as_str()) {
            Some(volume) => self.volume(volume),
            None => Err(Unpriced::NotListed("volumes")),
        });
        let kept = instance.public_ipv4.iter().filter(|ip| ip.elastic != Some(false));
        let addresses = kept.map(|ip| match self.addresses.get(ip.address.as_str()) {
            Some(address) => self.idle_address(address),
            None => Err(Unpriced::NotListed("addresses")),
        });
        let (mut total, mut oldest) = (Usd::from_micros(0), None::<Timestamp>);
        for monthly in volumes.chain(addresses) {
            let (month, as_of) = monthly?;
            total = total.saturating_add(month);
            oldest = [oldest, as_of].into_iter().flatten().min();
        }
        Ok((total, oldest))
    }

    /// The most that a snapshot may cost.
    pub(super) fn snapshot_at_most(&self, snapshot: &Snapshot) -> Monthly {
        self.month(&[pricing::snapshot_at_most(snapshot)?])
    }

    /// What a snapshot costs nobody is told: blocks that it shares with others of its volume are billed once.
    fn shared(&self, snapshot: &Snapshot) -> Cost {
        let most = self.snapshot_at_most(snapshot);
        let most = most.map_or_else(
            |why| format!("the most it may be is not known: {why}"),
            |(usd, _)| format!("at most {} a month", usd.in_cents()),
        );
        Cost::Unknown { why: format!("blocks that it shares with other snapshots are billed once; {most}") }
    }

    /// All parts or none; as of the oldest of their prices.
    fn month(&self, parts: &[Part]) -> Monthly {
        let (mut priced, mut oldest) = (Vec::with_capacity(parts.len()), None::<Timestamp>);
        for Part { key, quantity } in parts {
            let (price, as_of) = self.prices.of(key)?;
            priced.push((price, *quantity));
            oldest = [oldest, as_of].into_iter().flatten().min();
        }
        let total = model::UnitPrice::total(priced);
        total.map(|total| (total, oldest)).ok_or(Unpriced::TooMuch)
    }

    /// What a stop saves by the hour for each address that it gives back.
    pub(super) fn lent_address(&self, instance: &Instance) -> stop::Price {
        let price = pricing::lent_address(instance).and_then(|key| {
            let (price, _) = self.prices.of(&key)?;
            price.per_hour().ok_or_else(|| Unpriced::Row {
                sku: key.to_string(),
                why: format!("{price} an hour does not fit whole micro-dollars"),
            })
        });
        price.map_or_else(|why| stop::Price::Unknown(why.to_string()), stop::Price::OnDemand)
    }

    /// What something that a stop leaves costs a month; none for what has no price of its own.
    pub(super) fn charge(&self, charge: &Charge) -> Option<ChargePrice> {
        let (what, monthly) = match charge {
            Charge::Volume { id } => match self.volumes.get(id.as_str()) {
                Some(volume) => (described(volume), self.volume(volume)),
                None => (None, Err(Unpriced::NotListed("volumes"))),
            },
            Charge::ElasticIpv4 { address, .. } => match self.addresses.get(address.as_str()) {
                Some(address) => (None, self.idle_address(address)),
                None => (None, Err(Unpriced::NotListed("addresses"))),
            },
            Charge::SnapshotOf { volume } => match self.volumes.get(volume.as_str()) {
                Some(volume) => {
                    let monthly = pricing::snapshot_of_at_most(volume).and_then(|part| self.month(&[part]));
                    (Some("at most".to_owned()), monthly)
                }
                None => (None, Err(Unpriced::NotListed("volumes"))),
            },
            Charge::MachineOfJob { .. } | Charge::CommitmentsUnknown => return None,
        };
        let cost = match monthly {
            Ok((per_month, as_of)) => ChargeCost::Known { per_month, as_of },
            Err(why) => ChargeCost::Unknown { why: why.to_string() },
        };
        Some(ChargePrice { charge: charge.clone(), what, cost })
    }
}

fn hourly(monthly: Monthly) -> Cost {
    match monthly {
        // To the nearest micro-dollar.
        Ok((month, as_of)) => {
            let micros = month.micros().saturating_add(HOURS_PER_MONTH / 2) / HOURS_PER_MONTH;
            Cost::Known { per_hour: HourlyRate::from_micros(micros), as_of }
        }
        Err(why) => Cost::Unknown { why: why.to_string() },
    }
}

/// `100 GiB gp3`
fn described(volume: &Volume) -> Option<String> {
    Some(format!("{} GiB {}", volume.size_gib?, volume.volume_type.as_deref()?))
}

#[cfg(test)]
mod tests;
