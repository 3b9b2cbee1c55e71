//! Refuses a job that has submitted another one which is not over: the head of a workflow waits for its jobs without a word to Batch, and they are lost with it. Where nobody knows who submitted one that it may have, it counts as submitted by it.

use model::{address::Told, job::JobFacts};

use super::JobRefusal;
use crate::Refusal;

pub(super) fn guard(facts: &JobFacts) -> Result<(), Refusal> {
    match &facts.heads {
        Told::Nothing => Ok(()),
        Told::Something { what } => Err(JobRefusal::HeadOf { what: what.clone() }.into()),
        Told::Unknown { why } => {
            Err(Refusal::NotTold { what: "whether it has submitted another job".to_owned(), why: why.clone() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{may_terminate, sample::facts};

    #[test]
    fn the_head_of_a_workflow_stays_while_a_job_of_it_is_not_over() {
        let of = |told: Told| may_terminate(&facts(|facts| facts.heads = told));
        let what = "the job 7".to_owned();
        assert_eq!(of(Told::Something { what: what.clone() }), Err(JobRefusal::HeadOf { what }.into()));
        let why = "who submitted the job 7 is not known".to_owned();
        let unread = Refusal::NotTold { what: "whether it has submitted another job".to_owned(), why: why.clone() };
        assert_eq!(of(Told::Unknown { why }), Err(unread));
    }
}
