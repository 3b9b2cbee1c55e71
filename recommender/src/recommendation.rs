//! What is recommended: typed, with what it rests on, what it saves, what may go wrong and how it is undone.

use jiff::SignedDuration;
use model::{ResourceKey, Usd};
use serde::{Deserialize, Serialize};

use crate::{
    backtest::Replayed,
    catalogue::{Architecture, Saving, Worth},
    demand::{Demand, Observed},
    requests::{Request, Used},
    spare::Chosen,
    week::Off,
};

/// One recommendation for one resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recommendation {
    /// The resource.
    pub resource: ResourceKey,
    /// What would be changed.
    pub change: Change,
    /// What it rests on.
    pub evidence: Evidence,
    /// How sure it is.
    pub confidence: Confidence,
    /// What it saves; none if it is there to prevent failures.
    pub saving: Option<Saving>,
    /// What may go wrong.
    pub risks: Vec<Risk>,
    /// How it is undone.
    pub undo: Undo,
}

/// What would be changed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum Change {
    /// The machine becomes one of another type: it is stopped, modified and started.
    Rightsize {
        /// The present type.
        from: String,
        /// The other one.
        to: String,
    },
    /// A new machine of another architecture takes over.
    Architecture {
        /// The present type.
        from: String,
        /// The other one.
        to: String,
        /// Of this architecture.
        architecture: Architecture,
    },
    /// A copy of the machine takes over in another region.
    Region {
        /// The present one.
        from: String,
        /// The other one.
        to: String,
        /// In which zone of it.
        zone: String,
        /// Of the same type.
        machine_type: String,
    },
    /// It is off at these times of each week.
    Schedule {
        /// By the clock of this zone, as the IANA calls it.
        zone: String,
        /// When.
        off: Vec<Off>,
    },
    /// A compute environment of AWS Batch reserves fewer vCPUs.
    MinVcpus {
        /// The present `minvCpus`.
        from: u32,
        /// The other one.
        to: u32,
    },
    /// A job definition or task asks for something else.
    Request {
        /// Its name.
        of: String,
        /// What it asks for.
        from: Request,
        /// What it should ask for.
        to: Request,
    },
    /// It is started from these pools of spare capacity from then on.
    Spot {
        /// Which.
        pools: Vec<Chosen>,
    },
}

impl Change {
    /// The part of the resource that is changed, where several parts can be changed by themselves.
    #[must_use]
    pub fn part(&self) -> Option<&str> {
        match self {
            Self::Request { of, .. } => Some(of),
            Self::Rightsize { .. }
            | Self::Architecture { .. }
            | Self::Region { .. }
            | Self::Schedule { .. }
            | Self::MinVcpus { .. }
            | Self::Spot { .. } => None,
        }
    }
}

/// What a recommendation rests on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "evidence", rename_all = "snake_case")]
pub enum Evidence {
    /// What was needed, and the replay of the recorded history on the recommended type.
    Size {
        /// What was needed.
        demand: Box<Demand>,
        /// What the replay came to.
        replayed: Replayed,
    },
    /// The same as of a size, and what was executed.
    Programs {
        /// What was needed.
        demand: Box<Demand>,
        /// What the replay came to.
        replayed: Replayed,
        /// How many executables there were, all of them proven to run on Arm.
        executables: u32,
        /// So many of them were seen to.
        ran_on_arm: u32,
    },
    /// Traffic, which crosses between regions then.
    Traffic {
        /// How much was observed.
        observed: Observed,
        /// Bytes sent and received in that time.
        traffic: Traffic,
        /// What they would cost in a month.
        transfer_per_month: Usd,
    },
    /// When it was used, by the hour of the week.
    Weeks {
        /// In so many weeks it was seen.
        weeks: u8,
    },
    /// vCPUs that jobs had, hour by hour.
    Reserve {
        /// How much was observed.
        observed: Observed,
        /// Most vCPUs that were used.
        most: u32,
        /// In so many per cent of the hours more were used than are recommended, rounded up.
        hours_above_per_cent: u32,
    },
    /// Attempts at a job or task.
    Attempts {
        /// How much was observed.
        observed: Observed,
        /// What they used.
        used: Used,
    },
    /// Runs, and how long they took.
    Runs {
        /// How much was observed.
        observed: Observed,
        /// How many runs.
        runs: u32,
        /// The longest of them.
        longest: SignedDuration,
    },
}

/// What went over the network in the recorded time, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// Sent.
    pub sent: u64,
    /// Received.
    pub received: u64,
}

/// How sure a recommendation is: high without a doubt, medium with one or two, low with more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confidence {
    /// How high.
    pub level: Level,
    /// Why not higher.
    pub doubts: Vec<Doubt>,
}

/// How high a confidence is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Three doubts or more.
    Low,
    /// One or two.
    Medium,
    /// None.
    High,
}

