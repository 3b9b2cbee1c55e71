//! What of a heartbeat becomes which metric. Pure.
//!
//! Counters are the heartbeat's own, cumulative; what was not measured has no sample. A workload that is seen while there is room
//! gets series of its own and keeps them; one that finds no room is counted in `overflow` as long as it lives, so that neither
//! its own counters nor those of `overflow` ever run backwards.

use crate::{names, view::rates::float, workload::rows::OVERFLOW};
use heartbeat::wire::{self, CapabilityStatus, Class, HostCounters, WorkloadActivity};
use prometheus_client::registry::Unit;
use std::collections::BTreeMap;

/// Most workloads with series of their own.
pub const MAX_WORKLOADS: usize = 128;
/// Longest label, in bytes.
pub const MAX_LABEL_BYTES: usize = 160;

/// Takes one counter out of a row.
type Counter = fn(&WorkloadActivity) -> Option<u64>;

/// Names and values.
pub type Labels = Vec<(&'static str, String)>;

/// One metric.
#[derive(Clone, Debug)]
pub struct Family {
    /// Without unit and without `_total`; those are added where it is written.
    pub name: &'static str,
    /// What it says, in a sentence without its full stop.
    pub help: &'static str,
    /// Its unit.
    pub unit: Option<Unit>,
    /// Whether it only grows.
    pub counter: bool,
    /// Each set of labels once.
    pub samples: Vec<(Labels, f64)>,
}

/// Which workloads have series of their own.
#[derive(Debug, Default)]
pub struct Slots(BTreeMap<(i32, String), bool>);

impl Slots {
    /// Forgets who is gone and decides about who is new.
    fn update(&mut self, rows: &[WorkloadActivity]) {
        let present = rows.iter().map(|row| (row.class, row.key.clone())).collect::<std::collections::BTreeSet<_>>();
        self.0.retain(|key, _| present.contains(key));
        let mut taken = self.0.values().filter(|own| **own).count();
        for key in present {
            let is_overflow = key.1 == OVERFLOW;
            self.0.entry(key).or_insert_with(|| {
                let own = !is_overflow && taken < MAX_WORKLOADS;
                taken += usize::from(own);
                own
            });
        }
    }

    fn labels(&self, row: &WorkloadActivity) -> Labels {
        let class = match row.class() {
            Class::Workload | Class::Unspecified => "workload",
            Class::Housekeeping => "housekeeping",
            Class::Kernel => "kernel",
            Class::Self_ => "agent",
        };
        let own = self.0.get(&(row.class, row.key.clone())).copied().unwrap_or(false);
        let kind = row.name.as_ref().filter(|_| own).map_or("", |name| &name.kind);
        let key = if own { &row.key } else { OVERFLOW };
        vec![("class", class.to_owned()), ("kind", label(kind)), ("workload", label(key))]
    }
}

fn label(text: &str) -> String {
    names::harmless_within(text, MAX_LABEL_BYTES).unwrap_or_else(|| text.to_owned())
}

struct Builder(Vec<Family>);

impl Builder {
    fn add(
        &mut self,
        name: &'static str,
        help: &'static str,
        unit: Option<Unit>,
        counter: bool,
        samples: Vec<(Labels, f64)>,
    ) {
        let mut merged: BTreeMap<Labels, f64> = BTreeMap::new();
        for (labels, value) in samples {
            *merged.entry(labels).or_insert(0.0) += value;
        }
        if !merged.is_empty() {
            self.0.push(Family { name, help, unit, counter, samples: merged.into_iter().collect() });
        }
    }

    fn gauge(&mut self, name: &'static str, help: &'static str, unit: Option<Unit>, value: Option<f64>) {
        self.add(name, help, unit, false, value.map(|value| (Labels::new(), value)).into_iter().collect());
    }
}

fn seconds(ns: u64) -> f64 {
    float(ns) / 1e9
}

fn by(name: &'static str, values: &[(&str, Option<u64>)], scale: fn(u64) -> f64) -> Vec<(Labels, f64)> {
    let samples =
        values.iter().filter_map(|(label, value)| Some((vec![(name, (*label).to_owned())], scale((*value)?))));
    samples.collect()
}

/// All metrics of a heartbeat.
#[must_use]
pub fn families(heartbeat: &wire::Heartbeat, slots: &mut Slots) -> Vec<Family> {
    slots.update(&heartbeat.workloads);
    let mut out = Builder(Vec::new());
    let nothing = HostCounters::default();
    of_host(&mut out, heartbeat.counters.as_ref().unwrap_or(&nothing));
    out.gauge(
        "cloudsweeper_host_memory",
        "Memory of the host",
        Some(Unit::Bytes),
        heartbeat.host.as_ref().map(|host| float(host.memory_bytes)),
    );
    of_workloads(&mut out, heartbeat, slots);
    of_the_rest(&mut out, heartbeat);
    of_agent(&mut out, heartbeat);
    out.0
}

fn of_host(out: &mut Builder, host: &HostCounters) {
    let modes = [
        ("user", host.cpu_user_ns),
        ("system", host.cpu_system_ns),
        ("iowait", host.cpu_iowait_ns),
        ("steal", host.cpu_steal_ns),
    ];
    out.add("cloudsweeper_host_cpu", "CPU time of the host", Some(Unit::Seconds), true, by("mode", &modes, seconds));
    let bytes = [("read", host.disk_read_bytes), ("written", host.disk_written_bytes)];
    out.add(
        "cloudsweeper_host_disk",
        "Bytes to and from block devices",
        Some(Unit::Bytes),
        true,
        by("direction", &bytes, float),
    );
    let operations = [("read", host.disk_reads), ("write", host.disk_writes)];
    out.add(
        "cloudsweeper_host_disk_operations",
        "Operations of block devices",
        None,
        true,
        by("operation", &operations, float),
    );
    let bytes = [("received", host.network_received_bytes), ("sent", host.network_sent_bytes)];
    out.add(
        "cloudsweeper_host_network",
        "Bytes over the host's interfaces that have a device of their own",
        Some(Unit::Bytes),
        true,
        by("direction", &bytes, float),
    );
    let bytes = [("received", host.rdma_received_bytes), ("sent", host.rdma_sent_bytes)];
    out.add(
        "cloudsweeper_host_rdma",
        "Bytes over RDMA adapters, past the sockets",
        Some(Unit::Bytes),
        true,
        by("direction", &bytes, float),
    );
    if let Some(pressure) = &host.pressure {
        let stalls = [
            ("cpu", "some", pressure.cpu_some_us),
            ("memory", "some", pressure.memory_some_us),
            ("memory", "full", pressure.memory_full_us),
            ("io", "some", pressure.io_some_us),
            ("io", "full", pressure.io_full_us),
        ];
        let samples = stalls.into_iter().filter_map(|(resource, tasks, us)| {
            Some((vec![("resource", resource.to_owned()), ("tasks", tasks.to_owned())], float(us?) / 1e6))
        });
        out.add(
            "cloudsweeper_host_pressure",
            "Time in which tasks waited",
            Some(Unit::Seconds),
            true,
            samples.collect(),
        );
    }
    for (name, help, value) in [
        ("cloudsweeper_host_tasks_created", "Processes and threads created", host.tasks_created),
        ("cloudsweeper_host_context_switches", "Context switches", host.context_switches),
        ("cloudsweeper_host_major_faults", "Page faults that needed storage", host.major_faults),
        ("cloudsweeper_host_oom_kills", "Processes killed by the out-of-memory killer", host.oom_kills),
    ] {
        out.add(name, help, None, true, value.map(|value| (Labels::new(), float(value))).into_iter().collect());
    }
    out.gauge(
        "cloudsweeper_host_memory_available",
        "Memory that can be had without swapping",
        Some(Unit::Bytes),
        host.memory_available_bytes.map(float),
    );
    out.gauge(
        "cloudsweeper_host_memory_used_peak",
        "Most memory in use within the last interval",
        Some(Unit::Bytes),
        host.memory_used_peak_bytes.map(float),
    );
}

fn of_workloads(out: &mut Builder, heartbeat: &wire::Heartbeat, slots: &Slots) {
    let rows = || heartbeat.workloads.iter().map(|row| (slots.labels(row), row));
    let samples = |value: &dyn Fn(&WorkloadActivity) -> Option<f64>| -> Vec<(Labels, f64)> {
        rows().filter_map(|(labels, row)| Some((labels, value(row)?))).collect()
    };
    let pair = |name: &'static str, values: [(&str, Counter); 2]| -> Vec<(Labels, f64)> {
        let mut all = Vec::new();
        for (labels, row) in rows() {
            for (word, value) in values {
                let with = labels.iter().cloned().chain([(name, word.to_owned())]).collect();
                all.extend(value(row).map(|value| (with, float(value))));
            }
        }
        all
    };
    for (name, help, value) in [
        ("cloudsweeper_workload_cpu", "CPU time", (|row| row.cpu_ns) as Counter),
        ("cloudsweeper_workload_run_queue", "Time in which tasks could have run and had no CPU", |row| {
            row.run_queue_delay_ns
        }),
        ("cloudsweeper_workload_blocked_io", "Time in which tasks were blocked on block I/O", |row| row.blocked_io_ns),
    ] {
        out.add(name, help, Some(Unit::Seconds), true, samples(&|row| value(row).map(seconds)));
    }
    let disk = pair("direction", [("read", |row| row.disk_read_bytes), ("written", |row| row.disk_written_bytes)]);
    out.add(
        "cloudsweeper_workload_disk",
        "Bytes caused to be read from and written to storage",
        Some(Unit::Bytes),
        true,
        disk,
    );
    let network =
        pair("direction", [("received", |row| row.network_received_bytes), ("sent", |row| row.network_sent_bytes)]);
    out.add(
        "cloudsweeper_workload_network",
        "Bytes over the network, loopback excluded",
        Some(Unit::Bytes),
        true,
        network,
    );
    let starts = pair("event", [("fork", |row| row.forks), ("exec", |row| row.execs)]);
    out.add("cloudsweeper_workload_starts", "Processes and programs started", None, true, starts);
    out.add(
        "cloudsweeper_workload_oom_kills",
        "Processes ended by the out-of-memory killer",
        None,
        true,
        samples(&|row| row.oom_kills.map(float)),
    );
    out.add(
        "cloudsweeper_workload_processes",
        "Processes alive",
        None,
        false,
        samples(&|row| Some(f64::from(row.live_processes))),
    );
    out.add(
        "cloudsweeper_workload_resident",
        "Resident memory of its processes",
        Some(Unit::Bytes),
        false,
        samples(&|row| row.resident_bytes.map(float)),
    );
}

