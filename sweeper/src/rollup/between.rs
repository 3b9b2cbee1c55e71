//! What happened between two heartbeats of one boot, subject by subject.
//!
//! Counters are cumulative, so what lies between two heartbeats is known also where others were lost in between. Rows begin at zero with each
//! agent process: the first heartbeat of one tells of all that it counted. Any other whose predecessor is not there (it was lost for
//! good and none before it is kept) tells of no row: what its rows counted before may have been added up already.

use super::{
    activity::{Added, Counter, Extremes, Peak, Resource, Sum},
    subject::{Label, Subject, class},
};
use heartbeat::{
    BootId,
    wire::{self, Heartbeat, Interval, WorkloadActivity},
};
use std::collections::BTreeMap;

/// What happened in a longer time than this between two heartbeats is in neither rollup: it is not known when it happened.
const MAX_GAP_NS: u64 = 3_600_000_000_000;
/// The key of the row that holds what has no row of its own.
const OVERFLOW: &str = "overflow";

/// What one heartbeat adds to the period that it ended in.
#[derive(Debug)]
pub(super) struct Between {
    pub(super) node: Added,
    pub(super) subjects: BTreeMap<Subject, (Label, Added)>,
}

/// What a heartbeat adds; `earlier` is the one before it of the same boot, if there is one.
pub(super) fn between(boot: BootId, earlier: Option<&Heartbeat>, later: &Heartbeat) -> Between {
    let mut between = Between { node: Added::default(), subjects: BTreeMap::new() };
    let Some(interval) = &later.interval else { return between };
    let earlier = earlier.and_then(|heartbeat| Some((heartbeat, heartbeat.interval.as_ref()?)));
    if let Some((earlier, before)) = earlier
        && let Some(ms) = span_ms(before.end_boottime_ns, interval)
    {
        between.node = node(Some(earlier), later, ms);
    }
    let same_agent =
        earlier.filter(|(_, before)| before.counters_since_boottime_ns == interval.counters_since_boottime_ns);
    let is_first = interval.start_boottime_ns == interval.counters_since_boottime_ns;
    let (rows_before, begin_ns) = match same_agent {
        Some((earlier, before)) => (Some(earlier), before.end_boottime_ns),
        None if is_first => (None, interval.counters_since_boottime_ns),
        None => return between,
    };
    let Some(ms) = span_ms(begin_ns, interval) else { return between };
    // GPUs are counted by the agent itself, as rows are.
    let busy_ns = gpu_busy(rows_before, later);
    between.node.grown.push((Counter::GpuBusy, busy_ns));
    between.node.resources.push((Resource::GpuCapacity, gpu_capacity(busy_ns, later, ms)));
    if between.node.ms == 0 {
        between.node.ms = ms;
    }
    between.subjects.extend(workloads(rows_before, later, ms));
    between.subjects.extend(runs(boot, rows_before, later, ms));
    between
}

/// How long it is from this moment to the end of the interval, if that may be told.
fn span_ms(begin_ns: u64, interval: &Interval) -> Option<u64> {
    let gap_ns = interval.start_boottime_ns.saturating_sub(begin_ns);
    let ns = interval.end_boottime_ns.checked_sub(begin_ns)?;
    (gap_ns <= MAX_GAP_NS).then_some(ns / 1_000_000).filter(|ms| *ms > 0)
}

/// A cumulative counter that runs backwards contradicts itself: not measured.
fn grown(now: Option<u64>, then: Option<u64>) -> Option<u64> {
    now?.checked_sub(then?)
}

