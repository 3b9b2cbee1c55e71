//! Random fleets through five days: machines that are started, stopped, tagged and listed, or not; agents and their hours; prices. Everything may be learnt late.

use super::super::{DAY_S, part_of};
use crate::{
    config::Config,
    inventory::{
        Failure, FailureKind, Instance, InstanceState, Inventory, Launched, LaunchedBy, Listing, Outcome, Scope, Trail,
        sample,
    },
    pricing::{PriceKey, ReadPrice},
    rollup::{Activity, Counter, Entry, Label, Resource, Rollup, Subject, Sum},
    store::{Store, TokenHash},
};
use heartbeat::{BootId, NodeId, api::JoinRequest};
use jiff::{SignedDuration, Timestamp};
use model::{HourlyRate, Provider, ResourceKind};
use rand::{Rng as _, rngs::StdRng, seq::IndexedRandom as _};
use std::collections::{BTreeMap, HashSet};

/// Days before today.
pub(super) const DAYS: i64 = 5;
const TYPES: [&str; 2] = ["m5.large", "m5.xlarge"];
const SOURCE: &str = "api";
const ACCOUNT: &str = "123456789012";
const REGIONS: [&str; 2] = ["us-east-1", "eu-west-1"];

/// What is true now of one machine.
#[derive(Clone, Debug)]
struct Truth {
    instance: Instance,
    is_there: bool,
}

/// A fleet, and how far its lists were read.
#[derive(Debug)]
pub(super) struct Fleet {
    pub(super) today_s: i64,
    machines: Vec<Truth>,
    nodes: Vec<NodeId>,
    listed_until_s: i64,
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a time")
}

fn scope(region: &str) -> Scope {
    Scope { provider: Provider::Aws, account: ACCOUNT.into(), region: region.into() }
}

impl Fleet {
    pub(super) fn new(random: &mut StdRng, now: Timestamp) -> Self {
        let today_s = now.as_second().div_euclid(DAY_S) * DAY_S;
        let from_s = today_s - DAYS * DAY_S;
        // Of two parts of all machines: what is right of a row is carried over while others of it are added up anew.
        let keys = (0..400).map(|number| {
            let region = REGIONS[number % REGIONS.len()];
            (region, format!("aws:{ACCOUNT}:{region}:i-{number:017x}"))
        });
        let keys: Vec<_> = keys.filter(|(_, key)| part_of(key) < 2).collect();
        let machines = keys.iter().take(random.random_range(2..6)).map(|(region, key)| {
            let instance = Instance {
                id: key.parse().expect("a key"),
                instance_type: Some((*TYPES.choose(random).expect("one")).to_owned()),
                launched_at: Some(at(from_s - random.random_range(0..DAY_S))),
                availability_zone: Some(format!("{region}a")),
                ..sample::instance()
            };
            Truth { instance, is_there: random.random_bool(0.8) }
        });
        let machines: Vec<Truth> = machines.collect();
        let mut nodes: Vec<NodeId> =
            machines.iter().map(|machine| machine.instance.id.to_string().parse().expect("an id")).collect();
        // On premises, and of a machine that no list has.
        nodes.extend(
            ["host:0123456789abcdef0123456789abcdef", "aws:210987654321:us-east-1:i-0123456789abcdef0"]
                .map(|id| id.parse().expect("an id")),
        );
        Self { today_s, machines, nodes, listed_until_s: from_s - 3_600 * random.random_range(0..12) }
    }

    /// Goes on to a moment: what happens, and what lists tell of it.
    pub(super) async fn go_on(&mut self, store: &Store, random: &mut StdRng, until_s: i64) {
        let mut at_s = self.listed_until_s + random.random_range(60..4 * 3_600);
        while at_s < until_s {
            for machine in &mut self.machines {
                change(machine, random, at_s);
            }
            for region in REGIONS {
                let is_complete = random.random_bool(0.85);
                let of_region = |machine: &&Truth| machine.is_there && machine.instance.id.location == region;
                let instances = self.machines.iter().filter(of_region).map(|machine| machine.instance.clone());
                let inventory = listed(region, instances.collect(), is_complete);
                store.record_inventory(&scope(region), &inventory, at(at_s)).await.expect("a history");
            }
            self.listed_until_s = at_s;
            at_s += random.random_range(60..8 * 3_600);
        }
    }

    /// Something that was not known before: prices that were in force, agents, their hours, who started what, or that hours are past their retention.
    pub(super) async fn learn(&self, store: &Store, random: &mut StdRng) {
        let from_s = self.today_s - DAYS * DAY_S;
        for machine in &self.machines {
            if let (true, Ok(key)) = (random.random_bool(0.5), PriceKey::of(&machine.instance)) {
                let per_hour = HourlyRate::from_micros(random.random_range(0..300_000));
                let price = ReadPrice { per_hour, source_rows: String::new() };
                let read_at = at(random.random_range(from_s - DAY_S..self.today_s));
                store.put_prices(SOURCE, &BTreeMap::from([(key, price)]), read_at).await.expect("a price");
            }
        }
        for node in &self.nodes {
            if random.random_bool(0.5) {
                let joined_at = at(random.random_range(from_s..self.today_s));
                let token = TokenHash::of(&format!("{node}{}", random.random::<u64>()));
                store.join_node(&join(node), &token, joined_at).await.expect("a node");
            }
            if random.random_bool(0.7) {
                let first = random.random_range(0..DAYS * 24 + 12);
                let mut hours = Vec::new();
                for hour in first..first + random.random_range(1..40) {
                    if random.random_bool(0.8) {
                        hours.push((at(from_s + hour * 3_600), rollup(random)));
                    }
                }
                store.put_hours(node, hours).await.expect("hours");
            }
        }
        if random.random_bool(0.2) {
            let before = at(from_s + 3_600 * random.random_range(0..30));
            store.delete_rollups_before(before).await.expect("deleted");
        }
        if random.random_bool(0.3) {
            let launched_by =
                LaunchedBy { principal: Some(format!("user-{}", random.random_range(0..3))), ..LaunchedBy::default() };
            let id = self.machines.choose(random).map(|machine| machine.instance.id.clone()).expect("one");
            let trail = Trail { from: at(from_s), until: at(self.today_s) };
            let launches = BTreeMap::from([(id.id.clone(), launched_by)]);
            let (scope, gone) = (scope(&id.location), HashSet::new());
            let put = store.put_launches(&scope, Launched::Machine, &launches, trail, &gone);
            put.await.expect("a launch");
        }
    }
}

