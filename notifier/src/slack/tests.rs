//! What Slack is sent: golden messages, Slack's documented limits, and what each answer means.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;
use secrecy::SecretString;
use serde_json::Value;

use super::{
    answers::{self, Answer, List, Row},
    message::render,
};
use crate::{
    bundle::{Bundle, Member, News, Notice},
    message::{Ask, FindingNotice},
    samples,
};

fn json(notice: &FindingNotice) -> Value {
    serde_json::to_value(render(&Notice::One(notice), "F-7K3QJ2/slack", true, None)).unwrap()
}

fn told(answer: &Answer) -> Value {
    serde_json::to_value(answers::render(answer, true)).unwrap()
}

fn bundled(bundle: &Bundle) -> Value {
    serde_json::to_value(render(&Notice::Several(bundle), "b-0123456789ab/slack", true, None)).unwrap()
}

#[test]
fn an_idle_instance() {
    insta::assert_json_snapshot!(json(&samples::idle()));
}

#[test]
fn a_blind_spot_without_a_price() {
    insta::assert_json_snapshot!(json(&samples::blind()));
}

#[test]
fn an_instance_that_is_idle_no_longer() {
    insta::assert_json_snapshot!(json(&samples::ended()));
}

#[test]
fn an_instance_that_was_stopped_as_approved() {
    insta::assert_json_snapshot!(json(&samples::stopped()));
}

#[test]
fn an_instance_that_was_not_stopped() {
    insta::assert_json_snapshot!(json(&samples::not_stopped()));
}

#[test]
fn a_plan_that_people_are_asked_about() {
    let asked = json(&samples::asked());
    assert_limits(&asked);
    insta::assert_json_snapshot!(asked);
    let without = render(&Notice::One(&samples::asked()), "F-7K3QJ2/slack", false, None);
    assert!(!serde_json::to_string(&without).unwrap().contains("\"actions\""), "where nobody hears of it");
    for over in [samples::ended(), samples::stopped()] {
        let over = FindingNotice { ask: samples::asked().ask, ..over };
        assert!(!json(&over).to_string().contains("\"actions\""), "{over:?}");
    }
}

#[test]
fn a_message_that_stands_elsewhere_says_so_and_pings_nobody() {
    let hostile = format!("<!channel> *x* {}", "#gone".repeat(100));
    for (notice, blocks) in [
        (Notice::One(&samples::asked()), json(&samples::asked())["blocks"].as_array().unwrap().len()),
        (
            Notice::Several(&samples::asked_plans()),
            bundled(&samples::asked_plans())["blocks"].as_array().unwrap().len(),
        ),
    ] {
        let message = serde_json::to_value(render(&notice, "k", true, Some(&hostile))).unwrap();
        assert_limits(&message);
        assert_eq!(message["blocks"].as_array().unwrap().len(), blocks + 1);
        let last = message["blocks"].as_array().unwrap().last().unwrap().to_string();
        assert!(last.contains("Meant for &lt;!channel&gt;") && !last.contains("<!channel>"), "{last}");
    }
}

#[test]
fn a_bundle_of_three() {
    insta::assert_json_snapshot!(bundled(&samples::bundle()));
}

#[test]
fn a_bundle_of_which_one_is_idle_no_longer() {
    insta::assert_json_snapshot!(bundled(&samples::bundle_of_which_one_ended()));
}

#[test]
fn plans_for_a_bundle() {
    insta::assert_json_snapshot!(bundled(&samples::plans()));
}

#[test]
fn a_bundle_shows_the_dearest_and_counts_the_others() {
    let message = bundled(&samples::bundle_of(300));
    assert_limits(&message);
    let said = message.to_string();
    assert!(said.contains("300 idle machines of ada: $451.50/h"), "{said}");
    assert!(said.contains("*and 280 more:* `sweeper findings`"), "{said}");
    assert!(said.contains("machine-299,") || said.contains("machine-299\""), "{said}");
    assert!(!said.contains("machine-279\""), "{said}");
}

#[test]
fn plans_of_a_bundle_that_are_asked_about() {
    let asked = bundled(&samples::asked_plans());
    assert_limits(&asked);
    let blocks = asked["blocks"].as_array().unwrap();
    let rows: Vec<_> = blocks.iter().filter(|block| block["type"] == "actions").collect();
    assert_eq!(rows.len(), 2, "of three one is decided: {asked:#}");
    for row in rows {
        let elements = row["elements"].as_array().unwrap();
        let ids: Vec<_> = elements.iter().map(|element| element["action_id"].as_str().unwrap()).collect();
        assert_eq!(ids, ["approve", "not_now", "never", "proof"]);
        let plan = elements[0]["value"].as_str().unwrap();
        let choices = elements[1]["options"].as_array().unwrap();
        assert!(choices.iter().all(|choice| choice["value"].as_str().unwrap().ends_with(plan)), "{row:#}");
        assert_eq!(elements[2]["value"], plan);
    }
    let said = asked.to_string();
    assert!(said.contains("looked at once more and stopped") && !said.contains("Nothing has been changed"), "{said}");
}

