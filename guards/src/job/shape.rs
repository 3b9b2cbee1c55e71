//! Refuses a job that is a part of more, or is more: an array, a child of one, a multi-node job or one of its nodes; and what runs on Kubernetes.

use model::job::{JobFacts, JobShape};

use super::JobRefusal;
use crate::Refusal;

pub(super) fn guard(facts: &JobFacts) -> Result<(), Refusal> {
    let what = match facts.shape {
        JobShape::Plain if facts.on_kubernetes => "on Kubernetes",
        JobShape::Plain => return Ok(()),
        JobShape::Array => "an array",
        JobShape::Child => "a child of an array",
        JobShape::MultiNode => "a multi-node job or a part of one",
    };
    Err(JobRefusal::PartOfMore { what: what.to_owned() }.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{may_terminate, sample::facts};

    #[test]
    fn what_is_a_part_of_more_stays() {
        for (shape, what) in [
            (JobShape::Array, "an array"),
            (JobShape::Child, "a child of an array"),
            (JobShape::MultiNode, "a multi-node job or a part of one"),
        ] {
            let refused = JobRefusal::PartOfMore { what: what.to_owned() };
            assert_eq!(may_terminate(&facts(|facts| facts.shape = shape)), Err(refused.into()));
        }
        let refused = JobRefusal::PartOfMore { what: "on Kubernetes".to_owned() };
        assert_eq!(may_terminate(&facts(|facts| facts.on_kubernetes = true)), Err(refused.into()));
    }
}
