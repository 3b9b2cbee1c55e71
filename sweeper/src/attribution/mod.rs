//! What machines cost through a time, split over what used them: from the history, the prices and the hourly rollups.
//!
//! Only instances (and nodes on premises that have a configured price) are billed here: volumes, addresses and snapshots are not. What was added up beforehand of whole
//! days is taken up ([`kept`]); of what is left rollups are read some hundred at a time and added up as they come. Memory grows with the number of machines and of different
//! values of what is asked by; time with the number of days that are kept of machines, and of rollups.
//! The rules are in the crate `costs`, which knows no database.

mod answer;
mod bounds;
pub mod focus;
mod hours;
pub mod kept;
mod machines;
mod seen;

pub use answer::{Answer, Reason, Row};
pub use bounds::NotAnswered;

use crate::{
    config::{Config, CostsConfig, OnpremConfig, PricingSource},
    store::Store,
};
use bounds::{BOUNDS, Bounds, LONGEST};
use costs::{By, Costs, Hour, View};
use hours::{Batch, Reported, pieces};
use jiff::{SignedDuration, Timestamp};
use machines::Machine;

const HOUR: SignedDuration = SignedDuration::from_hours(1);
/// What is shown where no begin is named.
const USUAL: SignedDuration = SignedDuration::from_hours(7 * 24);
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
/// If the database does not answer, or the question would take too much: that says what to ask instead.
pub async fn attribute(store: &Store, settings: &Settings, question: &Question) -> Result<Answer, NotAnswered> {
    let (answer, kept_days) = answered(store, settings, question, BOUNDS).await?;
    tracing::debug!(kept_days, "added up what machines cost");
    Ok(answer)
}

/// The answer, and of how many days of machines what is kept was taken up.
async fn answered(
    store: &Store,
    settings: &Settings,
    question: &Question,
    bounds: Bounds,
) -> Result<(Answer, usize), NotAnswered> {
    let (from_s, to_s) = (question.from.as_second(), question.to.as_second());
    let now_s = store.now().await?.as_second();
    let machines = machines::read(store, settings, from_s, now_s).await?;
    let weights = settings.costs.weights().unwrap_or_default();
    let mut costs = Costs::new(question.by.clone(), weights);
    let taken = kept::take_up(store, question, &machines, (weights, now_s), (&mut costs, bounds)).await?;
    let left = |(at, machine)| (machine, taken.left(at, from_s, to_s));
    if hours::rollups_of(machines.iter().enumerate().map(left), bounds.rollups).is_none() {
        return Err(NotAnswered::TooManyRollups(bounds.rollups));
    }
    let (mut batch, of) = (Batch::default(), (store, question.by.view(), now_s));
    for (at, machine) in machines.iter().enumerate() {
        for (from_s, to_s) in taken.left(at, from_s, to_s) {
            for piece in pieces(from_s, to_s) {
                batch.push(machine, piece);
                if batch.is_full() {
                    take_up(&mut batch, of, &mut costs, bounds).await?;
                }
            }
        }
    }
    take_up(&mut batch, of, &mut costs, bounds).await?;
    Ok((Answer::of(question, costs.report()), taken.count()))
}

/// Takes hours up by their rollups.
async fn take_up(
    batch: &mut Batch<'_>,
    (store, view, now_s): (&Store, View, i64),
    costs: &mut Costs,
    bounds: Bounds,
) -> Result<(), NotAnswered> {
    let take = |machine: &Machine, hour: &Hour, reported: &Reported| {
        let Some(place) = machine.place(hour.version) else { return };
        let (seen, subjects) = reported.seen(view, machine, hour, now_s);
        costs.machine(machine.number);
        costs.add(place, hour, (&seen, &subjects), || day_of(hour.start_s).into());
    };
    batch.each(store, take).await?;
    bounds.check_lines(costs)
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
        assert!(not("2024-11-27T09:10:00Z", "2026-11-27T09:50:00Z").contains("at most 92 days"));
        assert_eq!(day_of(at("2026-11-27T23:59:59Z").as_second()), "2026-11-27");
    }
}
