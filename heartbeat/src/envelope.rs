//! Encoding, decoding, limits.
//!
//! A decoder reads what strangers send, so every limit is checked before memory is spent: at most
//! [`MAX_BODY_BYTES`] arrive, at most [`MAX_DECOMPRESSED_BYTES`] are unpacked, these become at most [`MAX_DECODED_BYTES`] of messages, and names are
//! cut by the sender at [`MAX_NAME_BYTES`] or the envelope is refused.

use crate::{
    BootId, NodeId, decoded_size,
    packing::{self, COMPRESSION_LEVEL},
    wire,
};
use prost::Message as _;
use std::io::{Read as _, Write as _};

pub use crate::packing::DICTIONARY;

/// Version of the contract that this crate speaks.
pub const VERSION: u32 = 1;
/// Largest accepted request body (compressed), in bytes.
pub const MAX_BODY_BYTES: usize = 256 * 1024;
/// Largest accepted envelope after decompression, in bytes.
pub const MAX_DECOMPRESSED_BYTES: usize = 4 * 1024 * 1024;
/// Largest accepted envelope in memory, in bytes: a single heartbeat with every list full of rows takes less.
pub const MAX_DECODED_BYTES: usize = 24 * 1024 * 1024;
/// Most heartbeats in one envelope.
pub const MAX_HEARTBEATS: usize = 256;
/// Most workload rows in one heartbeat.
pub const MAX_WORKLOADS: usize = 512;
/// Most runs in one heartbeat.
pub const MAX_RUNS: usize = 64;
/// Most tasks in one heartbeat, over all its runs.
pub const MAX_TASKS: usize = 512;
/// Most tools of one task, the overflow row included.
pub const MAX_TOOLS: usize = 17;
/// Most ways to end of one row.
pub const MAX_FAILURES: usize = 8;
/// Most classes of system calls of one row.
pub const MAX_SYSCALL_CLASSES: usize = 16;
/// Most GPUs of one node, and most workloads named for one GPU.
pub const MAX_GPUS: usize = 64;
/// Most listening ports.
pub const MAX_LISTENERS: usize = 64;
/// Most groups of peers.
pub const MAX_PEER_GROUPS: usize = 64;
/// Most capabilities, and most drop counters.
pub const MAX_CAPABILITIES: usize = 128;
/// Longest name, key or reason, in bytes.
pub const MAX_NAME_BYTES: usize = 1024;
/// What is longer, packed or unpacked, is left to a thread that has nothing else to do.
const SMALL_BYTES: usize = 32 * 1024;
/// A frame may ask its reader for a window of up to 2 GiB; one of 4 MiB holds the largest accepted envelope.
const MAX_WINDOW_LOG: u32 = 22;

/// Why bytes are not an acceptable envelope.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// More bytes than allowed, before or after decompression, or decoded.
    #[error("the envelope has more than {limit_bytes} bytes {stage}; send fewer heartbeats at once")]
    TooLarge {
        /// The limit that was passed.
        limit_bytes: usize,
        /// `compressed`, `decompressed` or `decoded`.
        stage: &'static str,
    },
    /// Truncated or not zstd.
    #[error("the body is not a whole zstd frame: {0}")]
    Compression(#[source] std::io::Error),
    /// Truncated or not protobuf, as it is seen before anything is decoded.
    #[error("the body is not a protobuf envelope: it is cut off, or holds what the contract does not have")]
    Malformed,
    /// Not as the contract has it.
    #[error("the body is not a protobuf envelope: {0}")]
    Protobuf(#[from] prost::DecodeError),
    /// A version that this side does not speak.
    #[error("envelope version {found} is not supported; this side speaks {VERSION}")]
    Version {
        /// What the envelope says.
        found: u32,
    },
    /// Well-formed, but it cannot be true.
    #[error("{field}: {reason}")]
    Invalid {
        /// The field at fault.
        field: &'static str,
        /// What is wrong with it.
        reason: String,
    },
}

/// An envelope whose identity and shape have been checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// The sender, as it calls itself.
    pub node_id: NodeId,
    /// The sender's boot.
    pub boot_id: BootId,
    /// See [`wire::Envelope::oldest_retained_sequence`].
    pub oldest_retained_sequence: u64,
    /// See [`wire::Envelope::sent_unix_ms`].
    pub sent_unix_ms: i64,
    /// The heartbeats; each has an interval, a host, counters and a coverage.
    pub heartbeats: Vec<wire::Heartbeat>,
}

