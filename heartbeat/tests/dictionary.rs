//! What the dictionary of version 1 holds, and what it saves.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use heartbeat::{decode, encode, envelope, wire};
use prost::Message as _;

const OK: [&str; 38] = [
    "process_events",
    "call_counts",
    "inbound_peer_owners",
    "inbound_peers",
    "cgroups",
    "cpu_split",
    "direct_reclaim",
    "disk_io",
    "ebpf",
    "exit_status",
    "faults",
    "host_cpu",
    "host_disk",
    "host_memory",
    "host_network",
    "host_oom",
    "host_paging",
    "host_swap",
    "memory_peak",
    "memory_peak_of_exited",
    "network",
    "oom_kills",
    "interactive_sessions",
    "pipelines",
    "pressure",
    "privileges",
    "rules",
    "run_queue_delay",
    "short_lived_processes",
    "switches",
    "tasks",
    "self_budget",
    "kill_switch",
    "spool",
    "blocked_io",
    "gpu",
    "syscall_classes",
    "tracepoints",
];
const REASONS: [(&str, &str); 6] = [
    (
        "blocked_io",
        "the kernel keeps no delays unless told so: sysctl kernel.task_delayacct=1, for tasks that begin after it",
    ),
    ("gpu", "no NVIDIA or AMD GPU is on the PCI bus"),
    (
        "memory_peak_of_exited",
        "before Linux 6.16 a process's memory is gone when its exit is shown: only processes that live at a sample have a peak",
    ),
    ("syscall_classes", "not asked for: syscall_classes = true switches it on"),
    ("taskstats", "eBPF with type information serves for it"),
    ("tracepoints", "eBPF with type information serves for it"),
];
const DROPS: [&str; 21] = [
    "detail_map_overflow",
    "untracked_tasks",
    "oom_victims",
    "unreadable_tasks",
    "detail_failures",
    "untracked_network",
    "missed_exits",
    "missed_runs",
    "detail_lineage_full",
    "detail_runs_full",
    "detail_execs_not_looked_at",
    "detail_run_events",
    "detail_tasks_without_id",
    "detail_run_facts",
    "lost_samples",
    "detail_key_overflow",
    "detail_rules_refused",
    "detail_runs_not_listed",
    "detail_tasks_not_listed",
    "detail_rows_not_listed",
    "detail_tools_not_listed",
];

fn row(key: &str, command: &str, name: Option<(&str, &str)>) -> wire::WorkloadActivity {
    wire::WorkloadActivity {
        class: wire::Class::Workload.into(),
        key: key.into(),
        top_command: command.into(),
        live_processes: 1,
        live_threads: 1,
        cpu_ns: Some(0),
        peak_resident_bytes: Some(1 << 20),
        disk_read_bytes: Some(0),
        disk_written_bytes: Some(0),
        forks: Some(0),
        execs: Some(0),
        exits: Some(0),
        oom_kills: Some(0),
        name: name.map(|(kind, id)| wire::WorkloadName { kind: kind.into(), id: id.into(), container: None }),
        cpu_user_ns: Some(0),
        cpu_system_ns: Some(0),
        run_queue_delay_ns: Some(0),
        voluntary_switches: Some(0),
        involuntary_switches: Some(0),
        resident_bytes: Some(1 << 20),
        minor_faults: Some(0),
        major_faults: Some(0),
        direct_reclaims: Some(0),
        read_calls: Some(0),
        write_calls: Some(0),
        network_received_bytes: Some(0),
        network_sent_bytes: Some(0),
        ..wire::WorkloadActivity::default()
    }
}

fn capability(name: &str, status: wire::CapabilityStatus, reason: &str) -> wire::Capability {
    wire::Capability { name: name.into(), status: status.into(), reason: reason.into() }
}

