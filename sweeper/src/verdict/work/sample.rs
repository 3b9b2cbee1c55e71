//! What one heartbeat says of a piece of work, and of what it may wait for.

use super::{super::window::Gpu, Beside, Contract, Progress, contract::RunTask};
use crate::verdict::{
    signal::{add, is_loss, is_workload},
    watched::is_blind,
};
use heartbeat::{
    BootId,
    envelope::{MAX_RUNS, MAX_TASKS},
    wire::{self, CapabilityStatus, Source},
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What the rules and the agent call workloads that a container engine started.
const CONTAINERS: [&str; 6] = ["docker", "containerd", "podman", "cri-o", ECS, "kubernetes"];
const ECS: &str = "ecs";
/// The key of the row of all that fit no row of their own.
const OVERFLOW: &str = "overflow";

/// What one heartbeat says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkSample {
    /// The boot that it speaks of.
    pub boot_id: BootId,
    /// Its number within that boot.
    pub sequence: u64,
    /// Length of the agent's interval, in milliseconds.
    pub interval_ms: i64,
    /// Its end, in milliseconds since 1970-01-01 UTC.
    pub end_unix_ms: i64,
    /// Its end, in nanoseconds since the boot.
    pub end_boottime_ns: u64,
    /// Since when the agent counts, in nanoseconds since the boot.
    pub counters_since_boottime_ns: u64,
    /// Whether the kernel's own counters of each task were read (eBPF): other sources sample, and miss short runs.
    pub is_exact: bool,
    /// Kernel events that were lost so far.
    pub lost_events: u64,
    /// The work itself; none if the heartbeat does not show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<WorkNow>,
    /// Of a run as a whole: how its tasks ended so far; none if the heartbeat does not show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunNow>,
    /// How the run of an orphaned task ended; none if the heartbeat does not show that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_end: Option<RunEnd>,
    /// What is known of the GPUs.
    pub gpu: Gpu,
    /// Time in which the GPUs worked, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_busy_ns: Option<u64>,
    /// Bytes that RDMA adapters moved past the sockets; none where there is no adapter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rdma_bytes: Option<u64>,
    /// Whether there are RDMA adapters or interfaces that could not be read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub network_is_unread: bool,
    /// Whether there may be sessions that could not be read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub people_are_unread: bool,
    /// Whether there may be containers that are not told.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub containers_are_unread: bool,
    /// Whether there may be runs and tasks that are not listed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub runs_are_unread: bool,
    /// Connections with other machines that the work may hold; none while it is not known whose each connection is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peers: Option<u32>,
    /// CPU time of what runs elsewhere on the node and may be what the work waits for, by name, in nanoseconds.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub others: BTreeMap<String, Option<u64>>,
    /// When somebody last typed at a terminal, in milliseconds since 1970-01-01 UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_input_unix_ms: Option<i64>,
    /// What is asked besides before a job of AWS Batch is ended; none of any other work, and where a version before read the heartbeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<Beside>,
}

/// How the tasks of a run ended so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunNow {
    /// Tasks that ended.
    pub ended: u64,
    /// Of these, those that failed.
    pub failed: u64,
    /// The latest failure that is still listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Failure>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEnd {
    /// When, in nanoseconds since the boot.
    pub ended_boottime_ns: u64,
    /// How its first process ended, as wait(2) gives it; none if that was not seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_status: Option<u32>,
}

/// One task that failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The task's name.
    pub name: String,
    /// How its first process ended, as wait(2) gives it.
    pub wait_status: u32,
    /// When, in nanoseconds since the boot.
    pub ended_boottime_ns: u64,
}

impl RunNow {
    fn of(heartbeat: &wire::Heartbeat, contract: &Contract) -> Option<Self> {
        let Contract::Run { run: id, .. } = contract else { return None };
        let run = heartbeat.runs.iter().find(|run| run.id == *id && run.ended_boottime_ns.is_none())?;
        let failed = run.tasks.iter().filter_map(|task| {
            let (wait_status, ended_boottime_ns) = task.wait_status.zip(task.ended_boottime_ns)?;
            (wait_status != 0).then(|| Failure { name: task.name.clone(), wait_status, ended_boottime_ns })
        });
        Some(Self {
            ended: run.tasks_ended,
            failed: run.tasks_failed,
            last: failed.max_by_key(|failure| failure.ended_boottime_ns),
        })
    }
}

