//! Refuses a machine that somebody wants left alone: for good, or for now. Whoever said so need not have been asked.

use jiff::Timestamp;
use serde::Serialize;

use super::Moment;
use crate::Refusal;

/// A person's word that a machine is left alone: an exemption, or with an end a snooze.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Exempted {
    /// Whose word.
    pub by: String,
    /// It is left alone until then; none: for good.
    pub until: Option<Timestamp>,
}

pub(crate) fn guard(moment: &Moment<'_>) -> Result<(), Refusal> {
    let holds = |one: &&Exempted| one.until.is_none_or(|until| moment.now < until);
    // What holds longest says most.
    let longest = moment.exempted.iter().filter(holds).max_by_key(|one| one.until.unwrap_or(Timestamp::MAX));
    match longest.cloned() {
        None => Ok(()),
        Some(Exempted { by, until: None }) => Err(Refusal::ExemptedBy { by }),
        Some(Exempted { by, until: Some(until) }) => Err(Refusal::SnoozedBy { by, until }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::act::sample::{NOW, Sample};
    use jiff::SignedDuration;

    fn exempted(by: &str, until: Option<Timestamp>) -> Exempted {
        Exempted { by: by.to_owned(), until }
    }

    #[test]
    fn a_machine_is_left_alone_for_as_long_as_anybody_wants_it() {
        let of = |all: &[Exempted]| Sample::with(|moment| moment.exempted = all.to_vec());
        let [before, later] = [-1, 1].map(|seconds| NOW + SignedDuration::from_secs(seconds));
        let never = Err(Refusal::ExemptedBy { by: "ada".to_owned() });
        let snoozed = |until| Err(Refusal::SnoozedBy { by: "grace".to_owned(), until });
        assert_eq!(of(&[]), Ok(()));
        assert_eq!(of(&[exempted("ada", None)]), never);
        assert_eq!(of(&[exempted("grace", Some(later))]), snoozed(later));
        for over in [before, NOW] {
            assert_eq!(of(&[exempted("grace", Some(over))]), Ok(()), "until then, and no longer");
        }
        let other = later + SignedDuration::from_hours(1);
        assert_eq!(of(&[exempted("grace", Some(other)), exempted("grace", Some(later))]), snoozed(other));
        assert_eq!(of(&[exempted("ada", None), exempted("grace", Some(later))]), never, "for good is longest");
        assert_eq!(of(&[exempted("ada", Some(before)), exempted("grace", Some(later))]), snoozed(later));
    }
}
