//! Everything that one judgement depends on.

use super::{Counters, EndedRun, Observation, Policy, Wait, rows, wait};
use crate::identity::Identity;
use heartbeat::{
    BootId,
    wire::{self, CapabilityStatus, Class, Source},
};
use serde::{Deserialize, Serialize};

/// The longest time without an agent that the host's own counters may vouch for: four intervals of 30 s.
const MAX_RESTART_GAP_MS: i64 = 120_000;

/// What is known of a node's GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gpu {
    /// None on the bus.
    Absent,
    /// Present, and its samples are part of the heartbeats.
    Measured,
    /// Present, and nobody knows what it does.
    NotMeasured,
}

/// Who sits at a terminal, and since when without a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terminals {
    /// Sessions with a terminal.
    pub sessions: u32,
    /// When one of them last took input, in milliseconds since 1970-01-01 UTC; `None` is not measured.
    pub last_input_unix_ms: Option<i64>,
}

/// One workload, for people: who was there while nothing happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkloadLine {
    /// Cgroup path.
    pub key: String,
    /// Its container, as [`DecidingRow::container`](super::DecidingRow::container).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub container: String,
    /// Executable name of its busiest process.
    pub top_command: String,
    /// Processes alive.
    pub live_processes: u32,
    /// CPU time since the agent started, in nanoseconds; `None` is not measured.
    pub cpu_ns: Option<u64>,
}

/// The node as its latest heartbeat describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeFacts {
    /// Name for people.
    pub hostname: String,
    /// `uname -r`.
    pub kernel_release: String,
    /// Version of the agent.
    pub agent_version: String,
    /// Version of the rules by which it told work from housekeeping; empty in cases from before rules had one.
    #[serde(default)]
    pub rules_version: String,
    /// CPUs online.
    pub cpus: u32,
    /// Present boot.
    pub boot_id: BootId,
    /// When that boot began, in milliseconds since 1970-01-01 UTC.
    pub booted_unix_ms: i64,
    /// Length of the agent's interval, in milliseconds.
    pub interval_ms: i64,
    /// End of the latest heartbeat, in milliseconds since 1970-01-01 UTC.
    pub last_heartbeat_unix_ms: i64,
    /// What is known of the GPU.
    pub gpu: Gpu,
    /// Sessions with a terminal; `None` if there are none, or the agent does not look for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminals: Option<Terminals>,
    /// What waits at the end, and peers whenever they last exchanged data; sessions are `terminals`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<Wait>,
    /// Whether a task lives whose run has ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_orphaned_tasks: bool,
    /// The run that ended last, as far as the case's heartbeats show one; a single heartbeat is not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run: Option<EndedRun>,
    /// `ebpf`, `proc` or what stands beside `/proc`.
    #[serde(alias = "collector")]
    pub source: String,
    /// Workloads alive at the end, busiest first, at most [`NodeFacts::MAX_WORKLOADS`].
    pub workloads: Vec<WorkloadLine>,
    /// How many more there were.
    pub more_workloads: usize,
    /// Who speaks for it; `None` in cases from before that was known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
}

impl NodeFacts {
    /// More do not help a person who reads a finding.
    pub const MAX_WORKLOADS: usize = 10;

    /// The longest time without an agent that is bridged. One that is killed just before a heartbeat leaves an interval behind, and is started
    /// again within another. Where intervals are long that is more than the host's own counters can vouch for.
    pub(super) fn restart_gap_ms(&self) -> i64 {
        self.interval_ms.saturating_mul(2).min(MAX_RESTART_GAP_MS)
    }

