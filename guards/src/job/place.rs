//! Refuses a job that is not any more in the queue and the compute environment, or not of the definition, that the plan names; and one of which any of these is not known.

use model::job::{JobFacts, JobPlace};

use super::JobRefusal;
use crate::Refusal;

pub(super) fn known(facts: &JobFacts) -> Result<(), Refusal> {
    place(facts).map(drop)
}

fn place(facts: &JobFacts) -> Result<&JobPlace, Refusal> {
    let what = || "its job queue, definition or compute environment".to_owned();
    facts.place.as_ref().ok_or_else(|| JobRefusal::NotKnown { what: what() }.into())
}

pub(super) fn same(was: &JobPlace, facts: &JobFacts) -> Result<(), Refusal> {
    let is = place(facts)?;
    let each = [
        ("job queue", &was.queue, &is.queue),
        ("definition", &was.definition, &is.definition),
        ("compute environment", &was.environment, &is.environment),
    ];
    match each.into_iter().find(|(_, was, is)| was != is) {
        Some((what, was, is)) => {
            Err(JobRefusal::PlaceChanged { what: what.to_owned(), was: was.clone(), is: is.clone() }.into())
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{
        holds, may_terminate,
        sample::{facts, place},
    };
    use model::plan::Condition;

    type Part = fn(&mut JobPlace) -> &mut String;

    #[test]
    fn what_is_elsewhere_or_something_else_is_not_what_was_approved() {
        let condition = Condition::JobPlaceIs { place: place() };
        assert_eq!(holds(&condition, &facts(|_| ())), Ok(()));
        let parts: [(&str, Part); 3] = [
            ("job queue", |place| &mut place.queue),
            ("definition", |place| &mut place.definition),
            ("compute environment", |place| &mut place.environment),
        ];
        for (what, part) in parts {
            let is = "arn:another".to_owned();
            let changed = facts(|facts| part(facts.place.as_mut().expect("a place")).clone_from(&is));
            let was = part(&mut place()).clone();
            let refused = JobRefusal::PlaceChanged { what: what.to_owned(), was, is };
            assert_eq!(holds(&condition, &changed), Err(refused.into()));
        }
        let unknown = facts(|facts| facts.place = None);
        let what = "its job queue, definition or compute environment".to_owned();
        let refused: Refusal = JobRefusal::NotKnown { what }.into();
        assert_eq!(holds(&condition, &unknown), Err(refused.clone()));
        assert_eq!(may_terminate(&unknown), Err(refused));
    }
}
