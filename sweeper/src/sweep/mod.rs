//! One sweep: inventory × heartbeats × prices → verdicts → findings → messages.
//!
//! The work is shared out by scope: each [`WorkUnit`] is claimed by one replica at a time, swept, and written in one transaction
//! that is refused once the lease has run out. A sweep takes no input but the world and keeps nothing in memory between two
//! runs, so it may run at any time, twice, or on two machines at once. It never calls anything that changes a machine.
//! What could not be read is named in the report and closes no finding.

mod apply;
mod batch;
mod bills;
mod catalogue;
mod discover;
mod google_prices;
mod groups;
mod hours;
mod lease;
mod leftovers;
mod overview;
mod prices;
mod protection;
mod provider_metrics;
mod queue;
mod report;
mod run;
mod schedule;
mod spot;
mod status;
mod timetable;
mod work;

pub use catalogue::CATALOGUES_KEPT;
pub use google_prices::ask as ask_google_prices;
pub use hours::WEEKS_KEPT;
pub use lease::owner;
pub(crate) use leftovers::{was_unattached, was_unused};
pub use overview::{AtMost, Left, Overview, Part, Reason, RunRate, Unseen, WhyNot};
pub use prices::{PriceLists, ask as ask_prices};
pub use protection::PROTECTION_KEPT;
pub use report::{Counts, FindingLine, KeptReport, MachineLine, NoReport, NotAsked, Report, ScopeLine};
pub use run::{Replica, run, run_as};
pub use schedule::{ScheduleError, Scheduler};
pub use status::ScopeStatus;
pub use timetable::{Ticks, Timetable};
pub(crate) use work::work_policy;

use crate::{
    config::Config,
    detectors::FoundOn,
    findings::{Finding, FindingId},
    identity::Node,
    inventory::{self, Inventory, key_of},
    pricing::Cost,
    snapshot::{
        Known, Machine, MachineInputs, Presence, ProviderFacts, QuietCase, QuietPolicy, Snapshot, SnapshotPart,
        Subject, WorkerPolicy, Workers, environments_gone, join, lists_jobs,
    },
    store::{self, Lease, Store, StoreError, StoredHeartbeat},
    verdict::{Case, Judgement, NodeState, Policy, StatePolicy, judge},
    work_unit::WorkUnit,
};
use bills::Bills;
use discover::Discovery;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use heartbeat::{NodeId, wire};
use jiff::{SignedDuration, Timestamp};
use model::{ResourceKey, ResourceKind};
use protection::Plannable;
use provider_metrics::At;
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

/// Heartbeats whose clock runs ahead are read too, up to so much; ingest refuses more than its `clock_skew`.
const CLOCK_AHEAD: SignedDuration = SignedDuration::from_hours(1);

/// What a sweep works with.
#[derive(Clone, Debug)]
pub struct Context {
    /// The database.
    pub store: Store,
    /// All settings.
    pub config: Config,
    /// Names of the channels that new findings are told on.
    pub channels: Vec<&'static str>,
    /// What this process last read of lists of prices.
    pub price_lists: PriceLists,
}

/// Told how a sweep gets on.
pub trait Progress: inventory::Progress {
    /// So many machines of one work unit will be judged.
    fn machines(&self, total: usize);
    /// A work unit is being swept by somebody else, who is waited for.
    fn waits_for(&self, unit: &WorkUnit, owner: &str);
}

impl Progress for inventory::Silent {
    fn machines(&self, _total: usize) {}
    fn waits_for(&self, _unit: &WorkUnit, _owner: &str) {}
}

