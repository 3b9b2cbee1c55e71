//! What would have come of the plans that nobody approved: how often a machine that was to be stopped worked again within a day. Pure.
//!
//! It is the product's own precision, also where nobody lets it do anything. Each finding counts once, by its first plan.

use crate::{
    detectors::says_ended,
    reconcile::EventKind,
    store::{End, Unapproved},
};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

/// Who works again within so long would have missed the machine.
const WITHIN: SignedDuration = SignedDuration::from_hours(24);

/// How many machines it would have been wrong about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Shadow {
    /// Work was seen there within a day of the first plan: to stop it would have been wrong.
    pub worked: usize,
    /// None was, for a day or for as long as the machine was on.
    pub rested: usize,
    /// It has been on, and idle, for less than a day since.
    pub too_early: usize,
    /// It was not heard of any more within that day, or what ended it is not known.
    pub not_known: usize,
}

impl Shadow {
    /// Of these findings.
    #[must_use]
    pub fn of(findings: &[Unapproved], now: Timestamp) -> Self {
        let mut shadow = Self::default();
        for Unapproved { planned_at, end } in findings {
            let until = end.as_ref().map_or(now, |end| end.at);
            let is_over = until.duration_since(*planned_at) >= WITHIN;
            let count = match end {
                _ if is_over => &mut shadow.rested,
                None => &mut shadow.too_early,
                Some(end) if end.because.is_empty() => &mut shadow.not_known,
                Some(end) if says_ended(&end.because) => &mut shadow.rested,
                Some(End { kind: EventKind::Interrupted | EventKind::Resolved, .. }) => &mut shadow.worked,
                Some(_) => &mut shadow.not_known,
            };
            *count += 1;
        }
        shadow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hour: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_hours(hour)
    }

    #[test]
    fn a_plan_would_have_been_wrong_where_work_was_seen_within_a_day() {
        let ended = |hour, kind, because: &str| {
            let end = Some(End { at: at(hour), kind, because: because.to_owned() });
            Shadow::of(&[Unapproved { planned_at: at(0), end }], at(1_000))
        };
        let (worked, rested) = (Shadow { worked: 1, ..Shadow::default() }, Shadow { rested: 1, ..Shadow::default() });
        let work = "work ran on it in between: CPU time";
        assert_eq!(ended(23, EventKind::Interrupted, work), worked);
        assert_eq!(ended(23, EventKind::Resolved, "CPU time is above its threshold"), worked);
        assert_eq!(ended(24, EventKind::Interrupted, work), rested, "a day later");
        // Somebody has stopped or ended it by hand.
        assert_eq!(ended(2, EventKind::Resolved, "the instance is stopped"), rested);
        assert_eq!(ended(2, EventKind::Gone, "the provider lists the instance no more"), rested);
        let silent = ended(2, EventKind::Gone, "nothing has been heard of the host since 1970-01-01 00:00:00 UTC");
        assert_eq!(silent, Shadow { not_known: 1, ..Shadow::default() });
        assert_eq!(ended(2, EventKind::Resolved, ""), silent, "for no reason that is known");
    }

    #[test]
    fn what_is_open_still_is_judged_once_a_day_is_over() {
        let open = [Unapproved { planned_at: at(0), end: None }];
        assert_eq!(Shadow::of(&open, at(23)), Shadow { too_early: 1, ..Shadow::default() });
        assert_eq!(Shadow::of(&open, at(24)), Shadow { rested: 1, ..Shadow::default() });
        assert_eq!(Shadow::of(&[], at(24)), Shadow::default());
    }
}
