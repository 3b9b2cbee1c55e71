//! *A smaller or cheaper type would do.*
//!
//! Recommended if and only if
//! - the machine may be stopped by all guards, and was observed for at least 7 days with a weekend and gaps of 5 % at most,
//! - CPU use, memory and what the hypervisor withheld were measured,
//! - it had as many CPUs as its type has vCPUs,
//! - its type, with disks of its host known to be absent, is in the catalogue of its zone with a known price,
//! - another type of the same architecture that the zone offers [fits](crate::fit), and would not have failed in any recorded hour ([`crate::backtest`]),
//! - that type saves at least the least saving, at list prices and, where known, by the bill, in the part of a month that the machine runs for.
//!
//! Of several types it is the cheapest, of the same price the larger one. Another architecture is the rule *architecture*'s; a type that is too small already,
//! which would cost more, is nobody's yet.

use model::{
    ResourceKey,
    machine::{Machine, PublicIpv4},
};

use crate::{
    backtest,
    blocker::{self, Blocker, Considered, NotRecommended, Unfit},
    catalogue::{Architecture, Burst, Catalogue, Offer, Saving},
    demand::{Demand, Record},
    fit::{self, Wanted},
    policy::Policy,
    recommendation::{Change, Confidence, Doubt, Evidence, Recommendation, Risk, Undo, doubts_of},
};

/// A machine, as far as it matters which type it is of.
#[derive(Clone, Copy, Debug)]
pub struct SizedMachine<'a> {
    /// Its key.
    pub resource: &'a ResourceKey,
    /// What its provider says of it.
    pub machine: &'a Machine,
    /// How many network interfaces it has; none if not known.
    pub interfaces: Option<u32>,
    /// What was observed of it since it has had its type.
    pub record: &'a Record,
    /// What it needed: [`Demand::of`] the record.
    pub demand: &'a Demand,
    /// What its zone offers at its own billing.
    pub catalogue: &'a Catalogue,
}

/// What all rules that change a type found out before they choose one.
pub(crate) struct Present<'a> {
    pub(crate) offer: &'a Offer,
    wanted: Wanted<'a>,
}

/// Recommends the cheapest type that would have done, or says why none.
///
/// # Errors
/// Every reason that is known.
pub fn recommend(of: &SizedMachine<'_>, policy: &Policy) -> Result<Recommendation, NotRecommended> {
    let present = present(of)?;
    let from = &present.offer.machine_type;
    let (to, saving, replayed) = cheapest(of, &present, &from.architecture, policy)?;
    Ok(Recommendation {
        resource: of.resource.clone(),
        change: Change::Rightsize { from: from.name.clone(), to: to.machine_type.name.clone() },
        evidence: Evidence::Size { demand: Box::new(of.demand.clone()), replayed },
        confidence: Confidence::with(doubts(of, from.family != to.machine_type.family, &saving)),
        saving: Some(saving),
        risks: risks(of, to),
        undo: Undo::ChangeBack { machine_type: from.name.clone() },
    })
}

/// The machine's own offer, if nothing speaks against changing its type at all.
pub(crate) fn present<'a>(of: &SizedMachine<'a>) -> Result<Present<'a>, NotRecommended> {
    let mut blockers: Vec<Blocker> = blocker::of_machine(of.machine).into_iter().collect();
    let not_measured = |what: &str| Blocker::NotMeasured { what: what.to_owned() };
    if !of.demand.observed.is_enough() {
        blockers.push(Blocker::TooEarly { observed: of.demand.observed });
    }
    if of.demand.cores.is_none() {
        blockers.push(not_measured("CPU use"));
    }
    if of.demand.memory_peak_bytes.is_none() {
        blockers.push(not_measured("memory in use"));
    }
    // Whoever has no adapter measures no bytes of it; whoever has one and cannot read it has other signals missing, too.
    blockers.extend(of.demand.signs.rdma_bytes.filter(|bytes| *bytes > 0).map(|bytes| Blocker::Rdma { bytes }));
    let offer = match own_offer(of) {
        Ok(offer) => Some(offer),
        Err(blocker) => {
            blockers.push(blocker);
            None
        }
    };
    blockers.extend(offer.and_then(|offer| blocker::of_type(&offer.machine_type)));
    // Without CPU use that is said already.
    let measured = offer.filter(|_| of.demand.cores.is_some());
    blockers.extend(measured.and_then(|offer| blocker::of_cpus(of.demand, &offer.machine_type)));
    NotRecommended::unless_free(blockers)?;
    let Some(offer) = offer else {
        return Err(Blocker::FactUnknown { fact: "its type".to_owned() }.into());
    };
    let now = &offer.machine_type;
    let wanted = Wanted { now, architecture: &now.architecture, demand: of.demand, interfaces: of.interfaces };
    Ok(Present { offer, wanted })
}

