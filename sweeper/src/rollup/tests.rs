#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use heartbeat::wire::{Class, Gpu, Host, HostCounters, Interval, Run, Task, WorkloadActivity};

const BOOT: u128 = 0x6f1c_1c1e_0000_4000_8000_0000_0000_0001;
/// The begin of an hour.
const START_MS: i64 = 1_800_000_000_000;

fn boot() -> BootId {
    BootId(uuid::Uuid::from_u128(BOOT))
}

fn row(class: Class, key: &str, cpu_ns: u64) -> WorkloadActivity {
    WorkloadActivity { class: class.into(), key: key.to_owned(), cpu_ns: Some(cpu_ns), ..WorkloadActivity::default() }
}

/// The heartbeat of 30 s that ends so many seconds after the begin, of a node that booted at it.
fn beat(end_s: u64, workloads: Vec<WorkloadActivity>) -> Heartbeat {
    let end_ms = START_MS + i64::try_from(end_s).unwrap() * 1_000;
    Heartbeat {
        sequence: end_s / 30,
        interval: Some(Interval {
            start_unix_ms: end_ms - 30_000,
            end_unix_ms: end_ms,
            start_boottime_ns: (end_s - 30) * 1_000_000_000,
            end_boottime_ns: end_s * 1_000_000_000,
            observed_since_unix_ms: START_MS,
            counters_since_boottime_ns: 0,
        }),
        host: Some(Host { memory_bytes: 16 << 30, ..Host::default() }),
        counters: Some(HostCounters::default()),
        workloads,
        ..Heartbeat::default()
    }
}

/// Of the five minutes that begin with the boot.
fn of(heartbeats: impl IntoIterator<Item = Heartbeat>) -> Option<Rollup> {
    let mut adding = Adding::new(Period { tier: Tier::FiveMinutes, start_unix_ms: START_MS });
    heartbeats.into_iter().for_each(|heartbeat| adding.heartbeat(boot(), heartbeat));
    adding.rollup()
}

fn workload(key: &str) -> Subject {
    Subject::Workload { class: "workload".to_owned(), key: key.to_owned() }
}

fn cpu(rollup: &Rollup, key: &str) -> Option<Sum> {
    rollup.of(&workload(key)).and_then(|activity| activity.sum(Counter::Cpu))
}

#[test]
fn rows_count_from_the_agents_start_or_from_the_heartbeat_before() {
    let work = |end_s, cpu_s: u64| beat(end_s, vec![row(Class::Workload, "/a", cpu_s * 1_000_000_000)]);
    // The fourth was lost.
    let rollup = of([work(30, 15), work(60, 45), work(90, 45), work(150, 105)]).unwrap();
    assert_eq!((rollup.heartbeats, cpu(&rollup, "/a")), (4, Some(Sum(105_000_000_000, 150_000))));
    let activity = rollup.of(&workload("/a")).unwrap();
    // 0, 0.5 and 1 core: of its bucket the highest is told.
    assert_eq!([20, 40, 41, 100].map(|p| activity.milli_cores.percentile(p)), [0, 511, 1_023, 1_023].map(Some));
    assert_eq!(activity.milli_cores.total_ms(), 150_000);

    let second = Period { tier: Tier::FiveMinutes, start_unix_ms: START_MS + 300_000 };
    let mut adding = Adding::new(second);
    // The one before the period's first is only counted from.
    adding.heartbeat(boot(), work(300, 105));
    adding.heartbeat(boot(), work(330, 106));
    let rollup = adding.rollup().unwrap();
    assert_eq!((rollup.heartbeats, cpu(&rollup, "/a")), (1, Some(Sum(1_000_000_000, 30_000))));
}

#[test]
fn what_is_not_known_is_not_there() {
    let first = beat(30, vec![row(Class::Workload, "/a", 5)]);
    let mut other = row(Class::Workload, "/a", 9);
    other.disk_read_bytes = Some(7);
    let rollup = of([first, beat(60, vec![other])]).unwrap();
    // The row began without that counter: what it has now may be of before.
    let activity = rollup.of(&workload("/a")).unwrap();
    assert_eq!((activity.sum(Counter::DiskRead), activity.sum(Counter::NetworkSent)), (None, None));
    assert_eq!((rollup.node.sum(Counter::Cpu), rollup.node.sum(Counter::GpuBusy)), (None, None));
    assert_eq!(of([]), None);

    // No heartbeat before it, and it is not the agent's first.
    let rollup = of([beat(60, vec![row(Class::Workload, "/a", 5)])]).unwrap();
    assert_eq!((rollup.heartbeats, rollup.subjects.len()), (1, 0));
    // A counter that ran backwards.
    let rollup = of([30, 60].map(|end_s| beat(end_s, vec![row(Class::Workload, "/a", 100 - end_s)]))).unwrap();
    assert_eq!(cpu(&rollup, "/a"), Some(Sum(70, 30_000)));
    // Two hours in which nothing was heard.
    let mut late = beat(7_260, vec![row(Class::Workload, "/a", 1_000)]);
    late.interval.as_mut().unwrap().end_unix_ms = START_MS + 90_000;
    let rollup = of([beat(30, vec![row(Class::Workload, "/a", 10)]), late]).unwrap();
    assert_eq!((rollup.heartbeats, cpu(&rollup, "/a")), (2, Some(Sum(10, 30_000))));
}

