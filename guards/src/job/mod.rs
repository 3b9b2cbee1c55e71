//! What stands between a plan and a job of AWS Batch that is to be terminated: a file per guard, as of machines. That it still is stuck nobody but the agent on its machine tells (`act/stuck`).

mod attempt;
mod dependents;
mod exempt;
mod heads;
mod place;
mod refusal;
#[cfg(test)]
pub(crate) mod sample;
mod shape;
mod status;

pub use refusal::JobRefusal;

use model::{job::JobFacts, plan::Condition};

use crate::Refusal;

/// One question about a job.
type Guard = fn(&JobFacts) -> Result<(), Refusal>;

/// The most fundamental first.
const TERMINATE: [Guard; 7] =
    [exempt::guard, shape::guard, status::guard, place::known, attempt::known, dependents::guard, heads::guard];

/// Whether a job may be terminated, by what Batch, ECS and EC2 say of it.
///
/// # Errors
/// The one reason that decided, the most fundamental first.
pub fn may_terminate(facts: &JobFacts) -> Result<(), Refusal> {
    TERMINATE.iter().try_for_each(|guard| guard(facts))
}

/// Whether a condition of a plan holds, by what is said of the job now. That it still is stuck is another guard's.
pub(crate) fn holds(condition: &Condition, facts: &JobFacts) -> Result<(), Refusal> {
    match condition {
        Condition::TagsPermit => exempt::guard(facts),
        Condition::StateIs { state } => status::same(state, facts),
        Condition::JobPlaceIs { place } => place::same(place, facts),
        Condition::JobAttemptIs { attempt } => attempt::same(attempt, facts),
        Condition::NothingDependsOnIt => dependents::guard(facts),
        Condition::StillStuck { .. } => Ok(()),
        Condition::LaunchedAtIs { .. }
        | Condition::InstanceTypeIs { .. }
        | Condition::NotProtected
        | Condition::NoInstanceStoreWrites
        | Condition::StillIdle
        | Condition::AddressIs { .. }
        | Condition::TiedToNothing
        | Condition::UnusedSince { .. }
        | Condition::NoReverseName
        | Condition::NotOffered
        | Condition::VolumeIs { .. }
        | Condition::SnapshotCompleted
        | Condition::MemberOf { .. }
        | Condition::GroupCanShrink => Err(Refusal::OfAnotherKind),
    }
}

#[cfg(test)]
mod tests {
    use super::{sample::facts, *};
    use jiff::Timestamp;

    #[test]
    fn a_job_that_nothing_speaks_for_keeping_may_be_terminated() {
        assert_eq!(may_terminate(&facts(|_| ())), Ok(()));
    }

    #[test]
    fn a_condition_on_something_else_never_holds_of_a_job() {
        for condition in [
            Condition::LaunchedAtIs { at: Timestamp::UNIX_EPOCH },
            Condition::NotProtected,
            Condition::NoInstanceStoreWrites,
            Condition::StillIdle,
            Condition::TiedToNothing,
            Condition::SnapshotCompleted,
            Condition::GroupCanShrink,
        ] {
            assert_eq!(holds(&condition, &facts(|_| ())), Err(Refusal::OfAnotherKind), "{condition:?}");
        }
        let (machine, volume) = (crate::sample::facts(|_| ()), crate::volume::sample::facts(|_| ()));
        for condition in [Condition::NothingDependsOnIt, Condition::StillStuck { since: Timestamp::UNIX_EPOCH }] {
            assert_eq!(crate::holds(&condition, &machine), Err(Refusal::OfAnotherKind), "{condition:?}");
            assert_eq!(crate::volume::holds(&condition, &volume, None), Err(Refusal::OfAnotherKind), "{condition:?}");
        }
    }
}
