//! *The same would cost less in another region.*
//!
//! Recommended if and only if
//! - the machine may be stopped and nothing of its host is lost, as for *rightsize*, and it is not too early to say,
//! - it is known in which regions its data may be, and how far away it may be from those who talk with it,
//! - its traffic was measured, and the size and price of its disks are known,
//! - a zone of an allowed region that is near enough offers the same type at a known price,
//! - what that saves, less the transfer of all bytes that were observed and the difference in the price of its disks, is enough, and pays the move back in time.
//!
//! Nobody knows where observed bytes went. So all that were received are taken to come from the present region then, and all that were sent to go back there or to the
//! internet, whichever costs more; nothing is taken off for what transfer costs now. The move is paid with the transfer of its disks, a month of snapshots on both
//! sides, and a month of the old disks, which are kept so that it can be undone.

use std::collections::BTreeSet;

use model::{Quantity, UnitPrice, Usd};

use super::rightsize::{self, SizedMachine};
use crate::{
    blocker::{self, Blocker, Considered, NotRecommended, Unfit},
    catalogue::{Catalogue, Offer, Saving, Worth, minus},
    policy::Policy,
    recommendation::{Change, Confidence, Evidence, Recommendation, Risk, Traffic, Undo, doubts_of},
};

/// A machine that could run elsewhere.
#[derive(Clone, Copy, Debug)]
pub struct RegionInput<'a> {
    /// The machine.
    pub machine: SizedMachine<'a>,
    /// What went over its network in the recorded time; none if not measured.
    pub traffic: Option<Traffic>,
    /// GiB of all its disks; none if not known of one of them.
    pub disk_gib: Option<u64>,
    /// What its disks cost in a month where it is.
    pub disks_per_month: &'a Worth,
    /// The regions in which its data may be; none if nobody said.
    pub allowed: Option<&'a BTreeSet<String>>,
    /// How far it may be from those who talk with it, there and back, in milliseconds; none if nobody said.
    pub most_latency_ms: Option<u32>,
    /// Where else it could run.
    pub targets: &'a [Target<'a>],
}

/// A zone of another region.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// What it offers, at the machine's own billing.
    pub catalogue: &'a Catalogue,
    /// How far it is from those who talk with the machine, there and back, in milliseconds.
    pub latency_ms: Option<u32>,
    /// What its disks cost in a month there.
    pub disks_per_month: &'a Worth,
    /// What transfer costs.
    pub transfer: Transfer,
}

/// Prices for a GiB; none if not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// From the present region to the other one.
    pub there: Option<UnitPrice>,
    /// Back.
    pub back: Option<UnitPrice>,
    /// From the other region to the internet.
    pub to_internet: Option<UnitPrice>,
    /// A GiB of a snapshot for a month, here and there together.
    pub snapshots: Option<UnitPrice>,
}

/// What must be known of the machine, once it is.
struct Known<'a> {
    offer: &'a Offer,
    traffic: Traffic,
    disk_gib: u64,
    disks_per_month: Usd,
    allowed: &'a BTreeSet<String>,
    most_latency_ms: u32,
}

/// Recommends the zone of another region in which the machine saves most, or says why none.
///
/// # Errors
/// Every reason that is known.
pub fn recommend(of: &RegionInput<'_>, policy: &Policy) -> Result<Recommendation, NotRecommended> {
    let known = known(of)?;
    let (mut found, mut considered) = (Vec::new(), Vec::new());
    let from = &of.machine.catalogue.region;
    for target in of.targets.iter().filter(|target| target.catalogue.region != *from) {
        match judge(of, &known, target, policy) {
            Ok((saving, transfer)) => found.push((saving, transfer, target)),
            Err(why_not) => {
                let machine_type = format!("{} in {}", known.offer.machine_type.name, target.catalogue.zone);
                considered.push(Considered { machine_type, why_not });
            }
        }
    }
    // Of the same saving the first zone by name.
    let best = found.into_iter().min_by_key(|(saving, _, target)| {
        (std::cmp::Reverse((saving.surely(), saving.list_per_month)), target.catalogue.zone.clone())
    });
    let Some((saving, transfer_per_month, target)) = best else {
        return Err(NotRecommended { blockers: vec![Blocker::NoRegion], considered: blocker::nearest(considered) });
    };
    let observed = of.machine.demand.observed;
    Ok(Recommendation {
        resource: of.machine.resource.clone(),
        change: Change::Region {
            from: from.clone(),
            to: target.catalogue.region.clone(),
            zone: target.catalogue.zone.clone(),
            machine_type: known.offer.machine_type.name.clone(),
        },
        evidence: Evidence::Traffic { observed, traffic: known.traffic, transfer_per_month },
        confidence: Confidence::with(doubts_of(observed, &saving)),
        saving: Some(saving),
        risks: vec![Risk::Stopped, Risk::LongCopy, Risk::AllAddressesChange, Risk::UsesStay],
        undo: Undo::StartTheOldOne { region: from.clone() },
    })
}

