//! What was observed of a machine, as the crate `recommender` takes it: an hour's summary, since when the machine has had its type, and when it was stopped.
//!
//! What a summary does not tell is not known, and so is what it tells of less than 95 % of the hour.

use crate::{
    inventory::{Instance, InstanceState},
    rollup::{Activity, Counter, Peak, Resource, Sum, Summary},
};
use jiff::Timestamp;
use recommender::demand::{Flow, HOUR_MS, Hour, Levels, Span};

/// So much of an hour must have been measured.
const WHOLE_MS: u64 = HOUR_MS / 100 * 95;
const NS_PER_MS: u64 = 1_000_000;

/// What a machine was for a while.
#[derive(Clone, Debug)]
pub(super) struct Was {
    /// When it was first seen so.
    from: Timestamp,
    /// When it was first seen otherwise, or no more.
    until: Option<Timestamp>,
    /// None of a version that cannot be read: of another type and state than any, as far as is known.
    state: Option<InstanceState>,
    instance_type: Option<String>,
    launched_at: Option<Timestamp>,
}

impl Was {
    pub(super) fn of(from: Timestamp, until: Option<Timestamp>, instance: Option<Instance>) -> Self {
        let Some(Instance { state, instance_type, launched_at, .. }) = instance else {
            return Self { from, until, state: None, instance_type: None, launched_at: None };
        };
        Self { from, until, state: Some(state), instance_type, launched_at }
    }
}

/// Since when the machine has had the type that it has at this moment, as far as is known. While it runs nobody can change its type, so that a machine that was
/// first listed as running has had it since its start.
pub(super) fn typed_since(versions: &[Was], at: Timestamp) -> Option<Timestamp> {
    let mut back = versions.iter().rev().skip_while(|was| was.from > at);
    let now = back.next()?;
    let same = back.take_while(|was| was.instance_type.is_some() && was.instance_type == now.instance_type);
    let first = same.last().unwrap_or(now);
    let started = first.launched_at.filter(|_| first.state.as_ref().and_then(InstanceState::runs) == Some(true));
    Some(started.map_or(first.from, |started| started.min(first.from)))
}

/// When it was stopped, as complete listings have shown it: not in the time in which nobody listed it.
pub(super) fn stopped(versions: &[Was], not_listed: &[Span], at: Timestamp) -> Vec<Span> {
    let stopped = versions.iter().filter(|was| was.state == Some(InstanceState::Stopped) && was.from < at);
    stopped.flat_map(|was| without(Span { from: was.from, to: was.until.unwrap_or(at).min(at) }, not_listed)).collect()
}

/// What is left of a span, in its order.
fn without(span: Span, gaps: &[Span]) -> Vec<Span> {
    let (mut left, mut from) = (Vec::new(), span.from);
    for gap in gaps.iter().filter(|gap| gap.overlaps(span)) {
        if from < gap.from {
            left.push(Span { from, to: gap.from });
        }
        from = from.max(gap.to);
    }
    if from < span.to {
        left.push(Span { from, to: span.to });
    }
    left
}

/// How much of what a recommendation rests on the versions knew that made a rollup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Detail {
    /// The sweeper did not know disk operations, swap and the busiest five minutes.
    Old,
    /// The agent did not sample memory once a second.
    MemoryNotSampled,
    /// All of it.
    Full,
}

impl Detail {
    pub(super) fn of(node: &Activity) -> Self {
        match node.extremes {
            None => Self::Old,
            Some(extremes) if extremes.memory_sampled_ms == 0 => Self::MemoryNotSampled,
            Some(_) => Self::Full,
        }
    }
}

/// The hours before the first one of the most detail that there is, and those since. After an upgrade what was measured before says too little for 30 days otherwise; a
/// machine that never gets the detail keeps all of its hours, and is told what they lack.
pub(super) fn by_detail(hours: Vec<(Detail, Hour)>) -> (Vec<Hour>, Vec<Hour>) {
    let most = hours.iter().map(|(detail, _)| *detail).max();
    let first = hours.iter().position(|(detail, _)| Some(*detail) == most).unwrap_or_default();
    let mut earlier: Vec<Hour> = hours.into_iter().map(|(_, hour)| hour).collect();
    let since = earlier.split_off(first);
    (earlier, since)
}

