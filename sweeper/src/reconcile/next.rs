//! What a detector's answer does to a finding.
//!
//! A finding opens when it is confirmed, stays open while nothing is known, and closes only when it is refuted. Work that was seen in
//! between ends one finding and begins another, so that `since` never reaches back over work. A time that nobody saw (the agent was restarted, the
//! rules changed, the sweep before was long ago) shows no work: the finding goes on, and `since` begins anew behind it.

use crate::{detectors::Answer, verdict::words};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What is known of a finding that is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Before {
    /// Since when it lasts.
    pub since: Timestamp,
    /// So far the evidence reached that last confirmed it.
    pub confirmed_until: Timestamp,
    /// A provider listed the machine then.
    pub listed: bool,
}

/// What becomes of the finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum Change {
    /// There is none and there will be none.
    Nothing,
    /// A new one.
    Open {
        /// Since when.
        since: Timestamp,
        /// So far the evidence reaches.
        until: Timestamp,
    },
    /// It still holds, one more time in a row.
    Confirm {
        /// Since when.
        since: Timestamp,
        /// So far the evidence reaches.
        until: Timestamp,
    },
    /// Work was seen in between: the old one is interrupted, a new one begins.
    Interrupt {
        /// Since when the new one holds.
        since: Timestamp,
        /// So far the evidence reaches.
        until: Timestamp,
        /// What ended the old one.
        because: String,
    },
    /// It stays as it is, but no longer confirmed in a row.
    Unconfirmed,
    /// It is over: the waste is no more.
    Resolve {
        /// What refuted it.
        because: String,
    },
    /// It is over: the machine is no more.
    Gone {
        /// What shows it.
        because: String,
    },
}

impl Change {
    /// The decision alone: another version may say the same in other words.
    #[must_use]
    pub fn without_words(&self) -> Self {
        let because = String::new();
        match *self {
            Self::Interrupt { since, until, .. } => Self::Interrupt { since, until, because },
            Self::Resolve { .. } => Self::Resolve { because },
            Self::Gone { .. } => Self::Gone { because },
            ref other => other.clone(),
        }
    }

    /// In words that a person can check.
    #[must_use]
    pub fn in_words(&self) -> String {
        let window = |since: &Timestamp, until: &Timestamp| {
            format!("from {} to {}", words::time(since.as_millisecond()), words::time(until.as_millisecond()))
        };
        match self {
            Self::Nothing => "nothing".to_owned(),
            Self::Open { since, until } => format!("it is so, {}", window(since, until)),
            Self::Confirm { since, until } => format!("it still is so, {}", window(since, until)),
            Self::Interrupt { because, .. } => because.clone(),
            Self::Unconfirmed => "whether it is so is not known this time".to_owned(),
            Self::Resolve { because } | Self::Gone { because } => because.clone(),
        }
    }
}

