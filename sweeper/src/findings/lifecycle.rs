//! What a sweep's detection does to a finding.
//!
//! A finding opens when it is confirmed, stays open while nothing is known, and closes only when it is refuted. Work that was seen in
//! between ends one finding and begins another, so that `since` never reaches back over work. A time that nobody saw (the agent was restarted, the
//! rules changed, the sweep before was long ago) shows no work: the finding goes on, and `since` begins anew behind it.

use jiff::Timestamp;

/// What one sweep saw of one class of waste on one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Detection {
    /// It is so.
    Confirmed {
        /// Begin of the window that shows it.
        since: Timestamp,
        /// The last work that the same evidence shows, if it shows any.
        work: Option<Work>,
    },
    /// It is surely not so.
    Refuted {
        /// What shows it.
        because: String,
    },
    /// Nobody knows.
    NotKnown,
}

/// Work that was seen before the window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// When it was over.
    pub until: Timestamp,
    /// What it was, in words.
    pub what: String,
}

/// What becomes of the finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// There is none and there will be none.
    Nothing,
    /// A new one.
    Open {
        /// Since when.
        since: Timestamp,
    },
    /// It still holds, one more time in a row.
    Confirm {
        /// Since when.
        since: Timestamp,
    },
    /// Work was seen in between: the old one ends, a new one begins.
    Replace {
        /// Since when the new one holds.
        since: Timestamp,
        /// What ended the old one.
        because: String,
    },
    /// It stays as it is, but no longer confirmed in a row.
    Unconfirmed,
    /// It is over.
    Close {
        /// What refuted it.
        because: String,
    },
}

/// What becomes of a finding. `open` is its `since` and the end of the window that last confirmed it, if it is open.
#[must_use]
pub fn next(open: Option<(Timestamp, Timestamp)>, detection: &Detection) -> Change {
    match (open, detection) {
        (None, Detection::Confirmed { since, .. }) => Change::Open { since: *since },
        (None, Detection::Refuted { .. } | Detection::NotKnown) => Change::Nothing,
        (Some((since, confirmed_until)), Detection::Confirmed { since: seen, work }) => {
            let in_between = work.as_ref().filter(|work| confirmed_until < work.until);
            match in_between {
                Some(work) => {
                    Change::Replace { since: *seen, because: format!("work ran on it in between: {}", work.what) }
                }
                // The look-back cuts long windows: what begins within the window confirmed before carries it on.
                None if *seen <= confirmed_until => Change::Confirm { since: since.min(*seen) },
                None => Change::Confirm { since: *seen },
            }
        }
        (Some(_), Detection::Refuted { because }) => Change::Close { because: because.clone() },
        (Some(_), Detection::NotKnown) => Change::Unconfirmed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap_or_default()
    }

    fn confirmed(since: i64, worked_until: Option<i64>) -> Detection {
        let work = worked_until.map(|until| Work { until: at(until), what: "CPU".into() });
        Detection::Confirmed { since: at(since), work }
    }

    #[test]
    fn a_finding_opens_when_confirmed_and_only_then() {
        assert_eq!(next(None, &confirmed(5, None)), Change::Open { since: at(5) });
        assert_eq!(next(None, &confirmed(5, Some(4))), Change::Open { since: at(5) });
        assert_eq!(next(None, &Detection::NotKnown), Change::Nothing);
        assert_eq!(next(None, &Detection::Refuted { because: "it works".into() }), Change::Nothing);
    }

    #[test]
    fn a_window_that_overlaps_the_last_one_carries_the_finding_on() {
        let open = Some((at(100), at(200)));
        assert_eq!(next(open, &confirmed(150, None)), Change::Confirm { since: at(100) });
        assert_eq!(next(open, &confirmed(150, Some(90))), Change::Confirm { since: at(100) });
        assert_eq!(next(open, &confirmed(50, None)), Change::Confirm { since: at(50) });
    }

    #[test]
    fn work_in_between_ends_one_finding_and_begins_another() {
        let because = "work ran on it in between: CPU".to_owned();
        let replaced = Change::Replace { since: at(300), because };
        assert_eq!(next(Some((at(100), at(200))), &confirmed(300, Some(201))), replaced);
    }

    #[test]
    fn a_time_that_nobody_saw_is_no_work_and_no_idleness_either() {
        let open = Some((at(100), at(200)));
        assert_eq!(next(open, &confirmed(300, None)), Change::Confirm { since: at(300) });
        assert_eq!(next(open, &confirmed(300, Some(200))), Change::Confirm { since: at(300) }, "older work");
    }

    #[test]
    fn silence_never_closes_a_finding() {
        assert_eq!(next(Some((at(100), at(200))), &Detection::NotKnown), Change::Unconfirmed);
    }

    #[test]
    fn a_refutation_closes_it_with_its_reason() {
        let refuted = Detection::Refuted { because: "stopped".into() };
        assert_eq!(next(Some((at(100), at(200))), &refuted), Change::Close { because: "stopped".into() });
    }
}
