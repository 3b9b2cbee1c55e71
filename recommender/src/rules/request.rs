//! *A job or task asks for too much, or for too little.*
//!
//! More memory is recommended if and only if an attempt with the present request was short of memory: half as much again, or what its peak needs with the headroom, if
//! that is more. It is there to end failures: neither days nor prices are asked for.
//!
//! Less is recommended if and only if
//! - no attempt was short of memory, and that is known of 95 % of them,
//! - at least 20 attempts were seen in at least 7 days with a weekend, and the memory of 95 % of them was measured,
//! - memory and, where measured, vCPUs leave the headroom above the most that any attempt used,
//! - the machines that they run on, of known type and price, are filled less by it, and that is worth enough.
//!
//! A job takes of a machine the larger part of its two requests: to lower the other one saves nothing.

use model::{ResourceKey, Usd};

use crate::{
    blocker::{self, Blocker, NotRecommended},
    catalogue::{Offer, Prices, Rate, Saving},
    demand::Observed,
    policy::Policy,
    recommendation::{Change, Confidence, Doubt, Evidence, Recommendation, Risk, Undo, doubts_of},
    requests::{Attempt, Request, Used},
};

/// Memory is recommended in steps of so many MiB.
const STEP_MIB: u64 = 256;
const HOUR_MS: i128 = 3_600_000;

/// A job definition, or a task of a pipeline.
#[derive(Clone, Copy, Debug)]
pub struct RequestInput<'a> {
    /// Where it runs: the queue, or what else has a key.
    pub resource: &'a ResourceKey,
    /// Its name there: a job definition with its revision, `PIPELINE/TASK`.
    pub name: &'a str,
    /// What it asks for; none if not known.
    pub request: Option<Request>,
    /// Attempts that asked for that.
    pub attempts: &'a [Attempt],
    /// In which time these were seen.
    pub observed: Observed,
    /// The type of machine that most of their time was spent on, with its price; none if not known.
    pub offer: Option<&'a Offer>,
}

/// Recommends another request, or says why none.
///
/// # Errors
/// Every reason that is known.
pub fn recommend(of: &RequestInput<'_>, policy: &Policy) -> Result<Recommendation, NotRecommended> {
    let used = Used::of(of.attempts);
    let Some(from) = of.request else {
        return Err(Blocker::FactUnknown { fact: "what it asks for".to_owned() }.into());
    };
    if used.out_of_memory > 0 {
        let enough = with_headroom(used.memory_peak_bytes.unwrap_or(0).div_ceil(1 << 20), policy);
        let memory_mib = in_steps(enough.max(from.memory_mib.saturating_mul(3).div_ceil(2)));
        let to = Request { memory_mib, ..from };
        return Ok(recommendation(of, (from, to), used, None, Vec::new()));
    }
    NotRecommended::unless_free(blockers(of, &used, policy))?;
    let memory_mib = used.memory_peak_bytes.map(|bytes| in_steps(with_headroom(bytes.div_ceil(1 << 20), policy)));
    let vcpus = used.milli_cores.map(|milli_cores| with_headroom(milli_cores, policy).max(1).div_ceil(1_000) * 1_000);
    let to = Request {
        milli_vcpus: vcpus.unwrap_or(from.milli_vcpus).min(from.milli_vcpus),
        memory_mib: memory_mib.unwrap_or(from.memory_mib).min(from.memory_mib),
    };
    if to == from {
        return Err(Blocker::RequestIsNeeded { request: from }.into());
    }
    let unpriced = |why: &str| Blocker::PriceUnknown { why: why.to_owned() };
    let offer = of.offer.ok_or_else(|| unpriced("on which type of machine it runs is not known"))?;
    let saving = saving(of, offer, from, to).map_err(|why| unpriced(&why))?;
    blocker::worth_it(&saving, policy)?;
    let mut doubts = doubts_of(of.observed, &saving);
    if used.milli_cores.is_none() {
        doubts.push(Doubt::CoresNotMeasured);
    }
    Ok(recommendation(of, (from, to), used, Some(saving), doubts))
}

fn recommendation(
    of: &RequestInput<'_>,
    (from, to): (Request, Request),
    used: Used,
    saving: Option<Saving>,
    doubts: Vec<Doubt>,
) -> Recommendation {
    let risk = if saving.is_some() { Risk::MoreNeeded } else { Risk::FewerAtOnce };
    Recommendation {
        resource: of.resource.clone(),
        change: Change::Request { of: of.name.to_owned(), from, to },
        evidence: Evidence::Attempts { observed: of.observed, used },
        confidence: Confidence::with(doubts),
        saving,
        risks: vec![risk],
        undo: Undo::RequestAsBefore { request: from },
    }
}

fn blockers(of: &RequestInput<'_>, used: &Used, policy: &Policy) -> Vec<Blocker> {
    let mut blockers = Vec::new();
    let not_measured = |what: &str| Blocker::NotMeasured { what: what.to_owned() };
    if !of.observed.is_enough() {
        blockers.push(Blocker::TooEarly { observed: of.observed });
    }
    if used.attempts < policy.least_runs.max(1) {
        blockers.push(Blocker::TooFewRuns { runs: used.attempts, least: policy.least_runs.max(1) });
    }
    if !used.ends_known {
        blockers.push(not_measured("whether its attempts were short of memory"));
    }
    if used.memory_peak_bytes.is_none() {
        blockers.push(not_measured("the memory of its attempts"));
    }
    blockers
}

/// So much that this leaves the headroom, rounded up.
fn with_headroom(needed: u64, policy: &Policy) -> u64 {
    let left = 100 - u128::from(policy.headroom_per_cent.min(99));
    u64::try_from((u128::from(needed) * 100).div_ceil(left)).unwrap_or(u64::MAX)
}

fn in_steps(mib: u64) -> u64 {
    mib.max(1).div_ceil(STEP_MIB).saturating_mul(STEP_MIB)
}

/// What its attempts fill of the machine, now and then, at what a month of it costs.
fn saving(of: &RequestInput<'_>, offer: &Offer, from: Request, to: Request) -> Result<Saving, String> {
    let machine = &offer.machine_type;
    let (cores, memory) = (i128::from(machine.milli_cores().max(1)), i128::from(machine.memory_mib.max(1)));
    // Of `cores × memory`.
    let fills = |request: Request| {
        (i128::from(request.milli_vcpus) * memory).max(i128::from(request.memory_mib) * cores).min(cores * memory)
    };
    let freed = fills(from) - fills(to);
    let ran_ms: i128 = of.attempts.iter().map(|one| one.lasted.as_millis().max(0)).sum();
    let all_ms = i128::from(of.observed.span_hours.max(1)) * HOUR_MS;
    let nothing = Rate::Known(model::HourlyRate::from_micros(0));
    let whole = Saving::between(&offer.prices, &Prices { list: nothing.clone(), effective: nothing })?;
    Ok(whole.map(|month| {
        // First the hours, in thousandths of a micro-dollar: three factors of this size may be more than can be counted.
        let of_hours = i128::from(month.micros()).saturating_mul(1_000).saturating_mul(ran_ms) / all_ms;
        let micros = of_hours.saturating_mul(freed).div_euclid(cores * memory).div_euclid(1_000);
        Usd::from_micros(i64::try_from(micros).unwrap_or(i64::MAX))
    }))
}
