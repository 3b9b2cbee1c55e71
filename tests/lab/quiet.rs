//! A node on paper: heartbeats of a machine that did nothing for an hour, sent to a real sweeper through its real API.
//!
//! For scenarios about what follows a finding. Whether a machine is idle in truth is measured elsewhere, by the real
//! agent: nothing about measuring may be concluded from this node.

use crate::{sample, sweeper::Sweeper};
use heartbeat::{
    api::{CONTENT_ENCODING, CONTENT_TYPE, HEARTBEATS_PATH, JOIN_PATH, JoinRequest, JoinResponse},
    wire::{Coverage, Envelope, Heartbeat, Host, HostCounters, Interval, Source},
};
use jiff::Timestamp;

/// Long, so that the node does not fall silent while a scenario stops and starts its servers.
const INTERVAL_MS: u32 = 300_000;
const HEARTBEATS: u64 = 13;
/// Up for a day: no boot grace.
const UPTIME_NS: u64 = 86_400_000_000_000;

/// Lets the sweeper know a machine named `hostname` that has done nothing for an hour, and returns its resource key.
///
/// # Panics
///
/// When the sweeper refuses it.
pub async fn report(sweeper: &Sweeper, hostname: &str) -> String {
    report_with(sweeper, hostname, |_| {}).await
}

/// The same with each heartbeat changed before it is sent.
///
/// # Panics
///
/// When the sweeper refuses it.
pub async fn report_with(sweeper: &Sweeper, hostname: &str, change: impl Fn(&mut Heartbeat)) -> String {
    let node_id = format!("host:{:032x}", uuid::Uuid::new_v4().as_u128());
    report_as(sweeper, &node_id, hostname, change).await;
    node_id
}

/// The same for the machine with this resource key.
///
/// # Panics
///
/// When the sweeper refuses it.
pub async fn report_as(sweeper: &Sweeper, node_id: &str, hostname: &str, change: impl Fn(&mut Heartbeat)) {
    let boot_id = uuid::Uuid::new_v4().to_string();
    let client = reqwest::Client::new();
    let join = JoinRequest {
        node_id: node_id.parse().expect("a node id"),
        boot_id: boot_id.parse().expect("a boot id"),
        hostname: hostname.into(),
        agent_version: "0.1.0".into(),
        proof: None,
    };
    let answer = client
        .post(format!("{}{JOIN_PATH}", sweeper.url()))
        .bearer_auth(sweeper.join_token())
        .json(&join)
        .send()
        .await
        .expect("the sweeper answers");
    assert!(answer.status().is_success(), "the sweeper refused the node: {}", answer.text().await.unwrap_or_default());
    let joined: JoinResponse = answer.json().await.expect("a join response");

    let now_unix_ms = Timestamp::now().as_millisecond();
    let mut envelope = Envelope {
        version: heartbeat::envelope::VERSION,
        node_id: node_id.to_owned(),
        boot_id,
        oldest_retained_sequence: 1,
        sent_unix_ms: now_unix_ms,
        heartbeats: (1..=HEARTBEATS).map(|sequence| quiet(sequence, now_unix_ms, hostname)).collect(),
    };
    envelope.heartbeats.iter_mut().for_each(change);
    let answer = client
        .post(format!("{}{HEARTBEATS_PATH}", sweeper.url()))
        .bearer_auth(joined.node_token)
        .header("content-type", CONTENT_TYPE)
        .header("content-encoding", CONTENT_ENCODING)
        .body(heartbeat::encode(&envelope).expect("an encoded envelope"))
        .send()
        .await
        .expect("the sweeper answers");
    assert!(answer.status().is_success(), "the sweeper refused: {}", answer.text().await.unwrap_or_default());
}

/// One of [`HEARTBEATS`] intervals that follow each other up to now.
fn quiet(sequence: u64, now_unix_ms: i64, hostname: &str) -> Heartbeat {
    let interval_ns = u64::from(INTERVAL_MS) * 1_000_000;
    let age = HEARTBEATS - sequence;
    let end_boottime_ns = UPTIME_NS - age * interval_ns;
    let end_unix_ms = now_unix_ms - i64::try_from(age).expect("a small number") * i64::from(INTERVAL_MS);
    Heartbeat {
        sequence,
        interval: Some(Interval {
            start_unix_ms: end_unix_ms - i64::from(INTERVAL_MS),
            end_unix_ms,
            start_boottime_ns: end_boottime_ns - interval_ns,
            end_boottime_ns,
            observed_since_unix_ms: now_unix_ms - 86_400_000,
            counters_since_boottime_ns: 0,
        }),
        host: Some(Host {
            hostname: hostname.into(),
            kernel_release: "6.1.0".into(),
            architecture: "x86_64".into(),
            agent_version: "0.1.0".into(),
            cpus: 8,
            memory_bytes: 32 << 30,
            interval_ms: INTERVAL_MS,
            gpu_present: false,
            ..Host::default()
        }),
        counters: Some(HostCounters {
            cpu_busy_ns: Some(1_000_000_000),
            cpu_user_ns: Some(500_000_000),
            cpu_system_ns: Some(500_000_000),
            disk_read_bytes: Some(4_096),
            disk_written_bytes: Some(4_096),
            network_received_bytes: Some(1_000),
            network_sent_bytes: Some(1_000),
            tasks_created: Some(2_000),
            oom_kills: Some(0),
            ..HostCounters::default()
        }),
        workloads: vec![sample::kernel()],
        coverage: Some(Coverage { source: Source::Ebpf.into(), capabilities: Vec::new(), drops: Vec::new() }),
        agent: None,
        ..Heartbeat::default()
    }
}
