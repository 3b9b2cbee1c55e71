//! Work that does nothing but compute.
//!
//! Work spins if and only if it should finish, and for `spinning_after` up to the newest heartbeat, in one boot and by one agent that was there all the time and lost nothing, it used half of one CPU or more, and
//! did nothing else: each of its other counters was measured and did not move, no task of it waited for anything (no voluntary switch, which every lock, sleep and answer of a disk is), and no GPU or RDMA adapter
//! worked. It may be a computation whose data fit into its caches, so this is a suspicion and no verdict: whoever allocates, logs or talks at all in that time is none.

use super::{Contract, Progress, WorkCase, WorkNow, WorkSample, gaps::gaps, gaps::span_ms, words};
use crate::verdict::window::Gpu;

/// What is known of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spin {
    /// It only computes.
    Computes {
        /// Since when, in milliseconds since 1970-01-01 UTC.
        since_unix_ms: i64,
        /// Until when.
        until_unix_ms: i64,
        /// CPU time that it used meanwhile, in milliseconds.
        cpu_ms: u64,
    },
    /// It does something else.
    DoesMore {
        /// What.
        what: String,
    },
    /// Nobody knows.
    NotKnown,
}

/// What a computation does not do.
const OTHERS: [Progress; 6] =
    [Progress::Starts, Progress::Exits, Progress::Faults, Progress::Calls, Progress::Disk, Progress::Network];

impl WorkCase {
    /// Whether the window of `stuck_after` leaves it possible, so that an earlier heartbeat is worth reading.
    #[must_use]
    pub fn may_spin(&self) -> bool {
        matches!(between(self, self.begin.as_ref()), Spin::Computes { .. })
    }
}

/// Whether it spins.
#[must_use]
pub fn spin(case: &WorkCase) -> Spin {
    match between(case, case.begin.as_ref()) {
        Spin::Computes { .. } => {}
        other => return other,
    }
    let spun = between(case, case.earlier.as_ref());
    match spun {
        Spin::Computes { since_unix_ms, until_unix_ms, .. }
            if until_unix_ms.saturating_sub(since_unix_ms) < case.policy.spinning_after_ms =>
        {
            Spin::NotKnown
        }
        other => other,
    }
}

/// What it did from this heartbeat on up to the newest one.
fn between(case: &WorkCase, begin: Option<&WorkSample>) -> Spin {
    match case.contract {
        Contract::BatchJob { .. } | Contract::RunTask(_) | Contract::Pod { .. } => {}
        Contract::OrphanedTask(_) | Contract::Run { .. } => return Spin::NotKnown,
    }
    let is_disputed = case.identity.is_some_and(|identity| identity.disputed_since_unix_ms.is_some());
    let Some(end) = case.end.as_ref().filter(|end| !is_disputed && !is_silent(case, end)) else {
        return Spin::NotKnown;
    };
    let is_comparable = |begin: &&WorkSample| {
        begin.boot_id == end.boot_id
            && begin.counters_since_boottime_ns == end.counters_since_boottime_ns
            && (begin.is_exact, end.is_exact) == (true, true)
            && begin.end_boottime_ns < end.end_boottime_ns
    };
    let Some(begin) = begin.filter(is_comparable) else { return Spin::NotKnown };
    let Some((before, now)) = begin.work.as_ref().zip(end.work.as_ref()) else { return Spin::NotKnown };
    let pair = |what: Progress| before.counters.get(&what).zip(now.counters.get(&what));
    if let Some(what) = OTHERS.into_iter().find(|what| pair(*what).is_some_and(|(before, now)| before != now)) {
        return Spin::DoesMore { what: words::counter(what).to_owned() };
    }
    let waits = before.waits.zip(now.waits);
    if waits.is_some_and(|(before, now)| before != now) {
        return Spin::DoesMore { what: "waits".to_owned() };
    }
    if [begin, end].iter().any(|sample| sample.gpu == Gpu::NotMeasured || sample.network_is_unread) {
        return Spin::NotKnown;
    }
    if begin.gpu_busy_ns != end.gpu_busy_ns || begin.rdma_bytes != end.rdma_bytes {
        return Spin::DoesMore { what: "a GPU or an RDMA adapter that works".to_owned() };
    }
    let is_measured = waits.is_some() && OTHERS.into_iter().all(|what| pair(what).is_some());
    let span = span_ms(begin, end);
    if !is_measured || gaps(begin, end, span).is_some() {
        return Spin::NotKnown;
    }
    match used_ms(before, now) {
        Some(cpu_ms) if i64::try_from(cpu_ms).is_ok_and(|cpu_ms| cpu_ms.saturating_mul(2) >= span) => Spin::Computes {
            since_unix_ms: end.end_unix_ms.saturating_sub(span),
            until_unix_ms: end.end_unix_ms,
            cpu_ms,
        },
        _ => Spin::NotKnown,
    }
}

fn is_silent(case: &WorkCase, end: &WorkSample) -> bool {
    let silent_after_ms = end.interval_ms.saturating_mul(i64::from(case.policy.missed_heartbeats).max(1));
    case.now_unix_ms.saturating_sub(end.end_unix_ms) > silent_after_ms
}

fn used_ms(before: &WorkNow, now: &WorkNow) -> Option<u64> {
    let cpu_ns = |work: &WorkNow| work.counters.get(&Progress::Cpu).copied();
    Some(cpu_ns(now)?.checked_sub(cpu_ns(before)?)? / 1_000_000)
}
