//! Reads the sources of a configuration and lays one over the other.

use super::{Config, ConfigError, JoinToken, KEYS, value};
use secrecy::SecretString;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

/// Read when no `--config` is given and it exists.
pub const DEFAULT_FILE: &str = "/etc/cloud-sweeper/node-agent.toml";
const PREFIX: &str = "NODE_AGENT_";
/// Variables of the prefix that are no keys: the first chooses the file itself.
const NOT_KEYS: [&str; 1] = ["NODE_AGENT_CONFIG"];
const LEAST_INTERVAL: Duration = Duration::from_millis(100);
const MOST_INTERVAL: Duration = Duration::from_secs(3600);
const LEAST_AGE: Duration = Duration::from_secs(1);
const MOST_AGE: Duration = Duration::from_secs(366 * 24 * 3600);
/// Room for at least 16 heartbeats of one disk block each.
const LEAST_SPOOL_BYTES: u64 = 64 * 1024;

/// What the agent takes with nothing to do.
const LEAST_MEMORY_BYTES: u64 = 8 * 1024 * 1024;

/// What the process finds around itself; plain data, so that tests can make one up.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// Environment variables that are valid UTF-8.
    pub variables: BTreeMap<String, String>,
    /// Whether the process is root.
    pub root: bool,
}

impl Surroundings {
    /// Those of this process.
    #[must_use]
    pub fn of_this_process() -> Self {
        let variables =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        Self { variables: variables.collect(), root: rustix::process::geteuid().is_root() }
    }

    /// A variable that is set and not empty.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    pub(super) fn default_state_dir(&self) -> PathBuf {
        if self.root {
            return PathBuf::from("/var/lib/cloud-sweeper/agent");
        }
        let state = self.variable("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        let home = || self.variable("HOME").map(|home| Path::new(home).join(".local/state"));
        state.or_else(home).unwrap_or_else(|| PathBuf::from("/var/tmp")).join("cloud-sweeper/agent")
    }
}

/// Reads the configuration: defaults, the file, the environment.
///
/// Without `file`, [`DEFAULT_FILE`] is read if it exists.
///
/// # Errors
/// See [`ConfigError`]; the text of each is one line.
pub fn load(file: Option<&Path>, surroundings: &Surroundings) -> Result<Config, ConfigError> {
    let mut config = Config::default_in(surroundings);
    let chosen = file.unwrap_or(Path::new(DEFAULT_FILE));
    match std::fs::read_to_string(chosen) {
        Ok(text) => overlay_file(&mut config, &chosen.display().to_string(), &text)?,
        Err(error) if file.is_none() && error.kind() == std::io::ErrorKind::NotFound => {}
        Err(source) => return Err(ConfigError::Unreadable { file: chosen.display().to_string(), source }),
    }
    overlay_variables(&mut config, surroundings)?;
    Ok(config)
}

pub(super) fn overlay_file(config: &mut Config, file: &str, text: &str) -> Result<(), ConfigError> {
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        ConfigError::Syntax { file: file.to_owned(), line, message: error.message().replace('\n', " ") }
    })?;
    overlay(config, file, &table, |key| key.to_owned())
}

fn overlay_variables(config: &mut Config, surroundings: &Surroundings) -> Result<(), ConfigError> {
    let ours = surroundings.variables.iter().filter(|(name, value)| {
        // Kubernetes and Docker set NODE_AGENT_SERVICE_… and NODE_AGENT_PORT… for a service called `node-agent`.
        let foreign = ["NODE_AGENT_SERVICE_", "NODE_AGENT_PORT"].iter().any(|start| name.starts_with(start));
        name.starts_with(PREFIX) && !value.is_empty() && !foreign && !NOT_KEYS.contains(&name.as_str())
    });
    let table = ours
        .map(|(name, value)| (name[PREFIX.len()..].to_lowercase(), toml::Value::String(value.clone())))
        .collect::<toml::Table>();
    overlay(config, "environment", &table, |key| format!("{PREFIX}{}", key.to_uppercase()))
}

