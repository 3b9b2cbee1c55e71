//! Every reason to recommend nothing, in plain words.

use guards::Refusal;
use jiff::Timestamp;
use model::{Usd, machine::Machine};
use serde::{Deserialize, Serialize};

use crate::{
    backtest::Failure,
    catalogue::{Architecture, MachineType, Saving},
    demand::{Cpus, Demand, Observed},
    executables::AllUnproven,
    fit::Misfit,
    policy::Policy,
    requests::Request,
    spare::{Band, StateSign},
};

/// Why nothing is recommended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "blocker", rename_all = "snake_case")]
pub enum Blocker {
    /// Too little was observed.
    #[error("too early to say: {} days were observed with {} % gaps, {} weekend among them; it takes 7 days with a weekend and 5 % gaps at most",
        .observed.days, .observed.gaps_per_cent(), if .observed.weekend { "a" } else { "no whole" })]
    TooEarly {
        /// So much.
        observed: Observed,
    },
    /// The agent did not measure it, or not in 95 % of the hours.
    #[error("{what} was not measured")]
    NotMeasured {
        /// What.
        what: String,
    },
    /// A guard stands before the stop that the change needs.
    #[error("it cannot be stopped for the change: {by}")]
    Guarded {
        /// What that one says.
        by: Refusal,
    },
    /// Nobody sells other types of it.
    #[error("the machine is on premises: there is no other type to change to")]
    OnPrem,
    /// Its provider's machines are not known to this version.
    #[error("nothing is recommended yet for machines of {provider}")]
    ProviderNotKnown {
        /// What it is called.
        provider: String,
    },
    /// What something is rests on a fact that nobody told.
    #[error("{fact} is not known")]
    FactUnknown {
        /// Which fact.
        fact: String,
    },
    /// It is not in the catalogue, so neither what it can do nor what it costs is known.
    #[error("the type {machine_type} is not in the list of what {zone} offers")]
    NotOffered {
        /// Which type.
        machine_type: String,
        /// In which zone.
        zone: String,
    },
    /// Somebody chose another number of CPUs at its start, so that what a vCPU of it does is not what the catalogue says.
    #[error(
        "it ran with {} CPUs, and its type {machine_type} has {vcpus} vCPUs: what it was set up with is not weighed against another type", cpus_of(*.cpus)
    )]
    OtherCpus {
        /// It had so many.
        cpus: Cpus,
        /// Its type.
        machine_type: String,
        /// So many has the type.
        vcpus: u32,
    },
    /// A price without which the saving is not known.
    #[error("what it saves is not known: {why}")]
    PriceUnknown {
        /// Why not.
        why: String,
    },
    /// The disks of the host lose what they hold.
    #[error("it has disks of its host, of {gib} GiB, and what they hold is lost when it stops")]
    LocalDisks {
        /// So large.
        gib: u64,
    },
    /// It exchanges data past the sockets, which not every type can.
    #[error("it moved {bytes} bytes by RDMA, which not every type can")]
    Rdma {
        /// So many.
        bytes: u64,
    },
    /// No type that costs less can take over.
    #[error("none of the types that {zone} offers costs less and can take over")]
    NothingFits {
        /// In which zone.
        zone: String,
    },
    /// It would save too little for the work that it makes.
    #[error("it would save {} a month, less than the {} that are worth a change", .saving.in_cents(), .least.in_cents())]
    SavesTooLittle {
        /// In a month.
        saving: Usd,
        /// Least.
        least: Usd,
    },
    /// A reservation or savings plan is paid in any case.
    #[error("by list prices it would save {} a month, but by the bill {}: what covers it is paid in any case", .list.in_cents(), .effective.in_cents())]
    Covered {
        /// At list prices.
        list: Usd,
        /// What the bill would be lower by.
        effective: Usd,
    },
    /// It is spare capacity already, or paid in advance.
    #[error("it is not bought on demand")]
    NotOnDemand,
    /// What it holds would be lost, or somebody would miss it.
    #[error("it holds state: {}", .signs.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    HoldsState {
        /// What shows it.
        signs: Vec<StateSign>,
    },
    /// What is interrupted would stay undone.
    #[error("what is lost of its runs is not begun again by itself")]
    NotRetried,
    /// What ran beside its runs is not known.
    #[error("only {per_cent} % of its CPU time was of runs whose lengths are known")]
    WorkOutsideRuns {
        /// So much was.
        per_cent: u8,
    },
    /// How long runs take, or what they need, is known of too few of them.
    #[error("{runs} runs were seen, and it takes {least}")]
    TooFewRuns {
        /// So many were.
        runs: u32,
        /// So many are needed.
        least: u32,
    },
    /// Of a pool of spare capacity.
    #[error("machines of this pool are taken away too often for these runs, or nobody told how often ({band:?})")]
    InterruptedTooOften {
        /// How often.
        band: Band,
    },
    /// Only what runs on x86-64 is asked whether it could run on Arm.
    #[error("it is of {is}, and not of x86_64")]
    NotX86 {
        /// What it is.
        is: Architecture,
    },
    /// What ran on it may not run on Arm.
    #[error("not proven to run on Arm: {unproven}")]
    NotProvenForArm {
        /// What, and why not.
        unproven: AllUnproven,
    },
    /// Too little was seen of each hour of the week.
    #[error("its use was seen in {weeks} weeks, and it takes {least}")]
    TooFewWeeks {
        /// In so many it was.
        weeks: u8,
        /// So many are needed.
        least: u8,
    },
    /// There is nothing to start it for: it is a case for a stop.
    #[error("it was not used at all: it needs no schedule, but a stop")]
    NeverUsed,
    /// It is used at all times, or at others in each week.
    #[error("there is no span of {hours} hours of the week in which it was never used")]
    AlwaysNeeded {
        /// Shortest span that is worth a stop.
        hours: u8,
    },
    /// A schedule would have been in the way of work.
    #[error(
        "it is used at irregular times: a schedule made from all other weeks would have had it off at {at}, when it was used"
    )]
    Irregular {
        /// When.
        at: Timestamp,
    },
    /// Its `minvCpus` is 0.
    #[error("it keeps no vCPUs that nothing uses: its minvCpus is 0")]
    NothingReserved,
    /// Jobs use what it reserves.
    #[error("in {per_cent} % of the hours jobs had all {vcpus} vCPUs that it reserves")]
    ReserveIsUsed {
        /// So many are reserved.
        vcpus: u32,
        /// In so many per cent of the hours all of them are used, rounded up.
        per_cent: u32,
    },
    /// With the headroom nothing less would do.
    #[error("what it asks for, {request}, is needed")]
    RequestIsNeeded {
        /// The request.
        request: Request,
    },
    /// Of a task.
    #[error(
        "its threads were blocked on storage for only {blocked_per_cent} % of the time in which they were so or had a CPU, or for less than a quarter of its time"
    )]
    DoesNotWaitForDisks {
        /// So many, rounded down.
        blocked_per_cent: u32,
    },
    /// Of a task.
    #[error("there is no day from which on it took clearly longer than before")]
    NotSlower,
    /// In none of those that were asked about.
    #[error("no other region that was asked about would do and save enough")]
    NoRegion,
    /// Where its data may be does not include it.
    #[error("its data may not be in {region}")]
    NotAllowedThere {
        /// In which region.
        region: String,
    },
    /// Whoever talks with it would wait for too long.
    #[error("{region} is {ms} ms away from those who talk with it, and {most} may be")]
    TooFar {
        /// Which region.
        region: String,
        /// How far, there and back.
        ms: u32,
        /// How far it may be.
        most: u32,
    },
    /// What it sends and receives would cost more than it saves.
    #[error("the bytes that it was seen to send and receive would cost {} a month, and all that it saves besides is {}", .transfer.in_cents(), .saving.in_cents())]
    TransferCostsMore {
        /// In a month.
        transfer: Usd,
        /// Without it.
        saving: Usd,
    },
    /// What the change itself costs is not saved again soon enough.
    #[error("the change costs {} once, and saves {} a month: that is not paid back in {months} months", .once.in_cents(), .saving.in_cents())]
    PaysBackLate {
        /// Once.
        once: Usd,
        /// In a month.
        saving: Usd,
        /// In so many months it should be.
        months: u8,
    },
    /// With few pools all machines go at once.
    #[error("{found} pools of spare capacity fit and save enough, and it takes {least}")]
    TooFewPools {
        /// So many do.
        found: u8,
        /// So many are needed.
        least: u8,
    },
}

