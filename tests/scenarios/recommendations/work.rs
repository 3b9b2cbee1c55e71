//! Days of work on an m5.xlarge (4 vCPUs, 16 GiB, $0.192 an hour), and what follows from it.
//!
//! At all times 0.3 cores are in use, which the rollups keep as 0.256 to 0.319; 3.5 GiB of memory; and a disk operation a second, of which all of half an hour
//! may have been done in five minutes: 6 a second. An m5.large (2 vCPUs, 8 GiB, $0.096) leaves the headroom above all of that: 1.6 cores, 6.4 GiB, 2,880 operations a second.
//! It saves (0.192 − 0.096) × 730 = $70.08. A c5.large would save more, but has 4 GiB, of which 3.2 may be used.
//! The machine with a spike has 7 GiB in use for half an hour each day.

use heartbeat::wire;
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use lab::sample;

/// In a month, in micro-dollars.
pub(crate) const SAVED: u64 = 70_080_000;
/// 7 GiB.
pub(crate) const SPIKE: u64 = 7 << 30;
const STEADY: u64 = 7 << 29;
pub(crate) const EVIDENCE: [&str; 4] = [
    "9 days observed with a weekend: 216 hours measured, 0 missing",
    "cores in use: 0.32 on average, at most 0.32 for 99 % of the time, 0.32 in the fullest interval",
    "memory in use: 3.5 GiB in the fullest second",
    "replayed on the other type: in 216 hours its fullest interval would have used 16 % of its vCPUs, and its fullest second 44 % of its memory",
];

/// A heartbeat of days is no better than one of a minute for what is asked here.
const INTERVAL: SignedDuration = SignedDuration::from_mins(30);
const INTERVAL_NS: u64 = 1_800_000_000_000;
const BEATS_A_DAY: u64 = 48;

/// What is told of a machine's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Memory {
    Steady,
    SpikeOnceADay,
    /// As by an agent that does not sample it once a second.
    NotSampled,
}

/// The end of the last hour whose rollup is made.
pub(crate) fn last() -> Timestamp {
    Timestamp::from_second(Timestamp::now().as_second() / 3_600 * 3_600).unwrap()
}

/// The heartbeats of so many whole days, and one before them.
pub(crate) fn beats(days: u64, memory: Memory) -> Vec<wire::Heartbeat> {
    let beats = days * BEATS_A_DAY;
    let end = |sequence: u64| last() - INTERVAL * i32::try_from(beats - sequence).unwrap();
    (0..=beats).map(|sequence| beat(sequence + 1, end(sequence), memory)).collect()
}

fn beat(sequence: u64, end: Timestamp, memory: Memory) -> wire::Heartbeat {
    let mut beat = sample::used(sequence, end, sequence * INTERVAL_NS / 10 * 3);
    let begin = end - INTERVAL;
    beat.interval = Some(wire::Interval {
        start_unix_ms: begin.as_millisecond(),
        end_unix_ms: end.as_millisecond(),
        start_boottime_ns: sequence * INTERVAL_NS,
        end_boottime_ns: (sequence + 1) * INTERVAL_NS,
        observed_since_unix_ms: begin.as_millisecond(),
        counters_since_boottime_ns: 0,
    });
    let host = beat.host.as_mut().unwrap();
    (host.interval_ms, host.cpus, host.memory_bytes) = (1_800_000, 4, 16 << 30);
    let is_spike = memory == Memory::SpikeOnceADay && {
        let begin = begin.to_zoned(TimeZone::UTC);
        (begin.hour(), begin.minute()) == (3, 0)
    };
    let in_use = if is_spike { SPIKE } else { STEADY };
    let counters = beat.counters.as_mut().unwrap();
    counters.cpu_steal_ns = Some(0);
    counters.memory_available_bytes = Some((16 << 30) - in_use);
    counters.memory_used_peak_bytes = (memory != Memory::NotSampled).then_some(in_use);
    (counters.disk_reads, counters.disk_writes) = (Some(sequence * 1_800), Some(0));
    counters.swap_pages = Some(0);
    beat.workloads[0].run_queue_delay_ns = Some(0);
    beat
}
