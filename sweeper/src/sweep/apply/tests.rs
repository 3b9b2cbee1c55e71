//! What one judgement does to the findings that are open.

use super::*;
use crate::{
    config::Config,
    findings::FindingId,
    identity::{Attestation, Node},
    inventory::{Instance, InstanceState, Schedulers, Usage, UsageSource, sample},
    pricing::{Cost, UnitPrices},
    snapshot::{Known, MachineInputs, ProviderFacts, WorkerPolicy, Workers},
    store::Store,
    sweep::{complete, presence},
    verdict::{Case, Decision, Judgement, Observation, Policy, Unknown},
};
use jiff::SignedDuration;
use model::{Verdict, machine};
use std::sync::Arc;

const POLICY: WorkerPolicy = WorkerPolicy { register_after_s: 0, end_within_s: 900, lookback_s: 14_400 };

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_790_000_000 + second).unwrap_or_default()
}

async fn context() -> Context {
    let store = Store::connect("sqlite::memory:").await.expect("a database");
    Context { store, config: Config::default(), channels: Vec::new(), price_lists: crate::sweep::PriceLists::default() }
}

fn idle_since(second: i64) -> Judgement {
    let ms = at(second).as_millisecond();
    let total = Observation {
        start_unix_ms: ms,
        end_unix_ms: ms + 1,
        workload_cpu_ns: Some(0),
        workload_starts: Some(0),
        unattributed_starts: None,
        workload_disk_bytes: Some(0),
        network_bytes: Some(0),
        oom_kills: Some(0),
        gpu_busy_ns: None,
        last_input_unix_ms: None,
        new_inbound_peers: None,
        blind: Vec::new(),
        lost_events: 0,
        unattributed_cpu_ns: None,
        kernel_cpu_ns: None,
        unattributed_disk_bytes: None,
        unattributed_network_bytes: None,
        housekeeping_cpu_ns: None,
        busiest_housekeeping: None,
        deciding_row: None,
        unchecked: Vec::new(),
        restart_gap_ms: None,
        waited: false,
        slept_ms: None,
    };
    Judgement {
        verdict: Verdict::Idle,
        since_unix_ms: Some(ms),
        decision: Decision::AllQuiet { observations: 1, total },
    }
}

fn judged(instance: Option<Instance>, coverage: Coverage) -> Machine {
    let id = sample::instance().id;
    let node = Node {
        node_id: id.to_string().parse().expect("a node id"),
        hostname: "quiet-1".into(),
        agent_version: "0.1.0".into(),
        joined_at: at(0),
        last_seen_at: None,
        attestation: Attestation::FleetToken,
        binding: None,
        disputed: None,
        revoked_at: None,
        refused: None,
    };
    let subject = Subject {
        id,
        instance,
        node: Some(node),
        coverage,
        groups_are_known: true,
        schedulers: Arc::new(Schedulers::of_no_machine()),
    };
    Machine {
        inputs: MachineInputs::new(presence(&Config::default(), &subject), Case::new(0, Policy::default(), Vec::new())),
        subject,
        judgement: idle_since(0),
        cost: Cost::Unknown { why: "a test".into() },
        provider: ProviderFacts { protection: machine::Protection::Off, ..ProviderFacts::default() },
    }
}

/// Judges one machine after the other, as sweeps would, and returns what is open in the end and all outcomes.
async fn sweeps(steps: Vec<Machine>) -> (Vec<Class>, Vec<Outcome>) {
    let context = context().await;
    let mut open = HashMap::new();
    let mut outcomes = Vec::new();
    for (second, mut machine) in (100..).zip(steps) {
        machine.inputs.presence = presence(&context.config, &machine.subject);
        machine.inputs.case.now_unix_ms = at(second).as_millisecond();
        let inventory = Inventory::default();
        complete(
            &mut machine,
            &context.config,
            &inventory,
            (&Workers::of(&inventory, HashMap::new(), at(second), POLICY), &Known::of(&inventory)),
        );
        let (leftovers, groups, batch, work) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (machines, prices) = (vec![machine], UnitPrices::default());
        let snapshot = Snapshot {
            at: at(second),
            inventory,
            machines,
            leftovers,
            groups,
            batch,
            submitted_by: [].into(),
            work,
            prices,
        };
        let bills = Bills::of(&snapshot.inventory, &snapshot.prices);
        let steps = decide(&context, &snapshot, &bills, &Exemptions::default(), open.clone()).collect();
        let outcome = Outcome { steps, counts: Counted::of(&snapshot).counts };
        for Step { finding, .. } in &outcome.steps {
            let key = (finding.class, finding.resource.clone());
            match finding.status {
                Status::Open => open.insert(key, finding.clone()),
                Status::Closed { .. } => open.remove(&key),
            };
        }
        outcomes.push(outcome);
    }
    let mut classes: Vec<_> = open.into_keys().map(|(class, _)| class).collect();
    classes.sort();
    (classes, outcomes)
}

