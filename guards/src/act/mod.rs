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
mod ending;
mod exempted;
mod live;
#[cfg(test)]
mod of_job;
mod own;
mod owner;
mod restored;
mod rules;
mod scope;
mod snapshot;
mod stuck;
mod subject;
mod switch;
mod undo;
mod validity;

pub use approval::{Answer, Say};
pub use caps::Caps;
pub use cohort::{Cohort, StuckJobs};
pub use dependents::Dependents;
pub use exempted::Exempted;
pub use live::{LiveSample, LiveVerdict};
pub use subject::{MachineFacts, OnAddress, OnJob, OnMachine, OnMember, OnVolume, Subject};
pub use switch::Switch;
pub use undo::{Undoing, Wanted, may_undo};

use std::collections::BTreeMap;

use jiff::Timestamp;
use model::plan::{Condition, ContentHash, Plan};

use crate::{Refusal, address, compute_engine, holds, job, may_delete, may_stop, may_terminate, member, volume};

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

/// One question about the moment, whatever the plan is about.
type Guard = fn(&Moment<'_>) -> Result<(), Refusal>;
/// One question about a machine at the moment.
type MachineGuard = fn(&Moment<'_>, &OnMachine<'_>) -> Result<(), Refusal>;

/// The most fundamental first: the first one that refuses gives the reason.
const GUARDS: [Guard; 12] = [
    switch::guard,
    scope::guard,
    restored::guard,
    exempted::guard,
    current::guard,
    validity::guard,
    approval::guard,
    subject::guard,
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
        Subject::Member(on) => may_end_now(moment, on),
        Subject::Address(on) => may_release_now(moment, on),
        Subject::Volume(on) => may_delete_now(moment, on),
        Subject::Job(on) => may_terminate_now(moment, on),
    }
}

/// What the agent on its machine says of it is looked at last of all: it is the freshest. A plan that does not name the job's place, its attempt and since when it is stuck is none of a job.
fn may_terminate_now(moment: &Moment<'_>, on: &OnJob<'_>) -> Result<(), Refusal> {
    stuck::attested(on)?;
    cohort::of_jobs(on)?;
    may_terminate(on.facts)?;
    let conditions = &moment.plan.content().conditions;
    let names = |is_it: fn(&Condition) -> bool| conditions.iter().any(is_it);
    if !names(|one| matches!(one, Condition::JobPlaceIs { .. }))
        || !names(|one| matches!(one, Condition::JobAttemptIs { .. }))
        || !names(|one| matches!(one, Condition::StillStuck { .. }))
    {
        return Err(Refusal::OfAnotherKind);
    }
    conditions.iter().try_for_each(|condition| job::holds(condition, on.facts))?;
    stuck::since(conditions, on)?;
    stuck::guard(moment, on)
}

/// The snapshot is looked at last of all: where nothing else stands in the way, one is made.
fn may_delete_now(moment: &Moment<'_>, on: &OnVolume<'_>) -> Result<(), Refusal> {
    may_delete(on.facts)?;
    let conditions = &moment.plan.content().conditions;
    conditions.iter().try_for_each(|condition| volume::holds(condition, on.facts, on.unused_since))?;
    snapshot::guard(moment, on)
}

/// Nobody runs on an address who could be asked: what the provider says of it is read right before the call.
fn may_release_now(moment: &Moment<'_>, on: &OnAddress<'_>) -> Result<(), Refusal> {
    address::may_release_now(on.facts)?;
    let conditions = &moment.plan.content().conditions;
    conditions.iter().try_for_each(|condition| address::holds(condition, on.facts, on.unused_since))
}

/// All that is asked before a machine is stopped is asked before one is ended, but for what outlives neither; and its group besides.
fn may_end_now(moment: &Moment<'_>, on: &OnMember<'_>) -> Result<(), Refusal> {
    let OnMember { machine, group, .. } = on;
    ending::guard(on)?;
    OF_MACHINES.iter().try_for_each(|guard| guard(moment, machine))?;
    // Groups of Google Cloud are read otherwise, and nothing is ended there.
    let MachineFacts::Ec2(facts) = machine.facts else { return Err(Refusal::OfAnotherKind) };
    member::may_end_now(facts, group)?;
    let conditions = &moment.plan.content().conditions;
    conditions.iter().try_for_each(|condition| member::holds(condition, facts, group))?;
    live::guard(moment, machine)
}

