//! What a decoder accepts, what it refuses, and that old bytes stay readable.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use heartbeat::{DecodeError, decode, encode, envelope, wire};
use proptest::prelude::*;
use prost::Message as _;

fn sample() -> wire::Envelope {
    let workload = |class: wire::Class, key: &str, cpu_ns| wire::WorkloadActivity {
        class: class.into(),
        key: key.into(),
        top_command: "sort".into(),
        live_processes: 2,
        live_threads: 5,
        cpu_ns: Some(cpu_ns),
        peak_resident_bytes: Some(33 << 20),
        disk_read_bytes: Some(4096),
        disk_written_bytes: Some(0),
        forks: Some(7),
        execs: Some(7),
        exits: Some(5),
        oom_kills: Some(0),
        ..wire::WorkloadActivity::default()
    };
    wire::Envelope {
        version: envelope::VERSION,
        node_id: "aws:123456789012:eu-central-1:i-0123456789abcdef0".into(),
        boot_id: "1b4e28ba-2fa1-11d2-883f-0016d3cca427".into(),
        oldest_retained_sequence: 1,
        sent_unix_ms: 1_790_000_031_000,
        heartbeats: vec![wire::Heartbeat {
            sequence: 1,
            interval: Some(wire::Interval {
                start_unix_ms: 1_790_000_000_000,
                end_unix_ms: 1_790_000_030_000,
                start_boottime_ns: 100_000_000_000,
                end_boottime_ns: 130_000_000_000,
                observed_since_unix_ms: 1_790_000_000_000,
                counters_since_boottime_ns: 99_000_000_000,
            }),
            host: Some(wire::Host {
                hostname: "worker-1".into(),
                kernel_release: "6.1.0-40-cloud-amd64".into(),
                architecture: "x86_64".into(),
                agent_version: "0.1.0".into(),
                cpus: 16,
                memory_bytes: 64 << 30,
                interval_ms: 30_000,
                gpu_present: false,
                ..wire::Host::default()
            }),
            counters: Some(wire::HostCounters {
                cpu_busy_ns: Some(12_000_000_000),
                network_sent_bytes: Some(1_000_000),
                ..Default::default()
            }),
            workloads: vec![
                workload(wire::Class::Workload, "/user.slice/user-1000.slice/session-3.scope", 9_000_000_000),
                workload(wire::Class::Housekeeping, "/system.slice/cron.service", 3_000_000),
            ],
            coverage: Some(wire::Coverage {
                source: wire::Source::Ebpf.into(),
                capabilities: vec![wire::Capability {
                    name: "gpu".into(),
                    status: wire::CapabilityStatus::NotApplicable.into(),
                    reason: "no GPU on the PCI bus".into(),
                }],
                drops: vec![wire::Drop { name: "lifecycle_ring".into(), count: 0 }],
            }),
            agent: Some(wire::AgentCost { cpu_ns: Some(5_000_000), ..Default::default() }),
            ..wire::Heartbeat::default()
        }],
    }
}

/// Version 1 as it was first written. These bytes must stay readable for as long as version 1 is accepted.
const GOLDEN: &str = include_str!("golden/envelope-v1.hex");

#[test]
fn the_first_bytes_of_version_1_are_still_written_and_read() {
    let plain = sample().encode_to_vec();
    assert_eq!(GOLDEN.trim(), hex(&plain), "the wire format changed: see the rules at the top of heartbeat.proto");
    let decoded = decode(&zstd_of(&plain)).unwrap();
    assert_eq!(decoded.heartbeats, sample().heartbeats);
}

#[test]
fn a_heartbeat_reads_well_as_json() {
    insta::assert_json_snapshot!(sample().heartbeats[0]);
}

#[test]
fn a_body_cut_at_any_byte_is_refused() {
    let body = encode(&sample()).unwrap();
    for cut in 0..body.len() {
        assert!(decode(&body[..cut]).is_err(), "cut at {cut} of {}", body.len());
    }
}

#[test]
fn a_small_body_that_unpacks_to_much_is_refused() {
    let bomb = zstd_of(&vec![0_u8; envelope::MAX_DECOMPRESSED_BYTES + 1]);
    assert!(bomb.len() < 4096);
    assert!(matches!(decode(&bomb), Err(DecodeError::TooLarge { stage: "decompressed", .. })));
}

