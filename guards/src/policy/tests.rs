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
    assert_eq!(ask(&rules, "ada", &elsewhere, None, WORK), Ok(("platform".to_owned(), 2)), "that one asks for none");
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
    let round = policy(
        r#"rule = [{ name = "r", approvers = ["ada"], hours = { days = ["sat"], from = "08:00", to = "08:00", zone = "UTC" } }]"#,
    );
    for (time, is_open) in [
        ("2026-11-28T07:59:59Z", false),
        ("2026-11-28T08:00:00Z", true),
        ("2026-11-29T07:59:59Z", true),
        ("2026-11-29T08:00:00Z", false),
    ] {
        assert_eq!(ask(&round, "ada", &there, None, time).is_ok(), is_open, "{time}");
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
fn hours_are_written_as_they_are_read() {
    let rules = policy(GENOMICS);
    let hours = rules.rules[1].hours.as_ref().expect("hours");
    let text = toml::to_string(hours).expect("text");
    assert!(text.contains("zone = \"Europe/Berlin\""), "{text}");
    assert_eq!(toml::to_string(&toml::from_str::<Hours>(&text).expect("hours")).expect("text"), text);
    for (day, word) in [Day::Mon, Day::Tue, Day::Wed, Day::Thu, Day::Fri, Day::Sat, Day::Sun]
        .iter()
        .zip("mon tue wed thu fri sat sun".split(' '))
    {
        assert_eq!((day.as_str(), toml::Value::try_from(day).expect("text")), (word, word.into()));
    }
}

#[test]
fn what_was_said_counts_as_this_policy_would_let_it_be_at_that_moment() {
    let (rules, elsewhere) = (policy(GENOMICS), plan("999999999999"));
    let said = |who: &str, answer, at: &str| Say {
        approver: who.to_owned(),
        answer,
        at: at.parse().expect("a time"),
        enrolled_since: None,
    };
    let night = "2026-11-25T23:00:00Z";
    let says =
        [said("ada", Answer::Approve, WORK), said("mary", Answer::Approve, night), said("grace", Answer::Deny, night)];
    let (counts, needs) = rules.counted(&says, &elsewhere, None);
    assert_eq!((counts, needs), (vec![says[0].clone(), says[2].clone()], Some(2)));
    assert_eq!(rules.counted(&says[1..], &elsewhere, None), (vec![says[2].clone()], None), "no yes counts");
    let nothing = Policy::default();
    assert_eq!(nothing.counted(&says, &elsewhere, None), (vec![says[2].clone()], None), "the policy lets nobody now");
    let one = policy("[[rule]]\nname = \"one\"\napprovers = [\"ada\"]\n");
    assert_eq!(one.counted(&says, &elsewhere, None).1, Some(1));
}

#[test]
fn the_example_is_a_policy() {
    let example = policy(include_str!("../../../packaging/policy.example.toml"));
    let needs: Vec<u32> = example.rules.iter().map(|rule| rule.needs).collect();
    assert_eq!(needs, [1, 2]);
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
        "rule = [{ name = \"n\", approvers = [], hours = { days = [\"mon\"], from = \"8\", to = \"18:00\", zone = \"UTC\" } }]",
        "rule = [{ name = \"n\", approvers = [], hours = { days = [\"mon\"], from = \"08:00\", to = \"18:00\", zone = \"Mars/Olympus\" } }]",
        "rule = [{ name = \"n\", approvers = [], hours = { days = [], from = \"08:00\", to = \"18:00\", zone = \"UTC\" } }]",
    ] {
        assert!(toml::from_str::<Policy>(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_no_leaves_alone_for_a_year_at_most() {
    let days = |days: u32| toml::from_str::<Policy>(&format!("snooze_after_no_days = {days}"));
    for known in [0, 1, 14, 365] {
        assert_eq!(days(known).expect("a policy").snooze_after_no_days, u16::try_from(known).expect("days"));
    }
    for too_long in [366, 367, 3_650, 65_535, 65_536] {
        assert!(days(too_long).is_err(), "{too_long}");
    }
    let why = days(400).expect_err("more than a year").to_string();
    assert!(why.contains("`snooze_after_no_days` is 400, and 365 at most"), "{why}");
}

#[test]
fn a_plan_that_nobody_may_approve_is_known_before_anybody_is_asked() {
    let here = plan("123456789012");
    let mut content = here.content().clone();
    content.actions = vec![Action::DeleteVolume];
    let destructive = Plan::seal(content, Timestamp::MAX).expect("a plan");
    let of = |text: &str, plan: &Plan| policy(text).nobody_may(plan, Some(&BTreeMap::new()));
    let rule = |rest: &str| format!("[[rule]]\nname = \"r\"\n{rest}");
    assert_eq!(of("", &here), Some(NobodyMay::NoRule));
    let everybody = rule("approvers = [\"*\"]");
    assert_eq!(of(&everybody, &here), None);
    assert_eq!(of(&everybody, &destructive), Some(NobodyMay::NoRule), "it is of reversible plans alone");
    let elsewhere = rule("approvers = [\"*\"]\naccounts = [\"999999999999\"]");
    assert_eq!(of(&elsewhere, &here), Some(NobodyMay::NoRule));
    let two = rule("approvers = [\"*\"]\nclasses = [\"destructive\"]");
    assert_eq!(of(&two, &destructive), None);
    // Two different people must, whatever it says; a name that is there twice is one.
    for (names, named) in [("", 0), ("\"ada\"", 1), ("\"ada\", \"ada\"", 1)] {
        let few = rule(&format!("approvers = [{names}]\nclasses = [\"destructive\"]\nneeds = 1"));
        let told = NobodyMay::TooFew { rule: "r".to_owned(), named, needs: 2 };
        assert_eq!(of(&few, &destructive), Some(told), "{names}");
    }
    let enough = rule("approvers = [\"ada\", \"grace\"]\nclasses = [\"destructive\"]");
    assert_eq!(of(&enough, &destructive), None);
    // The first rule that is about it decides, and which one that is nobody knows without the tags.
    assert_eq!(
        of(&format!("{}\n{everybody}", rule("approvers = []")), &here).map(|why| why.to_string()).as_deref(),
        Some("the rule `r` names 0, and 1 different people must")
    );
    let tagged = rule("approvers = []\ntags = { team = \"x\" }");
    assert_eq!(policy(&tagged).nobody_may(&here, None), None);
    assert_eq!(policy(&tagged).nobody_may(&here, Some(&BTreeMap::new())), Some(NobodyMay::NoRule));
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
        let policy = Policy { rules: rules.clone(), ..Policy::default() };
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
