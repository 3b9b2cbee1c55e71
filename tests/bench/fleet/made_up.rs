//! A fleet on paper: nodes with twenty workloads each, nine of ten of which work, and the heartbeats that they would send.
//!
//! Nothing about measuring may be concluded from them: they are to cost a sweeper what real ones do.

use heartbeat::{
    BootId, NodeId,
    envelope::{DICTIONARY, VERSION},
    wire,
};
use prost::Message as _;

/// Length of their interval, in milliseconds.
pub(crate) const INTERVAL_MS: i64 = 30_000;
/// Workloads of a node.
const WORKLOADS: u64 = 20;

/// When the heartbeats of a fleet end: the nodes one after the other, each every 30 s.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeline {
    /// End of the first node's heartbeat of sequence 0, in milliseconds since 1970-01-01 UTC.
    begin_unix_ms: i64,
    nodes: usize,
}

impl Timeline {
    /// That of so many nodes, whose first one ends the heartbeat of this sequence at this time.
    pub(crate) fn through(sequence: u64, unix_ms: i64, nodes: usize) -> Self {
        Self { begin_unix_ms: unix_ms - small(sequence) * INTERVAL_MS, nodes }
    }

    /// When the node at this place ends the heartbeat of this sequence.
    pub(crate) fn ended(&self, sequence: u64, at: usize) -> i64 {
        let offset = small(at) * INTERVAL_MS / small(self.nodes);
        self.begin_unix_ms + small(sequence) * INTERVAL_MS + offset
    }
}

fn small<T: TryInto<i64>>(number: T) -> i64 {
    number.try_into().unwrap_or_else(|_| panic!("a small number"))
}

/// One node.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) id: NodeId,
    pub(crate) number: u64,
}

impl Node {
    pub(crate) fn boot(&self) -> BootId {
        BootId(uuid::Uuid::from_u128(u128::from(self.number) + 0x6f1c_1c1e_0000_4000_8000_0000_0000_0000))
    }

    pub(crate) fn token(&self) -> String {
        format!("csn_{:064x}", self.number)
    }

    /// Nobody uses every tenth.
    pub(crate) fn is_idle(&self) -> bool {
        self.number.is_multiple_of(10)
    }

