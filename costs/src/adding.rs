//! What an hour comes to, part by part: the same for an answer and for what is kept of a day.

use crate::{
    Hour, Kind, Seen, Subject, To, View, Weights,
    split::{Part, split},
};
use std::sync::Arc;

/// Where the parts of an hour go.
pub(crate) trait Sums {
    /// The bill, and the seconds that it is for.
    fn bill(&mut self, micros: u64, billed_s: u64);

    /// What was spent on this: micro-dollars, or of [`Kind::NotKnown`] seconds. Never zero.
    fn line(&mut self, subject: Option<&Subject>, kind: Kind, amount: u64);

    /// Why something is not attributed, or not known: seconds and micro-dollars.
    fn reason(&mut self, kind: Kind, why: &Arc<str>, seconds: u64, micros: u64);
}

/// Why a part of an hour is not attributed of which the agent saw the others.
const PARTLY: &str = "no agent reported in this part of the hour";

/// Hands over every part of an hour. `subjects` are those of what was seen, in the same order.
pub(crate) fn add_up(
    sums: &mut impl Sums,
    view: View,
    hour: &Hour,
    (seen, subjects): (&Seen, &[Subject]),
    weights: &Weights,
) {
    for (why, seconds) in &hour.not_known {
        sums.line(None, Kind::NotKnown, *seconds);
        sums.reason(Kind::NotKnown, why, *seconds, 0);
    }
    if hour.billed_s == 0 {
        return;
    }
    sums.bill(hour.micros, hour.billed_s);
    // It is not kept which seconds of an hour an agent saw: those that are billed at a known price are seen as much as the others.
    let all_s = hour.billed_s + hour.not_known.iter().map(|(_, seconds)| seconds).sum::<u64>();
    for Part { to, micros } in split(hour.micros, all_s, seen, weights) {
        let (kind, subject) = match to {
            To::Used(at) => {
                let subject = subjects.get(at);
                (if subject.is_some_and(|of| of.is_system) { Kind::System } else { Kind::Used }, subject)
            }
            To::Reserved(at) => (Kind::ReservedUnused, subjects.get(at)),
            To::Unowned => (Kind::Unowned, None),
            To::Idle => (Kind::Idle, None),
            To::Unattributed => (Kind::Unattributed, None),
        };
        // What would run anyway is told as one.
        sums.line(subject.filter(|of| !of.is_system || view == View::Workloads), kind, micros);
        if kind == Kind::Unattributed {
            let (why, seen_s) = match seen {
                Seen::Not(why) => (Arc::clone(why), 0),
                Seen::Measured { seconds, .. } => (PARTLY.into(), *seconds),
            };
            sums.reason(kind, &why, all_s.saturating_sub(seen_s).min(hour.billed_s), micros);
        }
    }
}
