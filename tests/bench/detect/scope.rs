//! A scope on paper.

use crate::made_up::{Node, Timeline};
use jiff::{SignedDuration, Timestamp};
use model::{Provider, ResourceKey, ResourceKind};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use sweeper::{
    identity::Attestation,
    inventory::{
        BatchJob, Instance, InstanceState, InstanceStore, Inventory, Kind, Lifecycle, Listing, Outcome, RootDevice,
        Tenancy, Volume, key_of,
    },
    pricing::{Cost, UnitPrices},
    snapshot::{
        BatchHistory, BatchPolicy, Coverage, Known, LeftoverPolicy, Machine, MachineInputs, Presence, ProviderFacts,
        Snapshot, batch_resources, groups, join, leftovers,
    },
    verdict::{Case, Judgement, NodeSample, NodeState, Policy, StatePolicy, judge},
};

const ACCOUNT: &str = "123456789012";
const REGION: &str = "us-east-1";
/// Every tenth volume is attached to nothing.
const UNATTACHED: usize = 10;
/// Children of one array, the last of which straggles.
const CHILDREN: usize = 50;
const POLICY: BatchPolicy = BatchPolicy {
    blocked_after_s: 3_600,
    starting_after_s: 1_800,
    lost_after_s: 600,
    straggling_after_s: 3_600,
    held_after_s: 3_600,
};

/// What was put in and is to be found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Given {
    pub(crate) idle: usize,
    pub(crate) unattached: usize,
    pub(crate) straggling: usize,
}

impl Given {
    /// By class.
    pub(crate) fn expected(self) -> BTreeMap<&'static str, usize> {
        let all =
            [("idle_node", self.idle), ("unattached_volume", self.unattached), ("straggling_job", self.straggling)];
        all.into_iter().filter(|(_, count)| *count > 0).collect()
    }
}

/// What a node is judged by, as a sweep does it: one that may be idle by its whole window.
enum Evidence {
    State(Box<NodeState>),
    Window(Box<Case>),
}

pub(crate) struct Scope {
    inventory: Inventory,
    nodes: Vec<sweeper::identity::Node>,
    evidence: Vec<Evidence>,
    policy: StatePolicy,
    since: Timestamp,
}

fn key(kind: ResourceKind, id: String) -> ResourceKey {
    ResourceKey { provider: Provider::Aws, account: ACCOUNT.into(), location: REGION.into(), kind, id }
}

fn listing(kind: ResourceKind) -> Listing {
    Listing {
        provider: Provider::Aws,
        account: Some(ACCOUNT.into()),
        region: Some(REGION.into()),
        kind: Some(Kind::from(kind)),
        outcome: Outcome::Complete { listed: 0 },
    }
}

/// A resource with these facts, and nothing else told of it.
fn told<T: DeserializeOwned>(facts: Value) -> T {
    serde_json::from_value(facts).expect("a resource")
}

fn instance(id: ResourceKey, now: Timestamp) -> Instance {
    Instance {
        id,
        name: Some("worker".into()),
        instance_type: Some("m5.large".into()),
        state: InstanceState::Running,
        launched_at: Some(now - SignedDuration::from_hours(100)),
        attached_at: None,
        lifecycle: Lifecycle::OnDemand,
        capacity_reservation: None,
        availability_zone: Some("us-east-1a".into()),
        on_outpost: false,
        platform_details: Some("Linux/UNIX".into()),
        usage_operation: Some("RunInstances".into()),
        tenancy: Tenancy::Shared,
        root_device: RootDevice::Ebs,
        instance_store: InstanceStore::Absent,
        volumes: Vec::new(),
        network_interfaces: Vec::new(),
        public_ipv4: Vec::new(),
        tags: [("team", "omics"), ("owner", "ada"), ("Name", "worker")].map(|(k, v)| (k.into(), v.into())).into(),
        autoscaling_group: None,
        launch_template: None,
        operator: None,
        hibernation_configured: None,
        instance_profile: None,
        google: None,
    }
}

fn volume(number: usize) -> Volume {
    let attachments = if number.is_multiple_of(UNATTACHED) {
        json!([])
    } else {
        json!([{"instance_id": format!("i-{number:017x}"), "state": "attached"}])
    };
    let state = if number.is_multiple_of(UNATTACHED) { "available" } else { "in-use" };
    told(json!({
        "id": key(ResourceKind::Volume, format!("vol-{number:017x}")), "state": state, "attachments": attachments,
        "on_outpost": false, "tags": {"team": "omics"}, "size_gib": 100, "volume_type": "gp3",
    }))
}

/// Arrays of children, all over but the last, which runs for ten times as long; their arrays beside them.
fn jobs(count: usize, now: Timestamp) -> Vec<BatchJob> {
    let job = |id: String, facts: Value| -> BatchJob {
        let mut told_facts = json!({
            "id": key(ResourceKind::BatchJob, id), "queue": "arn:q", "depends_on": [], "resources": [], "tasks": [],
            "attempts": [], "tags": {},
        });
        let object = told_facts.as_object_mut().expect("an object");
        object.extend(facts.as_object().expect("an object").clone());
        told(told_facts)
    };
    let ago = |minutes: i64| (now - SignedDuration::from_mins(minutes)).to_string();
    let array = |number: usize| job(format!("a{number}"), json!({"status": "PENDING", "array": {"size": CHILDREN}}));
    let child = |number: usize| {
        let (parent, index) = (format!("a{}", number / CHILDREN), number % CHILDREN);
        let part = json!({"parent": parent, "index": index});
        let id = format!("{parent}:{index}");
        if index == CHILDREN - 1 {
            job(id, json!({"status": "RUNNING", "array": part, "started_at": ago(200)}))
        } else {
            job(id, json!({"status": "SUCCEEDED", "array": part, "started_at": ago(200), "stopped_at": ago(180)}))
        }
    };
    let mut all: Vec<BatchJob> = (0..count).map(child).chain((0..count / CHILDREN).map(array)).collect();
    all.sort_by(|one, other| one.id.cmp(&other.id));
    all
}