#[test]
fn what_nobody_may_approve_says_so_in_place_of_its_button() {
    let mut notice = samples::asked();
    let why = "no rule of the policy is about it; add one with `classes = [\"destructive\"]`";
    notice.ask.as_mut().unwrap().nobody_may = Some(why.to_owned());
    let message = serde_json::to_value(render(&Notice::One(&notice), "f-1/slack", true, None)).unwrap();
    assert_limits(&message);
    let mut offered = Vec::new();
    walk(&message, &mut |object| offered.extend(object.get("action_id").map(|id| id.as_str().unwrap().to_owned())));
    assert_eq!(offered, ["not_now", "never", "proof"]);
    let said = message.to_string();
    assert!(said.contains("Nobody may approve that: no rule of the policy is about it; add one with"), "{said}");
    let line = bundled(&Bundle {
        news: News::Planned,
        members: vec![Member { notice, end: None }, Member { notice: samples::asked(), end: None }],
    });
    assert_limits(&line);
    assert_eq!(line.to_string().matches("\"approve\"").count(), 1, "{line:#}");
    assert!(line.to_string().contains("nobody may approve it, and `sweeper plans` says why"), "{line:#}");
}

#[test]
fn of_three_hundred_plans_ten_have_buttons_and_the_others_are_counted() {
    let ask = |number: usize| Ask { plan: samples::plan(number), label: "Stop it".into(), nobody_may: None };
    let mut bundle = Bundle { news: News::Planned, ..samples::bundle_of(300) };
    for (number, member) in bundle.members.iter_mut().enumerate() {
        member.notice.ask = Some(ask(number));
        member.notice.answers = vec!["ada said yes".repeat(100); 20];
    }
    let message = bundled(&bundle);
    assert_limits(&message);
    let mut asked = Vec::new();
    walk(&message, &mut |object| {
        if object.get("action_id").is_some_and(|id| id == "approve") {
            asked.push(object["value"].as_str().unwrap().to_owned());
        }
    });
    asked.dedup();
    assert_eq!(asked.len(), 10, "each of its own plan");
    let said = message.to_string();
    assert!(said.contains("*290 more plans wait for an answer, without buttons here:*"), "{said}");
    let without = render(&Notice::Several(&bundle), "b-0123456789ab/slack", false, None);
    let without = serde_json::to_value(without).unwrap();
    assert_limits(&without);
    assert!(!without.to_string().contains("\"actions\"") && !without.to_string().contains("wait for an answer"));
}

#[test]
fn what_can_be_asked() {
    let help = told(&Answer::Help);
    assert_limits(&help);
    insta::assert_json_snapshot!(help);
}

#[test]
fn open_findings_that_somebody_asked_for() {
    let notices = samples::bundle().members.into_iter().map(|member| member.notice).collect();
    let list = told(&Answer::List(List::of_findings(notices)));
    assert_limits(&list);
    insta::assert_json_snapshot!(list);
}

#[test]
fn a_finding_that_somebody_asked_for_is_the_channels_message_without_metadata() {
    let mut message = json(&samples::asked());
    message.as_object_mut().unwrap().remove("metadata");
    assert_eq!(told(&Answer::Finding(Box::new(samples::asked()))), message);
    let sentence = told(&Answer::Told("<!channel> & what follows".to_owned()));
    assert_eq!(sentence, serde_json::json!({ "text": "&lt;!channel&gt; &amp; what follows" }));
}

#[test]
fn a_list_shows_the_first_and_counts_the_others() {
    let notices = samples::bundle_of(300).members.into_iter().map(|member| member.notice).collect();
    let list = told(&Answer::List(List::of_findings(notices)));
    assert_limits(&list);
    let said = list.to_string();
    assert!(said.contains("300 findings are open: $451.50/h"), "{said}");
    assert!(said.contains("*and 280 more:* `sweeper findings` in the shell"), "{said}");
    assert!(said.contains("machine-299\"") && !said.contains("machine-279\""), "{said}");
}

#[test]
fn untrusted_text_can_neither_mention_nor_link_nor_hide() {
    let hostile = || vec![samples::hostile(), samples::hostile()];
    let list = told(&Answer::List(List::of_findings(hostile())));
    for message in [json(&samples::hostile()), bundled(&samples::hostile_bundle()), list] {
        assert_harmless(&message);
    }
    assert!(json(&samples::hostile()).to_string().contains("sweeper explain F-1rm-rf/"));
}

fn assert_harmless(message: &Value) {
    let mut mrkdwn = vec![message["text"].as_str().unwrap().to_owned()];
    walk(message, &mut |object| {
        if object.get("type").and_then(Value::as_str) == Some("mrkdwn") {
            assert_eq!(object["verbatim"], true);
            mrkdwn.push(object["text"].as_str().unwrap().to_owned());
        }
    });
    for text in &mrkdwn {
        let own_dates = text.replace("<!date^", "");
        assert!(!own_dates.contains("<!") && !text.contains("<s"), "{text}");
        assert!(!text.contains('\u{202E}') && !text.contains('\u{200B}'), "{text}");
    }
    let all = message.to_string();
    assert!(!all.contains("javascript:"), "only web pages are linked");
    assert!(!all.contains('\u{202E}') && !all.contains('\u{200B}'), "{all}");
    assert_limits(message);
}

