//! `sweeper nodes NODE`: what one node does, what decided that, and what its agent cannot measure.

use super::{FAILED, Output, explain, nodes::Line, open_existing, screen};
use crate::{
    api,
    config::Config,
    identity::Node,
    inventory::key_of,
    store::{ANSWERED_WITHIN, Store, StoreError},
    sweep::judge_node,
    verdict::{Case, DecidingRow, Judgement, words},
};
use anyhow::Context as _;
use heartbeat::wire::{Capability, CapabilityStatus};
use jiff::Timestamp;
use screen::{BOLD, WARN, plain};
use serde::Serialize;
use std::{fmt::Write as _, io::IsTerminal as _, process::ExitCode, time::Duration};

/// How often it is asked whether an answer has come.
const ASK_EVERY: Duration = Duration::from_millis(250);

/// What `--output json` shows.
#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    node: Line,
    /// When it was judged, from the heartbeats that had arrived by then.
    judged_at: Timestamp,
    verdict: &'static str,
    since: Option<Timestamp>,
    /// What decided, in words.
    why: String,
    deciding_row: Option<DecidingRow>,
    not_measured: Vec<Missing>,
    /// Open findings on it.
    findings: Vec<String>,
    #[serde(skip)]
    case: Case,
}

/// Something that the agent's latest heartbeat could not measure.
#[derive(Serialize)]
struct Missing {
    capability: String,
    status: &'static str,
    reason: String,
}

impl Missing {
    /// None if it is measured, or there is nothing to measure.
    fn of(capability: Capability) -> Option<Self> {
        let status = match capability.status() {
            CapabilityStatus::Ok | CapabilityStatus::NotApplicable => return None,
            CapabilityStatus::Unsupported => "unsupported",
            CapabilityStatus::Denied => "denied",
            CapabilityStatus::Broken => "broken",
            CapabilityStatus::Unspecified => "unknown",
        };
        Some(Self { capability: capability.name, status, reason: capability.reason })
    }
}

/// Shows the node of this id, this name, or an id that begins like this.
pub(super) async fn show(config: &Config, wanted: &str, output: Output) -> anyhow::Result<ExitCode> {
    let store = open_existing(config).await?;
    match find(store.nodes().await?, wanted) {
        Ok(node) => tell(&store, config, node, output).await,
        Err(why) => Ok(failed(&why)),
    }
}

fn failed(why: &str) -> ExitCode {
    screen::error(why);
    ExitCode::from(FAILED)
}

/// Asks the node for a sample, waits until it has come, and shows the node as it is then.
pub(super) async fn ask(config: &Config, wanted: &str, output: Output) -> anyhow::Result<ExitCode> {
    let store = open_existing(config).await?;
    let node = match find(store.nodes().await?, wanted) {
        Ok(node) => node,
        Err(why) => return Ok(failed(&why)),
    };
    let question = api::question().context("the system gave no random bytes")?;
    let asked_at = store.ask(&node.node_id, &question).await?;
    let waiting = Waiting::begin(&node.hostname);
    let answer = async {
        loop {
            if let Some(answered) = store.answer_to(&node.node_id, &question, asked_at).await? {
                return Ok::<_, StoreError>(answered);
            }
            tokio::time::sleep(ASK_EVERY).await;
        }
    };
    let answered = tokio::time::timeout(ANSWERED_WITHIN, answer).await;
    waiting.end();
    let Ok(answered) = answered else {
        return Ok(failed(&format!(
            "{} has not answered within {} s. `sweeper serve` must run, and the agent must report and be of this version; `sweeper nodes {}` says what is known",
            plain(&node.hostname),
            ANSWERED_WITHIN.as_secs(),
            node.node_id
        )));
    };
    answered?;
    // When it was last heard of is another time by now.
    match find(store.nodes().await?, &node.node_id.to_string()) {
        Ok(node) => tell(&store, config, node, output).await,
        Err(why) => Ok(failed(&why)),
    }
}

/// Says on a terminal that there is something to wait for.
struct Waiting(bool);

impl Waiting {
    fn begin(name: &str) -> Self {
        let is_seen = std::io::stderr().is_terminal();
        if is_seen {
            let _ = std::io::Write::write_fmt(
                &mut std::io::stderr(),
                format_args!("waiting for the next word of {} …", plain(name)),
            );
        }
        Self(is_seen)
    }

    fn end(self) {
        if self.0 {
            let _ = std::io::Write::write_all(&mut std::io::stderr(), b"\r\x1b[K");
        }
    }
}

