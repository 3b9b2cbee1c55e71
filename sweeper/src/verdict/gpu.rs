//! Whether the GPUs of a machine did anything, whatever the rest of it does.

use super::{Case, Observation, judge::touches};

/// What a case shows of a machine's GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GpuUse {
    /// None of them worked above the threshold, for `gpu_unused_after` at least.
    Unused {
        /// Begin of that time, in milliseconds since 1970-01-01 UTC.
        since_unix_ms: i64,
        /// Its end, likewise: the newest heartbeat's.
        until_unix_ms: i64,
    },
    /// One of them worked within that time.
    Used {
        /// End of the newest interval in which one did, in milliseconds since 1970-01-01 UTC.
        until_unix_ms: i64,
    },
    /// They were not read all the time, or not for long enough.
    NotKnown,
}

/// Looks back from the newest heartbeat, as far as the GPUs were read without a gap.
#[must_use]
pub fn gpu_use(case: &Case) -> GpuUse {
    let Some(node) = &case.node else { return GpuUse::NotKnown };
    let (until_unix_ms, after_ms) = (node.last_heartbeat_unix_ms, case.policy.gpu_unused_after_ms);
    let threshold_per_s = case.policy.gpu_busy_threshold_ns_per_s;
    let works = |seen: &Observation| seen.is_above(seen.gpu_busy_ns, threshold_per_s, node.interval_ms);
    let mut since_unix_ms = until_unix_ms;
    for seen in case.observations.iter().rev() {
        let in_reach = until_unix_ms.saturating_sub(seen.end_unix_ms) < after_ms;
        if works(seen) {
            return if in_reach { GpuUse::Used { until_unix_ms: seen.end_unix_ms } } else { break };
        }
        let is_read = seen.gpu_busy_ns.is_some() && touches(seen.end_unix_ms, since_unix_ms);
        if !is_read {
            // That they worked may still be seen, and refutes.
            let worked = case.observations.iter().rev().find(|seen| works(seen));
            let worked = worked.filter(|seen| until_unix_ms.saturating_sub(seen.end_unix_ms) < after_ms);
            if let Some(seen) = worked {
                return GpuUse::Used { until_unix_ms: seen.end_unix_ms };
            }
            break;
        }
        since_unix_ms = seen.start_unix_ms;
    }
    if until_unix_ms.saturating_sub(since_unix_ms) >= after_ms {
        GpuUse::Unused { since_unix_ms, until_unix_ms }
    } else {
        GpuUse::NotKnown
    }
}
