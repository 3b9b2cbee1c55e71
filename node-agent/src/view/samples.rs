//! Two heartbeats of a machine on which a pipeline runs, for the tests of the views.

use super::shape::View;
use heartbeat::wire;

const SECOND: u64 = 1_000_000_000;

fn row(class: wire::Class, key: &str, command: &str, cpu_ms: u64) -> wire::WorkloadActivity {
    let ms = cpu_ms * 1_000_000;
    wire::WorkloadActivity {
        class: class.into(),
        key: key.into(),
        top_command: command.into(),
        live_processes: 3,
        live_threads: 8,
        cpu_ns: Some(ms),
        run_queue_delay_ns: Some(ms / 4),
        blocked_io_ns: Some(ms / 20),
        resident_bytes: Some(cpu_ms * 1_000_000),
        disk_read_bytes: Some(cpu_ms * 3_000),
        disk_written_bytes: Some(cpu_ms * 100),
        forks: Some(cpu_ms / 100),
        execs: Some(cpu_ms / 100),
        oom_kills: Some(0),
        network_received_bytes: Some(cpu_ms * 10),
        network_sent_bytes: Some(cpu_ms * 20),
        ..wire::WorkloadActivity::default()
    }
}

fn task(id: u64, name: &str, tool: &str, cpu_ms: u64, status: Option<u32>) -> wire::Task {
    wire::Task {
        id,
        name: name.into(),
        started_boottime_ns: 100 * SECOND,
        ended_boottime_ns: status.map(|_| 160 * SECOND),
        wait_status: status,
        activity: Some(row(wire::Class::Workload, "", tool, cpu_ms)),
        tools: vec![row(wire::Class::Workload, tool, tool, cpu_ms)],
    }
}

/// One of a row of heartbeats, a second apart.
pub(crate) fn heartbeat(number: u64) -> wire::Heartbeat {
    use wire::Class::{Housekeeping, Kernel, Self_, Workload};
    let mut container = row(Workload, "/docker/3f2a9c1b7d5e", "bwa", number * 900);
    container.name = Some(wire::WorkloadName { kind: "docker".into(), id: "3f2a9c1b7d5e".into(), container: None });
    let mut unit = row(Housekeeping, "/system.slice/rsyslog.service", "rsyslogd", number * 4);
    unit.resident_bytes = None;
    let run = wire::Run {
        id: "r1".into(),
        engine: "nextflow".into(),
        pipeline: "nf-core/rnaseq".into(),
        workload: "/user.slice/user-1000.slice/session-2.scope".into(),
        started_boottime_ns: 90 * SECOND,
        activity: Some(row(Workload, "", "java", number * 950)),
        tasks: vec![
            task(1, "FASTQC (sample_1)", "fastqc", 30_000, Some(0)),
            task(2, "BWA_MEM (sample_1)", "bwa", number * 900, None),
            task(3, "FASTQC (sample_2)", "fastqc", 12_000, Some(256)),
        ],
        tasks_started: 12,
        tasks_ended: 11,
        tasks_failed: 1,
        ..wire::Run::default()
    };
    let capability = |name: &str, status: wire::CapabilityStatus, reason: &str| wire::Capability {
        name: name.into(),
        status: status.into(),
        reason: reason.into(),
    };
    wire::Heartbeat {
        interval: Some(wire::Interval {
            start_unix_ms: 1_800_000_000_000,
            end_unix_ms: 1_800_000_000_000 + i64::try_from(number * 1_000).unwrap_or(0),
            start_boottime_ns: (199 + number) * SECOND,
            end_boottime_ns: (200 + number) * SECOND,
            counters_since_boottime_ns: 80 * SECOND,
            ..wire::Interval::default()
        }),
        host: Some(wire::Host {
            hostname: "ip-10-0-0-17".into(),
            kernel_release: "6.1.0-28-cloud-amd64".into(),
            cpus: 4,
            memory_bytes: 8 << 30,
            ..wire::Host::default()
        }),
        counters: Some(wire::HostCounters {
            cpu_busy_ns: Some(number * 1_250_000_000),
            cpu_user_ns: Some(number * 1_000_000_000),
            cpu_system_ns: Some(number * 250_000_000),
            cpu_steal_ns: Some(number * 1_000_000),
            cpu_iowait_ns: Some(number * 40_000_000),
            disk_read_bytes: Some(number * 3_500_000),
            disk_written_bytes: Some(number * 120_000),
            disk_reads: Some(number * 90),
            disk_writes: Some(number * 7),
            network_received_bytes: Some(number * 9_000),
            network_sent_bytes: Some(number * 20_000),
            tasks_created: Some(number * 18),
            oom_kills: Some(0),
            memory_available_bytes: Some(5 << 30),
            context_switches: Some(number * 12_345),
            major_faults: Some(number * 2),
            direct_reclaim_pages: Some(0),
            swap_pages: Some(0),
            pressure: Some(wire::Pressure {
                cpu_some_us: Some(number * 31_000),
                memory_some_us: Some(0),
                memory_full_us: Some(0),
                io_some_us: Some(number * 120_000),
                io_full_us: Some(number * 60_000),
            }),
            ..wire::HostCounters::default()
        }),
        workloads: vec![
            container,
            unit,
            row(Kernel, "/", "kworker/0:1", number * 11),
            row(Self_, "/system.slice/node-agent.service", "node-agent", number),
        ],
        runs: vec![run],
        gpus: vec![wire::Gpu {
            uuid: "GPU-1".into(),
            model: "NVIDIA A10G".into(),
            utilization_percent: Some(87),
            memory_used_bytes: Some(9 << 30),
            memory_total_bytes: Some(24 << 30),
            power_mw: Some(212_000),
            processes: Some(1),
            ..wire::Gpu::default()
        }],
        interactive_sessions: Some(wire::InteractiveSessions {
            terminal_sessions: 1,
            last_input_unix_ms: Some(1_799_999_992_000),
        }),
        inbound_peers: Some(wire::InboundPeers {
            listeners: vec![wire::Listener {
                port: 443,
                command: "nginx".into(),
                outside_peers: 3,
                last_new_peer_unix_ms: Some(1_799_999_400_000),
                ..wire::Listener::default()
            }],
            listeners_not_listed: 0,
        }),
        coverage: Some(wire::Coverage {
            source: wire::Source::Ebpf.into(),
            capabilities: vec![
                capability("tasks", wire::CapabilityStatus::Ok, ""),
                capability("disk_io", wire::CapabilityStatus::Denied, "CAP_SYS_PTRACE is missing"),
            ],
            drops: vec![wire::Drop { name: "map_overflow".into(), count: number * 2 }],
        }),
        agent: Some(wire::AgentCost {
            cpu_ns: Some(number * 1_000_000),
            resident_bytes: Some(12 << 20),
            ..wire::AgentCost::default()
        }),
        ..wire::Heartbeat::default()
    }
}

/// What two of them come to.
pub(crate) fn view() -> View {
    View::new(Some(&heartbeat(1)), &heartbeat(2))
}
