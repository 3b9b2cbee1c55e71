//! `sweeper nodes`: who is attested how, join tokens, revocation; one node by itself: `node`.

use super::{
    FAILED, Output, Printed, node, open_existing, screen,
    screen::{bare_table, trim_lines},
};
use crate::{
    api,
    config::{Config, duration},
    identity::{Attestation, Node, PublicKey},
    store::{Doer, TokenHash},
    verdict::words,
};
use anyhow::Context as _;
use heartbeat::NodeId;
use jiff::Timestamp;
use serde::Serialize;
use std::{process::ExitCode, time::Duration};

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Question {
    /// One node: its id as the list has it, as much of its beginning as is unique, or its name
    #[arg(value_name = "NODE")]
    node: Option<String>,
    /// Ask the node for a sample at once and wait for it: it comes with the agent's next word, within its interval
    #[arg(long, requires = "node")]
    now: bool,
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    printed: Printed,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Make a join token, which admits one node once, and print it
    #[command(after_help = "\
Examples:
  sweeper nodes token > join-token
  sweeper nodes token --node aws:123456789012:eu-central-1:i-0123456789abcdef0 --expires 10m
  sweeper nodes token --output json | jq --raw-output .join_token

It is shown here and nowhere else: the database keeps its SHA-256 alone.")]
    Token {
        /// The only node that it admits [default: whichever comes first]
        #[arg(long, value_name = "NODE")]
        node: Option<NodeId>,
        /// How long it is good for
        #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = duration::parse)]
        expires: Duration,
        #[command(flatten)]
        printed: Printed,
    },
    /// Free a node of its key and void its tokens, so that a machine that was made anew can join in its place
    #[command(after_help = "\
Example:
  sweeper nodes revoke aws:123456789012:eu-central-1:i-0123456789abcdef0

Whoever holds a join secret can then join as this node. If the fleet token may be known to others, change it first (docs/operations.md).")]
    Revoke {
        /// As `sweeper nodes` lists it
        node: NodeId,
    },
    /// End a dispute in favour of the key that is bound to the node
    #[command(after_help = "Example:\n  sweeper nodes settle host:0123456789abcdef0123456789abcdef")]
    Settle {
        /// As `sweeper nodes` lists it
        node: NodeId,
    },
}

/// One line of the list.
#[derive(Serialize)]
pub(super) struct Line {
    pub(super) node: String,
    pub(super) hostname: String,
    agent_version: String,
    pub(super) attestation: Attestation,
    pub(super) attested: bool,
    /// The fingerprint of its key; null is a node without one.
    pub(super) key: Option<String>,
    key_bound_at: Option<Timestamp>,
    joined_at: Timestamp,
    pub(super) last_seen_at: Option<Timestamp>,
    disputed_since: Option<Timestamp>,
    disputed_because: Option<String>,
    revoked_at: Option<Timestamp>,
    /// When its heartbeats were last refused, if none were received since.
    pub(super) refused_at: Option<Timestamp>,
    pub(super) refused_because: Option<String>,
}

impl From<Node> for Line {
    fn from(node: Node) -> Self {
        let key = node.binding.as_ref().and_then(|binding| binding.public_key.parse::<PublicKey>().ok());
        let (disputed_since, disputed_because) = node.disputed.unzip();
        let (refused_at, refused_because) = node.refused.unzip();
        Self {
            node: node.node_id.to_string(),
            hostname: node.hostname,
            agent_version: node.agent_version,
            attestation: node.attestation,
            attested: node.attestation.is_attested(),
            key: key.map(|key| key.fingerprint()),
            key_bound_at: node.binding.map(|binding| binding.since),
            joined_at: node.joined_at,
            last_seen_at: node.last_seen_at,
            disputed_since,
            disputed_because,
            revoked_at: node.revoked_at,
            refused_at,
            refused_because,
        }
    }
}

