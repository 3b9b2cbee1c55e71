//! Heartbeats as an agent would send them, for scenarios that need to choose every field.

use heartbeat::{
    BootId, NodeId,
    api::JoinRequest,
    envelope::{Checked, MAX_HEARTBEATS, VERSION},
    wire,
};
use jiff::{SignedDuration, Timestamp};
use std::ops::RangeInclusive;
use sweeper::store::{Store, TokenHash};

/// Length of a sample's interval, in milliseconds.
pub const INTERVAL_MS: i64 = 30_000;

/// A node outside any cloud, told apart by `number`.
#[must_use]
pub fn node(number: u32) -> NodeId {
    NodeId::Host { hash: format!("{number:032x}") }
}

/// A boot, told apart by `number`.
#[must_use]
pub fn boot(number: u32) -> BootId {
    BootId(uuid::Uuid::from_u128(u128::from(number) + 0x6f1c_1c1e_0000_4000_8000_0000_0000_0000))
}

/// What `node` says when it joins.
#[must_use]
pub fn join(node: &NodeId, boot: BootId) -> JoinRequest {
    let (hostname, agent_version) = ("sample".to_owned(), "0.1.0".to_owned());
    JoinRequest { node_id: node.clone(), boot_id: boot, hostname, agent_version, proof: None }
}

/// A heartbeat whose interval ended at `end`, with one workload and a few counters.
#[must_use]
pub fn heartbeat(sequence: u64, end: Timestamp) -> wire::Heartbeat {
    let end_unix_ms = end.as_millisecond();
    let workload = wire::WorkloadActivity {
        class: wire::Class::Workload.into(),
        key: "/system.slice/batch.service".to_owned(),
        top_command: "samtools".to_owned(),
        live_processes: 3,
        live_threads: 9,
        cpu_ns: Some(sequence * 1_000_000_007),
        ..wire::WorkloadActivity::default()
    };
    wire::Heartbeat {
        sequence,
        interval: Some(wire::Interval {
            start_unix_ms: end_unix_ms - INTERVAL_MS,
            end_unix_ms,
            start_boottime_ns: sequence * 30_000_000_000,
            end_boottime_ns: (sequence + 1) * 30_000_000_000,
            observed_since_unix_ms: end_unix_ms - INTERVAL_MS,
            counters_since_boottime_ns: 0,
        }),
        host: Some(wire::Host { hostname: "sample".to_owned(), cpus: 4, interval_ms: 30_000, ..wire::Host::default() }),
        counters: Some(wire::HostCounters { cpu_busy_ns: Some(sequence * 1_500_000_000), ..Default::default() }),
        workloads: vec![workload],
        coverage: Some(wire::Coverage { source: wire::Source::Ebpf.into(), ..wire::Coverage::default() }),
        agent: Some(wire::AgentCost::default()),
        ..wire::Heartbeat::default()
    }
}

/// The same of a machine on which nothing happened, watched since the first one: all that a verdict asks for was measured, and was zero.
///
/// # Panics
///
/// When `sequence` is no small number.
#[must_use]
pub fn quiet(sequence: u64, end: Timestamp) -> wire::Heartbeat {
    let mut beat = heartbeat(sequence, end);
    if let Some(interval) = &mut beat.interval {
        interval.observed_since_unix_ms =
            interval.end_unix_ms - i64::try_from(sequence).expect("a small sequence") * INTERVAL_MS;
    }
    let zero = Some(0);
    beat.counters = Some(wire::HostCounters {
        cpu_busy_ns: zero,
        disk_read_bytes: zero,
        disk_written_bytes: zero,
        network_received_bytes: zero,
        network_sent_bytes: zero,
        oom_kills: zero,
        ..Default::default()
    });
    let workload = &mut beat.workloads[0];
    (workload.cpu_ns, workload.disk_read_bytes, workload.disk_written_bytes) = (zero, zero, zero);
    (workload.forks, workload.execs, workload.exits) = (zero, zero, zero);
    (workload.oom_kills, workload.peak_resident_bytes) = (zero, zero);
    beat.workloads.push(kernel());
    beat
}

/// The same that used so much CPU time since the first one, all of it by the one workload.
///
/// # Panics
///
/// When `sequence` is no small number.
#[must_use]
pub fn used(sequence: u64, end: Timestamp, cpu_ns: u64) -> wire::Heartbeat {
    let mut beat = quiet(sequence, end);
    beat.workloads[0].cpu_ns = Some(cpu_ns);
    beat.counters.get_or_insert_default().cpu_busy_ns = Some(cpu_ns);
    beat
}

/// A heartbeat with nine seconds of work within one by the clock of the boot: whatever a CPU can do, that is work.
///
/// # Panics
///
/// When `sequence` is no small number.
#[must_use]
pub fn worked(sequence: u64, end: Timestamp) -> wire::Heartbeat {
    let mut beat = used(sequence, end, 9_000_000_000);
    let interval = beat.interval.get_or_insert_default();
    interval.end_boottime_ns = interval.start_boottime_ns + 1_000_000_000;
    beat
}