    pub(super) fn of(boot_id: BootId, heartbeat: &wire::Heartbeat) -> Option<Self> {
        let (interval, host) = (heartbeat.interval.as_ref()?, heartbeat.host.as_ref()?);
        let coverage = heartbeat.coverage.as_ref()?;
        let gpu_ok = coverage
            .capabilities
            .iter()
            .any(|capability| capability.name == "gpu" && capability.status == i32::from(CapabilityStatus::Ok));
        let mut workloads: Vec<_> = heartbeat
            .workloads
            .iter()
            .filter(|row| row.class == i32::from(Class::Workload) && row.live_processes > 0)
            .map(|row| WorkloadLine {
                key: row.key.clone(),
                container: rows::container(row),
                top_command: row.top_command.clone(),
                live_processes: row.live_processes,
                cpu_ns: row.cpu_ns,
            })
            .collect();
        workloads.sort_by(|a, b| b.cpu_ns.cmp(&a.cpu_ns).then_with(|| a.key.cmp(&b.key)));
        let more_workloads = workloads.len().saturating_sub(Self::MAX_WORKLOADS);
        workloads.truncate(Self::MAX_WORKLOADS);
        Some(Self {
            hostname: host.hostname.clone(),
            kernel_release: host.kernel_release.clone(),
            agent_version: host.agent_version.clone(),
            rules_version: host.rules_version.clone(),
            cpus: host.cpus,
            boot_id,
            booted_unix_ms: interval.end_unix_ms - i64::try_from(interval.end_boottime_ns / 1_000_000).ok()?,
            interval_ms: i64::from(host.interval_ms).max(1),
            last_heartbeat_unix_ms: interval.end_unix_ms,
            gpu: match (host.gpu_present, gpu_ok) {
                (false, _) => Gpu::Absent,
                (true, true) => Gpu::Measured,
                (true, false) => Gpu::NotMeasured,
            },
            terminals: heartbeat.interactive_sessions.filter(|sessions| sessions.terminal_sessions > 0).map(
                |sessions| Terminals {
                    sessions: sessions.terminal_sessions,
                    last_input_unix_ms: sessions.last_input_unix_ms,
                },
            ),
            waits: wait::waits(heartbeat),
            has_orphaned_tasks: wait::orphaned_tasks(heartbeat).next().is_some(),
            last_run: None,
            source: match Source::try_from(coverage.source) {
                Ok(Source::Ebpf) => "ebpf",
                Ok(Source::Proc) => "proc",
                Ok(Source::Taskstats) => "taskstats",
                Ok(Source::Tracepoints) => "tracepoints",
                Ok(Source::TracepointsTaskstats) => "tracepoints, taskstats",
                Ok(Source::Unspecified) | Err(_) => "unknown",
            }
            .to_owned(),
            workloads,
            more_workloads,
            identity: None,
        })
    }
}

/// Everything that one judgement depends on: the same case gives the same judgement, always.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// When it is judged, in milliseconds since 1970-01-01 UTC by the sweeper's clock.
    pub now_unix_ms: i64,
    /// Thresholds and windows.
    pub policy: Policy,
    /// The node, or `None` if it never sent a heartbeat.
    pub node: Option<NodeFacts>,
    /// What happened, oldest first. Time between two of them that neither covers was not observed.
    pub observations: Vec<Observation>,
}

impl Case {
    /// The same without its observations: enough for the words about its judgement, and not for judging it again. Those of four hours take a hundred times as
    /// much room as all else.
    #[must_use]
    pub fn summary(&self) -> Self {
        let Self { now_unix_ms, policy, node, observations: _ } = self;
        Self { now_unix_ms: *now_unix_ms, policy: policy.clone(), node: node.clone(), observations: Vec::new() }
    }

    /// What waits now: runs and batch steps that are open, peers that data was exchanged with within the judged window, processes that have slept by a timer for half of `idle_after`, timers and crontabs of somebody's,
    /// sessions that took input and ports that were called within `interactive_after`.
    #[must_use]
    pub fn waits(&self) -> Vec<Wait> {
        let Some(node) = &self.node else { return Vec::new() };
        let is_within = |at: i64, window_ms| node.last_heartbeat_unix_ms.saturating_sub(at) < window_ms;
        let session = node.terminals.and_then(|terminals| {
            let last_input_unix_ms = terminals.last_input_unix_ms?;
            is_within(last_input_unix_ms, self.policy.interactive_after_ms)
                .then_some(Wait::Session { sessions: terminals.sessions, last_input_unix_ms })
        });
        let others = node.waits.iter().filter(|wait| match wait {
            Wait::Peers { last_exchange_unix_ms, .. } => is_within(*last_exchange_unix_ms, self.idle_after_ms()),
            Wait::InboundPeer { last_new_peer_unix_ms, .. } => {
                is_within(*last_new_peer_unix_ms, self.policy.called_after_ms)
            }
            Wait::Schedule { .. } => self.policy.schedules_wait,
            Wait::Sleeper { slept_ms, .. } => self.policy.is_sleeper(*slept_ms, self.idle_after_ms()),
            Wait::Run { .. } | Wait::BatchStep { .. } | Wait::Session { .. } => true,
        });
        others.cloned().chain(session).collect()
    }

