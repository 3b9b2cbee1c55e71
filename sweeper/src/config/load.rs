//! Reads one TOML file, lays environment variables over it, and refuses what it does not understand.
//!
//! `SWEEPER_SECTION__KEY` overrides `section.key`. Lists are written with commas (`eu-central-1,eu-west-1`), tables and lists of
//! tables as in TOML (`{ default = "0.25" }`, `[{ role_arn = "…" }]`), an empty text unsets an optional key. Variables that merely begin with `SWEEPER_` (an orchestrator sets
//! `SWEEPER_PORT` for a service of that name) are left alone unless they resemble a key.

use super::{
    Config, ConfigError, Origin, check,
    keys::{self, Key},
};
use serde_json::Value as Json;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};
use toml::{Table, Value};

/// What every overriding environment variable begins with.
pub const PREFIX: &str = "SWEEPER_";
/// Variables of the command line, not of the configuration.
const NOT_KEYS: [&str; 2] = ["SWEEPER_CONFIG", "SWEEPER_LOG"];

/// Where each setting came from, for messages.
pub(super) struct Origins {
    file: Option<PathBuf>,
    variables: BTreeMap<String, String>,
}

impl Origins {
    /// Where `key` was set.
    pub(super) fn of(&self, key: &str) -> Origin {
        match (self.variables.get(key), &self.file) {
            (Some(variable), _) => Origin::Environment(variable.clone()),
            (None, Some(file)) => Origin::File(file.clone()),
            (None, None) => Origin::Default,
        }
    }
}

pub(super) fn load(
    file: Option<&Path>,
    environment: impl IntoIterator<Item = (String, String)>,
) -> Result<Config, ConfigError> {
    let keys = keys::all();
    let mut origins = Origins { file: file.map(Path::to_path_buf), variables: BTreeMap::new() };
    let mut table = match file {
        Some(path) => read(path)?,
        None => Table::new(),
    };
    refuse_unknown(&table, &keys, &origins)?;
    for (name, value) in environment {
        if let Some(key) = overridden(&name, &keys)? {
            lay_over(&mut table, key, &value);
            origins.variables.insert(key.name.clone(), name);
        }
    }
    let mut config: Config = serde_path_to_error::deserialize(Value::Table(table)).map_err(|error| {
        // The path may end inside a list (`aws.regions[0]`); the variable is known by the key alone.
        let key = error.path().to_string();
        let plain = key.split('[').next().unwrap_or_default();
        let origin = origins.of(plain);
        // The message names the value, and somebody may have put a secret in place of the section that holds it.
        let prefix = format!("{key}.");
        let is_section = keys.iter().any(|known| known.name.starts_with(&prefix));
        let reason = if is_section && error.inner().message().contains("string \"") {
            format!("is a section, which begins with a line `[{key}]`, and has no value of its own")
        } else {
            one_line(error.inner().message())
        };
        ConfigError::WrongValue { origin, key, reason }
    })?;
    check::secrets(&mut config, &origins)?;
    check::sense(&config, &origins)?;
    Ok(config)
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn read(path: &Path) -> Result<Table, ConfigError> {
    let text =
        std::fs::read_to_string(path).map_err(|source| ConfigError::Read { path: path.to_path_buf(), source })?;
    text.parse::<Table>().map_err(|error| {
        let before = text.get(..error.span().map_or(0, |span| span.start)).unwrap_or(&text);
        let column = before.rsplit('\n').next().map_or(1, |line| line.chars().count() + 1);
        ConfigError::Syntax {
            path: path.to_path_buf(),
            line: before.matches('\n').count() + 1,
            column,
            reason: one_line(error.message()),
        }
    })
}

/// Refuses the first key (in the file's alphabetical order) that does not exist.
fn refuse_unknown(table: &Table, keys: &[Key], origins: &Origins) -> Result<(), ConfigError> {
    let is_key = |name: &str| keys.iter().any(|key| key.name == name);
    let is_section =
        |name: &str| keys.iter().any(|key| key.name.split_once('.').is_some_and(|(section, _)| section == name));
    let refuse =
        |name: String, nearest: String| Err(ConfigError::UnknownKey { origin: origins.of(&name), key: name, nearest });
    let names = || keys.iter().map(|key| key.name.as_str());
    for (name, value) in table {
        match value {
            Value::Table(entries) if is_section(name) => {
                for entry in entries.keys().map(|entry| format!("{name}.{entry}")) {
                    if !is_key(&entry) {
                        let nearest = keys::nearest(&entry, names());
                        return refuse(entry, nearest);
                    }
                }
            }
            // An unknown section: the name of a section helps more than one of its keys.
            Value::Table(_) if !is_key(name) => {
                let sections = names().filter_map(|name| name.split_once('.').map(|(section, _)| section));
                return refuse(name.clone(), keys::nearest(name, sections));
            }
            _ if !is_key(name) && !is_section(name) => return refuse(name.clone(), keys::nearest(name, names())),
            _ => {}
        }
    }
    Ok(())
}

/// The key that a variable overrides; an error if it looks like a misspelt one.
fn overridden<'a>(variable: &str, keys: &'a [Key]) -> Result<Option<&'a Key>, ConfigError> {
    if !variable.starts_with(PREFIX) || NOT_KEYS.contains(&variable) {
        return Ok(None);
    }
    if let Some(key) = keys.iter().find(|key| key.variable() == variable) {
        return Ok(Some(key));
    }
    let variables: Vec<String> = keys.iter().map(Key::variable).collect();
    let nearest = keys::nearest(variable, variables.iter().map(String::as_str));
    let resembles = strsim::normalized_damerau_levenshtein(variable, &nearest) > 0.85;
    if variable.contains("__") || resembles {
        return Err(ConfigError::UnknownKey {
            origin: Origin::Environment(variable.to_owned()),
            key: variable.to_owned(),
            nearest,
        });
    }
    Ok(None)
}

/// Sets a key to a variable's text, read as the type that the key has. What does not fit stays a text, and its type is refused later.
fn lay_over(table: &mut Table, key: &Key, text: &str) {
    let (section, entry) = key.name.split_once('.').map_or((None, key.name.as_str()), |(s, e)| (Some(s), e));
    let target = match section {
        None => table,
        Some(section) => match table.entry(section).or_insert_with(|| Value::Table(Table::new())) {
            Value::Table(inner) => inner,
            // A section that is not a table is refused when the whole is read.
            _ => return,
        },
    };
    let as_text = || Value::String(text.to_owned());
    let as_toml = || format!("value = {text}").parse::<Table>().ok().and_then(|mut table| table.remove("value"));
    let value = match &key.default {
        Json::Null if text.is_empty() => {
            target.remove(entry);
            return;
        }
        Json::Number(_) => text
            .parse::<i64>()
            .map(Value::Integer)
            .or_else(|_| text.parse::<f64>().map(Value::Float))
            .unwrap_or_else(|_| as_text()),
        Json::Bool(_) => text.parse::<bool>().map_or_else(|_| as_text(), Value::Boolean),
        // A list of tables.
        Json::Array(_) if text.trim_start().starts_with('[') => as_toml().unwrap_or_else(as_text),
        Json::Array(_) => Value::Array(
            text.split(',')
                .map(str::trim)
                .filter(|item| !item.is_empty())
                .map(|item| Value::String(item.to_owned()))
                .collect(),
        ),
        Json::Object(_) => as_toml().unwrap_or_else(as_text),
        Json::Null | Json::String(_) => as_text(),
    };
    target.insert(entry.to_owned(), value);
}
