//! What one event tells, whoever wrote it.

use super::*;
use aws_sdk_cloudtrail::types::Resource;
use proptest::prelude::*;
use serde_json::json;

/// What one event tells of machines.
fn told(event: &Event) -> Option<Told> {
    super::told(Launched::Machine, event)
}

fn event(inside: &Value) -> Event {
    Event::builder()
        .event_id("0f1e2d3c")
        .event_name("RunInstances")
        .event_time(DateTime::from_secs(1_790_000_000))
        .username("alice")
        .cloud_trail_event(inside.to_string())
        .build()
}

fn run(who: Value) -> Value {
    let items = json!([{"instanceId": "i-1"}, {"instanceId": "i-2"}]);
    json!({"userIdentity": who, "sourceIPAddress": "203.0.113.7", "responseElements": {"instancesSet": {"items": items}}})
}

fn by(who: Value) -> LaunchedBy {
    told(&event(&run(who))).expect("it tells").by
}

#[test]
fn each_kind_of_caller_is_named_and_no_address_is_kept() {
    let role = json!({"type": "AssumedRole", "arn": "arn:aws:sts::123456789012:assumed-role/Admin/alice"});
    let who = by(role);
    assert_eq!(who.principal.as_deref(), Some("arn:aws:sts::123456789012:assumed-role/Admin/alice"));
    assert_eq!((&who.via, who.event.as_deref()), (&None, Some("0f1e2d3c")));
    assert!(!format!("{who:?}").contains("203.0.113.7"));
    let root = by(json!({"type": "Root", "arn": "arn:aws:iam::123456789012:root"}));
    assert_eq!(root.principal.as_deref(), Some("arn:aws:iam::123456789012:root"));
    let group = by(json!({"arn": "arn:aws:sts::1:assumed-role/AWSServiceRoleForAutoScaling/AutoScaling",
                          "invokedBy": "autoscaling.amazonaws.com"}));
    assert_eq!(group.via.as_deref(), Some("autoscaling.amazonaws.com"));
    let service = by(json!({"type": "AWSService", "invokedBy": "batch.amazonaws.com"}));
    assert_eq!((service.principal.as_deref(), service.via.as_deref()), (Some("alice"), Some("batch.amazonaws.com")));
}

#[test]
fn a_call_that_failed_started_nothing() {
    let mut failed = run(json!({"arn": "arn:aws:iam::1:user/ada"}));
    failed["errorCode"] = json!("Client.InstanceLimitExceeded");
    assert_eq!(told(&event(&failed)), None);
    assert_eq!(told(&event(&json!({"responseElements": null}))), None);
    assert_eq!(told(&Event::builder().build()), None);
}

#[test]
fn an_event_without_its_answer_still_names_its_machines() {
    let resource = Resource::builder().resource_type("AWS::EC2::Instance").resource_name("i-9").build();
    let other = Resource::builder().resource_type("AWS::EC2::Ami").resource_name("ami-1").build();
    let cut = Event::builder().username("ada").resources(other).resources(resource).cloud_trail_event("{\"cut").build();
    let told = told(&cut).expect("it tells");
    assert_eq!((told.ids, told.by.principal.as_deref()), (vec!["i-9".to_owned()], Some("ada")));
}

#[test]
fn what_a_caller_chose_is_cut_and_made_visible() {
    let who = by(json!({"arn": format!("arn:\u{202e}\u{1b}[2J{}", "x".repeat(5_000))}));
    let principal = who.principal.expect("a name");
    assert!(principal.len() <= LONGEST && !principal.contains(text::is_hidden), "{principal}");
    assert!(principal.starts_with("arn:\\u{202e}\\u{1b}[2Jxxx"), "{principal}");
}

#[test]
fn the_first_event_that_names_a_machine_counts_and_others_machines_do_not() {
    let of = |principal: &str| Told {
        ids: vec!["i-1".into(), "i-2".into()],
        by: LaunchedBy { principal: Some(principal.into()), ..LaunchedBy::default() },
    };
    let mut found = BTreeMap::new();
    take(&mut found, vec![of("ada"), of("eve")], &["i-1".to_owned()].into());
    assert_eq!(
        found.into_iter().map(|(id, by)| (id, by.principal)).collect::<Vec<_>>(),
        [("i-1".into(), Some("ada".into()))]
    );
}

#[test]
fn a_submission_names_its_job_and_the_session_that_called() {
    let who = json!({"type": "AssumedRole", "arn": "arn:aws:sts::1:assumed-role/head/0123abcd"});
    let submit = |answer: Value| {
        let inside =
            json!({"userIdentity": who, "requestParameters": {"jobName": "align"}, "responseElements": answer});
        super::told(Launched::Job, &event(&inside))
    };
    let told = submit(json!({"jobId": "876da822", "jobName": "align"})).expect("it tells");
    assert_eq!((told.ids, told.by.session()), (vec!["876da822".to_owned()], Some("0123abcd")));
    for none in [Value::Null, json!({}), json!({"jobId": 7}), json!({"jobId": ""})] {
        assert_eq!(submit(none.clone()), None, "{none}");
    }
    assert_eq!(super::told(Launched::Job, &event(&run(who.clone()))), None, "it started machines");
}

/// The paths to all values within a value.
fn paths(value: &Value, at: &str, into: &mut Vec<String>) {
    into.push(at.to_owned());
    match value {
        Value::Object(members) => members.iter().for_each(|(key, inner)| paths(inner, &format!("{at}/{key}"), into)),
        Value::Array(items) => items.iter().enumerate().for_each(|(n, inner)| paths(inner, &format!("{at}/{n}"), into)),
        _ => {}
    }
}

#[test]
fn nothing_is_invented_where_any_part_of_an_event_is_missing_or_of_another_type() {
    let whole = run(json!({"arn": "arn:aws:iam::1:user/ada", "invokedBy": "ec2.amazonaws.com", "userName": "ada"}));
    let mut all = Vec::new();
    paths(&whole, "", &mut all);
    assert!(all.len() > 10);
    let known = ["arn:aws:iam::1:user/ada", "ada", "alice", "ec2.amazonaws.com"];
    for path in all {
        for other in [Value::Null, json!(7), json!("brand-new"), json!([]), json!({"x": [1]})] {
            let mut mutant = whole.clone();
            *mutant.pointer_mut(&path).expect("a path") = other.clone();
            let Some(told) = told(&event(&mutant)) else { continue };
            let fits = |word: &Option<String>| {
                word.as_deref().is_none_or(|word| known.contains(&word) || other.as_str() == Some(word))
            };
            assert!(fits(&told.by.principal) && fits(&told.by.via), "{path}: {told:?}");
        }
    }
}

proptest! {
    #[test]
    fn no_text_breaks_the_parser(inside in any::<String>(), name in any::<String>()) {
        let event = Event::builder().username(&name).cloud_trail_event(&inside).build();
        prop_assert_eq!(told(&event), None, "it names no machine");
        let odd = by(json!({"arn": name}));
        prop_assert!(odd.principal.is_none_or(|shown| !shown.contains(text::is_hidden) && shown.len() <= LONGEST));
    }
}
