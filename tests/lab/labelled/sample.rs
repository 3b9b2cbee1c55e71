//! What a provider would have seen of a machine from outside.

use heartbeat::{BootId, wire};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use sweeper::verdict::Counters;

/// What one interval showed, as a provider would have seen it from outside.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// How long it was, in seconds.
    pub seconds: f64,
    /// CPU time of workloads, in seconds.
    pub work_cpu_s: f64,
    /// All other CPU time of the machine, in seconds: on an emulated machine tens of times what it is on a real one.
    pub other_cpu_s: f64,
    /// CPUs.
    pub cpus: u32,
    /// Bytes received from other machines, without the agent's own.
    pub received_bytes: f64,
    /// Bytes sent to other machines, likewise.
    pub sent_bytes: f64,
}

/// What the intervals between these times since boot showed.
pub(super) fn samples(heartbeats: &[(BootId, wire::Heartbeat)], from_ns: u64, to_ns: u64) -> Vec<Sample> {
    let pairs = heartbeats.windows(2).filter_map(|pair| {
        let [(boot, before), (_, after)] = pair else { return None };
        let (begin, end) = (before.interval.as_ref()?.end_boottime_ns, after.interval.as_ref()?.end_boottime_ns);
        if begin < from_ns || end > to_ns {
            return None;
        }
        let observation = Counters::of(*boot, after)?.since(&Counters::of(*boot, before)?, 0, 0)?;
        let delta = |counter: fn(&wire::HostCounters) -> Option<u64>| {
            Some(counter(after.counters.as_ref()?)?.saturating_sub(counter(before.counters.as_ref()?)?))
        };
        let seconds = |ns: u64| Duration::from_nanos(ns).as_secs_f64();
        let work_cpu_s = seconds(observation.workload_cpu_ns?);
        let bytes = |all: Option<u64>, own: Option<u64>| {
            Some(f64::from(u32::try_from(all?.saturating_sub(own.unwrap_or(0))).unwrap_or(u32::MAX)))
        };
        Some(Sample {
            seconds: seconds(end.saturating_sub(begin)),
            work_cpu_s,
            other_cpu_s: (seconds(delta(|counters| counters.cpu_busy_ns)?) - work_cpu_s).max(0.0),
            cpus: after.host.as_ref()?.cpus.max(1),
            received_bytes: bytes(
                delta(|counters| counters.network_received_bytes),
                delta(|counters| counters.own_network_received_bytes),
            )?,
            sent_bytes: bytes(
                delta(|counters| counters.network_sent_bytes),
                delta(|counters| counters.own_network_sent_bytes),
            )?,
        })
    });
    pairs.collect()
}
