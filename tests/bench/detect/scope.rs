//! A scope on paper.

use crate::made_up::{Node, Timeline};
use heartbeat::{BootId, wire};
use jiff::{SignedDuration, Timestamp};
use model::{Provider, ResourceKey, ResourceKind};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use sweeper::{
    identity::Attestation,
    inventory::{
        AutoScalingGroup, BatchJob, Instance, InstanceState, InstanceStore, Inventory, Kind, Lifecycle, Listing,
        Member, Outcome, RootDevice, Tenancy, Upkeep, Volume, key_of,
    },
    pricing::{Cost, UnitPrices},
    snapshot::{
        BatchHistory, BatchPolicy, Coverage, Known, LeftoverPolicy, Machine, MachineInputs, Presence, ProviderFacts,
        Snapshot, Work, batch_resources, groups, join, key_of_task, leftovers,
    },
    verdict::{
        Case, Judgement, NodeSample, NodeState, Policy, StatePolicy, judge,
        work::{Contract, WorkCase, WorkPolicy},
    },
};

const ACCOUNT: &str = "123456789012";
const REGION: &str = "us-east-1";
/// Every tenth volume is attached to nothing.
const UNATTACHED: usize = 10;
/// Children of one array, the last of which straggles.
const CHILDREN: usize = 50;
/// Machines of one Auto Scaling group: either all idle, or all at work.
const MEMBERS: usize = 10;
/// Every tenth task of a run is stuck.
const STUCK: usize = 10;
const POLICY: BatchPolicy = BatchPolicy {
    blocked_after_s: 3_600,
    starting_after_s: 1_800,
    lost_after_s: 600,
    straggling_after_s: 3_600,
    held_after_s: 3_600,
    orphaned_after_s: 1_800,
};

/// What was put in and is to be found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Given {
    pub(crate) idle: usize,
    pub(crate) unattached: usize,
    pub(crate) straggling: usize,
    pub(crate) idle_groups: usize,
    pub(crate) stuck: usize,
}

