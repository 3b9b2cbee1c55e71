//! Which file wins, what a refused one leaves, what a restart finds.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use crate::coverage::Capabilities;
use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    time::{Duration, Instant},
};

const BAD: &str = "version = \"9\"\n[housekeeping]\nnames = [\"bash\"]\n";

fn rules(version: &str) -> String {
    format!("version = \"{version}\"\nbase = \"built-in\"\n")
}

fn offer(file: &str) -> RulesOffer {
    RulesOffer::File { version: "x".to_owned(), sha256: hex::encode(Sha256::digest(file)) }
}

fn version(rules_store: &RulesStore) -> String {
    rules_store.rules().version.clone()
}

fn trouble(rules_store: &RulesStore) -> String {
    let mut capabilities = Capabilities::default();
    rules_store.report(&mut capabilities);
    capabilities.to_wire().pop().map(|capability| capability.reason).unwrap_or_default()
}

#[test]
fn a_served_file_is_taken_over_and_survives_a_restart() {
    let state = tempfile::tempdir().unwrap();
    let rules_store = RulesStore::start(None, state.path());
    assert_eq!((version(&rules_store), rules_store.origin()), ("built-in-1".to_owned(), Origin::BuiltIn));
    assert!(!rules_store.hear(None) && !rules_store.hear(Some(&RulesOffer::BuiltIn)));
    assert!(rules_store.hear(Some(&offer(&rules("1")))));
    rules_store.take(rules("1").as_bytes());
    assert_eq!(version(&rules_store), "1");
    assert!(!rules_store.hear(Some(&offer(&rules("1")))), "what is in force is not fetched");

    let again = RulesStore::start(None, state.path());
    assert_eq!((version(&again), trouble(&again)), ("1".to_owned(), String::new()));
    assert!(!again.hear(Some(&offer(&rules("1")))));
    assert!(!again.hear(Some(&RulesOffer::BuiltIn)));
    assert_eq!(version(&again), "built-in-1");
    assert_eq!(version(&RulesStore::start(None, state.path())), "built-in-1");
}

#[test]
fn a_refused_file_leaves_the_one_before_says_why_and_is_not_fetched_again() {
    let state = tempfile::tempdir().unwrap();
    let rules_store = RulesStore::start(None, state.path());
    rules_store.take(rules("1").as_bytes());
    rules_store.take(BAD.as_bytes());
    assert_eq!((version(&rules_store), rules_store.refused()), ("1".to_owned(), 1));
    let said = trouble(&rules_store);
    assert!(said.starts_with("the sweeper's file is refused: line 3, column 10: `bash`"), "{said}");
    assert!(said.ends_with("version 1 stays in force"), "{said}");
    assert!(!rules_store.hear(Some(&offer(BAD))));
    assert!(rules_store.hear(Some(&offer(&rules("2")))), "another one is news");
    assert!(!rules_store.hear(Some(&offer(&rules("1")))), "the sweeper came back to what is in force");
    assert_eq!(trouble(&rules_store), "");
    assert_eq!(version(&RulesStore::start(None, state.path())), "1", "what was refused is not kept");
}

#[test]
fn a_kept_file_that_a_newer_agent_refuses_is_named_and_the_built_in_rules_hold() {
    let state = tempfile::tempdir().unwrap();
    fs::write(state.path().join(KEPT), BAD).unwrap();
    let rules_store = RulesStore::start(None, state.path());
    assert_eq!(version(&rules_store), "built-in-1");
    assert!(trouble(&rules_store).contains("line 3"));
}

#[test]
fn a_local_file_wins_and_is_read_again_when_it_changes() {
    let state = tempfile::tempdir().unwrap();
    let path = state.path().join("own.toml");
    RulesStore::start(None, state.path()).take(rules("served").as_bytes());
    fs::write(&path, rules("own-1")).unwrap();
    let rules_store = RulesStore::start(Some(&path), state.path());
    assert_eq!((version(&rules_store), rules_store.origin()), ("own-1".to_owned(), Origin::Local(path.clone())));
    assert!(!rules_store.hear(Some(&offer(&rules("served")))));
    assert!(!rules_store.hear(Some(&RulesOffer::BuiltIn)));
    for (text, expected, complains) in
        [(rules("own-22"), "own-22", false), (BAD.to_owned(), "own-22", true), (rules("own-3"), "own-3", false)]
    {
        fs::write(&path, text).unwrap();
        rules_store.check();
        assert_eq!((version(&rules_store), trouble(&rules_store).is_empty()), (expected.to_owned(), !complains));
    }
    fs::remove_file(&path).unwrap();
    rules_store.check();
    assert_eq!(version(&rules_store), "own-3");
    assert!(trouble(&rules_store).contains("cannot be read"), "{}", trouble(&rules_store));
    assert_eq!(rules_store.refused(), 2);
    assert_eq!(version(&rules_store), "own-3", "what is missing is complained about once");
    assert_eq!(rules_store.refused(), 2);
}

#[test]
fn half_of_a_file_that_is_being_copied_is_not_taken_for_the_whole() {
    let state = tempfile::tempdir().unwrap();
    let path = state.path().join("own.toml");
    fs::write(&path, rules("1")).unwrap();
    let rules_store = RulesStore::start(Some(&path), state.path());
    let (half, whole) = ("version = \"2\"\n", rules("2"));
    for (text, expected) in [(half, "1"), (&whole, "1"), (&whole, "2")] {
        if fs::read_to_string(&path).unwrap() != text {
            fs::write(&path, text).unwrap();
        }
        assert_eq!(version(&rules_store), expected, "{text}");
    }
    assert!(!rules_store.rules().housekeeping.names.is_empty(), "the built-in ones are in it");
}

/// A test that runs as root reads every file, so it looks at the stamp alone.
#[test]
fn a_file_that_was_made_readable_has_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("own.toml");
    fs::write(&path, rules("1")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    let (before, began) = (Stamp::of(&path), Instant::now());
    // The kernel's clock for files goes in steps of up to 10 ms.
    while Stamp::of(&path) == before {
        assert!(began.elapsed() < Duration::from_secs(10), "a change of rights is not seen");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    }
}

#[test]
fn the_same_rules_in_other_words_are_the_same_rules() {
    let state = tempfile::tempdir().unwrap();
    let rules_store = RulesStore::start(None, state.path());
    rules_store.take(rules("1").as_bytes());
    let before = rules_store.rules();
    rules_store.take(format!("# a remark\n{}", rules("1")).as_bytes());
    assert!(Arc::ptr_eq(&before, &rules_store.rules()));
}