impl Scope {
    pub(crate) fn new(instances: usize, job_count: usize, now: Timestamp) -> (Self, Given) {
        let policy = StatePolicy::new(Policy::default());
        let timeline = Timeline::through(90, now.as_millisecond(), 1);
        let (mut listed, mut nodes, mut evidence, mut idle) = (Vec::new(), Vec::new(), Vec::new(), 0);
        for number in 1..=instances {
            let id = format!("aws:{ACCOUNT}:{REGION}:i-{number:017x}").parse().expect("a node id");
            let node = Node { id, number: u64::try_from(number).expect("a number") };
            let heartbeats = (1..=90).map(|at| node.heartbeat(at, timeline.ended(at, 0)));
            evidence.push(if node.is_idle() {
                let heartbeats = heartbeats.map(|heartbeat| (node.boot(), heartbeat)).collect();
                Evidence::Window(Box::new(Case::new(now.as_millisecond(), Policy::default(), heartbeats)))
            } else {
                let samples = heartbeats.map(|heartbeat| NodeSample::of(node.boot(), &heartbeat));
                let state = NodeState::of(samples.map(|sample| sample.expect("a whole heartbeat")), &policy);
                Evidence::State(Box::new(state.expect("a state")))
            });
            idle += usize::from(node.is_idle());
            listed.push(instance(key_of(&node.id), now));
            nodes.push(sweeper::identity::Node {
                node_id: node.id,
                hostname: "worker".into(),
                agent_version: "0.1.0".into(),
                joined_at: now,
                last_seen_at: Some(now),
                attestation: Attestation::None,
                binding: None,
                disputed: None,
                revoked_at: None,
                refused: None,
            });
        }
        let volumes: Vec<Volume> = (1..=instances).map(volume).collect();
        let kinds = [
            ResourceKind::Instance,
            ResourceKind::Volume,
            ResourceKind::Address,
            ResourceKind::BatchJob,
            ResourceKind::BatchJobQueue,
            ResourceKind::BatchComputeEnvironment,
            ResourceKind::EcsContainerInstance,
            ResourceKind::EcsTask,
        ];
        let inventory = Inventory {
            instances: listed,
            volumes,
            batch_jobs: jobs(job_count, now),
            listings: kinds.map(listing).into(),
            ..Inventory::default()
        };
        let given = Given { idle, unattached: instances / UNATTACHED, straggling: job_count / CHILDREN };
        let since = now - SignedDuration::from_hours(2);
        (Self { inventory, nodes, evidence, policy, since }, given)
    }

    /// The verdict on each node.
    pub(crate) fn judge(&self, now: Timestamp) -> Vec<(Case, Judgement)> {
        let judged = |evidence: &Evidence| match evidence {
            Evidence::State(state) => state.judge(now.as_millisecond(), &self.policy, None).expect("a judgement"),
            Evidence::Window(case) => ((**case).clone(), judge(case)),
        };
        self.evidence.iter().map(judged).collect()
    }

    pub(crate) fn snapshot(&self, judged: Vec<(Case, Judgement)>, now: Timestamp) -> Snapshot {
        let unknown = || Cost::Unknown { why: "not looked up".to_owned() };
        let mut judged: HashMap<ResourceKey, (Case, Judgement)> =
            self.nodes.iter().map(|node| key_of(&node.node_id)).zip(judged).collect();
        let machine = |subject: sweeper::snapshot::Subject| {
            let (case, judgement) = judged.remove(&subject.id).expect("a judgement of it");
            let presence = Presence {
                listed: subject.instance.as_ref().map(|instance| instance.state.clone()),
                coverage: Coverage::Complete,
                launched_at: subject.instance.as_ref().and_then(|instance| instance.launched_at),
                last_heard: subject.node.as_ref().and_then(|node| node.last_seen_at),
                gone_after_s: 7 * 86_400,
                silent_after_s: 3_600,
            };
            let inputs = MachineInputs {
                presence,
                case,
                metrics: None,
                hours: None,
                week: None,
                worker: None,
                failed: Vec::new(),
            };
            Machine { subject, inputs, judgement, cost: unknown(), provider: ProviderFacts::default() }
        };
        let machines: Vec<Machine> = join(&self.inventory, self.nodes.clone(), []).into_iter().map(machine).collect();
        let policy =
            LeftoverPolicy { unused_after_s: 3_600, stopped_after_s: 7 * 86_400, snapshot_after_s: 30 * 86_400 };
        let left = leftovers(&self.inventory, [], |_: &ResourceKey| Some(self.since), now, policy);
        let groups = groups(&self.inventory, &machines, [], now);
        let known = Known::of(&self.inventory);
        let batch = batch_resources(&self.inventory, &known, [], &BatchHistory::default(), now, POLICY);
        let inventory = self.inventory.clone();
        Snapshot {
            at: now,
            inventory,
            machines,
            leftovers: left,
            groups,
            batch,
            work: Vec::new(),
            prices: UnitPrices::default(),
        }
    }
}