fn known<'a>(of: &RegionInput<'a>) -> Result<Known<'a>, NotRecommended> {
    let unknown = |fact: &str| Blocker::FactUnknown { fact: fact.to_owned() };
    let (mut blockers, offer) = match rightsize::present(&of.machine) {
        Ok(present) => (Vec::new(), Some(present.offer)),
        Err(refused) => (refused.blockers, None),
    };
    if of.traffic.is_none() {
        blockers.push(Blocker::NotMeasured { what: "traffic".to_owned() });
    }
    if of.disk_gib.is_none() {
        blockers.push(unknown("how large its disks are"));
    }
    if let Worth::Unknown(why) = of.disks_per_month {
        blockers.push(Blocker::PriceUnknown { why: why.clone() });
    }
    if of.allowed.is_none() {
        blockers.push(unknown("in which regions its data may be"));
    }
    if of.most_latency_ms.is_none() {
        blockers.push(unknown("how far it may be from those who talk with it"));
    }
    match (offer, of.traffic, of.disk_gib, of.disks_per_month, of.allowed, of.most_latency_ms) {
        (Some(offer), Some(traffic), Some(disk_gib), Worth::Known(disks), Some(allowed), Some(most_latency_ms)) => {
            Ok(Known { offer, traffic, disk_gib, disks_per_month: *disks, allowed, most_latency_ms })
        }
        _ => Err(NotRecommended { blockers, considered: Vec::new() }),
    }
}

/// What a target saves, and what the transfer costs in a month.
fn judge(
    of: &RegionInput<'_>,
    known: &Known<'_>,
    target: &Target<'_>,
    policy: &Policy,
) -> Result<(Saving, Usd), Unfit> {
    let not_worth_it = |blocker| Unfit::NotWorthIt(Box::new(blocker));
    let unpriced = |what: &str| not_worth_it(Blocker::PriceUnknown { why: format!("{what} is not priced") });
    let then = reachable(known, target).map_err(not_worth_it)?;
    let Transfer { there, back, to_internet, snapshots } = target.transfer;
    let (Some(there), Some(back), Some(to_internet)) = (there, back, to_internet) else {
        return Err(unpriced("transfer"));
    };
    let observed = of.machine.demand.observed;
    let in_a_month = |bytes: u64| {
        // The traffic of hours that were not measured was as that of the others.
        let ran = u128::from(observed.hours) + u128::from(observed.gaps);
        let hours = model::HOURS_PER_MONTH.unsigned_abs();
        let times = u128::from(bytes) * u128::from(hours) * ran;
        let bytes = times.div_ceil(u128::from(observed.span_hours.max(1)) * u128::from(observed.hours.max(1)));
        Quantity::of_1024(u64::try_from(bytes.div_ceil(1 << 20)).unwrap_or(u64::MAX))
    };
    let traffic =
        [(there, in_a_month(known.traffic.received)), (back.max(to_internet), in_a_month(known.traffic.sent))];
    let transfer = UnitPrice::total(traffic).ok_or_else(|| unpriced("so much transfer"))?;
    let once = UnitPrice::total([
        (there, Quantity::whole(known.disk_gib)),
        (snapshots.ok_or_else(|| unpriced("a snapshot"))?, Quantity::whole(known.disk_gib)),
    ]);
    let once = once.ok_or_else(|| unpriced("so large a disk"))?.saturating_add(known.disks_per_month);
    let disks = match target.disks_per_month {
        Worth::Known(disks) => minus(*disks, known.disks_per_month),
        Worth::Unknown(why) => return Err(not_worth_it(Blocker::PriceUnknown { why: why.clone() })),
    };
    let before = Saving::between(&known.offer.prices, &then.prices)
        .map_err(|why| not_worth_it(Blocker::PriceUnknown { why }))?
        .map(|saved| observed.of_month(saved))
        .less(disks, once);
    let saving = before.clone().less(transfer, Usd::from_micros(0));
    if before.surely() > Usd::from_micros(0) && saving.surely() <= Usd::from_micros(0) {
        return Err(not_worth_it(Blocker::TransferCostsMore { transfer, saving: before.surely() }));
    }
    blocker::worth_it(&saving, policy).map_err(not_worth_it)?;
    blocker::pays_back(&saving, policy).map_err(not_worth_it)?;
    Ok((saving, transfer))
}

/// The same type there, if the machine may be there.
fn reachable<'a>(known: &Known<'_>, target: &Target<'a>) -> Result<&'a Offer, Blocker> {
    let (region, zone) = (target.catalogue.region.clone(), target.catalogue.zone.clone());
    if !known.allowed.contains(&region) {
        return Err(Blocker::NotAllowedThere { region });
    }
    match target.latency_ms {
        None => return Err(Blocker::FactUnknown { fact: format!("how far {region} is from those who talk with it") }),
        Some(ms) if ms > known.most_latency_ms => {
            return Err(Blocker::TooFar { region, ms, most: known.most_latency_ms });
        }
        Some(_) => {}
    }
    let machine_type = &known.offer.machine_type.name;
    let not_offered = || Blocker::NotOffered { machine_type: machine_type.clone(), zone };
    target.catalogue.offer(machine_type).ok_or_else(not_offered)
}
