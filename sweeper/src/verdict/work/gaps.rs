//! What one agent may have missed between two heartbeats.

use super::{WorkSample, WorkUnknown};

/// From one end to the other, by the boot clock.
pub(super) fn span_ms(begin: &WorkSample, end: &WorkSample) -> i64 {
    i64::try_from(end.end_boottime_ns.saturating_sub(begin.end_boottime_ns) / 1_000_000).unwrap_or(i64::MAX)
}

/// What the agent did not see between two ends.
pub(super) fn gaps(begin: &WorkSample, end: &WorkSample, span_ms: i64) -> Option<WorkUnknown> {
    // A counter that runs backwards contradicts itself: what was lost is not known.
    if end.lost_events != begin.lost_events {
        return Some(WorkUnknown::LostEvents { count: end.lost_events.saturating_sub(begin.lost_events) });
    }
    // A machine that was suspended, or so loaded that its agent did not run, did not let its work run either. A quarter may be late.
    let made = end.sequence.saturating_sub(begin.sequence);
    let expected = u64::try_from(span_ms / end.interval_ms.max(1)).unwrap_or(u64::MAX);
    (made.saturating_mul(4) < expected.saturating_mul(3)).then_some(WorkUnknown::Gaps { made, expected })
}
