//! A machine, what was observed of it, and what its zone offers: each as most tests want it, to be changed by the test.
//! Types and prices are those of `us-east-1` for Linux, so that a case can be computed by hand from the public pages.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use model::{
    HourlyRate, ResourceKey,
    machine::{AutoScaling, Ec2Facts, InstanceStore, Lifecycle, Machine, Protection, Root, Scheduler},
};
use recommender::{
    blocker::{Blocker, NotRecommended, Unfit},
    catalogue::{Accelerator, Architecture, Burst, Catalogue, Limits, MachineType, Offer, Platform, Prices, Rate},
    demand::{Demand, Flow, Hour, Record},
    fit::{Dimension, Misfit},
    policy::Policy,
    recommendation::{Change, Recommendation},
    rules::rightsize::{self, SizedMachine},
};

pub(crate) const GIB: u64 = 1 << 30;
/// A credit, in milliseconds of one vCPU.
pub(crate) const CREDIT_MS: u64 = 60_000;
/// Four weeks, in hours.
pub(crate) const WEEKS: u32 = 28 * 24;
/// A Monday.
pub(crate) const BEGIN: &str = "2026-10-05T00:00:00Z";

/// Bytes a second.
pub(crate) const fn mbit(megabits: u64) -> u64 {
    megabits * 125_000
}

pub(crate) fn ec2(machine_type: &str) -> Ec2Facts {
    Ec2Facts {
        account: "123456789012".into(),
        region: "us-east-1".into(),
        instance_id: "i-0123456789abcdef0".into(),
        name: Some("align-7".into()),
        instance_type: Some(machine_type.into()),
        state: Some("running".into()),
        launched_at: "2026-10-01T06:30:00Z".parse().ok(),
        lifecycle: Lifecycle::OnDemand,
        capacity_reservation: None,
        root: Root::Ebs,
        instance_store: InstanceStore::Absent,
        hibernates: None,
        volumes: vec!["vol-root".into()],
        public_ipv4: Vec::new(),
        tags: Some(BTreeMap::new()),
        autoscaling: AutoScaling::NotListed,
        scheduler: Scheduler::NotListed,
        operator: None,
        protection: Protection::Off,
    }
}

/// What was quiet for an hour: a tenth of a core, 2 GiB, 1 MB a second, nothing short.
pub(crate) fn quiet(begin: Timestamp) -> Hour {
    Hour {
        milli_cores: [(100, 3_600_000)].into_iter().collect(),
        memory_peak_bytes: Some(2 * GIB),
        run_queue_delay_ms: Some(0),
        throttled_ms: Some(0),
        steal_ms: Some(0),
        oom_kills: Some(0),
        swap_pages: Some(0),
        network: Some(Flow { mean: 1_000_000, peak: 1_000_000 }),
        disk: Some(Flow { mean: 1_000_000, peak: 1_000_000 }),
        disk_operations: Some(Flow { mean: 100, peak: 100 }),
        rdma_bytes: Some(0),
        ..Hour::unmeasured(begin)
    }
}

/// So many hours from the begin on; each is quiet but for what `change` makes of it.
pub(crate) fn record(hours: u32, change: impl Fn(u32, &mut Hour)) -> Record {
    let begin: Timestamp = BEGIN.parse().expect("a time");
    let hour = |at: u32| {
        let mut hour = quiet(begin + SignedDuration::from_hours(at.into()));
        change(at, &mut hour);
        hour
    };
    Record { earlier: Vec::new(), hours: (0..hours).map(hour).collect(), stopped: Vec::new(), zone: TimeZone::UTC }
}

/// Levels of so many thousandths of a core for so many minutes of an hour, and none for what is left of it.
pub(crate) fn minutes_at(minutes: u64, milli_cores: u64) -> recommender::demand::Levels {
    [(milli_cores, minutes * 60_000), (0, (60 - minutes) * 60_000)].into_iter().collect()
}

pub(crate) fn price(micros: i64) -> Prices {
    let rate = Rate::Known(HourlyRate::from_micros(micros));
    Prices { list: rate.clone(), effective: rate }
}

