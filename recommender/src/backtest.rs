//! Would the recommended type have failed the machine's own recorded history?
//!
//! Replays every hour against what the type offers, without headroom. Credits of a burstable type are kept as in a purse that is empty at the begin, as it
//! is after the change itself, and after every time that was not measured or spent stopped; within an hour what is above the baseline is paid before anything is
//! earned. A dimension in which the type offers no less than the present one cannot fail.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    catalogue::{Burst, Limits, MachineType},
    demand::{Flow, Hour, Levels, Record},
    fit::{Dimension, bursts_no_less},
};

/// What the replay came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replayed {
    /// How many whole hours were replayed. Those that were measured in a part were, too.
    pub hours: u32,
    /// Thousandths of its vCPUs that the fullest interval would have used.
    pub cpu_per_mille: u64,
    /// Thousandths of its memory that the fullest second would have used; none if memory was not measured.
    pub memory_per_mille: Option<u64>,
    /// Fewest credits that were left, in milliseconds of one vCPU; none if it needs none.
    pub fewest_credits_ms: Option<u64>,
}

/// The first hour in which it would have failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("it would have failed in the hour from {at} on: {needed} were needed and {offered} there ({what})")]
pub struct Failure {
    /// The hour's begin.
    pub at: Timestamp,
    /// In what.
    pub what: Dimension,
    /// So much was needed. More than can be counted if how fast its cores are is not known.
    pub needed: u64,
    /// So much would have been there.
    pub offered: u64,
}

/// Replays the record of a machine of one type on another one.
///
/// # Errors
/// The first hour in which it would have failed.
pub fn replay(record: &Record, now: &MachineType, then: &MachineType) -> Result<Replayed, Failure> {
    let mut replay = Replay { now, then, purse: Purse::of(now, then) };
    let mut replayed = Replayed { hours: 0, cpu_per_mille: 0, memory_per_mille: None, fewest_credits_ms: None };
    let mut next = None;
    for hour in record.all_hours() {
        // Of one that was measured in a part it is not known in which.
        if !hour.is_whole() || next != Some(hour.begin) {
            replay.purse.iter_mut().for_each(Purse::empty);
        }
        replay.hour(hour, &mut replayed)?;
        next = hour.begin.checked_add(jiff::SignedDuration::from_hours(1)).ok().filter(|_| hour.is_whole());
    }
    Ok(replayed)
}

struct Replay<'a> {
    now: &'a MachineType,
    then: &'a MachineType,
    purse: Option<Purse>,
}

impl Replay<'_> {
    fn hour(&mut self, hour: &Hour, replayed: &mut Replayed) -> Result<(), Failure> {
        let (now, then) = (self.now, self.then);
        let check = |what, needed, offered| match needed > offered {
            true => Err(Failure { at: hour.begin, what, needed, offered }),
            false => Ok(()),
        };
        let doing = |milli_cores: u64| then.doing(milli_cores.min(now.milli_cores()), now).unwrap_or(u64::MAX);
        let cores = hour.milli_cores.map(doing);
        let most = cores.highest().unwrap_or(0);
        if then.milli_cores() < doing(u64::MAX) {
            check(Dimension::Cpu, most, then.milli_cores())?;
        }
        if let Some(purse) = &mut self.purse {
            let (needed, kept) = (purse.spent_in(&cores), purse.kept_ms);
            check(Dimension::Credits, needed, kept)?;
            purse.after(&cores);
            let fewest = replayed.fewest_credits_ms.get_or_insert(u64::MAX);
            *fewest = (kept - needed).min(*fewest);
        }
        if let (Some(peak), true) = (hour.memory_peak_bytes, then.memory_mib < now.memory_mib) {
            check(Dimension::Memory, peak, then.memory_bytes())?;
        }
        let flows = [
            ([Dimension::Network, Dimension::NetworkBurst], hour.network, now.network, then.network),
            ([Dimension::Disk, Dimension::DiskBurst], hour.disk, now.disk, then.disk),
            (
                [Dimension::Operations, Dimension::OperationsBurst],
                hour.disk_operations,
                now.disk_operations,
                then.disk_operations,
            ),
        ];
        for ([always, burst], flow, now, then) in flows {
            let Some(flow) = flow else { continue };
            for (what, needed, offered) in limits([always, burst], flow, now, then) {
                check(what, needed, offered)?;
            }
        }
        replayed.hours += u32::from(hour.is_whole());
        replayed.cpu_per_mille = replayed.cpu_per_mille.max(per_mille(most, then.milli_cores()));
        let memory = hour.memory_peak_bytes.map(|peak| per_mille(peak, then.memory_bytes()));
        replayed.memory_per_mille = replayed.memory_per_mille.max(memory);
        Ok(())
    }
}

/// What is to be compared: only where less is offered than now. An unknown limit offers nothing.
fn limits(what: [Dimension; 2], flow: Flow, now: Limits, then: Limits) -> impl Iterator<Item = (Dimension, u64, u64)> {
    let pairs = [(what[0], flow.mean, now.baseline, then.baseline), (what[1], flow.peak, now.burst, then.burst)];
    pairs.into_iter().filter_map(|(what, needed, now, then)| {
        let offered = then.unwrap_or(0);
        (now.is_none_or(|now| offered < now)).then_some((what, needed, offered))
    })
}

fn per_mille(part: u64, all: u64) -> u64 {
    u64::try_from((u128::from(part) * 1_000).div_ceil(u128::from(all.max(1)))).unwrap_or(u64::MAX)
}

/// Credits of a burstable type, in milliseconds of one vCPU.
struct Purse {
    baseline_milli_cores: u64,
    most_kept_ms: u64,
    kept_ms: u64,
}

impl Purse {
    /// None if the type needs no credits, or has no fewer than the present one. At an unknown baseline nothing is earned.
    fn of(now: &MachineType, then: &MachineType) -> Option<Self> {
        let (baseline_milli_cores, most_kept_ms) = match then.burst {
            Burst::Credits { .. } if bursts_no_less(now, then) => return None,
            Burst::Credits { baseline_milli_cores, most_kept_ms } => (baseline_milli_cores, most_kept_ms),
            Burst::Steady => return None,
            Burst::Unknown => (0, 0),
        };
        Some(Self { baseline_milli_cores, most_kept_ms, kept_ms: 0 })
    }

    fn empty(&mut self) {
        self.kept_ms = 0;
    }

    /// What is above the baseline, rounded up.
    fn spent_in(&self, cores: &Levels) -> u64 {
        let above = cores.iter().map(|(milli_cores, ms)| {
            u128::from(milli_cores.saturating_sub(self.baseline_milli_cores)) * u128::from(ms)
        });
        u64::try_from(above.sum::<u128>().div_ceil(1_000)).unwrap_or(u64::MAX)
    }

    /// What is left after the hour: nothing is earned in time that was not measured.
    fn after(&mut self, cores: &Levels) {
        let below = cores.iter().map(|(milli_cores, ms)| {
            u128::from(self.baseline_milli_cores.saturating_sub(milli_cores)) * u128::from(ms)
        });
        let earned = u64::try_from(below.sum::<u128>() / 1_000).unwrap_or(u64::MAX);
        let left = self.kept_ms.saturating_sub(self.spent_in(cores));
        self.kept_ms = left.saturating_add(earned).min(self.most_kept_ms);
    }
}
