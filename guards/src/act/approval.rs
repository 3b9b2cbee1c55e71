//! Refuses a plan that not enough people have approved, each a different one who is still enrolled and has been since; and one that anybody has denied.
//! What ends or deletes something takes two different approvers, whatever a policy says.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Moment;
use crate::Refusal;

/// What somebody said of exactly this plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Say {
    /// Whose.
    pub approver: String,
    /// What.
    pub answer: Answer,
    /// When.
    pub at: Timestamp,
    /// Since when they are enrolled; none if they are not any more.
    pub enrolled_since: Option<Timestamp>,
}

/// A yes or a no.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Yes.
    Approve,
    /// No.
    Deny,
}

impl Answer {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Deny => "deny",
        }
    }

    /// The answer of that word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Approve, Self::Deny].into_iter().find(|answer| answer.as_str() == word)
    }
}

pub(crate) fn guard(moment: &Moment<'_>) -> Result<(), Refusal> {
    if let Some(no) = moment.says.iter().find(|say| say.answer == Answer::Deny) {
        return Err(Refusal::Denied { by: no.approver.clone() });
    }
    let needs = moment.needs.ok_or(Refusal::NoRule)?.max(moment.plan.class().least_approvers());
    let counts = |say: &&Say| say.enrolled_since.is_some_and(|since| since <= say.at) && say.at <= moment.now;
    let people: BTreeSet<&str> = moment.says.iter().filter(counts).map(|say| say.approver.as_str()).collect();
    let given = u32::try_from(people.len()).unwrap_or(u32::MAX);
    if given >= needs { Ok(()) } else { Err(Refusal::NotApproved { given, needs }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::act::sample::{NOW, Released, Sample};
    use jiff::SignedDuration;

    #[test]
    fn an_answer_is_found_by_its_word() {
        for answer in [Answer::Approve, Answer::Deny] {
            assert_eq!(Answer::from_word(answer.as_str()), Some(answer));
        }
        assert_eq!(Answer::from_word("perhaps"), None);
    }

    #[test]
    fn silence_is_no_answer_and_one_no_is_enough() {
        assert_eq!(Sample::with(|moment| moment.says.clear()), Err(Refusal::NotApproved { given: 0, needs: 1 }));
        assert_eq!(Sample::with(|moment| moment.needs = None), Err(Refusal::NoRule));
        let none = Err(Refusal::NotApproved { given: 0, needs: 1 });
        let never = Sample::with(|moment| {
            moment.says.clear();
            moment.needs = Some(0);
        });
        assert_eq!(never, none, "nothing is done that nobody approved");
        let denied = Sample::with(|moment| {
            let no = Say { approver: "grace".to_owned(), answer: Answer::Deny, ..moment.says[0].clone() };
            moment.says.push(no);
        });
        assert_eq!(denied, Err(Refusal::Denied { by: "grace".to_owned() }));
    }

    #[test]
    fn one_person_never_ends_anything_for_good() {
        let of = |needs| {
            Released::with(|released| {
                released.sample.needs = Some(needs);
                released.sample.says.truncate(1);
            })
        };
        for needs in [0, 1, 2] {
            assert_eq!(of(needs), Err(Refusal::NotApproved { given: 1, needs: 2 }), "{needs}");
        }
        let same = Released::with(|released| "ada".clone_into(&mut released.sample.says[1].approver));
        assert_eq!(same, Err(Refusal::NotApproved { given: 1, needs: 2 }));
        assert_eq!(Released::with(|released| released.sample.needs = Some(1)), Ok(()), "two have");
    }

    #[test]
    fn two_answers_of_one_person_are_one() {
        let two = |other: &str| {
            Sample::with(|moment| {
                moment.needs = Some(2);
                let again = Say { approver: other.to_owned(), ..moment.says[0].clone() };
                moment.says.push(again);
            })
        };
        assert_eq!(two("ada"), Err(Refusal::NotApproved { given: 1, needs: 2 }));
        assert_eq!(two("grace"), Ok(()));
    }

    #[test]
    fn who_was_taken_off_the_list_counts_no_more_also_when_they_come_back() {
        let none = Err(Refusal::NotApproved { given: 0, needs: 1 });
        let since = |since| Sample::with(|moment| moment.says[0].enrolled_since = since);
        assert_eq!(since(None), none);
        let said_at = Sample::default().says[0].at;
        assert_eq!(since(Some(said_at + SignedDuration::from_secs(1))), none);
        assert_eq!(since(Some(said_at)), Ok(()));
        assert_eq!(Sample::with(|moment| moment.says[0].at = NOW + SignedDuration::from_secs(1)), none, "not yet");
    }
}
