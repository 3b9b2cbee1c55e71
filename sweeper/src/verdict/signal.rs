//! What happened between two heartbeats, signal by signal.
//!
//! Counters are cumulative, so a lost heartbeat makes one longer observation and hides nothing. Two heartbeats of different boots, or
//! of different rules, cannot be subtracted: the time between them is not observed. Where the agent was restarted in between, its rows
//! began at zero, and of the time without an agent only the host's own counters tell: see [`Counters::begun_anew`].

use super::{
    Contradiction, Observation, housekeeping::Housekeeping, network::Network, wait::Waiting, watched::Watched,
};
use heartbeat::{
    BootId,
    wire::{self, Class, Source},
};
use serde::{Deserialize, Serialize};

/// One counter that can show work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    /// CPU time of workloads.
    WorkloadCpu,
    /// Programs and processes that workloads started.
    #[serde(alias = "workload_births")]
    WorkloadStarts,
    /// Storage traffic of workloads.
    WorkloadDisk,
    /// Network traffic: of workloads where it is attributed exactly, else of the host.
    Network,
    /// The out-of-memory killer ended something.
    OomKill,
    /// Work of the GPUs.
    Gpu,
    /// A person's input at a terminal.
    Person,
    /// Somebody on another machine who called for the first time.
    #[serde(alias = "callers")]
    InboundPeers,
    /// Data exchanged with peers on other machines. It makes nothing active: see [`super::Wait`].
    Peers,
    /// Runs of pipelines that are open. Likewise.
    Runs,
}

/// The cumulative counters of one heartbeat that verdicts look at. `None` is *not measured*.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    boot_id: BootId,
    /// Version and digest: rows of other rules may mean something else.
    rules: [String; 2],
    counters_since_boottime_ns: u64,
    start_boottime_ns: u64,
    end_boottime_ns: u64,
    end_unix_ms: i64,
    #[serde(with = "as_number")]
    source: Source,
    /// CPU time by class; `None` if any row of the class lacks it.
    workload_cpu_ns: Option<u64>,
    attributed_cpu_ns: Option<u64>,
    host_cpu_busy_ns: Option<u64>,
    workload_starts: Option<u64>,
    attributed_forks: Option<u64>,
    tasks_created: Option<u64>,
    workload_disk_bytes: Option<u64>,
    network: Network,
    oom_kills: Option<u64>,
    /// `None` also where no kernel thread is seen: every Linux has some.
    kernel_cpu_ns: Option<u64>,
    housekeeping: Housekeeping,
    waiting: Waiting,
    attributed_disk_bytes: Option<u64>,
    host_disk_bytes: Option<u64>,
    watched: Watched,
    /// Events lost. Those of the spool are no loss (a heartbeat that was lost on its way makes a longer observation), nor are
    /// details: a name or an attribution, whose sums are counted elsewhere.
    drops: u64,
}

/// Where counters come from, by its number on the wire.
mod as_number {
    use super::Source;
    use serde::{Deserialize as _, Deserializer, Serializer};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde has it")]
    pub(super) fn serialize<S: Serializer>(source: &Source, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i32(i32::from(*source))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Source, D::Error> {
        Ok(Source::try_from(i32::deserialize(deserializer)?).unwrap_or(Source::Unspecified))
    }
}

/// Adds up one counter over the rows of one class; absent in one row is absent in the sum.
pub(crate) fn sum<'a>(
    rows: impl Iterator<Item = &'a wire::WorkloadActivity>,
    counter: impl Fn(&wire::WorkloadActivity) -> Option<u64>,
) -> Option<u64> {
    rows.map(counter).try_fold(0_u64, |total, value| Some(total.saturating_add(value?)))
}

/// A row of a class that this version does not know is somebody's work until proven otherwise.
pub(crate) fn is_workload(row: &&wire::WorkloadActivity) -> bool {
    !matches!(Class::try_from(row.class), Ok(Class::Housekeeping | Class::Kernel | Class::Self_))
}

/// Whether what was dropped could have shown activity.
pub(super) fn is_loss(name: &str) -> bool {
    !name.starts_with("spool") && !name.starts_with("detail_")
}

pub(super) fn add(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    Some(a?.saturating_add(b?))
}

