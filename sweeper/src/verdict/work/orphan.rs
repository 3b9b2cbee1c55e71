//! Decides on a task that lives after its run.

use super::{Progress, RunEnd, WorkCase, WorkDecision, WorkNow, WorkSample, WorkUnknown};

/// Decides on a task of a run that has ended.
pub(super) fn decide(
    case: &WorkCase,
    begin: &WorkSample,
    end: &WorkSample,
    now: &WorkNow,
    run_end: RunEnd,
) -> WorkDecision {
    let since_ms = end.end_boottime_ns.saturating_sub(run_end.ended_boottime_ns) / 1_000_000;
    let since_ms = i64::try_from(since_ms).unwrap_or(i64::MAX);
    let run_ended_unix_ms = end.end_unix_ms.saturating_sub(since_ms);
    // Tasks are given time to notice, and to write what they have.
    if since_ms < case.policy.stuck_after_ms {
        return WorkDecision::Unknown(WorkUnknown::EndedLately { run_ended_unix_ms });
    }
    let cpu_ns = |now: &WorkNow| now.counters.get(&Progress::Cpu).copied();
    let before_ns = begin.work.as_ref().and_then(cpu_ns);
    let used_ns = cpu_ns(now).zip(before_ns).map(|(now, before)| now.saturating_sub(before));
    WorkDecision::Orphaned {
        run_ended_unix_ms,
        run_wait_status: run_end.wait_status,
        processes: now.live_processes,
        cpu_ms: used_ns.map(|ns| ns / 1_000_000),
    }
}
