//! What people and programs see on a machine: `top` in a real terminal, `watch` in a pipe, metrics on a port.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use lab::{agent::Agent, binaries, port, process::Running, pty::Terminal, wait};
use rustix::process::{Signal, kill_process};
use std::{
    io::{BufRead as _, BufReader},
    process::{Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

const TIMEOUT: Duration = Duration::from_secs(60);

fn agent() -> (tempfile::TempDir, Agent) {
    let scratch = tempfile::tempdir().unwrap();
    let agent = Agent::prepare(&scratch.path().join("agent"), "identity = \"host\"\n", &[]);
    (scratch, agent)
}

fn top(agent: &Agent) -> Terminal {
    let mut command = agent.command();
    command.args(["top", "--interval", "200ms"]);
    Terminal::start(&command, 80, 24)
}

async fn until_shown(terminal: &Terminal, text: &str) {
    wait::until(&format!("`{text}` on the screen"), TIMEOUT, || async {
        terminal.screen().contains(text).then_some(())
    })
    .await;
}

async fn until_ended(terminal: &mut Terminal) -> ExitStatus {
    wait::until("the end of top", TIMEOUT, || {
        let ended = terminal.ended();
        async move { ended }
    })
    .await
}

/// What the program wrote at its end may be read a moment after it.
async fn until_given_back(terminal: &Terminal) {
    wait::until("the terminal back", TIMEOUT, || async { terminal.is_given_back().then_some(()) }).await;
}

#[tokio::test]
async fn top_shows_the_machine_obeys_keys_and_gives_the_terminal_back() {
    let (_scratch, agent) = agent();
    let mut terminal = top(&agent);
    let before = terminal.modes();
    until_shown(&terminal, "1 Workloads").await;
    let host = rustix::system::uname();
    let host = host.nodename().to_string_lossy();
    for text in [&*host, "cpu  [", "waits for", "q quit"] {
        until_shown(&terminal, text).await;
    }
    assert!(!terminal.is_given_back());
    assert_ne!(terminal.modes().local_modes, before.local_modes, "keys arrive one by one");
    assert!(!String::from_utf8_lossy(&terminal.written()).contains("\u{1b}[38;"), "NO_COLOR is set");

    terminal.press("3");
    until_shown(&terminal, "Who would notice").await;
    terminal.press("?");
    until_shown(&terminal, "the terminal is as it was").await;
    terminal.resize(132, 50);
    terminal.press("1");
    wait::until("a screen of 132 columns", TIMEOUT, || async {
        terminal.screen().lines().next().is_some_and(|line| line.trim_end().chars().count() > 100).then_some(())
    })
    .await;
    terminal.press(" ");
    until_shown(&terminal, "FROZEN").await;

    terminal.press("q");
    let status = until_ended(&mut terminal).await;
    assert!(status.success(), "{status}");
    until_given_back(&terminal).await;
    assert_eq!(terminal.modes().local_modes, before.local_modes, "the terminal edits lines again");
}

#[tokio::test]
async fn a_signal_and_ctrl_c_end_top_and_give_the_terminal_back() {
    let (_scratch, agent) = agent();
    for by_key in [true, false] {
        let mut terminal = top(&agent);
        let before = terminal.modes();
        until_shown(&terminal, "1 Workloads").await;
        if by_key {
            terminal.press("\u{3}");
        } else {
            kill_process(terminal.pid(), Signal::TERM).unwrap();
        }
        let status = until_ended(&mut terminal).await;
        assert!(status.success(), "{status}");
        until_given_back(&terminal).await;
        assert_eq!(terminal.modes().local_modes, before.local_modes);
    }
}

#[tokio::test]
async fn top_without_a_terminal_says_what_to_use() {
    let (_scratch, agent) = agent();
    let output = agent.run(&["top"]).await;
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let says = String::from_utf8_lossy(&output.stderr);
    assert!(says.contains("needs a terminal") && says.contains("node-agent watch"), "{says}");
    assert!(output.stdout.is_empty());
}

#[tokio::test]
async fn watch_writes_one_heartbeat_a_line_and_ends_quietly() {
    let (_scratch, agent) = agent();
    let output = agent.run(&["watch", "--json", "--count", "3", "--interval", "200ms"]).await;
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3);
    let time = |line: &serde_json::Value, what: &str| line["interval"][what].as_u64().unwrap();
    for pair in lines.windows(2) {
        assert_eq!(time(&pair[0], "end_boottime_ns"), time(&pair[1], "start_boottime_ns"));
    }
    let once: serde_json::Value = serde_json::from_slice(&agent.run(&["once"]).await.stdout).unwrap();
    let keys = |value: &serde_json::Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&once), keys(&lines[0]), "the same shape as `once`");

    let watched = agent.run(&["watch", "--count", "2", "--interval", "200ms"]).await;
    let watched = String::from_utf8(watched.stdout).unwrap();
    assert!(watched.lines().count() == 2 && watched.contains("waits for"), "{watched}");
}