/// An envelope sent at `now` with one heartbeat for each of `sequences`, the newest of which ended at `now`.
#[must_use]
pub fn envelope(node: &NodeId, boot: BootId, sequences: &[u64], now: Timestamp) -> wire::Envelope {
    let newest = sequences.iter().copied().max().unwrap_or(0);
    let ended = |sequence: u64| {
        let intervals = i64::try_from(newest - sequence).expect("a small sequence");
        Timestamp::from_millisecond(now.as_millisecond() - intervals * INTERVAL_MS).expect("a time")
    };
    wire::Envelope {
        version: VERSION,
        node_id: node.to_string(),
        boot_id: boot.to_string(),
        oldest_retained_sequence: sequences.iter().copied().min().unwrap_or(0),
        sent_unix_ms: now.as_millisecond(),
        heartbeats: sequences.iter().map(|sequence| heartbeat(*sequence, ended(*sequence))).collect(),
    }
}

/// Ten minutes of heartbeats up to `now` from a node that booted an hour before, and on which nothing happened.
///
/// # Panics
///
/// When `now` is not a time of this age.
#[must_use]
pub fn rest(node: &NodeId, boot: BootId, now: Timestamp) -> wire::Envelope {
    const BEATS: u64 = 20;
    let began_ms = now.as_millisecond() - i64::try_from(BEATS).expect("a small number") * INTERVAL_MS;
    let beat = |sequence: u64| {
        let end_ms = began_ms + i64::try_from(sequence).expect("a small sequence") * INTERVAL_MS;
        let end_s = 3_600 + sequence * 30;
        let mut beat = quiet(sequence, Timestamp::from_millisecond(end_ms).expect("a time"));
        beat.interval = Some(wire::Interval {
            start_unix_ms: end_ms - INTERVAL_MS,
            end_unix_ms: end_ms,
            start_boottime_ns: (end_s - 30) * 1_000_000_000,
            end_boottime_ns: end_s * 1_000_000_000,
            observed_since_unix_ms: began_ms,
            counters_since_boottime_ns: 3_600_000_000_000,
        });
        beat.agent = None;
        beat
    };
    wire::Envelope {
        heartbeats: (1..=BEATS).map(beat).collect(),
        oldest_retained_sequence: 1,
        ..envelope(node, boot, &[], now)
    }
}

/// The row of kernel threads that did nothing: every Linux has some, and a heartbeat without them has not seen its host.
#[must_use]
pub fn kernel() -> wire::WorkloadActivity {
    wire::WorkloadActivity {
        class: wire::Class::Kernel.into(),
        key: "/".to_owned(),
        live_processes: 100,
        live_threads: 100,
        cpu_ns: Some(0),
        disk_read_bytes: Some(0),
        disk_written_bytes: Some(0),
        forks: Some(0),
        execs: Some(0),
        exits: Some(0),
        ..wire::WorkloadActivity::default()
    }
}

/// The same envelope as the sweeper sees it after decoding.
///
/// # Panics
///
/// When the contract refuses it.
#[must_use]
pub fn checked(envelope: &wire::Envelope) -> Checked {
    heartbeat::decode(&heartbeat::encode(envelope).expect("it can be packed")).expect("an acceptable envelope")
}

/// Joins `node` and stores a heartbeat of it for each of these sequences, the newest of which ended just now.
///
/// # Panics
///
/// When the store does not take them.
pub async fn report(
    store: &Store,
    node: &NodeId,
    boot: BootId,
    sequences: RangeInclusive<u64>,
    beat: impl Fn(u64, Timestamp) -> wire::Heartbeat,
) {
    let (now, last) = (Timestamp::now(), *sequences.end());
    store.join_node(&join(node, boot), &TokenHash::of(&node.to_string()), now).await.expect("the node joins");
    let ended = |sequence: u64| {
        let intervals = i64::try_from(last - sequence).expect("a small sequence");
        now - SignedDuration::from_millis(intervals * INTERVAL_MS)
    };
    let beats: Vec<_> = sequences.map(|sequence| beat(sequence, ended(sequence))).collect();
    store_all(store, node, boot, &beats).await;
}

/// Stores heartbeats of a node that has joined, as many in one envelope as the contract allows.
///
/// # Panics
///
/// When the store does not take them.
pub async fn store_all(store: &Store, node: &NodeId, boot: BootId, beats: &[wire::Heartbeat]) {
    let now = Timestamp::now();
    for beats in beats.chunks(MAX_HEARTBEATS) {
        let envelope = wire::Envelope {
            heartbeats: beats.to_vec(),
            oldest_retained_sequence: 1,
            ..envelope(node, boot, &[], now)
        };
        store.store_heartbeats(&checked(&envelope), now).await.expect("they are stored");
    }
}
