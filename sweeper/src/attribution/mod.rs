//! What machines cost through a time, split over what used them: from the history, the prices and the hourly rollups.
//!
//! Only instances (and nodes on premises that have a configured price) are billed here: volumes, addresses and snapshots are not. Rollups are read some
//! hundred at a time and added up as they come. Memory grows with the number of machines and of different values of what is asked by; time with the number of rollups.
//! The rules are in the crate `costs`, which knows no database.

mod answer;
mod machines;
mod seen;

pub use answer::{Answer, Reason, Row};

use crate::{
    config::{Config, CostsConfig, OnpremConfig, PricingSource},
    store::{PackedRollup, Store, StoreError},
};
use costs::{By, Costs, Hour, Seen};
use jiff::{SignedDuration, Timestamp};
use machines::Machine;
use std::{collections::BTreeMap, sync::Arc};

const HOUR: SignedDuration = SignedDuration::from_hours(1);
/// What is shown where no begin is named.
const USUAL: SignedDuration = SignedDuration::from_hours(7 * 24);
/// The longest time that is added up at once.
const LONGEST: SignedDuration = SignedDuration::from_hours(400 * 24);
/// So many rollups are read at once: most have a few kB.
const ROLLUPS_AT_ONCE: i64 = 512;
/// Hours of one machine that are read at once.
const HOURS_AT_ONCE: i64 = 128;
/// An hour's rollup is made at the latest so long after its end.
const MADE_AFTER_S: i64 = 1_800;

/// What of the settings decides what is told.
#[derive(Clone, Debug)]
pub struct Settings {
    costs: CostsConfig,
    source: PricingSource,
    onprem: OnpremConfig,
}

impl Settings {
    /// Those of this configuration.
    #[must_use]
    pub fn of(config: &Config) -> Self {
        Self { costs: config.costs.clone(), source: config.pricing.source, onprem: config.onprem.clone() }
    }
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    by: By,
    from: Timestamp,
    to: Timestamp,
}

impl Question {
    /// By these dimensions, from one moment to another; both are rounded down to hours. Where none is named, the last one is the begin of this hour, and the
    /// first one seven days before the last.
    ///
    /// # Errors
    /// What is wrong with the times, for people.
    pub fn new(by: By, from: Option<Timestamp>, to: Option<Timestamp>, now: Timestamp) -> Result<Self, String> {
        let to = hour_of(to.unwrap_or(now));
        let from = hour_of(from.unwrap_or_else(|| to.checked_sub(USUAL).unwrap_or(Timestamp::MIN)));
        if from >= to {
            return Err(format!("nothing lies between {from} and {to}; both are rounded down to hours"));
        }
        if to.duration_since(from) > LONGEST {
            return Err(format!("at most {} days are added up at once", LONGEST.as_hours() / 24));
        }
        Ok(Self { by, from, to })
    }
}

fn hour_of(time: Timestamp) -> Timestamp {
    let seconds = HOUR.as_secs();
    Timestamp::from_second(time.as_second().div_euclid(seconds) * seconds).unwrap_or(Timestamp::MIN)
}