impl Counters {
    /// Reads the counters of a heartbeat. `None` if it lacks a part that a checked envelope always has.
    #[must_use]
    pub fn of(boot_id: BootId, heartbeat: &wire::Heartbeat) -> Option<Self> {
        let interval = heartbeat.interval.as_ref()?;
        let counters = heartbeat.counters.as_ref()?;
        let coverage = heartbeat.coverage.as_ref()?;
        let rules = heartbeat.host.as_ref();
        let rules =
            rules.map_or_else(Default::default, |host| [&host.rules_version, &host.rules_digest].map(String::clone));
        let workloads = || heartbeat.workloads.iter().filter(is_workload);
        let kernel = || heartbeat.workloads.iter().filter(|row| row.class == i32::from(Class::Kernel));
        let disk = |row: &wire::WorkloadActivity| add(row.disk_read_bytes, row.disk_written_bytes);
        let source = Source::try_from(coverage.source).unwrap_or(Source::Unspecified);
        Some(Self {
            boot_id,
            rules,
            counters_since_boottime_ns: interval.counters_since_boottime_ns,
            start_boottime_ns: interval.start_boottime_ns,
            end_boottime_ns: interval.end_boottime_ns,
            end_unix_ms: interval.end_unix_ms,
            source,
            workload_cpu_ns: sum(workloads(), |row| row.cpu_ns),
            attributed_cpu_ns: sum(heartbeat.workloads.iter(), |row| row.cpu_ns),
            host_cpu_busy_ns: counters.cpu_busy_ns,
            workload_starts: sum(workloads(), |row| match source {
                // It does not see that a process starts another program: forks alone tell who is at work.
                Source::Taskstats => row.forks,
                _ => add(row.forks, row.execs),
            }),
            attributed_forks: sum(heartbeat.workloads.iter(), |row| row.forks),
            tasks_created: counters.tasks_created,
            workload_disk_bytes: sum(workloads(), disk),
            network: Network::of(heartbeat),
            oom_kills: counters.oom_kills,
            kernel_cpu_ns: kernel().next().and_then(|_| sum(kernel(), |row| row.cpu_ns)),
            housekeeping: Housekeeping::of(heartbeat),
            waiting: Waiting::of(heartbeat),
            // What a kernel thread reads and writes it may do for somebody elsewhere: it explains nothing.
            attributed_disk_bytes: sum(
                heartbeat.workloads.iter().filter(|row| row.class != i32::from(Class::Kernel)),
                disk,
            ),
            host_disk_bytes: add(counters.disk_read_bytes, counters.disk_written_bytes),
            watched: Watched::of(heartbeat),
            drops: coverage.drops.iter().filter(|drop| is_loss(&drop.name)).map(|drop| drop.count).sum(),
        })
    }

    /// The same without the names of rows, which nothing is decided by.
    pub(super) fn without_names(self) -> Self {
        Self { housekeeping: self.housekeeping.without_names(), ..self }
    }

    /// The end of its interval, in nanoseconds since the boot.
    pub(super) fn end_boottime_ns(&self) -> u64 {
        self.end_boottime_ns
    }

    /// What this heartbeat of an agent would have counted when a later agent's rows began, in its stead: nothing. The host's own
    /// counters go on, so that what the host did while no agent ran has no owner, and is held to the cross-checks' thresholds. Processes that
    /// began and ended meanwhile are not counted by anybody: that is what a restart costs.
    fn begun_anew(&self) -> Self {
        let zero = Some(0);
        Self {
            workload_cpu_ns: zero,
            attributed_cpu_ns: zero,
            workload_starts: zero,
            attributed_forks: zero,
            workload_disk_bytes: zero,
            network: self.network.begun_anew(),
            kernel_cpu_ns: zero,
            housekeeping: Housekeeping::default(),
            attributed_disk_bytes: zero,
            drops: 0,
            ..self.clone()
        }
    }

    /// Network bytes that rows had and no interface had moved yet when this heartbeat ended, `earlier` being the one before: what the next observation is told.
    #[must_use]
    pub fn ahead_bytes(&self, earlier: &Self) -> u64 {
        let is_of_one_agent = self.boot_id == earlier.boot_id
            && self.source == earlier.source
            && self.counters_since_boottime_ns == earlier.counters_since_boottime_ns;
        if is_of_one_agent { self.network.since(&earlier.network).ahead_bytes } else { 0 }
    }

    /// What happened since `earlier`, or `None` if the two cannot be subtracted. `ahead_bytes` were on their way at the end of `earlier`, and
    /// `restart_gap_ms` is the longest time without an agent that the host's own counters may vouch for.
    #[must_use]
    pub fn since(&self, earlier: &Self, ahead_bytes: u64, restart_gap_ms: i64) -> Option<Observation> {
        if self.boot_id != earlier.boot_id
            || self.source != earlier.source
            || self.end_boottime_ns <= earlier.end_boottime_ns
        {
            return None;
        }
        if self.counters_since_boottime_ns == earlier.counters_since_boottime_ns {
            return self.difference(earlier, ahead_bytes);
        }
        // Elsewhere all CPU time without an owner is taken for work, and to start the agent takes some.
        if self.source != Source::Ebpf {
            return None;
        }
        // Counters that began within the earlier heartbeat's time count some of it twice. Those that began at its very end are of an agent that took new
        // rules over, which may bear the same version.
        let gap_ns =
            self.counters_since_boottime_ns.checked_sub(earlier.end_boottime_ns).filter(|gap_ns| *gap_ns > 0)?;
        let gap_ms = i64::try_from(gap_ns / 1_000_000).ok()?;
        // What has no digest is of an agent that told none: its rules may be any.
        if gap_ms > restart_gap_ms || self.rules != earlier.rules || self.rules.iter().any(String::is_empty) {
            return None;
        }
        let difference = self.difference(&earlier.begun_anew(), 0)?;
        Some(Observation { restart_gap_ms: Some(gap_ms), ..difference })
    }

