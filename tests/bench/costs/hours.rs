//! Hours of work on paper, rolled up by the sweeper's own code: of each machine four runs a day of a pipeline of its own kind, with three tasks of two tools each; a service
//! beside them; and what runs on any machine.

use heartbeat::wire::{self, Class, Heartbeat, HostCounters, Run, Task, WorkloadActivity, WorkloadName};
use jiff::Timestamp;
use lab::sample;
use sweeper::rollup::{Adding, Period, Rollup, Tier};

const GIB: u64 = 1 << 30;
/// A heartbeat of five minutes.
const INTERVAL_MS: i64 = 300_000;
/// As many CPUs as an m5.xlarge has.
pub(crate) const CPUS: u32 = 4;
/// Kinds of machines: what is told of two of one kind differs by nothing but names.
pub(crate) const KINDS: usize = 40;
/// Hours of one run.
const HOURS_OF_A_RUN: i64 = 6;
const TOOLS: [&str; 12] = [
    "bwa",
    "samtools",
    "gatk",
    "fastqc",
    "multiqc",
    "star",
    "salmon",
    "bcftools",
    "picard",
    "trim_galore",
    "python3",
    "R",
];

/// What a machine of this kind did in the hour that begins then.
pub(crate) fn rollup(kind: usize, hour: Timestamp) -> Rollup {
    let begin_ms = hour.as_millisecond();
    let boot = sample::boot(1);
    let parts = (0..12_i64).map(|part| {
        let start_unix_ms = begin_ms + part * INTERVAL_MS;
        let mut adding = Adding::new(Period { tier: Tier::FiveMinutes, start_unix_ms });
        adding.earlier(boot, beat(kind, hour, part));
        adding.heartbeat(boot, beat(kind, hour, part + 1));
        adding.rollup().expect("a heartbeat ended in it")
    });
    Rollup::of_parts(parts).expect("twelve parts")
}

/// What was counted after so many intervals of the hour.
fn beat(kind: usize, hour: Timestamp, number: i64) -> Heartbeat {
    let end_unix_ms = hour.as_millisecond() + number * INTERVAL_MS;
    // Boots are as long ago for all: only differences count.
    let sequence = 1_000 + number.unsigned_abs();
    let ns = |sequence: u64| sequence * INTERVAL_MS.unsigned_abs() * 1_000_000;
    let mut beat = sample::heartbeat(sequence, Timestamp::from_millisecond(end_unix_ms).expect("a time"));
    beat.interval = Some(wire::Interval {
        start_unix_ms: end_unix_ms - INTERVAL_MS,
        end_unix_ms,
        start_boottime_ns: ns(sequence),
        end_boottime_ns: ns(sequence + 1),
        observed_since_unix_ms: end_unix_ms - INTERVAL_MS,
        counters_since_boottime_ns: 0,
    });
    let host = beat.host.as_mut().expect("a host");
    (host.interval_ms, host.cpus, host.memory_bytes) = (300_000, CPUS, 16 * GIB);
    // Thousandths of a core, from 0.1 to 2: one in two of these machines is too large.
    let busy = 100 + 50 * u64::try_from(kind).unwrap_or(0);
    let used = |thousandths: u64| Some(ns(sequence) / 1_000 * thousandths);
    let row = |class: Class, key: String, thousandths: u64, memory: u64| WorkloadActivity {
        class: class.into(),
        key,
        top_command: "python3".to_owned(),
        live_processes: 3,
        live_threads: 12,
        cpu_ns: used(thousandths),
        run_queue_delay_ns: Some(0),
        blocked_io_ns: Some(0),
        disk_read_bytes: Some(sequence * 40_960),
        disk_written_bytes: Some(sequence * 8_192),
        oom_kills: Some(0),
        resident_bytes: Some(memory),
        ..WorkloadActivity::default()
    };
    let unit = |name: &str| WorkloadName { kind: "systemd".to_owned(), id: name.to_owned(), container: None };
    let of_unit = |class, name: &str, thousandths, memory| WorkloadActivity {
        name: Some(unit(name)),
        ..row(class, format!("/system.slice/{name}"), thousandths, memory)
    };
    let batch = format!("/batch.slice/pipeline-{kind}");
    beat.workloads = vec![
        row(Class::Workload, batch.clone(), busy * 7 / 10, 2 * GIB),
        of_unit(Class::Workload, &format!("service-{}.service", kind % 7), busy / 10, GIB / 2),
        of_unit(Class::Housekeeping, "cron.service", 3, GIB / 64),
        of_unit(Class::Housekeeping, "chronyd.service", 1, GIB / 64),
        of_unit(Class::Self_, "node-agent.service", 2, GIB / 64),
        row(Class::Kernel, "/".to_owned(), 5, 0),
    ];
    beat.counters = Some(HostCounters {
        cpu_busy_ns: used(busy),
        cpu_user_ns: used(busy * 8 / 10),
        cpu_system_ns: used(busy * 2 / 10),
        cpu_steal_ns: Some(0),
        disk_read_bytes: Some(sequence * 81_920),
        disk_written_bytes: Some(sequence * 16_384),
        disk_reads: Some(sequence * 300),
        disk_writes: Some(sequence * 100),
        network_received_bytes: Some(sequence * 900_000),
        network_sent_bytes: Some(sequence * 300_000),
        rdma_received_bytes: Some(0),
        rdma_sent_bytes: Some(0),
        tasks_created: Some(sequence * 30),
        oom_kills: Some(0),
        major_faults: Some(0),
        swap_pages: Some(0),
        memory_available_bytes: Some(12 * GIB),
        memory_used_peak_bytes: Some(4 * GIB),
        ..HostCounters::default()
    });
    beat.runs =
        vec![run(kind, hour, &batch, |name, thousandths| row(Class::Workload, name.to_owned(), thousandths, GIB / 2))];
    beat
}

fn run(kind: usize, hour: Timestamp, batch: &str, row: impl Fn(&str, u64) -> WorkloadActivity) -> Run {
    let busy = 100 + 50 * u64::try_from(kind).unwrap_or(0);
    let tool = |at: usize| TOOLS[(kind + at) % TOOLS.len()];
    let task = |at: usize| Task {
        id: u64::try_from(at).unwrap_or(0),
        name: format!("task-{}", (kind + at) % 30),
        activity: Some(row("", busy * 2 / 10)),
        tools: vec![row(tool(2 * at), busy / 10), row(tool(2 * at + 1), busy * 9 / 100)],
        ..Task::default()
    };
    Run {
        id: format!("run-{}", hour.as_second() / 3_600 / HOURS_OF_A_RUN),
        engine: "nextflow".to_owned(),
        pipeline: format!("pipeline-{}", kind % 20),
        workload: batch.to_owned(),
        activity: Some(row("", busy * 65 / 100)),
        tasks: (0..3).map(task).collect(),
        ..Run::default()
    }
}
