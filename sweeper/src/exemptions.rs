//! What people want left alone: an exemption is for good, a snooze has an end. Pure.
//!
//! Whoever is enrolled may say so, of anything, whatever the policy says: it can stop nothing but actions. While it holds no plan is made for the resource, what was approved for it is not carried
//! out, and nobody is told again of the class of waste that it was said of.

use crate::{detectors::Class, findings::FindingId, verdict::words};
use jiff::{SignedDuration, Timestamp};
use model::{ResourceKey, plan::ContentHash};
use serde::Serialize;
use std::collections::HashMap;

/// The longest snooze. Who wants more says never, which does not end when nobody remembers it.
pub const LONGEST: SignedDuration = SignedDuration::from_hours(366 * 24);

/// Somebody's word that a resource is left alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Exemption {
    /// Its name: `x-` and twelve hexadecimal digits.
    pub id: String,
    /// What is left alone.
    pub resource: ResourceKey,
    /// The finding that it was said of; none where it was said of the resource itself.
    pub finding: Option<FindingId>,
    /// Of which waste nobody is told again while it holds; none where it was said of the resource itself.
    pub class: Option<Class>,
    /// Whose word.
    pub approver: String,
    /// By which way.
    pub way: String,
    /// By the database's clock.
    pub at: Timestamp,
    /// The end of a snooze; none of what is for good.
    pub until: Option<Timestamp>,
    /// Why, if they said so.
    pub because: Option<String>,
    /// Who lifted it, and when.
    pub lifted: Option<Lifted>,
}

/// Who lifted an exemption, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lifted {
    /// Who.
    pub by: String,
    /// When.
    pub at: Timestamp,
}

impl Exemption {
    /// Whether it holds.
    #[must_use]
    pub fn holds(&self, now: Timestamp) -> bool {
        self.lifted.is_none() && self.until.is_none_or(|until| now < until)
    }

    /// In one line.
    #[must_use]
    pub fn line(&self) -> String {
        let until = match self.until {
            None => "never".to_owned(),
            Some(until) => format!("not before {}", words::time(until.as_millisecond())),
        };
        let because = self.because.as_ref().map_or_else(String::new, |because| format!(": {because}"));
        format!("{} said {until}, {}{because}", self.approver, words::time(self.at.as_millisecond()))
    }
}

/// What came of such a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftAlone {
    /// It holds.
    pub exemption: Exemption,
    /// It came too late for the action of this plan, which has been called.
    pub called: Option<ContentHash>,
}

impl LeftAlone {
    /// What whoever said so must know beside that it holds, as a sentence that begins with a space; nothing in most cases.
    #[must_use]
    pub fn too_late(&self) -> String {
        let told = |plan: &ContentHash| {
            let plan = plan.short();
            format!(
                " But what was approved has been called before that: `sweeper actions` shows how far it is, and `sweeper undo {plan}` undoes it, if anything does."
            )
        };
        self.called.as_ref().map(told).unwrap_or_default()
    }
}

/// What holds now, by resource.
#[derive(Debug, Default)]
pub struct Exemptions(HashMap<ResourceKey, Vec<Exemption>>);

impl Exemptions {
    /// Of these, which all hold.
    #[must_use]
    pub fn new(exemptions: impl IntoIterator<Item = Exemption>) -> Self {
        let mut all: HashMap<ResourceKey, Vec<Exemption>> = HashMap::new();
        for exemption in exemptions {
            all.entry(exemption.resource.clone()).or_default().push(exemption);
        }
        Self(all)
    }

    /// The one on a resource that holds longest.
    #[must_use]
    pub fn of(&self, resource: &ResourceKey) -> Option<&Exemption> {
        self.0.get(resource)?.iter().max_by_key(|one| one.until.unwrap_or(Timestamp::MAX))
    }