/// What one sweep does and says.
struct Outcome {
    steps: Vec<Step>,
    counts: Counts,
}

impl Outcome {
    fn opened(&self) -> Vec<&Finding> {
        self.steps.iter().filter(|step| step.was_confirmed_at.is_none()).map(|step| &step.finding).collect()
    }

    fn updated(&self) -> Vec<&Finding> {
        self.steps.iter().filter(|step| step.was_confirmed_at.is_some()).map(|step| &step.finding).collect()
    }
}

fn running() -> Option<Instance> {
    Some(Instance { state: InstanceState::Running, ..sample::instance() })
}

#[tokio::test]
async fn credentials_that_are_missing_for_a_moment_neither_close_nor_double_a_finding() {
    let (open, outcomes) = sweeps(vec![
        judged(running(), Coverage::Complete),
        judged(None, Coverage::NotAsked),
        judged(running(), Coverage::Complete),
    ])
    .await;
    assert_eq!(open, [Class::IdleNode]);
    assert_eq!(outcomes.iter().map(|outcome| outcome.opened().len()).collect::<Vec<_>>(), [1, 0, 0]);
}

#[tokio::test]
async fn a_region_that_failed_closes_nothing() {
    let (open, _) = sweeps(vec![judged(running(), Coverage::Complete), judged(None, Coverage::Failed)]).await;
    assert_eq!(open, [Class::IdleNode]);
}

#[tokio::test]
async fn a_provider_that_does_not_answer_ends_nothing_that_was_found_without_it() {
    let (open, outcomes) = sweeps(vec![
        judged(None, Coverage::NotAsked),
        judged(None, Coverage::Failed),
        judged(None, Coverage::NotAsked),
        judged(None, Coverage::Failed),
        judged(running(), Coverage::Complete),
    ])
    .await;
    assert_eq!(open, [Class::IdleNode]);
    assert_eq!(outcomes.iter().map(|outcome| outcome.opened().len()).collect::<Vec<_>>(), [1, 0, 0, 0, 0]);
    let updated = outcomes[1].updated();
    let unconfirmed = updated.first().expect("the finding");
    assert_eq!((unconfirmed.class, unconfirmed.confirmed_sweeps), (Class::IdleNode, 0));
}

#[tokio::test]
async fn a_node_that_an_inventory_covers_from_now_on_keeps_its_finding_and_since_when() {
    let (open, outcomes) = sweeps(vec![judged(None, Coverage::NotAsked), judged(running(), Coverage::Complete)]).await;
    assert_eq!(open, [Class::IdleNode]);
    let opened = outcomes[0].opened();
    let [found] = opened.as_slice() else { panic!("{opened:?}") };
    let updated = outcomes[1].updated();
    let [same] = updated.as_slice() else { panic!("{updated:?}") };
    assert!(outcomes[1].opened().is_empty());
    assert_eq!((&same.id, same.since, same.confirmed_sweeps), (&found.id, found.since, 2));
    assert!(same.evidence.machine().is_some());
}

#[tokio::test]
async fn an_instance_that_stopped_or_is_gone_ends_its_finding_whatever_its_node_said_last() {
    for instance in [Some(Instance { state: InstanceState::Stopped, ..sample::instance() }), None] {
        let (open, _) = sweeps(vec![judged(running(), Coverage::Complete), judged(instance, Coverage::Complete)]).await;
        assert!(open.is_empty());
    }
}

#[tokio::test]
async fn a_state_that_is_not_known_closes_nothing() {
    let odd = Some(Instance { state: InstanceState::Other("hibernating".into()), ..sample::instance() });
    let (open, _) = sweeps(vec![judged(running(), Coverage::Complete), judged(odd, Coverage::Complete)]).await;
    assert_eq!(open, [Class::IdleNode]);
}

