//! Work that waits: nothing of it is above a threshold, and something outside will wake it.
//!
//! An open run, an open batch step, peers of somebody's process, a port of it that was called, a process that sleeps until a timer wakes it and
//! a timer or crontab of somebody's are read off a heartbeat. What belongs to housekeeping or to the agent never waits; a class that could not be read may be anybody's, and does. A session waits by
//! [`super::Terminals`]. Eight of each kind are kept: one is enough for a verdict, and more do not help a person.

use super::watched;
use heartbeat::wire::{self, CapabilityStatus, Class};
use serde::{Deserialize, Serialize};
use std::{cmp::Reverse, collections::BTreeSet};

const MAX_OF_A_KIND: usize = 8;
/// What the rules call Slurm's jobs; of containers inside other jobs the wire names the job apart.
const SLURM: &str = "slurm";
/// What the agent calls containers of Kubernetes.
const KUBERNETES: &str = "kubernetes";
/// What controls a pod that should finish: a job of Kubernetes, and a workflow of Argo's.
const FINISHING: [&str; 2] = ["Job", "Workflow"];
/// What the agent calls the engine of a plain script.
const SCRIPT: &str = "script";

/// How peers talk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// Connections.
    Tcp,
    /// Datagrams.
    Udp,
    /// One that this version does not know.
    Other,
}

/// What work waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wait {
    /// A run of a pipeline that has not ended.
    Run {
        /// What drives it, for example `snakemake`.
        engine: String,
        /// The pipeline's name; empty if the command line does not tell it.
        pipeline: String,
        /// Tasks that began and have not ended.
        open_tasks: u64,
    },
    /// A batch job that has processes on this machine.
    BatchStep {
        /// Whose job, for example `slurm`.
        kind: String,
        /// Its id there.
        id: String,
    },
    /// Peers on other machines that data was exchanged with.
    Peers {
        /// How they talk.
        protocol: Protocol,
        /// This machine's port where peers connect to it, theirs where it connects to them.
        port: u32,
        /// Whether this machine opened the connections.
        outbound: bool,
        /// Executable name of the process; empty if the kernel holds the port or it could not be read.
        command: String,
        /// Peers now; 0 for a bound port that does not tell them.
        peers: u32,
        /// When data was last exchanged, in milliseconds since 1970-01-01 UTC.
        last_exchange_unix_ms: i64,
    },
    /// A port of somebody's program that was called from another machine lately, and nobody need be connected any more.
    InboundPeer {
        /// The TCP port; `None` where it was called before the agent's last start, which forgets which one it was.
        port: Option<u32>,
        /// Executable name of the process that holds it; empty if it could not be read.
        command: String,
        /// When the newest connection was first seen, in milliseconds since 1970-01-01 UTC.
        last_new_peer_unix_ms: i64,
    },
    /// Timers and crontabs that the distribution does not ship: in half an hour none of them may have been due.
    Schedule {
        /// Enabled timers of systemd; `None` if they could not be listed.
        timers: Option<u32>,
        /// Tables and jobs of cron and anacron; `None` if they could not be listed, and there may be some.
        crontabs: Option<u32>,
        /// When the first of the timers elapses next, in milliseconds since 1970-01-01 UTC; `None` if none will, or nobody knows.
        next_timer_unix_ms: Option<i64>,
    },
    /// Somebody's process that sleeps until a timer wakes it, and has slept so for long.
    Sleeper {
        /// Key of its row.
        workload: String,
        /// Executable name of the row's busiest process; empty if it could not be read.
        command: String,
        /// For how long, in milliseconds.
        slept_ms: i64,
    },
    /// A session with a terminal that took input lately.
    Session {
        /// Sessions with a terminal.
        sessions: u32,
        /// When one of them last took input, in milliseconds since 1970-01-01 UTC.
        last_input_unix_ms: i64,
    },
}

fn is_somebodys(class: i32) -> bool {
    !matches!(Class::try_from(class), Ok(Class::Housekeeping | Class::Self_))
}

