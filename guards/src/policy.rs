//! Who may approve what, and when: the rules of one file. Pure.
//!
//! Rules are read from the top. The first one that is about a plan decides: whoever it does not name may not approve that plan, whatever a later rule says.
//! Where no rule is about a plan, nobody may. So a file that is empty, or is not there, lets nobody do anything.

use std::collections::BTreeMap;

use jiff::{Timestamp, civil, tz::TimeZone};
use model::{
    ResourceKey,
    plan::{ActionClass, Plan},
};
use serde::Deserialize;

/// What ends or deletes something takes at least so many people.
const DESTRUCTIVE_NEEDS: u32 = 2;
/// Stands for everybody who is enrolled.
const EVERYBODY: &str = "*";

/// The rules of a file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Policy {
    /// In the order in which they are read.
    #[serde(rename = "rule")]
    pub rules: Vec<Rule>,
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
    pub hours: Option<Hours>,
}

fn reversible() -> Vec<ActionClass> {
    vec![ActionClass::Reversible]
}

fn one() -> u32 {
    1
}

/// When a rule lets people approve.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hours {
    /// On these days.
    pub days: Vec<Day>,
    /// From this time of the day on: `08:00`.
    pub from: civil::Time,
    /// Until before this one; the same as `from` is the whole day, and an earlier one is on the next day.
    pub to: civil::Time,
    /// Whose clock counts: `Europe/Berlin`.
    #[serde(deserialize_with = "zone")]
    pub zone: TimeZone,
}

/// A day of the week.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
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