/// A frame tells its length in its head, where a stranger may write anything.
#[test]
fn a_frame_that_lies_about_its_length_is_refused_and_none_is_small_that_does_not_tell() {
    let body = encode(&sample()).unwrap();
    assert!(envelope::is_small(&body), "what agents send");
    // Magic number, descriptor, then the length, in one byte less 0, two bytes less 256, or four bytes.
    let (descriptor, at) = (body[4], 5 + usize::from(body[4] & 0x20 == 0));
    let width = [1, 2, 4, 8][usize::from(descriptor >> 6)];
    for told in [0_u64, 1, 200] {
        let mut liar = body.clone();
        liar[at..at + width].copy_from_slice(&told.to_le_bytes()[..width]);
        assert!(matches!(decode(&liar), Err(DecodeError::Compression(_))), "{told}");
    }
    let silent = zstd::stream::encode_all([0_u8; 100].as_slice(), 3).unwrap();
    assert!(!envelope::is_small(&silent));
    let long = zstd::bulk::compress(&vec![0; 5 << 20], 3).unwrap();
    assert!(!envelope::is_small(&long) && long.len() < 1_000);
    assert!(matches!(decode(&long), Err(DecodeError::TooLarge { stage: "decompressed", .. })));
}

/// A field that is as short as it can be: an empty message or text.
const fn empty(number: u8) -> [u8; 2] {
    [number << 3 | 2, 0]
}

/// An envelope that is otherwise as it should be, with these bytes in its one heartbeat.
fn with_heartbeat(more: &[u8]) -> Vec<u8> {
    let mut heartbeat = sample().heartbeats[0].encode_to_vec();
    heartbeat.extend_from_slice(more);
    let mut plain = wire::Envelope { heartbeats: Vec::new(), ..sample() }.encode_to_vec();
    plain.push(6 << 3 | 2);
    prost::encoding::encode_varint(heartbeat.len() as u64, &mut plain);
    plain.extend(heartbeat);
    plain
}

#[test]
fn a_small_body_that_decodes_to_much_is_refused_before_it_is_decoded() {
    let (heartbeats, workloads, runs, gpus) = (empty(6), empty(5), empty(8), empty(9));
    for (what, plain) in [
        ("heartbeats", heartbeats.repeat(2_000_000)),
        ("workloads", with_heartbeat(&workloads.repeat(2_000_000))),
        ("runs", with_heartbeat(&runs.repeat(2_000_000))),
        ("gpus", with_heartbeat(&gpus.repeat(2_000_000))),
    ] {
        let body = zstd_of(&plain);
        assert!(body.len() < 4096, "{what}: {}", body.len());
        let refused = envelope::unpack(&body);
        assert!(matches!(refused, Err(DecodeError::TooLarge { stage: "decoded", .. })), "{what}: {refused:?}");
    }
}

#[test]
fn what_protobuf_cannot_be_is_refused_before_it_is_decoded() {
    for (what, more) in [
        ("a group", &[5 << 3 | 3, 5 << 3 | 4][..]),
        ("an unknown kind of field", &[5 << 3 | 6]),
        ("a length beyond the end", &[5 << 3 | 2, 100]),
        ("a number without an end", &[5 << 3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]),
    ] {
        assert!(matches!(envelope::unpack(&zstd_of(&with_heartbeat(more))), Err(DecodeError::Malformed)), "{what}");
    }
}

/// Bytes of a heartbeat's lists as the allocator is asked for them. Written by hand, and not from the table that the decoder counts with.
fn held_by(row: &wire::WorkloadActivity) -> usize {
    let exits = row.failures.len() * size_of::<wire::Exit>();
    let classes = row.syscalls.iter().map(|class| size_of::<wire::SyscallClass>() + class.class.len());
    row.key.len() + row.top_command.len() + exits + classes.sum::<usize>()
}