/// The live sample is looked at last of all: it is the freshest.
fn may_stop_now(moment: &Moment<'_>, machine: &OnMachine<'_>) -> Result<(), Refusal> {
    OF_MACHINES.iter().try_for_each(|guard| guard(moment, machine))?;
    let conditions = &moment.plan.content().conditions;
    match machine.facts {
        MachineFacts::Ec2(facts) => {
            may_stop(facts)?;
            conditions.iter().try_for_each(|condition| holds(condition, facts))?;
        }
        MachineFacts::ComputeEngine(facts) => {
            compute_engine::may_stop_now(facts)?;
            conditions.iter().try_for_each(|condition| compute_engine::holds(condition, facts))?;
        }
    }
    live::guard(moment, machine)
}

#[cfg(test)]
mod sample;

#[cfg(test)]
mod tests {
    use super::{
        sample::{Deleted, Ended, OfGoogle, Released, Sample},
        *,
    };
    use crate::{MemberRefusal, act::sample::NOW};
    use model::address::Told;

    #[test]
    fn a_machine_that_nothing_speaks_for_keeping_may_be_stopped() {
        assert_eq!(may_act(&Sample::default().moment()), Ok(()));
    }

    #[test]
    fn a_machine_of_google_cloud_is_asked_what_one_of_ec2_is() {
        assert_eq!(OfGoogle::with(|_| ()), Ok(()));
        let of = |change: fn(&mut Sample)| OfGoogle::with(|of_google| change(&mut of_google.sample));
        assert_eq!(of(|sample| sample.switch = Switch::On), Err(Refusal::SwitchedOff));
        assert_eq!(of(|sample| sample.is_switched_on = false), Err(Refusal::DryRunOnly));
        assert_eq!(of(|sample| sample.is_attested = false), Err(Refusal::NotAttested));
        assert_eq!(of(|sample| sample.live = None), Err(Refusal::NoLiveSample));
        assert_eq!(of(|sample| sample.is_own = Some(true)), Err(Refusal::Own));
        let why = "compute.routes.list: not allowed".to_owned();
        let unread = OfGoogle::with(|one| one.sample.dependents = Dependents::Unreadable { why: why.clone() });
        assert_eq!(unread, Err(Refusal::DependentsUnreadable { why }));
        let given = OfGoogle::with(|one| {
            one.facts.labels.get_or_insert_default().insert("owner".to_owned(), "grace".to_owned());
        });
        let [was, is] = ["ada", "grace"].map(|name| Some(name.to_owned()));
        assert_eq!(given, Err(Refusal::OwnerChanged { was, is }));
    }

    #[test]
    fn what_google_says_of_a_machine_counts_as_much_as_what_was_approved() {
        let why = "not asked".to_owned();
        let unasked = OfGoogle::with(|one| one.facts.groups = Told::Unknown { why: why.clone() });
        assert_eq!(unasked, Err(Refusal::NotTold { what: "which groups it is a member of".to_owned(), why }));
        assert_eq!(OfGoogle::with(|one| one.facts.local_ssds = 1), Err(Refusal::HasLocalSsd));
        let [was, is] = ["n2-standard-8", "n2-standard-4"].map(str::to_owned);
        let other = OfGoogle::with(|one| one.facts.machine_type = Some(is.clone()));
        assert_eq!(other, Err(Refusal::TypeChanged { was, is }));
    }

    #[test]
    fn an_address_that_nothing_speaks_for_keeping_may_be_released() {
        assert_eq!(Released::with(|_| ()), Ok(()));
    }

    #[test]
    fn what_an_address_is_counts_as_much_as_what_was_approved() {
        let attached = Released::with(|released| released.facts.tied_to = Some("eni-1".to_owned()));
        assert_eq!(attached, Err(Refusal::TiedTo { what: "eni-1".to_owned() }));
        let named = Released::with(|released| released.facts.reverse_name = Told::Something { what: "mx.".to_owned() });
        assert_eq!(named, Err(Refusal::HasReverseName { name: "mx.".to_owned() }));
        let used = Released::with(|released| released.unused_since = None);
        assert!(matches!(used, Err(Refusal::UsedInBetween { .. })), "{used:?}");
    }

    #[test]
    fn a_volume_that_nothing_speaks_for_keeping_may_be_deleted() {
        assert_eq!(Deleted::with(|_| ()), Ok(()));
    }

