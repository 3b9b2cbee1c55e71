//! A site with one node on paper, swept on request.

use heartbeat::{BootId, NodeId, wire};
use jiff::{SignedDuration, Timestamp};
use lab::sample;
use std::time::Duration;
use sweeper::{
    config::{Config, Enabled, PricingSource},
    inventory::Silent,
    reconcile::{EventKind, Record},
    store::{Store, TokenHash},
    sweep::{self, Context, Report},
};

pub(super) const INTERVAL: SignedDuration = SignedDuration::from_secs(30);
pub(super) const BOOT: BootId = BootId(uuid::Uuid::from_u128(7));

/// A site with one node on premises that costs $0.25 an hour, idle after five minutes.
pub(super) struct Site {
    pub(super) context: Context,
    pub(super) node: NodeId,
    pub(super) began: Timestamp,
    pub(super) sent: u64,
    pub(super) cpu_ns: u64,
    /// How many intervals had passed when the agent was started.
    pub(super) started: u64,
}

impl Site {
    pub(super) async fn new(url: &str) -> Self {
        Self::with_node(url, sample::node(1)).await
    }

    pub(super) async fn with_node(url: &str, node: NodeId) -> Self {
        let store = Store::connect(url).await.unwrap();
        store.migrate().await.unwrap();
        let mut config = Config::default();
        config.aws.enabled = Enabled::No;
        config.pricing.source = PricingSource::None;
        config.verdict.idle_after = Duration::from_secs(300);
        config.onprem.hourly_usd.insert("default".into(), "0.25".into());
        config.outbox.gather = Duration::ZERO;
        let request = heartbeat::api::JoinRequest {
            node_id: node.clone(),
            boot_id: BOOT,
            hostname: "quiet-1".into(),
            agent_version: "0.1.0".into(),
            proof: None,
        };
        let began = Timestamp::from_millisecond(1_790_000_000_000).unwrap();
        store.join_node(&request, &TokenHash::of("token"), began).await.unwrap();
        Self {
            context: Context {
                store,
                config,
                channels: vec!["slack", "email"],
                price_lists: sweep::PriceLists::default(),
            },
            node,
            began,
            sent: 0,
            cpu_ns: 0,
            started: 0,
        }
    }

    /// The end of the last interval.
    pub(super) fn now(&self) -> Timestamp {
        self.began + INTERVAL * i32::try_from(self.sent).unwrap()
    }

    /// So many intervals pass, each with so much CPU time of a workload.
    pub(super) async fn pass(&mut self, intervals: u64, cpu_ns: u64) {
        let first = self.sent + 1;
        for _ in 0..intervals {
            self.sent += 1;
            self.cpu_ns += cpu_ns;
            let envelope = wire::Envelope {
                version: heartbeat::envelope::VERSION,
                node_id: self.node.to_string(),
                boot_id: BOOT.to_string(),
                oldest_retained_sequence: first,
                sent_unix_ms: self.now().as_millisecond(),
                heartbeats: vec![self.heartbeat()],
            };
            self.context.store.store_heartbeats(&sample::checked(&envelope), self.now()).await.unwrap();
        }
    }

    /// The agent is down for so many intervals, and counts from zero afterwards.
    pub(super) fn restart(&mut self, intervals: u64) {
        self.sent += intervals;
        (self.started, self.cpu_ns) = (self.sent, 0);
    }

    fn heartbeat(&self) -> wire::Heartbeat {
        let zero = Some(0);
        // It booted an hour before.
        let end_s = 3_600 + self.sent * 30;
        wire::Heartbeat {
            sequence: self.sent,
            interval: Some(wire::Interval {
                start_unix_ms: (self.now() - INTERVAL).as_millisecond(),
                end_unix_ms: self.now().as_millisecond(),
                start_boottime_ns: (end_s - 30) * 1_000_000_000,
                end_boottime_ns: end_s * 1_000_000_000,
                observed_since_unix_ms: self.began.as_millisecond(),
                counters_since_boottime_ns: (3_600 + self.started * 30) * 1_000_000_000,
            }),
            host: Some(wire::Host { hostname: "quiet-1".into(), interval_ms: 30_000, cpus: 2, ..Default::default() }),
            counters: Some(wire::HostCounters {
                cpu_busy_ns: Some(self.cpu_ns),
                disk_read_bytes: zero,
                disk_written_bytes: zero,
                network_received_bytes: zero,
                network_sent_bytes: zero,
                oom_kills: zero,
                ..Default::default()
            }),
            workloads: vec![
                sample::kernel(),
                wire::WorkloadActivity {
                    class: wire::Class::Workload.into(),
                    key: "/work".into(),
                    top_command: "python3".into(),
                    live_processes: 1,
                    live_threads: 1,
                    cpu_ns: Some(self.cpu_ns),
                    disk_read_bytes: zero,
                    disk_written_bytes: zero,
                    forks: zero,
                    execs: zero,
                    exits: zero,
                    oom_kills: zero,
                    peak_resident_bytes: zero,
                    ..wire::WorkloadActivity::default()
                },
            ],
            coverage: Some(wire::Coverage {
                source: wire::Source::Ebpf.into(),
                capabilities: Vec::new(),
                drops: Vec::new(),
            }),
            agent: None,
            ..wire::Heartbeat::default()
        }
    }

    pub(super) async fn sweep(&self) -> Report {
        sweep::run(&self.context, self.now() + SignedDuration::from_secs(1), &Silent).await.unwrap()
    }

    pub(super) async fn pending(&self) -> u64 {
        self.context.store.outbox_counts().await.unwrap().pending
    }

    /// What was decided about each finding, oldest first; every decision is made again from what the database holds, with the same result.
    pub(super) async fn decisions(&self) -> Vec<Vec<Record>> {
        let mut decisions = Vec::new();
        for id in self.context.store.finding_ids().await.unwrap() {
            let records = self.context.store.evidence(&id).await.unwrap();
            let numbers: Vec<_> = records.iter().map(|record| record.number).collect();
            assert_eq!(numbers, (1..=u32::try_from(records.len()).unwrap()).collect::<Vec<_>>());
            for record in &records {
                let replayed = record.replay();
                assert!(replayed.is_same, "{:?} and {replayed:?}", record.change);
            }
            assert_eq!(records.first().map(|first| first.event), Some(EventKind::Opened));
            decisions.push(records);
        }
        decisions
    }
}

pub(super) fn kinds(records: &[Record]) -> Vec<EventKind> {
    records.iter().map(|record| record.event).collect()
}

pub(super) const BUSY: u64 = 20_000_000_000;
