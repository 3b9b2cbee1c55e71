//! For which seconds a machine is billed, and at which price.
//!
//! Times are seconds since 1970-01-01 UTC. Providers bill by the second from each start on, and at least [`MIN_BILLED_S`] for each: of EC2
//! <https://aws.amazon.com/ec2/pricing/on-demand/>, of Compute Engine <https://cloud.google.com/compute/vm-instance-pricing>.

use model::HourlyRate;
use std::sync::Arc;

/// The fewest seconds that a start is billed for.
pub const MIN_BILLED_S: i64 = 60;
/// An hour.
pub const SECONDS_PER_HOUR: i64 = 3_600;
/// Why it is not known whether a machine was billed: nobody could list it.
pub const NOT_LISTED: &str = "no sweep could list the machine then, so whether it ran is not known";
/// Why it is not known whether a machine was billed: the provider did not say.
const NOT_SAID: &str = "the provider did not say whether the machine ran";

/// What a machine was for a while, as its listings show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// When it was first seen so.
    pub from_s: i64,
    /// When it was first seen otherwise or no more; none if it lasts.
    pub until_s: Option<i64>,
    /// Whether it ran; none if the provider did not say.
    pub runs: Option<bool>,
    /// Its last start, as the provider tells it.
    pub launched_s: Option<i64>,
}

/// Whether a stretch of time is billed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Billed {
    /// At a price that is still to be found.
    Yes,
    /// At this price.
    At(HourlyRate),
    /// That, or the price, is not known, and why.
    NotKnown(Arc<str>),
}

/// A stretch of a machine's time. What is billed beyond the end of a start that was shorter than the shortest that is billed may lie beside the next start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Its first second.
    pub from_s: i64,
    /// The second behind its last one.
    pub until_s: i64,
    /// Whether it is billed.
    pub billed: Billed,
    /// The version that tells what the machine was then, by its place among all.
    pub version: usize,
}

/// A price as it was read from a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriceFrom {
    /// From when on it counts.
    pub from_s: i64,
    /// Until when it is believed if no other one comes after it.
    pub good_until_s: i64,
    /// What it is.
    pub per_hour: HourlyRate,
}

/// What one hour of a machine comes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hour {
    /// Its begin.
    pub start_s: i64,
    /// Micro-dollars for the seconds whose price is known.
    pub micros: u64,
    /// How many seconds these are.
    pub billed_s: u64,
    /// Seconds of which nobody knows what they cost, by why.
    pub not_known: Vec<(Arc<str>, u64)>,
    /// The version that tells what the machine was in its first of these seconds.
    pub version: usize,
}

/// When a machine was billed, from all its versions in their order. `not_listed`: when nobody could list it, in order; each ends with the first complete
/// listing behind it. A version that carries on behind such a time with the same start ran through it; one that does not may have ended at any moment of it.
/// `now_s`: what lies behind it is not told.
#[must_use]
pub fn stretches(versions: &[Version], not_listed: &[(i64, i64)], now_s: i64) -> Vec<Stretch> {
    let mut stretches: Vec<Stretch> = Vec::new();
    // The first stretch of the last start.
    let mut start = 0;
    for (at, version) in versions.iter().enumerate() {
        let until_s = version.until_s.unwrap_or(now_s).min(now_s);
        if version.runs == Some(false) {
            continue;
        }
        let before = at.checked_sub(1).map(|before| &versions[before]);
        let carries_on = before.is_some_and(|before| {
            before.runs == Some(true)
                && before.until_s == Some(version.from_s)
                && before.launched_s == version.launched_s
        });
        let mut from_s = version.from_s;
        if !carries_on {
            if version.runs == Some(true) {
                // It had run for a while when it was first listed so.
                let earliest = before.map_or(i64::MIN, |before| before.from_s);
                from_s = version.launched_s.filter(|launched| *launched < from_s).map_or(from_s, |at| at.max(earliest));
            }
            // Whatever it was listed as until then, it was that no longer.
            for stretch in stretches.iter_mut().filter(|stretch| stretch.version + 1 == at) {
                stretch.until_s = stretch.until_s.min(from_s).max(stretch.from_s);
            }
            shortest(&mut stretches[start..]);
            start = stretches.len();
        }
        let mut put = |from_s: i64, until_s: i64, billed| {
            if from_s < until_s {
                stretches.push(Stretch { from_s, until_s, billed, version: at });
            }
        };
        if version.runs.is_none() {
            put(from_s, until_s, Billed::NotKnown(NOT_SAID.into()));
            continue;
        }
        let doubt = not_listed.iter().find(|(_, end_s)| *end_s >= until_s).filter(|(begin_s, _)| *begin_s < until_s);
        let doubt =
            doubt.filter(|_| !is_known_behind(versions, at)).map_or(until_s, |(begin_s, _)| (*begin_s).max(from_s));
        put(from_s, doubt, Billed::Yes);
        put(doubt, until_s, Billed::NotKnown(NOT_LISTED.into()));
    }
    let lasts = |last: &Version| last.runs != Some(false) && last.until_s.is_none_or(|until_s| until_s > now_s);
    if !versions.last().is_some_and(lasts) {
        shortest(&mut stretches[start..]);
    }
    stretches
}