fn overlay(
    config: &mut Config,
    origin: &str,
    table: &toml::Table,
    shown: impl Fn(&str) -> String,
) -> Result<(), ConfigError> {
    for (key, value) in table {
        if !KEYS.contains(&key.as_str()) {
            let hint = nearest(key).map_or_else(
                || format!("valid keys are {}", KEYS.map(&shown).join(", ")),
                |near| format!("did you mean `{}`?", shown(near)),
            );
            return Err(ConfigError::UnknownKey { origin: origin.to_owned(), key: escaped(&shown(key)), hint });
        }
        set(config, key, value).map_err(|reason| ConfigError::Value {
            origin: origin.to_owned(),
            key: shown(key),
            reason: escaped(&reason),
        })?;
    }
    if table.contains_key("join_token") && table.contains_key("join_token_file") {
        let reason = format!("`{}` is set as well; keep one of the two", shown("join_token_file"));
        return Err(ConfigError::Value { origin: origin.to_owned(), key: shown("join_token"), reason });
    }
    Ok(())
}

fn set(config: &mut Config, key: &str, found: &toml::Value) -> Result<(), String> {
    match key {
        "sweeper_url" => config.sweeper_url = Some(value::url(found)?),
        "join_token" => {
            // The reason must not repeat a secret.
            let text = value::text(found).map_err(|_| "expected a text in quotes, not empty".to_owned())?;
            config.join_token = Some(JoinToken::Text(SecretString::from(text)));
        }
        "join_token_file" => config.join_token = Some(JoinToken::File(value::path(found)?)),
        "state_dir" => config.state_dir = value::path(found)?,
        "interval" => config.interval = value::duration(found, LEAST_INTERVAL, MOST_INTERVAL)?,
        "spool_max_bytes" => config.spool_max_bytes = value::bytes(found, LEAST_SPOOL_BYTES)?,
        "spool_max_age" => config.spool_max_age = value::duration(found, LEAST_AGE, MOST_AGE)?,
        "source" => config.source = value::source(found)?,
        "syscall_classes" => config.syscall_classes = value::switch(found)?,
        "keep_ptrace" => config.keep_ptrace = value::switch(found)?,
        "host_root" => config.host_root = value::path(found)?,
        "stop_file" => config.stop_file = value::path(found)?,
        "max_cpu_percent_of_host" => config.budget.cpu_ppm_of_host = value::percent(found)?,
        "max_memory_bytes" => config.budget.memory_bytes = value::bytes(found, LEAST_MEMORY_BYTES)?,
        "identity" => config.identity = value::identity(found)?,
        "gpu_helper" => config.gpu.helper = Some(value::path(found)?),
        "rules_file" => config.rules_file = Some(value::path(found)?),
        "pci_devices" => config.gpu.pci_devices = value::path(found)?,
        "containers" => config.runtime.enabled = value::switch(found)?,
        "cri_socket" => config.runtime.cri_socket = Some(value::path(found)?),
        "kubelet_url" => config.runtime.kubelet_url = Some(value::local_url(found)?),
        "kubelet_token_file" => config.runtime.kubelet_token_file = Some(value::path(found)?),
        "kubelet_ca_file" => config.runtime.kubelet_ca_file = Some(value::path(found)?),
        "ecs_url" => config.runtime.ecs_url = Some(value::local_url(found)?),
        "docker_socket" => config.runtime.docker_socket = Some(value::path(found)?),
        "metrics_listen" => config.metrics_listen = Some(value::address(found)?),
        _ => config.log = Some(value::text(found)?),
    }
    Ok(())
}

fn nearest(key: &str) -> Option<&'static str> {
    let scored = KEYS.iter().map(|known| (strsim::jaro_winkler(&key.to_lowercase(), known), *known));
    scored.filter(|(score, _)| *score > 0.8).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, known)| known)
}

fn escaped(text: &str) -> String {
    text.chars().flat_map(|c| if c.is_control() { c.escape_default().collect::<Vec<_>>() } else { vec![c] }).collect()
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
