//! Refuses where many machines of one agent or rules version turn idle within a day, or many of an account's jobs stuck: that is a broken sensor, or a file server that is down, and not luck.

use serde::Serialize;

use super::{Moment, OnJob, OnMachine};
use crate::{JobRefusal, Refusal};

/// The machines whose agents are of the same version and follow the same rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Cohort {
    /// So many.
    pub machines: u32,
    /// So many of them were found idle within the last 24 hours and were not before.
    pub turned_idle: u32,
}

/// The jobs of an account in one region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct StuckJobs {
    /// So many run.
    pub running: u32,
    /// So many were found stuck within the last 24 hours and were not before.
    pub turned_stuck: u32,
}

/// Fewer machines prove nothing.
const LEAST: u32 = 10;
const PER_CENT: u64 = 30;

pub(crate) fn guard(_: &Moment<'_>, machine: &OnMachine<'_>) -> Result<(), Refusal> {
    let Cohort { machines, turned_idle } = *machine.cohort;
    let is_many = u64::from(turned_idle) * 100 > u64::from(machines) * PER_CENT;
    if machines >= LEAST && is_many { Err(Refusal::CohortTurnedIdle { turned_idle, machines }) } else { Ok(()) }
}

/// Nothing brings a job back, so that few of them prove as much as ten would.
pub(crate) fn of_jobs(on: &OnJob<'_>) -> Result<(), Refusal> {
    let StuckJobs { running, turned_stuck } = *on.cohort;
    let is_many = u64::from(turned_stuck) * 100 > u64::from(running.max(LEAST)) * PER_CENT;
    if is_many { Err(JobRefusal::CohortTurnedStuck { turned_stuck, running }.into()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::act::{of_job::Terminated, sample::Sample};

    #[test]
    fn a_third_of_an_accounts_jobs_does_not_get_stuck_in_a_day() {
        let of = |turned_stuck, running| Terminated::with(|job| job.cohort = StuckJobs { running, turned_stuck });
        for (turned_stuck, running, passes) in
            [(1, 1, true), (3, 3, true), (4, 4, false), (3, 10, true), (4, 10, false), (12, 40, true), (13, 40, false)]
        {
            let refused = Err(JobRefusal::CohortTurnedStuck { turned_stuck, running }.into());
            assert_eq!(of(turned_stuck, running), if passes { Ok(()) } else { refused });
        }
    }

    #[test]
    fn a_third_of_a_fleet_does_not_fall_asleep_in_a_day() {
        let of = |turned_idle, machines| Sample::with(|moment| moment.cohort = Cohort { machines, turned_idle });
        for (turned_idle, machines, passes) in [
            (9, 9, true),
            (3, 10, true),
            (4, 10, false),
            (12, 40, true),
            (13, 40, false),
            (40, 40, false),
            (0, 40, true),
        ] {
            let refused = Err(Refusal::CohortTurnedIdle { turned_idle, machines });
            assert_eq!(of(turned_idle, machines), if passes { Ok(()) } else { refused });
        }
    }
}