    #[test]
    fn what_a_volume_is_counts_before_there_is_a_snapshot() {
        let of = |change: fn(&mut Deleted)| {
            Deleted::with(|deleted| {
                deleted.snapshot = None;
                change(deleted);
            })
        };
        assert_eq!(of(|_| ()), Err(Refusal::NoSnapshot));
        assert_eq!(of(|deleted| deleted.facts.on_outpost = true), Err(Refusal::OnOutpost));
        let used = of(|deleted| deleted.unused_since = None);
        assert!(matches!(used, Err(Refusal::UsedInBetween { .. })), "{used:?}");
        assert_eq!(of(|deleted| deleted.sample.switch = Switch::On), Err(Refusal::SwitchedOff));
        assert_eq!(of(|deleted| deleted.sample.says.truncate(1)), Err(Refusal::NotApproved { given: 1, needs: 2 }));
    }

    #[test]
    fn a_member_that_nothing_speaks_for_keeping_may_be_ended() {
        assert_eq!(Ended::with(|_| ()), Ok(()));
    }

    #[test]
    fn what_its_group_is_counts_as_much_as_what_the_machine_is_and_does() {
        let minimum = Ended::with(|ended| ended.group.min_size = Some(3));
        assert_eq!(minimum, Err(MemberRefusal::AtMinimum { desired: 3, min: 3 }.into()));
        let refresh = Ended::with(|ended| ended.group.refresh = Told::Something { what: "r-1".to_owned() });
        assert_eq!(refresh, Err(MemberRefusal::Refreshing { refresh: "r-1".to_owned() }.into()));
        let moved = Ended::with(|ended| ended.group.name = "others".to_owned());
        assert!(moved.is_err(), "the plan names its group");
        let of = |change: fn(&mut Sample)| Ended::with(|ended| change(&mut ended.sample));
        let again = |sample: &mut Sample| sample.machine.launched_at = Some(NOW);
        assert!(matches!(of(again), Err(Refusal::StartedAgain { .. })));
        assert_eq!(of(|sample| sample.is_attested = false), Err(Refusal::NotAttested));
        assert_eq!(of(|sample| sample.bridges_a_gap = true), Err(Refusal::BridgedGap));
        assert_eq!(of(|sample| sample.live = None), Err(Refusal::NoLiveSample));
        let turned_idle = of(|sample| sample.cohort = Cohort { machines: 10, turned_idle: 10 });
        assert_eq!(turned_idle, Err(Refusal::CohortTurnedIdle { turned_idle: 10, machines: 10 }));
        let rests = |sample: &mut Sample| sample.dependents = Dependents::Known(["a target group".to_owned()].into());
        assert!(matches!(of(rests), Err(Refusal::DependedUpon { .. })));
        let why = "CPU time of workloads".to_owned();
        let works = of(|sample| {
            let live = sample.live.as_mut().expect("a live sample");
            live.verdict = LiveVerdict::NotIdle("CPU time of workloads".to_owned());
        });
        assert_eq!(works, Err(Refusal::NotIdle { why }));
        assert_eq!(of(|sample| sample.switch = Switch::On), Err(Refusal::SwitchedOff));
        assert_eq!(of(|sample| sample.is_own = None), Err(Refusal::Own));
        assert_eq!(of(|sample| sample.says.truncate(1)), Err(Refusal::NotApproved { given: 1, needs: 2 }));
        assert_eq!(of(|sample| sample.needs = Some(1)), Ok(()), "two have, whatever a rule says");
        assert_eq!(of(|sample| sample.caps.done = 5), Err(Refusal::Capped { done: 5, most: 5 }));
    }

    #[test]
    fn what_is_asked_of_a_machine_is_asked_of_an_address_too() {
        let of = |change: fn(&mut Sample)| Released::with(|released| change(&mut released.sample));
        assert_eq!(of(|sample| sample.switch = Switch::On), Err(Refusal::SwitchedOff));
        assert_eq!(of(|sample| sample.is_switched_on = false), Err(Refusal::DryRunOnly));
        assert_eq!(of(|sample| sample.was_restored = None), Err(Refusal::Restored));
        assert_eq!(of(|sample| sample.current_plan = None), Err(Refusal::PlanWithdrawn));
        assert_eq!(of(|sample| sample.is_own = None), Err(Refusal::Own));
        assert_eq!(of(|sample| sample.has_relapsed = true), Err(Refusal::Relapsed));
        assert_eq!(of(|sample| sample.caps.done = 10), Err(Refusal::Capped { done: 10, most: 5 }));
        let given = Released::with(|released| {
            released.facts.tags.get_or_insert_default().insert("owner".to_owned(), "grace".to_owned());
        });
        let [was, is] = ["ada", "grace"].map(|name| Some(name.to_owned()));
        assert_eq!(given, Err(Refusal::OwnerChanged { was, is }));
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
