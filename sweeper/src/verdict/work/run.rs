//! Decides on a run as a whole: whether its tasks come to anything.

use super::{
    RunNow, WorkCase, WorkDecision, WorkSample, WorkUnknown,
    gaps::{gaps, span_ms},
};

/// So many failures without a success are no accident: engines try a task three times where they are told to try again.
const FAILURES: u64 = 5;

/// Decides on a run as a whole.
pub(super) fn decide(case: &WorkCase, begin: &WorkSample, end: &WorkSample, now: &RunNow) -> WorkDecision {
    let unknown = WorkDecision::Unknown;
    // One that began within the window has not been at it for long enough.
    let Some(before) = &begin.run else { return unknown(WorkUnknown::ObservedTooShort) };
    let failed = now.failed.saturating_sub(before.failed);
    let ended = now.ended.saturating_sub(before.ended);
    if ended > failed {
        return WorkDecision::Succeeded { tasks: ended - failed };
    }
    let span_ms = span_ms(begin, end);
    if span_ms < case.policy.stuck_after_ms {
        return unknown(WorkUnknown::ObservedTooShort);
    }
    if !end.is_exact {
        return unknown(WorkUnknown::NotMeasured { what: vec!["how each task ended".to_owned()] });
    }
    if let Some(lacking) = gaps(begin, end, span_ms) {
        return unknown(lacking);
    }
    if failed < FAILURES {
        return unknown(WorkUnknown::FewFailures { failed });
    }
    WorkDecision::Failing { tasks: failed, last: now.last.clone() }
}
