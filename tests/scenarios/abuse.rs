//! Hostile names of processes, arguments and cgroups reach neither the terminal, nor a log, nor metrics, nor what the sweeper shows,
//! and hide nothing: their rows are there.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use heartbeat::{text::is_hidden, wire};
use jiff::Timestamp;
use lab::{
    agent::Agent,
    hostile::{Hostile, NAMES, SHOWN, acts},
    port,
    pty::Terminal,
    quiet,
    slack::Slack,
    sweeper::Sweeper,
    wait,
};
use std::{path::Path, time::Duration};
use sweeper::store::Store;

const TIMEOUT: Duration = Duration::from_secs(90);
const SITE: &str = "[aws]\nenabled = \"no\"\n[pricing]\nsource = \"none\"\n[onprem]\nhourly_usd = { default = \"0.25\" }\n[sweep]\nschedule = \"0 0 0 1 1 *\"\n";

/// Every text in a JSON value.
fn texts(value: &serde_json::Value) -> Vec<&str> {
    match value {
        serde_json::Value::String(text) => vec![text],
        serde_json::Value::Array(values) => values.iter().flat_map(texts).collect(),
        serde_json::Value::Object(fields) => fields.values().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

fn assert_harmless(what: &str, bytes: &[u8]) {
    assert!(!acts(bytes), "{what} acts on its reader: {}", String::from_utf8_lossy(bytes).escape_debug());
}

/// Each name is there, shown, as a program and at the end of a cgroup's path.
fn assert_complete(what: &str, heartbeat: &serde_json::Value) {
    let all = texts(heartbeat);
    for shown in SHOWN {
        assert!(all.contains(&shown), "{what} has no program {shown}: {all:?}");
        // A cgroup may not have a line break in its name; there it is a carriage return.
        let end = shown.replace("\\u{a}", "\\u{d}");
        assert!(
            all.iter().any(|text| text.starts_with('/') && text.ends_with(&end)),
            "{what} has no cgroup {end}: {all:?}"
        );
    }
    assert!(!all.iter().any(|text| text.contains(is_hidden)), "{what} hides something");
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_names_are_shown_and_do_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let _hostile = Hostile::start(scratch.path());
    on_this_host(scratch.path()).await;
    through_a_sweeper(scratch.path()).await;
}

async fn on_this_host(scratch: &Path) {
    let agent = Agent::prepare(&scratch.join("looker"), "identity = \"host\"\nlog = \"trace\"\n", &[]);
    let once = agent.run(&["once", "--interval", "2s"]).await;
    assert_harmless("once", &once.stdout);
    assert_harmless("the log of once", &once.stderr);
    assert_complete("once", &serde_json::from_slice(&once.stdout).unwrap());

    let watch = agent.run(&["watch", "--json", "--count", "2", "--interval", "300ms"]).await;
    assert_harmless("watch --json", &watch.stdout);
    let lines = watch.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect::<Vec<_>>();
    assert_eq!(lines.len(), 2, "a line break in a name made a line");
    assert_complete("watch --json", &serde_json::from_slice(lines[1]).unwrap());
    let watched = agent.run(&["watch", "--count", "2", "--interval", "300ms"]).await;
    assert_harmless("watch", &watched.stdout);
    assert_eq!(watched.stdout.iter().filter(|byte| **byte == b'\n').count(), 2);

    // What `top` itself writes to its terminal is full of escape sequences; none of them may be one of the names.
    let mut command = agent.command();
    command.args(["top", "--interval", "300ms"]);
    let mut terminal = Terminal::start(&command, 220, 100);
    wait::until("all names in top", TIMEOUT, || async {
        let screen = terminal.screen();
        SHOWN.iter().all(|shown| screen.contains(shown)).then_some(())
    })
    .await;
    terminal.press("q");
    wait::until("the end of top", TIMEOUT, || {
        let ended = terminal.ended();
        async move { ended }
    })
    .await;
    let written = terminal.written();
    for name in NAMES {
        assert!(!written.windows(name.len()).any(|window| window == name), "{} was written", name.escape_ascii());
    }
    let without_top = String::from_utf8(written).expect("top writes UTF-8");
    assert!(!without_top.contains(|c: char| !c.is_control() && is_hidden(c)));
}

async fn through_a_sweeper(scratch: &Path) {
    let slack = Slack::start_https().await;
    let roots = slack.ca_file().display().to_string();
    let site = format!(
        "{SITE}plan_after_sweeps = 1\n[slack]\ntoken = \"{}\"\nchannel = \"{}\"\napi_url = \"{}\"\n",
        Slack::TOKEN,
        Slack::CHANNEL,
        slack.api_url()
    );
    let sweeper = Sweeper::start(&scratch.join("sweeper"), &site, &[("SSL_CERT_FILE", &roots)]).await;
    let port = port::free();
    let config = format!(
        "sweeper_url = \"{}\"\njoin_token = \"{}\"\nidentity = \"host\"\ninterval = \"500ms\"\nlog = \"trace\"\nmetrics_listen = \"127.0.0.1:{port}\"\n",
        sweeper.url(),
        sweeper.join_token()
    );
    let mut agent = Agent::start(&scratch.join("agent"), &config, &[]);
    let database = format!("sqlite://{}/data/sweeper.db?mode=rw", sweeper.folder().display());
    let store = Store::connect(&database).await.unwrap();
    let stored = wait::until("two stored heartbeats", TIMEOUT, || async {
        let node = store.nodes().await.unwrap().into_iter().next()?.node_id;
        let mut rows = store.heartbeats(&node, Timestamp::UNIX_EPOCH, Timestamp::MAX).await.unwrap();
        (rows.len() >= 2).then(|| rows.pop().unwrap().heartbeat)
    })
    .await;
    let metrics = reqwest::get(format!("http://127.0.0.1:{port}/metrics")).await.unwrap().bytes().await.unwrap();
    agent.stop().await;
    assert_complete("what the sweeper stored", &serde_json::to_value(&stored).unwrap());
    assert_harmless("the metrics", &metrics);
    assert!(String::from_utf8_lossy(&metrics).contains("\\\\u{202e}txt.exe"), "a cgroup of that name has series");
    assert_harmless("the agent's log", agent.log().as_bytes());

    // An agent that is not ours may send anything: the sweeper shows it as harmlessly.
    let evil = String::from_utf8_lossy(NAMES[0]).into_owned() + "\u{202e}\nforged";
    let resource = quiet::report_with(&sweeper, "quiet-1", |heartbeat| {
        let row = wire::WorkloadActivity {
            class: wire::Class::Workload.into(),
            key: format!("/{evil}"),
            top_command: evil.clone(),
            live_processes: 1,
            cpu_ns: Some(0),
            disk_read_bytes: Some(0),
            disk_written_bytes: Some(0),
            forks: Some(0),
            execs: Some(0),
            ..wire::WorkloadActivity::default()
        };
        heartbeat.workloads.push(row);
        heartbeat.host.as_mut().unwrap().hostname.clone_from(&evil);
    })
    .await;
    let sweep = sweeper.run(&["sweep"]).await;
    assert_harmless("sweep", &sweep.stdout);
    let found = sweeper.run(&["findings", "--output", "json"]).await;
    assert_harmless("findings as JSON", &found.stdout);
    let found: serde_json::Value = serde_json::from_slice(&found.stdout).unwrap();
    let finding = found.as_array().unwrap().iter().find(|one| texts(one).contains(&resource.as_str())).unwrap();
    let id = finding["id"].as_str().unwrap();
    let explained = sweeper.run(&["explain", id]).await;
    assert_harmless("explain", &explained.stdout);
    assert!(
        String::from_utf8_lossy(&explained.stdout).contains("\\u{1b}]0;owned\\u{7}\\u{202e}\\u{a}forged"),
        "{explained:?}"
    );
    assert_harmless("explain as JSON", &sweeper.run(&["explain", id, "--output", "json"]).await.stdout);
    assert_harmless("findings", &sweeper.run(&["findings"]).await.stdout);
    assert_harmless("the sweeper's log", sweeper.log().as_bytes());
    let messages = wait::until("the message in Slack", TIMEOUT, || async {
        let messages = slack.messages();
        (!messages.is_empty()).then_some(messages)
    })
    .await;
    for text in messages.iter().flat_map(texts) {
        assert!(!text.contains(|c: char| c != '\n' && is_hidden(c)), "{text:?}");
    }
}