/// What a heartbeat shows to wait, whenever peers last exchanged data or called; without sessions.
pub(super) fn waits(heartbeat: &wire::Heartbeat) -> Vec<Wait> {
    let open = open_runs(heartbeat).collect::<Vec<_>>();
    let runs = open.iter().map(|run| Wait::Run {
        engine: run.engine.clone(),
        pipeline: run.pipeline.clone(),
        open_tasks: open_tasks(run),
    });
    // A job that shows as a run is named once.
    let is_named = |(kind, id): &(&str, &str)| open.iter().any(|run| run.id == format!("{kind}:{id}"));
    let jobs: BTreeSet<_> = open_jobs(heartbeat).filter(|job| !is_named(job)).collect();
    let jobs = jobs.into_iter().map(|(kind, id)| Wait::BatchStep { kind: kind.to_owned(), id: id.to_owned() });
    let mut peers: Vec<_> = exchanges(heartbeat).collect();
    peers.sort_by_key(|(last_exchange_unix_ms, _)| Reverse(*last_exchange_unix_ms));
    let peers = peers.into_iter().map(|(last_exchange_unix_ms, group)| Wait::Peers {
        protocol: match wire::Protocol::try_from(group.protocol) {
            Ok(wire::Protocol::Tcp) => Protocol::Tcp,
            Ok(wire::Protocol::Udp) => Protocol::Udp,
            _ => Protocol::Other,
        },
        port: group.port,
        outbound: group.outbound,
        command: group.command.clone(),
        peers: group.peers,
        last_exchange_unix_ms,
    });
    let mut called: Vec<_> = heartbeat.inbound_peers.iter().flat_map(called).collect();
    called.sort_by_key(|(last_new_peer_unix_ms, _)| Reverse(*last_new_peer_unix_ms));
    let called = called.into_iter().map(|(last_new_peer_unix_ms, listener)| Wait::InboundPeer {
        port: Some(listener.port),
        command: listener.command.clone(),
        last_new_peer_unix_ms,
    });
    let mut sleepers: Vec<_> = sleepers(heartbeat).collect();
    sleepers.sort_by_key(|(slept_ms, _)| Reverse(*slept_ms));
    let sleepers = sleepers.into_iter().map(|(slept_ms, row)| Wait::Sleeper {
        workload: row.key.clone(),
        command: row.top_command.clone(),
        slept_ms,
    });
    let waits = runs.take(MAX_OF_A_KIND).chain(jobs.take(MAX_OF_A_KIND)).chain(peers.take(MAX_OF_A_KIND));
    waits.chain(called.take(MAX_OF_A_KIND)).chain(sleepers.take(MAX_OF_A_KIND)).chain(schedule(heartbeat)).collect()
}

/// Somebody's rows with a thread that sleeps until a timer wakes it, and for how many milliseconds already. For how many more nobody knows.
fn sleepers(heartbeat: &wire::Heartbeat) -> impl Iterator<Item = (i64, &wire::WorkloadActivity)> {
    let rows = heartbeat.workloads.iter().filter(|row| is_somebodys(row.class));
    rows.filter_map(|row| Some((i64::try_from(row.timed_wait_ns? / 1_000_000).unwrap_or(i64::MAX), row)))
}

/// Somebody's ports that were called.
fn called(peers: &wire::InboundPeers) -> impl Iterator<Item = (i64, &wire::Listener)> {
    let ports = peers.listeners.iter().filter(|listener| watched::is_somebodys(listener));
    ports.filter_map(|listener| Some((listener.last_new_peer_unix_ms?, listener)))
}

/// What somebody has set up to run at its time, and what could not be listed, which may be somebody's. An agent that has given its rights away lists no user's
/// crontabs any more, and says by a capability whether there may be some.
fn schedule(heartbeat: &wire::Heartbeat) -> Option<Wait> {
    let capabilities = heartbeat.coverage.as_ref().map_or(&[][..], |coverage| &coverage.capabilities);
    let said = capabilities.iter().find(|one| one.name == "crontabs");
    let nobody_has_one = said.map(|one| one.status == i32::from(CapabilityStatus::Ok));
    // An agent that never claimed to look for them is not asked.
    let (timers, listed, next_timer_unix_ms) = match heartbeat.schedules {
        Some(all) => (all.other_timers, all.other_crontabs, all.next_other_timer_unix_ms),
        None if nobody_has_one.is_some() => (Some(0), None, None),
        None => return None,
    };
    let crontabs = match (listed.filter(|count| *count > 0), nobody_has_one) {
        (Some(count), _) => Some(count),
        (None, Some(true)) => Some(0),
        (None, Some(false)) => None,
        (None, None) => listed,
    };
    let is_none = timers == Some(0) && crontabs == Some(0);
    (!is_none).then_some(Wait::Schedule { timers, crontabs, next_timer_unix_ms })
}

/// Tasks of a run that began and have not ended.
fn open_tasks(run: &wire::Run) -> u64 {
    run.tasks_started.saturating_sub(run.tasks_ended)
}

/// Whether a run has nothing that still runs but its engine. What a script started before the agent did is among its processes, and not among the
/// tasks that were seen to begin; where the processes are not told, there may be some.
fn is_alone(run: &wire::Run) -> bool {
    open_tasks(run) == 0 && run.activity.as_ref().is_some_and(|activity| activity.live_processes <= 1)
}