/// A reader that has seen enough, and a person who presses Ctrl-C.
#[tokio::test]
async fn watch_ends_without_a_word_when_nobody_listens() {
    let (_scratch, agent) = agent();
    for by_signal in [false, true] {
        let mut command = agent.command();
        command.args(["watch", "--json", "--interval", "100ms"]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut reader = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        assert!(line.starts_with('{'), "a line is flushed at once: {line}");
        if by_signal {
            kill_process(rustix::process::Pid::from_child(&child), Signal::INT).unwrap();
        } else {
            drop(reader);
        }
        let output = tokio::task::spawn_blocking(move || child.wait_with_output()).await.unwrap().unwrap();
        assert!(output.status.success(), "{}", output.status);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    }
}

/// A pager that is left alone: the pipe is full, and nobody reads on.
#[tokio::test]
async fn watch_is_stopped_by_a_signal_while_its_reader_stalls() {
    let (_scratch, agent) = agent();
    let mut command = agent.command();
    command.args(["watch", "--json", "--interval", "100ms"]).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let pipe = child.stdout.take().unwrap();
    let (mut held, mut since) = (0, Instant::now());
    wait::until("a pipe into which no more goes for 10 intervals", TIMEOUT, || {
        let now = rustix::io::ioctl_fionread(&pipe).unwrap();
        if now != held {
            (held, since) = (now, Instant::now());
        }
        let is_full = held > 0 && since.elapsed() > Duration::from_secs(1);
        async move { is_full.then_some(()) }
    })
    .await;
    kill_process(rustix::process::Pid::from_child(&child), Signal::TERM).unwrap();
    let mut status = None;
    wait::until("the end of watch", Duration::from_secs(2), || {
        status = child.try_wait().unwrap();
        async move { status }
    })
    .await;
    assert!(status.is_some_and(|status| status.success()), "{status:?}");
}

/// The sweeper takes the connection and then says nothing.
#[tokio::test]
async fn doctor_obeys_ctrl_c_while_it_waits_for_an_answer() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let scratch = tempfile::tempdir().unwrap();
    let config = format!("identity = \"host\"\nsweeper_url = \"http://{}\"\n", silent.local_addr().unwrap());
    let agent = Agent::prepare(&scratch.path().join("agent"), &config, &[]);
    let mut doctor = Running::start("doctor", agent.command().arg("doctor"), scratch.path());
    let _asked = tokio::time::timeout(TIMEOUT, silent.accept()).await.unwrap().unwrap();
    doctor.signal(Signal::INT);
    assert_eq!(doctor.end(Duration::from_secs(2)).await.code(), Some(1));
}

/// Reads OpenMetrics from standard input as Prometheus' own Python client does, strictly, and prints what it understood.
const PARSER: &str = "
import json, sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families
families = {f.name: [f.type, f.unit, len(f.samples)] for f in text_string_to_metric_families(sys.stdin.read())}
print(json.dumps(families))
";

#[tokio::test]
async fn metrics_are_what_prometheus_understands_and_only_where_they_were_asked_for() {
    let scratch = tempfile::tempdir().unwrap();
    let port = port::free();
    let config = format!(
        "sweeper_url = \"http://127.0.0.1:1\"\njoin_token = \"none\"\nidentity = \"host\"\ninterval = \"200ms\"\nmetrics_listen = \"127.0.0.1:{port}\"\n"
    );
    let mut agent = Agent::start(&scratch.path().join("agent"), &config, &[]);
    let url = format!("http://127.0.0.1:{port}/metrics");
    let text = wait::until("metrics of a heartbeat", TIMEOUT, || async {
        let text = reqwest::get(&url).await.ok()?.text().await.ok()?;
        text.contains("cloudsweeper_workload_cpu_seconds_total").then_some(text)
    })
    .await;
    agent.stop().await;

    let file = scratch.path().join("metrics.txt");
    std::fs::write(&file, &text).unwrap();
    let mut python = Command::new(binaries::python("python"));
    let parsed = python.args(["-c", PARSER]).stdin(std::fs::File::open(&file).unwrap()).output().unwrap();
    assert!(parsed.status.success(), "{}\n{text}", String::from_utf8_lossy(&parsed.stderr));
    let families: serde_json::Value = serde_json::from_slice(&parsed.stdout).unwrap();
    for (name, kind, unit) in [
        ("cloudsweeper_host_cpu_seconds", "counter", "seconds"),
        ("cloudsweeper_workload_cpu_seconds", "counter", "seconds"),
        ("cloudsweeper_workload_processes", "gauge", ""),
        ("cloudsweeper_agent_resident_bytes", "gauge", "bytes"),
        ("cloudsweeper_capability", "gauge", ""),
    ] {
        let family = &families[name];
        assert_eq!((family[0].as_str(), family[1].as_str()), (Some(kind), Some(unit)), "{name}: {families}");
        assert!(family[2].as_u64() > Some(0), "{name} has no samples");
    }
    assert!(!agent.log().contains("no loopback address"));
}
