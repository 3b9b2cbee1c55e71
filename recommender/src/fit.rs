//! Whether a type can take over what another one did.
//!
//! A type fits if and only if it has the wanted architecture, the same platform and the same accelerators, and in each dimension either offers no less than the
//! present type, or more than was needed of it by the headroom. A dimension in which it offers less must have been measured, and nothing may say that the
//! measurement is too low: a machine that was short of memory or of CPU time shows less than it needed.

use serde::{Deserialize, Serialize};

use crate::{
    catalogue::{Architecture, Burst, Limits, MachineType},
    demand::{Demand, Flow},
    policy::Policy,
};

/// More tasks that had no CPU in the worst hour, in thousandths for each vCPU, say that CPU time was short.
pub const MOST_WAITING: u64 = 100;
/// More CPU time that was withheld in the worst hour, by a limit or by the hypervisor, in thousandths of each vCPU, says so, too.
pub const MOST_WITHHELD: u64 = 10;

/// In what a machine can be too small.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Dimension {
    /// Thousandths of a core.
    #[error("CPU, in thousandths of a core")]
    Cpu,
    /// Thousandths of a core that a burstable type may use all of the time.
    #[error("CPU below the baseline, in thousandths of a core")]
    Baseline,
    /// Credits of a burstable type, in milliseconds of one vCPU.
    #[error("CPU credits, in milliseconds of a vCPU")]
    Credits,
    /// Bytes.
    #[error("memory, in bytes")]
    Memory,
    /// Bytes a second, all of the time.
    #[error("network, in bytes a second")]
    Network,
    /// Bytes a second, for some minutes.
    #[error("network for some minutes, in bytes a second")]
    NetworkBurst,
    /// Bytes a second, all of the time.
    #[error("disk, in bytes a second")]
    Disk,
    /// Bytes a second, for some minutes.
    #[error("disk for some minutes, in bytes a second")]
    DiskBurst,
    /// Operations a second, all of the time.
    #[error("disk operations a second")]
    Operations,
    /// Operations a second, for some minutes.
    #[error("disk operations a second for some minutes")]
    OperationsBurst,
    /// Disks of the host, in GiB.
    #[error("disks of its host, in GiB")]
    LocalDisk,
    /// Network interfaces.
    #[error("network interfaces")]
    Interfaces,
}

/// What says that more was needed than was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Shortage {
    /// Of memory.
    #[error("the out-of-memory killer ended {0} of its processes")]
    OomKills(u64),
    /// Of memory.
    #[error("{0} pages were moved to or from swap")]
    Swapped(u64),
    /// Of CPU time.
    #[error("in its worst hour {0} thousandths of a task had no CPU on average")]
    Waiting(u64),
    /// Of CPU time.
    #[error("in its worst hour a limit withheld {0} thousandths of a core")]
    Throttled(u64),
    /// Of CPU time.
    #[error("in its worst hour the hypervisor withheld {0} thousandths of a core")]
    Stolen(u64),
}

/// Why a type cannot take over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "misfit", rename_all = "snake_case")]
pub enum Misfit {
    /// It executes something else.
    #[error("it is of the architecture {is}, not {wanted}")]
    OtherArchitecture {
        /// What it is.
        is: Architecture,
        /// What is wanted.
        wanted: Architecture,
    },
    /// A system that runs on one may lack the drivers of the other.
    #[error("it does not run on the same platform, or nobody said on which it does")]
    OtherPlatform,
    /// Fewer, more or other ones.
    #[error("it does not have the same accelerators, or nobody said which it has")]
    OtherAccelerators,
    /// It is of another family, and a core of it may do less.
    #[error("how fast a core of it is, or of the present type, is not known")]
    SpeedUnknown,
    /// It is burstable, or may be, and how much CPU may be used all of the time is not known.
    #[error("whether it is burstable, or at which baseline, is not known")]
    BaselineUnknown,
    /// What it offers is not known.
    #[error("what it offers is not known: {what}")]
    LimitUnknown {
        /// Of this.
        what: Dimension,
    },
    /// It offers less, and nobody measured how much was needed.
    #[error("it offers less, and what was needed was not measured: {what}")]
    NotMeasured {
        /// Of this.
        what: Dimension,
    },
    /// It offers less, and more was needed than was measured.
    #[error("it offers less, and {shortage}")]
    Understated {
        /// What says so.
        shortage: Shortage,
    },
    /// It offers too little.
    #[error("it offers too little {what}: {needed} were needed, {usable} may be used")]
    TooSmall {
        /// Of this.
        what: Dimension,
        /// So much was needed.
        needed: u64,
        /// So much of it may be used, the headroom taken off.
        usable: u64,
    },
}