/// What most heartbeats share: names, reasons, and the shape of rows.
fn common() -> wire::Envelope {
    let task = wire::Task {
        activity: Some(row("", "bash", None)),
        tools: vec![row("bash", "bash", None), row("python3", "python3", None)],
        ..wire::Task::default()
    };
    let run = wire::Run {
        engine: "script".into(),
        workload: "/".into(),
        activity: Some(row("", "bash", None)),
        tasks: vec![task],
        tasks_started: 1,
        ..wire::Run::default()
    };
    let others = REASONS.map(|(name, reason)| capability(name, wire::CapabilityStatus::NotApplicable, reason));
    wire::Envelope {
        version: envelope::VERSION,
        heartbeats: vec![wire::Heartbeat {
            host: Some(wire::Host {
                kernel_release: "6.1.0-cloud-amd64".into(),
                architecture: "x86_64".into(),
                agent_version: "0.1.0".into(),
                interval_ms: 30_000,
                rules_version: "built-in-1".into(),
                ..wire::Host::default()
            }),
            workloads: vec![
                row("/user.slice/user-1000.slice/session-1.scope", "bash", Some(("session", "1"))),
                row(
                    "/system.slice/systemd-journald.service",
                    "systemd-journal",
                    Some(("systemd", "systemd-journald.service")),
                ),
                row(
                    "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod.slice/cri-containerd-.scope",
                    "java",
                    Some(("kubernetes", "")),
                ),
                row("/system.slice/docker-.scope", "python3", Some(("docker", ""))),
            ],
            coverage: Some(wire::Coverage {
                source: wire::Source::Ebpf.into(),
                capabilities: OK
                    .map(|name| capability(name, wire::CapabilityStatus::Ok, ""))
                    .into_iter()
                    .chain(others)
                    .collect(),
                drops: DROPS.map(|name| wire::Drop { name: name.into(), count: 0 }).to_vec(),
            }),
            runs: vec![run],
            ..wire::Heartbeat::default()
        }],
        ..wire::Envelope::default()
    }
}

/// It must never change within version 1: who has another one can read nothing. This shows how it was made.
#[test]
fn the_dictionary_is_what_most_heartbeats_share() {
    assert!(common().encode_to_vec() == envelope::DICTIONARY, "the dictionary of version 1 stays as it is");
}

/// A host as the budget of the design means it: fifty workloads, each with counters of its own.
#[test]
fn fifty_workloads_take_less_than_two_kibibytes_and_come_back_as_they_were() {
    let mut envelope = common();
    envelope.node_id = "aws:123456789012:eu-central-1:i-0123456789abcdef0".into();
    envelope.boot_id = "1b4e28ba-2fa1-11d2-883f-0016d3cca427".into();
    let mut number = 88_172_645_463_325_252_u64;
    // Marsaglia's xorshift: what a counter stands at tells nothing about the next.
    let mut next = |below: u64| {
        number ^= number << 13;
        number ^= number >> 7;
        number ^= number << 17;
        number % below
    };
    let heartbeat = &mut envelope.heartbeats[0];
    heartbeat.sequence = 1;
    heartbeat.interval = Some(wire::Interval {
        start_unix_ms: 1_790_000_000_000,
        end_unix_ms: 1_790_000_030_000,
        start_boottime_ns: 100_000_000_000,
        end_boottime_ns: 130_000_000_000,
        observed_since_unix_ms: 1_790_000_000_000,
        counters_since_boottime_ns: 99_000_000_000,
    });
    heartbeat.counters = Some(wire::HostCounters { cpu_busy_ns: Some(1), ..Default::default() });
    heartbeat.agent = Some(wire::AgentCost { cpu_ns: Some(5_000_000), ..Default::default() });
    heartbeat.runs.clear();
    heartbeat.workloads = (0..50)
        .map(|index| {
            let id = format!("{index:064x}");
            let mut row = row(&format!("/system.slice/docker-{id}.scope"), "python3", Some(("docker", &id)));
            row.cpu_ns = Some(next(1 << 34));
            row.forks = Some(next(100));
            row.resident_bytes = Some(next(1 << 20) << 12);
            row.voluntary_switches = Some(next(1 << 16));
            row
        })
        .collect();
    let bytes = encode(&envelope).unwrap();
    assert!(bytes.len() <= 2_048, "{} bytes", bytes.len());
    assert_eq!(decode(&bytes).unwrap().heartbeats, envelope.heartbeats);
}

#[test]
fn what_was_packed_without_the_dictionary_is_read_and_what_was_damaged_is_not() {
    let mut envelope = common();
    envelope.node_id = "host:0123456789abcdef".into();
    envelope.boot_id = "1b4e28ba-2fa1-11d2-883f-0016d3cca427".into();
    let plain = zstd::encode_all(envelope.encode_to_vec().as_slice(), 3).unwrap();
    // Both get as far as the check of what they say.
    assert!(matches!(decode(&plain), Err(heartbeat::DecodeError::Invalid { .. })));
    let mut packed = encode(&envelope).unwrap();
    assert!(matches!(decode(&packed), Err(heartbeat::DecodeError::Invalid { .. })));
    *packed.last_mut().unwrap() ^= 1;
    assert!(matches!(decode(&packed), Err(heartbeat::DecodeError::Compression(_))));
}