#[test]
fn a_row_that_made_room_is_not_counted_again_by_the_row_that_took_it_up() {
    let before = beat(30, vec![row(Class::Workload, "/a", 100), row(Class::Workload, "overflow", 7)]);
    // 3 more before it made room, and 2 of others.
    let after = beat(60, vec![row(Class::Workload, "overflow", 112), row(Class::Housekeeping, "overflow", 4)]);
    let rollup = of([before.clone(), after]).unwrap();
    assert_eq!([cpu(&rollup, "/a"), cpu(&rollup, "overflow")], [Some(Sum(100, 30_000)), Some(Sum(12, 60_000))]);
    let total: u64 = rollup.subjects.iter().filter_map(|entry| entry.activity.sum(Counter::Cpu)).map(|sum| sum.0).sum();
    assert_eq!(total, 116);
    // One that comes back begins at zero.
    let back = beat(60, vec![row(Class::Workload, "/b", 1), row(Class::Workload, "overflow", 107)]);
    let rollup = of([before, back]).unwrap();
    assert_eq!([cpu(&rollup, "/b"), cpu(&rollup, "overflow")], [Some(Sum(1, 30_000)), Some(Sum(7, 60_000))]);
}

#[test]
fn after_a_restart_of_the_agent_the_host_is_counted_on_and_rows_begin_anew() {
    let counted = |mut beat: Heartbeat, busy_ns| {
        beat.counters.as_mut().unwrap().cpu_busy_ns = Some(busy_ns);
        beat
    };
    let first = counted(beat(30, vec![row(Class::Workload, "/a", 100)]), 1_000);
    let mut restarted = counted(beat(90, vec![row(Class::Workload, "/a", 4)]), 1_500);
    restarted.interval.as_mut().unwrap().counters_since_boottime_ns = 60_000_000_000;
    let rollup = of([first, restarted]).unwrap();
    assert_eq!(cpu(&rollup, "/a"), Some(Sum(104, 60_000)));
    assert_eq!(rollup.node.sum(Counter::Cpu), Some(Sum(500, 60_000)), "from the first heartbeat on");
}

#[test]
fn the_nodes_memory_and_gpus_and_what_limits_held_back() {
    let make = |end_s, busy_ns, throttled_ns| {
        let mut work = row(Class::Workload, "/a", 0);
        (work.cpu_throttled_ns, work.resident_bytes, work.live_processes) = (Some(throttled_ns), Some(3 << 20), 2);
        let mut beat = beat(end_s, vec![work]);
        beat.counters.as_mut().unwrap().memory_available_bytes = Some((16 << 30) - (5 << 20));
        let gpu = |uuid: &str| Gpu {
            uuid: uuid.to_owned(),
            busy_ns: Some(busy_ns),
            memory_used_bytes: Some(1 << 30),
            ..Gpu::default()
        };
        beat.gpus = vec![gpu("one"), gpu("other")];
        beat
    };
    let rollup = of([make(30, 5, 1_000), make(60, 9, 1_400)]).unwrap();
    assert_eq!(rollup.node.sum(Counter::GpuBusy), Some(Sum(18, 60_000)));
    assert_eq!(rollup.node.peaks[&Peak::GpuMemory], 2 << 30);
    assert_eq!((rollup.node.peaks[&Peak::Memory], rollup.node.memory_mib.percentile(50)), (5 << 20, Some(5)));
    let activity = rollup.of(&workload("/a")).unwrap();
    // The cgroup's counter is older than the row.
    assert_eq!(activity.sum(Counter::CpuThrottled), Some(Sum(400, 30_000)));
    assert_eq!((activity.peaks[&Peak::Processes], activity.peaks[&Peak::Memory]), (2, 3 << 20));
}