/// Why a sweep ended without a report. What providers refuse is no such error: it is in the report.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// The database failed; nothing was changed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The report cannot be written as JSON.
    #[error("the sweep's report cannot be written as JSON")]
    Report(#[source] serde_json::Error),
    /// A machine could not be judged: a defect, or the sweeper is shutting down.
    #[error("a machine could not be judged; nothing of that sweep is written")]
    Judging(#[source] tokio::task::JoinError),
    /// It took longer than its lease lasted: nothing of it was written.
    #[error("the lease of {unit} ran out while it was swept; nothing of that sweep is written")]
    LeaseLost {
        /// What was swept.
        unit: WorkUnit,
    },
    /// Somebody else changed a finding meanwhile: nothing of the sweep was written.
    #[error("{finding} was changed by somebody else while {unit} was swept; nothing of that sweep is written")]
    Overtaken {
        /// What was swept.
        unit: WorkUnit,
        /// Which finding.
        finding: FindingId,
    },
}

/// What one work unit is swept for, and as of when.
#[derive(Clone, Copy, Debug)]
struct Moment {
    /// The scheduled time, or the moment of the request.
    tick: Timestamp,
    /// Now.
    now: Timestamp,
}

/// Sweeps one work unit under its lease, and writes what follows from it in one transaction.
async fn sweep_unit(
    context: &Context,
    discovery: &Discovery,
    lease: &Lease,
    moment: Moment,
    progress: &dyn Progress,
) -> Result<Report, SweepError> {
    let work = read_and_judge(context, discovery, &lease.unit, moment.now, progress);
    // The writing is not part of it: it is one transaction, which looks at the lease itself.
    let snapshot = lease::held(&context.store, lease, context.config.sweep.lease, work).await?;
    apply::apply(context, lease, moment.tick, snapshot).await
}

/// Reads and judges, and writes nothing.
async fn read_and_judge(
    context: &Context,
    discovery: &Discovery,
    unit: &WorkUnit,
    now: Timestamp,
    progress: &dyn Progress,
) -> Result<Snapshot, SweepError> {
    let Context { store, config, .. } = context;
    let mut inventory = discovery.inventory(unit, progress).await;
    let known = store::scopes::known(store.connection()).await?;
    let prefix = unit.key_prefix();
    let mut nodes = store.nodes_like(prefix.as_deref()).await?;
    nodes.retain(|node| WorkUnit::home(&key_of(&node.node_id), &known) == *unit);
    let mut open = store::findings::open_in(store.connection(), Some(unit)).await?;
    open.retain(|finding| WorkUnit::home(&finding.resource, &known) == *unit);
    let has_open: HashSet<&ResourceKey> = open.iter().map(|finding| &finding.resource).collect();
    nodes.retain(|node| !is_retired(config, node, now) || has_open.contains(&key_of(&node.node_id)));
    let of_machines = open.iter().filter(|finding| finding.class.found_on() == FoundOn::Machine);
    let subjects = join(&inventory, nodes, of_machines.map(|finding| &finding.resource));

    progress.machines(subjects.len());
    let states = store.node_states(prefix.as_deref()).await?;
    let mut machines = judge_all(store, config, subjects, states, &open, now).await?;
    let plannable = Plannable::of(&open, config.sweep.plan_after_sweeps);
    let at = discovery.aws(unit).map(|(accounts, scope)| At { accounts, scope, now });
    let submissions = provider_metrics::read(context, at, &mut inventory, &mut machines, &plannable, progress).await?;
    let worker_policy = WorkerPolicy {
        register_after_s: config.batch.register_after.as_secs(),
        end_within_s: config.batch.end_within.as_secs(),
        lookback_s: config.verdict.lookback.as_secs(),
    };
    let kind = ResourceKind::BatchComputeEnvironment.into();
    let missing_since = store.missing_since(kind, &environments_gone(&inventory)).await?;
    let workers = Workers::of(&inventory, missing_since, now, worker_policy);
    let known = Known::of(&inventory);
    for machine in &mut machines {
        complete(machine, config, &inventory, (&workers, &known));
    }
    hours::read(context, &mut machines, &open, now).await?;
    hours::read_weeks(context, prefix.as_deref(), &mut machines, now).await?;
    // Before prices are asked for, for it reads those of the machines as well.
    catalogue::read(context, at, &machines).await?;
    let prices = prices::price(context, now, at, &bills::keys(&inventory), &mut machines).await?;
    let leftovers = leftovers::read(context, &inventory, &Bills::of(&inventory, &prices), &open, now).await?;
    let groups = groups::read(context, unit, &inventory, &machines, &open, now).await?;
    let batch = batch::read(context, (&inventory, &known), (&machines, submissions.clone()), &open, now).await?;
    let work = work::read(context, (&inventory, &known), &machines, &open, now).await?;
    Ok(Snapshot { at: now, inventory, machines, leftovers, groups, batch, submitted_by: submissions, work, prices })
}

/// Whether nothing is kept of what a node did, and nobody waits for it any more: it is one of those that once joined. What is disputed stays so until a
/// person decides.
fn is_retired(config: &Config, node: &Node, now: Timestamp) -> bool {
    let after = config.store.heartbeat_retention.max(config.verdict.gone_after);
    let refused_at = node.refused.as_ref().map(|(at, _)| *at);
    let last = node.last_seen_at.max(refused_at).unwrap_or(node.joined_at).max(node.joined_at);
    node.disputed.is_none() && now.duration_since(last) > SignedDuration::try_from(after).unwrap_or(SignedDuration::MAX)
}

/// So many nodes are judged from their heartbeats at a time.
const JUDGED_AT_ONCE: usize = 8;

/// Judges each machine: by the state of its node, where nothing rests on it, and else from its heartbeats.
async fn judge_all(
    store: &Store,
    config: &Config,
    subjects: Vec<Subject>,
    mut states: HashMap<NodeId, NodeState>,
    open: &[Finding],
    now: Timestamp,
) -> Result<Vec<Machine>, SweepError> {
    let state_policy = Arc::new(StatePolicy::new(policy(config)));
    let open: HashSet<&ResourceKey> = open.iter().map(|finding| &finding.resource).collect();
    let judged = subjects.into_iter().map(|subject| {
        // What a finding rests on, or may end by, is judged from a whole window; and what GPUs do beside the machine, no state tells.
        let node = subject.node.as_ref().filter(|_| !open.contains(&subject.id));
        let by_state = node.and_then(|node| {
            let state = states.remove(&node.node_id).filter(|state| !state.has_read_gpus())?;
            state.judge(now.as_millisecond(), &state_policy, Some(node.identity()))
        });
        let state_policy = Arc::clone(&state_policy);
        async move {
            let (case, judgement) = match by_state {
                Some(judged) => judged,
                None => judge_window(store, subject.node.as_ref(), &state_policy, config.verdict.lookback, now).await?,
            };
            let presence = presence(config, &subject);
            let inputs = MachineInputs::new(presence, case);
            let cost = Cost::Unknown { why: "not looked up".to_owned() };
            let provider = ProviderFacts::default();
            Ok::<_, SweepError>(Machine { subject, inputs, judgement, cost, provider })
        }
    });
    stream::iter(judged).buffered(JUDGED_AT_ONCE).try_collect().await
}

/// Judges a machine from the heartbeats of the whole look-back; one without an agent has none.
async fn judge_window(
    store: &Store,
    node: Option<&Node>,
    state_policy: &Arc<StatePolicy>,
    lookback: Duration,
    now: Timestamp,
) -> Result<(Case, Judgement), SweepError> {
    let (store, node, state_policy) = (store.clone(), node.cloned(), Arc::clone(state_policy));
    // A task of its own, so that several cores unpack.
    let read = tokio::spawn(async move {
        let (case, _) = case_of(&store, node.as_ref(), state_policy.policy(), lookback, now).await?;
        let judgement = judge(&case);
        Ok::<_, SweepError>((case, judgement))
    });
    read.await.map_err(SweepError::Judging)?
}

fn presence(config: &Config, subject: &Subject) -> Presence {
    Presence {
        listed: subject.instance.as_ref().map(|instance| instance.state.clone()),
        launched_at: subject.instance.as_ref().and_then(|instance| instance.launched_at),
        coverage: subject.coverage,
        last_heard: subject.node.as_ref().and_then(|node| {
            // A node whose heartbeats are refused is there.
            let refused = node.refused.as_ref().map(|(at, _)| *at);
            node.last_seen_at.max(refused)
        }),
        gone_after_s: config.verdict.gone_after.as_secs(),
        silent_after_s: config.verdict.silent_after.as_secs(),
    }
}

/// Takes up what was learnt from its provider after the machine was judged.
fn complete(
    machine: &mut Machine,
    config: &Config,
    inventory: &Inventory,
    (workers, known): (&Workers<'_>, &Known<'_>),
) {
    let verdict = &config.verdict;
    let policy = QuietPolicy {
        after_s: verdict.quiet_after.as_secs(),
        cpu_millionths: verdict.quiet_cpu_threshold_millionths,
        network_bytes_per_s: verdict.quiet_network_threshold_bytes_per_s,
    };
    machine.inputs.metrics = machine.provider.usage.as_ref().map(|usage| QuietCase { seen: usage.into(), policy });
    if let Some(instance) = &machine.subject.instance {
        machine.inputs.worker = workers.find(instance);
        machine.inputs.jobs =
            known.placed_on(instance, known.may_have_jobs(instance) && lists_jobs(inventory, &instance.id));
    }
    if machine.inputs.presence.is_unread() {
        machine.inputs.failed.push(SnapshotPart::Inventory);
    }
    let id = machine.subject.running().filter(|_| machine.is_blind()).map(|instance| &instance.id);
    if machine.inputs.metrics.is_none() && id.is_some_and(|id| inventory.usage_failed(id)) {
        machine.inputs.failed.push(SnapshotPart::ProviderMetrics);
    }
}

/// What nodes are judged by.
pub(crate) fn policy(config: &Config) -> Policy {
    let ms = |duration: Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
    let verdict = &config.verdict;
    Policy {
        missed_heartbeats: verdict.missed_heartbeats,
        boot_grace_ms: ms(verdict.boot_grace),
        idle_after_ms: ms(verdict.idle_after),
        gpu_idle_after_ms: ms(verdict.gpu_idle_after),
        gpu_unused_after_ms: ms(verdict.gpu_unused_after),
        interactive_after_ms: ms(verdict.interactive_after),
        called_after_ms: ms(verdict.interactive_after),
        schedules_wait: verdict.schedules_wait,
        workload_cpu_threshold_ns_per_s: verdict.workload_cpu_threshold_ns_per_s,
        disk_threshold_bytes_per_s: verdict.disk_threshold_bytes_per_s,
        network_threshold_bytes_per_s: verdict.network_threshold_bytes_per_s,
        gpu_busy_threshold_ns_per_s: verdict.gpu_busy_threshold_ns_per_s,
        unattributed_starts_threshold_per_1000_s: per_1000_s(verdict.unattributed_starts_per_s),
        unattributed_cpu_threshold_ns_per_s: verdict.unattributed_cpu_threshold_ns_per_s,
        kernel_cpu_threshold_ns_per_s: verdict.kernel_cpu_threshold_ns_per_s,
        unattributed_disk_threshold_bytes_per_s: verdict.unattributed_disk_threshold_bytes_per_s,
        housekeeping_cpu_budget_ns_per_s: verdict.housekeeping_cpu_budget_ns_per_s,
    }
}

/// The configuration takes a decimal number; the judge works with integers so that a replay is exact.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to 0 ..= 1e12 before, which both types hold exactly; NaN becomes 0"
)]
fn per_1000_s(per_s: f64) -> u64 {
    (per_s * 1000.0).round().clamp(0.0, 1e12) as u64
}

