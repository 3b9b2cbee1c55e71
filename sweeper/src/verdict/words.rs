//! A judgement in words that a person can check against `ps`, `/proc` and a clock.

use super::{Case, Contradiction, Decision, Judgement, Observation, Signal, Unknown};
use jiff::{SignedDuration, Timestamp};

/// The name of a signal in a sentence.
#[must_use]
pub fn signal(signal: Signal) -> &'static str {
    match signal {
        Signal::WorkloadCpu => "CPU time of workloads",
        Signal::WorkloadBirths => "programs started by workloads",
        Signal::WorkloadDisk => "storage traffic of workloads",
        Signal::Network => "network traffic",
        Signal::OomKill => "a kill by the out-of-memory killer",
        Signal::Gpu => "work of the GPUs",
        Signal::Person => "input at a terminal",
        Signal::Callers => "a new caller from another machine",
    }
}

fn contradiction(what: Contradiction) -> &'static str {
    match what {
        Contradiction::UnattributedCpu => "the host spent CPU time that nobody accounts for",
        Contradiction::KernelCpu => "kernel threads were busy, which may serve files or storage to others",
        Contradiction::UnattributedDisk => "its disks moved data that no process asked for",
    }
}

/// A time of day in UTC, to the second.
#[must_use]
pub fn time(unix_ms: i64) -> String {
    Timestamp::from_millisecond(unix_ms)
        .map_or_else(|_| "?".to_owned(), |time| time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string())
}

/// A length of time in at most two units: `2 d 3 h`, `14 min`, `20 s`.
#[must_use]
pub fn span(ms: i64) -> String {
    let seconds = SignedDuration::from_millis(ms.max(0)).as_secs();
    let (days, hours, minutes, rest) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let pair = |a: i64, unit: &str, b: i64, next: &str| {
        if b == 0 { format!("{a} {unit}") } else { format!("{a} {unit} {b} {next}") }
    };
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{rest} s"),
        (0, 0, _) => pair(minutes, "min", rest, "s"),
        (0, ..) => pair(hours, "h", minutes, "min"),
        _ => pair(days, "d", hours, "h"),
    }
}

