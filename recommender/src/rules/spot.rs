//! *Spare capacity would do.*
//!
//! Recommended if and only if
//! - it is not too early to say, and what runs is bought on demand at a known price,
//! - it is known to hold no state: no database, no data volume, no elastic address, nobody who calls or types,
//! - at least 95 % of the CPU time was of runs whose lengths are known, of which there were enough, and whatever is lost of them is begun again by itself,
//! - enough pools (a type in a zone) fit, with a known price and interruption band, each of which saves enough with the expected rework.
//!
//! The cheapest of these pools are recommended together, so that not all machines go at once, at the price of the dearest of them. Expected rework is an upper
//! bound: the highest rate of interruptions of the band, on average half a run or half a checkpoint's distance lost, and the time that a restart takes.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use model::{HourlyRate, ResourceKey, Usd, machine::Lifecycle};
use serde::{Deserialize, Serialize};

use crate::{
    blocker::{self, Blocker, Considered, NotRecommended, Unfit},
    catalogue::{MachineType, Offer, Rate, Saving, Worth, minus},
    demand::Demand,
    fit::{self, Wanted},
    policy::Policy,
    recommendation::{Change, Confidence, Evidence, Recommendation, Risk, Undo, doubts_of},
    spare::{Band, Chosen, StateSign},
};

/// Least part of the CPU time that must be of runs, in per cent.
pub const LEAST_IN_RUNS_PER_CENT: u8 = 95;
/// The hours of a month.
const HOURS: i128 = model::HOURS_PER_MONTH as i128;
const HOUR_MS: i128 = 3_600_000;

/// What may be bought as spare capacity: a machine, or what starts machines.
#[derive(Clone, Copy, Debug)]
pub struct SpotInput<'a> {
    /// Its key. What is exempt is not asked about.
    pub resource: &'a ResourceKey,
    /// How it is bought now.
    pub lifecycle: &'a Lifecycle,
    /// Its type, and what an hour costs now.
    pub offer: &'a Offer,
    /// What it needed.
    pub demand: &'a Demand,
    /// What shows that it holds state; empty: it holds none. None: not known.
    pub state: Option<&'a [StateSign]>,
    /// What ran.
    pub runs: &'a Runs,
    /// What there is to choose from.
    pub pools: &'a [Pool<'a>],
}

/// What ran in the recorded time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Runs {
    /// How long each attempt that can be lost as a whole took: a job's, or a task's where only that is begun again.
    pub lengths: Vec<SignedDuration>,
    /// Of the CPU time of all workloads, so many per cent were of these.
    pub cpu_per_cent: Option<u8>,
    /// Whether what is lost is begun again by itself.
    pub retried: Option<bool>,
    /// How far checkpoints, from which it goes on, lie apart at most; none if it has none.
    pub checkpoint_every: Option<SignedDuration>,
}

/// Spare capacity of one type in one zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool<'a> {
    /// For example `us-east-1a`.
    pub zone: &'a str,
    /// What it is.
    pub machine_type: &'a MachineType,
    /// The highest price of the last 30 days.
    pub highest: Rate,
    /// How often machines of it are taken away.
    pub band: Band,
}

/// Recommends pools of spare capacity, or says why none.
///
/// # Errors
/// Every reason that is known.
pub fn recommend(of: &SpotInput<'_>, policy: &Policy) -> Result<Recommendation, NotRecommended> {
    NotRecommended::unless_free(blockers(of, policy))?;
    let (mut cheap, mut considered) = (Vec::new(), Vec::new());
    for pool in of.pools {
        match judge(of, pool, policy) {
            Ok(chosen) => cheap.push(chosen),
            Err(why_not) => {
                let machine_type = format!("{} in {}", pool.machine_type.name, pool.zone);
                considered.push(Considered { machine_type, why_not });
            }
        }
    }
    cheap.sort_by_key(|(saving, chosen)| (std::cmp::Reverse(saving.list_per_month), chosen.clone()));
    let mut pools = BTreeSet::new();
    cheap.retain(|(_, pool)| pools.insert((pool.zone.clone(), pool.machine_type.clone())));
    let found = u8::try_from(cheap.len()).unwrap_or(u8::MAX);
    let least = policy.least_spot_pools.max(1);
    cheap.truncate(least.into());
    let Some((saving, _)) = cheap.last().filter(|_| found >= least).cloned() else {
        let blockers = vec![Blocker::TooFewPools { found, least }];
        return Err(NotRecommended { blockers, considered: blocker::nearest(considered) });
    };
    let longest = of.runs.lengths.iter().max().copied().unwrap_or_default();
    Ok(Recommendation {
        resource: of.resource.clone(),
        change: Change::Spot { pools: cheap.into_iter().map(|(_, chosen)| chosen).collect() },
        evidence: Evidence::Runs {
            observed: of.demand.observed,
            runs: u32::try_from(of.runs.lengths.len()).unwrap_or(u32::MAX),
            longest,
        },
        confidence: Confidence::with(doubts_of(of.demand.observed, &saving)),
        saving: Some(saving),
        risks: vec![Risk::Interrupted, Risk::PriceRises, Risk::MoreNeeded],
        undo: Undo::OnDemandAgain,
    })
}

