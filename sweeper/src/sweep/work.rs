//! Work that should finish: what the agents on its machines say of it.
//!
//! Two heartbeats of each machine that is asked are read, the newest and the newest that is old enough: counters are cumulative, so these tell all that happened in
//! between, and a machine with a job costs two rows and not those of hours.

use super::{CLOCK_AHEAD, Context, SweepError};
use crate::{
    config::Config,
    findings::{Evidence, Finding},
    identity::Node,
    inventory::Inventory,
    pricing::Cost,
    snapshot::{Asked, Known, Machine, Work, asked, batch_cost, key_of_task},
    store::{Store, StoredHeartbeat},
    verdict::work::{Contract, WorkCase, WorkPolicy, WorkSample},
};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use heartbeat::{BootId, NodeId, wire};
use jiff::{SignedDuration, Timestamp};
use model::{ResourceKey, ResourceKind};
use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

/// So many machines are asked at a time.
const AT_ONCE: usize = 8;

/// Everything that may be stuck, or that an open finding names.
pub(super) async fn read(
    context: &Context,
    (inventory, known): (&Inventory, &Known<'_>),
    machines: &[Machine],
    open: &[Finding],
    now: Timestamp,
) -> Result<Vec<Work>, SweepError> {
    let named = open.iter().filter_map(|finding| match &finding.evidence {
        Evidence::Work(evidence) => Some((&finding.resource, &evidence.job)),
        Evidence::Machine(_) | Evidence::Leftover(_) | Evidence::Group(_) | Evidence::Batch(_) => None,
    });
    let by_key: HashMap<&ResourceKey, &Machine> =
        machines.iter().map(|machine| (&machine.subject.id, machine)).collect();
    let policy = work_policy(&context.config);
    let read = asked(known, machines, named).into_iter().map(|(key, asked)| {
        let machine = by_key.get(&key).copied();
        async move {
            let node = machine.and_then(|machine| machine.subject.node.as_ref());
            let ends = match node {
                Some(node) => {
                    ends(&context.store, &node.node_id, &policy, context.config.verdict.lookback, now).await?
                }
                None => [None, None],
            };
            let mut cases = cases(&ends, asked, machine, node, policy, now);
            if let Some(node) = node.filter(|_| cases.values().any(WorkCase::may_spin)) {
                let earlier = earlier(&context.store, &node.node_id, &ends, &context.config, now).await?;
                for case in cases.values_mut().filter(|case| case.may_spin()) {
                    let sample =
                        earlier.as_ref().and_then(|(boot_id, one)| WorkSample::of(*boot_id, one, &case.contract));
                    case.earlier = sample;
                }
            }
            Ok::<_, SweepError>((key, machine, cases))
        }
    });
    let read: Vec<_> = stream::iter(read).buffered(AT_ONCE).try_collect().await?;
    let costs: HashMap<&ResourceKey, &Cost> =
        machines.iter().map(|machine| (&machine.subject.id, &machine.cost)).collect();
    let mut all = Vec::new();
    for (key, machine, cases) in read {
        for (id, case) in cases {
            let mut work = Work::judged(id, (&key, machine), (inventory, known), now, case);
            work.cost = if work.id.kind == ResourceKind::BatchJob {
                batch_cost(inventory, known, &costs, &work.id)
            } else {
                cost_of_part(&key, machine)
            };
            all.push(work);
        }
    }
    all.sort_by(|one, other| one.id.cmp(&other.id));
    Ok(all)
}

/// What work is held against, here and right before a job is terminated.
pub(crate) fn work_policy(config: &Config) -> WorkPolicy {
    let of_nodes = super::policy(config);
    WorkPolicy {
        missed_heartbeats: of_nodes.missed_heartbeats,
        stuck_after_ms: i64::try_from(config.verdict.stuck_after.as_millis()).unwrap_or(i64::MAX),
        spinning_after_ms: i64::try_from(config.verdict.spinning_after.as_millis()).unwrap_or(i64::MAX),
        interactive_after_ms: of_nodes.interactive_after_ms,
    }
}

/// The heartbeat in which the window begins, and the newest one.
async fn ends(
    store: &Store,
    node: &NodeId,
    policy: &WorkPolicy,
    lookback: Duration,
    now: Timestamp,
) -> Result<[Option<(BootId, wire::Heartbeat)>; 2], SweepError> {
    let lookback = SignedDuration::try_from(lookback).unwrap_or(SignedDuration::MAX);
    let from = now.checked_sub(lookback).unwrap_or(Timestamp::MIN);
    let until = now.checked_add(CLOCK_AHEAD).unwrap_or(Timestamp::MAX);
    let Some(newest) = store.newest_heartbeat(node, from, until).await? else { return Ok([None, None]) };
    let end_unix_ms = newest.heartbeat.interval.as_ref().map_or(0, |interval| interval.end_unix_ms);
    // The bound itself is not in what is asked for.
    let before = Timestamp::from_millisecond(end_unix_ms.saturating_sub(policy.stuck_after_ms).saturating_add(1));
    let begin = match before {
        Ok(before) => store.newest_heartbeat(node, from, before).await?,
        Err(_) => None,
    };
    let pair = |stored: StoredHeartbeat| (stored.boot_id, stored.heartbeat);
    Ok([begin.map(pair), Some(pair(newest))])
}

/// The newest heartbeat that is old enough to show that something spins.
async fn earlier(
    store: &Store,
    node: &NodeId,
    [_, newest]: &[Option<(BootId, wire::Heartbeat)>; 2],
    config: &Config,
    now: Timestamp,
) -> Result<Option<(BootId, wire::Heartbeat)>, SweepError> {
    let span = |length: Duration| SignedDuration::try_from(length).unwrap_or(SignedDuration::MAX);
    let from = now.checked_sub(span(config.verdict.lookback)).unwrap_or(Timestamp::MIN);
    let interval = newest.as_ref().and_then(|(_, newest)| newest.interval.as_ref());
    let end = interval.and_then(|interval| Timestamp::from_millisecond(interval.end_unix_ms.saturating_add(1)).ok());
    let Some(before) = end.and_then(|end| end.checked_sub(span(config.verdict.spinning_after)).ok()) else {
        return Ok(None);
    };
    let earlier = store.newest_heartbeat(node, from, before).await?;
    Ok(earlier.map(|stored| (stored.boot_id, stored.heartbeat)))
}

/// What the two heartbeats say of each piece of work, by its key.
fn cases(
    ends: &[Option<(BootId, wire::Heartbeat)>; 2],
    asked: Asked,
    machine: Option<&Machine>,
    node: Option<&Node>,
    policy: WorkPolicy,
    now: Timestamp,
) -> BTreeMap<ResourceKey, WorkCase> {
    let [begin, end] = ends;
    let mut contracts = asked.named;
    if let (true, Some(machine), Some((_, newest))) = (asked.has_runs, machine, end) {
        let open = Contract::open_runs(newest).chain(Contract::open_tasks(newest));
        let all = open.chain(Contract::open_pods(newest)).chain(Contract::orphaned_tasks(newest));
        let keyed = all.filter_map(|work| Some((key_of_task(&machine.subject.id, &work.local_id()?), work)));
        keyed.for_each(|(key, work)| {
            contracts.entry(key).or_insert(work);
        });
    }
    let case = |contract| {
        WorkCase::new(now.as_millisecond(), policy, contract, [begin.as_ref(), end.as_ref()], node.map(Node::identity))
    };
    contracts.into_iter().map(|(key, contract)| (key, case(contract))).collect()
}

/// What a part of a machine costs is not known, and the machine's price is told.
fn cost_of_part(key: &ResourceKey, machine: Option<&Machine>) -> Cost {
    let price = match machine.map(|machine| &machine.cost) {
        Some(Cost::Known { per_hour, .. }) => format!(", at {per_hour}"),
        Some(Cost::Unknown { .. }) | None => String::new(),
    };
    Cost::Unknown {
        why: format!("it is a part of what runs on {}{price}, and no price is split over that yet", key.id),
    }
}