    /// The heartbeat of this sequence, whose interval ended then.
    pub(crate) fn heartbeat(&self, sequence: u64, end_unix_ms: i64) -> wire::Heartbeat {
        let end_s = 86_400 + sequence * 30;
        let worked = if self.is_idle() { 0 } else { sequence };
        let row = |class: wire::Class, key: String, command: &str, cpu_ns: u64| wire::WorkloadActivity {
            class: class.into(),
            key,
            top_command: command.to_owned(),
            live_processes: 3,
            live_threads: 12,
            cpu_ns: Some(cpu_ns),
            run_queue_delay_ns: Some(cpu_ns / 50),
            disk_read_bytes: Some(worked * 40_960),
            disk_written_bytes: Some(worked * 8_192),
            forks: Some(worked / 10),
            execs: Some(worked / 10),
            exits: Some(worked / 10),
            oom_kills: Some(0),
            peak_resident_bytes: Some(300 << 20),
            network_received_bytes: Some(worked * 1_500),
            network_sent_bytes: Some(worked * 900),
            ..wire::WorkloadActivity::default()
        };
        let container = |at: u64| {
            let id = uuid::Uuid::from_u128((u128::from(self.number) << 64) + u128::from(at));
            let key = format!("/kubepods.slice/kubepods-burstable.slice/cri-containerd-{0}{0}.scope", id.simple());
            row(wire::Class::Workload, key, "samtools", worked * (at + 1) * 900_000_007)
        };
        let mut workloads: Vec<_> = (0..WORKLOADS - 3).map(container).collect();
        workloads.push(row(wire::Class::Kernel, "/".to_owned(), "kworker/0:1", 0));
        workloads.push(row(
            wire::Class::Housekeeping,
            "/system.slice/cron.service".to_owned(),
            "cron",
            sequence * 1_000_000,
        ));
        workloads.push(row(
            wire::Class::Self_,
            "/system.slice/node-agent.service".to_owned(),
            "node-agent",
            sequence * 2_000_000,
        ));
        if self.is_idle() {
            let quiet = [wire::Class::Kernel, wire::Class::Housekeeping, wire::Class::Self_].map(i32::from);
            workloads.retain(|row| quiet.contains(&row.class));
        }
        let capability = |name: &str| wire::Capability {
            name: name.to_owned(),
            status: wire::CapabilityStatus::Ok.into(),
            reason: String::new(),
        };
        wire::Heartbeat {
            sequence,
            interval: Some(wire::Interval {
                start_unix_ms: end_unix_ms - INTERVAL_MS,
                end_unix_ms,
                start_boottime_ns: (end_s - 30) * 1_000_000_000,
                end_boottime_ns: end_s * 1_000_000_000,
                observed_since_unix_ms: end_unix_ms - INTERVAL_MS,
                counters_since_boottime_ns: 86_400_000_000_000,
            }),
            host: Some(wire::Host {
                hostname: format!("worker-{}", self.number),
                kernel_release: "6.12.43+deb13-cloud-amd64".to_owned(),
                agent_version: "0.1.0".to_owned(),
                rules_version: "2026-11-21".to_owned(),
                rules_digest: "5e0ed4b1a7c3f9d2".to_owned(),
                cpus: 16,
                interval_ms: 30_000,
                ..wire::Host::default()
            }),
            counters: Some(wire::HostCounters {
                cpu_busy_ns: Some(workloads.iter().filter_map(|row| row.cpu_ns).sum()),
                disk_read_bytes: Some(0),
                disk_written_bytes: Some(0),
                network_received_bytes: Some(worked * 1_600 * WORKLOADS),
                network_sent_bytes: Some(worked * 1_000 * WORKLOADS),
                own_network_received_bytes: Some(0),
                own_network_sent_bytes: Some(0),
                tasks_created: Some(worked * 3),
                oom_kills: Some(0),
                ..wire::HostCounters::default()
            }),
            workloads,
            coverage: Some(wire::Coverage {
                source: wire::Source::Ebpf.into(),
                capabilities: ["network", "peers", "pipelines", "interactive_sessions", "inbound_peers"]
                    .map(capability)
                    .into(),
                ..wire::Coverage::default()
            }),
            agent: Some(wire::AgentCost::default()),
            ..wire::Heartbeat::default()
        }
    }

    /// An envelope of heartbeats that is sent now.
    pub(crate) fn envelope(&self, heartbeats: Vec<wire::Heartbeat>, now_unix_ms: i64) -> wire::Envelope {
        wire::Envelope {
            version: VERSION,
            node_id: self.id.to_string(),
            boot_id: self.boot().to_string(),
            oldest_retained_sequence: heartbeats.first().map_or(0, |heartbeat| heartbeat.sequence),
            sent_unix_ms: now_unix_ms,
            heartbeats,
        }
    }
}

/// Packs envelopes as [`heartbeat::encode`] does, with a dictionary that is taken in once: an agent packs two a minute, and this bench
/// thousands a second beside what it measures.
pub(crate) struct Packer(zstd::bulk::Compressor<'static>);

impl Packer {
    pub(crate) fn new() -> Self {
        let mut compressor = zstd::bulk::Compressor::with_dictionary(3, DICTIONARY).expect("zstd has memory");
        compressor.include_checksum(true).expect("zstd knows checksums");
        Self(compressor)
    }

    pub(crate) fn pack(&mut self, envelope: &wire::Envelope) -> Vec<u8> {
        self.0.compress(&envelope.encode_to_vec()).expect("zstd has memory")
    }
}