#[tokio::test]
async fn a_finding_that_is_not_confirmed_for_once_keeps_its_plan() {
    let idle = || judged(running(), Coverage::Complete);
    let unknown = Judgement {
        verdict: Verdict::Unknown,
        since_unix_ms: None,
        decision: Decision::Unknown(Unknown::GpuNotMeasured),
    };
    let (open, outcomes) = sweeps(vec![idle(), idle(), Machine { judgement: unknown, ..idle() }, idle()]).await;
    assert_eq!(open, [Class::IdleNode]);
    let confirmed = outcomes[1].updated()[0];
    assert!(confirmed.plan.is_some(), "{:?}", confirmed.no_plan_because);
    let unconfirmed = outcomes[2].updated()[0];
    assert_eq!((unconfirmed.confirmed_sweeps, &unconfirmed.plan), (0, &confirmed.plan));
    assert_eq!(outcomes.len(), 4);
    let again = outcomes[3].updated()[0];
    assert_eq!((again.confirmed_sweeps, &again.plan), (1, &confirmed.plan), "who approved it need not do so again");
}

#[tokio::test]
async fn an_id_that_is_another_findings_is_told_and_not_taken_for_the_same_finding() {
    let (_, outcomes) = sweeps(vec![judged(running(), Coverage::Complete)]).await;
    let found = outcomes[0].opened()[0].clone();
    let store = context().await.store;
    store.migrate().await.expect("a schema");
    assert!(matches!(store::findings::open(store.connection(), &found).await, Ok(true)));
    assert!(matches!(store::findings::open(store.connection(), &found).await, Ok(false)), "it is open already");
    let later = Finding { id: FindingId("f-000000000000".into()), ..found.clone() };
    assert!(matches!(store::findings::open(store.connection(), &later).await, Ok(false)), "one on a machine");
    let resource = "aws:123456789012:eu-central-1:i-00000000000000001".parse().expect("a node id");
    let other = store::findings::open(store.connection(), &Finding { resource, ..found.clone() }).await;
    assert!(matches!(other, Err(StoreError::Collision { .. })), "{other:?}");
    assert!(
        matches!(store::findings::update(store.connection(), &found, at(0)).await, Ok(false)),
        "confirmed later than that"
    );
}

#[tokio::test]
async fn a_host_that_is_silent_for_too_long_is_gone_and_one_that_a_provider_lists_is_not() {
    let silent = |days: i64, instance: Option<Instance>, coverage| {
        let mut judged = judged(instance, coverage);
        judged.judgement =
            Judgement { verdict: Verdict::Unknown, since_unix_ms: None, decision: Decision::Unknown(Unknown::NoAgent) };
        if let Some(node) = &mut judged.subject.node {
            node.last_seen_at = Some(at(0) - SignedDuration::from_hours(24 * days));
        }
        judged
    };
    for (days, instance, coverage, is_gone) in [
        (6, None, Coverage::NotAsked, false),
        (7, None, Coverage::NotAsked, true),
        (7, None, Coverage::Failed, false),
        (7, running(), Coverage::Complete, false),
    ] {
        let (open, outcomes) = sweeps(vec![judged(None, Coverage::NotAsked), silent(days, instance, coverage)]).await;
        assert_eq!(open.is_empty(), is_gone, "{days} {coverage:?}");
        let updated = outcomes[1].updated();
        let [finding] = updated.as_slice() else { panic!("{updated:?}") };
        match &finding.status {
            Status::Open => assert_eq!(finding.confirmed_sweeps, 0),
            Status::Closed { because, .. } => {
                assert!(because.starts_with("nothing has been heard of the host since 2026-"), "{because}");
            }
        }
    }
}

#[tokio::test]
async fn a_host_whose_heartbeats_are_refused_is_not_gone() {
    let mut refused = blind(None, Coverage::NotAsked, None);
    refused.subject.node = judged(None, Coverage::NotAsked).subject.node.map(|node| Node {
        last_seen_at: Some(at(0) - SignedDuration::from_hours(24 * 30)),
        refused: Some((at(0) - SignedDuration::from_hours(1), "its clock is off".into())),
        ..node
    });
    let (open, _) = sweeps(vec![judged(None, Coverage::NotAsked), refused]).await;
    assert_eq!(open, [Class::IdleNode]);
}