impl Line {
    pub(super) fn state(&self) -> String {
        let since = |word: &str, time: Timestamp| format!("{word} since {}", words::time(time.as_millisecond()));
        match (self.disputed_since, self.revoked_at) {
            (Some(time), _) => {
                let because = self.disputed_because.as_deref().unwrap_or_default();
                format!("{}: {because}", since("disputed", time))
            }
            (None, Some(time)) => since("revoked", time),
            (None, None) if self.refused_at.is_some() => "its heartbeats are refused".to_owned(),
            (None, None) => "-".to_owned(),
        }
    }
}

pub(super) async fn run(config: &Config, question: Question) -> anyhow::Result<ExitCode> {
    match question.command {
        None => match question.node {
            Some(wanted) if question.now => node::ask(config, &wanted, question.printed.output).await,
            Some(wanted) => node::show(config, &wanted, question.printed.output).await,
            None => list(config, question.printed.output).await,
        },
        Some(Command::Token { node, expires, printed }) => token(config, node.as_ref(), expires, printed.output).await,
        Some(Command::Revoke { node }) => revoke(config, &node).await,
        Some(Command::Settle { node }) => settle(config, &node).await,
    }
}

async fn list(config: &Config, output: Output) -> anyhow::Result<ExitCode> {
    let nodes = open_existing(config).await?.nodes().await?;
    let lines = nodes.into_iter().map(Line::from).collect::<Vec<_>>();
    match output {
        Output::Json => screen::json(&lines)?,
        Output::Table if lines.is_empty() => {
            screen::print("No node has joined yet. docs/operations.md says how to put the agent on machines.");
        }
        Output::Table => {
            let mut table = bare_table(["NODE", "NAME", "ATTESTED", "BY", "KEY", "LAST SEEN", "STATE"]);
            for line in &lines {
                let seen = line.last_seen_at.map_or_else(|| "never".to_owned(), |at| words::time(at.as_millisecond()));
                table.add_row([
                    screen::plain(&line.node),
                    screen::plain(&line.hostname),
                    if line.attested { "yes" } else { "no" }.to_owned(),
                    line.attestation.as_str().to_owned(),
                    line.key.clone().unwrap_or_else(|| "none".to_owned()),
                    seen,
                    line.state(),
                ]);
            }
            screen::print(&trim_lines(&table.to_string()));
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn token(config: &Config, node: Option<&NodeId>, expires: Duration, output: Output) -> anyhow::Result<ExitCode> {
    let token = api::join_token().context("the system gave no random bytes")?;
    let store = open_existing(config).await?;
    let end = store.create_join_token(&TokenHash::of(&token), node, expires, &doer()).await?;
    match output {
        Output::Json => screen::json(&serde_json::json!({
            "join_token": token, "node": node.map(ToString::to_string), "expires_at": end,
        }))?,
        Output::Table => screen::print(&token),
    }
    Ok(ExitCode::SUCCESS)
}

async fn revoke(config: &Config, node: &NodeId) -> anyhow::Result<ExitCode> {
    if !open_existing(config).await?.revoke_node(node, &doer()).await? {
        return Ok(unknown(node, "no such node has joined"));
    }
    screen::print(&format!(
        "{node} is revoked: its key is free and its tokens are void. It can join anew with a join secret."
    ));
    Ok(ExitCode::SUCCESS)
}

async fn settle(config: &Config, node: &NodeId) -> anyhow::Result<ExitCode> {
    if !open_existing(config).await?.settle_node(node, &doer()).await? {
        return Ok(unknown(node, "it is not disputed, or has not joined"));
    }
    screen::print(&format!("{node} is disputed no more: the key that is bound to it is believed."));
    Ok(ExitCode::SUCCESS)
}

fn unknown(node: &NodeId, why: &str) -> ExitCode {
    screen::error(&format!("{node}: {why}; `sweeper nodes` lists them"));
    ExitCode::from(FAILED)
}

/// Who ran the command, for the audit log.
fn doer() -> Doer {
    Doer { who: operator(), way: "command" }
}

/// Who ran the command and on which host, for the log: by the kernel's word, not by the environment's.
pub(super) fn operator() -> String {
    let user = super::who::user();
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    screen::plain(&format!("{user}@{host}"))
}
