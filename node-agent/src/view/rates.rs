//! Rates between two heartbeats of one agent.
//!
//! Counters are cumulative: those of the host since boot, those of rows since the agent's start. So the first heartbeat
//! alone already gives the rates of its rows, and only what is the host's needs a second one. A row that was not there
//! before began at zero. A counter that runs backwards gives no rate.

use super::shape::{Machine, Pressure, Row, Run, Task, View};
use heartbeat::wire;
use std::collections::BTreeMap;

/// A count as a number to calculate with: exact up to 2⁵³, that is 104 days in nanoseconds.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "a rate on a screen has three digits")]
pub fn float(value: u64) -> f64 {
    value as f64
}

/// The present rates and the ones before.
struct Between<'a> {
    earlier: Option<&'a wire::Heartbeat>,
    seconds: f64,
    /// Whether counters of rows can be subtracted.
    same_agent: bool,
}

type RowKey = (String, u64, i32, String);

impl Between<'_> {
    fn delta(now: Option<u64>, then: Option<u64>) -> Option<u64> {
        now?.checked_sub(then?)
    }

    fn per_second(&self, now: Option<u64>, then: Option<u64>) -> Option<f64> {
        Self::delta(now, then).map(|delta| float(delta) / self.seconds)
    }

    fn host(&self, now: &wire::HostCounters, counter: impl Fn(&wire::HostCounters) -> Option<u64>) -> Option<f64> {
        self.per_second(counter(now), self.earlier?.counters.as_ref().and_then(&counter))
    }
}

impl View {
    /// What happened since `earlier`, or, without it, since the agent's start.
    #[must_use]
    pub fn new(earlier: Option<&wire::Heartbeat>, now: &wire::Heartbeat) -> Self {
        let interval = now.interval.unwrap_or_default();
        let before = earlier.and_then(|earlier| earlier.interval);
        let begin = before.map_or(interval.start_boottime_ns, |before| before.end_boottime_ns);
        let seconds = float(interval.end_boottime_ns.saturating_sub(begin).max(1)) / 1e9;
        let since = |interval: &wire::Interval| interval.counters_since_boottime_ns;
        let same_agent = before.is_none_or(|before| since(&before) == since(&interval));
        let between = Between { earlier, seconds, same_agent };
        let before = between.rows_before();
        let row = |run: &str, task: u64, row: &wire::WorkloadActivity| between.row(&before, run, task, row);
        let workloads = merged(now.workloads.iter().map(|found| row("", 0, found)));
        let runs = now.runs.iter().map(|run| between.run(&before, run, interval.end_boottime_ns)).collect();
        let coverage = now.coverage.as_ref();
        let cost = |heartbeat: &wire::Heartbeat| heartbeat.agent.as_ref().and_then(|agent| agent.cpu_ns);
        Self {
            host: now.host.clone().unwrap_or_default(),
            taken_unix_ms: interval.end_unix_ms,
            boottime_ns: interval.end_boottime_ns,
            seconds,
            ebpf: coverage.is_some_and(|coverage| coverage.source() == wire::Source::Ebpf),
            machine: between.machine(now, &workloads),
            workloads,
            runs,
            gpus: now.gpus.clone(),
            interactive_sessions: now.interactive_sessions,
            inbound_peers: now.inbound_peers.clone(),
            problems: coverage.map_or_else(Vec::new, |coverage| problems(&coverage.capabilities)),
            lost: between.lost(now),
            agent: (
                earlier.and_then(|earlier| between.per_second(cost(now), cost(earlier))).map(|ns| ns / 1e9),
                now.agent.as_ref().and_then(|agent| agent.resident_bytes),
            ),
        }
    }
}

fn problems(capabilities: &[wire::Capability]) -> Vec<wire::Capability> {
    let fine = |capability: &&wire::Capability| {
        !matches!(capability.status(), wire::CapabilityStatus::Ok | wire::CapabilityStatus::NotApplicable)
    };
    capabilities.iter().filter(fine).cloned().collect()
}

/// Two names may look the same once they are harmless: their rows are one.
fn merged(rows: impl Iterator<Item = Row>) -> Vec<Row> {
    let mut merged: BTreeMap<(i32, String), Row> = BTreeMap::new();
    for row in rows {
        match merged.entry((row.class.into(), row.key.clone())) {
            std::collections::btree_map::Entry::Vacant(entry) => drop(entry.insert(row)),
            std::collections::btree_map::Entry::Occupied(mut entry) => entry.get_mut().add(&row),
        }
    }
    merged.into_values().collect()
}