impl Hours {
    fn hold(&self, at: Timestamp) -> bool {
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
            let least = match plan.class() {
                ActionClass::Reversible => 1,
                ActionClass::Destructive => DESTRUCTIVE_NEEDS,
            };
            return Ok(Allowed { rule: &rule.name, needs: rule.needs.max(least) });
        }
        Err(NotAllowed::NoRule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::plan::{Action, PlanContent, Saving};
    use proptest::prelude::*;

    fn plan(account: &str) -> Plan {
        let content = PlanContent {
            finding: "f-1".to_owned(),
            record: 2,
            resource: format!("aws:{account}:eu-central-1:i-1").parse().expect("a key"),
            title: "Stop it".to_owned(),
            conditions: Vec::new(),
            actions: vec![Action::StopInstance],
            reversal: vec![Action::StartInstance],
            lost: Vec::new(),
            keeps_billing: Vec::new(),
            net_saving: Saving::Unknown { why: "no price".to_owned() },
        };
        Plan::seal(content, Timestamp::MAX).expect("a plan")
    }

    fn policy(text: &str) -> Policy {
        toml::from_str(text).expect("a policy")
    }

    const GENOMICS: &str = r#"
        [[rule]]
        name = "genomics"
        approvers = ["ada", "grace"]
        accounts = ["123456789012"]
        tags = { team = "genomics" }
        [[rule]]
        name = "platform"
        approvers = ["*"]
        needs = 2
        hours = { days = ["mon", "tue", "wed", "thu", "fri"], from = "08:00", to = "18:00", zone = "Europe/Berlin" }
    "#;

    fn ask(
        policy: &Policy,
        who: &str,
        plan: &Plan,
        tags: Option<&[(&str, &str)]>,
        at: &str,
    ) -> Result<(String, u32), String> {
        let tags = tags.map(|tags| tags.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect());
        let at = at.parse().expect("a time");
        let allowed = policy.may_approve(Asked { who, plan, tags_before: tags.as_ref(), at });
        allowed.map(|allowed| (allowed.rule.to_owned(), allowed.needs)).map_err(|why| why.to_string())
    }

    /// A Wednesday, 10 o'clock in Berlin.
    const WORK: &str = "2026-11-25T09:00:00Z";

    #[test]
    fn the_first_rule_that_is_about_a_plan_decides() {
        let (rules, here, elsewhere) = (policy(GENOMICS), plan("123456789012"), plan("999999999999"));
        let genomics: Option<&[_]> = Some(&[("team", "genomics"), ("Name", "x")]);
        assert_eq!(ask(&rules, "ada", &here, genomics, WORK), Ok(("genomics".to_owned(), 1)));
        let others = "the rule `genomics` does not name mallory".to_owned();
        assert_eq!(ask(&rules, "mallory", &here, genomics, WORK), Err(others), "a later rule would let them");
        assert_eq!(ask(&rules, "mallory", &here, Some(&[("team", "physics")]), WORK), Ok(("platform".to_owned(), 2)));
        assert_eq!(ask(&rules, "mallory", &here, Some(&[]), WORK), Ok(("platform".to_owned(), 2)));
        assert_eq!(ask(&rules, "ada", &elsewhere, genomics, WORK), Ok(("platform".to_owned(), 2)));
        let unknown = ask(&rules, "ada", &here, None, WORK).expect_err("which rule is about it nobody knows");
        assert!(unknown.contains("`genomics` asks for tags"), "{unknown}");
        assert_eq!(
            ask(&rules, "ada", &elsewhere, None, WORK),
            Ok(("platform".to_owned(), 2)),
            "that one asks for none"
        );
    }

    #[test]
    fn hours_are_of_their_zone_and_end_before_their_end() {
        let (rules, there) = (policy(GENOMICS), plan("999999999999"));
        let at = |at: &str| ask(&rules, "ada", &there, None, at).is_ok();
        // In summer Berlin is two hours ahead, in winter one.
        for (time, is_open) in [
            ("2026-11-25T06:59:59Z", false),
            ("2026-11-25T07:00:00Z", true),
            ("2026-11-25T16:59:59Z", true),
            ("2026-11-25T17:00:00Z", false),
            ("2026-07-22T05:59:59Z", false),
            ("2026-07-22T06:00:00Z", true),
            ("2026-07-22T16:00:00Z", false),
            ("2026-11-28T10:00:00Z", false),
            ("2026-11-29T10:00:00Z", false),
        ] {
            assert_eq!(at(time), is_open, "{time}");
        }
        let night = policy(
            r#"rule = [{ name = "n", approvers = ["ada"], hours = { days = ["sat"], from = "22:00", to = "06:00", zone = "UTC" } }]"#,
        );
        for (time, is_open) in [
            ("2026-11-28T21:59:59Z", false),
            ("2026-11-28T22:00:00Z", true),
            ("2026-11-29T05:59:59Z", true),
            ("2026-11-29T06:00:00Z", false),
            ("2026-11-28T05:00:00Z", false),
            ("2026-11-29T22:00:00Z", false),
        ] {
            assert_eq!(ask(&night, "ada", &there, None, time).is_ok(), is_open, "{time}");
        }
    }

    #[test]
    fn the_example_is_a_policy() {
        let example = policy(include_str!("../../packaging/policy.example.toml"));
        assert_eq!(example.rules.len(), 2);
    }

    #[test]
    fn an_empty_policy_lets_nobody_do_anything() {
        let none = Err("no rule of the policy is about this plan".to_owned());
        assert_eq!(ask(&Policy::default(), "ada", &plan("123456789012"), Some(&[]), WORK), none);
        assert_eq!(ask(&policy(""), "ada", &plan("123456789012"), Some(&[]), WORK), none);
        let deletes = policy(r#"rule = [{ name = "d", approvers = ["*"], classes = ["destructive"] }]"#);
        assert_eq!(ask(&deletes, "ada", &plan("123456789012"), Some(&[]), WORK), none, "a stop deletes nothing");
    }

    #[test]
    fn what_a_rule_does_not_know_is_refused() {
        for wrong in [
            "[[rule]]\nname = \"n\"",
            "[[rule]]\nname = \"n\"\napprovers = []\npeople = []",
            "rules = []",
            "rule = [{ name = \"n\", approvers = [], classes = [\"all\"] }]",
            "rule = [{ name = \"n\", approvers = [], hours = { days = [], from = \"8\", to = \"18:00\", zone = \"UTC\" } }]",
            "rule = [{ name = \"n\", approvers = [], hours = { days = [], from = \"08:00\", to = \"18:00\", zone = \"Mars/Olympus\" } }]",
        ] {
            assert!(toml::from_str::<Policy>(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        /// Whatever rules there are: who is allowed is named by the first one that is about the plan, within its hours.
        #[test]
        fn nobody_is_allowed_whom_the_deciding_rule_does_not_name(
            rules in prop::collection::vec((prop::bool::ANY, prop::bool::ANY, prop::bool::ANY, 0_u32..4), 0..5),
            known in prop::bool::ANY,
        ) {
            let rules: Vec<Rule> = rules
                .into_iter()
                .enumerate()
                .map(|(number, (names_ada, is_here, asks_tags, needs))| Rule {
                    name: number.to_string(),
                    approvers: vec![if names_ada { "ada" } else { "grace" }.to_owned()],
                    accounts: Some(vec![if is_here { "123456789012" } else { "999999999999" }.to_owned()]),
                    tags: asks_tags.then(|| ("team".to_owned(), "genomics".to_owned())).into_iter().collect(),
                    classes: reversible(),
                    needs,
                    hours: None,
                })
                .collect();
            let policy = Policy { rules: rules.clone() };
            let told = ask(&policy, "ada", &plan("123456789012"), known.then_some(&[][..]), WORK);
            // The tags are known to be none, or not known: then a rule that asks for tags stops all.
            let first = rules.iter().find(|rule| {
                rule.accounts.as_deref() == Some(&["123456789012".to_owned()]) && (rule.tags.is_empty() || !known)
            });
            match (told, first) {
                (Ok((name, needs)), Some(rule)) => {
                    prop_assert_eq!(&name, &rule.name);
                    prop_assert!(rule.tags.is_empty() && rule.approvers == ["ada"]);
                    prop_assert_eq!(needs, rule.needs.max(1));
                }
                (Ok(told), None) => panic!("{told:?}"),
                (Err(_), Some(rule)) => prop_assert!(!rule.tags.is_empty() || rule.approvers != ["ada"]),
                (Err(_), None) => {}
            }
        }
    }
}
