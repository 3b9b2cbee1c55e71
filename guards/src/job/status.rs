//! Refuses a job that does not run, of which Batch does not say whether it does, or that somebody ends already.

use model::job::JobFacts;

use super::JobRefusal;
use crate::Refusal;

/// Batch's word for a job that runs.
const RUNNING: &str = "RUNNING";

pub(super) fn guard(facts: &JobFacts) -> Result<(), Refusal> {
    same(RUNNING, facts)
}

/// A plan names the status that it was made in, and no other than this is ever acted on.
pub(super) fn same(wanted: &str, facts: &JobFacts) -> Result<(), Refusal> {
    let status = facts.status.as_deref().ok_or_else(|| JobRefusal::NotKnown { what: "its status".to_owned() })?;
    if status != RUNNING || wanted != RUNNING {
        return Err(JobRefusal::NotRunning { status: status.to_owned() }.into());
    }
    if facts.is_ending { Err(JobRefusal::Ending.into()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{holds, may_terminate, sample::facts};
    use model::plan::Condition;

    #[test]
    fn what_does_not_run_or_ends_already_is_not_terminated() {
        let condition = Condition::StateIs { state: RUNNING.to_owned() };
        let both = |change: fn(&mut JobFacts)| {
            let facts = facts(change);
            assert_eq!(may_terminate(&facts), holds(&condition, &facts));
            may_terminate(&facts)
        };
        assert_eq!(both(|_| ()), Ok(()));
        for status in ["SUBMITTED", "PENDING", "RUNNABLE", "STARTING", "SUCCEEDED", "FAILED", "running"] {
            let refused = may_terminate(&facts(|facts| facts.status = Some(status.to_owned())));
            assert_eq!(refused, Err(JobRefusal::NotRunning { status: status.to_owned() }.into()));
        }
        let unknown = JobRefusal::NotKnown { what: "its status".to_owned() };
        assert_eq!(both(|facts| facts.status = None), Err(unknown.into()));
        assert_eq!(both(|facts| facts.is_ending = true), Err(JobRefusal::Ending.into()));
        let other = Condition::StateIs { state: "FAILED".to_owned() };
        assert!(holds(&other, &facts(|facts| facts.status = Some("FAILED".to_owned()))).is_err());
    }
}
