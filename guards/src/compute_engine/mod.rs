//! What stands between a plan and a machine of Google Cloud's Compute Engine: a file per guard, as of EC2's.

mod bought;
mod encryption;
mod exempt;
mod groups;
mod local_ssd;
mod membership;
mod own_host;
mod protection;
mod reservation;
mod same;
#[cfg(test)]
pub(crate) mod sample;
mod schedule;
mod state;

pub use exempt::EXEMPTION_LABEL;

use model::{machine::ComputeEngineFacts, plan::Condition};

use crate::Refusal;

/// One question about a machine.
type Guard = fn(&ComputeEngineFacts) -> Result<(), Refusal>;

/// By what lists tell, the most fundamental first.
const STOP: [Guard; 10] = [
    exempt::guard,
    membership::guard,
    protection::guard,
    state::guard,
    bought::guard,
    own_host::guard,
    reservation::guard,
    local_ssd::guard,
    encryption::guard,
    schedule::guard,
];

/// Whether a machine may be stopped, by what Google's list says of it.
///
/// # Errors
/// The one reason that decided, the most fundamental first.
pub fn may_stop_compute_engine(facts: &ComputeEngineFacts) -> Result<(), Refusal> {
    STOP.iter().try_for_each(|guard| guard(facts))
}

/// The same at the last moment, when it has been asked what lists do not tell.
pub(crate) fn may_stop_now(facts: &ComputeEngineFacts) -> Result<(), Refusal> {
    may_stop_compute_engine(facts)?;
    groups::guard(facts)
}

/// Whether a condition of a plan holds, by what Google says of the machine now. That its node is still idle nobody but the node tells.
pub(crate) fn holds(condition: &Condition, facts: &ComputeEngineFacts) -> Result<(), Refusal> {
    match condition {
        Condition::TagsPermit => exempt::guard(facts).and_then(|()| membership::guard(facts)),
        Condition::StateIs { state } => same::state(state, facts),
        Condition::LaunchedAtIs { at } => same::started_at(*at, facts),
        Condition::InstanceTypeIs { instance_type } => same::machine_type(instance_type, facts),
        Condition::NotProtected => protection::guard(facts),
        Condition::NoInstanceStoreWrites => local_ssd::guard(facts),
        Condition::StillIdle => Ok(()),
        Condition::AddressIs { .. }
        | Condition::TiedToNothing
        | Condition::UnusedSince { .. }
        | Condition::NoReverseName
        | Condition::NotOffered
        | Condition::VolumeIs { .. }
        | Condition::SnapshotCompleted
        | Condition::MemberOf { .. }
        | Condition::GroupCanShrink
        | Condition::JobPlaceIs { .. }
        | Condition::JobAttemptIs { .. }
        | Condition::NothingDependsOnIt
        | Condition::StillStuck { .. } => Err(Refusal::OfAnotherKind),
    }
}

/// A fact that a guard needs and Google did not tell.
fn untold(what: &str) -> Refusal {
    Refusal::NotTold { what: what.to_owned(), why: "Google does not say".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::{sample::facts, *};
    use jiff::Timestamp;
    use model::address::Told;

    #[test]
    fn a_machine_that_nothing_speaks_for_keeping_may_be_stopped() {
        assert_eq!(may_stop_compute_engine(&facts(|_| ())), Ok(()));
        assert_eq!(may_stop_now(&facts(|_| ())), Ok(()));
    }

    #[test]
    fn groups_are_asked_for_at_the_last_moment() {
        let why = "it is asked right before the call".to_owned();
        let unasked = facts(|facts| facts.groups = Told::Unknown { why: why.clone() });
        assert_eq!(may_stop_compute_engine(&unasked), Ok(()));
        let what = "which groups it is a member of".to_owned();
        assert_eq!(may_stop_now(&unasked), Err(Refusal::NotTold { what, why }));
    }

    #[test]
    fn a_condition_on_something_else_never_holds_of_a_machine() {
        for condition in [
            Condition::AddressIs { address: "203.0.113.8".to_owned() },
            Condition::TiedToNothing,
            Condition::UnusedSince { at: Timestamp::UNIX_EPOCH },
            Condition::NoReverseName,
            Condition::NotOffered,
            Condition::VolumeIs { volume_type: "gp3".to_owned(), size_gib: 1, created_at: Timestamp::UNIX_EPOCH },
            Condition::SnapshotCompleted,
        ] {
            assert_eq!(holds(&condition, &facts(|_| ())), Err(Refusal::OfAnotherKind), "{condition:?}");
        }
        assert_eq!(holds(&Condition::StillIdle, &facts(|_| ())), Ok(()), "its node is asked");
    }
}
