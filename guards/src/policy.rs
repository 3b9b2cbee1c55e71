//! Who may approve what, and when: the rules of one file. Pure.
//!
//! Rules are read from the top. The first one that is about a plan decides: whoever it does not name may not approve that plan, whatever a later rule says.
//! Where no rule is about a plan, nobody may. So a file that is empty, or is not there, lets nobody do anything.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{Timestamp, civil, tz::TimeZone};
use model::{
    ResourceKey,
    plan::{ActionClass, Plan},
};
use serde::{Deserialize, Serialize, Serializer};

use crate::act::{Answer, Say};

/// Stands for everybody who is enrolled.
const EVERYBODY: &str = "*";

/// The rules of a file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Policy {
    /// What a plan is about that somebody has said no to is left alone for so many days, a year at most; not at all if this is 0, as it is if it is left out.
    #[serde(deserialize_with = "at_most_a_year")]
    pub snooze_after_no_days: u16,
    /// In the order in which they are read.
    #[serde(rename = "rule")]
    pub rules: Vec<Rule>,
}

/// The longest snooze after a no, in days.
const LONGEST_SNOOZE_DAYS: u16 = 365;

fn at_most_a_year<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u16, D::Error> {
    let days = u16::deserialize(deserializer)?;
    if days > LONGEST_SNOOZE_DAYS {
        let why = format!("`snooze_after_no_days` is {days}, and {LONGEST_SNOOZE_DAYS} at most");
        return Err(serde::de::Error::custom(why));
    }
    Ok(days)
}

/// Who may approve plans of one kind.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// What people call it.
    pub name: String,
    /// Who may approve, by the names under which they are enrolled; `*` is everybody who is.
    pub approvers: Vec<String>,
    /// Only in these accounts and projects; everywhere if left out.
    pub accounts: Option<Vec<String>>,
    /// Only for machines that carried all of these tags before the finding began; for any if left out.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
    /// Only for plans of these classes; reversible ones alone if left out.
    #[serde(default = "reversible")]
    pub classes: Vec<ActionClass>,
    /// So many different people must approve; what ends or deletes something takes two at least.
    #[serde(default = "one")]
    pub needs: u32,
    /// Only at these times; at any if left out.
    #[serde(default, deserialize_with = "on_some_day")]
    pub hours: Option<Hours>,
}

fn reversible() -> Vec<ActionClass> {
    vec![ActionClass::Reversible]
}

fn one() -> u32 {
    1
}

/// Hours of the week, by the clock of a place.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hours {
    /// On these days.
    pub days: Vec<Day>,
    /// From this time of the day on: `08:00`.
    pub from: civil::Time,
    /// Until before this one; the same as `from` is 24 hours later, and an earlier one is on the next day.
    pub to: civil::Time,
    /// Whose clock counts: `Europe/Berlin`.
    #[serde(serialize_with = "name_of_zone", deserialize_with = "zone")]
    pub zone: TimeZone,
}

fn on_some_day<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Hours>, D::Error> {
    let hours: Option<Hours> = Option::deserialize(deserializer)?;
    if hours.as_ref().is_some_and(|hours| hours.days.is_empty()) {
        return Err(serde::de::Error::custom("`days` names no day: on none nobody could ever approve anything"));
    }
    Ok(hours)
}

/// A day of the week.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Day {
    /// Monday.
    Mon,
    /// Tuesday.
    Tue,
    /// Wednesday.
    Wed,
    /// Thursday.
    Thu,
    /// Friday.
    Fri,
    /// Saturday.
    Sat,
    /// Sunday.
    Sun,
}

impl Day {
    /// As a file has it: `mon`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Mon => "mon",
            Self::Tue => "tue",
            Self::Wed => "wed",
            Self::Thu => "thu",
            Self::Fri => "fri",
            Self::Sat => "sat",
            Self::Sun => "sun",
        }
    }

    fn of(weekday: civil::Weekday) -> Self {
        match weekday {
            civil::Weekday::Monday => Self::Mon,
            civil::Weekday::Tuesday => Self::Tue,
            civil::Weekday::Wednesday => Self::Wed,
            civil::Weekday::Thursday => Self::Thu,
            civil::Weekday::Friday => Self::Fri,
            civil::Weekday::Saturday => Self::Sat,
            civil::Weekday::Sunday => Self::Sun,
        }
    }
}

fn zone<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<TimeZone, D::Error> {
    let name = String::deserialize(deserializer)?;
    TimeZone::get(&name).map_err(|error| serde::de::Error::custom(format!("time zone `{name}`: {error}")))
}

fn name_of_zone<S: Serializer>(zone: &TimeZone, serializer: S) -> Result<S::Ok, S::Error> {
    // Each was read by its name.
    zone.iana_name().serialize(serializer)
}

impl Hours {
    /// Whether a moment is within them.
    #[must_use]
    pub fn hold(&self, at: Timestamp) -> bool {
        let now = at.to_zoned(self.zone.clone());
        let (today, time) = (now.date(), now.time());
        let is_on = |date: Option<civil::Date>| date.is_some_and(|date| self.days.contains(&Day::of(date.weekday())));
        if self.from < self.to {
            return is_on(Some(today)) && self.from <= time && time < self.to;
        }
        // Over midnight: what begins on a day goes on into the next one.
        (is_on(Some(today)) && self.from <= time) || (is_on(today.yesterday().ok()) && time < self.to)
    }
}