/// Why one type is not recommended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Unfit {
    /// By what was needed altogether.
    #[error(transparent)]
    Misfit(Misfit),
    /// By what happened in one hour.
    #[error(transparent)]
    Failed(Failure),
    /// It fits, and is worth nothing.
    #[error(transparent)]
    NotWorthIt(Box<Blocker>),
}

/// A type that costs less and is not recommended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Considered {
    /// Which.
    pub machine_type: String,
    /// Why not.
    pub why_not: Unfit,
}

/// Why a rule recommends nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotRecommended {
    /// All reasons that are known, the most fundamental first; at least one.
    pub blockers: Vec<Blocker>,
    /// Types that were considered and cost less, those that are nearest to the present price last; 12 at most.
    pub considered: Vec<Considered>,
}

/// So many types are named of those that were considered.
const CONSIDERED: usize = 12;

impl From<Blocker> for NotRecommended {
    fn from(blocker: Blocker) -> Self {
        Self { blockers: vec![blocker], considered: Vec::new() }
    }
}

impl NotRecommended {
    /// Nothing if there is no blocker.
    ///
    /// # Errors
    /// All of them.
    pub(crate) fn unless_free(blockers: Vec<Blocker>) -> Result<(), Self> {
        if blockers.is_empty() { Ok(()) } else { Err(Self { blockers, considered: Vec::new() }) }
    }
}