#[test]
fn a_heartbeat_with_every_list_full_is_accepted_and_counted_as_what_it_takes() {
    let row = wire::WorkloadActivity {
        failures: vec![wire::Exit::default(); envelope::MAX_FAILURES],
        syscalls: vec![wire::SyscallClass::default(); envelope::MAX_SYSCALL_CLASSES],
        ..sample().heartbeats[0].workloads[0].clone()
    };
    let tool = wire::WorkloadActivity { key: "bwa".into(), ..row.clone() };
    let task = wire::Task {
        activity: Some(tool.clone()),
        tools: vec![tool.clone(); envelope::MAX_TOOLS],
        ..Default::default()
    };
    let of_run = envelope::MAX_TASKS / envelope::MAX_RUNS;
    let run = wire::Run { activity: Some(tool.clone()), tasks: vec![task; of_run], ..Default::default() };
    let mut full = sample();
    full.heartbeats[0].workloads = vec![row.clone(); envelope::MAX_WORKLOADS];
    full.heartbeats[0].runs = vec![run; envelope::MAX_RUNS];
    let unpacked = envelope::unpack(&encode(&full).unwrap()).unwrap();

    let (row_bytes, tool_bytes) = (size_of_val(&row) + held_by(&row), size_of_val(&tool) + held_by(&tool));
    let tasks = envelope::MAX_TASKS;
    let least = envelope::MAX_WORKLOADS * row_bytes
        + tasks * (envelope::MAX_TOOLS * tool_bytes + size_of::<wire::Task>() + held_by(&tool))
        + envelope::MAX_RUNS * (size_of::<wire::Run>() + held_by(&tool));
    // Beyond that: what a row holds within itself is counted as if it were beside it, and the rest of the sample.
    let counted = unpacked.decoded_bytes();
    assert!((least..least + least / 5).contains(&counted), "{counted} of at least {least}");
    assert!(unpacked.decode().is_ok());
}

#[test]
fn a_body_that_asks_for_a_large_window_is_refused() {
    let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
    encoder.window_log(27).unwrap();
    std::io::Write::write_all(&mut encoder, &sample().encode_to_vec()).unwrap();
    assert!(matches!(decode(&encoder.finish().unwrap()), Err(DecodeError::Compression(_))));
}

#[test]
fn a_body_over_the_limit_is_refused_before_it_is_read() {
    let body = vec![0; envelope::MAX_BODY_BYTES + 1];
    assert!(matches!(decode(&body), Err(DecodeError::TooLarge { stage: "compressed", .. })));
}

#[test]
fn another_version_is_named_in_the_refusal() {
    let other = wire::Envelope { version: 9, ..sample() };
    assert!(matches!(decode(&encode(&other).unwrap()), Err(DecodeError::Version { found: 9 })));
}

#[test]
fn what_cannot_be_true_is_refused_by_field() {
    type Change = fn(&mut wire::Envelope);
    let cases: [(&str, Change); 13] = [
        ("node_id", |e| e.node_id = "me".into()),
        ("boot_id", |e| e.boot_id = "yesterday".into()),
        ("heartbeats", |e| e.heartbeats.clear()),
        ("sequence", |e| e.heartbeats[0].sequence = 0),
        ("interval", |e| e.heartbeats[0].interval = None),
        ("interval", |e| e.heartbeats[0].interval.as_mut().unwrap().end_boottime_ns = 1),
        ("counters", |e| e.heartbeats[0].counters = None),
        ("coverage", |e| e.heartbeats[0].coverage = None),
        ("states", |e| {
            let states = wire::TaskStates { sleeping: 5, frozen: 1, ..wire::TaskStates::default() };
            e.heartbeats[0].workloads[0].states = Some(states);
        }),
        ("timed_wait_ns", |e| e.heartbeats[0].workloads[0].timed_wait_ns = Some(130_000_000_001)),
        ("not_run_ns", |e| e.heartbeats[0].workloads[0].not_run_ns = Some(130_000_000_001)),
        ("memory_peak_bytes", |e| e.heartbeats[0].workloads[0].memory_peak_bytes = Some(u64::MAX)),
        ("name", |e| e.heartbeats[0].workloads[0].key = "x".repeat(envelope::MAX_NAME_BYTES + 1)),
    ];
    for (expected, change) in cases {
        let mut envelope = sample();
        change(&mut envelope);
        match decode(&encode(&envelope).unwrap()) {
            Err(DecodeError::Invalid { field, .. }) => assert_eq!(field, expected),
            other => panic!("{expected}: {other:?}"),
        }
    }
}

proptest! {
    #[test]
    fn no_bytes_make_the_decoder_panic(bytes in proptest::collection::vec(any::<u8>(), 0..2048)) {
        let _ = decode(&bytes);
        let _ = decode(&zstd_of(&bytes));
    }
}

fn zstd_of(plain: &[u8]) -> Vec<u8> {
    zstd::encode_all(plain, 3).unwrap()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
