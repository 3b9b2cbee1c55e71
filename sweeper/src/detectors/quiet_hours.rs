//! Quiet hours: if and only if a machine's agent measured its last weeks, it worked in some of their hours, and in so many hours of the week as the policy asks for, four at a time at least, it did
//! hardly anything in any of these weeks, and the verdict on it is not `unknown`: what nobody reads of it today (an RDMA adapter, a GPU) may have worked in them.
//!
//! A schedule that stops it then would save their part of its price. What waited in these hours, rollups do not tell: nobody acts on it.

use super::{Answer, Class, Detector, Of};
use crate::{
    snapshot::{MachineInputs, SnapshotPart},
    verdict::Judgement,
};
use jiff::{SignedDuration, Timestamp};
use model::Verdict;

pub(super) const DETECTOR: Detector = Detector {
    class: Class::QuietHours,
    version: 1,
    rests_on: &[SnapshotPart::Inventory],
    answer: Of::Machine(answer),
};

/// Weeks are looked at once a day, machine by machine: what is older says nothing of today.
const FRESH: SignedDuration = SignedDuration::from_hours(72);

fn answer(inputs: &MachineInputs, judgement: &Judgement) -> Answer {
    let Some(case) = &inputs.week else { return Answer::NotKnown };
    let week = &case.week;
    let Ok(now) = Timestamp::from_millisecond(inputs.case.now_unix_ms) else { return Answer::NotKnown };
    if now.duration_since(week.until) > FRESH {
        return Answer::NotKnown;
    }
    if week.has_worked() && week.quiet_hours() >= case.least_hours {
        return match judgement.verdict {
            Verdict::Unknown => Answer::NotKnown,
            _ => Answer::Confirmed { since: week.from, until: week.until, work: None },
        };
    }
    if !week.is_complete() {
        return Answer::NotKnown;
    }
    Answer::Refuted {
        because: if week.has_worked() {
            format!("it was {}", week.in_words())
        } else {
            "it worked in no hour of these weeks".to_owned()
        },
    }
}
