//! What stands between an approved plan and the provider: asked right before the call, of everything that is known at that moment.
//!
//! A plan that was approved is not done for that: the machine, its owner, its work, the people who said yes and the account around it may have changed since.
//! Each guard is a file, says what it refuses, and has a test in which it alone stands in the way.

mod approval;
mod attested;
mod breaker;
mod caps;
mod cohort;
mod current;
mod dependents;
mod exempted;
mod live;
mod own;
mod owner;
mod restored;
mod rules;
mod scope;
mod switch;
mod undo;
mod validity;

pub use approval::{Answer, Say};
pub use caps::Caps;
pub use cohort::Cohort;
pub use dependents::Dependents;
pub use exempted::Exempted;
pub use live::{LiveSample, LiveVerdict};
pub use switch::Switch;
pub use undo::{Undoing, Wanted, may_undo};

use std::collections::BTreeMap;

use jiff::Timestamp;
use model::{
    machine::Ec2Facts,
    plan::{ContentHash, Plan},
};

use crate::{Refusal, holds, may_stop};

/// Everything that is known right before acting. What could not be read is said to be so, and refuses.
#[derive(Clone, Debug)]
pub struct Moment<'a> {
    /// By the database's clock.
    pub now: Timestamp,
    /// The plan that is to be carried out.
    pub plan: &'a Plan,
    /// The plan that its finding has now; none if the finding has ended.
    pub current_plan: Option<&'a ContentHash>,
    /// Who wants the resource left alone, for good or for now.
    pub exempted: &'a [Exempted],
    /// How many sweeps in a row, up to the last one, confirmed the finding.
    pub confirmed_sweeps: u32,
    /// What people said of the plan.
    pub says: &'a [Say],
    /// So many different people must have approved it; none if no rule of the policy is about it any more.
    pub needs: Option<u32>,
    /// Who owns the resource, by its tags before the finding began; none if they were not known.
    pub tags_before: Option<&'a BTreeMap<String, String>>,
    /// The kill switch.
    pub switch: Switch,
    /// Whether somebody has switched acting on for its account and region.
    pub is_switched_on: bool,
    /// What was done in its account in the last 24 hours.
    pub caps: &'a Caps,
    /// Whether an action of its class in its account was undone, or its machine was started again, since a person last looked.
    pub has_relapsed: bool,
    /// Whether the database was restored from a backup since the plan was approved; none if that cannot be told.
    pub was_restored: Option<bool>,
    /// Whether the resource is one that the sweeper itself needs; none if that cannot be told.
    pub is_own: Option<bool>,
    /// What the plan is about.
    pub subject: Subject<'a>,
}

/// What a plan is about, as it was read for this, and what is known of such a thing alone.
#[derive(Clone, Debug)]
pub enum Subject<'a> {
    /// A machine, which an agent speaks for.
    Machine(OnMachine<'a>),
}

/// What is known of a machine right before acting.
#[derive(Clone, Debug)]
pub struct OnMachine<'a> {
    /// What its provider says of it, read for this.
    pub facts: &'a Ec2Facts,
    /// Whether its node has proved which machine it is.
    pub is_attested: bool,
    /// What the node answered when it was asked for this action.
    pub live: Option<&'a LiveSample>,
    /// The rules by which its agent told work from housekeeping when the plan was made.
    pub rules_version: &'a str,
    /// Whether the window that the finding rests on bridges a time without an agent.
    pub bridges_a_gap: bool,
    /// What became of machines like it.
    pub cohort: &'a Cohort,
    /// What else rests on the machine.
    pub dependents: &'a Dependents,
}

impl Subject<'_> {
    /// Its tags at this moment; none if they could not be read.
    fn tags(&self) -> Option<&BTreeMap<String, String>> {
        match self {
            Self::Machine(machine) => machine.facts.tags.as_ref(),
        }
    }
}

/// One question about the moment, whatever the plan is about.
type Guard = fn(&Moment<'_>) -> Result<(), Refusal>;
/// One question about a machine at the moment.
type MachineGuard = fn(&Moment<'_>, &OnMachine<'_>) -> Result<(), Refusal>;

/// The most fundamental first: the first one that refuses gives the reason.
const GUARDS: [Guard; 11] = [
    switch::guard,
    scope::guard,
    restored::guard,
    exempted::guard,
    current::guard,
    validity::guard,
    approval::guard,
    own::guard,
    owner::guard,
    breaker::guard,
    caps::guard,
];
/// Of a machine besides, in the same order.
const OF_MACHINES: [MachineGuard; 4] = [attested::guard, dependents::guard, rules::guard, cohort::guard];

/// Whether an approved plan may be carried out at this moment.
///
/// # Errors
/// The one reason that decided.
pub fn may_act(moment: &Moment<'_>) -> Result<(), Refusal> {
    GUARDS.iter().try_for_each(|guard| guard(moment))?;
    match &moment.subject {
        Subject::Machine(machine) => may_stop_now(moment, machine),
    }
}

/// The live sample is looked at last of all: it is the freshest.
fn may_stop_now(moment: &Moment<'_>, machine: &OnMachine<'_>) -> Result<(), Refusal> {
    OF_MACHINES.iter().try_for_each(|guard| guard(moment, machine))?;
    may_stop(machine.facts)?;
    moment.plan.content().conditions.iter().try_for_each(|condition| holds(condition, machine.facts))?;
    live::guard(moment, machine)
}

#[cfg(test)]
mod sample;

#[cfg(test)]
mod tests {
    use super::{sample::Sample, *};

    #[test]
    fn a_machine_that_nothing_speaks_for_keeping_may_be_stopped() {
        assert_eq!(may_act(&Sample::default().moment()), Ok(()));
    }

    #[test]
    fn what_the_machine_is_counts_as_much_as_what_was_approved() {
        let mut sample = Sample::default();
        sample.machine.capacity_reservation = Some("cr-1".to_owned());
        assert_eq!(may_act(&sample.moment()), Err(Refusal::CapacityReserved { id: "cr-1".to_owned() }));
        let mut sample = Sample::default();
        sample.machine.instance_type = Some("m5.xlarge".to_owned());
        let [was, is] = ["m5.large", "m5.xlarge"].map(str::to_owned);
        assert_eq!(may_act(&sample.moment()), Err(Refusal::TypeChanged { was, is }));
    }
}