/// Serialises and compresses an envelope.
///
/// # Errors
/// Only if zstd cannot get memory.
pub fn encode(envelope: &wire::Envelope) -> std::io::Result<Vec<u8>> {
    let plain = envelope.encode_to_vec();
    let mut encoder = zstd::Encoder::with_dictionary(Vec::new(), COMPRESSION_LEVEL, DICTIONARY)?;
    // A frame does not name its dictionary: with another one, only its checksum tells that what came out is nonsense.
    encoder.include_checksum(true)?;
    // Who knows the length unpacks it in one go.
    encoder.set_pledged_src_size(u64::try_from(plain.len()).ok())?;
    encoder.write_all(&plain)?;
    encoder.finish()
}

/// The bytes of an envelope that is within all bounds of size, and has not been decoded yet.
#[derive(Debug)]
pub struct Unpacked {
    plain: Vec<u8>,
    decoded_bytes: usize,
}

impl Unpacked {
    /// What it takes in memory once it is decoded, in bytes: the sizes of its messages, and the lengths of its texts.
    #[must_use]
    pub const fn decoded_bytes(&self) -> usize {
        self.decoded_bytes
    }

    /// Parses and checks it.
    ///
    /// # Errors
    /// See [`DecodeError`]; nothing of a refused envelope may be used.
    pub fn decode(self) -> Result<Checked, DecodeError> {
        check(wire::Envelope::decode(self.plain.as_slice())?)
    }
}

/// Decompresses, parses and checks an envelope.
///
/// # Errors
/// See [`DecodeError`]; nothing of a refused envelope may be used.
pub fn decode(body: &[u8]) -> Result<Checked, DecodeError> {
    unpack(body)?.decode()
}

/// Whether a body says of itself that it is quickly unpacked. Nothing else of it is true yet; unpacking one that lies ends where it said that it would.
#[must_use]
pub fn is_small(body: &[u8]) -> bool {
    body.len() <= SMALL_BYTES && packing::told_bytes(body).is_some_and(|told| told <= SMALL_BYTES)
}

const TOO_LONG: DecodeError = DecodeError::TooLarge { limit_bytes: MAX_DECOMPRESSED_BYTES, stage: "decompressed" };

/// A frame that does not tell its length: at most one byte more than is allowed.
fn unpack_slowly(body: &[u8]) -> std::io::Result<Vec<u8>> {
    // A buffer for the most, of which only what is written takes memory: one that grew would be copied, and be twice as large for a moment.
    let mut plain = Vec::with_capacity(MAX_DECOMPRESSED_BYTES + 1);
    let limit = u64::try_from(MAX_DECOMPRESSED_BYTES).unwrap_or(u64::MAX) + 1;
    let mut decoder = zstd::Decoder::with_prepared_dictionary(body, &packing::UNPACKING)?;
    decoder.window_log_max(MAX_WINDOW_LOG)?;
    decoder.take(limit).read_to_end(&mut plain)?;
    Ok(plain)
}

/// Decompresses an envelope and counts what it would take in memory.
///
/// # Errors
/// See [`DecodeError`].
pub fn unpack(body: &[u8]) -> Result<Unpacked, DecodeError> {
    if body.len() > MAX_BODY_BYTES {
        return Err(DecodeError::TooLarge { limit_bytes: MAX_BODY_BYTES, stage: "compressed" });
    }
    let plain = match packing::told_bytes(body) {
        Some(told) if told <= MAX_DECOMPRESSED_BYTES => packing::unpack(body, told),
        Some(_) => return Err(TOO_LONG),
        None => unpack_slowly(body),
    };
    let plain = plain.map_err(DecodeError::Compression)?;
    if plain.len() > MAX_DECOMPRESSED_BYTES {
        return Err(TOO_LONG);
    }
    let decoded_bytes = decoded_size::of_envelope(&plain, MAX_DECODED_BYTES)
        .map_err(|decoded_size::Malformed| DecodeError::Malformed)?;
    if decoded_bytes > MAX_DECODED_BYTES {
        return Err(DecodeError::TooLarge { limit_bytes: MAX_DECODED_BYTES, stage: "decoded" });
    }
    Ok(Unpacked { plain, decoded_bytes })
}

