//! How busy machines were in their last full hours, and in the hours of their last weeks, by the rollups of their agents' heartbeats.

use super::{Context, SweepError};
use crate::{
    config::Config,
    detectors::Class,
    findings::Finding,
    rollup::{Period, Tier},
    snapshot::{Hours, HoursCase, HoursPolicy, Machine, WEEKS, Week, WeekCase},
    store::StoreError,
    verdict::Gpu,
};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::{SignedDuration, Timestamp};
use model::{ResourceKey, Verdict};
use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

/// So many machines are asked about at a time.
const AT_ONCE: usize = 8;
/// The rollup of an hour may be made so long after its end: heartbeats come late by some intervals, and are rolled up seconds later.
const SETTLED: SignedDuration = SignedDuration::from_mins(15);

/// The weeks of a machine are added up again after so long.
const WEEKS_MADE_EVERY: SignedDuration = SignedDuration::from_hours(24);
/// A sweep adds weeks up for so long; the others have their turn in the next one. A node's 672 hours take some 30 ms.
const LONGEST: Duration = Duration::from_secs(2);
/// Of a node that joined later, three weeks cannot have been measured.
const JOINED_FOR: SignedDuration = SignedDuration::from_hours(21 * 24);
/// So long the weeks of a node are kept that nobody asks about any more.
pub const WEEKS_KEPT: Duration = Duration::from_secs(7 * 86_400);

/// Reads them of each machine that waits, and of those whose finding may end by them.
pub(super) async fn read(
    context: &Context,
    machines: &mut [Machine],
    open: &[Finding],
    now: Timestamp,
) -> Result<(), SweepError> {
    let found = open.iter().filter(|finding| finding.class == Class::BarelyUsed);
    let found: HashSet<&ResourceKey> = found.map(|finding| &finding.resource).collect();
    let policy = policy(&context.config);
    let Some((from, until)) = last_hours(now, policy.hours()) else { return Ok(()) };
    let is_asked =
        |machine: &Machine| machine.judgement.verdict == Verdict::Waiting || found.contains(&machine.subject.id);
    let mut asked = Vec::new();
    for (at, machine) in machines.iter().enumerate().filter(|(_, machine)| is_asked(machine)) {
        asked.extend(machine.subject.node.as_ref().map(|node| (at, node.node_id.clone(), has_gpus(machine))));
    }
    // Only the busiest of each machine are kept: of all hours a fleet has too many.
    let read = asked.into_iter().map(|(at, node, has_gpus)| {
        let store = context.store.clone();
        async move {
            let hours = store.node_hours(&node, from, until).await?;
            Ok::<_, StoreError>((at, Hours::of(from, until, has_gpus, hours.iter().map(|(_, hour)| hour))))
        }
    });
    let read: Vec<_> = stream::iter(read).buffer_unordered(AT_ONCE).try_collect().await?;
    for (at, hours) in read {
        machines[at].inputs.hours = Some(HoursCase { hours, policy });
    }
    Ok(())
}

/// Whether it has GPUs, or nobody knows: an hour in which they were not read is no quiet one.
fn has_gpus(machine: &Machine) -> bool {
    machine.inputs.case.node.as_ref().is_none_or(|node| node.gpu != Gpu::Absent)
}

/// Says of each machine in which hours of the week it was quiet, as it was last added up, and adds it up anew where that is a day ago: longest ago first.
pub(super) async fn read_weeks(
    context: &Context,
    prefix: Option<&str>,
    machines: &mut [Machine],
    now: Timestamp,
) -> Result<(), SweepError> {
    let policy = policy(&context.config);
    let Some((from, until)) = last_hours(now, WEEKS * 168) else { return Ok(()) };
    let mut kept = context.store.weeks(prefix).await?;
    kept.retain(|_, (_, week)| week.policy == policy);
    let mut due = Vec::new();
    for (at, machine) in machines.iter_mut().enumerate() {
        let Some(node) = &machine.subject.node else { continue };
        let known = kept.remove(&node.node_id);
        let made_at = known.as_ref().map(|(made_at, _)| *made_at);
        let is_old = made_at.is_none_or(|made_at| now.duration_since(made_at) >= WEEKS_MADE_EVERY);
        if is_old && now.duration_since(node.joined_at) >= JOINED_FOR && !machine.is_blind() {
            due.push((made_at, at));
        }
        machine.inputs.week = known.map(|(_, week)| case(week, &context.config));
    }
    due.sort_unstable();
    let (began, mut made) = (Instant::now(), Vec::new());
    for (_, at) in due {
        let machine = &mut machines[at];
        let Some(node) = machine.subject.node.as_ref().filter(|_| began.elapsed() < LONGEST) else { break };
        let hours = context.store.node_hours(&node.node_id, from, until).await?;
        let done = hours.iter().map(|(begin, hour)| (*begin, hour));
        let week = Week::of((from, until), policy, has_gpus(machine), done);
        made.push((node.node_id.clone(), week.clone()));
        machine.inputs.week = Some(case(week, &context.config));
    }
    context.store.put_weeks(&made, now).await?;
    Ok(())
}

fn case(week: Week, config: &Config) -> WeekCase {
    WeekCase { week, least_hours: config.verdict.quiet_hours_of_week }
}

fn policy(config: &Config) -> HoursPolicy {
    let verdict = &config.verdict;
    HoursPolicy {
        after_s: verdict.barely_used_after.as_secs(),
        cpu_ns_per_s: verdict.barely_used_cpu_threshold_ns_per_s,
        bytes_per_s: verdict.barely_used_traffic_threshold_bytes_per_s,
        gpu_ns_per_s: verdict.gpu_busy_threshold_ns_per_s,
    }
}

/// The last full hours that are rolled up: their begin, and their end.
fn last_hours(now: Timestamp, hours: u32) -> Option<(Timestamp, Timestamp)> {
    let settled = now.checked_sub(SETTLED).ok()?;
    // The hour that has begun by then.
    let end_ms = Period::of(Tier::Hour, settled.as_millisecond().checked_add(1)?).start_unix_ms;
    let begin_ms = end_ms.checked_sub(i64::from(hours).checked_mul(Tier::Hour.length_ms())?)?;
    Some((Timestamp::from_millisecond(begin_ms).ok()?, Timestamp::from_millisecond(end_ms).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_hours_are_those_that_ended_a_quarter_of_an_hour_ago() {
        let at = |minutes: i64| Timestamp::UNIX_EPOCH + SignedDuration::from_mins(minutes);
        let of = |now, hours| last_hours(at(now), hours);
        assert_eq!(of(600, 2), Some((at(420), at(540))));
        assert_eq!(of(614, 2), Some((at(420), at(540))));
        assert_eq!(of(615, 2), Some((at(480), at(600))));
        assert_eq!(of(674, 1), Some((at(540), at(600))));
        assert_eq!(last_hours(Timestamp::MIN, 1), None);
        assert_eq!(last_hours(at(0), u32::MAX), None, "longer than there has been time");
    }
}
