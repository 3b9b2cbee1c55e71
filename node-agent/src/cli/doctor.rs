//! `node-agent doctor`: what this host lets the agent measure, before anything is sent anywhere.
//!
//! It asks a real sampler, which has dropped its rights, what works. It writes nothing, and sends the sweeper nothing but the
//! question whether it is there.

use super::{glossary, terminal};
use crate::{
    config::{Config, Surroundings},
    coverage::Capabilities,
    identity::{self, machine},
    source::SamplerSource,
    switch::Switch,
};
use heartbeat::wire::{Capability, CapabilityStatus};
use serde::Serialize;
use std::{fmt::Write as _, path::Path, time::Duration};

/// How one thing stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    Ok,
    NotApplicable,
    Unsupported,
    Denied,
    Broken,
}

impl Status {
    fn of(capability: &Capability) -> Self {
        match capability.status() {
            CapabilityStatus::Ok => Self::Ok,
            CapabilityStatus::NotApplicable => Self::NotApplicable,
            CapabilityStatus::Unsupported => Self::Unsupported,
            CapabilityStatus::Denied => Self::Denied,
            CapabilityStatus::Broken | CapabilityStatus::Unspecified => Self::Broken,
        }
    }

    /// Word and colour.
    fn shown(self) -> (&'static str, &'static str) {
        match self {
            Self::Ok => ("yes", "\u{1b}[32m"),
            Self::NotApplicable => ("n/a", "\u{1b}[2m"),
            Self::Unsupported => ("no: unsupported", "\u{1b}[33m"),
            Self::Denied => ("no: denied", "\u{1b}[31m"),
            Self::Broken => ("no: broken", "\u{1b}[31m"),
        }
    }
}

/// One line of the report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Row {
    name: String,
    status: Status,
    /// What it measures or is.
    meaning: &'static str,
    /// Why it does not stand, or what was found.
    reason: String,
    /// What the reader can do; empty when nothing needs doing.
    remedy: String,
}

#[derive(Debug, Serialize)]
struct Report {
    kernel: String,
    /// What will be measured and what will not.
    capabilities: Vec<Row>,
    /// What the agent needs besides.
    agent: Vec<Row>,
}

impl Report {
    fn complete(&self) -> bool {
        let fine = |row: &Row| matches!(row.status, Status::Ok | Status::NotApplicable);
        self.capabilities.iter().chain(&self.agent).all(fine)
    }

    fn table(&self) -> String {
        let mut text = format!("kernel {}\n", terminal::escaped(&self.kernel));
        let rows = self.capabilities.iter().chain(&self.agent);
        let width = rows.map(|row| row.name.chars().count()).max().unwrap_or_default();
        for (title, rows) in [("measured", &self.capabilities), ("agent", &self.agent)] {
            let _ = write!(text, "\n\u{1b}[1m{title}\u{1b}[0m\n");
            for row in rows {
                let (word, colour) = row.status.shown();
                let name = terminal::escaped(&row.name);
                let _ = writeln!(text, "  {name:width$}  {colour}{word:15}\u{1b}[0m  {}", row.meaning);
                let details = [("", &row.reason), ("remedy: ", &row.remedy)];
                for (label, detail) in details.into_iter().filter(|(_, detail)| !detail.is_empty()) {
                    let _ = writeln!(text, "  {:width$}  {:15}    {label}{}", "", "", terminal::escaped(detail));
                }
            }
        }
        text
    }
}

/// Prints the report; true if everything that this host has can be measured.
///
/// # Errors
/// If nobody reads the output.
pub async fn doctor(
    config: &Config,
    surroundings: &Surroundings,
    started: anyhow::Result<SamplerSource>,
    json: bool,
) -> anyhow::Result<bool> {
    let capabilities = match &started {
        Ok(sampler) => sampler.capabilities().iter().map(row).collect(),
        Err(error) => vec![broken("sampler", format!("{error:#}"), "set source = \"auto\"")],
    };
    drop(started);
    let kernel = rustix::system::uname().release().to_string_lossy().into_owned();
    let agent = vec![
        identity_row(config, surroundings).await,
        state_row(&config.state_dir),
        switch_row(config),
        budget_row(config),
        sweeper_row(config).await,
    ];
    let report = Report { kernel, capabilities, agent };
    let text = if json {
        terminal::escaped_json(&serde_json::to_string_pretty(&report)?).into_owned()
    } else {
        report.table()
    };
    terminal::say(text.trim_end())?;
    Ok(report.complete())
}