/// What a machine did in the hour of this summary.
pub(super) fn hour(begin: Timestamp, Summary { node, run_queue_delay_ns, throttled_ns }: &Summary) -> Hour {
    let extremes = node.extremes.unwrap_or_default();
    let milli_cores: Levels = node.milli_cores.levels().collect();
    let enough_ms = enough_ms(milli_cores.total_ms());
    let whole = |sum: Option<Sum>| sum.filter(|sum| sum.1 >= enough_ms);
    let sum = |counter| whole(node.sum(counter));
    let both = |one, other| Some(Sum(sum(one)?.0.saturating_add(sum(other)?.0), sum(one)?.1.min(sum(other)?.1)));
    let busier = sum(Counter::NetworkReceived).zip(sum(Counter::NetworkSent)).map(|(one, other)| {
        // Of the same intervals, so of the same time.
        if one.0 > other.0 { one } else { other }
    });
    Hour {
        begin,
        cpus: node.resource(Resource::CpuCapacity).and_then(cpus),
        milli_cores,
        memory_peak_bytes: node.peaks.get(&Peak::Memory).copied().filter(|_| extremes.memory_sampled_ms >= enough_ms),
        run_queue_delay_ms: run_queue_delay_ns.map(|ns| ns.div_ceil(NS_PER_MS)),
        throttled_ms: throttled_ns.map(|ns| ns.div_ceil(NS_PER_MS)),
        steal_ms: sum(Counter::CpuSteal).map(|steal| steal.0.div_ceil(NS_PER_MS)),
        oom_kills: sum(Counter::OomKills).map(|kills| kills.0),
        swap_pages: whole(extremes.swap_pages).map(|pages| pages.0),
        network: flow(busier, extremes.network_per_s),
        disk: flow(both(Counter::DiskRead, Counter::DiskWritten), extremes.disk_per_s),
        disk_operations: flow(whole(extremes.disk_operations), extremes.disk_operations_per_s),
        rdma_bytes: both(Counter::RdmaReceived, Counter::RdmaSent).map(|bytes| bytes.0).or_else(|| some_rdma(node)),
    }
}

/// How many CPUs there were on average, if that is a whole number.
fn cpus(Sum(capacity_ns, ms): Sum) -> Option<u32> {
    let one = ms.checked_mul(NS_PER_MS).filter(|ns| *ns > 0)?;
    u32::try_from(capacity_ns / one).ok().filter(|cpus| *cpus > 0 && capacity_ns % one == 0)
}

/// Bytes that were seen in a part of the hour or in one direction alone: none seen there is not none.
fn some_rdma(node: &Activity) -> Option<u64> {
    let seen = [Counter::RdmaReceived, Counter::RdmaSent].into_iter().filter_map(|counter| node.sum(counter));
    Some(seen.fold(0_u64, |total, sum| total.saturating_add(sum.0))).filter(|bytes| *bytes > 0)
}

/// For how long a signal must have been measured in an hour of which so much was: for nearly all of it, or, where that is a part, for nearly all of that part. No part
/// counts as observed; what it shows speaks against a change.
const fn enough_ms(measured_ms: u64) -> u64 {
    if measured_ms == 0 || measured_ms >= WHOLE_MS { WHOLE_MS } else { (measured_ms * 95).div_ceil(100) }
}

fn flow(sum: Option<Sum>, peak: Option<u64>) -> Option<Flow> {
    let (Sum(grown, ms), peak) = (sum?, peak?);
    let mean = u64::try_from((u128::from(grown) * 1_000).div_ceil(u128::from(ms.max(1)))).unwrap_or(u64::MAX);
    Some(Flow { mean, peak: peak.max(mean) })
}

#[cfg(test)]
mod tests;