fn invalid<T>(field: &'static str, reason: impl Into<String>) -> Result<T, DecodeError> {
    Err(DecodeError::Invalid { field, reason: reason.into() })
}

fn check(envelope: wire::Envelope) -> Result<Checked, DecodeError> {
    if envelope.version != VERSION {
        return Err(DecodeError::Version { found: envelope.version });
    }
    let node_id =
        envelope.node_id.parse().or_else(|error: crate::IdentityError| invalid("node_id", error.to_string()))?;
    let boot_id =
        envelope.boot_id.parse().or_else(|error: crate::IdentityError| invalid("boot_id", error.to_string()))?;
    if envelope.heartbeats.is_empty() || envelope.heartbeats.len() > MAX_HEARTBEATS {
        return invalid(
            "heartbeats",
            format!("{} in one envelope; 1 to {MAX_HEARTBEATS} are allowed", envelope.heartbeats.len()),
        );
    }
    for heartbeat in &envelope.heartbeats {
        check_heartbeat(heartbeat)?;
    }
    Ok(Checked {
        node_id,
        boot_id,
        oldest_retained_sequence: envelope.oldest_retained_sequence,
        sent_unix_ms: envelope.sent_unix_ms,
        heartbeats: envelope.heartbeats,
    })
}

fn check_heartbeat(heartbeat: &wire::Heartbeat) -> Result<(), DecodeError> {
    // Databases keep sequences and nanoseconds as signed 64-bit numbers.
    if heartbeat.sequence == 0 || i64::try_from(heartbeat.sequence).is_err() {
        return invalid("sequence", format!("{} is outside 1 to {}", heartbeat.sequence, i64::MAX));
    }
    let Some(interval) = &heartbeat.interval else { return invalid("interval", "missing") };
    if interval.end_unix_ms <= 0 || interval.start_unix_ms <= 0 || i64::try_from(interval.end_boottime_ns).is_err() {
        return invalid("interval", "a time is negative or beyond 64 bits");
    }
    if interval.start_boottime_ns >= interval.end_boottime_ns {
        return invalid("interval", "it ends before it begins");
    }
    if interval.counters_since_boottime_ns > interval.end_boottime_ns {
        return invalid("interval", "its counters begin after its end");
    }
    let Some(host) = &heartbeat.host else { return invalid("host", "missing") };
    if heartbeat.counters.is_none() {
        return invalid("counters", "missing");
    }
    let Some(coverage) = &heartbeat.coverage else { return invalid("coverage", "missing") };
    check_counts(heartbeat, coverage)?;
    heartbeat.workloads.iter().try_for_each(|row| check_row(row, interval))?;
    let names = heartbeat.workloads.iter().flat_map(row_names);
    let names = names.chain(heartbeat.runs.iter().flat_map(run_names));
    let names = names.chain(heartbeat.gpus.iter().flat_map(|gpu| [&gpu.uuid, &gpu.model]));
    let names = names.chain(heartbeat.gpus.iter().flat_map(|gpu| &gpu.workloads));
    let names = names.chain(
        heartbeat.inbound_peers.iter().flat_map(|inbound_peers| &inbound_peers.listeners).map(|port| &port.command),
    );
    let names = names.chain(heartbeat.peers.iter().flat_map(|peers| &peers.groups).map(|group| &group.command));
    let names = names.chain(coverage.capabilities.iter().flat_map(|capability| [&capability.name, &capability.reason]));
    let names = names.chain(coverage.drops.iter().map(|drop| &drop.name));
    let names = names.chain([&host.hostname, &host.kernel_release, &host.architecture, &host.agent_version]);
    let mut names = names.chain([&host.rules_version, &host.rules_digest]);
    match names.find(|name| name.len() > MAX_NAME_BYTES) {
        Some(name) => invalid("name", format!("{} bytes; {MAX_NAME_BYTES} are allowed", name.len())),
        None => Ok(()),
    }
}

