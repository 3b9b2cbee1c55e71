//! What a sweep's detection does to a finding.
//!
//! A finding opens when it is confirmed, stays open while nothing is known, and closes only when it is refuted. Work in
//! between ends one finding and begins another, so that `since` never reaches back over work.

use jiff::Timestamp;

/// What one sweep saw of one class of waste on one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Detection {
    /// It is so.
    Confirmed {
        /// Begin of the window that shows it.
        since: Timestamp,
    },
    /// It is surely not so.
    Refuted {
        /// What shows it.
        because: String,
    },
    /// Nobody knows.
    NotKnown,
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
    /// It was interrupted: the old one ends, a new one begins.
    Replace {
        /// Since when the new one holds.
        since: Timestamp,
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
        (None, Detection::Confirmed { since }) => Change::Open { since: *since },
        (None, Detection::Refuted { .. } | Detection::NotKnown) => Change::Nothing,
        (Some((since, confirmed_until)), Detection::Confirmed { since: seen }) => {
            // The look-back cuts long windows: what begins within the window confirmed before carries it on.
            if *seen <= confirmed_until {
                Change::Confirm { since: since.min(*seen) }
            } else {
                Change::Replace { since: *seen }
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

    #[test]
    fn a_finding_opens_when_confirmed_and_only_then() {
        assert_eq!(next(None, &Detection::Confirmed { since: at(5) }), Change::Open { since: at(5) });
        assert_eq!(next(None, &Detection::NotKnown), Change::Nothing);
        assert_eq!(next(None, &Detection::Refuted { because: "it works".into() }), Change::Nothing);
    }

    #[test]
    fn a_window_that_overlaps_the_last_one_carries_the_finding_on() {
        let open = Some((at(100), at(200)));
        assert_eq!(next(open, &Detection::Confirmed { since: at(150) }), Change::Confirm { since: at(100) });
        assert_eq!(next(open, &Detection::Confirmed { since: at(50) }), Change::Confirm { since: at(50) });
    }

    #[test]
    fn work_in_between_ends_one_finding_and_begins_another() {
        assert_eq!(
            next(Some((at(100), at(200))), &Detection::Confirmed { since: at(201) }),
            Change::Replace { since: at(201) }
        );
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
