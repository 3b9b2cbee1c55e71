//! Answers that Google once gave (`lab::recorded`) are read as they stand, and every change that a later day may bring leaves a list
//! whole: a fact less, a fact more, a new word.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use model::ResourceKind;
use std::collections::{BTreeMap, BTreeSet};

use google_cloud_auth::credentials::anonymous;
use lab::{
    gcp::{Google, PROJECT},
    recorded::recording,
};
use serde_json::{Value, json};
use sweeper::inventory::{
    FailureKind, InstanceState, Inventory, Kind, Listing, Outcome, Silent,
    gcp::{Options, Session, read},
};

const METHODS: [(Kind, &str, &str); 4] = [
    (Kind::Resource(ResourceKind::Instance), "compute.instances.aggregatedList", "instances"),
    (Kind::Resource(ResourceKind::Volume), "compute.disks.aggregatedList", "disks"),
    (Kind::Resource(ResourceKind::Address), "compute.addresses.aggregatedList", "addresses"),
    (
        Kind::Resource(ResourceKind::AutoScalingGroup),
        "compute.instanceGroupManagers.aggregatedList",
        "instanceGroupManagers",
    ),
];

fn recorded(list: &str) -> Value {
    serde_json::from_str(&recording(&format!("gce/aggregated_{list}.json"))).unwrap()
}

/// The stand-in says what was recorded, of which some is then changed.
struct Site {
    google: Google,
    session: Session,
    options: Options,
}

impl Site {
    async fn new(folder: &std::path::Path) -> Self {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let google = Google::start(folder).await;
        for (_, method, list) in METHODS {
            google.say(method, Some(&recorded(list))).await;
        }
        let types = recorded("machineTypes");
        google.say("compute.machineTypes.get", Some(&types["items"]["zones/us-central1-a"]["machineTypes"][0])).await;
        let endpoint = Some(google.url().to_owned());
        let options = Options {
            projects: vec![PROJECT.into()],
            compute_endpoint: endpoint.clone(),
            monitoring_endpoint: endpoint.clone(),
            billing_endpoint: endpoint,
            ..Options::default()
        };
        let session = Session::open_with(|| Ok(anonymous::Builder::new().build()), &options).await.unwrap();
        Self { google, session, options }
    }

    async fn read(&self) -> Inventory {
        read(&self.session, &self.options.scopes()[0], &Silent).await
    }

    /// What this answer comes to, and how its own listings went: of the project first, then of its parts.
    async fn read_with(&self, kind: Kind, answer: &Value) -> (Inventory, Vec<Result<usize, FailureKind>>) {
        let method = METHODS.iter().find(|known| known.0 == kind).unwrap().1;
        self.google.say(method, Some(answer)).await;
        let inventory = self.read().await;
        let outcome = |listing: &Listing| match &listing.outcome {
            Outcome::Complete { listed } => Ok(*listed),
            Outcome::Failed { why, .. } => Err(why.kind),
        };
        let own = inventory.listings.iter().filter(|listing| listing.kind == Some(kind));
        let outcomes = own.map(outcome).collect();
        (inventory, outcomes)
    }
}

/// Each kind of place in an answer once, where numbers and places stand for all others, and one pointer to it.
fn places(answer: &Value) -> BTreeMap<String, String> {
    fn walk(value: &Value, path: &str, pointer: &str, found: &mut BTreeMap<String, String>) {
        if !path.is_empty() {
            found.entry(path.to_owned()).or_insert_with(|| pointer.to_owned());
        }
        match value {
            Value::Object(members) => {
                for (name, inner) in members {
                    let shown = if path == "/items" { "*" } else { name };
                    let escaped = name.replace('~', "~0").replace('/', "~1");
                    walk(inner, &format!("{path}/{shown}"), &format!("{pointer}/{escaped}"), found);
                }
            }
            Value::Array(items) => {
                for (n, inner) in items.iter().enumerate() {
                    walk(inner, &format!("{path}/*"), &format!("{pointer}/{n}"), found);
                }
            }
            _ => {}
        }
    }
    let mut found = BTreeMap::new();
    walk(answer, "", "", &mut found);
    found
}

fn without(answer: &Value, pointer: &str) -> Value {
    let mut answer = answer.clone();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    match answer.pointer_mut(parent).unwrap() {
        Value::Object(members) => drop(members.remove(&name.replace("~1", "/").replace("~0", "~"))),
        Value::Array(items) => drop(items.remove(name.parse().unwrap())),
        other => panic!("{other} holds nothing"),
    }
    answer
}

/// Every word of the facts.
fn words(inventory: &Inventory) -> BTreeSet<String> {
    let Inventory { instances, volumes, addresses, autoscaling_groups, .. } = inventory;
    let text = format!("{instances:?}{volumes:?}{addresses:?}{autoscaling_groups:?}");
    text.split(|letter: char| !letter.is_ascii_alphanumeric() && !"-_./:".contains(letter)).map(str::to_owned).collect()
}