/// Whether the version behind it tells that the machine ran up to its end: it is the same start.
fn is_known_behind(versions: &[Version], at: usize) -> bool {
    let version = &versions[at];
    versions.get(at + 1).is_some_and(|next| {
        next.runs == Some(true)
            && version.until_s == Some(next.from_s)
            && version.launched_s.is_some()
            && next.launched_s == version.launched_s
    })
}

/// Lengthens a start that is over to the shortest that is billed.
fn shortest(of_a_start: &mut [Stretch]) {
    let Some(first) = of_a_start.first().map(|first| first.from_s) else { return };
    if let Some(last) = of_a_start.last_mut().filter(|last| last.billed == Billed::Yes) {
        last.until_s = last.until_s.max(first.saturating_add(MIN_BILLED_S));
    }
}

/// The parts of a billed stretch by the price that was in force. Prices come in their order; one counts until the next one does, and as long as it is
/// believed. `why`: why there is none where there is none.
#[must_use]
pub fn priced(stretch: &Stretch, prices: &[PriceFrom], why: &Arc<str>) -> Vec<Stretch> {
    if stretch.billed != Billed::Yes {
        return vec![stretch.clone()];
    }
    let mut parts = Vec::new();
    let mut at_s = stretch.from_s;
    let mut put = |at_s: &mut i64, until_s: i64, billed: Billed| {
        let until_s = until_s.min(stretch.until_s);
        if *at_s < until_s {
            parts.push(Stretch { from_s: *at_s, until_s, billed, version: stretch.version });
            *at_s = until_s;
        }
    };
    for (place, price) in prices.iter().enumerate() {
        let next_s = prices.get(place + 1).map_or(i64::MAX, |next| next.from_s);
        put(&mut at_s, price.from_s.min(next_s), Billed::NotKnown(Arc::clone(why)));
        put(&mut at_s, price.good_until_s.min(next_s), Billed::At(price.per_hour));
    }
    put(&mut at_s, i64::MAX, Billed::NotKnown(Arc::clone(why)));
    parts
}

/// What each hour comes to that begins from `from_s` on and before `until_s`, and that has any of these stretches in it. An hour's bill is rounded once, half up.
#[must_use]
pub fn hours(stretches: &[Stretch], from_s: i64, until_s: i64) -> Vec<Hour> {
    let mut hours = std::collections::BTreeMap::<i64, (Hour, u128)>::new();
    for stretch in stretches {
        let mut at_s = stretch.from_s.max(from_s);
        let end_s = stretch.until_s.min(until_s);
        while at_s < end_s {
            let start_s = at_s.div_euclid(SECONDS_PER_HOUR) * SECONDS_PER_HOUR;
            let next_s = (start_s + SECONDS_PER_HOUR).min(end_s);
            let seconds = (next_s - at_s).unsigned_abs();
            let new = || (Hour { start_s, version: stretch.version, ..Hour::default() }, 0);
            let (hour, micro_seconds) = hours.entry(start_s).or_insert_with(new);
            match &stretch.billed {
                Billed::At(price) => {
                    hour.billed_s += seconds;
                    *micro_seconds += u128::from(price.per_hour().micros().unsigned_abs()) * u128::from(seconds);
                }
                Billed::NotKnown(why) => add(&mut hour.not_known, why, seconds),
                Billed::Yes => add(&mut hour.not_known, &"its price was not looked up".into(), seconds),
            }
            at_s = next_s;
        }
    }
    let per_hour = u128::from(SECONDS_PER_HOUR.unsigned_abs());
    let rounded = |micro_seconds: u128| u64::try_from((micro_seconds + per_hour / 2) / per_hour).unwrap_or(u64::MAX);
    hours.into_values().map(|(hour, micro_seconds)| Hour { micros: rounded(micro_seconds), ..hour }).collect()
}

fn add(sums: &mut Vec<(Arc<str>, u64)>, why: &Arc<str>, seconds: u64) {
    match sums.iter_mut().find(|(other, _)| other == why) {
        Some((_, sum)) => *sum += seconds,
        None => sums.push((Arc::clone(why), seconds)),
    }
}

#[cfg(test)]
mod tests;
