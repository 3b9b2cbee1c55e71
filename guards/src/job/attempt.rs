//! Refuses a job that is not any more in the attempt that the plan names: a later one, started at another time, in another task, or on another machine; and one of which any of these is not known.

use model::job::{JobAttempt, JobFacts};

use super::JobRefusal;
use crate::Refusal;

pub(super) fn known(facts: &JobFacts) -> Result<(), Refusal> {
    attempt(facts).map(drop)
}

fn attempt(facts: &JobFacts) -> Result<&JobAttempt, Refusal> {
    let what = || "its attempt, its task or its machine".to_owned();
    facts.attempt.as_ref().ok_or_else(|| JobRefusal::NotKnown { what: what() }.into())
}

pub(super) fn same(was: &JobAttempt, facts: &JobFacts) -> Result<(), Refusal> {
    let is = attempt(facts)?;
    let each = |of: &JobAttempt| {
        [
            ("attempt", of.number.to_string()),
            ("start", of.started_at.to_string()),
            ("task", of.task.clone()),
            ("container instance", of.container_instance.clone()),
            ("machine", of.machine.clone()),
        ]
    };
    match each(was).into_iter().zip(each(is)).find(|(was, is)| was != is) {
        Some(((what, was), (_, is))) => Err(JobRefusal::AttemptChanged { what: what.to_owned(), was, is }.into()),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{
        holds, may_terminate,
        sample::{STARTED, attempt, facts},
    };
    use jiff::SignedDuration;
    use model::plan::Condition;

    type Change = fn(&mut JobAttempt);

    #[test]
    fn another_attempt_is_another_job() {
        let condition = Condition::JobAttemptIs { attempt: attempt() };
        assert_eq!(holds(&condition, &facts(|_| ())), Ok(()));
        let changes: [(&str, Change); 5] = [
            ("attempt", |attempt| attempt.number = 2),
            ("start", |attempt| attempt.started_at = STARTED + SignedDuration::from_millis(1)),
            ("task", |attempt| attempt.task.push('2')),
            ("container instance", |attempt| attempt.container_instance.push('2')),
            ("machine", |attempt| attempt.machine = "i-2".to_owned()),
        ];
        for (changed, change) in changes {
            let is = facts(|facts| change(facts.attempt.as_mut().expect("an attempt")));
            let refused = holds(&condition, &is);
            let Err(Refusal::Job(JobRefusal::AttemptChanged { what, .. })) = refused else {
                panic!("{changed}: {refused:?}");
            };
            assert_eq!(what, changed);
        }
        let unknown = facts(|facts| facts.attempt = None);
        let what = "its attempt, its task or its machine".to_owned();
        let refused: Refusal = JobRefusal::NotKnown { what }.into();
        assert_eq!(holds(&condition, &unknown), Err(refused.clone()));
        assert_eq!(may_terminate(&unknown), Err(refused));
    }
}