/// 4 CPUs, 16 GiB of which 5 are in use, and two GPUs, of which one is held by one workload alone.
#[test]
fn what_there_was_to_use_is_told_beside_what_was_used() {
    let make = |end_s: u64, busy_s: u64| {
        let mut work = row(Class::Workload, "/a", busy_s * 1_000_000_000);
        work.memory_working_set_bytes = Some(3 << 30);
        let mut beat = beat(end_s, vec![work, row(Class::Workload, "/b", 0)]);
        beat.host.as_mut().unwrap().cpus = 4;
        let counters = beat.counters.as_mut().unwrap();
        counters.cpu_busy_ns = Some(busy_s * 2_000_000_000);
        counters.memory_available_bytes = Some(11 << 30);
        counters.memory_used_peak_bytes = Some(9 << 30);
        let gpu = |uuid: &str, keys: &[&str]| Gpu {
            uuid: uuid.to_owned(),
            busy_ns: Some(busy_s * 1_000),
            workloads: keys.iter().map(|key| (*key).to_owned()).collect(),
            ..Gpu::default()
        };
        beat.gpus = vec![gpu("one", &["/a"]), gpu("other", &["/a", "/b"])];
        beat
    };
    let rollup = of([make(30, 10), make(60, 25)]).unwrap();
    let node = |counter| rollup.node.sum(counter);
    assert_eq!(node(Counter::Cpu), Some(Sum(30_000_000_000, 30_000)));
    let there = |resource| rollup.node.resource(resource);
    assert_eq!(there(Resource::CpuCapacity), Some(Sum(4 * 30_000_000_000, 30_000)));
    // What is in use at the end of an interval, not the highest within it; nothing is known before the second heartbeat.
    assert_eq!(there(Resource::MemoryTime), Some(Sum(5 * (1 << 20) * 30_000, 30_000)));
    assert_eq!(there(Resource::MemoryCapacity), Some(Sum(16 * (1 << 20) * 30_000, 30_000)));
    assert_eq!(there(Resource::GpuCapacity), Some(Sum(2 * 60_000_000_000, 60_000)));
    let work = |key: &str| rollup.of(&workload(key)).unwrap().clone();
    assert_eq!(work("/a").resource(Resource::MemoryTime), Some(Sum(3 * (1 << 20) * 60_000, 60_000)));
    assert_eq!(work("/b").resource(Resource::MemoryTime), None);
    assert_eq!((work("/a").sum(Counter::GpuBusy), work("/b").sum(Counter::GpuBusy)), (Some(Sum(25_000, 60_000)), None));

    // What is not measured has no capacity either; a machine without GPUs has none to use, and of one whose GPUs nobody reads it is not known.
    let mut unread = [beat(30, vec![]), beat(60, vec![])];
    let rollup = of(unread.clone()).unwrap();
    let capacity = [Resource::CpuCapacity, Resource::MemoryCapacity, Resource::GpuCapacity]
        .map(|resource| rollup.node.resource(resource));
    assert_eq!(capacity, [None, None, Some(Sum(0, 60_000))]);
    unread.iter_mut().for_each(|beat| beat.host.as_mut().unwrap().gpu_present = true);
    assert_eq!(of(unread).unwrap().node.resource(Resource::GpuCapacity), None);
}

#[test]
fn runs_tasks_and_tools_are_told_apart_and_labelled_by_the_newest() {
    let make = |end_s, cpu_ns, name: &str| {
        let task = Task {
            id: 3,
            name: name.to_owned(),
            activity: Some(row(Class::Workload, "", cpu_ns)),
            tools: vec![row(Class::Workload, "samtools", cpu_ns / 2)],
            ..Task::default()
        };
        let run = Run {
            id: "7".to_owned(),
            engine: "nextflow".to_owned(),
            pipeline: "rnaseq".to_owned(),
            activity: Some(row(Class::Workload, "", 2 * cpu_ns)),
            tasks: vec![task],
            ..Run::default()
        };
        Heartbeat { runs: vec![run], ..beat(end_s, vec![]) }
    };
    let rollup = of([make(30, 10, "first"), make(60, 30, "align (s1)")]).unwrap();
    let run = || "7".to_owned();
    let of = |subject: &Subject| rollup.subjects.iter().find(|entry| entry.subject == *subject).unwrap();
    let entry = of(&Subject::Run { boot: boot(), run: run() });
    assert_eq!((entry.label.kind.as_str(), entry.label.name.as_str()), ("nextflow", "rnaseq"));
    assert_eq!(entry.activity.sum(Counter::Cpu), Some(Sum(60, 60_000)));
    let entry = of(&Subject::Task { boot: boot(), run: run(), task: 3 });
    assert_eq!((entry.label.name.as_str(), entry.activity.sum(Counter::Cpu)), ("align (s1)", Some(Sum(30, 60_000))));
    let entry = of(&Subject::Tool { boot: boot(), run: run(), task: 3, tool: "samtools".to_owned() });
    assert_eq!(entry.activity.sum(Counter::Cpu), Some(Sum(15, 60_000)));
}