/// What may become of a machine before it is listed again.
fn change(machine: &mut Truth, random: &mut StdRng, at_s: i64) {
    let instance = &mut machine.instance;
    match random.random_range(0..20) {
        0 => machine.is_there = !machine.is_there,
        1 | 2 => instance.state = InstanceState::Stopped,
        3..6 => {
            instance.state = InstanceState::Running;
            instance.launched_at = Some(at(at_s - random.random_range(0..7_200)));
        }
        6 | 7 => {
            instance.tags.insert("team".into(), format!("team-{}", random.random_range(0..3)));
        }
        8 => instance.instance_type = Some((*TYPES.choose(random).expect("one")).to_owned()),
        9 => instance.state = InstanceState::Pending,
        _ => {}
    }
}

fn listed(region: &str, instances: Vec<Instance>, is_complete: bool) -> Inventory {
    let scope = scope(region);
    if is_complete {
        let outcome = Outcome::Complete { listed: instances.len() };
        let listings = vec![Listing::of(&scope, ResourceKind::Instance, outcome)];
        return Inventory { instances, listings, ..Inventory::default() };
    }
    let why = Failure { kind: FailureKind::Throttled, message: String::new() };
    let outcome = Outcome::Failed { what: "ec2:DescribeInstances".into(), why };
    Inventory::failed(Listing::of(&scope, ResourceKind::Instance, outcome))
}

fn join(node: &NodeId) -> JoinRequest {
    let (hostname, agent_version) = (String::new(), String::new());
    JoinRequest { node_id: node.clone(), boot_id: boot(), hostname, agent_version, proof: None }
}

fn boot() -> BootId {
    "6f1c1c1e-0000-4000-8000-000000000001".parse().expect("a boot")
}

/// An hour of some runs and workloads, sometimes one that was measured in part or not at all.
fn rollup(random: &mut StdRng) -> Rollup {
    let ms = random.random_range(0..3_600_000_u64);
    let sum = |amount: u64| Sum(amount, ms);
    let activity = |most: u64, random: &mut StdRng| Activity {
        sums: [(Counter::Cpu, sum(random.random_range(0..=most)))].into(),
        resources: [(Resource::MemoryTime, sum(random.random_range(0..=most)))].into(),
        ..Activity::default()
    };
    let mut node = activity(1_000_000, random);
    node.resources.insert(Resource::CpuCapacity, sum(2_000_000));
    node.resources.insert(Resource::MemoryCapacity, sum(2_000_000));
    if random.random_bool(0.9) {
        node.resources.insert(Resource::GpuCapacity, sum(0));
    }
    let named = |what: &str, number: u64| Label { name: format!("{what}-{number}"), ..Label::default() };
    let entry = |subject: Subject, label: Label, random: &mut StdRng| Entry {
        subject,
        label,
        activity: activity(300_000, random),
    };
    let mut subjects = Vec::new();
    for number in 0..random.random_range(0..3_u64) {
        let class = ["workload", "housekeeping"].choose(random).expect("one");
        let subject = Subject::Workload { class: (*class).to_owned(), key: format!("/unit/{number}") };
        subjects.push(entry(subject, Label::default(), random));
        let run = format!("r{}", random.random_range(0..2));
        subjects.push(entry(Subject::Run { boot: boot(), run: run.clone() }, named("pipeline", number), random));
        let task = number;
        subjects.push(entry(Subject::Task { boot: boot(), run: run.clone(), task }, named("task", number % 2), random));
        let tool = format!("tool-{}", random.random_range(0..4));
        subjects.push(entry(Subject::Tool { boot: boot(), run, task, tool }, Label::default(), random));
    }
    let mut rollup = Rollup::default();
    (rollup.heartbeats, rollup.node, rollup.subjects) = (1, node, subjects);
    rollup
}

/// A configuration whose weights, teams or price of hosts may be others than before.
pub(super) fn config(random: &mut StdRng) -> Config {
    let mut config = Config::default();
    if random.random_bool(0.3) {
        config.costs.core_usd = "0.05".into();
    }
    if random.random_bool(0.5) {
        config.costs.account_teams.insert(ACCOUNT.into(), "platform".into());
    }
    if random.random_bool(0.7) {
        let usd = ["0.25", "0.5"].choose(random).expect("one");
        config.onprem.hourly_usd.insert("default".into(), (*usd).to_owned());
    }
    config
}

/// An hour of the last days, up to two hours ago.
pub(super) fn hour(fleet: &Fleet, random: &mut StdRng, now: Timestamp) -> Timestamp {
    let from_s = fleet.today_s - (DAYS + 1) * DAY_S;
    let latest_s = now.as_second().div_euclid(3_600) * 3_600 - 7_200;
    let hours = (latest_s - from_s) / 3_600;
    let back = random.random_range(0..=hours);
    at(latest_s) - SignedDuration::from_hours(back)
}
