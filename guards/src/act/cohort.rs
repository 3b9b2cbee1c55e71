//! Refuses where many machines of one agent or rules version turn idle within a day: that is a broken sensor and not luck.

use serde::Serialize;

use super::{Moment, OnMachine};
use crate::Refusal;

/// The machines whose agents are of the same version and follow the same rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Cohort {
    /// So many.
    pub machines: u32,
    /// So many of them were found idle within the last 24 hours and were not before.
    pub turned_idle: u32,
}

/// Fewer machines prove nothing.
const LEAST: u32 = 10;
const PER_CENT: u64 = 30;

pub(crate) fn guard(_: &Moment<'_>, machine: &OnMachine<'_>) -> Result<(), Refusal> {
    let Cohort { machines, turned_idle } = *machine.cohort;
    let is_many = u64::from(turned_idle) * 100 > u64::from(machines) * PER_CENT;
    if machines >= LEAST && is_many { Err(Refusal::CohortTurnedIdle { turned_idle, machines }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::act::sample::Sample;

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