/// Name, vCPUs, GiB, list price in micro-dollars; network and disk in Mbit/s, operations, each as baseline and burst; interfaces.
type Row = (&'static str, u32, u64, i64, [u64; 2], [u64; 2], [u64; 2], u32);

const ROWS: [Row; 7] = [
    ("m5.large", 2, 8, 96_000, [750, 10_000], [650, 4_750], [3_600, 18_750], 3),
    ("m5.xlarge", 4, 16, 192_000, [1_250, 10_000], [1_150, 4_750], [6_000, 18_750], 4),
    ("m5.2xlarge", 8, 32, 384_000, [2_500, 10_000], [2_300, 4_750], [12_000, 18_750], 4),
    ("m5.4xlarge", 16, 64, 768_000, [5_000, 10_000], [4_750, 4_750], [18_750, 18_750], 8),
    ("r5.xlarge", 4, 32, 252_000, [1_250, 10_000], [1_150, 4_750], [6_000, 18_750], 4),
    ("t3.large", 2, 8, 83_200, [512, 5_000], [695, 2_780], [4_000, 15_700], 3),
    ("t3.xlarge", 4, 16, 166_400, [1_024, 5_000], [695, 2_780], [4_000, 15_700], 4),
];

/// Baseline in thousandths of a core over all vCPUs, and most credits.
const BURSTABLE: [(&str, u64, u64); 2] = [("t3.large", 600, 864), ("t3.xlarge", 1_600, 2_304)];

fn limits([baseline, burst]: [u64; 2], unit: impl Fn(u64) -> u64) -> Limits {
    Limits { baseline: Some(unit(baseline)), burst: Some(unit(burst)) }
}

fn offer((name, vcpus, gib, micros, network, disk, operations, interfaces): &Row) -> Offer {
    let burstable = BURSTABLE.iter().find(|(burstable, ..)| burstable == name);
    let burst = burstable.map_or(Burst::Steady, |(_, baseline_milli_cores, credits)| Burst::Credits {
        baseline_milli_cores: *baseline_milli_cores,
        most_kept_ms: credits * CREDIT_MS,
    });
    let machine_type = MachineType {
        name: (*name).to_owned(),
        family: name.split('.').next().unwrap_or(name).to_owned(),
        architecture: Architecture::X86_64,
        platform: Platform::Hypervisor("nitro".to_owned()),
        vcpus: *vcpus,
        threads_per_core: Some(2),
        mhz: Some(3_100),
        memory_mib: gib * 1_024,
        accelerators: Some(Vec::new()),
        local_disk_gib: Some(0),
        burst,
        network: limits(*network, mbit),
        disk: limits(*disk, mbit),
        disk_operations: limits(*operations, |operations| operations),
        interfaces: Some(*interfaces),
    };
    Offer { machine_type, prices: price(*micros) }
}

pub(crate) fn catalogue() -> Catalogue {
    Catalogue {
        region: "us-east-1".to_owned(),
        zone: "us-east-1a".to_owned(),
        offers: ROWS.iter().map(offer).collect(),
    }
}

pub(crate) fn gpus(count: u32) -> Option<Vec<Accelerator>> {
    Some(vec![Accelerator { model: "NVIDIA T4".to_owned(), count }])
}

/// What a test changes.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) resource: ResourceKey,
    pub(crate) machine: Machine,
    pub(crate) interfaces: Option<u32>,
    pub(crate) record: Record,
    pub(crate) catalogue: Catalogue,
    pub(crate) policy: Policy,
}

impl Case {
    /// A machine of this type, with all of its vCPUs, that did this, and all that its zone offers.
    pub(crate) fn of(machine_type: &str, mut record: Record) -> Self {
        let catalogue = catalogue();
        let vcpus = catalogue.offer(machine_type).map(|offer| offer.machine_type.vcpus);
        record.hours.iter_mut().for_each(|hour| hour.cpus = vcpus);
        Self {
            resource: "aws:123456789012:us-east-1:i-0123456789abcdef0".parse().expect("a key"),
            machine: Machine::Ec2(Box::new(ec2(machine_type))),
            interfaces: Some(1),
            record,
            catalogue,
            policy: Policy::default(),
        }
    }

    /// The same with only these types on offer.
    pub(crate) fn offering(mut self, names: &[&str]) -> Self {
        self.catalogue.offers.retain(|offer| names.contains(&offer.machine_type.name.as_str()));
        self
    }

    /// The type of this name, to be changed.
    pub(crate) fn offer(&mut self, name: &str) -> &mut Offer {
        self.catalogue.offers.iter_mut().find(|offer| offer.machine_type.name == name).expect("an offer")
    }

    /// What EC2 says, to be changed.
    pub(crate) fn facts(&mut self) -> &mut Ec2Facts {
        match &mut self.machine {
            Machine::Ec2(facts) => facts,
            other => panic!("{other:?} is no EC2 instance"),
        }
    }

    /// Hands what the rules take to one of them.
    pub(crate) fn sized<T>(&self, rule: impl FnOnce(&SizedMachine<'_>, &Policy) -> T) -> T {
        let demand = Demand::of(&self.record);
        let Self { resource, machine, interfaces, record, catalogue, policy } = self;
        let of = SizedMachine { resource, machine, interfaces: *interfaces, record, demand: &demand, catalogue };
        rule(&of, policy)
    }
}

/// What the rule *rightsize* says.
pub(crate) fn judged(case: &Case) -> Result<Recommendation, NotRecommended> {
    case.sized(rightsize::recommend)
}

/// The type that it recommends.
pub(crate) fn to(case: &Case) -> String {
    match judged(case).unwrap().change {
        Change::Rightsize { to, .. } => to,
        other => panic!("{other:?}"),
    }
}

/// Why it does not recommend this type, nor any other.
pub(crate) fn why_not(case: &Case, name: &str) -> Unfit {
    let refused = judged(case).unwrap_err();
    let considered = refused.considered.iter().find(|considered| considered.machine_type == name);
    considered.unwrap_or_else(|| panic!("{name} was not considered: {refused:?}")).why_not.clone()
}

/// Why it recommends nothing.
pub(crate) fn blockers(case: &Case) -> Vec<Blocker> {
    judged(case).unwrap_err().blockers
}

/// A type is too small.
pub(crate) fn too_small(what: Dimension, needed: u64, usable: u64) -> Unfit {
    Unfit::Misfit(Misfit::TooSmall { what, needed, usable })
}