impl Given {
    /// By class.
    pub(crate) fn expected(self) -> BTreeMap<&'static str, usize> {
        let all = [
            ("idle_node", self.idle),
            ("unattached_volume", self.unattached),
            ("straggling_job", self.straggling),
            ("idle_group", self.idle_groups),
            ("stuck_job", self.stuck),
        ];
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
    /// Tasks of runs, each on a machine that works.
    tasks: Vec<WorkCase>,
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

/// A group of these machines, which it keeps up.
fn group(number: usize, members: &[ResourceKey]) -> AutoScalingGroup {
    let member = |key: &ResourceKey| Member {
        instance_id: key.id.clone(),
        lifecycle_state: Some("InService".into()),
        health: Some("Healthy".into()),
        protected_from_scale_in: Some(false),
        zone: None,
        weight: None,
    };
    AutoScalingGroup {
        id: key(ResourceKind::AutoScalingGroup, format!("group-{number}")),
        arn: None,
        min_size: Some(0),
        max_size: Some(100),
        desired_capacity: u32::try_from(members.len()).ok(),
        launch: None,
        members: Some(members.iter().map(member).collect()),
        tags: [].into(),
        upkeep: Upkeep::default(),
    }
}

/// A task of a run that has used so much CPU time by the end of a window of half an hour.
fn task(cpu_ns: u64, now: Timestamp) -> WorkCase {
    let row = |cpu_ns| wire::WorkloadActivity {
        class: wire::Class::Workload.into(),
        key: "/user.slice/session-1.scope".into(),
        live_processes: 1,
        live_threads: 1,
        cpu_ns: Some(cpu_ns),
        forks: Some(1),
        execs: Some(1),
        exits: Some(1),
        voluntary_switches: Some(1),
        involuntary_switches: Some(1),
        peers: Some(0),
        ..wire::WorkloadActivity::default()
    };
    let heartbeat = |minute: u64, cpu_ns| {
        let task = wire::Task { id: 1, name: "align".into(), activity: Some(row(cpu_ns)), ..wire::Task::default() };
        let run = wire::Run {
            id: "1-1".into(),
            engine: "snakemake".into(),
            workload: row(0).key,
            activity: Some(row(cpu_ns)),
            tasks: vec![task],
            ..wire::Run::default()
        };
        let ago = SignedDuration::from_mins(40 - i64::try_from(minute).expect("minutes"));
        let heartbeat = wire::Heartbeat {
            sequence: minute * 2,
            interval: Some(wire::Interval {
                end_unix_ms: (now - ago).as_millisecond(),
                end_boottime_ns: minute * 60_000_000_000,
                ..wire::Interval::default()
            }),
            host: Some(wire::Host { interval_ms: 30_000, ..wire::Host::default() }),
            counters: Some(wire::HostCounters::default()),
            coverage: Some(wire::Coverage { source: wire::Source::Ebpf.into(), ..wire::Coverage::default() }),
            workloads: vec![row(cpu_ns)],
            runs: vec![run],
            ..wire::Heartbeat::default()
        };
        (BootId(uuid::Uuid::from_u128(7)), heartbeat)
    };
    let (begin, end) = (heartbeat(9, 0), heartbeat(40, cpu_ns));
    let contract = Contract::open_tasks(&end.1).next().expect("an open task");
    WorkCase::new(now.as_millisecond(), WorkPolicy::default(), contract, [Some(&begin), Some(&end)], None)
}

impl Scope {
    pub(crate) fn new(instances: usize, job_count: usize, now: Timestamp) -> (Self, Given) {
        let policy = StatePolicy::new(Policy::default());
        let timeline = Timeline::through(90, now.as_millisecond(), 1);
        let (mut listed, mut nodes, mut evidence, mut idle) = (Vec::new(), Vec::new(), Vec::new(), 0);
        let mut in_groups = [Vec::new(), Vec::new()];
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
            in_groups[usize::from(node.is_idle())].push(key_of(&node.id));
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
            ResourceKind::AutoScalingGroup,
            ResourceKind::BatchJob,
            ResourceKind::BatchJobQueue,
            ResourceKind::BatchComputeEnvironment,
            ResourceKind::EcsContainerInstance,
            ResourceKind::EcsTask,
        ];
        let members = in_groups.iter().flat_map(|keys| keys.chunks(MEMBERS));
        let inventory = Inventory {
            instances: listed,
            volumes,
            autoscaling_groups: members.enumerate().map(|(number, members)| group(number, members)).collect(),
            batch_jobs: jobs(job_count, now),
            listings: kinds.map(listing).into(),
            ..Inventory::default()
        };
        let [stuck, works] = [0, 9_000_000_000].map(|cpu_ns| task(cpu_ns, now));
        let one = |number: usize| if number.is_multiple_of(STUCK) { stuck.clone() } else { works.clone() };
        let tasks: Vec<_> = (0..job_count).map(one).collect();
        let given = Given {
            idle,
            unattached: instances / UNATTACHED,
            straggling: job_count / CHILDREN,
            idle_groups: idle.div_ceil(MEMBERS),
            stuck: job_count.div_ceil(STUCK),
        };
        let since = now - SignedDuration::from_hours(2);
        (Self { inventory, nodes, evidence, policy, tasks, since }, given)
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
            let inputs = MachineInputs::new(presence, case);
            Machine { subject, inputs, judgement, cost: unknown(), provider: ProviderFacts::default() }
        };
        let machines: Vec<Machine> = join(&self.inventory, self.nodes.clone(), []).into_iter().map(machine).collect();
        let policy =
            LeftoverPolicy { unused_after_s: 3_600, stopped_after_s: 7 * 86_400, snapshot_after_s: 30 * 86_400 };
        let left = leftovers(&self.inventory, [], |_: &ResourceKey| Some(self.since), now, policy);
        let groups = groups(&self.inventory, &machines, &[], [], now);
        let known = Known::of(&self.inventory);
        let batch = batch_resources(&self.inventory, &known, [], &BatchHistory::default(), now, POLICY);
        let task = |(number, case): (usize, &WorkCase)| {
            let machine = &machines[number % machines.len()];
            let id = key_of_task(&machine.subject.id, &format!("1-1/{number}"));
            Work::judged(id, (&machine.subject.id, Some(machine)), (&self.inventory, &known), now, case.clone())
        };
        let work = self.tasks.iter().enumerate().map(task).collect();
        let inventory = self.inventory.clone();
        Snapshot {
            at: now,
            inventory,
            machines,
            leftovers: left,
            groups,
            batch,
            submitted_by: [].into(),
            work,
            prices: UnitPrices::default(),
        }
    }
}