/// A count with its noun: `1 CPU`, `2 CPUs`.
#[must_use]
pub fn count(number: u32, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// CPU time: `340 ms`, `12.5 s`.
#[must_use]
pub fn cpu(ns: u64) -> String {
    match ns {
        0..1_000_000 => format!("{} µs", ns / 1000),
        1_000_000..10_000_000_000 => format!("{} ms", ns / 1_000_000),
        _ => format!("{}.{} s", ns / 1_000_000_000, ns / 100_000_000 % 10),
    }
}

/// A count of bytes: `812 B`, `3.4 KiB`, `20 MiB`.
#[must_use]
pub fn bytes(count: u64) -> String {
    let unit = |shift: u32, name: &str| {
        let (whole, tenth) = (count >> shift, ((count & ((1 << shift) - 1)) * 10) >> shift);
        if whole < 10 { format!("{whole}.{tenth} {name}") } else { format!("{whole} {name}") }
    };
    match count {
        0..1024 => format!("{count} B"),
        1024..1_048_576 => unit(10, "KiB"),
        1_048_576..1_073_741_824 => unit(20, "MiB"),
        _ => unit(30, "GiB"),
    }
}

fn measured(value: Option<u64>, show: impl Fn(u64) -> String) -> String {
    value.map_or_else(|| "not measured".to_owned(), show)
}

/// The counters of one span of time, a line each, with the floor that each was held against.
#[must_use]
pub fn counters(observation: &Observation, case: &Case) -> Vec<String> {
    let policy = &case.policy;
    let mut lines = vec![
        format!(
            "CPU time of workloads: {} (floor {} per second)",
            measured(observation.workload_cpu_ns, cpu),
            cpu(policy.workload_cpu_floor_ns_per_s)
        ),
        births(observation, case),
        format!(
            "storage traffic of workloads: {} (floor {} per second)",
            measured(observation.workload_disk_bytes, bytes),
            bytes(policy.disk_floor_bytes_per_s)
        ),
        format!(
            "network traffic without loopback and the agent's own: {} (floor {} per second)",
            measured(observation.network_bytes, bytes),
            bytes(policy.network_floor_bytes_per_s)
        ),
        format!("kills by the out-of-memory killer: {} (floor 0)", measured(observation.oom_kills, |n| n.to_string())),
    ];
    if let Some(busy_ns) = observation.gpu_busy_ns {
        let floor = cpu(policy.gpu_busy_floor_ns_per_s);
        lines.push(format!("work of the GPUs, added up: {} (floor {floor} per second)", cpu(busy_ns)));
    }
    if let Some(ports) = observation.new_callers {
        lines.push(format!("ports of workloads with a new caller from another machine: {ports} (floor 0)"));
    }
    if let Some(terminals) = case.node.as_ref().and_then(|node| node.terminals) {
        let sessions = count(terminals.sessions, "session", "sessions");
        let last = terminals.last_input_unix_ms.map_or_else(|| "not measured".to_owned(), time);
        let after = span(policy.interactive_after_ms);
        lines.push(format!("{sessions} with a terminal, last input: {last} (active for {after} after it)"));
    }
    if observation.lost_events > 0 {
        lines.push(format!("kernel events lost: {}", observation.lost_events));
    }
    lines
}

fn births(observation: &Observation, case: &Case) -> String {
    match (observation.workload_births, observation.unattributed_births) {
        (None, Some(created)) => format!(
            "tasks created, by whomever: {created} (floor {} in 1000 seconds)",
            case.policy.unattributed_births_floor_per_1000_s
        ),
        (births, _) => format!("programs started by workloads: {} (floor 0)", measured(births, |n| n.to_string())),
    }
}

/// What decided, in one sentence.
#[must_use]
pub fn decision(judgement: &Judgement, case: &Case) -> String {
    let idle_after = span(case.idle_after_ms());
    match &judgement.decision {
        Decision::Above { signal: which, observation } => format!(
            "{} above its floor between {} and {}",
            signal(*which),
            time(observation.start_unix_ms),
            time(observation.end_unix_ms)
        ),
        Decision::Present { sessions, last_input_unix_ms } => format!(
            "{} with a terminal, where something was typed at {}, less than {} ago",
            count(*sessions, "session", "sessions"),
            time(*last_input_unix_ms),
            span(case.policy.interactive_after_ms)
        ),
        Decision::AllQuiet { observations, total } => format!(
            "every signal stayed below its floor for {} ({observations} observations without a gap; {idle_after} are needed)",
            span(total.end_unix_ms - total.start_unix_ms)
        ),
        Decision::Unknown(why) => match why {
            Unknown::NoAgent => "no agent reports from it: what it does is not known".to_owned(),
            Unknown::Silent { last_heartbeat_unix_ms } => {
                format!("its agent has been silent since {}", time(*last_heartbeat_unix_ms))
            }
            Unknown::BootGrace { booted_unix_ms } => {
                format!("it booted at {}, less than {} ago", time(*booted_unix_ms), span(case.policy.boot_grace_ms))
            }
            Unknown::GpuNotMeasured => "it has a GPU and nobody reads what the GPU does".to_owned(),
            Unknown::ObservedTooShort { quiet_since_unix_ms: Some(since) } => {
                format!("it has been quiet since {}, but {idle_after} of unbroken observation are needed", time(*since))
            }
            Unknown::ObservedTooShort { quiet_since_unix_ms: None } => {
                "there are not yet two heartbeats that can be compared".to_owned()
            }
            Unknown::NotMeasured { signals } => {
                format!("not measured: {}", signals.iter().map(|s| signal(*s)).collect::<Vec<_>>().join(", "))
            }
            Unknown::Contradictory { by } => format!(
                "its workloads were quiet, and yet {}",
                by.iter().map(|what| contradiction(*what)).collect::<Vec<_>>().join(", and ")
            ),
            Unknown::LostEvents { count } => format!("the kernel dropped {count} events that nobody saw"),
        },
    }
}