fn row(capability: &Capability) -> Row {
    Row {
        name: capability.name.clone(),
        status: Status::of(capability),
        meaning: glossary::meaning(&capability.name),
        reason: capability.reason.clone(),
        remedy: glossary::remedy(&capability.name, capability.status(), &capability.reason).to_owned(),
    }
}

fn fine(name: &str, reason: String) -> Row {
    own(name, Status::Ok, reason, "")
}

fn broken(name: &str, reason: String, remedy: &str) -> Row {
    own(name, Status::Broken, reason, remedy)
}

fn own(name: &str, status: Status, reason: String, remedy: &str) -> Row {
    let meaning = match name {
        "identity" => "which machine this is",
        "state_dir" => "where unsent heartbeats wait",
        "sweeper" => "who receives them",
        "kill_switch" => "the file that stops collection",
        "self_budget" => "what the agent may cost before it does less",
        _ => "",
    };
    Row { name: name.to_owned(), status, meaning, reason, remedy: remedy.to_owned() }
}

async fn identity_row(config: &Config, surroundings: &Surroundings) -> Row {
    let settings = identity::Settings::new(config.identity, surroundings, &config.state_dir, machine::Keep::No);
    match identity::discover(&settings).await {
        Ok(found) => fine("identity", format!("{}, from {}", found.node_id, found.source)),
        Err(error) => broken("identity", error.to_string(), ""),
    }
}

fn state_row(path: &Path) -> Row {
    let access = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    let existing = path.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
    match rustix::fs::access(existing, access) {
        Ok(()) if existing == path => fine("state_dir", path.display().to_string()),
        Ok(()) => fine("state_dir", format!("{} will be made", path.display())),
        Err(error) => {
            let remedy = "give the agent's user that directory, or set state_dir to another";
            broken("state_dir", format!("{}: {error}", existing.display()), remedy)
        }
    }
}

fn switch_row(config: &Config) -> Row {
    let mut capabilities = Capabilities::default();
    Switch::of(config).state(&mut capabilities);
    let capability = capabilities.to_wire().into_iter().next().unwrap_or_default();
    match capability.status() {
        CapabilityStatus::Ok => {
            fine("kill_switch", format!("{} is not there: collection runs", config.stop_file.display()))
        }
        CapabilityStatus::Denied => own("kill_switch", Status::Denied, capability.reason, "node-agent resume"),
        _ => broken("kill_switch", capability.reason, "let the agent's user look at that folder, or set stop_file"),
    }
}

fn budget_row(config: &Config) -> Row {
    fine("self_budget", config.budget.in_words())
}

async fn sweeper_row(config: &Config) -> Row {
    let Some(url) = &config.sweeper_url else {
        let remedy = "set sweeper_url (NODE_AGENT_SWEEPER_URL) before `node-agent run`";
        return own("sweeper", Status::NotApplicable, "no sweeper_url is configured".to_owned(), remedy);
    };
    let remedy = "see that the sweeper runs there and that this host may reach it";
    let answer = async {
        let client = crate::http::sweeper_client(url, Duration::from_secs(5))?;
        client.get(format!("{url}/healthz")).send().await
    };
    match answer.await {
        Ok(response) if response.status().is_success() => fine("sweeper", format!("{url} answers")),
        Ok(response) => broken("sweeper", format!("{url}/healthz answered {}", response.status()), remedy),
        Err(error) => broken("sweeper", crate::http::chain(&error), remedy),
    }
}