/// What a row says of its threads and its cgroup can be true.
fn check_row(row: &wire::WorkloadActivity, interval: &wire::Interval) -> Result<(), DecodeError> {
    if let Some(states) = &row.states {
        let wire::TaskStates { running, sleeping, uninterruptible, stopped, frozen } = *states;
        let all: u64 = [running, sleeping, uninterruptible, stopped, frozen].map(u64::from).iter().sum();
        if all > u64::from(row.live_threads) {
            return invalid("states", format!("{all} threads are in a state, and {} live", row.live_threads));
        }
    }
    for (field, since_ns) in [("not_run_ns", row.not_run_ns), ("timed_wait_ns", row.timed_wait_ns)] {
        if since_ns.is_some_and(|since_ns| since_ns > interval.end_boottime_ns) {
            return invalid(field, "nothing has stood still for longer than since boot");
        }
    }
    // Databases keep them as signed 64-bit numbers.
    let columns = [
        ("cpu_throttled_ns", row.cpu_throttled_ns),
        ("cpu_throttled_periods", row.cpu_throttled_periods),
        ("memory_working_set_bytes", row.memory_working_set_bytes),
        ("memory_peak_bytes", row.memory_peak_bytes),
    ];
    for (field, value) in columns {
        if value.is_some_and(|value| i64::try_from(value).is_err()) {
            return invalid(field, "beyond 64 bits");
        }
    }
    Ok(())
}

fn row_names(row: &wire::WorkloadActivity) -> impl Iterator<Item = &String> {
    let names = || row.name.iter().chain(&row.batch_job);
    let told = names().filter_map(|name| name.container.as_ref());
    let told = told.flat_map(|told| [&told.name, &told.pod, &told.namespace, &told.owner, &told.image]);
    let name = names().flat_map(|name| [&name.kind, &name.id]).chain(told);
    [&row.key, &row.top_command].into_iter().chain(name).chain(row.syscalls.iter().map(|class| &class.class))
}

fn run_names(run: &wire::Run) -> impl Iterator<Item = &String> {
    let tasks = run.tasks.iter().flat_map(|task| {
        let rows = task.activity.iter().chain(&task.tools).flat_map(row_names);
        [&task.name].into_iter().chain(rows)
    });
    let own = [&run.id, &run.engine, &run.pipeline, &run.workload].into_iter();
    own.chain(run.activity.iter().flat_map(row_names)).chain(tasks)
}

/// No list is longer than what a reader has room for.
fn check_counts(heartbeat: &wire::Heartbeat, coverage: &wire::Coverage) -> Result<(), DecodeError> {
    let listeners = heartbeat.inbound_peers.as_ref().map_or(0, |inbound_peers| inbound_peers.listeners.len());
    let tasks = || heartbeat.runs.iter().flat_map(|run| &run.tasks);
    let rows = || {
        let of_runs = heartbeat.runs.iter().filter_map(|run| run.activity.as_ref());
        let of_tasks = tasks().flat_map(|task| task.activity.iter().chain(&task.tools));
        heartbeat.workloads.iter().chain(of_runs).chain(of_tasks)
    };
    let longest = |lengths: &mut dyn Iterator<Item = usize>| lengths.max().unwrap_or(0);
    for (field, count, allowed) in [
        ("workloads", heartbeat.workloads.len(), MAX_WORKLOADS),
        ("runs", heartbeat.runs.len(), MAX_RUNS),
        ("tasks", tasks().count(), MAX_TASKS),
        ("tools", longest(&mut tasks().map(|task| task.tools.len())), MAX_TOOLS),
        ("failures", longest(&mut rows().map(|row| row.failures.len())), MAX_FAILURES),
        ("syscalls", longest(&mut rows().map(|row| row.syscalls.len())), MAX_SYSCALL_CLASSES),
        ("gpus", heartbeat.gpus.len(), MAX_GPUS),
        ("gpus.workloads", longest(&mut heartbeat.gpus.iter().map(|gpu| gpu.workloads.len())), MAX_WORKLOADS),
        ("listeners", listeners, MAX_LISTENERS),
        ("peers", heartbeat.peers.as_ref().map_or(0, |peers| peers.groups.len()), MAX_PEER_GROUPS),
        ("capabilities", coverage.capabilities.len(), MAX_CAPABILITIES),
        ("drops", coverage.drops.len(), MAX_CAPABILITIES),
    ] {
        if count > allowed {
            return invalid(field, format!("{count} entries; {allowed} are allowed"));
        }
    }
    Ok(())
}
