//! An hour and a half of work on an m5.large (2 cores, 8 GiB, $0.096 an hour), and what each part of it comes to.
//!
//! By the usual ratios cores weigh 2 × 31,611 = 63,222 and memory 8 × 4,237 = 33,896 of 97,118, so that of 96,000 micro-dollars 62,494 are for cores and 33,506
//! for memory. Through all of it bwa uses a quarter of the cores and an eighth of the memory, samtools half of that, the run's engine 2.5 % of the cores, a process outside
//! of it 5 % and half a GiB, housekeeping 2.5 %; another 2.5 % of the cores are busy and no row says by whom.
//!
//! The first hour is seen as a whole (cores + memory): bwa 15,624 + 4,188, samtools 7,812 + 2,094, the run 1,562, outside 3,125 + 2,094, housekeeping 1,562, nobody known
//! 1,562, idle 31,247 + 25,130. Of the second one half is seen, 48,000, of which 31,247 are for cores and 16,753 for memory: bwa 7,812 + 2,094, samtools 3,906 + 1,047,
//! the run 781, outside 1,562 + 1,047, housekeeping 781, nobody known 781, idle 15,624 + 12,565. Of the third nothing is seen.

use heartbeat::{
    NodeId,
    wire::{Class, Envelope, Heartbeat, HostCounters, Run, Task, WorkloadActivity, WorkloadName},
};
use jiff::{SignedDuration, Timestamp};
use lab::sample;

pub(crate) const BWA: u64 = 15_624 + 4_188 + 7_812 + 2_094;
pub(crate) const SAMTOOLS: u64 = 7_812 + 2_094 + 3_906 + 1_047;
pub(crate) const RUN: u64 = 1_562 + 781;
pub(crate) const OUTSIDE: u64 = 3_125 + 2_094 + 1_562 + 1_047;
pub(crate) const SYSTEM: u64 = 1_562 + 781;
/// Told by workload, the first hour's cores are split into other parts: 28,122.3 for the batch, 1,562.35 for housekeeping and for nobody known, 31,247 idle. Of the
/// micro-dollar that rounding leaves over housekeeping lost most, with nobody known, and comes first.
pub(crate) const SYSTEM_OF_WORKLOADS: u64 = 1_563 + 781;
pub(crate) const UNOWNED: u64 = 1_562 + 781;
pub(crate) const IDLE: u64 = 31_247 + 25_130 + 15_624 + 12_565;
pub(crate) const UNATTRIBUTED: u64 = 48_000 + 96_000;

/// A name that would be a formula in a spreadsheet.
pub(crate) const HOSTILE_TOOL: &str = "-samtools,\"x\"";
/// What cron's unit is called.
pub(crate) const HOUSEKEEPING: &str = "systemd cron.service";

/// Heartbeats of 30 s. The first one ends at the begin and belongs to the hour before.
const BEATS: u64 = 1 + 120 + 60;
const S: u64 = 1_000_000_000;
const GIB: u64 = 1 << 30;

pub(crate) fn envelope(node: &NodeId, begin: Timestamp) -> Envelope {
    let boot = sample::boot(1);
    let heartbeats = (1..=BEATS).map(|number| beat(number, begin)).collect();
    Envelope { heartbeats, oldest_retained_sequence: 1, ..sample::envelope(node, boot, &[], Timestamp::now()) }
}

/// What was counted after so many intervals.
fn beat(number: u64, begin: Timestamp) -> Heartbeat {
    let end = begin + SignedDuration::from_secs(30 * (i64::try_from(number).unwrap() - 1));
    let mut beat = sample::heartbeat(number, end);
    let interval = beat.interval.as_mut().unwrap();
    (interval.start_boottime_ns, interval.end_boottime_ns) = ((number - 1) * 30 * S, number * 30 * S);
    let host = beat.host.as_mut().unwrap();
    (host.cpus, host.memory_bytes) = (2, 8 * GIB);
    // One of two cores, and 2 of 8 GiB.
    beat.counters = Some(HostCounters {
        cpu_busy_ns: Some(number * 30 * S),
        memory_available_bytes: Some(6 * GIB),
        ..HostCounters::default()
    });
    let row = |class: Class, key: &str, ms_per_s: u64, memory: u64| WorkloadActivity {
        class: class.into(),
        key: key.to_owned(),
        cpu_ns: Some(number * 30 * S / 1_000 * ms_per_s),
        resident_bytes: Some(memory),
        ..WorkloadActivity::default()
    };
    let tool = |name: &str, ms_per_s, memory| row(Class::Workload, name, ms_per_s, memory);
    let cron = WorkloadName { kind: "systemd".to_owned(), id: "cron.service".to_owned(), container: None };
    beat.workloads = vec![
        row(Class::Workload, "/batch.slice/1", 900, 2 * GIB),
        WorkloadActivity { name: Some(cron), ..row(Class::Housekeeping, "/system.slice/cron.service", 50, 0) },
    ];
    let task = Task {
        id: 1,
        name: "align".to_owned(),
        activity: Some(tool("", 750, 3 * GIB / 2)),
        tools: vec![tool("bwa", 500, GIB), tool(HOSTILE_TOOL, 250, GIB / 2)],
        ..Task::default()
    };
    beat.runs = vec![Run {
        id: "7".to_owned(),
        engine: "nextflow".to_owned(),
        pipeline: "rnaseq".to_owned(),
        workload: "/batch.slice/1".to_owned(),
        activity: Some(tool("", 800, 3 * GIB / 2)),
        tasks: vec![task],
        ..Run::default()
    }];
    beat
}