fn blockers(of: &SpotInput<'_>, policy: &Policy) -> Vec<Blocker> {
    let mut blockers = Vec::new();
    let unknown = |fact: &str| Blocker::FactUnknown { fact: fact.to_owned() };
    if *of.lifecycle != Lifecycle::OnDemand {
        blockers.push(Blocker::NotOnDemand);
    }
    match of.state {
        None => blockers.push(unknown("whether it holds state")),
        Some([]) => {}
        Some(signs) => blockers.push(Blocker::HoldsState { signs: signs.to_vec() }),
    }
    if !of.demand.observed.is_enough() {
        blockers.push(Blocker::TooEarly { observed: of.demand.observed });
    }
    blockers.extend(blocker::of_cpus(of.demand, &of.offer.machine_type));
    if let Rate::Unknown(why) = &of.offer.prices.list {
        blockers.push(Blocker::PriceUnknown { why: why.clone() });
    }
    match of.runs.retried {
        None => blockers.push(unknown("whether lost runs are begun again")),
        Some(true) => {}
        Some(false) => blockers.push(Blocker::NotRetried),
    }
    match of.runs.cpu_per_cent {
        None => blockers.push(unknown("how much of the CPU time was of runs")),
        Some(per_cent) if per_cent < LEAST_IN_RUNS_PER_CENT => blockers.push(Blocker::WorkOutsideRuns { per_cent }),
        Some(_) => {}
    }
    let runs = u32::try_from(of.runs.lengths.len()).unwrap_or(u32::MAX);
    if runs < policy.least_runs.max(1) {
        blockers.push(Blocker::TooFewRuns { runs, least: policy.least_runs.max(1) });
    }
    blockers
}

/// What a pool saves, if it is worth it.
fn judge(of: &SpotInput<'_>, pool: &Pool<'_>, policy: &Policy) -> Result<(Saving, Chosen), Unfit> {
    let not_worth_it = |blocker| Unfit::NotWorthIt(Box::new(blocker));
    let now = &of.offer.machine_type;
    let wanted = Wanted { now, architecture: &now.architecture, demand: of.demand, interfaces: None };
    fit::fits(&wanted, pool.machine_type, policy).map_err(Unfit::Misfit)?;
    fit::has_local_disks_of(now, pool.machine_type).map_err(Unfit::Misfit)?;
    let highest = match &pool.highest {
        Rate::Known(rate) => *rate,
        Rate::Unknown(why) => return Err(not_worth_it(Blocker::PriceUnknown { why: why.clone() })),
    };
    let Band::Under(per_cent) = pool.band else {
        return Err(not_worth_it(Blocker::InterruptedTooOften { band: pool.band }));
    };
    let rework_per_million = rework_per_million(of.runs, per_cent, policy.restart_takes)
        .ok_or_else(|| not_worth_it(Blocker::InterruptedTooOften { band: pool.band }))?;
    let saving = saving(of, highest, rework_per_million).map_err(|why| not_worth_it(Blocker::PriceUnknown { why }))?;
    blocker::worth_it(&saving, policy).map_err(not_worth_it)?;
    let (zone, machine_type) = (pool.zone.to_owned(), pool.machine_type.name.clone());
    Ok((saving, Chosen { zone, machine_type, highest, band: pool.band, rework_per_million }))
}

/// Expected rework of the runs, in millionths of the time that they take, rounded up. `None` if so much is lost that half of the attempts at a run, or at the way
/// to its next checkpoint, would fail.
///
/// Of machines that are taken away with a probability of p within a month of 730 hours, fewer than p ÷ (1 − p) ÷ 730 are in each hour. An attempt that takes
/// c fails with a probability of less than x = rate × c, and whatever fails has lost c ÷ 2 on average, at most, and takes a restart; all attempts of a run of
/// length L together lose less than L × rate × (c ÷ 2 + restart) ÷ (1 − x).
fn rework_per_million(runs: &Runs, per_cent: u8, restart_takes: SignedDuration) -> Option<u64> {
    let per_cent = i128::from(per_cent).min(99);
    let restart_ms = restart_takes.as_millis().max(0);
    let one = (100 - per_cent) * HOURS * HOUR_MS;
    let (mut lost_ms, mut all_ms) = (0_i128, 0_i128);
    for length in &runs.lengths {
        let length_ms = length.as_millis().max(0);
        let attempt_ms = runs.checkpoint_every.map_or(length_ms, |every| every.as_millis().clamp(0, length_ms));
        if 2 * per_cent * attempt_ms > one {
            return None;
        }
        let left = 2 * (one - per_cent * attempt_ms);
        lost_ms += ceil(length_ms * per_cent * (attempt_ms + 2 * restart_ms), left);
        all_ms += length_ms;
    }
    u64::try_from(ceil(lost_ms * 1_000_000, all_ms.max(1))).ok()
}

/// Positive numbers alone.
const fn ceil(part: i128, of: i128) -> i128 {
    (part + of - 1) / of
}

/// What is saved in a month in which it runs for as long as it was observed to.
fn saving(of: &SpotInput<'_>, spot: HourlyRate, rework_per_million: u64) -> Result<Saving, String> {
    let observed = of.demand.observed;
    let a_month = |rate: HourlyRate| observed.of_month(rate.per_month());
    let spot = i128::from(a_month(spot).micros()) * i128::from(1_000_000 + rework_per_million);
    let spot = Usd::from_micros(i64::try_from(ceil(spot, 1_000_000)).unwrap_or(i64::MAX));
    let saved = |rate: &Rate| match rate {
        Rate::Known(rate) => Ok(minus(a_month(*rate), spot)),
        Rate::Unknown(why) => Err(why.clone()),
    };
    Ok(Saving {
        list_per_month: saved(&of.offer.prices.list)?,
        effective_per_month: saved(&of.offer.prices.effective).map_or_else(Worth::Unknown, Worth::Known),
        once: Usd::from_micros(0),
    })
}