async fn case_of(
    store: &Store,
    node: Option<&Node>,
    policy: &Policy,
    lookback: Duration,
    now: Timestamp,
) -> Result<(Case, Option<wire::Coverage>), SweepError> {
    let heartbeats = if let Some(node) = node {
        let lookback = SignedDuration::try_from(lookback).unwrap_or(SignedDuration::MAX);
        let from = now.checked_sub(lookback).unwrap_or(Timestamp::MIN);
        let until = now.checked_add(CLOCK_AHEAD).unwrap_or(Timestamp::MAX);
        store.heartbeats(&node.node_id, from, until).await?
    } else {
        Vec::new()
    };
    let coverage = heartbeats.last().and_then(|last| last.heartbeat.coverage.clone());
    let heartbeats = heartbeats.into_iter().map(|stored| (stored.boot_id, stored.heartbeat)).collect();
    let case = Case::new(now.as_millisecond(), policy.clone(), heartbeats);
    Ok((case.spoken_for_by(node.map(Node::identity)), coverage))
}

/// What a node did at a moment, from the heartbeats alone that it had sent by then and within the look-back.
#[must_use]
pub fn judge_at(config: &Config, at: Timestamp, heartbeats: &[StoredHeartbeat]) -> (Case, Judgement) {
    let lookback = SignedDuration::try_from(config.verdict.lookback).unwrap_or(SignedDuration::MAX);
    let from = at.checked_sub(lookback).unwrap_or(Timestamp::MIN);
    let is_seen = |stored: &&StoredHeartbeat| {
        let end = stored.heartbeat.interval.as_ref().map(|interval| interval.end_unix_ms);
        end.is_some_and(|end| (from.as_millisecond()..at.as_millisecond()).contains(&end))
    };
    let seen = heartbeats.iter().filter(is_seen).map(|stored| (stored.boot_id, stored.heartbeat.clone())).collect();
    let case = Case::new(at.as_millisecond(), policy(config), seen);
    let judgement = judge(&case);
    (case, judgement)
}

/// What a node does, as a sweep would judge it at this moment from its heartbeats alone, and what its latest heartbeat could measure.
///
/// # Errors
/// If the database does not answer, or holds what this version never wrote.
pub async fn judge_node(
    store: &Store,
    config: &Config,
    node: &Node,
    now: Timestamp,
) -> Result<(Case, Judgement, Option<wire::Coverage>), SweepError> {
    let (case, coverage) = case_of(store, Some(node), &policy(config), config.verdict.lookback, now).await?;
    let judgement = judge(&case);
    Ok((case, judgement, coverage))
}