fn assert_limits(message: &Value) {
    let units = |text: &Value| text.as_str().unwrap().encode_utf16().count();
    assert!(units(&message["text"]) <= 4_000);
    let blocks = message["blocks"].as_array().unwrap();
    assert!((1..=50).contains(&blocks.len()));
    for block in blocks {
        match block["type"].as_str().unwrap() {
            "header" => assert!((1..=150).contains(&units(&block["text"]["text"]))),
            "section" => {
                if let Some(text) = block.get("text") {
                    assert!((1..=3_000).contains(&units(&text["text"])));
                }
                if let Some(fields) = block.get("fields") {
                    let fields = fields.as_array().unwrap();
                    assert!((1..=10).contains(&fields.len()));
                    assert!(fields.iter().all(|f| (1..=2_000).contains(&units(&f["text"]))));
                }
            }
            "context" => assert!((1..=10).contains(&block["elements"].as_array().unwrap().len())),
            // Not documented for rich text; what holds for a section is kept here as well.
            "rich_text" => {
                let mut sum = 0;
                walk(block, &mut |object| {
                    sum += object.get("text").filter(|text| text.is_string()).map_or(0, units);
                });
                assert!(block["elements"][0]["type"] != "rich_text_list" || sum <= 3_000, "{sum}");
            }
            "actions" => {
                let elements = block["elements"].as_array().unwrap();
                assert!((1..=25).contains(&elements.len()));
                elements.iter().for_each(assert_element_limits);
            }
            other => panic!("a {other} block, whose limits no test knows"),
        }
    }
    // Not documented, but a rich text element without text is refused.
    walk(message, &mut |object| {
        if object.get("type").and_then(Value::as_str) == Some("text") {
            assert_ne!(object["text"], "");
        }
    });
    // Of a bundle: all texts together, which Slack documents nowhere.
    if message["metadata"]["event_type"] == "cloud_sweeper_bundle" {
        let mut sum = 0;
        walk(&message["blocks"], &mut |object| {
            sum += object.get("text").filter(|text| text.is_string()).map_or(0, units);
        });
        assert!(sum <= 13_000, "{sum}");
    }
    assert!(message.to_string().len() < 60_000);
    assert!(message["metadata"].to_string().len() < 8_000);
}

fn assert_element_limits(element: &Value) {
    let within = |text: &Value, most: usize| {
        assert!((1..=most).contains(&text.as_str().unwrap().encode_utf16().count()), "{text}");
    };
    within(&element["action_id"], 255);
    if element["type"] == "static_select" {
        within(&element["placeholder"]["text"], 150);
        let options = element["options"].as_array().unwrap();
        assert!((1..=100).contains(&options.len()));
        for option in options {
            within(&option["text"]["text"], 75);
            within(&option["value"], 150);
        }
        return;
    }
    within(&element["text"]["text"], 75);
    within(&element["value"], 2_000);
    // What stops something asks once more.
    let Some(confirm) = element.get("confirm") else { return assert_ne!(element["action_id"], "approve") };
    within(&confirm["title"]["text"], 100);
    within(&confirm["text"]["text"], 300);
    within(&confirm["confirm"]["text"], 30);
    within(&confirm["deny"]["text"], 30);
}

fn walk(value: &Value, visit: &mut impl FnMut(&serde_json::Map<String, Value>)) {
    match value {
        Value::Object(object) => {
            visit(object);
            object.values().for_each(|value| walk(value, visit));
        }
        Value::Array(items) => items.iter().for_each(|value| walk(value, visit)),
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_input_exceeds_a_limit(notice in samples::any_notice()) {
        assert_limits(&json(&notice));
    }

    #[test]
    fn no_list_exceeds_a_limit(
        texts in proptest::collection::vec(any::<(String, String, String)>(), 0..40),
        long in ".{0,2000}",
        headline in any::<String>(),
    ) {
        let rows = texts.into_iter().map(|(name, details, id)| Row { name, details: details + &long, id });
        let notes = vec![long.clone(), headline.clone(), "<".repeat(5_000)];
        let list = List { headline, rows: rows.collect(), notes, command: "sweeper findings" };
        let message = told(&Answer::List(list));
        assert_harmless(&message);
    }

    #[test]
    fn no_bundle_exceeds_a_limit(bundle in samples::any_bundle()) {
        assert_limits(&bundled(&bundle));
    }
}

#[test]
fn slacks_own_address_is_reached_with_the_systems_roots() {
    let config = crate::slack::SlackConfig::new(SecretString::from("xoxb-1-2-abc"), "C012345");
    let slack = crate::slack::Slack::new(config).unwrap();
    let shown = format!("{slack:?}");
    assert!(shown.contains("C012345") && !shown.contains("abc"), "{shown}");
}