    /// The last call that any observation shows, within `called_after`. An agent forgets at its start which ports were called; what it had reported stays.
    pub(super) fn call_before(&self) -> Option<Wait> {
        let node = self.node.as_ref()?;
        let called = |seen: &&Observation| seen.new_inbound_peers.is_some_and(|count| count > 0);
        let last_new_peer_unix_ms = self.observations.iter().rev().find(called)?.end_unix_ms;
        let is_recent = node.last_heartbeat_unix_ms.saturating_sub(last_new_peer_unix_ms) < self.policy.called_after_ms;
        is_recent.then(|| Wait::InboundPeer { port: None, command: String::new(), last_new_peer_unix_ms })
    }

    /// How long this machine must be quiet to be idle, in milliseconds.
    #[must_use]
    pub fn idle_after_ms(&self) -> i64 {
        self.policy.idle_after_ms(self.node.as_ref().is_some_and(|node| node.gpu == Gpu::Measured))
    }

    /// Builds a case from heartbeats in any order.
    #[must_use]
    pub fn new(now_unix_ms: i64, policy: Policy, mut heartbeats: Vec<(BootId, wire::Heartbeat)>) -> Self {
        heartbeats.retain(|(_, heartbeat)| heartbeat.interval.is_some());
        heartbeats.sort_by_key(|(_, heartbeat)| {
            heartbeat.interval.as_ref().map_or((0, 0), |interval| (interval.end_unix_ms, interval.end_boottime_ns))
        });
        let mut node = heartbeats.last().and_then(|(boot_id, heartbeat)| NodeFacts::of(*boot_id, heartbeat));
        if let Some(node) = &mut node {
            // One is listed for a few heartbeats after its end.
            let ended = heartbeats.iter().filter_map(|(_, heartbeat)| EndedRun::last_of(heartbeat));
            node.last_run = ended.max_by_key(|run| run.ended_unix_ms);
        }
        let counters: Vec<_> = heartbeats
            .iter()
            .filter_map(|(boot_id, heartbeat)| Some((Counters::of(*boot_id, heartbeat)?, heartbeat)))
            .collect();
        let interval_ms = node.as_ref().map_or(1, |node| node.interval_ms);
        let restart_gap_ms = node.as_ref().map_or(0, NodeFacts::restart_gap_ms);
        let mut ahead_bytes = 0;
        let observations = counters.windows(2).filter_map(|pair| {
            let [(earlier, before), (later, after)] = pair else { return None };
            let were_ahead_bytes = std::mem::replace(&mut ahead_bytes, later.ahead_bytes(earlier));
            let mut observation = later.since(earlier, were_ahead_bytes, restart_gap_ms)?;
            // Only what can decide is looked for: quiet windows are kept as evidence, and need no names.
            let strongest = observation.active(&policy, interval_ms).first().copied();
            // A row of a restarted agent began at zero.
            let nothing = wire::Heartbeat::default();
            let before = if observation.restart_gap_ms.is_some() { &nothing } else { *before };
            observation.deciding_row = strongest.and_then(|signal| rows::deciding(signal, before, after));
            Some(observation)
        });
        let observations = observations.collect();
        Self { now_unix_ms, policy, node, observations }
    }

    /// The same with what is known of who speaks for the node.
    #[must_use]
    pub fn spoken_for_by(mut self, identity: Option<Identity>) -> Self {
        if let Some(node) = &mut self.node {
            node.identity = identity;
        }
        self
    }
}