/// Runs, GPUs, interactive sessions and inbound peers.
fn of_the_rest(out: &mut Builder, heartbeat: &wire::Heartbeat) {
    let living = heartbeat.runs.iter().filter(|run| run.ended_boottime_ns.is_none());
    let runs = living.map(|run| (vec![("engine", label(&run.engine))], 1.0)).collect();
    out.add("cloudsweeper_runs", "Pipelines that run", None, false, runs);
    let gpus = |value: &dyn Fn(&wire::Gpu) -> Option<f64>| -> Vec<(Labels, f64)> {
        let labels = |gpu: &wire::Gpu| vec![("gpu", label(&gpu.uuid)), ("model", label(&gpu.model))];
        heartbeat.gpus.iter().filter_map(|gpu| Some((labels(gpu), value(gpu)?))).collect()
    };
    out.add(
        "cloudsweeper_gpu_utilization_ratio",
        "Share of time in which the GPU worked, as its driver says",
        None,
        false,
        gpus(&|gpu| gpu.utilization_percent.map(|percent| f64::from(percent) / 100.0)),
    );
    out.add(
        "cloudsweeper_gpu_memory_used",
        "Memory in use on the GPU",
        Some(Unit::Bytes),
        false,
        gpus(&|gpu| gpu.memory_used_bytes.map(float)),
    );
    out.add(
        "cloudsweeper_gpu_energy",
        "Energy since the driver was loaded",
        Some(Unit::Joules),
        true,
        gpus(&|gpu| gpu.energy_mj.map(|mj| float(mj) / 1e3)),
    );
    out.gauge(
        "cloudsweeper_terminal_sessions",
        "Sessions with a terminal",
        None,
        heartbeat
            .interactive_sessions
            .as_ref()
            .map(|interactive_sessions| f64::from(interactive_sessions.terminal_sessions)),
    );
    let peers = heartbeat.inbound_peers.iter().flat_map(|inbound_peers| &inbound_peers.listeners);
    let peers = peers.map(|port| (vec![("port", port.port.to_string())], f64::from(port.outside_peers))).collect();
    out.add("cloudsweeper_outside_peers", "Connections from other machines, by port", None, false, peers);
}