fn node(earlier: Option<&Heartbeat>, later: &Heartbeat, ms: u64) -> Added {
    let empty = wire::HostCounters::default();
    let now = later.counters.as_ref().unwrap_or(&empty);
    let then = earlier.and_then(|heartbeat| heartbeat.counters.as_ref()).unwrap_or(&empty);
    let of = |counter: fn(&wire::HostCounters) -> Option<u64>| grown(counter(now), counter(then));
    let host = later.host.as_ref();
    let cpu_ns = of(|c| c.cpu_busy_ns);
    let cpus = host.map(|host| u64::from(host.cpus)).filter(|cpus| *cpus > 0 && cpu_ns.is_some());
    let total = host.map(|host| host.memory_bytes).filter(|bytes| *bytes > 0);
    let used_now = total.zip(now.memory_available_bytes).and_then(|(total, available)| total.checked_sub(available));
    let resources = vec![
        (Resource::CpuCapacity, cpus.map(|cpus| cpus.saturating_mul(ms).saturating_mul(1_000_000))),
        (Resource::MemoryTime, used_now.map(|bytes| kib_ms(bytes, ms))),
        (Resource::MemoryCapacity, total.filter(|_| used_now.is_some()).map(|bytes| kib_ms(bytes, ms))),
    ];
    let sums = vec![
        (Counter::Cpu, cpu_ns),
        (Counter::CpuUser, of(|c| c.cpu_user_ns)),
        (Counter::CpuSystem, of(|c| c.cpu_system_ns)),
        (Counter::CpuSteal, of(|c| c.cpu_steal_ns)),
        (Counter::DiskRead, of(|c| c.disk_read_bytes)),
        (Counter::DiskWritten, of(|c| c.disk_written_bytes)),
        (Counter::NetworkReceived, of(|c| c.network_received_bytes)),
        (Counter::NetworkSent, of(|c| c.network_sent_bytes)),
        (Counter::RdmaReceived, of(|c| c.rdma_received_bytes)),
        (Counter::RdmaSent, of(|c| c.rdma_sent_bytes)),
        (Counter::Forks, of(|c| c.tasks_created)),
        (Counter::OomKills, of(|c| c.oom_kills)),
        (Counter::MajorFaults, of(|c| c.major_faults)),
    ];
    let in_use = now.memory_used_peak_bytes.or(used_now);
    let gpu_memory = later
        .gpus
        .iter()
        .map(|gpu| gpu.memory_used_bytes)
        .try_fold(0_u64, |sum, bytes| Some(sum.saturating_add(bytes?)));
    let has_gpu = !later.gpus.is_empty();
    let operations =
        of(|c| c.disk_reads).zip(of(|c| c.disk_writes)).map(|(read, written)| read.saturating_add(written));
    let extremes = Extremes {
        disk_operations: operations.map(|operations| Sum(operations, ms)),
        swap_pages: of(|c| c.swap_pages).map(|pages| Sum(pages, ms)),
        // The peak is of this heartbeat's own interval: what was in use while heartbeats were lost before it nobody knows.
        memory_sampled_ms: now.memory_used_peak_bytes.map_or(0, |_| own_ms(later).min(ms)),
        ..Extremes::default()
    };
    Added {
        ms,
        grown: sums,
        resources,
        memory_bytes: in_use,
        peaks: vec![(Peak::GpuMemory, gpu_memory.filter(|_| has_gpu))],
        extremes: Some(extremes),
    }
}

/// How long the heartbeat's own interval is.
fn own_ms(heartbeat: &Heartbeat) -> u64 {
    let ns = heartbeat.interval.as_ref().and_then(|own| own.end_boottime_ns.checked_sub(own.start_boottime_ns));
    ns.unwrap_or_default() / 1_000_000
}

/// Memory for a time.
fn kib_ms(bytes: u64, ms: u64) -> u64 {
    (bytes >> 10).saturating_mul(ms)
}

/// What the GPUs could have worked; `None` where it is not known what they did, or how many there are.
fn gpu_capacity(busy_ns: Option<u64>, later: &Heartbeat, ms: u64) -> Option<u64> {
    let has_unread = later.host.as_ref().is_none_or(|host| host.gpu_present);
    if later.gpus.is_empty() {
        return (!has_unread).then_some(0);
    }
    let gpus = u64::try_from(later.gpus.len()).unwrap_or(u64::MAX);
    busy_ns.map(|_| gpus.saturating_mul(ms).saturating_mul(1_000_000))
}

