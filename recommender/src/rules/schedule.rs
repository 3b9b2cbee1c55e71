//! *It is needed by the clock.*
//!
//! Recommended if and only if
//! - the machine may be stopped by all guards, or could be if it ran, at a known price,
//! - when it was used is known, and it was used,
//! - there are spans of the local week of at least four hours, each hour of which was seen in at least four weeks and used in none, an hour of slack on both sides taken off,
//! - for each week, the schedule that follows from all the others would have been in the way of no use: wake-ups at irregular times make no schedule,
//! - the time in these spans in which it ran, and only that, is worth enough.
//!
//! It is used whenever its verdict is anything but idle; *unknown* counts as use. A schedule is a policy that somebody approves: each single stop is still guarded, checked by
//! a live sample, and told.

use jiff::tz::TimeZone;
use model::{HourlyRate, ResourceKey, Usd, machine::Machine};

use crate::{
    blocker::{self, Blocker, NotRecommended},
    catalogue::{Prices, Rate, Saving, Worth},
    demand::Span,
    policy::Policy,
    recommendation::{Change, Confidence, Doubt, Evidence, Recommendation, Risk, Undo},
    week::{Off, Weeks},
};

/// Fewer weeks are a doubt.
const MANY_WEEKS: u8 = 8;

/// A machine, and when it was used.
#[derive(Clone, Copy, Debug)]
pub struct ScheduleInput<'a> {
    /// Its key.
    pub resource: &'a ResourceKey,
    /// What its provider says of it.
    pub machine: &'a Machine,
    /// What an hour of it costs.
    pub prices: &'a Prices,
    /// By whose clock it is used.
    pub zone: &'a TimeZone,
    /// When its verdict was known, time spent stopped included.
    pub observed: &'a [Span],
    /// When that was anything but idle; none if verdicts were not kept.
    pub used: Option<&'a [Span]>,
    /// When it was stopped.
    pub stopped: &'a [Span],
    /// Timers and crontabs that the distribution did not ship; none if not known.
    pub timers: Option<u32>,
}

/// Recommends when to stop and start it, or says why not.
///
/// # Errors
/// Every reason that is known.
pub fn recommend(of: &ScheduleInput<'_>, policy: &Policy) -> Result<Recommendation, NotRecommended> {
    let mut blockers: Vec<Blocker> = blocker::of_machine(&as_if_running(of.machine)).into_iter().collect();
    let unknown = |fact: &str| Blocker::FactUnknown { fact: fact.to_owned() };
    if of.used.is_none() {
        blockers.push(unknown("when it was used"));
    }
    let zone = of.zone.iana_name();
    if zone.is_none() {
        blockers.push(unknown("by whose clock it is used"));
    }
    if let Rate::Unknown(why) = &of.prices.list {
        blockers.push(Blocker::PriceUnknown { why: why.clone() });
    }
    let (Some(used), Some(zone), true) = (of.used, zone, blockers.is_empty()) else {
        return Err(NotRecommended { blockers, considered: Vec::new() });
    };
    let weeks = Weeks::of(of.observed, used, of.stopped, of.zone);
    let off = off(&weeks, policy)?;
    let saving = saving(of.prices, &weeks, &off).map_err(|why| Blocker::PriceUnknown { why })?;
    blocker::worth_it(&saving, policy)?;
    Ok(Recommendation {
        resource: of.resource.clone(),
        change: Change::Schedule { zone: zone.to_owned(), off },
        evidence: Evidence::Weeks { weeks: weeks.most_seen() },
        confidence: Confidence::with(doubts(of, &weeks, &saving)),
        saving: Some(saving),
        risks: vec![Risk::Stopped, Risk::SomebodyWaits, Risk::NoCapacityInTime],
        undo: Undo::EndSchedule,
    })
}

/// That a machine is off right now says nothing about a schedule: all other guards are asked as if it ran.
fn as_if_running(machine: &Machine) -> Machine {
    let mut machine = machine.clone();
    if let Machine::Ec2(facts) = &mut machine
        && facts.state.as_deref() == Some("stopped")
    {
        facts.state = Some("running".to_owned());
    }
    machine
}

fn off(weeks: &Weeks, policy: &Policy) -> Result<Vec<Off>, Blocker> {
    let (least, slack) = (policy.schedule_weeks.max(1), usize::from(policy.schedule_slack_hours));
    if weeks.most_seen() < least {
        return Err(Blocker::TooFewWeeks { weeks: weeks.most_seen(), least });
    }
    if !weeks.is_used() {
        return Err(Blocker::NeverUsed);
    }
    let hours = usize::from(policy.schedule_least_hours);
    if let Some(at) = weeks.in_the_way(least, slack, hours) {
        return Err(Blocker::Irregular { at });
    }
    let off = weeks.off(least, slack, hours);
    if off.is_empty() { Err(Blocker::AlwaysNeeded { hours: policy.schedule_least_hours }) } else { Ok(off) }
}

/// A month less the part of it that it ran for in these spans.
fn saving(prices: &Prices, weeks: &Weeks, off: &[Off]) -> Result<Saving, String> {
    let (all, within) = weeks.ran_within(off);
    let nothing = Rate::Known(HourlyRate::from_micros(0));
    let whole = Saving::between(prices, &Prices { list: nothing.clone(), effective: nothing })?;
    Ok(whole.map(|month| {
        let micros = i128::from(month.micros()) * i128::from(within) / i128::from(all.max(1));
        Usd::from_micros(i64::try_from(micros).unwrap_or(i64::MAX))
    }))
}

fn doubts(of: &ScheduleInput<'_>, weeks: &Weeks, saving: &Saving) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    if weeks.most_seen() < MANY_WEEKS {
        doubts.push(Doubt::FewWeeks { weeks: weeks.most_seen() });
    }
    match of.timers {
        Some(0) => {}
        Some(timers) => doubts.push(Doubt::TimersExist { timers }),
        None => doubts.push(Doubt::TimersUnknown),
    }
    if let Worth::Unknown(why) = &saving.effective_per_month {
        doubts.push(Doubt::BillUnknown { why: why.clone() });
    }
    doubts
}