/// A script that has started nothing that still runs is a daemon that was written as one: what it waits for must be seen otherwise.
fn open_runs(heartbeat: &wire::Heartbeat) -> impl Iterator<Item = &wire::Run> {
    heartbeat.runs.iter().filter(|run| {
        if run.engine == SCRIPT && is_alone(run) {
            return false;
        }
        let class = run.activity.as_ref().map_or(Class::Workload.into(), |activity| activity.class);
        run.ended_boottime_ns.is_none() && is_somebodys(class)
    })
}

/// Tasks that live though their run has ended. What a script has left behind may be a server, which it started for good.
pub(super) fn orphaned_tasks(heartbeat: &wire::Heartbeat) -> impl Iterator<Item = (&wire::Run, &wire::Task)> {
    let lives = |activity: &Option<wire::WorkloadActivity>| {
        activity.as_ref().is_some_and(|activity| activity.live_processes > 0 && is_somebodys(activity.class))
    };
    let ended = heartbeat.runs.iter().filter(|run| run.engine != SCRIPT && run.ended_boottime_ns.is_some());
    ended.flat_map(move |run| run.tasks.iter().filter(move |task| lives(&task.activity)).map(move |task| (run, task)))
}

fn live_rows(heartbeat: &wire::Heartbeat) -> impl Iterator<Item = &wire::WorkloadActivity> {
    heartbeat.workloads.iter().filter(|row| row.live_processes > 0 && is_somebodys(row.class))
}

/// The live containers of pods that should finish.
pub(super) fn containers_of_jobs(heartbeat: &wire::Heartbeat) -> impl Iterator<Item = &wire::Container> {
    let told = live_rows(heartbeat).filter_map(|row| row.name.as_ref()?.container.as_ref());
    told.filter(|container| {
        let owner = container.owner.split_once('/').map(|(kind, _)| kind);
        !container.pod.is_empty() && owner.is_some_and(|kind| FINISHING.contains(&kind))
    })
}

/// Kind and id of each batch job that has a process.
fn open_jobs(heartbeat: &wire::Heartbeat) -> impl Iterator<Item = (&str, &str)> {
    let named = live_rows(heartbeat).filter_map(|row| {
        let job = row.batch_job.as_ref().or_else(|| row.name.as_ref().filter(|name| name.kind == SLURM))?;
        Some((job.kind.as_str(), job.id.as_str()))
    });
    named.chain(containers_of_jobs(heartbeat).map(|container| (KUBERNETES, container.pod.as_str())))
}

fn exchanges(heartbeat: &wire::Heartbeat) -> impl Iterator<Item = (i64, &wire::PeerGroup)> {
    let groups = heartbeat.peers.iter().flat_map(|peers| &peers.groups);
    groups.filter(|group| is_somebodys(group.class)).filter_map(|group| Some((group.last_exchange_unix_ms?, group)))
}

/// Whether groups of peers that are not listed may have exchanged data: those that did last are listed first.
pub(super) fn hides_exchanges(heartbeat: &wire::Heartbeat) -> bool {
    heartbeat.peers.as_ref().is_some_and(|peers| {
        peers.groups_not_listed > 0 && peers.groups.last().is_none_or(|group| group.last_exchange_unix_ms.is_some())
    })
}

/// Whether ports that are not listed may have been called: those with peers, and then those that were called last, are listed first.
pub(super) fn hides_calls(heartbeat: &wire::Heartbeat) -> bool {
    let was_called = |port: &wire::Listener| port.outside_peers > 0 || port.last_new_peer_unix_ms.is_some();
    heartbeat
        .inbound_peers
        .as_ref()
        .is_some_and(|peers| peers.listeners_not_listed > 0 && peers.listeners.last().is_none_or(was_called))
}

/// What one heartbeat shows of it, to tell whether anything waited between two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Waiting {
    is_open: bool,
    last_exchange_unix_ms: Option<i64>,
    /// The longest that somebody has slept by a timer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    slept_ms: Option<i64>,
}

impl Waiting {
    pub(super) fn of(heartbeat: &wire::Heartbeat) -> Self {
        Self {
            is_open: open_runs(heartbeat).next().is_some() || open_jobs(heartbeat).next().is_some(),
            last_exchange_unix_ms: exchanges(heartbeat).map(|(at, _)| at).max(),
            slept_ms: sleepers(heartbeat).map(|(slept_ms, _)| slept_ms).max(),
        }
    }

    pub(super) fn slept_ms(self) -> Option<i64> {
        self.slept_ms
    }

    /// Whether a run or a batch step was open at either end, or data was exchanged with a peer after the begin.
    pub(super) fn waited_since(self, earlier: Self, start_unix_ms: i64) -> bool {
        // The begin is rounded: an exchange that the earlier heartbeat told of may seem to lie behind it.
        let exchanged = self.last_exchange_unix_ms > earlier.last_exchange_unix_ms
            && self.last_exchange_unix_ms.is_some_and(|at| at > start_unix_ms);
        self.is_open || earlier.is_open || exchanged
    }
}