#[tokio::test]
async fn what_google_answered_once_is_read_as_it_stands() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::new(folder.path()).await;
    let inventory = site.read().await;
    assert!(inventory.is_complete(), "{:?}", inventory.listings);
    let Inventory { instances, volumes, addresses, autoscaling_groups, .. } = &inventory;
    assert_eq!((instances.len(), volumes.len(), addresses.len(), autoscaling_groups.len()), (8, 17, 5, 2));
    let in_state = |state| instances.iter().filter(|instance| instance.state == state).count();
    assert_eq!((in_state(InstanceState::Running), in_state(InstanceState::Suspended)), (7, 1));
    assert!(instances.iter().all(|instance| instance.instance_type.is_some() && instance.launched_at.is_none()));
    assert!(instances.iter().all(|instance| instance.google.as_ref().unwrap().shape.is_some()));
    assert!(
        instances.iter().all(|instance| instance.google.as_ref().unwrap().deletion_protection.is_none()),
        "not said then"
    );
    assert!(volumes.iter().all(|volume| volume.size_gib.is_some_and(|size| size > 0) && volume.created_at.is_some()));
    assert_eq!(addresses.iter().filter(|address| address.id.location == "global").count(), 1);
    assert!(autoscaling_groups.iter().all(|group| group.desired_capacity.is_some() && group.members.is_none()));
}

#[tokio::test]
async fn a_fact_that_is_left_out_is_not_known_and_breaks_no_list() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::new(folder.path()).await;
    for (kind, method, list) in METHODS {
        let answer = recorded(list);
        let (whole, outcomes) = site.read_with(kind, &answer).await;
        let [Ok(listed)] = outcomes[..] else { panic!("{list}: {outcomes:?}") };
        let mut known = words(&whole);
        known.extend(["None", "Unknown", "Other", "not", "said", "OnDemand", ""].map(str::to_owned));
        for (path, pointer) in places(&answer) {
            let (less, outcomes) = site.read_with(kind, &without(&answer, &pointer)).await;
            let case = format!("{list} without {pointer}: {outcomes:?}");
            let number = if kind == Kind::Resource(ResourceKind::Instance) { "id" } else { "name" };
            match path.strip_prefix("/items").unwrap_or("") {
                _ if path == "/items" => assert_eq!(outcomes, [Err(FailureKind::Malformed)], "{case}"),
                "/*" => assert!(outcomes.len() == 1 && outcomes[0].is_ok_and(|less| less <= listed), "{case}"),
                // A place that says neither what it has nor that it has nothing.
                part if [format!("/*/{list}"), "/*/warning".into(), "/*/warning/code".into()]
                    .contains(&part.to_owned()) =>
                {
                    assert!(outcomes.len() == 2 && outcomes[1].is_err(), "{case}");
                }
                part if part == format!("/*/{list}/*/{number}") => {
                    assert_eq!(outcomes, [Err(FailureKind::Malformed)], "{case}");
                }
                part if part == format!("/*/{list}/*") => {
                    let only_one = outcomes.len() == 2 && outcomes[1].is_err();
                    assert!(only_one || outcomes == [Ok(listed - 1)], "{case}");
                }
                _ => assert_eq!(outcomes, [Ok(listed)], "{case}"),
            }
            let invented: Vec<_> = words(&less).difference(&known).cloned().collect();
            assert!(invented.is_empty(), "{case}: {invented:?}");
        }
        site.google.say(method, Some(&answer)).await;
    }
}

#[tokio::test]
async fn a_fact_of_a_later_day_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::new(folder.path()).await;
    for (kind, method, list) in METHODS {
        let answer = recorded(list);
        let whole = site.read_with(kind, &answer).await.0;
        for (path, pointer) in places(&answer) {
            // The members of these two are names, not facts.
            if path == "/items" || path.ends_with("/labels") {
                continue;
            }
            let mut more = answer.clone();
            let Some(members) = more.pointer_mut(&pointer).and_then(Value::as_object_mut) else { continue };
            members.insert("brandNew".into(), json!([{"a": 1}]));
            let (read, _) = site.read_with(kind, &more).await;
            assert!(read == whole, "{list} with more in {pointer}: {:?}", read.listings);
        }
        site.google.say(method, Some(&answer)).await;
    }
}

#[tokio::test]
async fn a_word_of_a_later_day_is_kept_and_breaks_no_list() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::new(folder.path()).await;
    let mut kept = BTreeSet::new();
    for (kind, method, list) in METHODS {
        let answer = recorded(list);
        let (_, outcomes) = site.read_with(kind, &answer).await;
        let [Ok(listed)] = outcomes[..] else { panic!("{list}: {outcomes:?}") };
        for (path, pointer) in places(&answer) {
            let is_word =
                |text: &str| text.len() > 2 && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
            if !answer.pointer(&pointer).and_then(Value::as_str).is_some_and(is_word) {
                continue;
            }
            let mut later = answer.clone();
            *later.pointer_mut(&pointer).unwrap() = "BRAND_NEW".into();
            let (read, outcomes) = site.read_with(kind, &later).await;
            if path.ends_with("/warning/code") {
                assert!(outcomes.len() == 2 && outcomes[1].is_err(), "{list} {pointer}: that place is not known");
                continue;
            }
            assert_eq!(outcomes, [Ok(listed)], "{list} {pointer}");
            if words(&read).contains("BRAND_NEW") {
                kept.insert(path);
            }
        }
        site.google.say(method, Some(&answer)).await;
    }
    let status = |list: &str| format!("/items/*/{list}/*/status");
    assert_eq!(kept, [status("instances"), status("disks"), status("addresses")].into());
}