/// The last of them, of which there are enough to tell what was considered.
pub(crate) fn nearest(mut considered: Vec<Considered>) -> Vec<Considered> {
    considered.split_off(considered.len().saturating_sub(CONSIDERED))
}

/// Whether something is worth a person's time.
///
/// # Errors
/// [`Blocker::SavesTooLittle`], or [`Blocker::Covered`] where it is the bill that would not fall.
pub(crate) fn worth_it(saving: &Saving, policy: &Policy) -> Result<(), Blocker> {
    let (list, surely) = (saving.list_per_month, saving.surely());
    if surely > Usd::from_micros(0) && surely >= policy.least_saving {
        return Ok(());
    }
    Err(match list >= policy.least_saving && list > Usd::from_micros(0) {
        true => Blocker::Covered { list, effective: surely },
        false => Blocker::SavesTooLittle { saving: surely, least: policy.least_saving },
    })
}

/// Whether what a change costs once is saved again soon enough.
///
/// # Errors
/// [`Blocker::PaysBackLate`].
pub(crate) fn pays_back(saving: &Saving, policy: &Policy) -> Result<(), Blocker> {
    let months = policy.pays_back_in_months;
    let (once, saving) = (saving.once, saving.surely());
    let paid_back = i128::from(saving.micros()) * i128::from(months) >= i128::from(once.micros());
    if paid_back { Ok(()) } else { Err(Blocker::PaysBackLate { once, saving, months }) }
}

/// What keeps a machine from being stopped, changed and started again.
pub(crate) fn of_machine(machine: &Machine) -> Option<Blocker> {
    match machine {
        Machine::OnPrem => Some(Blocker::OnPrem),
        Machine::NotKnown(provider) => Some(Blocker::ProviderNotKnown { provider: provider.clone() }),
        Machine::Ec2(facts) => guards::may_stop(facts).err().map(|by| Blocker::Guarded { by }),
        // It has no prices to be held against, and nothing of it is changed.
        Machine::ComputeEngine(_) => Some(Blocker::ProviderNotKnown { provider: "Google Cloud".to_owned() }),
    }
}

fn cpus_of(Cpus { fewest, most }: Cpus) -> String {
    if fewest == most { most.to_string() } else { format!("{fewest} to {most}") }
}

/// What says that the machine has other CPUs than its type, or that nobody knows. With hyper-threading off half as many are whole cores.
pub(crate) fn of_cpus(demand: &Demand, machine_type: &MachineType) -> Option<Blocker> {
    let Some(cpus) = demand.cpus else {
        return Some(Blocker::NotMeasured { what: "the number of its CPUs".to_owned() });
    };
    let vcpus = machine_type.vcpus;
    let is_other = cpus.fewest != vcpus || cpus.most != vcpus;
    is_other.then(|| Blocker::OtherCpus { cpus, machine_type: machine_type.name.clone(), vcpus })
}

/// What a stop takes from a machine of this type for good.
pub(crate) fn of_type(machine_type: &MachineType) -> Option<Blocker> {
    match machine_type.local_disk_gib {
        None => Some(Blocker::FactUnknown { fact: format!("whether a {} has disks of its host", machine_type.name) }),
        Some(0) => None,
        Some(gib) => Some(Blocker::LocalDisks { gib }),
    }
}
