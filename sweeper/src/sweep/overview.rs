//! What an account's machines cost together, and what is left lying about: the first thing that somebody without a single agent learns. Pure.
//!
//! List prices on demand of what runs, and of what is used by nothing: no commitments, no discounts. What has no known price is counted and never added as
//! zero.

use super::{
    bills::{Bills, Monthly},
    report::{MachineLine, Report},
};
use crate::{
    inventory::{UsedBy, owner},
    pricing::Cost,
    snapshot::Snapshot,
};
use model::{HourlyRate, Provider, ResourceKey};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What running machines cost, and what costs without doing anything: of what could be listed (see [`Report::scopes`]), and not of what could not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overview {
    /// All machines that the providers say run.
    pub running: RunRate,
    /// The same by `PROVIDER ACCOUNT REGION`, dearest first.
    pub by_region: Vec<Part>,
    /// The same by owner, dearest first; the owner of a machine without an owner's tag has no name.
    pub by_owner: Vec<Part>,
    /// Why prices are not known, the most frequent reason first.
    pub unpriced: Vec<Reason>,
    /// Volumes that are attached to nothing.
    pub unattached_volumes: Left,
    /// Addresses that are tied to nothing.
    pub unused_addresses: Left,
    /// Why prices of these are not known, the most frequent reason first.
    pub unpriced_left: Vec<WhyNot>,
    /// All snapshots: what they cost is not known, since EC2 does not say which of their blocks earlier ones have too.
    pub snapshots: AtMost,
    /// All machines that run, or may run, and that no agent reports from, by account and owner; none in a report of a version that did not count them.
    #[serde(default)]
    pub unseen: Option<Vec<Unseen>>,
}

/// Machines of one account and owner that no agent reports from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unseen {
    /// Whose bill they are on; none for what no provider bills.
    pub account: Option<String>,
    /// By their tags.
    pub owner: Option<String>,
    /// What they cost.
    #[serde(flatten)]
    pub rate: RunRate,
}

/// What some machines cost together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRate {
    /// How many run.
    pub machines: usize,
    /// Of how many the price is known.
    pub priced: usize,
    /// What those cost, in micro-dollars per hour.
    pub micro_usd_per_hour: i64,
}

/// A part of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Which.
    pub name: Option<String>,
    /// What it costs.
    #[serde(flatten)]
    pub rate: RunRate,
}

/// Why prices are not known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// In words.
    pub why: String,
    /// Of how many machines.
    pub machines: usize,
}

/// What is billed and used by nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Left {
    /// How many.
    pub count: usize,
    /// Their size together, in GiB; of what has none 0.
    pub gib: u64,
    /// Of how many the price is known.
    pub priced: usize,
    /// What those cost, in micro-dollars per month of 730 hours.
    pub micro_usd_per_month: i64,
}

/// Why prices of what is used by nothing are not known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WhyNot {
    /// In words.
    pub why: String,
    /// Of how many resources.
    pub resources: usize,
}

/// What is known to cost no more than so much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AtMost {
    /// How many.
    pub count: usize,
    /// Of how many an upper bound is known.
    pub bounded: usize,
    /// What those cost at most, in micro-dollars per month of 730 hours: each as if it shared no block with another.
    pub micro_usd_per_month: i64,
}

impl RunRate {
    /// What those with a known price cost per hour.
    #[must_use]
    pub fn per_hour(self) -> HourlyRate {
        HourlyRate::from_micros(self.micro_usd_per_hour)
    }

    fn add(&mut self, other: Self) {
        self.machines += other.machines;
        self.priced += other.priced;
        self.micro_usd_per_hour = self.micro_usd_per_hour.saturating_add(other.micro_usd_per_hour);
    }
}

impl Left {
    fn add(&mut self, other: Self) {
        self.count += other.count;
        self.gib = self.gib.saturating_add(other.gib);
        self.priced += other.priced;
        self.micro_usd_per_month = self.micro_usd_per_month.saturating_add(other.micro_usd_per_month);
    }