/// What the GPUs worked that this workload alone held; `None` where there is none.
fn own_gpus_busy(earlier: Option<&Heartbeat>, later: &Heartbeat, key: &str) -> Option<u64> {
    let own = later.gpus.iter().filter(|gpu| gpu.workloads == [key]);
    own.filter_map(|gpu| busy_since(earlier, gpu)).reduce(u64::saturating_add)
}

/// What a GPU worked.
fn busy_since(earlier: Option<&Heartbeat>, gpu: &wire::Gpu) -> Option<u64> {
    let before = match earlier.and_then(|earlier| earlier.gpus.iter().find(|before| before.uuid == gpu.uuid)) {
        Some(before) => before.busy_ns,
        // The agent began to read it since.
        None => Some(0),
    };
    grown(gpu.busy_ns, before)
}

/// What the GPUs worked; `None` if there is none, or one was not read.
fn gpu_busy(earlier: Option<&Heartbeat>, later: &Heartbeat) -> Option<u64> {
    if later.gpus.is_empty() {
        return None;
    }
    later.gpus.iter().try_fold(0_u64, |sum, gpu| Some(sum.saturating_add(busy_since(earlier, gpu)?)))
}

/// The counters of a row.
type Column = (Counter, fn(&WorkloadActivity) -> Option<u64>);

const COLUMNS: [Column; 14] = [
    (Counter::Cpu, |row| row.cpu_ns),
    (Counter::CpuUser, |row| row.cpu_user_ns),
    (Counter::CpuSystem, |row| row.cpu_system_ns),
    (Counter::RunQueueDelay, |row| row.run_queue_delay_ns),
    (Counter::BlockedIo, |row| row.blocked_io_ns),
    (Counter::DiskRead, |row| row.disk_read_bytes),
    (Counter::DiskWritten, |row| row.disk_written_bytes),
    (Counter::NetworkReceived, |row| row.network_received_bytes),
    (Counter::NetworkSent, |row| row.network_sent_bytes),
    (Counter::Forks, |row| row.forks),
    (Counter::Execs, |row| row.execs),
    (Counter::Exits, |row| row.exits),
    (Counter::OomKills, |row| row.oom_kills),
    (Counter::MajorFaults, |row| row.major_faults),
];

/// What a row grew by since another one of the same subject; since zero where there was none.
fn row(then: Option<&WorkloadActivity>, now: &WorkloadActivity, ms: u64) -> Added {
    let before = |column: fn(&WorkloadActivity) -> Option<u64>| then.map_or(Some(0), column);
    let mut sums: Vec<_> = COLUMNS.iter().map(|(counter, of)| (*counter, grown(of(now), before(*of)))).collect();
    // The cgroup's own, which began with the cgroup and not with the row.
    sums.push((Counter::CpuThrottled, grown(now.cpu_throttled_ns, then.and_then(|then| then.cpu_throttled_ns))));
    let memory_bytes = now.memory_working_set_bytes.or(now.resident_bytes);
    Added {
        ms,
        grown: sums,
        resources: vec![(Resource::MemoryTime, memory_bytes.map(|bytes| kib_ms(bytes, ms)))],
        memory_bytes,
        peaks: vec![(Peak::Processes, Some(now.live_processes.into())), (Peak::Threads, Some(now.live_threads.into()))],
        extremes: None,
    }
}

fn workloads(earlier: Option<&Heartbeat>, later: &Heartbeat, ms: u64) -> BTreeMap<Subject, (Label, Added)> {
    let by_key = |heartbeat: &Heartbeat| -> BTreeMap<(i32, String), WorkloadActivity> {
        heartbeat.workloads.iter().map(|row| ((row.class, row.key.clone()), row.clone())).collect()
    };
    let mut before = earlier.map(by_key).unwrap_or_default();
    let now = by_key(later);
    // A row that made room was added to its class's overflow row as a whole: it had been counted before.
    let gone: Vec<_> = before.iter().filter(|(key, _)| !now.contains_key(*key)).map(|(_, row)| row.clone()).collect();
    for row in gone.iter().filter(|row| row.key != OVERFLOW) {
        let overflow = before.entry((row.class, OVERFLOW.to_owned()));
        add_counters(overflow.or_insert_with(|| zeros(row.class)), row);
    }
    now.iter()
        .map(|(key, now)| {
            let subject = Subject::Workload { class: class(now).to_owned(), key: now.key.clone() };
            let mut added = row(before.get(key), now, ms);
            added.grown.push((Counter::GpuBusy, own_gpus_busy(earlier, later, &now.key)));
            (subject, (Label::of_workload(now), added))
        })
        .collect()
}