/// What is to be taken over.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The present type.
    pub now: &'a MachineType,
    /// The architecture that is wanted: the present one, unless that is what changes.
    pub architecture: &'a Architecture,
    /// What was needed.
    pub demand: &'a Demand,
    /// Network interfaces that the machine has; none if not known.
    pub interfaces: Option<u32>,
}

/// Whether this type can take over.
///
/// # Errors
/// The first reason why not.
pub fn fits(wanted: &Wanted<'_>, then: &MachineType, policy: &Policy) -> Result<(), Misfit> {
    let Wanted { now, demand, .. } = wanted;
    kind(wanted, then)?;
    cpu(now, then, demand, policy)?;
    memory(now, then, demand, policy)?;
    let flow = |what, now, then, need| flow(what, now, then, need, policy);
    flow([Dimension::Network, Dimension::NetworkBurst], now.network, then.network, demand.network)?;
    flow([Dimension::Disk, Dimension::DiskBurst], now.disk, then.disk, demand.disk)?;
    let operations = [Dimension::Operations, Dimension::OperationsBurst];
    flow(operations, now.disk_operations, then.disk_operations, demand.disk_operations)?;
    let (most, all) = (then.interfaces.map(u64::from), now.interfaces.map(u64::from));
    // Interfaces are counted and not measured: there is no headroom.
    limit(Dimension::Interfaces, (all, most, most), wanted.interfaces.map(u64::from))
}

fn kind(wanted: &Wanted<'_>, then: &MachineType) -> Result<(), Misfit> {
    use crate::catalogue::Platform;
    let now = wanted.now;
    if then.architecture != *wanted.architecture {
        let (is, wanted) = (then.architecture.clone(), wanted.architecture.clone());
        return Err(Misfit::OtherArchitecture { is, wanted });
    }
    if then.platform == Platform::Unknown || then.platform != now.platform {
        return Err(Misfit::OtherPlatform);
    }
    if then.accelerators.is_none() || then.accelerators != now.accelerators {
        return Err(Misfit::OtherAccelerators);
    }
    Ok(())
}

fn cpu(now: &MachineType, then: &MachineType, demand: &Demand, policy: &Policy) -> Result<(), Misfit> {
    let all = now.milli_cores();
    // A bucket's highest value may lie above what the machine has.
    let doing = |milli_cores: u64| then.doing(milli_cores.min(all), now).ok_or(Misfit::SpeedUnknown);
    let needed = demand.cores.ok_or(Misfit::NotMeasured { what: Dimension::Cpu });
    if then.milli_cores() < doing(all)? {
        enough_cpu_was_there(now, demand)?;
        let needed = needed.clone()?;
        too_small(Dimension::Cpu, doing(needed.p99)?, policy.usable(then.milli_cores()))?;
        too_small(Dimension::Cpu, doing(needed.peak)?, then.milli_cores())?;
    }
    match (now.burst, then.burst) {
        (_, Burst::Steady) => Ok(()),
        (_, Burst::Unknown) => Err(Misfit::BaselineUnknown),
        (_, Burst::Credits { .. }) if bursts_no_less(now, then) => Ok(()),
        (_, Burst::Credits { baseline_milli_cores, .. }) => {
            enough_cpu_was_there(now, demand)?;
            too_small(Dimension::Baseline, doing(needed?.mean)?, policy.usable(baseline_milli_cores))
        }
    }
}