    /// One more, and the reason if its price is not known.
    fn take(&mut self, gib: Option<u32>, monthly: Monthly) -> Option<String> {
        let micros = monthly.as_ref().ok().map(|(usd, _)| usd.micros());
        self.add(Self {
            count: 1,
            gib: gib.unwrap_or(0).into(),
            priced: usize::from(micros.is_some()),
            micro_usd_per_month: micros.unwrap_or(0),
        });
        monthly.err().map(|why| why.to_string())
    }
}

impl AtMost {
    fn add(&mut self, other: Self) {
        self.count += other.count;
        self.bounded += other.bounded;
        self.micro_usd_per_month = self.micro_usd_per_month.saturating_add(other.micro_usd_per_month);
    }
}

impl Overview {
    /// That of one work unit.
    pub(super) fn of(snapshot: &Snapshot, bills: &Bills<'_>) -> Self {
        let inventory = &snapshot.inventory;
        let mut overview = Self::default();
        let (mut regions, mut owners, mut reasons) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for machine in &snapshot.machines {
            let Some(instance) = machine.subject.running() else { continue };
            let micros = machine.cost.rate().map(|rate| rate.per_hour().micros());
            let rate =
                RunRate { machines: 1, priced: usize::from(micros.is_some()), micro_usd_per_hour: micros.unwrap_or(0) };
            overview.running.add(rate);
            regions.entry(place(&instance.id)).or_insert_with(RunRate::default).add(rate);
            owners.entry(owner(&instance.tags)).or_insert_with(RunRate::default).add(rate);
            if let Cost::Unknown { why } = &machine.cost {
                *reasons.entry(why.clone()).or_insert(0) += 1;
            }
        }
        let mut left = BTreeMap::new();
        let mut note = |why: Option<String>| {
            why.into_iter().for_each(|why| *left.entry(why).or_insert(0) += 1);
        };
        for volume in inventory.volumes.iter().filter(|volume| volume.used_by() == UsedBy::Nothing) {
            note(overview.unattached_volumes.take(volume.size_gib, bills.volume(volume)));
        }
        for address in inventory.addresses.iter().filter(|address| address.used_by() == UsedBy::Nothing) {
            note(overview.unused_addresses.take(None, bills.idle_address(address)));
        }
        for snapshot in &inventory.snapshots {
            let most = bills.snapshot_at_most(snapshot).ok().map(|(usd, _)| usd.micros());
            let bounded = usize::from(most.is_some());
            overview.snapshots.add(AtMost { count: 1, bounded, micro_usd_per_month: most.unwrap_or(0) });
        }
        overview.unpriced_left = why_not(left);
        overview.by_region = parts(regions);
        overview.by_owner = parts(owners);
        overview.unpriced = ordered(reasons);
        overview
    }

    /// Counts the machines that nobody sees.
    pub(super) fn count_unseen(&mut self, machines: &[MachineLine]) {
        let mut rates = BTreeMap::new();
        for machine in machines {
            let micros = machine.cost_micro_usd_per_hour;
            let rate =
                RunRate { machines: 1, priced: usize::from(micros.is_some()), micro_usd_per_hour: micros.unwrap_or(0) };
            rates.entry((machine.account(), machine.owner.clone())).or_insert_with(RunRate::default).add(rate);
        }
        self.unseen = Some(all_unseen(rates));
    }

    /// That of all work units together.
    pub(super) fn union<'a>(units: impl Iterator<Item = &'a Report>) -> Self {
        let mut union = Self::default();
        let (mut regions, mut owners, mut reasons) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let (mut left, mut unseen) = (BTreeMap::new(), Some(BTreeMap::new()));
        for Report { overview, .. } in units {
            // What one of them did not count is not known of all.
            unseen = unseen.zip(overview.unseen.as_ref()).map(|(mut rates, counted)| {
                for Unseen { account, owner, rate } in counted {
                    rates.entry((account.clone(), owner.clone())).or_insert_with(RunRate::default).add(*rate);
                }
                rates
            });
            union.running.add(overview.running);
            union.unattached_volumes.add(overview.unattached_volumes);
            union.unused_addresses.add(overview.unused_addresses);
            union.snapshots.add(overview.snapshots);
            for WhyNot { why, resources } in &overview.unpriced_left {
                *left.entry(why.clone()).or_insert(0) += resources;
            }
            for (into, from) in [(&mut regions, &overview.by_region), (&mut owners, &overview.by_owner)] {
                for part in from {
                    into.entry(part.name.clone()).or_insert_with(RunRate::default).add(part.rate);
                }
            }
            for reason in &overview.unpriced {
                *reasons.entry(reason.why.clone()).or_insert(0) += reason.machines;
            }
        }
        union.by_region = parts(regions);
        union.by_owner = parts(owners);
        union.unpriced = ordered(reasons);
        union.unpriced_left = why_not(left);
        union.unseen = unseen.map(all_unseen);
        union
    }
}

