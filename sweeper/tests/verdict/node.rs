//! A node whose heartbeats a test makes up.

use heartbeat::{BootId, wire};
use sweeper::verdict::{Case, Judgement, Policy, judge};

const BOOT: BootId = BootId(uuid::Uuid::from_u128(1));
/// The node booted at this wall-clock time.
pub(crate) const BOOTED_MS: i64 = 1_790_000_000_000;
/// The agent started an hour later.
pub(crate) const STARTED_S: u64 = 3600;

/// Cumulative counters as a test tells them, 30 s at a time.
#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) end_s: u64,
    pub(crate) counters_since_s: u64,
    pub(crate) sequence: u64,
    pub(crate) interval_ms: u32,
    pub(crate) rules_version: String,
    pub(crate) rules_digest: String,
    pub(crate) workload: wire::WorkloadActivity,
    pub(crate) kernel: wire::WorkloadActivity,
    pub(crate) housekeeping: wire::WorkloadActivity,
    pub(crate) own: wire::WorkloadActivity,
    pub(crate) counters: wire::HostCounters,
    pub(crate) source: wire::Source,
    pub(crate) gpu_present: bool,
    pub(crate) drops: u64,
    pub(crate) details: u64,
    pub(crate) gpus: Vec<wire::Gpu>,
    pub(crate) interactive_sessions: Option<wire::InteractiveSessions>,
    pub(crate) inbound_peers: Option<wire::InboundPeers>,
    pub(crate) runs: Vec<wire::Run>,
    pub(crate) peers: Option<wire::Peers>,
    pub(crate) schedules: Option<wire::Schedules>,
    pub(crate) capabilities: Vec<wire::Capability>,
    pub(crate) sent: Vec<(BootId, wire::Heartbeat)>,
}

impl Node {
    pub(crate) fn new() -> Self {
        Self {
            end_s: STARTED_S,
            counters_since_s: STARTED_S,
            sequence: 0,
            interval_ms: 30_000,
            rules_version: "2026-11-21".to_owned(),
            rules_digest: "1".to_owned(),
            workload: row(wire::Class::Workload, "/user.slice", "python3"),
            kernel: row(wire::Class::Kernel, "/", "kworker/0:1"),
            housekeeping: row(wire::Class::Housekeeping, "/system.slice/cron.service", "cron"),
            own: row(wire::Class::Self_, "/system.slice/node-agent.service", "node-agent"),
            counters: wire::HostCounters {
                disk_read_bytes: Some(0),
                disk_written_bytes: Some(0),
                cpu_busy_ns: Some(0),
                network_received_bytes: Some(0),
                network_sent_bytes: Some(0),
                own_network_received_bytes: Some(0),
                own_network_sent_bytes: Some(0),
                tasks_created: Some(0),
                oom_kills: Some(0),
                ..Default::default()
            },
            source: wire::Source::Ebpf,
            gpu_present: false,
            drops: 0,
            details: 0,
            gpus: Vec::new(),
            interactive_sessions: None,
            inbound_peers: None,
            runs: Vec::new(),
            peers: None,
            schedules: None,
            capabilities: Vec::new(),
            sent: Vec::new(),
        }
    }

    /// Lets an interval pass in which a quiet node spends 3 ms of workload CPU and 2 kB of network traffic.
    pub(crate) fn pass(&mut self, change: impl FnOnce(&mut Self)) -> &mut Self {
        let start_s = self.end_s;
        self.end_s += 30;
        self.sequence += 1;
        bump(&mut self.workload.cpu_ns, 3_000_000);
        bump(&mut self.counters.cpu_busy_ns, 3_000_000);
        bump(&mut self.counters.network_sent_bytes, 2_000);
        change(self);
        let heartbeat = wire::Heartbeat {
            sequence: self.sequence,
            interval: Some(wire::Interval {
                start_unix_ms: wall(start_s),
                end_unix_ms: wall(self.end_s),
                start_boottime_ns: start_s * 1_000_000_000,
                end_boottime_ns: self.end_s * 1_000_000_000,
                observed_since_unix_ms: wall(self.counters_since_s),
                counters_since_boottime_ns: self.counters_since_s * 1_000_000_000,
            }),
            host: Some(wire::Host {
                interval_ms: self.interval_ms,
                cpus: 4,
                gpu_present: self.gpu_present,
                rules_version: self.rules_version.clone(),
                rules_digest: self.rules_digest.clone(),
                ..Default::default()
            }),
            counters: Some(self.counters),
            workloads: self.rows().into_iter().cloned().collect(),
            coverage: Some(wire::Coverage {
                source: self.source.into(),
                capabilities: self.capabilities.clone(),
                drops: vec![
                    wire::Drop { name: "missed_exits".into(), count: self.drops },
                    wire::Drop { name: "detail_names".into(), count: self.details },
                    wire::Drop { name: "spool_dropped".into(), count: self.sequence },
                ],
            }),
            agent: None,
            gpus: self.gpus.clone(),
            interactive_sessions: self.interactive_sessions,
            inbound_peers: self.inbound_peers.clone(),
            runs: self.runs.clone(),
            peers: self.peers.clone(),
            schedules: self.schedules,
            answers: String::new(),
        };
        self.sent.push((BOOT, heartbeat));
        self
    }

    /// The agent ends, and another begins so much later: its rows begin at zero, and the host's counters went on.
    pub(crate) fn restart(&mut self, gap_s: u64) -> &mut Self {
        self.end_s += gap_s;
        self.counters_since_s = self.end_s;
        self.drops = 0;
        for row in [&mut self.workload, &mut self.kernel, &mut self.housekeeping, &mut self.own] {
            let network = row.network_sent_bytes.map(|_| 0);
            let (class, key) = (wire::Class::try_from(row.class).unwrap(), row.key.clone());
            *row = wire::WorkloadActivity {
                network_received_bytes: network,
                network_sent_bytes: network,
                batch_job: row.batch_job.take(),
                ..self::row(class, &key, &row.top_command)
            };
        }
        self
    }

    fn rows(&self) -> [&wire::WorkloadActivity; 4] {
        [&self.workload, &self.kernel, &self.housekeeping, &self.own]
    }

    pub(crate) fn quiet(&mut self, intervals: usize) -> &mut Self {
        for _ in 0..intervals {
            self.pass(|_| {});
        }
        self
    }

    pub(crate) fn case(&self) -> Case {
        Case::new(wall(self.end_s) + 1_000, Policy::default(), self.sent.clone())
    }

    pub(crate) fn judge(&self) -> Judgement {
        judge(&self.case())
    }
}

/// A row of a live process that has done nothing yet.
fn row(class: wire::Class, key: &str, top_command: &str) -> wire::WorkloadActivity {
    wire::WorkloadActivity {
        class: class.into(),
        key: key.into(),
        top_command: top_command.into(),
        live_processes: 1,
        live_threads: 1,
        cpu_ns: Some(0),
        disk_read_bytes: Some(0),
        disk_written_bytes: Some(0),
        forks: Some(0),
        execs: Some(0),
        exits: Some(0),
        oom_kills: Some(0),
        peak_resident_bytes: Some(0),
        ..wire::WorkloadActivity::default()
    }
}

pub(crate) fn capability(name: &str, status: wire::CapabilityStatus) -> wire::Capability {
    wire::Capability { name: name.into(), status: status.into(), reason: String::new() }
}

pub(crate) fn bump(counter: &mut Option<u64>, by: u64) {
    *counter = counter.map(|value| value + by);
}

pub(crate) fn wall(boot_s: u64) -> i64 {
    BOOTED_MS + i64::try_from(boot_s).unwrap() * 1000
}