    /// The resources that none of these others were about.
    pub(crate) fn beyond<'a>(&'a self, others: &'a Self) -> impl Iterator<Item = (&'a ResourceKey, &'a Exemption)> {
        let new = self.0.keys().filter(|resource| !others.0.contains_key(*resource));
        new.filter_map(|resource| Some((resource, self.of(resource)?)))
    }

    /// Whether nobody wants to be told of this class of waste on a resource.
    #[must_use]
    pub fn silences(&self, class: Class, resource: &ResourceKey) -> bool {
        self.0.get(resource).is_some_and(|all| all.iter().any(|one| one.class == Some(class)))
    }
}

/// Why nothing is left alone by it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotExempted {
    /// Nobody knows them.
    #[error("{who} is not enrolled; an administrator does that by `sweeper approvers add`")]
    NotEnrolled {
        /// Who asked.
        who: String,
    },
    /// It has an end, and that is no time to come.
    #[error("{until} is over: name a time that is to come")]
    Over {
        /// The end.
        until: Timestamp,
    },
    /// Nobody remembers it by then.
    #[error("{until} is more than a year from now: say never, which can be lifted, or name an earlier time")]
    TooLong {
        /// The end.
        until: Timestamp,
    },
    /// The same was said before.
    #[error("you have said so already ({id})")]
    Already {
        /// What holds.
        id: String,
    },
    /// There is none.
    #[error("no exemption {id} holds; `sweeper exemptions` lists those that do")]
    NoneHolds {
        /// Of which name.
        id: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap_or_default()
    }

    fn exemption(class: Option<Class>, until: Option<i64>) -> Exemption {
        Exemption {
            id: "x-1".to_owned(),
            resource: key("i-0123456789abcdef0"),
            finding: None,
            class,
            approver: "ada".to_owned(),
            way: "shell".to_owned(),
            at: at(0),
            until: until.map(at),
            because: Some("the demo".to_owned()),
            lifted: None,
        }
    }

    fn key(id: &str) -> ResourceKey {
        match format!("aws:123456789012:eu-central-1:{id}").parse() {
            Ok(key) => key,
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn it_holds_until_its_end_or_until_it_is_lifted() {
        assert!(exemption(None, None).holds(Timestamp::MAX));
        assert!(exemption(None, Some(10)).holds(at(9)) && !exemption(None, Some(10)).holds(at(10)));
        let lifted = Lifted { by: "grace".to_owned(), at: at(5) };
        assert!(!Exemption { lifted: Some(lifted), ..exemption(None, None) }.holds(at(6)));
    }

    #[test]
    fn it_reads_as_people_speak() {
        assert_eq!(exemption(None, None).line(), "ada said never, 1970-01-01 00:00:00 UTC: the demo");
        let snooze = Exemption { because: None, ..exemption(None, Some(3_600)) };
        assert_eq!(snooze.line(), "ada said not before 1970-01-01 01:00:00 UTC, 1970-01-01 00:00:00 UTC");
    }

    #[test]
    fn nobody_is_told_of_what_it_was_said_of_and_of_everything_else() {
        let of = |all: Vec<Exemption>| Exemptions::new(all);
        let (machine, other) = (key("i-0123456789abcdef0"), key("i-0123456789abcdef1"));
        let idle = of(vec![exemption(Some(Class::IdleNode), Some(10))]);
        assert!(idle.silences(Class::IdleNode, &machine));
        assert!(!idle.silences(Class::SilentAgent, &machine), "that is another matter");
        assert!(!idle.silences(Class::IdleNode, &other) && idle.of(&other).is_none());
        assert!(!of(vec![exemption(None, None)]).silences(Class::IdleNode, &machine), "its actions alone");
        let both = of(vec![exemption(None, None), exemption(Some(Class::IdleNode), Some(10))]);
        assert_eq!(both.of(&machine).map(|one| one.until), Some(None), "for good is longest");
        let new = |others: &Exemptions| both.beyond(others).map(|(resource, _)| resource.clone()).collect::<Vec<_>>();
        assert_eq!((new(&Exemptions::default()), new(&idle)), (vec![machine], Vec::new()));
    }
}