fn of_agent(out: &mut Builder, heartbeat: &wire::Heartbeat) {
    if let Some(agent) = &heartbeat.agent {
        let places = [("process", agent.cpu_ns), ("kernel", agent.bpf_ns)];
        let help = "CPU time of the agent and of its programs in the kernel";
        out.add("cloudsweeper_agent_cpu", help, Some(Unit::Seconds), true, by("place", &places, seconds));
        let resident = agent.resident_bytes.map(float);
        out.gauge("cloudsweeper_agent_resident", "Resident memory of the agent", Some(Unit::Bytes), resident);
        let waiting = agent.spooled_heartbeats.map(float);
        out.gauge("cloudsweeper_agent_spooled_heartbeats", "Heartbeats that wait to be sent", None, waiting);
    }
    if let Some(coverage) = &heartbeat.coverage {
        let word = |status: CapabilityStatus| match status {
            CapabilityStatus::Ok => "ok",
            CapabilityStatus::NotApplicable => "not_applicable",
            CapabilityStatus::Unsupported => "unsupported",
            CapabilityStatus::Denied => "denied",
            CapabilityStatus::Broken | CapabilityStatus::Unspecified => "broken",
        };
        let states = coverage.capabilities.iter().map(|capability| {
            (vec![("capability", label(&capability.name)), ("status", word(capability.status()).to_owned())], 1.0)
        });
        out.add(
            "cloudsweeper_capability",
            "State of each capability: 1 for the state that it is in",
            None,
            false,
            states.collect(),
        );
        let drops = coverage.drops.iter().map(|drop| (vec![("what", label(&drop.name))], float(drop.count)));
        out.add("cloudsweeper_dropped", "What was lost before it could be counted", None, true, drops.collect());
    }
    let ended = heartbeat.interval.as_ref().and_then(|interval| u64::try_from(interval.end_unix_ms).ok());
    out.gauge(
        "cloudsweeper_heartbeat_end_timestamp",
        "End of the last interval, in seconds since 1970-01-01 UTC",
        Some(Unit::Seconds),
        ended.map(|ms| float(ms) / 1e3),
    );
}