fn all_unseen(rates: BTreeMap<(Option<String>, Option<String>), RunRate>) -> Vec<Unseen> {
    rates.into_iter().map(|((account, owner), rate)| Unseen { account, owner, rate }).collect()
}

fn place(ResourceKey { provider, account, location, .. }: &ResourceKey) -> Option<String> {
    (*provider != Provider::OnPrem).then(|| format!("{provider} {account} {location}"))
}

fn parts(rates: BTreeMap<Option<String>, RunRate>) -> Vec<Part> {
    let mut parts: Vec<Part> = rates.into_iter().map(|(name, rate)| Part { name, rate }).collect();
    parts.sort_by_key(|part| std::cmp::Reverse((part.rate.micro_usd_per_hour, part.rate.machines)));
    parts
}

fn ordered(reasons: BTreeMap<String, usize>) -> Vec<Reason> {
    let mut reasons: Vec<Reason> = reasons.into_iter().map(|(why, machines)| Reason { why, machines }).collect();
    reasons.sort_by_key(|reason| std::cmp::Reverse(reason.machines));
    reasons
}

fn why_not(reasons: BTreeMap<String, usize>) -> Vec<WhyNot> {
    let mut reasons: Vec<WhyNot> = reasons.into_iter().map(|(why, resources)| WhyNot { why, resources }).collect();
    reasons.sort_by_key(|reason| std::cmp::Reverse(reason.resources));
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use proptest::prelude::*;

    /// One work unit's machines: region, owner, price if it is known.
    type Machine = (String, Option<String>, Option<u16>);

    fn of(machines: &[Machine]) -> Overview {
        let (mut regions, mut owners, mut reasons) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let mut overview = Overview::default();
        for (region, owner, price) in machines {
            let micro_usd_per_hour = price.map_or(0, i64::from);
            let rate = RunRate { machines: 1, priced: usize::from(price.is_some()), micro_usd_per_hour };
            overview.running.add(rate);
            regions.entry(Some(region.clone())).or_insert_with(RunRate::default).add(rate);
            owners.entry(owner.clone()).or_insert_with(RunRate::default).add(rate);
            if price.is_none() {
                *reasons.entry(format!("no price in {region}")).or_insert(0) += 1;
            }
        }
        Overview {
            by_region: parts(regions),
            by_owner: parts(owners),
            unpriced: ordered(reasons),
            unseen: Some(Vec::new()),
            ..overview
        }
    }

    fn reports(units: &[Vec<Machine>]) -> Overview {
        let empty = Report::union(Timestamp::UNIX_EPOCH, Vec::new(), &[], &[]);
        let reports: Vec<_> = units.iter().map(|unit| Report { overview: of(unit), ..empty.clone() }).collect();
        Overview::union(reports.iter())
    }

    proptest! {
        #[test]
        fn all_work_units_together_are_what_one_of_all_machines_would_be(
            units in prop::collection::vec(
                prop::collection::vec(("[ab]", prop::option::of("[xy]"), prop::option::of(1_u16..9)), 0..6), 0..5,
            ),
        ) {
            let whole = of(&units.concat());
            let union = reports(&units);
            prop_assert_eq!(union.running, whole.running);
            prop_assert_eq!(union.running.machines, units.iter().map(Vec::len).sum::<usize>());
            prop_assert_eq!(union, whole);
        }
    }
}