/// What becomes of a finding. `was_asked` says whether a provider was asked about the machine this time: if not (credentials that were there before
/// may be missing for a moment), what one said before is neither confirmed nor forgotten, and only work on the machine can end the finding.
#[must_use]
pub fn next(before: Option<&Before>, answer: &Answer, was_asked: bool) -> Change {
    match (before, answer) {
        (None, &Answer::Confirmed { since, until, .. }) => Change::Open { since, until },
        (None, _) => Change::Nothing,
        (Some(before), Answer::Confirmed { .. }) if before.listed && !was_asked => Change::Unconfirmed,
        (Some(before), &Answer::Confirmed { since, until, ref work }) => {
            let in_between = work.as_ref().filter(|work| before.confirmed_until < work.until);
            match in_between {
                Some(work) => {
                    let because = format!("work ran on it in between: {}", work.what);
                    Change::Interrupt { since, until, because }
                }
                // The look-back cuts long windows: what begins within the window confirmed before carries it on.
                None if since <= before.confirmed_until => {
                    Change::Confirm { since: since.min(before.since), until: until.max(before.confirmed_until) }
                }
                None => Change::Confirm { since, until },
            }
        }
        (Some(_), Answer::Refuted { because }) => Change::Resolve { because: because.clone() },
        (Some(_), Answer::Gone { because }) => Change::Gone { because: because.clone() },
        (Some(_), Answer::NotKnown) => Change::Unconfirmed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detectors::Work;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap_or_default()
    }

    fn confirmed(since: i64, until: i64, worked_until: Option<i64>) -> Answer {
        let work = worked_until.map(|until| Work { until: at(until), what: "CPU".into() });
        Answer::Confirmed { since: at(since), until: at(until), work }
    }

    fn confirm(since: i64, until: i64) -> Change {
        Change::Confirm { since: at(since), until: at(until) }
    }

    const BEFORE: Before =
        Before { since: Timestamp::constant(100, 0), confirmed_until: Timestamp::constant(200, 0), listed: true };

    fn of(answer: &Answer) -> Change {
        next(Some(&BEFORE), answer, true)
    }

    #[test]
    fn a_finding_opens_when_confirmed_and_only_then() {
        let open = Change::Open { since: at(5), until: at(9) };
        assert_eq!(next(None, &confirmed(5, 9, None), true), open);
        assert_eq!(next(None, &confirmed(5, 9, Some(4)), false), open);
        assert_eq!(next(None, &Answer::NotKnown, true), Change::Nothing);
        for ended in [Answer::Refuted { because: "it works".into() }, Answer::Gone { because: "it is no more".into() }]
        {
            assert_eq!(next(None, &ended, true), Change::Nothing);
        }
    }

    #[test]
    fn a_window_that_overlaps_the_last_one_carries_the_finding_on() {
        assert_eq!(of(&confirmed(150, 250, None)), confirm(100, 250));
        assert_eq!(of(&confirmed(150, 250, Some(90))), confirm(100, 250));
        assert_eq!(of(&confirmed(50, 250, None)), confirm(50, 250));
        assert_eq!(of(&confirmed(150, 190, None)), confirm(100, 200), "what was confirmed once stays so");
    }

    #[test]
    fn work_in_between_ends_one_finding_and_begins_another() {
        let because = "work ran on it in between: CPU".to_owned();
        let interrupted = Change::Interrupt { since: at(300), until: at(400), because };
        assert_eq!(of(&confirmed(300, 400, Some(201))), interrupted);
    }

    #[test]
    fn a_time_that_nobody_saw_is_no_work_and_no_idleness_either() {
        assert_eq!(of(&confirmed(300, 400, None)), confirm(300, 400));
        assert_eq!(of(&confirmed(300, 400, Some(200))), confirm(300, 400), "older work");
    }

    #[test]
    fn silence_never_closes_a_finding() {
        assert_eq!(of(&Answer::NotKnown), Change::Unconfirmed);
    }

    #[test]
    fn what_a_provider_vouched_for_is_not_confirmed_while_nobody_asks_one() {
        assert_eq!(next(Some(&BEFORE), &confirmed(150, 250, None), false), Change::Unconfirmed);
        let unlisted = Before { listed: false, ..BEFORE };
        assert_eq!(next(Some(&unlisted), &confirmed(150, 250, None), false), confirm(100, 250));
        let works = Answer::Refuted { because: "it works".into() };
        assert_eq!(next(Some(&BEFORE), &works, false), Change::Resolve { because: "it works".into() });
    }

    #[test]
    fn a_refutation_and_an_absence_close_it_with_their_reasons() {
        let refuted = Answer::Refuted { because: "stopped".into() };
        assert_eq!(of(&refuted), Change::Resolve { because: "stopped".into() });
        let gone = Answer::Gone { because: "listed no more".into() };
        assert_eq!(of(&gone), Change::Gone { because: "listed no more".into() });
    }
}