    fn difference(&self, earlier: &Self, ahead_bytes: u64) -> Option<Observation> {
        // A cumulative counter that runs backwards contradicts itself: not measured.
        let delta = |now: Option<u64>, then: Option<u64>| now?.checked_sub(then?);
        let mut workload_cpu_ns = delta(self.workload_cpu_ns, earlier.workload_cpu_ns);
        let mut unattributed_starts = None;
        let beyond = |all: Option<u64>, owned: Option<u64>| Some(all?.saturating_sub(owned?));
        let mut unattributed_cpu_ns = beyond(
            delta(self.host_cpu_busy_ns, earlier.host_cpu_busy_ns),
            delta(self.attributed_cpu_ns, earlier.attributed_cpu_ns),
        );
        if self.source != Source::Ebpf {
            // Whoever died between two samples left no record: all CPU time without an owner is taken for work.
            workload_cpu_ns = add(workload_cpu_ns, unattributed_cpu_ns.take());
            // Only the sources that count process starts themselves may say that none was anybody else's.
            let counts_starts =
                matches!(self.source, Source::Taskstats | Source::Tracepoints | Source::TracepointsTaskstats);
            if !counts_starts || self.workload_starts.is_none() || earlier.workload_starts.is_none() {
                let created = delta(self.tasks_created, earlier.tasks_created);
                let seen = delta(self.attributed_forks, earlier.attributed_forks);
                unattributed_starts = created.map(|created| created.saturating_sub(seen.unwrap_or(0)));
            }
        }
        let network = self.network.since(&earlier.network);
        let span_ms = i64::try_from((self.end_boottime_ns - earlier.end_boottime_ns) / 1_000_000).ok()?;
        // The wall clock may have been set in between; the boot clock gives the true length.
        let start_unix_ms = self.end_unix_ms.saturating_sub(span_ms);
        let follows = self.start_boottime_ns == earlier.end_boottime_ns;
        let watched = self.watched.since(&earlier.watched, start_unix_ms, follows);
        let oom_kills = delta(self.oom_kills, earlier.oom_kills);
        let workload_disk_bytes = delta(self.workload_disk_bytes, earlier.workload_disk_bytes);
        let kernel_cpu_ns = delta(self.kernel_cpu_ns, earlier.kernel_cpu_ns);
        let unattributed_disk_bytes = beyond(
            delta(self.host_disk_bytes, earlier.host_disk_bytes),
            delta(self.attributed_disk_bytes, earlier.attributed_disk_bytes),
        );
        let housekeeping_cpu_ns = self.housekeeping.cpu_ns(&earlier.housekeeping);
        let mut blind = watched.not_measured;
        if oom_kills.is_none() {
            blind.push(Signal::OomKill);
        }
        // Where the signal itself is missing, it names the reason for both.
        let is_missing = |signal: Option<u64>, check: Option<u64>| signal.is_some() && check.is_none();
        let is_ebpf = self.source == Source::Ebpf;
        let unchecked = [
            (Contradiction::UnattributedCpu, is_ebpf && is_missing(workload_cpu_ns, unattributed_cpu_ns)),
            (Contradiction::KernelCpu, kernel_cpu_ns.is_none()),
            (Contradiction::UnattributedDisk, is_missing(workload_disk_bytes, unattributed_disk_bytes)),
            (
                Contradiction::UnattributedNetwork,
                network.is_exact && is_missing(network.bytes, network.unattributed_bytes),
            ),
            (Contradiction::Housekeeping, housekeeping_cpu_ns.is_none()),
        ];
        Some(Observation {
            start_unix_ms,
            end_unix_ms: self.end_unix_ms,
            workload_cpu_ns,
            workload_starts: delta(self.workload_starts, earlier.workload_starts),
            unattributed_starts,
            workload_disk_bytes,
            network_bytes: network.bytes,
            oom_kills,
            gpu_busy_ns: watched.gpu_busy_ns,
            last_input_unix_ms: watched.last_input_unix_ms,
            new_inbound_peers: watched.new_inbound_peers,
            blind,
            lost_events: self.drops.saturating_sub(earlier.drops),
            unattributed_cpu_ns,
            kernel_cpu_ns,
            unattributed_disk_bytes,
            unattributed_network_bytes: network.unattributed_bytes.map(|bytes| bytes.saturating_sub(ahead_bytes)),
            housekeeping_cpu_ns,
            busiest_housekeeping: self.housekeeping.busiest(&earlier.housekeeping, span_ms),
            unchecked: unchecked.into_iter().filter_map(|(what, missing)| missing.then_some(what)).collect(),
            deciding_row: None,
            restart_gap_ms: None,
            waited: self.waiting.waited_since(earlier.waiting, start_unix_ms),
            slept_ms: self.waiting.slept_ms(),
        })
    }
}
