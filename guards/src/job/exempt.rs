//! Refuses a job that somebody has exempted by a tag, on the job itself, its queue, its compute environment or its machine; and one where any of these tags cannot be read: one of them may exempt it.

use std::collections::BTreeMap;

use model::job::JobFacts;

use super::JobRefusal;
use crate::{Refusal, exemption};

pub(super) fn guard(facts: &JobFacts) -> Result<(), Refusal> {
    exemption::of_tags(facts.tags.as_ref())?;
    let around = [
        ("job queue", &facts.queue_tags),
        ("compute environment", &facts.environment_tags),
        ("machine", &facts.machine_tags),
    ];
    around.into_iter().try_for_each(|(of, tags)| of_other(of, tags.as_ref()))
}

fn of_other(of: &str, tags: Option<&BTreeMap<String, String>>) -> Result<(), Refusal> {
    exemption::of_tags(tags).map_err(|refused| match refused {
        Refusal::Exempt { tag } => JobRefusal::Exempt { of: of.to_owned(), tag }.into(),
        Refusal::TagsUnreadable => JobRefusal::TagsUnreadable { of: of.to_owned() }.into(),
        refused => refused,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        EXEMPTION_TAG,
        job::{holds, may_terminate, sample::facts},
    };
    use model::plan::Condition;

    type Tags = fn(&mut JobFacts) -> &mut Option<BTreeMap<String, String>>;

    #[test]
    fn whoever_exempts_a_job_or_what_it_is_in_exempts_the_job() {
        let all: [(&str, Tags); 4] = [
            ("", |facts| &mut facts.tags),
            ("job queue", |facts| &mut facts.queue_tags),
            ("compute environment", |facts| &mut facts.environment_tags),
            ("machine", |facts| &mut facts.machine_tags),
        ];
        for (of, tags) in all {
            let set = |value: &str| {
                facts(|facts| drop(tags(facts).get_or_insert_default().insert(EXEMPTION_TAG.into(), value.into())))
            };
            let tag = EXEMPTION_TAG.to_owned();
            let (exempt, unread) = match of {
                "" => (Refusal::Exempt { tag }, Refusal::TagsUnreadable),
                of => (
                    JobRefusal::Exempt { of: of.to_owned(), tag }.into(),
                    JobRefusal::TagsUnreadable { of: of.to_owned() }.into(),
                ),
            };
            assert_eq!(may_terminate(&set("")), Err(exempt.clone()), "{of}");
            assert_eq!(holds(&Condition::TagsPermit, &set("until 2027")), Err(exempt), "{of}");
            assert_eq!(may_terminate(&set("false")), Ok(()), "{of}");
            assert_eq!(may_terminate(&facts(|facts| *tags(facts) = None)), Err(unread), "{of}");
        }
    }
}