/// What makes a recommendation less sure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "doubt", rename_all = "snake_case")]
pub enum Doubt {
    /// What comes once a month was perhaps not seen.
    #[error("only {days} days were observed: what comes once a month may not be among them")]
    FewDays {
        /// So many.
        days: u32,
    },
    /// Something was not seen.
    #[error("{hours} hours were not measured")]
    Gaps {
        /// So many.
        hours: u32,
    },
    /// Whether CPU time was short is known from its use alone.
    #[error("how long tasks waited for a CPU was not measured")]
    WaitsNotMeasured,
    /// What comes every other month was perhaps not seen.
    #[error("its use was seen in only {weeks} weeks")]
    FewWeeks {
        /// So many.
        weeks: u8,
    },
    /// When they start something is not known.
    #[error("{timers} timers or crontabs exist on it, which start nothing while it is off")]
    TimersExist {
        /// So many.
        timers: u32,
    },
    /// Nobody looked for them.
    #[error("whether timers or crontabs exist on it is not known: they start nothing while it is off")]
    TimersUnknown,
    /// The request for vCPUs stays as it is.
    #[error("how many cores its attempts used was not measured: its vCPUs stay as they are")]
    CoresNotMeasured,
    /// A core of one family is not one of another.
    #[error("the processor is another one: what a core of it does was compared by its clock alone")]
    OtherProcessor,
    /// What the bill would be lower by is not known.
    #[error("what covers the machine is not known ({why}): the bill may fall by less than the list price")]
    BillUnknown {
        /// Why not.
        why: String,
    },
}

/// Least days observed without a doubt.
const MANY_DAYS: u32 = 28;

impl Confidence {
    /// With these doubts.
    #[must_use]
    pub fn with(doubts: Vec<Doubt>) -> Self {
        let level = match doubts.len() {
            0 => Level::High,
            1 | 2 => Level::Medium,
            _ => Level::Low,
        };
        Self { level, doubts }
    }
}

/// The doubts that come with how much was observed, and with what is not known of the bill.
pub(crate) fn doubts_of(observed: Observed, saving: &Saving) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    if observed.days < MANY_DAYS {
        doubts.push(Doubt::FewDays { days: observed.days });
    }
    if observed.gaps > 0 {
        doubts.push(Doubt::Gaps { hours: observed.gaps });
    }
    if let Worth::Unknown(why) = &saving.effective_per_month {
        doubts.push(Doubt::BillUnknown { why: why.clone() });
    }
    doubts
}

/// What may go wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "risk", rename_all = "snake_case")]
pub enum Risk {
    /// The change needs a stop.
    #[error("the machine is stopped for some minutes: what runs on it ends, and what is in memory is lost")]
    Stopped,
    /// An address that is lent goes back.
    #[error("a public address that is not an elastic one becomes another one")]
    AddressChanges,
    /// The provider promises no place.
    #[error("the zone may have no {machine_type} free when the machine is to start again")]
    NoCapacity {
        /// Of which type.
        machine_type: String,
    },
    /// The future is not the past.
    #[error("work that needs more than was seen so far is slowed down, or ended where memory is short")]
    MoreNeeded,
    /// A burstable machine without credits is slow, or costs more.
    #[error(
        "the type is burstable: without credits it is slowed to its baseline or, where it was set to unlimited, costs more"
    )]
    Credits,
    /// Who finds it by an address finds it there no more.
    #[error("all its addresses become others, and whatever names them must follow")]
    AllAddressesChange,
    /// Outside its hours.
    #[error("whoever needs it outside these hours starts it, and waits for some minutes")]
    SomebodyWaits,
    /// At the hour at which it is to be there.
    #[error("the zone may have no machine of its type free at the hour at which it is to start")]
    NoCapacityInTime,
    /// Fewer stand ready.
    #[error("a job that finds no machine waits for some minutes until one has started")]
    JobsStartLater,
    /// Larger requests fill a machine earlier.
    #[error("fewer of them run on a machine at once")]
    FewerAtOnce,
    /// Another architecture needs another image.
    #[error(
        "it becomes a new machine from another image: what was set up by hand is not on it, and what runs once a year may lack a build"
    )]
    NewMachine,
    /// What is written while the copy is made is not in it.
    #[error("it must stand still while its disks are copied, which takes hours for large ones")]
    LongCopy,
    /// What it uses stays where it is.
    #[error("buckets, queues and databases that it uses stay where they are, and are further away")]
    UsesStay,
    /// Spare capacity is taken away.
    #[error("the provider takes the machine away within two minutes' notice whenever it needs it")]
    Interrupted,
    /// And its price changes.
    #[error("the price of spare capacity changes, and may come to be higher than in the last 30 days")]
    PriceRises,
    /// Shorter bursts than five minutes are averaged away.
    #[error("of the network and of disks the busiest five minutes are known, not the busiest second")]
    ShortBursts,
}

/// How a change is undone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "undo", rename_all = "snake_case")]
pub enum Undo {
    /// By the same change the other way round.
    #[error("stop the machine, make it a {machine_type} again, start it")]
    ChangeBack {
        /// The present type.
        machine_type: String,
    },
    /// The machine that it was copied from is kept, stopped, for a month.
    #[error(
        "stop the new machine and start the machine in {region} again, which is kept for a month with its disks; what was written since is on the new one alone"
    )]
    StartTheOldOne {
        /// The present region.
        region: String,
    },
    /// By the same setting.
    #[error("set minvCpus to {vcpus} again")]
    MinVcpus {
        /// The present one.
        vcpus: u32,
    },
    /// By the same request.
    #[error("let it ask for {request} again")]
    RequestAsBefore {
        /// The present one.
        request: Request,
    },
    /// It stays on.
    #[error("end the schedule: the machine is started and stays on")]
    EndSchedule,
    /// Start the next ones on demand.
    #[error("start it on demand again; what runs on spare capacity may end there")]
    OnDemandAgain,
}