/// Counters and states of the work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkNow {
    /// Processes alive.
    pub live_processes: u32,
    /// Threads alive.
    pub live_threads: u32,
    /// Executable name of its busiest process.
    pub top_command: String,
    /// What it has done since its agent counts; what was not measured is not there.
    pub counters: BTreeMap<Progress, u64>,
    /// How often a task of it has waited for something; none if that was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<u64>,
    /// States of its threads; none where they are not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub states: Option<States>,
    /// How long none of its tasks has run, in nanoseconds; none where that is not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_run_ns: Option<u64>,
}

/// States of threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct States {
    /// On a CPU, or waiting for one.
    pub running: u32,
    /// Waiting for something, and a signal can wake them.
    pub sleeping: u32,
    /// Waiting for something, mostly storage, and no signal wakes them.
    pub uninterruptible: u32,
    /// Stopped by a signal or a debugger.
    pub stopped: u32,
    /// Held by a cgroup's freezer.
    pub frozen: u32,
}

impl WorkSample {
    /// What a heartbeat says of this work; none if it lacks a part that a checked envelope always has.
    #[must_use]
    pub fn of(boot_id: BootId, heartbeat: &wire::Heartbeat, contract: &Contract) -> Option<Self> {
        let (interval, host) = (heartbeat.interval.as_ref()?, heartbeat.host.as_ref()?);
        let (coverage, counters) = (heartbeat.coverage.as_ref()?, heartbeat.counters.as_ref()?);
        let is_unread = |names: &[&str]| names.iter().any(|name| is_blind(&coverage.capabilities, name));
        let status = |name: &str| coverage.capabilities.iter().find(|one| one.name == name).map(|one| one.status);
        let is_fine =
            |status: i32| [CapabilityStatus::Ok, CapabilityStatus::NotApplicable].map(i32::from).contains(&status);
        let gpus = heartbeat.gpus.iter().map(|gpu| gpu.busy_ns);
        let found = Found::of(heartbeat, contract);
        Some(Self {
            boot_id,
            sequence: heartbeat.sequence,
            interval_ms: i64::from(host.interval_ms).max(1),
            end_unix_ms: interval.end_unix_ms,
            end_boottime_ns: interval.end_boottime_ns,
            counters_since_boottime_ns: interval.counters_since_boottime_ns,
            is_exact: coverage.source == i32::from(Source::Ebpf),
            lost_events: coverage.drops.iter().filter(|drop| is_loss(&drop.name)).map(|drop| drop.count).sum(),
            work: found.as_ref().map(Found::now),
            run: RunNow::of(heartbeat, contract),
            run_end: found.as_ref().and_then(Found::run_end),
            containers_are_unread: is_unread(&["containers"])
                || heartbeat.workloads.iter().any(|row| row.key == OVERFLOW && row.live_processes > 0),
            runs_are_unread: is_unread(&["pipelines"])
                || heartbeat.runs.len() >= MAX_RUNS
                || heartbeat.runs.iter().map(|run| run.tasks.len()).sum::<usize>() >= MAX_TASKS,
            gpu: match (host.gpu_present, status("gpu").is_some_and(is_fine)) {
                _ if is_unread(&["accelerators"]) => Gpu::NotMeasured,
                (false, _) => Gpu::Absent,
                (true, true) => Gpu::Measured,
                (true, false) => Gpu::NotMeasured,
            },
            gpu_busy_ns: gpus.reduce(add).flatten(),
            rdma_bytes: add(counters.rdma_received_bytes, counters.rdma_sent_bytes),
            network_is_unread: is_unread(&["rdma", "interfaces"]),
            people_are_unread: is_unread(&["interactive_sessions"]),
            peers: found.as_ref().and_then(|found| found.peers(heartbeat)),
            others: found.as_ref().map(|found| found.others(heartbeat)).unwrap_or_default(),
            last_input_unix_ms: heartbeat.interactive_sessions.and_then(|sessions| sessions.last_input_unix_ms),
            beside: found
                .as_ref()
                .filter(|_| matches!(contract, Contract::BatchJob { .. }))
                .map(|found| Beside::of(heartbeat, found.rows())),
        })
    }
}

