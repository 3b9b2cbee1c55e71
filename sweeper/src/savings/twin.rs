//! Whether another machine does what one did that was stopped. Pure.

use crate::store::Version;
use jiff::Timestamp;
use serde::Deserialize as _;
use serde_json::Value;
use std::collections::BTreeMap;

/// The first machine that was launched in the place of one that was stopped at `called_at`, and when it was first seen. `stopped` is what that one was; `newcomers` were seen for the first time since.
///
/// That is one of the same name and owner, from the same launch template; where the stopped one had none, of the same type, and it must have had a name. What a group or a service
/// launches is no answer to the stop of a machine that belonged to none.
#[must_use]
pub fn twin(stopped: &Version, called_at: Timestamp, newcomers: &[Version]) -> Option<(Timestamp, String)> {
    let is_twin = |newcomer: &&Version| {
        newcomer.resource != stopped.resource
            && launched_at(&newcomer.record).is_some_and(|launched_at| launched_at > called_at)
            && newcomer.record["autoscaling_group"].is_null()
            && newcomer.record["operator"].is_null()
            && is_alike(&stopped.record, &newcomer.record)
    };
    let first = newcomers.iter().filter(is_twin).min_by_key(|newcomer| newcomer.from)?;
    Some((first.from, first.resource.clone()))
}

/// The first machine that the group started after one of its machines was called to end at `called_at`, and when it was first seen: then the group wanted that machine, or somebody did.
#[must_use]
pub fn successor(group: &str, called_at: Timestamp, newcomers: &[Version]) -> Option<(Timestamp, String)> {
    let is_its = |newcomer: &&Version| {
        newcomer.record["autoscaling_group"] == group
            && launched_at(&newcomer.record).is_some_and(|launched_at| launched_at > called_at)
    };
    let first = newcomers.iter().filter(is_its).min_by_key(|newcomer| newcomer.from)?;
    Some((first.from, first.resource.clone()))
}

fn is_alike(one: &Value, other: &Value) -> bool {
    let name = |record: &Value| record["tags"]["Name"].as_str().filter(|name| !name.is_empty()).map(str::to_owned);
    let owner = |record: &Value| model::machine::owner(&tags(record));
    let template = |record: &Value| record["launch_template"]["id"].as_str().map(str::to_owned);
    if name(one) != name(other) || owner(one) != owner(other) {
        return false;
    }
    match template(one) {
        Some(id) => template(other) == Some(id),
        None => {
            name(one).is_some() && !one["instance_type"].is_null() && one["instance_type"] == other["instance_type"]
        }
    }
}

fn tags(record: &Value) -> BTreeMap<String, String> {
    BTreeMap::deserialize(&record["tags"]).unwrap_or_default()
}

fn launched_at(record: &Value) -> Option<Timestamp> {
    Timestamp::deserialize(&record["launched_at"]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn at(minute: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_mins(minute)
    }

    fn machine(id: &str, launched: i64, change: Value) -> Version {
        let mut record = json!({
            "instance_type": "m5.large", "launched_at": at(launched), "autoscaling_group": null, "operator": null, "launch_template": null,
            "tags": { "Name": "align-7", "owner": "ada" },
        });
        let Value::Object(changed) = change else { panic!("an object") };
        record.as_object_mut().expect("an object").extend(changed);
        Version { kind: "instance".into(), resource: id.into(), from: at(launched + 1), until: None, record }
    }

    #[test]
    fn what_a_group_starts_afterwards_is_told_from_all_else() {
        let of = |launched: i64, group: Value| {
            let newcomer = machine("i-new", launched, json!({ "autoscaling_group": group }));
            successor("workers", at(10), &[newcomer]).is_some()
        };
        assert!(of(11, json!("workers")));
        assert!(!of(11, json!("others")) && !of(11, Value::Null));
        assert!(!of(10, json!("workers")), "it was started before the call");
    }

    #[test]
    fn what_was_launched_in_its_place_is_told_from_all_else_that_was_launched() {
        let template = json!({ "launch_template": { "id": "lt-1", "version": "3" } });
        let stopped = machine("i-old", 0, json!({}));
        let from_template = machine("i-old", 0, template.clone());
        let is_twin = |stopped: &Version, newcomer: Version| twin(stopped, at(10), &[newcomer]).is_some();
        assert!(is_twin(&stopped, machine("i-new", 11, json!({}))));
        assert!(is_twin(&from_template, machine("i-new", 11, template.clone())));
        let larger = json!({ "launch_template": { "id": "lt-1", "version": "4" }, "instance_type": "m5.xlarge" });
        assert!(
            is_twin(&from_template, machine("i-new", 11, larger)),
            "another version of the template, or another type"
        );
        for (newcomer, why) in [
            (machine("i-old", 11, json!({})), "itself, started again"),
            (machine("i-new", 10, json!({})), "it was launched before"),
            (machine("i-new", 11, json!({ "launched_at": null })), "nobody knows when"),
            (machine("i-new", 11, json!({ "instance_type": "m5.xlarge" })), "another type"),
            (machine("i-new", 11, json!({ "tags": { "Name": "align-8", "owner": "ada" } })), "another name"),
            (machine("i-new", 11, json!({ "tags": { "Name": "align-7", "owner": "bob" } })), "another owner"),
            (machine("i-new", 11, json!({ "autoscaling_group": "workers" })), "a group's"),
            (machine("i-new", 11, json!({ "operator": "eks" })), "a service's"),
        ] {
            assert!(!is_twin(&stopped, newcomer), "{why}");
        }
        let other = json!({ "launch_template": { "id": "lt-2" } });
        assert!(!is_twin(&from_template, machine("i-new", 11, other)), "another template");
        assert!(!is_twin(&from_template, machine("i-new", 11, json!({}))), "none");
        let unnamed = |id, launched| machine(id, launched, json!({ "tags": {} }));
        assert!(!is_twin(&unnamed("i-old", 0), unnamed("i-new", 11)), "nothing says that they are alike but the type");
        let both = [machine("i-2", 20, json!({})), machine("i-1", 12, json!({}))];
        assert_eq!(twin(&stopped, at(10), &both), Some((at(13), "i-1".to_owned())), "the first");
    }
}
