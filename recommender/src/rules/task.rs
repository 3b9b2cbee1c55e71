//! *A task waits for disks*, and *a task has become slower*: what its owner should know, and what nobody approves.
//!
//! **It waits for disks** if and only if at least 20 of its runs were seen, CPU time and time blocked on storage were measured in 95 % of them, its threads were blocked for at least as
//! long as they had a CPU, and for at least a quarter of the time that the runs took.
//!
//! **It has become slower** since a day if and only if at least 10 runs began on that day or after it, and 10 before it over at least 7 days; half of the later ones took
//! at least one and a half times as long as half of the earlier ones; and nine of ten later ones took longer than nine of ten earlier ones. Of several such days it is the one that tells
//! the runs apart best: from whose medians the runs on both sides differ least, in sum. What grows slowly has no such day.
//!
//! What a task asks for is the rule *request*'s.

use jiff::{SignedDuration, Timestamp, civil::Date, tz::TimeZone};
use serde::{Deserialize, Serialize};

use crate::{blocker::Blocker, policy::Policy};

/// So many runs on each side of the day, at least.
const LEAST_RUNS: usize = 10;
/// So many days of history before it, at least.
const LEAST_DAYS: i64 = 7;

/// One run of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskRun {
    /// When it began.
    pub began: Timestamp,
    /// How long it took.
    pub lasted: SignedDuration,
    /// CPU time, in milliseconds.
    pub cpu_ms: Option<u64>,
    /// Time in which its threads were blocked on storage, in milliseconds.
    pub blocked_ms: Option<u64>,
    /// Bytes that it read from storage.
    pub read_bytes: Option<u64>,
}

/// A task that waits for disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitsForDisks {
    /// How many runs were seen.
    pub runs: u32,
    /// Of CPU time and time blocked on storage together, so many per cent were the latter, rounded down.
    pub blocked_per_cent: u32,
}

/// A task that has become slower.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slower {
    /// The first day on which it was.
    pub since: Date,
    /// Half of the runs before it took no longer.
    pub before: SignedDuration,
    /// Half of the runs from then on took no longer.
    pub after: SignedDuration,
    /// How many runs were before it.
    pub runs_before: u32,
    /// How many from then on.
    pub runs_after: u32,
    /// Whether half of the later ones also read one and a half times as much: then there is more to do. None: not measured in all of them.
    pub reads_more: Option<bool>,
}

/// Whether a task waits for disks.
///
/// # Errors
/// The reason why that cannot be said, or that it does not.
pub fn waits_for_disks(runs: &[TaskRun], policy: &Policy) -> Result<WaitsForDisks, Blocker> {
    let least = policy.least_runs.max(1);
    let number = count(runs.len());
    if number < least {
        return Err(Blocker::TooFewRuns { runs: number, least });
    }
    let measured = runs.iter().filter_map(|run| Some((run.lasted, run.cpu_ms?, run.blocked_ms?)));
    let measured: Vec<_> = measured.collect();
    if measured.len() * 100 < runs.len() * 95 {
        return Err(Blocker::NotMeasured { what: "CPU time or time blocked on storage".to_owned() });
    }
    let sum = |of: fn(&(SignedDuration, u64, u64)) -> u128| measured.iter().map(of).sum::<u128>();
    let lasted_ms = sum(|(lasted, ..)| lasted.as_millis().max(0).unsigned_abs());
    let (cpu_ms, blocked_ms) = (sum(|(_, cpu, _)| u128::from(*cpu)), sum(|(.., blocked)| u128::from(*blocked)));
    let per_cent = blocked_ms * 100 / (cpu_ms + blocked_ms).max(1);
    let blocked_per_cent = u32::try_from(per_cent).unwrap_or(100);
    if blocked_ms > 0 && blocked_ms >= cpu_ms && blocked_ms * 4 >= lasted_ms {
        Ok(WaitsForDisks { runs: number, blocked_per_cent })
    } else {
        Err(Blocker::DoesNotWaitForDisks { blocked_per_cent })
    }
}

/// Since which day a task has been slower than before, by the clock of this zone.
///
/// # Errors
/// The reason why that cannot be said, or that there is no such day.
pub fn slower(runs: &[TaskRun], zone: &TimeZone) -> Result<Slower, Blocker> {
    let mut runs = runs.to_vec();
    runs.sort_by_key(|run| (run.began, run.lasted, run.cpu_ms, run.blocked_ms, run.read_bytes));
    if runs.len() < 2 * LEAST_RUNS {
        return Err(Blocker::TooFewRuns { runs: count(runs.len()), least: count(2 * LEAST_RUNS) });
    }
    let days: Vec<Date> = runs.iter().map(|run| run.began.to_zoned(zone.clone()).date()).collect();
    let first_of_its_day = |at: &usize| at.checked_sub(1).and_then(|before| days.get(before)) != days.get(*at);
    let splits = (LEAST_RUNS..=runs.len() - LEAST_RUNS).filter(first_of_its_day);
    let best = splits.filter_map(|at| split(&runs, at)).min_by_key(|(apart, at, _)| (*apart, *at));
    let (_, at, slower) = best.ok_or(Blocker::NotSlower)?;
    let since = days.get(at).copied().ok_or(Blocker::NotSlower)?;
    Ok(Slower { since, ..slower })
}

/// How much the runs on both sides differ from their medians, in milliseconds, and what is told if the split is the day.
fn split(runs: &[TaskRun], at: usize) -> Option<(u128, usize, Slower)> {
    let (before, after) = runs.split_at_checked(at)?;
    let history = before.last()?.began.duration_since(before.first()?.began);
    if history < SignedDuration::from_hours(LEAST_DAYS * 24) {
        return None;
    }
    let lasted = |runs: &[TaskRun]| sorted(runs.iter().map(|run| run.lasted.as_millis()).collect());
    let (earlier, later) = (lasted(before), lasted(after));
    let (median_before, median_after) = (quantile(&earlier, 50)?, quantile(&later, 50)?);
    let is_apart = quantile(&later, 10)? > quantile(&earlier, 90)?;
    if !is_apart || median_after * 2 < median_before * 3 {
        return None;
    }
    let differ = |all: &[i128], median: i128| all.iter().map(|one| one.abs_diff(median)).sum::<u128>();
    let read = |runs: &[TaskRun]| {
        let read: Option<Vec<i128>> = runs.iter().map(|run| run.read_bytes.map(i128::from)).collect();
        quantile(&sorted(read?), 50)
    };
    let reads_more = read(before).zip(read(after)).map(|(before, after)| after > 0 && after * 2 >= before * 3);
    let duration = |ms: i128| SignedDuration::from_millis(i64::try_from(ms).unwrap_or(i64::MAX));
    let slower = Slower {
        since: Date::MIN,
        before: duration(median_before),
        after: duration(median_after),
        runs_before: count(before.len()),
        runs_after: count(after.len()),
        reads_more,
    };
    Some((differ(&earlier, median_before) + differ(&later, median_after), at, slower))
}

fn sorted(mut values: Vec<i128>) -> Vec<i128> {
    values.sort_unstable();
    values
}

/// The lowest value that so many per cent do not exceed.
fn quantile(sorted: &[i128], per_cent: usize) -> Option<i128> {
    let rank = (sorted.len() * per_cent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied()
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