/// Who asks to approve what.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The name under which the person is enrolled.
    pub who: &'a str,
    /// The plan.
    pub plan: &'a Plan,
    /// The tags that its machine carried before the finding began; none if nobody knows them.
    pub tags_before: Option<&'a BTreeMap<String, String>>,
    /// When.
    pub at: Timestamp,
}

/// What a rule allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowed<'a> {
    /// Which.
    pub rule: &'a str,
    /// So many different people must approve, this one among them.
    pub needs: u32,
}

/// Why somebody may not approve a plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAllowed {
    /// No rule is about it.
    #[error("no rule of the policy is about this plan")]
    NoRule,
    /// Without the tags of before nobody knows which rule is about it.
    #[error(
        "the rule `{rule}` asks for tags, and which ones the machine carried before the finding began is not known"
    )]
    TagsNotKnown {
        /// Which rule asks.
        rule: String,
    },
    /// The rule that is about it names others.
    #[error("the rule `{rule}` does not name {who}")]
    NotNamed {
        /// Which.
        rule: String,
        /// Who asked.
        who: String,
    },
    /// It names this person, at other times.
    #[error("the rule `{rule}` allows it at other times")]
    NotNow {
        /// Which.
        rule: String,
    },
}

/// Why nobody may approve a plan, whoever asks and whenever.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NobodyMay {
    /// No rule is about it.
    #[error("no rule of the policy is about it")]
    NoRule,
    /// The rule that is about it names fewer than must approve.
    #[error("the rule `{rule}` names {named}, and {needs} different people must")]
    TooFew {
        /// Which.
        rule: String,
        /// So many different people.
        named: usize,
        /// So many must.
        needs: u32,
    },
}

/// Whether a rule is about a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum About {
    Yes,
    No,
    NotKnown,
}

impl Rule {
    fn is_about(&self, plan: &Plan, tags_before: Option<&BTreeMap<String, String>>) -> About {
        let ResourceKey { account, .. } = &plan.content().resource;
        let is_there = self.accounts.as_ref().is_none_or(|accounts| accounts.contains(account));
        if !is_there || !self.classes.contains(&plan.class()) {
            return About::No;
        }
        match tags_before {
            _ if self.tags.is_empty() => About::Yes,
            None => About::NotKnown,
            Some(tags) if self.tags.iter().all(|(key, value)| tags.get(key) == Some(value)) => About::Yes,
            Some(_) => About::No,
        }
    }
}

impl Policy {
    /// Whether somebody may approve a plan, and how many must.
    ///
    /// # Errors
    /// Why not.
    pub fn may_approve(&self, asked: Asked<'_>) -> Result<Allowed<'_>, NotAllowed> {
        let Asked { who, plan, tags_before, at } = asked;
        for rule in &self.rules {
            let name = || rule.name.clone();
            match rule.is_about(plan, tags_before) {
                About::No => continue,
                // It may be the one that decides: a later one must not.
                About::NotKnown => return Err(NotAllowed::TagsNotKnown { rule: name() }),
                About::Yes => {}
            }
            if !rule.approvers.iter().any(|name| name == who || name == EVERYBODY) {
                return Err(NotAllowed::NotNamed { rule: name(), who: who.to_owned() });
            }
            if rule.hours.as_ref().is_some_and(|hours| !hours.hold(at)) {
                return Err(NotAllowed::NotNow { rule: name() });
            }
            return Ok(Allowed { rule: &rule.name, needs: rule.needs.max(plan.class().least_approvers()) });
        }
        Err(NotAllowed::NoRule)
    }

    /// Why nobody may approve a plan, whoever asks and whenever; none if somebody may, or that cannot be told without the tags of before.
    #[must_use]
    pub fn nobody_may(&self, plan: &Plan, tags_before: Option<&BTreeMap<String, String>>) -> Option<NobodyMay> {
        let about = self.rules.iter().map(|rule| (rule, rule.is_about(plan, tags_before)));
        let Some((rule, about)) = about.into_iter().find(|(_, about)| *about != About::No) else {
            return Some(NobodyMay::NoRule);
        };
        if about == About::NotKnown || rule.approvers.iter().any(|name| name == EVERYBODY) {
            return None;
        }
        let named = rule.approvers.iter().collect::<BTreeSet<_>>().len();
        let needs = rule.needs.max(plan.class().least_approvers());
        let is_enough = u32::try_from(named).unwrap_or(u32::MAX) >= needs;
        (!is_enough).then(|| NobodyMay::TooFew { rule: rule.name.clone(), named, needs })
    }

    /// What counts of what people said of a plan: each no, and each yes that this policy would let be at the moment at which it was said; and how many must
    /// approve, none where it lets none of them. A policy that has changed since takes back what it does not let be any more.
    #[must_use]
    pub fn counted(
        &self,
        says: &[Say],
        plan: &Plan,
        tags_before: Option<&BTreeMap<String, String>>,
    ) -> (Vec<Say>, Option<u32>) {
        let mut needs = None;
        let mut counts = Vec::new();
        for say in says {
            let allowed = self.may_approve(Asked { who: &say.approver, plan, tags_before, at: say.at });
            match (say.answer, allowed) {
                (Answer::Approve, Ok(allowed)) => needs = needs.max(Some(allowed.needs)),
                (Answer::Approve, Err(_)) => continue,
                (Answer::Deny, _) => {}
            }
            counts.push(say.clone());
        }
        (counts, needs)
    }
}

#[cfg(test)]
mod tests;
