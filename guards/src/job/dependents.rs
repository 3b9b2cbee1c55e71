//! Refuses a job that another one waits for: that one would fail with it. What could not be read counts as waiting.

use model::{address::Told, job::JobFacts};

use super::JobRefusal;
use crate::Refusal;

pub(super) fn guard(facts: &JobFacts) -> Result<(), Refusal> {
    match &facts.dependents {
        Told::Nothing => Ok(()),
        Told::Something { what } => Err(JobRefusal::DependedUpon { what: what.clone() }.into()),
        Told::Unknown { why } => {
            Err(Refusal::NotTold { what: "whether another job waits for its end".to_owned(), why: why.clone() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{holds, may_terminate, sample::facts};
    use model::plan::Condition;

    #[test]
    fn what_others_wait_for_stays() {
        let of = |told: Told| {
            let facts = facts(|facts| facts.dependents = told);
            assert_eq!(may_terminate(&facts), holds(&Condition::NothingDependsOnIt, &facts));
            may_terminate(&facts)
        };
        let what = "job 7".to_owned();
        let waits = of(Told::Something { what: what.clone() });
        assert_eq!(waits, Err(JobRefusal::DependedUpon { what }.into()));
        let why = "denied".to_owned();
        let unread = Refusal::NotTold { what: "whether another job waits for its end".to_owned(), why: why.clone() };
        assert_eq!(of(Told::Unknown { why }), Err(unread));
    }
}
