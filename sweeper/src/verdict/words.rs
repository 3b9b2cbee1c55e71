//! A judgement in words that a person can check against `ps`, `/proc` and a clock.

use super::{
    BusyRow, Case, Contradiction, DecidingRow, Decision, Judgement, LastSignal, LastWork, Observation, Protocol,
    Signal, Unknown, Wait,
};
use heartbeat::text::visible;
use jiff::{SignedDuration, Timestamp};
use std::fmt::Display;

/// Why nothing is known of a machine from which no agent ever reported.
pub const NO_AGENT: &str = "no agent reports from it: what it does is not known";

/// The name of a signal in a sentence.
#[must_use]
pub fn signal(signal: Signal) -> &'static str {
    match signal {
        Signal::WorkloadCpu => "CPU time of workloads",
        Signal::WorkloadStarts => "programs started by workloads",
        Signal::WorkloadDisk => "storage traffic of workloads",
        Signal::Network => "network traffic",
        Signal::OomKill => "a kill by the out-of-memory killer",
        Signal::Gpu => "work of the GPUs",
        Signal::Person => "input at a terminal",
        Signal::InboundPeers => "a new inbound peer",
        Signal::Peers => "exchanges with peers on other machines",
        Signal::Runs => "open runs of pipelines",
    }
}

fn contradiction(what: Contradiction) -> &'static str {
    match what {
        Contradiction::UnattributedCpu => "the host spent CPU time that nobody accounts for",
        Contradiction::KernelCpu => "kernel threads were busy, which may serve files or storage to others",
        Contradiction::UnattributedDisk => "its disks moved data that no process asked for",
        Contradiction::UnattributedNetwork => {
            "its interfaces moved data that nobody accounts for (unattributed network)"
        }
        Contradiction::Housekeeping => "housekeeping used more CPU time than its budget",
    }
}

/// The name of a cross-check in a list of what was not measured.
fn check(what: Contradiction) -> &'static str {
    match what {
        Contradiction::UnattributedCpu => "CPU time of the host",
        Contradiction::KernelCpu => "CPU time of kernel threads",
        Contradiction::UnattributedDisk => "traffic of the host's disks",
        Contradiction::UnattributedNetwork => "traffic of the host's interfaces",
        Contradiction::Housekeeping => "CPU time of housekeeping",
    }
}

/// So many waits are named; more do not help a person.
const WAITS: usize = 3;

fn waiting(on: &[Wait]) -> String {
    let named = on.iter().take(WAITS).map(wait).collect::<Vec<_>>().join("; ");
    match on.len().saturating_sub(WAITS) {
        0 => format!("it waits: {named}"),
        more => format!("it waits: {named}; and {more} more"),
    }
}

/// What it waits for, in words.
fn wait(on: &Wait) -> String {
    match on {
        Wait::Run { engine, pipeline, open_tasks } => {
            let named = if pipeline.is_empty() { String::new() } else { format!(" `{}`", visible(pipeline)) };
            let tasks = count(*open_tasks, "open task", "open tasks");
            format!("a {} run{named} that has not ended, with {tasks}", visible(engine))
        }
        Wait::BatchStep { kind, id } => format!("the {} job {}, which has processes here", visible(kind), visible(id)),
        Wait::Peers { protocol, port, outbound, command, peers, last_exchange_unix_ms } => {
            let protocol = match protocol {
                Protocol::Tcp => "TCP",
                Protocol::Udp => "UDP",
                Protocol::Other => "network",
            };
            let who = if command.is_empty() { String::new() } else { format!(" of {}", visible(command)) };
            let peers = if *peers == 0 { "peers".to_owned() } else { count(*peers, "peer", "peers") };
            let at = if *outbound { "at their" } else { "at" };
            format!("{peers}{who} {at} {protocol} port {port}, last exchange at {}", time(*last_exchange_unix_ms))
        }
        Wait::InboundPeer { port, command, last_new_peer_unix_ms } => {
            let who = if command.is_empty() { String::new() } else { format!(" of {}", visible(command)) };
            let at = port.map_or_else(|| " from other machines".to_owned(), |port| format!(" at TCP port {port}"));
            format!("calls{at}{who}, the last one at {}", time(*last_new_peer_unix_ms))
        }
        Wait::Schedule { timers, crontabs, next_timer_unix_ms } => {
            let kinds = [(*timers, "timer", "timers"), (*crontabs, "crontab", "crontabs")];
            let own = kinds.into_iter().filter_map(|(number, one, many)| match number {
                Some(0) => None,
                Some(number) => Some(format!("{} that the distribution does not ship", count(number, one, many))),
                None => Some(format!("{many} that could not be listed")),
            });
            let own = own.collect::<Vec<_>>().join(" and ");
            let next = next_timer_unix_ms.map_or_else(String::new, |at| format!(", due at {}", time(at)));
            format!("{own}{next}")
        }
        Wait::Sleeper { workload, command, slept_ms } => {
            let who = who("", command);
            format!(
                "{}{who}, of which a process has slept for {} until a timer wakes it",
                visible(workload),
                span(*slept_ms)
            )
        }
        Wait::Session { sessions, last_input_unix_ms } => format!(
            "{} with a terminal, where something was typed at {}",
            count(*sessions, "session", "sessions"),
            time(*last_input_unix_ms)
        ),
    }
}