/// Adds up what machines cost.
///
/// # Errors
/// If the database does not answer.
pub async fn attribute(store: &Store, settings: &Settings, question: &Question) -> Result<Answer, StoreError> {
    let (from_s, to_s) = (question.from.as_second(), question.to.as_second());
    let now_s = store.now().await?.as_second();
    let machines = machines::read(store, settings, from_s, now_s).await?;
    let weights = settings.costs.weights().unwrap_or_default();
    let mut costs = Costs::new(question.by.clone(), weights);
    let at_once = ROLLUPS_AT_ONCE / HOURS_AT_ONCE.min((to_s - from_s) / HOUR.as_secs()).max(1);
    for machines in machines.chunks(usize::try_from(at_once).unwrap_or(1).max(1)) {
        let mut hours: Vec<_> =
            machines.iter().map(|machine| machine.hours(from_s, to_s).into_iter().peekable()).collect();
        let mut at = question.from;
        while at < question.to {
            let next = at
                .checked_add(HOUR * i32::try_from(HOURS_AT_ONCE).unwrap_or(1))
                .unwrap_or(question.to)
                .min(question.to);
            let nodes: Vec<String> =
                machines.iter().filter(|machine| machine.is_node).map(|machine| machine.key.to_string()).collect();
            let rollups = store.packed_hours(&nodes, at, next).await?;
            for (machine, hours) in machines.iter().zip(&mut hours) {
                costs.machine(machine.number);
                while let Some(hour) = hours.next_if(|hour| hour.start_s < next.as_second()) {
                    add(&mut costs, &question.by, machine, &hour, &rollups, now_s);
                }
                // Each may have unpacked a hundred rollups.
                tokio::task::yield_now().await;
            }
            at = next;
        }
    }
    Ok(Answer::of(question, costs.report()))
}

/// Takes an hour of a machine up.
fn add(
    costs: &mut Costs,
    by: &By,
    machine: &Machine,
    hour: &Hour,
    rollups: &BTreeMap<(String, i64), PackedRollup>,
    now_s: i64,
) {
    let Some(place) = machine.place(hour.version) else { return };
    let day = || -> Arc<str> { day_of(hour.start_s).into() };
    // Of what has no bill nothing is split.
    let packed =
        rollups.get(&(machine.key.to_string(), hour.start_s.saturating_mul(1_000))).filter(|_| hour.billed_s > 0);
    let (seen, subjects) = match packed.map(PackedRollup::unpack) {
        Some(Ok(rollup)) => seen::of(&rollup, by.is_of_workloads(), &machine.key),
        Some(Err(error)) => {
            tracing::error!(node = &*machine.key, start_s = hour.start_s, %error, "a rollup cannot be read; its hour is told as unattributed");
            (Seen::Not("the rollup of the hour cannot be read by this version".into()), Vec::new())
        }
        None => (Seen::Not(not_seen(machine, hour, now_s).into()), Vec::new()),
    };
    costs.add(place, hour, (&seen, &subjects), day);
}

fn not_seen(machine: &Machine, hour: &Hour, now_s: i64) -> &'static str {
    match machine.is_node {
        false => "no agent has joined from the machine",
        true if hour.start_s + HOUR.as_secs() + MADE_AFTER_S > now_s => "the rollup of the hour is not made yet",
        true => {
            "no rollup of the hour is kept: the agent of the machine reported nothing, or it is past store.rollup_retention"
        }
    }
}

/// `2026-11-27`
fn day_of(second: i64) -> String {
    let time = Timestamp::from_second(second).unwrap_or(Timestamp::MIN);
    time.to_zoned(jiff::tz::TimeZone::UTC).date().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    #[test]
    fn the_usual_time_is_the_last_seven_days_up_to_this_hour() {
        let by = || "tool".parse::<By>().expect("a dimension");
        let now = at("2026-11-27T10:59:59Z");
        let question = Question::new(by(), None, None, now).expect("a question");
        assert_eq!((question.from, question.to), (at("2026-11-20T10:00:00Z"), at("2026-11-27T10:00:00Z")));
        let question = Question::new(by(), Some(at("2026-11-27T09:30:00Z")), None, now).expect("a question");
        assert_eq!((question.from, question.to), (at("2026-11-27T09:00:00Z"), at("2026-11-27T10:00:00Z")));
        let not = |from, to| Question::new(by(), Some(at(from)), Some(at(to)), now).expect_err("no question");
        assert!(not("2026-11-27T09:10:00Z", "2026-11-27T09:50:00Z").starts_with("nothing lies between"));
        assert!(not("2024-11-27T09:10:00Z", "2026-11-27T09:50:00Z").contains("400 days"));
        assert_eq!(day_of(at("2026-11-27T23:59:59Z").as_second()), "2026-11-27");
    }
}