async fn tell(store: &Store, config: &Config, node: Node, output: Output) -> anyhow::Result<ExitCode> {
    let now = Timestamp::now();
    let (case, judgement, coverage) = judge_node(store, config, &node, now).await?;
    let key = key_of(&node.node_id);
    let open = store.open_findings().await?.into_iter().filter(|finding| finding.resource == key);
    let shown = Shown {
        judged_at: now,
        verdict: judgement.verdict.as_str(),
        since: judgement.since_unix_ms.and_then(|ms| Timestamp::from_millisecond(ms).ok()),
        why: words::decision(&judgement, &case),
        deciding_row: judgement.deciding_row().cloned(),
        not_measured: coverage.into_iter().flat_map(|all| all.capabilities).filter_map(Missing::of).collect(),
        findings: open.map(|finding| finding.id.0).collect(),
        node: Line::from(node),
        case,
    };
    match output {
        Output::Json => screen::json(&shown)?,
        Output::Table => screen::print(&text(&shown, &judgement)),
    }
    Ok(ExitCode::SUCCESS)
}

fn find(nodes: Vec<Node>, wanted: &str) -> Result<Node, String> {
    let is_exactly = |node: &Node| node.node_id.to_string() == wanted;
    let begins = |node: &Node| node.hostname == wanted || node.node_id.to_string().starts_with(wanted);
    let exact = nodes.iter().position(is_exactly);
    let mut nodes = nodes;
    if let Some(exact) = exact {
        return Ok(nodes.swap_remove(exact));
    }
    nodes.retain(begins);
    match nodes.as_slice() {
        [_] => Ok(nodes.swap_remove(0)),
        [] => Err(format!("no node `{wanted}` has joined; `sweeper nodes` lists them")),
        [first, second, ..] => {
            Err(format!("`{wanted}` is not unique: it could be {} or {}", first.node_id, second.node_id))
        }
    }
}

fn text(shown: &Shown, judgement: &Judgement) -> String {
    let (Shown { node, case, .. }, mut out) = (shown, String::new());
    let _ = writeln!(out, "{BOLD}{} is {}{BOLD:#}", plain(&node.hostname), shown.verdict);
    let mut fact = |label: &str, value: String| {
        let _ = writeln!(out, "  {label:<10}{value}");
    };
    fact("node", plain(&node.node));
    if let Some(since) = shown.since {
        fact("since", words::time(since.as_millisecond()));
    }
    let ago = |at: Timestamp| {
        let ms = shown.judged_at.duration_since(at).as_millis();
        format!("{} ago, at {}", words::span(i64::try_from(ms).unwrap_or(i64::MAX)), words::time(at.as_millisecond()))
    };
    let every = case.node.as_ref().map(|facts| format!(", every {}", words::span(facts.interval_ms)));
    fact("heard", node.last_seen_at.map_or_else(|| "never".to_owned(), ago) + every.as_deref().unwrap_or_default());
    let attested = if node.attested { "attested" } else { "not attested" };
    let key = node.key.as_deref().unwrap_or("none");
    fact("identity", format!("{attested} ({}), key {key}", node.attestation.as_str()));
    let state = node.state();
    if state != "-" {
        fact("state", plain(&state));
    }
    for finding in &shown.findings {
        fact("finding", format!("{finding} (`sweeper explain {finding}`)"));
    }
    if let (Some(at), Some(because)) = (node.refused_at, &node.refused_because) {
        let _ = writeln!(
            out,
            "  {WARN}its heartbeats are refused, last at {}: {}{WARN:#}",
            words::time(at.as_millisecond()),
            plain(because)
        );
    }
    explain::heading(&mut out, &format!("Why {}", shown.verdict));
    explain::list(&mut out, &[plain(&shown.why)]);
    let Some(facts) = &case.node else {
        explain::list(&mut out, &["there is no heartbeat within `verdict.lookback` to judge by".to_owned()]);
        return out;
    };
    explain::evidence(&mut out, case, judgement);
    if !shown.not_measured.is_empty() {
        explain::heading(&mut out, "What its agent cannot measure");
        let line = |missing: &Missing| {
            format!("{} ({}): {}", plain(&missing.capability), missing.status, plain(&missing.reason))
        };
        explain::list(&mut out, &shown.not_measured.iter().map(line).collect::<Vec<_>>());
    }
    explain::heading(&mut out, "Workloads that live there");
    explain::workloads(&mut out, facts);
    out
}
