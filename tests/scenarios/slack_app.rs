//! The manifests by which people make the Slack app ask for what the code uses, and for nothing else.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use lab::binaries;
use regex_lite::Regex;
use serde_json::{Value, json};
use std::{collections::BTreeSet, fs, path::Path, process::Command};

const REQUESTS: &str = "slack-app-manifest.yaml";
const SOCKETS: &str = "slack-app-manifest-socket-mode.yaml";
/// Where the sweeper hears of what Slack sends.
const PATH: &str = "/v1/slack/interactions";

/// Both manifests, what Slack's own schema finds wrong with each, and the scope that each method needs.
fn told() -> Value {
    let mut command = Command::new(binaries::python("python"));
    let output = command.arg(binaries::checkout().join("tests/lab/python/slack_manifest.py")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn strings(value: &Value) -> BTreeSet<&str> {
    value.as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect()
}

/// The methods of the Web API that the notifier calls, as slack-morphism names them.
fn called(folder: &Path) -> BTreeSet<String> {
    let call = Regex::new(r"\bsession\s*\.\s*([a-z_]+)\(").unwrap();
    let sources = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let sources = sources.filter(|path| path.extension().is_some_and(|kind| kind == "rs"));
    let texts: Vec<String> = sources.map(|path| fs::read_to_string(path).unwrap()).collect();
    texts.iter().flat_map(|text| call.captures_iter(text)).map(|found| found[1].to_owned()).collect()
}

/// `chat.postMessage` as slack-morphism writes it: `chat_post_message`.
fn as_morphism_says(method: &str) -> String {
    let letter = |c: char| match c {
        '.' => "_".to_owned(),
        c if c.is_ascii_uppercase() => format!("_{}", c.to_ascii_lowercase()),
        c => c.to_string(),
    };
    method.chars().map(letter).collect()
}

#[test]
fn slack_takes_both_manifests_and_they_differ_in_how_it_is_heard_alone() {
    let told = told();
    assert_eq!(told["refused"], json!([true, true, true]), "the schema refuses what Slack does");
    for name in [REQUESTS, SOCKETS] {
        assert_eq!(told["wrong"][name], json!([]), "{name}");
    }
    let (mut requests, sockets) = (told["manifests"][REQUESTS].clone(), &told["manifests"][SOCKETS]);
    let address = requests["settings"]["interactivity"]["request_url"].take();
    assert!(address.as_str().unwrap().ends_with(PATH), "{address}");
    let command = &mut requests["features"]["slash_commands"][0];
    assert_eq!(command["url"].take(), address, "Slack reaches one address alone");
    command.as_object_mut().unwrap().remove("url");
    requests["settings"]["interactivity"].as_object_mut().unwrap().remove("request_url");
    assert_eq!(requests["settings"]["socket_mode_enabled"], false);
    requests["settings"]["socket_mode_enabled"] = json!(true);
    assert_eq!(&requests, sockets);
}

#[test]
fn the_manifests_ask_for_what_the_code_uses_and_for_nothing_else() {
    let told = told();
    let manifest = &told["manifests"][REQUESTS];
    let needed = told["needed"].as_object().unwrap();
    let known: BTreeSet<String> = needed.keys().map(|method| as_morphism_says(method)).collect();
    assert_eq!(called(&binaries::checkout().join("notifier/src/slack")), known, "whose scope each needs is known");
    // Answers to one person need none; the command itself needs its own.
    let mut scopes: BTreeSet<&str> = needed.values().filter_map(Value::as_str).collect();
    scopes.insert("commands");
    assert_eq!(strings(&manifest["oauth_config"]["scopes"]["bot"]), scopes);
    assert_eq!(manifest["oauth_config"]["scopes"]["user"], Value::Null);
    let commands = manifest["features"]["slash_commands"].as_array().unwrap();
    let [command] = commands.as_slice() else { panic!("{commands:#?}") };
    assert_eq!(command["command"], notifier::slack::COMMAND);
    let hint = command["usage_hint"].as_str().unwrap();
    assert_eq!(hint, "findings | explain ID | plans | approve PLAN | savings | help");
    // Of what Slack sends over a socket, or to the address, no event is heard.
    assert_eq!(manifest["settings"]["event_subscriptions"], Value::Null);
    assert_eq!(manifest["settings"]["interactivity"]["is_enabled"], true);
    let router = fs::read_to_string(binaries::checkout().join("sweeper/src/api/router.rs")).unwrap();
    assert!(router.contains(&format!("\"{PATH}\"")), "that is where the sweeper hears");
}