/// An overflow row that has counted nothing yet.
fn zeros(class: i32) -> WorkloadActivity {
    let zero = Some(0);
    WorkloadActivity {
        class,
        key: OVERFLOW.to_owned(),
        cpu_ns: zero,
        cpu_user_ns: zero,
        cpu_system_ns: zero,
        run_queue_delay_ns: zero,
        blocked_io_ns: zero,
        disk_read_bytes: zero,
        disk_written_bytes: zero,
        network_received_bytes: zero,
        network_sent_bytes: zero,
        forks: zero,
        execs: zero,
        exits: zero,
        oom_kills: zero,
        major_faults: zero,
        ..WorkloadActivity::default()
    }
}

/// Adds a row's counters to another one's. What one of them lacks, the sum lacks.
fn add_counters(to: &mut WorkloadActivity, row: &WorkloadActivity) {
    let add = |sum: &mut Option<u64>, value: Option<u64>| *sum = sum.and_then(|sum| Some(sum.saturating_add(value?)));
    add(&mut to.cpu_ns, row.cpu_ns);
    add(&mut to.cpu_user_ns, row.cpu_user_ns);
    add(&mut to.cpu_system_ns, row.cpu_system_ns);
    add(&mut to.run_queue_delay_ns, row.run_queue_delay_ns);
    add(&mut to.blocked_io_ns, row.blocked_io_ns);
    add(&mut to.disk_read_bytes, row.disk_read_bytes);
    add(&mut to.disk_written_bytes, row.disk_written_bytes);
    add(&mut to.network_received_bytes, row.network_received_bytes);
    add(&mut to.network_sent_bytes, row.network_sent_bytes);
    add(&mut to.forks, row.forks);
    add(&mut to.execs, row.execs);
    add(&mut to.exits, row.exits);
    add(&mut to.oom_kills, row.oom_kills);
    add(&mut to.major_faults, row.major_faults);
}

fn runs(boot: BootId, earlier: Option<&Heartbeat>, later: &Heartbeat, ms: u64) -> BTreeMap<Subject, (Label, Added)> {
    let before = earlier.map(|heartbeat| rows_of_runs(boot, heartbeat)).unwrap_or_default();
    let now = rows_of_runs(boot, later);
    now.into_iter()
        .map(|(subject, (label, now))| {
            let added = row(before.get(&subject).map(|(_, row)| *row), now, ms);
            (subject, (label, added))
        })
        .collect()
}

/// The rows of a heartbeat's runs, tasks and tools.
fn rows_of_runs(boot: BootId, heartbeat: &Heartbeat) -> BTreeMap<Subject, (Label, &WorkloadActivity)> {
    let mut rows = BTreeMap::new();
    for run in &heartbeat.runs {
        let id = || run.id.clone();
        if let Some(activity) = &run.activity {
            rows.insert(Subject::Run { boot, run: id() }, (Label::of_run(run), activity));
        }
        for task in &run.tasks {
            if let Some(activity) = &task.activity {
                let subject = Subject::Task { boot, run: id(), task: task.id };
                rows.insert(subject, (Label::of_task(task), activity));
            }
            for tool in &task.tools {
                let subject = Subject::Tool { boot, run: id(), task: task.id, tool: tool.key.clone() };
                rows.insert(subject, (Label { name: tool.key.clone(), ..Label::default() }, tool));
            }
        }
    }
    rows
}