/// A machine that no agent reports from, and whose provider saw this much CPU, in millionths.
fn blind(instance: Option<Instance>, coverage: Coverage, cpu: Option<u32>) -> Machine {
    let from = at(0);
    let usage = cpu.map(|cpu| Usage {
        id: sample::instance().id,
        source: UsageSource::CloudWatch,
        from,
        until: from + SignedDuration::from_hours(24 * 14),
        period_s: 3_600,
        periods: 336,
        busiest_cpu_millionths: Some(cpu),
        busiest_network_bytes_per_s: Some(100),
    });
    let judgement =
        Judgement { verdict: Verdict::Unknown, since_unix_ms: None, decision: Decision::Unknown(Unknown::NoAgent) };
    let known = judged(instance, coverage);
    let subject = Subject { node: None, ..known.subject };
    Machine { subject, judgement, provider: ProviderFacts { usage, ..ProviderFacts::default() }, ..known }
}

const QUIET: Option<u32> = Some(10_000);
const BUSY: Option<u32> = Some(900_000);

#[tokio::test]
async fn a_quiet_instance_is_found_by_provider_metrics_and_never_gets_a_plan() {
    let quiet = || blind(running(), Coverage::Complete, QUIET);
    let (open, outcomes) = sweeps(vec![quiet(), quiet(), quiet()]).await;
    assert_eq!(open, [Class::QuietInstance]);
    let opened = outcomes[0].opened();
    let [found] = opened.as_slice() else { panic!("{opened:?}") };
    assert_eq!((found.since, found.confirmed_until), (at(0), at(0) + SignedDuration::from_hours(24 * 14)));
    let told = findings::notice(found);
    assert!(told.headline.contains("has looked unused from outside for 14 days"), "{}", told.headline);
    let words =
        "No agent reports from it; as seen from outside, CloudWatch: no hour above 1.0 % CPU and 100 B/s network";
    assert!(told.certainty.as_deref().unwrap_or_default().starts_with(words), "{:?}", told.certainty);
    assert_eq!((told.plan_summary, told.evidence.len()), (None, 3));
    let mut all = outcomes.iter().flat_map(|outcome| outcome.steps.iter().map(|step| &step.finding));
    assert!(
        all.all(|finding| finding.plan.is_none() && finding.no_plan_because.as_deref().unwrap_or("").contains("weak"))
    );
    assert_eq!(outcomes[2].updated()[0].confirmed_sweeps, 3);
    assert_eq!(outcomes[2].counts.unknown, 1, "it is a blind spot all the same");
}

#[tokio::test]
async fn a_quiet_instance_ends_with_its_quiet_its_running_or_the_silence_of_its_agent() {
    let stopped = Some(Instance { state: InstanceState::Stopped, ..sample::instance() });
    for (after, because, left) in [
        (blind(running(), Coverage::Complete, BUSY), "busy: CPU in the busiest period: 90.0 %", None),
        (blind(stopped, Coverage::Complete, QUIET), "the instance is stopped", None),
        (blind(None, Coverage::Complete, None), "the provider lists the instance no more", None),
        (judged(running(), Coverage::Complete), "an agent reports from it", Some(Class::IdleNode)),
    ] {
        let (open, outcomes) = sweeps(vec![blind(running(), Coverage::Complete, QUIET), after]).await;
        assert_eq!(open, left.into_iter().collect::<Vec<_>>(), "one finding on a machine at most");
        let Status::Closed { because: said, .. } = &outcomes[1].updated()[0].status else { panic!("{because}") };
        assert!(said.starts_with(because), "{said}");
    }
}

#[tokio::test]
async fn what_could_not_be_read_keeps_a_quiet_instance_open_and_unconfirmed() {
    for after in [
        blind(running(), Coverage::Complete, None),
        blind(None, Coverage::Failed, None),
        blind(None, Coverage::NotAsked, None),
    ] {
        let (open, outcomes) = sweeps(vec![blind(running(), Coverage::Complete, QUIET), after]).await;
        assert_eq!(open, [Class::QuietInstance]);
        assert_eq!(outcomes[1].updated()[0].confirmed_sweeps, 0);
    }
}

#[tokio::test]
async fn what_an_agent_proved_stands_when_it_falls_silent() {
    let (open, _) =
        sweeps(vec![judged(running(), Coverage::Complete), blind(running(), Coverage::Complete, QUIET)]).await;
    assert_eq!(open, [Class::IdleNode]);
    let (open, _) =
        sweeps(vec![blind(running(), Coverage::Complete, BUSY), blind(None, Coverage::Failed, QUIET)]).await;
    assert_eq!(open, []);
}