#[test]
fn an_hour_is_the_sum_of_its_parts_and_is_kept_as_it_was() {
    let make = |from_s: u64| {
        let start_unix_ms = START_MS + i64::try_from(from_s).unwrap() * 1_000;
        let mut adding = Adding::new(Period { tier: Tier::FiveMinutes, start_unix_ms });
        for end_s in (from_s..=from_s + 300).step_by(30).filter(|end_s| *end_s > 0) {
            adding.heartbeat(boot(), beat(end_s, vec![row(Class::Workload, "/a", end_s * 500_000_000)]));
        }
        adding.rollup().unwrap()
    };
    let parts: Vec<_> = (0..12).map(|part| make(part * 300)).collect();
    let hour = Rollup::of_parts(parts).unwrap();
    assert_eq!((hour.heartbeats, cpu(&hour, "/a")), (120, Some(Sum(1_800_000_000_000, 3_600_000))));
    assert_eq!(hour.of(&workload("/a")).unwrap().milli_cores.percentile(99), Some(511));
    let kept: Rollup = serde_json::from_str(&serde_json::to_string(&hour).unwrap()).unwrap();
    assert_eq!(kept, hour);
    assert_eq!(Rollup::of_parts([]), None);
}

#[test]
fn an_hour_has_the_five_minutes_in_which_most_flowed() {
    let make = |end_s: u64, received, operations, sampled: bool| {
        let mut beat = beat(end_s, vec![]);
        let counters = beat.counters.as_mut().unwrap();
        (counters.network_received_bytes, counters.network_sent_bytes) = (Some(received), Some(7));
        (counters.disk_reads, counters.disk_writes) = (Some(operations), Some(1));
        counters.swap_pages = Some(3);
        counters.memory_used_peak_bytes = sampled.then_some(1 << 30);
        beat
    };
    let part = |beats: Vec<Heartbeat>, number: i64| {
        let start_unix_ms = START_MS + number * 300_000;
        let mut adding = Adding::new(Period { tier: Tier::FiveMinutes, start_unix_ms });
        beats.into_iter().for_each(|beat| adding.heartbeat(boot(), beat));
        adding.rollup().unwrap()
    };
    // 60 s with 6,000 bytes and 120 operations, then nothing for 240 s, then 600 s at once with 900,000 bytes.
    let first = part(vec![make(30, 0, 0, true), make(90, 6_000, 120, true)], 0);
    assert_eq!(first.node.extremes.unwrap().network_per_s, None, "of an hour alone");
    let second = part(vec![make(300, 6_000, 120, true), make(330, 6_000, 120, true), make(600, 6_000, 120, false)], 1);
    let third = part(vec![make(600, 6_000, 120, true), make(1_200, 906_000, 120, true)], 3);
    let hour = Rollup::of_parts([first, second, third]).unwrap();
    let extremes = hour.node.extremes.unwrap();
    // All of it may have flowed in five minutes of the ten.
    assert_eq!((extremes.network_per_s, extremes.disk_operations_per_s), (Some(3_000), Some(2)));
    assert_eq!(extremes.disk_per_s, None, "not measured");
    assert_eq!(extremes.disk_operations, Some(Sum(120, 960_000)));
    assert_eq!(
        (extremes.swap_pages, extremes.memory_sampled_ms),
        (Some(Sum(0, 960_000)), 90_000),
        "of three heartbeats, each of 30 s"
    );
}

#[test]
fn a_flood_of_names_is_bounded_and_its_sum_stays() {
    let flood =
        |end_s: u64| beat(end_s, (0..2_000).map(|n| row(Class::Workload, &format!("/{end_s}/{n}"), n)).collect());
    // The names differ in each heartbeat, and each row was taken up by the overflow row when it made room.
    let rollup = of((1..=10).map(|n| flood(n * 30))).unwrap();
    assert_eq!(rollup.subjects.len(), 1_024 + 1);
    let total: u64 = rollup.subjects.iter().filter_map(|entry| entry.activity.sum(Counter::Cpu)).map(|sum| sum.0).sum();
    assert_eq!(total, 10 * (0..2_000).sum::<u64>());
    assert!(rollup.of(&workload("/300/1999")).is_some() && rollup.of(&workload("/300/0")).is_none());
}