fn own_offer<'a>(of: &SizedMachine<'a>) -> Result<&'a Offer, Blocker> {
    let machine_type = match of.machine {
        Machine::Ec2(facts) => facts.instance_type.as_deref(),
        Machine::OnPrem | Machine::NotKnown(_) | Machine::ComputeEngine(_) => None,
    };
    let machine_type = machine_type.ok_or_else(|| Blocker::FactUnknown { fact: "its type".to_owned() })?;
    let offer = of.catalogue.offer(machine_type).ok_or_else(|| Blocker::NotOffered {
        machine_type: machine_type.to_owned(),
        zone: of.catalogue.zone.clone(),
    })?;
    match &offer.prices.list {
        crate::catalogue::Rate::Known(_) => Ok(offer),
        crate::catalogue::Rate::Unknown(why) => Err(Blocker::PriceUnknown { why: why.clone() }),
    }
}

/// The cheapest type of this architecture that takes over, with what it saves and how the replay went.
pub(crate) fn cheapest<'a>(
    of: &SizedMachine<'a>,
    present: &Present<'a>,
    architecture: &Architecture,
    policy: &Policy,
) -> Result<(&'a Offer, Saving, backtest::Replayed), NotRecommended> {
    let wanted = Wanted { architecture, ..present.wanted };
    let mut considered = Vec::new();
    for then in of.catalogue.cheapest_first() {
        if then.prices.list.known() >= present.offer.prices.list.known() {
            break;
        }
        match takes_over(of, &wanted, (present.offer, then), policy) {
            Ok((saving, replayed)) => return Ok((then, saving, replayed)),
            Err(why_not) => considered.push(Considered { machine_type: then.machine_type.name.clone(), why_not }),
        }
    }
    let blockers = vec![Blocker::NothingFits { zone: of.catalogue.zone.clone() }];
    Err(NotRecommended { blockers, considered: blocker::nearest(considered) })
}

fn takes_over(
    of: &SizedMachine<'_>,
    wanted: &Wanted<'_>,
    (now, then): (&Offer, &Offer),
    policy: &Policy,
) -> Result<(Saving, backtest::Replayed), Unfit> {
    let not_worth_it = |blocker| Unfit::NotWorthIt(Box::new(blocker));
    fit::fits(wanted, &then.machine_type, policy).map_err(Unfit::Misfit)?;
    let saving = Saving::between(&now.prices, &then.prices)
        .map_err(|why| not_worth_it(Blocker::PriceUnknown { why }))?
        .map(|saved| of.demand.observed.of_month(saved));
    blocker::worth_it(&saving, policy).map_err(not_worth_it)?;
    let replayed = backtest::replay(of.record, &now.machine_type, &then.machine_type).map_err(Unfit::Failed)?;
    Ok((saving, replayed))
}

pub(crate) fn doubts(of: &SizedMachine<'_>, is_other_processor: bool, saving: &Saving) -> Vec<Doubt> {
    let mut doubts = doubts_of(of.demand.observed, saving);
    if of.demand.waiting.is_none() {
        doubts.push(Doubt::WaitsNotMeasured);
    }
    if is_other_processor {
        doubts.push(Doubt::OtherProcessor);
    }
    doubts
}

pub(crate) fn risks(of: &SizedMachine<'_>, to: &Offer) -> Vec<Risk> {
    let mut risks = vec![Risk::Stopped];
    let lent = |address: &PublicIpv4| address.elastic != Some(true);
    if matches!(of.machine, Machine::Ec2(facts) if facts.public_ipv4.iter().any(lent)) {
        risks.push(Risk::AddressChanges);
    }
    risks.push(Risk::NoCapacity { machine_type: to.machine_type.name.clone() });
    risks.push(Risk::MoreNeeded);
    if to.machine_type.burst != Burst::Steady {
        risks.push(Risk::Credits);
    }
    risks.push(Risk::ShortBursts);
    risks
}