fn plus<T: std::ops::Add<Output = T>>(a: Option<T>, b: Option<T>) -> Option<T> {
    Some(a? + b?)
}

impl Row {
    fn add(&mut self, other: &Self) {
        self.processes = self.processes.saturating_add(other.processes);
        self.threads = self.threads.saturating_add(other.threads);
        self.cpu = plus(self.cpu, other.cpu);
        self.run_queue = plus(self.run_queue, other.run_queue);
        self.blocked_io = plus(self.blocked_io, other.blocked_io);
        self.memory_bytes = plus(self.memory_bytes, other.memory_bytes);
        self.disk = [plus(self.disk[0], other.disk[0]), plus(self.disk[1], other.disk[1])];
        self.network = [plus(self.network[0], other.network[0]), plus(self.network[1], other.network[1])];
        self.starts = plus(self.starts, other.starts);
        self.oom_kills = plus(self.oom_kills, other.oom_kills);
        self.cpu_ns = plus(self.cpu_ns, other.cpu_ns);
    }
}

impl Between<'_> {
    /// All rows of the heartbeat before, by run, task, class and key.
    fn rows_before(&self) -> BTreeMap<RowKey, &wire::WorkloadActivity> {
        let mut rows = BTreeMap::new();
        let Some(earlier) = self.earlier else { return rows };
        let mut add = |run: &str, task: u64, row| {
            rows.insert(key(run, task, row), row);
        };
        earlier.workloads.iter().for_each(|row| add("", 0, row));
        for run in &earlier.runs {
            run.activity.iter().for_each(|row| add(&run.id, 0, row));
            for task in &run.tasks {
                task.activity.iter().for_each(|row| add(&run.id, task.id.wrapping_add(1), row));
                task.tools.iter().for_each(|row| add(&run.id, task.id.wrapping_add(1), row));
            }
        }
        rows
    }

    fn row(
        &self,
        before: &BTreeMap<RowKey, &wire::WorkloadActivity>,
        run: &str,
        task: u64,
        row: &wire::WorkloadActivity,
    ) -> Row {
        let was = before.get(&key(run, task, row));
        let counter = |counter: fn(&wire::WorkloadActivity) -> Option<u64>| {
            // What was not there before began at zero, unless the agent itself began anew.
            let then = was.map_or(self.same_agent.then_some(0), |was| counter(was));
            if self.same_agent { (counter(row), then) } else { (None, None) }
        };
        let rate = |of: fn(&wire::WorkloadActivity) -> Option<u64>| {
            let (now, then) = counter(of);
            self.per_second(now, then)
        };
        let (kills, kills_before) = counter(|row| row.oom_kills);
        let starts = plus(rate(|row| row.forks), rate(|row| row.execs));
        Row {
            class: row.class(),
            key: row.key.clone(),
            name: row.name.clone(),
            command: row.top_command.clone(),
            processes: row.live_processes,
            threads: row.live_threads,
            cpu: rate(|row| row.cpu_ns).map(|ns| ns / 1e9),
            run_queue: rate(|row| row.run_queue_delay_ns).map(|ns| ns / 1e9),
            blocked_io: rate(|row| row.blocked_io_ns).map(|ns| ns / 1e9),
            memory_bytes: row.resident_bytes.or(row.peak_resident_bytes.filter(|_| row.live_processes > 0)),
            disk: [rate(|row| row.disk_read_bytes), rate(|row| row.disk_written_bytes)],
            network: [rate(|row| row.network_received_bytes), rate(|row| row.network_sent_bytes)],
            starts,
            oom_kills: Self::delta(kills, kills_before),
            cpu_ns: row.cpu_ns,
        }
    }

    fn run(&self, before: &BTreeMap<RowKey, &wire::WorkloadActivity>, run: &wire::Run, now_ns: u64) -> Run {
        let nothing = wire::WorkloadActivity::default();
        let age = |started: u64, ended: Option<u64>| ended.unwrap_or(now_ns).saturating_sub(started);
        let mut tasks = run.tasks.iter().collect::<Vec<_>>();
        tasks.sort_by_key(|task| (task.ended_boottime_ns.is_some(), std::cmp::Reverse(task.started_boottime_ns)));
        let task = |task: &wire::Task| {
            let row = |found| self.row(before, &run.id, task.id.wrapping_add(1), found);
            Task {
                name: task.name.clone(),
                age_ns: age(task.started_boottime_ns, task.ended_boottime_ns),
                wait_status: task.wait_status,
                ended: task.ended_boottime_ns.is_some(),
                row: row(task.activity.as_ref().unwrap_or(&nothing)),
                tools: task.tools.iter().map(row).collect(),
            }
        };
        Run {
            id: run.id.clone(),
            engine: run.engine.clone(),
            pipeline: run.pipeline.clone(),
            age_ns: age(run.started_boottime_ns, run.ended_boottime_ns),
            wait_status: run.wait_status,
            ended: run.ended_boottime_ns.is_some(),
            row: self.row(before, &run.id, 0, run.activity.as_ref().unwrap_or(&nothing)),
            counts: [run.tasks_started, run.tasks_ended, run.tasks_failed],
            tasks: tasks.into_iter().map(task).collect(),
        }
    }

    fn machine(&self, now: &wire::Heartbeat, rows: &[Row]) -> Machine {
        let nothing = wire::HostCounters::default();
        let counters = now.counters.as_ref().unwrap_or(&nothing);
        let rate = |of: fn(&wire::HostCounters) -> Option<u64>| self.host(counters, of);
        let cpus = |of: fn(&wire::HostCounters) -> Option<u64>| rate(of).map(|ns| ns / 1e9);
        let share = |of: fn(&wire::Pressure) -> Option<u64>| {
            let stall = |counters: &wire::HostCounters| counters.pressure.as_ref().and_then(of);
            self.host(counters, stall).map(|us| (us / 1e6).clamp(0.0, 1.0))
        };
        let sum = |of: fn(&Row) -> Option<f64>| {
            let values = rows.iter().map(of).collect::<Option<Vec<_>>>()?;
            (!values.is_empty()).then(|| values.iter().sum())
        };
        let kills = self.earlier.and_then(|earlier| earlier.counters.as_ref()).and_then(|then| then.oom_kills);
        Machine {
            cpu: cpus(|host| host.cpu_busy_ns),
            user: cpus(|host| host.cpu_user_ns),
            system: cpus(|host| host.cpu_system_ns),
            iowait: cpus(|host| host.cpu_iowait_ns),
            steal: cpus(|host| host.cpu_steal_ns),
            run_queue: sum(|row| row.run_queue),
            blocked_io: sum(|row| row.blocked_io),
            memory_available_bytes: counters.memory_available_bytes,
            disk: [rate(|host| host.disk_read_bytes), rate(|host| host.disk_written_bytes)],
            disk_operations: [rate(|host| host.disk_reads), rate(|host| host.disk_writes)],
            network: [rate(|host| host.network_received_bytes), rate(|host| host.network_sent_bytes)],
            switches: rate(|host| host.context_switches),
            created: rate(|host| host.tasks_created),
            major_faults: rate(|host| host.major_faults),
            reclaimed: rate(|host| host.direct_reclaim_pages),
            swapped: rate(|host| host.swap_pages),
            oom_kills: Self::delta(counters.oom_kills, kills),
            pressure: Pressure {
                cpu: share(|stall| stall.cpu_some_us),
                memory: share(|stall| stall.memory_some_us),
                memory_full: share(|stall| stall.memory_full_us),
                io: share(|stall| stall.io_some_us),
                io_full: share(|stall| stall.io_full_us),
            },
        }
    }

    fn lost(&self, now: &wire::Heartbeat) -> Vec<wire::Drop> {
        let drops = |heartbeat: &wire::Heartbeat| -> BTreeMap<String, u64> {
            let drops = heartbeat.coverage.iter().flat_map(|coverage| &coverage.drops);
            drops.map(|drop| (drop.name.clone(), drop.count)).collect()
        };
        let before = self.earlier.filter(|_| self.same_agent).map(drops).unwrap_or_default();
        let new = |(name, count): (String, u64)| {
            let count = count.saturating_sub(before.get(&name).copied().unwrap_or(0));
            (count > 0).then_some(wire::Drop { name, count })
        };
        drops(now).into_iter().filter_map(new).collect()
    }
}

fn key(run: &str, task: u64, row: &wire::WorkloadActivity) -> RowKey {
    (run.to_owned(), task, row.class, row.key.clone())
}
