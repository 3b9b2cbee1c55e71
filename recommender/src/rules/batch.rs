//! *The reserve of a compute environment is not used.*
//!
//! A lower `minvCpus` is recommended if and only if
//! - the present one is known and more than 0, and what a vCPU of the environment's cheapest type costs is known,
//! - how many vCPUs running jobs had was known for at least 7 days with a weekend and gaps of 5 % at most,
//! - in at most 5 % of the hours they had more than the recommended reserve,
//! - the vCPUs that stood there in vain above it are worth enough.
//!
//! A reserve that is used at night is needed: an average over days and nights would hide that, the hours do not. What jobs use above the recommended reserve is bought as
//! before, so only what stood in vain is saved. AWS Batch scales down by itself; nothing is stopped.

use std::collections::BTreeSet;

use jiff::{Timestamp, tz::TimeZone};
use model::{HourlyRate, ResourceKey, Usd};

use crate::{
    blocker::{self, Blocker, NotRecommended},
    catalogue::{Prices, Rate, Saving},
    demand::{Observed, Span},
    policy::Policy,
    recommendation::{Change, Confidence, Evidence, Recommendation, Risk, Undo, doubts_of},
};

/// In so many per cent of the hours jobs may have to wait for a machine to start.
pub const MOST_HOURS_ABOVE_PER_CENT: usize = 5;

/// A compute environment of AWS Batch.
#[derive(Clone, Copy, Debug)]
pub struct EnvironmentInput<'a> {
    /// Its key.
    pub resource: &'a ResourceKey,
    /// Its `minvCpus`; none if not known.
    pub min_vcpus: Option<u32>,
    /// What was used, hour by hour; an hour that is not there is not known.
    pub hours: &'a [UsedHour],
    /// By whose clock weekends are.
    pub zone: &'a TimeZone,
    /// What an hour of one vCPU costs, of the cheapest type that it may start.
    pub vcpu: &'a Prices,
}

/// What running jobs had in one hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsedHour {
    /// Its begin, a full hour of UTC.
    pub begin: Timestamp,
    /// Most vCPUs that jobs which ran at the same time had requested.
    pub vcpus: u32,
}

/// Recommends a lower `minvCpus`, or says why none.
///
/// # Errors
/// Every reason that is known.
pub fn recommend(of: &EnvironmentInput<'_>, policy: &Policy) -> Result<Recommendation, NotRecommended> {
    let observed =
        Observed::of(of.hours.iter().map(|hour| hour.begin).collect(), &BTreeSet::new(), &[] as &[Span], of.zone);
    let mut blockers = Vec::new();
    let from = of.min_vcpus.unwrap_or(0);
    match of.min_vcpus {
        None => blockers.push(Blocker::FactUnknown { fact: "its minvCpus".to_owned() }),
        Some(0) => blockers.push(Blocker::NothingReserved),
        Some(_) => {}
    }
    if !observed.is_enough() {
        blockers.push(Blocker::TooEarly { observed });
    }
    if let Rate::Unknown(why) = &of.vcpu.list {
        blockers.push(Blocker::PriceUnknown { why: why.clone() });
    }
    NotRecommended::unless_free(blockers)?;
    let (to, most) = needed(of.hours);
    if to >= from {
        return Err(Blocker::ReserveIsUsed { vcpus: from, per_cent: above(of.hours, from) }.into());
    }
    let saving = saving(of, from, to).map_err(|why| Blocker::PriceUnknown { why })?;
    blocker::worth_it(&saving, policy)?;
    Ok(Recommendation {
        resource: of.resource.clone(),
        change: Change::MinVcpus { from, to },
        evidence: Evidence::Reserve { observed, most, hours_above_per_cent: above(of.hours, to + 1) },
        confidence: Confidence::with(doubts_of(observed, &saving)),
        saving: Some(saving),
        risks: vec![Risk::JobsStartLater],
        undo: Undo::MinVcpus { vcpus: from },
    })
}

/// The fewest vCPUs that were exceeded in no more than 5 % of the hours, and the most that were used.
fn needed(hours: &[UsedHour]) -> (u32, u32) {
    let mut used: Vec<u32> = hours.iter().map(|hour| hour.vcpus).collect();
    used.sort_unstable();
    let above = used.len() * MOST_HOURS_ABOVE_PER_CENT / 100;
    let needed = used.len().checked_sub(above + 1).and_then(|at| used.get(at));
    (needed.copied().unwrap_or(u32::MAX), used.last().copied().unwrap_or(u32::MAX))
}

/// Of the hours those in which so many vCPUs were used, in per cent, rounded up.
fn above(hours: &[UsedHour], vcpus: u32) -> u32 {
    let above = hours.iter().filter(|hour| hour.vcpus >= vcpus).count();
    u32::try_from((above * 100).div_ceil(hours.len().max(1))).unwrap_or(100)
}

/// What stood in vain: of each hour what is reserved above what was used and above the new reserve.
fn saving(of: &EnvironmentInput<'_>, from: u32, to: u32) -> Result<Saving, String> {
    let in_vain: i128 = of.hours.iter().map(|hour| i128::from(from.saturating_sub(hour.vcpus.max(to)))).sum();
    let hours = i128::try_from(of.hours.len().max(1)).unwrap_or(i128::MAX);
    let nothing = Rate::Known(HourlyRate::from_micros(0));
    let of_one = Saving::between(of.vcpu, &Prices { list: nothing.clone(), effective: nothing })?;
    Ok(of_one.map(|month| {
        let micros = (i128::from(month.micros()) * in_vain).div_euclid(hours);
        Usd::from_micros(i64::try_from(micros).unwrap_or(i64::MAX))
    }))
}