fn deciding(row: &DecidingRow) -> String {
    let amount = match row.signal {
        Signal::WorkloadCpu => cpu(row.amount),
        Signal::WorkloadDisk | Signal::Network => bytes(row.amount),
        Signal::InboundPeers => count(row.amount, "peer", "peers"),
        _ => row.amount.to_string(),
    };
    let who = who(&row.container, &row.top_command);
    format!("; the busiest row was {}{who} with {amount}", visible(&row.key))
}

/// What follows a row's key: its container, and its busiest process.
#[must_use]
pub fn who(container: &str, top_command: &str) -> String {
    let known = [container, top_command].into_iter().filter(|name| !name.is_empty()).map(visible);
    let known = known.collect::<Vec<_>>().join(", ");
    if known.is_empty() { known } else { format!(" ({known})") }
}

/// How a process ended, as wait(2) tells it: the exit code is in the second byte, the signal in the first.
pub(super) fn ended_with(wait_status: u32) -> String {
    match wait_status & 0x7f {
        0 => format!("exit code {}", (wait_status >> 8) & 0xff),
        signal => format!("signal {signal}"),
    }
}

/// What ended last on a node, a sentence each.
#[must_use]
pub fn last_work(last: &LastWork) -> Vec<String> {
    let seen = last.signal.as_ref().map(|LastSignal { signal: what, until_unix_ms, row }| {
        let row = row
            .as_ref()
            .map(|row| format!(", mostly of {}{}", visible(&row.key), who(&row.container, &row.top_command)));
        format!("last seen at work until {}: {}{}", time(*until_unix_ms), signal(*what), row.unwrap_or_default())
    });
    let run = last.run.as_ref().map(|run| {
        let name = if run.pipeline.is_empty() { String::new() } else { format!(" {}", visible(&run.pipeline)) };
        let how = run.wait_status.map_or_else(String::new, |status| format!(" with {}", ended_with(status)));
        let failed = if run.failed == 0 { String::new() } else { format!(", {} of them failed", run.failed) };
        format!(
            "the {} run{name} ended at {}{how}: {}{failed}",
            visible(&run.engine),
            time(run.ended_unix_ms),
            count(run.tasks, "task", "tasks")
        )
    });
    seen.into_iter().chain(run).collect()
}