/// Whether both are burstable, and `then` has no less of it.
pub(crate) fn bursts_no_less(now: &MachineType, then: &MachineType) -> bool {
    let (
        Burst::Credits { baseline_milli_cores: from, most_kept_ms: kept },
        Burst::Credits { baseline_milli_cores, most_kept_ms },
    ) = (now.burst, then.burst)
    else {
        return false;
    };
    let no_less = |needed: u64, offered: u64| then.doing(needed, now).is_some_and(|needed| offered >= needed);
    no_less(from, baseline_milli_cores) && no_less(kept, most_kept_ms)
}

/// Of run-queue delay and limits the machine may tell nothing, or in some hours alone, which count as well; what the hypervisor withheld every Linux tells.
fn enough_cpu_was_there(now: &MachineType, demand: &Demand) -> Result<(), Misfit> {
    let stolen = demand.stolen.ok_or(Misfit::NotMeasured { what: Dimension::Cpu })?;
    let vcpus = u64::from(now.vcpus);
    none_of::<3>([
        (demand.signs.waiting, MOST_WAITING * vcpus, Shortage::Waiting),
        (demand.signs.throttled, MOST_WITHHELD * vcpus, Shortage::Throttled),
        (Some(stolen), MOST_WITHHELD * vcpus, Shortage::Stolen),
    ])
}

fn memory(now: &MachineType, then: &MachineType, demand: &Demand, policy: &Policy) -> Result<(), Misfit> {
    if then.memory_mib >= now.memory_mib {
        return Ok(());
    }
    let not_measured = Misfit::NotMeasured { what: Dimension::Memory };
    let (Some(peak), Some(_), Some(_)) = (demand.memory_peak_bytes, demand.oom_kills, demand.swap_pages) else {
        return Err(not_measured);
    };
    let signs = demand.signs;
    none_of::<2>([(signs.oom_kills, 0, Shortage::OomKills), (signs.swap_pages, 0, Shortage::Swapped)])?;
    too_small(Dimension::Memory, signs.memory_peak_bytes.unwrap_or(peak).max(peak), policy.usable(then.memory_bytes()))
}

fn flow(
    [always, burst]: [Dimension; 2],
    now: Limits,
    then: Limits,
    need: Option<Flow>,
    policy: &Policy,
) -> Result<(), Misfit> {
    let usable = |limit: Option<u64>| limit.map(|limit| policy.usable(limit));
    limit(always, (now.baseline, then.baseline, usable(then.baseline)), need.map(|need| need.mean))?;
    limit(burst, (now.burst, then.burst, usable(then.burst)), need.map(|need| need.peak))
}

/// One limit: of the present type, of the other one, and how much of that may be used.
fn limit(
    what: Dimension,
    (now, then, usable): (Option<u64>, Option<u64>, Option<u64>),
    need: Option<u64>,
) -> Result<(), Misfit> {
    let (Some(then), Some(usable)) = (then, usable) else { return Err(Misfit::LimitUnknown { what }) };
    if now.is_some_and(|now| then >= now) {
        return Ok(());
    }
    too_small(what, need.ok_or(Misfit::NotMeasured { what })?, usable)
}

/// Whether the disks of its host are no smaller: nobody measures how full they are. Asked only where another machine takes over: whatever these disks hold is lost.
///
/// # Errors
/// They are smaller, or it is not known.
pub fn has_local_disks_of(now: &MachineType, then: &MachineType) -> Result<(), Misfit> {
    let what = Dimension::LocalDisk;
    limit(what, (now.local_disk_gib, then.local_disk_gib, then.local_disk_gib), now.local_disk_gib)
}

fn too_small(what: Dimension, needed: u64, usable: u64) -> Result<(), Misfit> {
    if needed > usable { Err(Misfit::TooSmall { what, needed, usable }) } else { Ok(()) }
}

/// How much there was, where any hour shows it, how much may be, and what more is called.
type Sign = (Option<u64>, u64, fn(u64) -> Shortage);

fn none_of<const N: usize>(shortages: [Sign; N]) -> Result<(), Misfit> {
    let short = |(was, most, shortage): Sign| was.filter(|was| *was > most).map(shortage);
    match shortages.into_iter().find_map(short) {
        Some(shortage) => Err(Misfit::Understated { shortage }),
        None => Ok(()),
    }
}