/// The work's own part of a heartbeat.
enum Found<'a> {
    Rows(Vec<&'a wire::WorkloadActivity>),
    Task { run: &'a wire::Run, task: &'a wire::Task, activity: &'a wire::WorkloadActivity },
}

impl<'a> Found<'a> {
    fn of(heartbeat: &'a wire::Heartbeat, contract: &Contract) -> Option<Self> {
        match contract {
            Contract::BatchJob { containers } => {
                // A container of it that has ended counts on: it may have run within the window.
                let is_its = |row: &&wire::WorkloadActivity| {
                    let names = row.name.iter().flat_map(|name| name.id.split('/'));
                    is_workload(row) && names.into_iter().any(|part| containers.contains(part))
                };
                let rows: Vec<_> = heartbeat.workloads.iter().filter(is_its).collect();
                rows.iter().any(|row| row.live_threads > 0).then_some(Self::Rows(rows))
            }
            Contract::Pod { namespace, pod, .. } => {
                let is_its = |row: &&wire::WorkloadActivity| {
                    let told = row.name.as_ref().and_then(|name| name.container.as_ref());
                    let is_its = told.is_some_and(|told| told.namespace == *namespace && told.pod == *pod);
                    is_workload(row) && row.live_threads > 0 && is_its
                };
                let rows: Vec<_> = heartbeat.workloads.iter().filter(is_its).collect();
                (!rows.is_empty()).then_some(Self::Rows(rows))
            }
            Contract::RunTask(RunTask { run: id, task: number, .. }) => {
                let run = heartbeat.runs.iter().find(|run| run.id == *id && run.ended_boottime_ns.is_none())?;
                let task = run.tasks.iter().find(|task| task.id == *number && task.ended_boottime_ns.is_none())?;
                let activity = task.activity.as_ref().filter(|activity| activity.live_processes > 0)?;
                Some(Self::Task { run, task, activity })
            }
            Contract::OrphanedTask(RunTask { run: id, task: number, .. }) => {
                // What it did while its run lived counts, too.
                let run = heartbeat.runs.iter().find(|run| run.id == *id)?;
                let task = run.tasks.iter().find(|task| task.id == *number)?;
                let activity = task.activity.as_ref().filter(|activity| activity.live_processes > 0)?;
                Some(Self::Task { run, task, activity })
            }
            Contract::Run { .. } => None,
        }
    }

    fn run_end(&self) -> Option<RunEnd> {
        let Self::Task { run, .. } = self else { return None };
        Some(RunEnd { ended_boottime_ns: run.ended_boottime_ns?, wait_status: run.wait_status })
    }

    fn rows(&self) -> &[&'a wire::WorkloadActivity] {
        match self {
            Self::Rows(rows) => rows,
            Self::Task { activity, .. } => std::slice::from_ref(activity),
        }
    }

    /// Those of its rows that live now.
    fn living(&self) -> Vec<&'a wire::WorkloadActivity> {
        match self {
            Self::Rows(rows) => rows.iter().copied().filter(|row| row.live_threads > 0).collect(),
            Self::Task { activity, .. } => vec![activity],
        }
    }

    fn now(&self) -> WorkNow {
        let (rows, living) = (self.rows(), self.living());
        let sum =
            |of: fn(&wire::WorkloadActivity) -> u32| rows.iter().fold(0_u32, |sum, row| sum.saturating_add(of(row)));
        let counted = |what: &Progress| {
            let all = rows.iter().map(|row| what.of(row)).reduce(add).flatten();
            all.map(|all| (*what, all))
        };
        let states = living.iter().map(|row| row.states).try_fold(States::default(), |sum, states| {
            let states = states?;
            Some(States {
                running: sum.running.saturating_add(states.running),
                sleeping: sum.sleeping.saturating_add(states.sleeping),
                uninterruptible: sum.uninterruptible.saturating_add(states.uninterruptible),
                stopped: sum.stopped.saturating_add(states.stopped),
                frozen: sum.frozen.saturating_add(states.frozen),
            })
        });
        let not_run_ns = living.iter().map(|row| row.not_run_ns).reduce(|a, b| Some(a?.min(b?))).flatten();
        let busiest = living.iter().max_by_key(|row| row.cpu_ns);
        WorkNow {
            live_processes: sum(|row| row.live_processes),
            live_threads: sum(|row| row.live_threads),
            top_command: busiest.map(|row| row.top_command.clone()).unwrap_or_default(),
            counters: Progress::ALL.iter().filter_map(counted).collect(),
            waits: rows.iter().map(|row| row.voluntary_switches).reduce(add).flatten(),
            states,
            not_run_ns,
        }
    }

    /// Connections that the work may hold: of a task, all that are held where its run is, and in containers and transient units, which it may have started. None
    /// while that is not known.
    fn peers(&self, heartbeat: &wire::Heartbeat) -> Option<u32> {
        let sum = |rows: &[&wire::WorkloadActivity]| {
            rows.iter().map(|row| row.peers).try_fold(0_u32, |sum, peers| Some(sum.saturating_add(peers?)))
        };
        match self {
            Self::Rows(_) => sum(&self.living()),
            Self::Task { run, .. } => {
                let is_its = |name: &wire::WorkloadName| run.id == format!("{}:{}", name.kind, name.id);
                let is_near = |row: &&wire::WorkloadActivity| {
                    let is_own = [&row.name, &row.batch_job].into_iter().flatten().any(is_its);
                    // What has ended holds none: those of its cgroup are another class's by now, for example of a container that got its name late.
                    let lives = row.live_processes > 0 || row.live_threads > 0 || row.key == OVERFLOW;
                    is_within(&row.key, &run.workload) || is_own || (lives && may_be_started_for_others(row))
                };
                let rows: Vec<_> = heartbeat.workloads.iter().filter(is_near).collect();
                if rows.is_empty() { None } else { sum(&rows) }
            }
        }
    }

    /// What works elsewhere and may do so for this: containers and transient units, which a daemon runs for whoever asked it to (but not those of another ECS
    /// task or pod, which ECS or Kubernetes placed: who waits for one asks it over a connection), what fits no row of its own, and of a task the other tasks of its run, and runs that began within it.
    fn others(&self, heartbeat: &wire::Heartbeat) -> BTreeMap<String, Option<u64>> {
        let may_be_for_this = |row: &&wire::WorkloadActivity| {
            let is_own = self.rows().iter().any(|own| own.key == row.key);
            let is_placed = row.name.as_ref().is_some_and(|name| {
                name.kind == ECS || name.container.as_ref().is_some_and(|container| !container.pod.is_empty())
            });
            may_be_started_for_others(row) && !is_own && !(matches!(self, Self::Rows(_)) && is_placed)
        };
        let rows = heartbeat.workloads.iter().filter(may_be_for_this).map(|row| (row.key.clone(), row.cpu_ns));
        let mut others: BTreeMap<_, _> = rows.collect();
        let Self::Task { run, task, .. } = self else { return others };
        let cpu = |activity: Option<&wire::WorkloadActivity>| activity.and_then(|activity| activity.cpu_ns);
        let siblings = run.tasks.iter().filter(|one| one.id != task.id && one.ended_boottime_ns.is_none());
        others.extend(siblings.map(|one| (format!("task {}", one.id), cpu(one.activity.as_ref()))));
        let is_nested = |one: &&wire::Run| {
            let is_near = is_within(&one.workload, &run.workload) || is_within(&run.workload, &one.workload);
            one.id != run.id && one.started_boottime_ns >= task.started_boottime_ns && is_near
        };
        let nested = heartbeat.runs.iter().filter(is_nested);
        others.extend(nested.map(|one| (format!("run {}", one.id), cpu(one.activity.as_ref()))));
        others
    }
}

/// Whether a daemon may run it for somebody elsewhere: somebody's container, a transient unit (`systemd-run`), or what fits no row of its own, which may be any of
/// these.
fn may_be_started_for_others(row: &wire::WorkloadActivity) -> bool {
    let is_container = row.name.as_ref().is_some_and(|name| CONTAINERS.contains(&name.kind.as_str()));
    let is_transient = row.key.rsplit('/').next().is_some_and(|unit| unit.starts_with("run-"));
    (is_container || is_transient || row.key == OVERFLOW) && is_workload(&row)
}

/// Whether a cgroup is another one, or below it.
fn is_within(inner: &str, outer: &str) -> bool {
    inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || outer == "/")
}