fn busiest(row: &BusyRow, case: &Case) -> String {
    format!(
        "; more than {} per second over {} are too much, and the busiest row was {} ({}) with {}",
        cpu(case.policy.housekeeping_cpu_budget_ns_per_s),
        span(case.idle_after_ms()),
        visible(&row.key),
        visible(&row.top_command),
        cpu(row.cpu_ns)
    )
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
pub fn count<N: Display + PartialEq + From<u8>>(number: N, one: &str, many: &str) -> String {
    let noun = if number == N::from(1) { one } else { many };
    format!("{number} {noun}")
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

/// The counters of one span of time, a line each, with the threshold that each was held against.
#[must_use]
pub fn counters(observation: &Observation, case: &Case) -> Vec<String> {
    let policy = &case.policy;
    let mut lines = vec![
        format!(
            "CPU time of workloads: {} (threshold {} per second)",
            measured(observation.workload_cpu_ns, cpu),
            cpu(policy.workload_cpu_threshold_ns_per_s)
        ),
        starts(observation, case),
        format!(
            "storage traffic of workloads: {} (threshold {} per second)",
            measured(observation.workload_disk_bytes, bytes),
            bytes(policy.disk_threshold_bytes_per_s)
        ),
        format!(
            "network traffic {}: {} (threshold {} per second)",
            if observation.unattributed_network_bytes.is_some() {
                "of workloads, without loopback"
            } else {
                "without loopback and the agent's own"
            },
            measured(observation.network_bytes, bytes),
            bytes(policy.network_threshold_bytes_per_s)
        ),
        format!(
            "kills by the out-of-memory killer: {} (threshold 0)",
            measured(observation.oom_kills, |n| n.to_string())
        ),
    ];
    if let Some(housekeeping_ns) = observation.housekeeping_cpu_ns {
        let budget = cpu(policy.housekeeping_cpu_budget_ns_per_s);
        let window = span(case.idle_after_ms());
        lines.push(format!(
            "CPU time of housekeeping: {} (budget {budget} per second over {window})",
            cpu(housekeeping_ns)
        ));
    }
    if let Some(busy_ns) = observation.gpu_busy_ns {
        let threshold = cpu(policy.gpu_busy_threshold_ns_per_s);
        lines.push(format!("work of the GPUs, added up: {} (threshold {threshold} per second)", cpu(busy_ns)));
    }
    if let Some(ports) = observation.new_inbound_peers {
        lines.push(format!("ports of workloads with a new inbound peer: {ports} (threshold 0)"));
    }
    if let Some(terminals) = case.node.as_ref().and_then(|node| node.terminals) {
        let sessions = count(terminals.sessions, "session", "sessions");
        let last = terminals.last_input_unix_ms.map_or_else(|| "not measured".to_owned(), time);
        let after = span(policy.interactive_after_ms);
        lines.push(format!("{sessions} with a terminal, last input: {last} (waiting for {after} after it)"));
    }
    if observation.lost_events > 0 {
        lines.push(format!("kernel events lost: {}", observation.lost_events));
    }
    lines
}

fn starts(observation: &Observation, case: &Case) -> String {
    match (observation.workload_starts, observation.unattributed_starts) {
        (None, Some(created)) => format!(
            "tasks created, by whomever: {created} (threshold {} in 1000 seconds)",
            case.policy.unattributed_starts_threshold_per_1000_s
        ),
        (starts, _) => format!("programs started by workloads: {} (threshold 0)", measured(starts, |n| n.to_string())),
    }
}

/// What decided, in one sentence.
#[must_use]
pub fn decision(judgement: &Judgement, case: &Case) -> String {
    let idle_after = span(case.idle_after_ms());
    match &judgement.decision {
        Decision::Above { signal: which, observation } => format!(
            "{} above its threshold between {} and {}{}",
            signal(*which),
            time(observation.start_unix_ms),
            time(observation.end_unix_ms),
            judgement.deciding_row().map_or_else(String::new, deciding)
        ),
        Decision::AllQuiet { observations, total } => format!(
            "every signal stayed below its threshold for {} ({observations} observations without a gap; {idle_after} are needed{})",
            span(total.end_unix_ms - total.start_unix_ms),
            total.restart_gap_ms.map_or_else(String::new, |gap_ms| format!(
                ", besides {} in which its agent was restarted and the host's own counters alone tell",
                span(gap_ms)
            ))
        ),
        Decision::Waiting { on } => waiting(on),
        Decision::Unknown(why) => match why {
            Unknown::NoAgent => NO_AGENT.to_owned(),
            Unknown::Silent { last_heartbeat_unix_ms } => {
                format!("its agent has been silent since {}", time(*last_heartbeat_unix_ms))
            }
            Unknown::Disputed { since_unix_ms } => format!(
                "it is disputed since {}: somebody who does not hold its key claims to be this node (`sweeper nodes`)",
                time(*since_unix_ms)
            ),
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
            Unknown::NotMeasured { signals, checks } => {
                let names = signals.iter().map(|s| signal(*s)).chain(checks.iter().map(|what| check(*what)));
                format!("not measured: {}", names.collect::<Vec<_>>().join(", "))
            }
            Unknown::Contradictory { by, busiest: row } => format!(
                "its workloads were quiet, and yet {}{}",
                by.iter().map(|what| contradiction(*what)).collect::<Vec<_>>().join(", and "),
                row.as_ref().map_or_else(String::new, |row| busiest(row, case))
            ),
            Unknown::LostEvents { count } => format!("the kernel dropped {count} events that nobody saw"),
        },
    }
}
